"""What PostgreSQL enforces about kinds, given keys and episodes: as 0002_integrity, for what the engine adds.

Raising codes: PA001 (immutable), PA003 (append-only), PA005 (refused insert).
"""

from __future__ import annotations

from django.db import migrations

GIVEN_KEY = """
ALTER TABLE observations_givenkey ADD CONSTRAINT givenkey_observation_in_scope
  FOREIGN KEY (observation_id, scope_id) REFERENCES observations_observation (id, scope_id);
ALTER TABLE observations_transition ADD CONSTRAINT transition_episode_in_scope
  FOREIGN KEY (episode_id, scope_id) REFERENCES observations_episode (id, scope_id);

-- A model fills in what a writer left out, and nothing else (B: never overwrites a key).
CREATE FUNCTION palimpsest_givenkey_parts() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND (NEW.id, NEW.scope_id, NEW.observation_id) IS DISTINCT FROM (OLD.id, OLD.scope_id, OLD.observation_id) THEN
    RAISE EXCEPTION 'a given key stays with its observation' USING ERRCODE = 'PA001';
  END IF;
  IF TG_OP = 'UPDATE' AND OLD.state = 'withdrawn' AND NEW.state = 'given' THEN
    RAISE EXCEPTION 'the key of obs_% was withdrawn by a person', OLD.observation_id USING ERRCODE = 'PA001';
  END IF;
  IF NEW.state = 'given' AND EXISTS (
       SELECT 1 FROM observations_observation o WHERE o.id = NEW.observation_id AND o.scope_id = NEW.scope_id
         AND (o.text IS NULL OR o.subject <> '' AND NEW.subject <> '' OR o.predicate <> '' AND NEW.predicate <> ''
              OR o.object <> '' AND NEW.object <> '')) THEN
    RAISE EXCEPTION 'obs_% has that part of its key from its writer', NEW.observation_id USING ERRCODE = 'PA005';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER givenkey_parts BEFORE INSERT OR UPDATE ON observations_givenkey
  FOR EACH ROW EXECUTE FUNCTION palimpsest_givenkey_parts();
CREATE TRIGGER append_only BEFORE DELETE ON observations_givenkey
  FOR EACH ROW EXECUTE FUNCTION palimpsest_append_only();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON observations_givenkey
  FOR EACH STATEMENT EXECUTE FUNCTION palimpsest_append_only();
CREATE INDEX given_key_by_sp ON observations_givenkey (scope_id, sp_key) WHERE sp_key <> 0;  -- live values of a key
"""

DROP_GIVEN_KEY = """
DROP INDEX given_key_by_sp;
DROP TRIGGER no_truncate ON observations_givenkey;
DROP TRIGGER append_only ON observations_givenkey;
DROP TRIGGER givenkey_parts ON observations_givenkey;
DROP FUNCTION palimpsest_givenkey_parts();
ALTER TABLE observations_transition DROP CONSTRAINT transition_episode_in_scope;
ALTER TABLE observations_givenkey DROP CONSTRAINT givenkey_observation_in_scope;
"""

# Calls of models are a record of what was spent: written once.
CALLS = """
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON observations_modelcall
  FOR EACH ROW EXECUTE FUNCTION palimpsest_append_only();
"""

DROP_CALLS = "DROP TRIGGER append_only ON observations_modelcall"

# As the journal of observations: written by the database itself, as the owner (I7).
EPISODE_JOURNAL = """
CREATE FUNCTION palimpsest_episode_journal() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  INSERT INTO observations_transition (scope_id, episode_id, version, from_status, to_status, at, cause)
  SELECT n.scope_id, n.id, n.version, o.status, n.status, clock_timestamp(),
         left(coalesce(current_setting('palimpsest.cause', true), ''), 120)
  FROM after_rows n JOIN before_rows o ON o.id = n.id WHERE n.version <> o.version;
  UPDATE observations_embedding e SET active = (n.status = 'active')
  FROM after_rows n JOIN before_rows o ON o.id = n.id
  WHERE n.status <> o.status AND e.scope_id = n.scope_id AND e.episode_id = n.id;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION palimpsest_episode_journal() FROM PUBLIC;
CREATE TRIGGER episode_journal AFTER UPDATE ON observations_episode
  REFERENCING OLD TABLE AS before_rows NEW TABLE AS after_rows
  FOR EACH STATEMENT EXECUTE FUNCTION palimpsest_episode_journal();
"""

DROP_EPISODE_JOURNAL = """
DROP TRIGGER episode_journal ON observations_episode;
DROP FUNCTION palimpsest_episode_journal();
"""

# The functions of 0002_integrity, with the kind and half-life of a row among what never changes, and its given key among
# what an erase empties.
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
  ELSIF (NEW.text, NEW.content_hash, NEW.subject, NEW.predicate, NEW.object,
         NEW.text_key, NEW.subject_key, NEW.sp_key, NEW.spo_key)
        IS DISTINCT FROM
        (OLD.text, OLD.content_hash, OLD.subject, OLD.predicate, OLD.object,
         OLD.text_key, OLD.subject_key, OLD.sp_key, OLD.spo_key) THEN
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

UPDATE_BEFORE = """
CREATE OR REPLACE FUNCTION palimpsest_observation_update() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF (NEW.id, NEW.scope_id, NEW.stated_by, NEW.written_by, NEW.created_at, NEW.recorded_at,
      NEW.derivation, NEW.derived_at, NEW.produced_by, NEW.chain, NEW.uses_inherited, NEW.confidence, NEW.cleaned)
     IS DISTINCT FROM
     (OLD.id, OLD.scope_id, OLD.stated_by, OLD.written_by, OLD.created_at, OLD.recorded_at,
      OLD.derivation, OLD.derived_at, OLD.produced_by, OLD.chain, OLD.uses_inherited, OLD.confidence, OLD.cleaned) THEN
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
  ELSIF (NEW.text, NEW.content_hash, NEW.subject, NEW.predicate, NEW.object,
         NEW.text_key, NEW.subject_key, NEW.sp_key, NEW.spo_key)
        IS DISTINCT FROM
        (OLD.text, OLD.content_hash, OLD.subject, OLD.predicate, OLD.object,
         OLD.text_key, OLD.subject_key, OLD.sp_key, OLD.spo_key) THEN
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

ERASE = """
CREATE OR REPLACE FUNCTION palimpsest_erase_observations(p_scope bigint, p_ids bigint[], p_by text, p_reason text, p_request text)
RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE n integer;
BEGIN
  IF p_by = '' OR p_reason = '' OR p_request = '' THEN
    RAISE EXCEPTION 'an erase names who, why and by which request' USING ERRCODE = 'PA004';
  END IF;
  PERFORM 1 FROM observations_observation WHERE scope_id = p_scope AND id = ANY (p_ids) ORDER BY id FOR UPDATE;
  IF p_request NOT LIKE 'forget:%' AND EXISTS (
       SELECT 1 FROM observations_observation WHERE scope_id = p_scope AND id = ANY (p_ids) AND stated_by = 'user') THEN
    RAISE EXCEPTION 'what a user said is erased only by a forget request' USING ERRCODE = 'PA004';  -- I12, R47
  END IF;
  INSERT INTO observations_tombstone (scope_id, observation_id, erased_at, erased_by, reason, request, fingerprint)
  SELECT scope_id, id, clock_timestamp(), p_by, p_reason, p_request, '' FROM observations_observation
  WHERE scope_id = p_scope AND id = ANY (p_ids) AND status <> 'erased';
  UPDATE observations_observation
  SET status = 'erased', text = NULL, content_hash = '', subject = '', predicate = '', object = '',
      text_key = 0, subject_key = 0, sp_key = 0, spo_key = 0, version = version + 1,
      -- an id made of the content is a hash that a short text can be guessed from
      external_id = CASE WHEN external_id ~ '^obs:[0-9a-f]{32}$' THEN 'erased:' || id ELSE external_id END
  WHERE scope_id = p_scope AND id = ANY (p_ids) AND status <> 'erased';
  GET DIAGNOSTICS n = ROW_COUNT;
  UPDATE observations_evidence SET quote = NULL, quote_start = NULL
  WHERE scope_id = p_scope AND observation_id = ANY (p_ids) AND quote IS NOT NULL;
  UPDATE observations_embedding SET vector = NULL, bands = NULL
  WHERE scope_id = p_scope AND observation_id = ANY (p_ids);
  UPDATE observations_givenkey
  SET state = 'none', subject = '', predicate = '', object = '', subject_key = 0, sp_key = 0, spo_key = 0,
      quote_start = NULL, quote_end = NULL
  WHERE scope_id = p_scope AND observation_id = ANY (p_ids);
  RETURN n;
END $$;
"""

ERASE_BEFORE = """
CREATE OR REPLACE FUNCTION palimpsest_erase_observations(p_scope bigint, p_ids bigint[], p_by text, p_reason text, p_request text)
RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE n integer;
BEGIN
  IF p_by = '' OR p_reason = '' OR p_request = '' THEN
    RAISE EXCEPTION 'an erase names who, why and by which request' USING ERRCODE = 'PA004';
  END IF;
  PERFORM 1 FROM observations_observation WHERE scope_id = p_scope AND id = ANY (p_ids) ORDER BY id FOR UPDATE;
  IF p_request NOT LIKE 'forget:%' AND EXISTS (
       SELECT 1 FROM observations_observation WHERE scope_id = p_scope AND id = ANY (p_ids) AND stated_by = 'user') THEN
    RAISE EXCEPTION 'what a user said is erased only by a forget request' USING ERRCODE = 'PA004';  -- I12, R47
  END IF;
  INSERT INTO observations_tombstone (scope_id, observation_id, erased_at, erased_by, reason, request, fingerprint)
  SELECT scope_id, id, clock_timestamp(), p_by, p_reason, p_request, '' FROM observations_observation
  WHERE scope_id = p_scope AND id = ANY (p_ids) AND status <> 'erased';
  UPDATE observations_observation
  SET status = 'erased', text = NULL, content_hash = '', subject = '', predicate = '', object = '',
      text_key = 0, subject_key = 0, sp_key = 0, spo_key = 0, version = version + 1,
      -- an id made of the content is a hash that a short text can be guessed from
      external_id = CASE WHEN external_id ~ '^obs:[0-9a-f]{32}$' THEN 'erased:' || id ELSE external_id END
  WHERE scope_id = p_scope AND id = ANY (p_ids) AND status <> 'erased';
  GET DIAGNOSTICS n = ROW_COUNT;
  UPDATE observations_evidence SET quote = NULL, quote_start = NULL
  WHERE scope_id = p_scope AND observation_id = ANY (p_ids) AND quote IS NOT NULL;
  UPDATE observations_embedding SET vector = NULL, bands = NULL
  WHERE scope_id = p_scope AND observation_id = ANY (p_ids);
  RETURN n;
END $$;
"""

# What was there before kinds were: plain facts, which fade as such.
HALF_LIVES = """
UPDATE observations_observation SET half_life_days = 180 WHERE half_life_days IS NULL AND kind = 'fact';
"""


class Migration(migrations.Migration):
    """Forward on any data that fits; backward drops only what this adds."""

    dependencies = [("observations", "0006_engine")]

    operations = [
        migrations.RunSQL(HALF_LIVES, migrations.RunSQL.noop),
        migrations.RunSQL(GIVEN_KEY, DROP_GIVEN_KEY),
        migrations.RunSQL(CALLS, DROP_CALLS),
        migrations.RunSQL(EPISODE_JOURNAL, DROP_EPISODE_JOURNAL),
        migrations.RunSQL(UPDATE, UPDATE_BEFORE),
        migrations.RunSQL(ERASE, ERASE_BEFORE),
    ]
