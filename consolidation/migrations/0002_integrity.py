"""What PostgreSQL enforces about operations: scope on every edge, legal moves only, no applied operation without its lineage.

Raising codes: PA001 (immutable), PA002 (illegal move), PA003 (append-only), PA006 (an applied operation is not whole),
PA007 (a change of state without its event).
"""

from __future__ import annotations

from django.db import migrations

OBSERVATION = "observations_observation"
EPISODE = "observations_episode"
OPERATION = "consolidation_operation"

EDGES = [
    (OPERATION, "keeper_id", OBSERVATION),
    (OPERATION, "derived_id", OBSERVATION),
    ("consolidation_operationsource", "operation_id", OPERATION),
    ("consolidation_operationsource", "observation_id", OBSERVATION),
    ("consolidation_operationsource", "episode_id", EPISODE),
    ("consolidation_planitem", "operation_id", OPERATION),
    ("consolidation_consumption", "operation_id", OPERATION),
    ("consolidation_consumption", "observation_id", OBSERVATION),
    ("consolidation_consumption", "episode_id", EPISODE),
    ("consolidation_verdict", "low_id", OBSERVATION),
    ("consolidation_verdict", "high_id", OBSERVATION),
]


def edge(table: str, column: str, target: str) -> migrations.RunSQL:
    """One composite foreign key, as in the store's own migration."""
    name = f"{table.split('_', 1)[1]}_{column.removesuffix('_id')}_in_scope"
    return migrations.RunSQL(
        f"ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY ({column}, scope_id) REFERENCES {target} (id, scope_id)",
        f"ALTER TABLE {table} DROP CONSTRAINT {name}",
    )


GUARD = """
CREATE FUNCTION palimpsest_operation_update() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF (NEW.id, NEW.op_id, NEW.generation, NEW.input_key, NEW.scope_id, NEW.kind, NEW.approval, NEW.reason,
      NEW.skipped_reason, NEW.score, NEW.keeper_id, NEW.product, NEW.signals, NEW.n_sources, NEW.policy_hash, NEW.created_at)
     IS DISTINCT FROM
     (OLD.id, OLD.op_id, OLD.generation, OLD.input_key, OLD.scope_id, OLD.kind, OLD.approval, OLD.reason,
      OLD.skipped_reason, OLD.score, OLD.keeper_id, OLD.product, OLD.signals, OLD.n_sources, OLD.policy_hash, OLD.created_at) THEN
    RAISE EXCEPTION 'what % proposes is immutable: a change is a new operation', OLD.op_id USING ERRCODE = 'PA001';
  END IF;
  IF NEW.status <> OLD.status AND (OLD.status, NEW.status) NOT IN (
       ('planned', 'approved'), ('planned', 'rejected'), ('planned', 'distinct'), ('planned', 'applied'),
       ('planned', 'stale'), ('planned', 'failed'),
       ('needs_human', 'approved'), ('needs_human', 'rejected'), ('needs_human', 'distinct'),
       ('needs_human', 'stale'), ('needs_human', 'failed'),
       ('skipped', 'approved'), ('skipped', 'rejected'), ('skipped', 'distinct'), ('skipped', 'stale'),
       ('approved', 'applied'), ('approved', 'rejected'), ('approved', 'stale'), ('approved', 'failed'),
       ('failed', 'approved'), ('failed', 'rejected'), ('failed', 'stale'),
       ('applied', 'undone')) THEN
    RAISE EXCEPTION '% cannot go from % to %', OLD.op_id, OLD.status, NEW.status USING ERRCODE = 'PA002';
  END IF;
  IF OLD.status IN ('applied', 'undone', 'rejected', 'distinct', 'stale')
     AND ((NEW.decision, NEW.decided_by, NEW.decided_at, NEW.approved_digest, NEW.applied_at,
           NEW.applied_by, NEW.applied_digest, NEW.derived_id)
          IS DISTINCT FROM
          (OLD.decision, OLD.decided_by, OLD.decided_at, OLD.approved_digest, OLD.applied_at,
           OLD.applied_by, OLD.applied_digest, OLD.derived_id)
          -- its words alone may go, when one of its records was erased
          OR (NEW.decision_text <> OLD.decision_text AND NOT (NEW.decision_text = '' AND EXISTS (
                SELECT 1 FROM observations_tombstone t WHERE t.scope_id = OLD.scope_id AND (
                  t.observation_id = OLD.derived_id OR t.observation_id IN (
                    SELECT s.observation_id FROM consolidation_operationsource s
                    WHERE s.scope_id = OLD.scope_id AND s.operation_id = OLD.id)))))) THEN
    RAISE EXCEPTION 'the decision on % is history', OLD.op_id USING ERRCODE = 'PA001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER operation_update BEFORE UPDATE ON consolidation_operation
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION palimpsest_operation_update();
"""

DROP_GUARD = """
DROP TRIGGER operation_update ON consolidation_operation;
DROP FUNCTION palimpsest_operation_update();
"""

# An erase is known by its tombstone, so no way of erasing can forget what reviewers wrote about the record (the register).
CLEAR = """
CREATE FUNCTION palimpsest_tombstone_clears() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  UPDATE consolidation_operation SET decision_text = '', decision_reason = ''
  WHERE scope_id = NEW.scope_id AND (decision_text <> '' OR decision_reason <> '') AND (
    derived_id = NEW.observation_id OR id IN (
      SELECT operation_id FROM consolidation_operationsource
      WHERE scope_id = NEW.scope_id AND observation_id = NEW.observation_id));
  UPDATE consolidation_operationsource SET planned_hash = ''
  WHERE scope_id = NEW.scope_id AND observation_id = NEW.observation_id;
  RETURN NULL;
END $$;
CREATE TRIGGER tombstone_clears AFTER INSERT ON observations_tombstone
  FOR EACH ROW WHEN (NEW.observation_id IS NOT NULL) EXECUTE FUNCTION palimpsest_tombstone_clears();
"""

DROP_CLEAR = """
DROP TRIGGER tombstone_clears ON observations_tombstone;
DROP FUNCTION palimpsest_tombstone_clears();
"""

# Deferred to COMMIT: it reads the rows as they will stand. Not a guard against races (row locks are); it catches a half operation.
WHOLE = """
CREATE FUNCTION palimpsest_operation_whole() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE op consolidation_operation%ROWTYPE; n_lineage integer; n_consumed integer; n_moved integer;
BEGIN
  SELECT * INTO op FROM consolidation_operation WHERE id = NEW.id;
  IF op.status IN ('approved', 'rejected', 'distinct', 'applied', 'undone', 'stale', 'failed') AND NOT EXISTS (
       SELECT 1 FROM observations_event e
       WHERE e.scope_id = op.scope_id AND e.subject = op.op_id AND e.generation = op.generation AND e.action = op.status) THEN
    RAISE EXCEPTION '% became % without its event: no audit, no action', op.op_id, op.status USING ERRCODE = 'PA007';
  END IF;
  SELECT count(*) INTO n_consumed FROM consolidation_consumption c WHERE c.scope_id = op.scope_id AND c.operation_id = op.id;
  IF op.status <> 'applied' THEN
    IF n_consumed > 0 THEN
      RAISE EXCEPTION '% is % and still consumes sources', op.op_id, op.status USING ERRCODE = 'PA006';
    END IF;
    RETURN NULL;
  END IF;
  SELECT count(*) INTO n_moved
  FROM consolidation_operationsource s JOIN observations_observation o ON o.id = s.observation_id AND o.scope_id = s.scope_id
  WHERE s.scope_id = op.scope_id AND s.operation_id = op.id AND o.status <> s.prior_status;
  IF n_moved <> n_consumed OR (op.kind <> 'prune' AND n_moved = 0 AND op.kind <> 'supersede') THEN
    RAISE EXCEPTION '% moved % sources and consumed %', op.op_id, n_moved, n_consumed USING ERRCODE = 'PA006';
  END IF;
  IF op.kind IN ('merge', 'promote', 'compact') THEN
    SELECT count(*) INTO n_lineage FROM observations_lineage l
      WHERE l.scope_id = op.scope_id AND l.derived_id = op.derived_id AND l.operation = op.op_id || '#' || op.generation;
    IF op.derived_id IS NULL OR n_lineage <> op.n_sources THEN
      RAISE EXCEPTION '% has % sources and % lineage rows', op.op_id, op.n_sources, n_lineage USING ERRCODE = 'PA006';
    END IF;
  END IF;
  IF op.kind = 'merge' AND n_moved <> op.n_sources THEN
    RAISE EXCEPTION '% moved % of % sources', op.op_id, n_moved, op.n_sources USING ERRCODE = 'PA006';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER operation_whole AFTER INSERT OR UPDATE OF status ON consolidation_operation
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION palimpsest_operation_whole();
"""

DROP_WHOLE = """
DROP TRIGGER operation_whole ON consolidation_operation;
DROP FUNCTION palimpsest_operation_whole();
"""

REFUSED = {
    OPERATION: "DELETE",
    "consolidation_operationsource": "DELETE",
    "consolidation_plan": "DELETE",
    "consolidation_planitem": "DELETE",
    "consolidation_verdict": "UPDATE OR DELETE",
}


def append_only(table: str, operations: str) -> migrations.RunSQL:
    """Refuses the listed statements, and TRUNCATE as a whole; the function is the store's."""
    return migrations.RunSQL(
        f"""
        CREATE TRIGGER append_only BEFORE {operations} ON {table}
          FOR EACH ROW EXECUTE FUNCTION palimpsest_append_only();
        CREATE TRIGGER no_truncate BEFORE TRUNCATE ON {table}
          FOR EACH STATEMENT EXECUTE FUNCTION palimpsest_append_only();
        """,
        f"DROP TRIGGER append_only ON {table}; DROP TRIGGER no_truncate ON {table};",
    )


class Migration(migrations.Migration):
    """Forward on any data that fits; backward drops only what this adds."""

    dependencies = [("consolidation", "0001_initial"), ("observations", "0002_integrity")]

    operations = [
        *(edge(*parts) for parts in EDGES),
        migrations.RunSQL(GUARD, DROP_GUARD),
        migrations.RunSQL(CLEAR, DROP_CLEAR),
        migrations.RunSQL(WHOLE, DROP_WHOLE),
        *(append_only(*item) for item in REFUSED.items()),
    ]
