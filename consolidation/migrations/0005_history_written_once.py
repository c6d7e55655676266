"""What PostgreSQL further refuses about operations: a forged beginning, a rewritten past, a claim without an application.

Raising codes: PA001 (immutable), PA004 (refused erase), PA005 (refused insert), PA006 (an applied operation is not whole).
"""

from __future__ import annotations

from django.db import migrations

BORN = """
CREATE FUNCTION palimpsest_operation_insert() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'an operation is born planned, needs_human or skipped, and undecided' USING ERRCODE = 'PA005';
END $$;
CREATE TRIGGER operation_insert BEFORE INSERT ON consolidation_operation
  FOR EACH ROW WHEN (NEW.status NOT IN ('planned', 'needs_human', 'skipped') OR NEW.decided_by <> ''
    OR NEW.approved_digest <> '' OR NEW.applied_at IS NOT NULL OR NEW.derived_id IS NOT NULL)
  EXECUTE FUNCTION palimpsest_operation_insert();
"""

DROP_BORN = """
DROP TRIGGER operation_insert ON consolidation_operation;
DROP FUNCTION palimpsest_operation_insert();
"""

# Undo restores what is recorded here, so it is recorded once and never changed (I9).
PRIORS = """
CREATE FUNCTION palimpsest_source_update() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF (NEW.id, NEW.scope_id, NEW.operation_id, NEW.observation_id, NEW.episode_id, NEW.position, NEW.planned_version)
     IS DISTINCT FROM
     (OLD.id, OLD.scope_id, OLD.operation_id, OLD.observation_id, OLD.episode_id, OLD.position, OLD.planned_version)
     OR (NEW.planned_hash <> OLD.planned_hash AND NEW.planned_hash <> '') THEN
    RAISE EXCEPTION 'what source % of an operation is, is immutable', OLD.id USING ERRCODE = 'PA001';
  END IF;
  IF OLD.prior_status <> ''
     AND ((NEW.prior_status, NEW.prior_superseded_by_id, NEW.prior_valid_from, NEW.prior_valid_to)
          IS DISTINCT FROM
          (OLD.prior_status, OLD.prior_superseded_by_id, OLD.prior_valid_from, OLD.prior_valid_to)
          OR NEW.applied_version NOT IN (OLD.applied_version, OLD.applied_version + 1)) THEN
    RAISE EXCEPTION 'how source % stood before its operation is recorded once', OLD.id USING ERRCODE = 'PA001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER source_update BEFORE UPDATE ON consolidation_operationsource
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION palimpsest_source_update();
"""

DROP_PRIORS = """
DROP TRIGGER source_update ON consolidation_operationsource;
DROP FUNCTION palimpsest_source_update();
"""

# A forged consumption would keep a source from every operation; a deleted one would let it be used up twice (I4).
CLAIMS = """
CREATE FUNCTION palimpsest_consumption_whole() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' OR (TG_OP = 'INSERT') <> EXISTS (
       SELECT 1 FROM consolidation_operation o JOIN consolidation_operationsource s ON s.scope_id = o.scope_id
         AND s.operation_id = o.id AND (s.observation_id = coalesce(NEW.observation_id, OLD.observation_id)
                                        OR s.episode_id = coalesce(NEW.episode_id, OLD.episode_id))
       WHERE o.id = coalesce(NEW.operation_id, OLD.operation_id) AND o.status = 'applied') THEN
    RAISE EXCEPTION 'a source is used up exactly while its operation is applied' USING ERRCODE = 'PA006';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER consumption_whole AFTER INSERT OR UPDATE OR DELETE ON consolidation_consumption
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION palimpsest_consumption_whole();
"""

DROP_CLAIMS = """
DROP TRIGGER consumption_whole ON consolidation_consumption;
DROP FUNCTION palimpsest_consumption_whole();
"""

# As in 0002_integrity, and it has the sources it was planned with: none slipped in after the approval.
WHOLE = """
CREATE FUNCTION palimpsest_operation_sources() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE n integer;
BEGIN
  SELECT count(*) INTO n FROM consolidation_operationsource s
  WHERE s.scope_id = NEW.scope_id AND s.operation_id = NEW.id;
  IF n <> NEW.n_sources THEN
    RAISE EXCEPTION '% was planned with % sources and has %', NEW.op_id, NEW.n_sources, n USING ERRCODE = 'PA006';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER operation_sources AFTER UPDATE OF status ON consolidation_operation
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.status IN ('approved', 'applied'))
  EXECUTE FUNCTION palimpsest_operation_sources();
"""

DROP_WHOLE = """
DROP TRIGGER operation_sources ON consolidation_operation;
DROP FUNCTION palimpsest_operation_sources();
"""

# The application may call the erasing function; what it may have erased is bound to what a person asked for.
ASKED = """
CREATE FUNCTION palimpsest_tombstone_asked() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF NEW.request NOT LIKE 'forget:%' AND NOT EXISTS (
       SELECT 1 FROM consolidation_operation o JOIN consolidation_operationsource s
         ON s.scope_id = o.scope_id AND s.operation_id = o.id
       WHERE o.scope_id = NEW.scope_id AND o.op_id = NEW.request AND o.kind = 'prune' AND o.status = 'applied'
         AND s.observation_id = NEW.observation_id)
     AND NOT EXISTS (  -- the shell of a row that was erased in the store it was exported from
       SELECT 1 FROM observations_observation WHERE scope_id = NEW.scope_id AND id = NEW.observation_id AND text = '') THEN
    RAISE EXCEPTION 'obs_% is erased only by an applied prune of it or a forget request', NEW.observation_id
      USING ERRCODE = 'PA004';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER tombstone_asked BEFORE INSERT ON observations_tombstone
  FOR EACH ROW WHEN (NEW.observation_id IS NOT NULL) EXECUTE FUNCTION palimpsest_tombstone_asked();
"""

DROP_ASKED = """
DROP TRIGGER tombstone_asked ON observations_tombstone;
DROP FUNCTION palimpsest_tombstone_asked();
"""


class Migration(migrations.Migration):
    """Forward on any data that fits; backward drops only what this adds."""

    dependencies = [("consolidation", "0004_permissions"), ("observations", "0005_journal_for_owner_only")]

    operations = [
        migrations.RunSQL(BORN, DROP_BORN),
        migrations.RunSQL(PRIORS, DROP_PRIORS),
        migrations.RunSQL(CLAIMS, DROP_CLAIMS),
        migrations.RunSQL(WHOLE, DROP_WHOLE),
        migrations.RunSQL(ASKED, DROP_ASKED),
        migrations.RunSQL(
            "REVOKE ALL ON FUNCTION palimpsest_tombstone_clears() FROM PUBLIC",
            "GRANT EXECUTE ON FUNCTION palimpsest_tombstone_clears() TO PUBLIC",
        ),
    ]
