"""What a model gave stands until a person takes it back, and what was taken back stays so; calls cannot be emptied out.

Raising codes: PA001 (immutable), PA003 (append-only), PA005 (refused insert).
"""

from __future__ import annotations

from django.db import migrations

# As in 0007_engine_integrity, with the moves between the states; an erase empties whatever is there.
MOVES = """
CREATE OR REPLACE FUNCTION palimpsest_givenkey_parts() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND (NEW.id, NEW.scope_id, NEW.observation_id) IS DISTINCT FROM (OLD.id, OLD.scope_id, OLD.observation_id) THEN
    RAISE EXCEPTION 'a given key stays with its observation' USING ERRCODE = 'PA001';
  END IF;
  IF TG_OP = 'UPDATE' AND OLD.* IS DISTINCT FROM NEW.*
     AND (OLD.state, NEW.state) NOT IN (
       ('unusable', 'unusable'), ('unusable', 'none'), ('unusable', 'given'), ('given', 'withdrawn'))
     AND NOT (NEW.state = 'none' AND EXISTS (
       SELECT 1 FROM observations_observation o
       WHERE o.id = OLD.observation_id AND o.scope_id = OLD.scope_id AND o.text IS NULL)) THEN
    IF OLD.state = 'withdrawn' THEN
      RAISE EXCEPTION 'the key of obs_% was withdrawn by a person', OLD.observation_id USING ERRCODE = 'PA001';
    END IF;
    RAISE EXCEPTION 'what a model said about obs_% cannot go from % to %', OLD.observation_id, OLD.state, NEW.state
      USING ERRCODE = 'PA001';
  END IF;
  IF NEW.state = 'given' AND EXISTS (
       SELECT 1 FROM observations_observation o WHERE o.id = NEW.observation_id AND o.scope_id = NEW.scope_id
         AND (o.text IS NULL OR o.subject <> '' AND NEW.subject <> '' OR o.predicate <> '' AND NEW.predicate <> ''
              OR o.object <> '' AND NEW.object <> '')) THEN
    RAISE EXCEPTION 'obs_% has that part of its key from its writer', NEW.observation_id USING ERRCODE = 'PA005';
  END IF;
  RETURN NEW;
END $$;
"""

MOVES_BEFORE = """
CREATE OR REPLACE FUNCTION palimpsest_givenkey_parts() RETURNS trigger LANGUAGE plpgsql
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
"""

CALLS = """
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON observations_modelcall
  FOR EACH STATEMENT EXECUTE FUNCTION palimpsest_append_only();
"""

DROP_CALLS = "DROP TRIGGER no_truncate ON observations_modelcall"


class Migration(migrations.Migration):
    """Forward on any data; backward drops only what this adds."""

    dependencies = [("observations", "0007_engine_integrity")]

    operations = [
        migrations.RunSQL(MOVES, MOVES_BEFORE),
        migrations.RunSQL(CALLS, DROP_CALLS),
    ]
