"""The words that a row is found by are those of its text and of its key: many a text does not name what it is about.

Takes the place of the index of migration 0004, and is made like it: active rows only, each entry carries its scope. The
words are a function's, which says what it costs to take a text apart: PostgreSQL takes an expression for nearly free,
and on a table that nobody analysed took every text apart for every word of a query instead of looking it up.
"""

from __future__ import annotations

from django.db import migrations

FUNCTION = """
CREATE FUNCTION palimpsest_words(scope_id bigint, text text, subject varchar, predicate varchar, object varchar)
RETURNS tsvector LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 10000
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN to_tsvector('pg_catalog.english', text || ' ' || subject || ' ' || predicate || ' ' || object)
    || array_to_tsvector(ARRAY['@ ' || scope_id::text]);
END $$
"""
CREATE = """
CREATE INDEX observation_words_and_key_in_scope ON observations_observation
  USING gin (palimpsest_words(scope_id, text, subject, predicate, object)) WITH (fastupdate = off)
  WHERE status = 'active'
"""
CREATE_OLD = """
CREATE INDEX observation_words_in_scope ON observations_observation USING gin (
  (to_tsvector('english', text) || array_to_tsvector(ARRAY['@ ' || scope_id::text]))
) WITH (fastupdate = off) WHERE status = 'active'
"""


class Migration(migrations.Migration):
    """A function, and one index for another."""

    dependencies = [("observations", "0013_reading")]

    operations = [
        migrations.RunSQL(FUNCTION, "DROP FUNCTION palimpsest_words(bigint, text, varchar, varchar, varchar)"),
        migrations.RunSQL(CREATE, "DROP INDEX observation_words_and_key_in_scope"),
        migrations.RunSQL("DROP INDEX observation_words_in_scope", CREATE_OLD),
    ]
