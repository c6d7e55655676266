"""The words of a row as numbers beside it, so that a search reads a scope once and takes no text apart.

`words` holds eight bytes for each lexeme of the text and the key: 63 bits of its hash, and a last bit that says whether
the subject holds it. `words_head` holds what else a search ranks by, packed as it is read: id, when it was first said, its
half-life in days or 0, how many words it has and how many its subject. The database writes both where a row is written,
and empties them where a row is erased.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from django.db import migrations

_GUARDS: Final = import_module("observations.migrations.0002_integrity")
_UPDATE: Final = import_module("observations.migrations.0007_engine_integrity")
_WORDS_BEFORE: Final = import_module("observations.migrations.0014_search")

# One place takes a text apart. Accents are left out, and forms of one letter are one: whoever asks types few of them.
LEXEMES = r"""
CREATE FUNCTION palimpsest_lexemes(text text)
RETURNS tsvector LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 10000
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF octet_length(text) > length(text) THEN  -- a text of ASCII alone has nothing to fold
    text := normalize(regexp_replace(normalize(text, NFKD), '[\u0300-\u036f]+', '', 'g'), NFC);
  END IF;
  RETURN to_tsvector('pg_catalog.english', text);
END $$;
CREATE OR REPLACE FUNCTION palimpsest_words(scope_id bigint, text text, subject varchar, predicate varchar, object varchar)
RETURNS tsvector LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 10000
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  RETURN palimpsest_lexemes(text || ' ' || subject || ' ' || predicate || ' ' || object)
    || array_to_tsvector(ARRAY['@ ' || scope_id::text]);
END $$
"""
# The table's rewriting makes the index of words anew on the way here; on the way back nothing else does.
DROP_LEXEMES = (
    _WORDS_BEFORE.FUNCTION.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
    + ";\nREINDEX INDEX observation_words_and_key_in_scope;\nDROP FUNCTION palimpsest_lexemes(text)"
)

WORDS = """
CREATE FUNCTION palimpsest_word_codes(text text, subject varchar, predicate varchar, object varchar)
RETURNS bytea LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 10000
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE named text[] := tsvector_to_array(palimpsest_lexemes(subject));
BEGIN
  RETURN (SELECT coalesce(string_agg(int8send((hashtextextended(word, 0) & -2) | (word = ANY (named))::int), ''), '')
          FROM unnest(tsvector_to_array(palimpsest_lexemes(
            text || ' ' || subject || ' ' || predicate || ' ' || object))) word);
END $$;
CREATE FUNCTION palimpsest_words_head(id bigint, created_at timestamptz, half_life_days integer, words bytea, subject varchar)
RETURNS bytea LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 1000
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  RETURN int8send(id) || timestamptz_send(created_at) || int4send(coalesce(half_life_days, 0))
    || int4send(octet_length(words) / 8) || int2send(coalesce(length(palimpsest_lexemes(subject)), 0)::int2);
END $$;
-- Of a long row's words those that a query asks for: nobody carries thousands of them out of the database. Unsafe, so
-- that no search of some thousand rows waits for another process to be started.
CREATE FUNCTION palimpsest_word_codes_held(words bytea, asked bigint[])
RETURNS bytea LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE COST 100
SET search_path = pg_catalog, pg_temp AS $$
DECLARE whole bytea := words || ''::bytea;  -- unpacked once
BEGIN
  RETURN (SELECT coalesce(string_agg(int8send(code | flag), ''), '')
          FROM unnest(asked) code CROSS JOIN generate_series(0::bigint, 1) flag WHERE position(int8send(code | flag) IN whole) > 0);
END $$
"""
DROP_WORDS = """
DROP FUNCTION palimpsest_word_codes_held(bytea, bigint[]);
DROP FUNCTION palimpsest_words_head(bigint, timestamptz, integer, bytea, varchar);
DROP FUNCTION palimpsest_word_codes(text, varchar, varchar, varchar)
"""

# Computed while the table is rewritten: an UPDATE would leave every row twice, and run every guard for it.
COLUMNS = """
ALTER TABLE observations_observation
  ADD COLUMN words bytea NOT NULL
    GENERATED ALWAYS AS (CASE WHEN text IS NULL THEN '' ELSE
    palimpsest_word_codes(text, subject, predicate, object) END) STORED,
  ADD COLUMN words_head bytea NOT NULL GENERATED ALWAYS AS (CASE WHEN text IS NULL THEN '' ELSE palimpsest_words_head(
    id, created_at, half_life_days, palimpsest_word_codes(text, subject, predicate, object), subject) END) STORED;
ALTER TABLE observations_observation ALTER COLUMN words DROP EXPRESSION, ALTER COLUMN words_head DROP EXPRESSION;
-- a sample of them would outlive an erased row in PostgreSQL's statistics, which nothing here is planned by
ALTER TABLE observations_observation ALTER COLUMN words SET STATISTICS 0, ALTER COLUMN words_head SET STATISTICS 0
"""
# A search reads the first index and no table; a row of more words than an entry of an index takes is in the second.
INDEXES = """
CREATE INDEX observation_words_short ON observations_observation (scope_id) INCLUDE (words_head, words)
  WHERE status = 'active' AND octet_length(words) <= 1600;
CREATE INDEX observation_words_long ON observations_observation (scope_id)
  WHERE status = 'active' AND octet_length(words) > 1600
"""
DROP_INDEXES = "DROP INDEX observation_words_short; DROP INDEX observation_words_long"
DROP_COLUMNS = "ALTER TABLE observations_observation DROP COLUMN words, DROP COLUMN words_head"

_BORN = _GUARDS.GUARD_OBSERVATION.partition("CREATE FUNCTION palimpsest_observation_update()")[0].strip()
INSERT_BEFORE = _BORN.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1)
INSERT = """
CREATE OR REPLACE FUNCTION palimpsest_observation_insert() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF NEW.status NOT IN ('active', 'quarantined') OR NEW.version <> 1 OR NEW.superseded_by_id IS NOT NULL THEN
    RAISE EXCEPTION 'an observation is born active or quarantined, at version 1, without a successor'
      USING ERRCODE = 'PA005';
  END IF;
  IF NEW.created_at > clock_timestamp() THEN
    IF NEW.created_at > clock_timestamp() + interval '5 minutes' THEN
      RAISE EXCEPTION 'created_at is in the future of the database''s clock' USING ERRCODE = 'PA005';
    END IF;
    NEW.created_at := clock_timestamp();  -- a writer's clock runs a little ahead
  END IF;
  NEW.words := palimpsest_word_codes(NEW.text, NEW.subject, NEW.predicate, NEW.object);  -- whatever its writer says
  NEW.words_head := palimpsest_words_head(NEW.id, NEW.created_at, NEW.half_life_days, NEW.words, NEW.subject);
  RETURN NEW;
END $$;
"""
# As in 0007; the words are emptied by an erasure, and otherwise among what never changes.
UPDATE = """
CREATE OR REPLACE FUNCTION palimpsest_observation_update() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF (NEW.id, NEW.scope_id, NEW.stated_by, NEW.written_by, NEW.created_at, NEW.recorded_at,
      NEW.derivation, NEW.derived_at, NEW.produced_by, NEW.chain, NEW.uses_inherited, NEW.confidence, NEW.cleaned,
      NEW.kind, NEW.half_life_days)
     IS DISTINCT FROM
     (OLD.id, OLD.scope_id, OLD.stated_by, OLD.written_by, OLD.created_at, OLD.recorded_at,
      OLD.derivation, OLD.derived_at, OLD.produced_by, OLD.chain, OLD.uses_inherited, OLD.confidence, OLD.cleaned,
      OLD.kind, OLD.half_life_days) THEN
    RAISE EXCEPTION 'scope, origin and identity of obs_% are immutable', OLD.id USING ERRCODE = 'PA001';
  END IF;
  IF NEW.external_id <> OLD.external_id AND NOT (NEW.status = 'erased' AND NEW.external_id = 'erased:' || OLD.id) THEN
    RAISE EXCEPTION 'the external id of obs_% is immutable', OLD.id USING ERRCODE = 'PA001';
  END IF;
  IF NEW.status = 'erased' AND OLD.status <> 'erased' THEN
    IF NEW.text IS NOT NULL OR NEW.content_hash || NEW.subject || NEW.predicate || NEW.object <> ''
       OR (NEW.text_key, NEW.subject_key, NEW.sp_key, NEW.spo_key) <> (0, 0, 0, 0)
       OR NOT EXISTS (SELECT 1 FROM observations_tombstone t
                      WHERE t.scope_id = OLD.scope_id AND t.observation_id = OLD.id) THEN
      RAISE EXCEPTION 'obs_% is erased whole and with a tombstone, or not at all', OLD.id USING ERRCODE = 'PA004';
    END IF;
    NEW.words := '';
    NEW.words_head := '';
  ELSIF (NEW.text, NEW.content_hash, NEW.subject, NEW.predicate, NEW.object,
         NEW.text_key, NEW.subject_key, NEW.sp_key, NEW.spo_key, NEW.words, NEW.words_head)
        IS DISTINCT FROM
        (OLD.text, OLD.content_hash, OLD.subject, OLD.predicate, OLD.object,
         OLD.text_key, OLD.subject_key, OLD.sp_key, OLD.spo_key, OLD.words, OLD.words_head) THEN
    RAISE EXCEPTION 'the text and key of obs_% are immutable: a change is a new row', OLD.id USING ERRCODE = 'PA001';
  END IF;
  IF (NEW.status, NEW.superseded_by_id, NEW.valid_from, NEW.valid_to)
     IS DISTINCT FROM (OLD.status, OLD.superseded_by_id, OLD.valid_from, OLD.valid_to) THEN
    IF NEW.version <> OLD.version + 1 THEN
      RAISE EXCEPTION 'obs_% moves from version % to %: each move raises it by one', OLD.id, OLD.version, NEW.version
        USING ERRCODE = 'PA002';
    END IF;
  ELSIF NEW.version <> OLD.version THEN
    RAISE EXCEPTION 'the version of obs_% changes only with its state', OLD.id USING ERRCODE = 'PA002';
  END IF;
  IF NEW.status <> OLD.status AND (OLD.status, NEW.status) NOT IN (
       ('active', 'superseded'), ('active', 'archived'), ('active', 'retracted'), ('active', 'quarantined'),
       ('active', 'erased'), ('superseded', 'active'), ('superseded', 'erased'), ('archived', 'active'),
       ('archived', 'erased'), ('retracted', 'erased'), ('quarantined', 'active'), ('quarantined', 'archived'),
       ('quarantined', 'retracted'), ('quarantined', 'erased')) THEN
    RAISE EXCEPTION 'obs_% cannot go from % to %', OLD.id, OLD.status, NEW.status USING ERRCODE = 'PA002';
  END IF;
  IF OLD.status = 'erased' THEN
    RAISE EXCEPTION 'obs_% is erased: nothing about it changes any more', OLD.id USING ERRCODE = 'PA002';
  END IF;
  RETURN NEW;
END $$;
"""


class Migration(migrations.Migration):
    """Forward on any data, which it rewrites once; backward drops only what this adds."""

    dependencies = [("observations", "0018_roles_by_scope")]

    operations = [
        migrations.RunSQL(LEXEMES, DROP_LEXEMES),
        migrations.RunSQL(WORDS, DROP_WORDS),
        migrations.RunSQL(COLUMNS, DROP_COLUMNS),
        migrations.RunSQL(INDEXES, DROP_INDEXES),
        migrations.RunSQL(INSERT, INSERT_BEFORE),
        migrations.RunSQL(UPDATE, _UPDATE.UPDATE),
    ]
