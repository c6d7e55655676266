"""What PostgreSQL enforces about the review desk: reopening, edits, two people, and what is written once.

Raising codes as in 0002_integrity: PA001 (immutable), PA002 (illegal move), PA006 (not whole), PA007 (no event).
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from django.db import migrations

_EDGES: Final = import_module("consolidation.migrations.0002_integrity")
_KEPT: Final = import_module("consolidation.migrations.0010_names_and_lessons_of_decisions")
_GUARD_BEFORE: Final = import_module("consolidation.migrations.0011_object_of_the_right_claim")
_WHOLE_BEFORE: Final = import_module("consolidation.migrations.0015_lineage_of_repeats")

OBSERVATION, OPERATION = "observations_observation", "consolidation_operation"
COMMENT, DRILL = "consolidation_comment", "consolidation_drill"
BULK, BULK_ITEM = "consolidation_bulkdecision", "consolidation_bulkitem"
DEFERRAL, OVERDUE = "consolidation_deferral", "consolidation_overdue"
NEVER_DELETED: Final = (COMMENT, DRILL, BULK, BULK_ITEM, OVERDUE, "consolidation_planning")

# As in 0011; reopening takes a decision back, an edit takes a proposal's place, and what a second person said is part of
# the decision.
GUARD = """
CREATE OR REPLACE FUNCTION palimpsest_operation_update() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF (NEW.id, NEW.op_id, NEW.generation, NEW.input_key, NEW.scope_id, NEW.kind, NEW.approval, NEW.reason,
      NEW.skipped_reason, NEW.score, NEW.keeper_id, NEW.product, NEW.signals, NEW.n_sources, NEW.policy_hash, NEW.created_at, NEW.requested_by,
      NEW.edited_from_id, NEW.edited_by, NEW.risk, NEW.uncertainty)
     IS DISTINCT FROM
     (OLD.id, OLD.op_id, OLD.generation, OLD.input_key, OLD.scope_id, OLD.kind, OLD.approval, OLD.reason,
      OLD.skipped_reason, OLD.score, OLD.keeper_id, OLD.product, OLD.signals, OLD.n_sources, OLD.policy_hash, OLD.created_at, OLD.requested_by,
      OLD.edited_from_id, OLD.edited_by, OLD.risk, OLD.uncertainty) THEN
    RAISE EXCEPTION 'what % proposes is immutable: a change is a new operation', OLD.op_id USING ERRCODE = 'PA001';
  END IF;
  IF (NEW.text, NEW.claim_subject, NEW.claim_predicate, NEW.claim_object)
     IS DISTINCT FROM (OLD.text, OLD.claim_subject, OLD.claim_predicate, OLD.claim_object)
     -- its words may go, when one of its records was erased; nothing else may come
     AND NOT (NEW.text || NEW.claim_subject || NEW.claim_predicate || NEW.claim_object = ''
              AND palimpsest_operation_lost_a_record(OLD.id, OLD.scope_id, OLD.derived_id)) THEN
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
       ('planned', 'edited'), ('needs_human', 'edited'), ('skipped', 'edited'), ('failed', 'edited'),
       -- reopened: a decision that changed no memory is taken back
       ('approved', 'planned'), ('approved', 'needs_human'), ('approved', 'skipped'),
       ('rejected', 'planned'), ('rejected', 'needs_human'), ('rejected', 'skipped'),
       ('distinct', 'planned'), ('distinct', 'needs_human'), ('distinct', 'skipped'),
       ('applied', 'undone')) THEN
    RAISE EXCEPTION '% cannot go from % to %', OLD.op_id, OLD.status, NEW.status USING ERRCODE = 'PA002';
  END IF;
  IF NEW.status IN ('planned', 'needs_human', 'skipped') AND NEW.status <> OLD.status
     AND (NEW.decided_by || NEW.approved_digest || NEW.seconded_by || NEW.applied_by <> '' OR NEW.decided_at IS NOT NULL
          OR NEW.needs_second) THEN
    RAISE EXCEPTION '% is reopened undecided', OLD.op_id USING ERRCODE = 'PA002';
  END IF;
  IF OLD.status IN ('applied', 'undone', 'rejected', 'distinct', 'stale', 'edited')
     AND NEW.status NOT IN ('planned', 'needs_human', 'skipped')
     AND ((NEW.decision, NEW.decided_by, NEW.decided_at, NEW.approved_digest, NEW.applied_at,
           NEW.applied_by, NEW.applied_digest, NEW.derived_id, NEW.needs_second, NEW.seconded_by, NEW.seconded_at)
          IS DISTINCT FROM
          (OLD.decision, OLD.decided_by, OLD.decided_at, OLD.approved_digest, OLD.applied_at,
           OLD.applied_by, OLD.applied_digest, OLD.derived_id, OLD.needs_second, OLD.seconded_by, OLD.seconded_at)
          -- its words alone may go, when one of its records was erased
          OR ((NEW.decision_text, NEW.decision_object) IS DISTINCT FROM (OLD.decision_text, OLD.decision_object) AND NOT (
                NEW.decision_text || NEW.decision_object = ''
                AND palimpsest_operation_lost_a_record(OLD.id, OLD.scope_id, OLD.derived_id)))) THEN
    RAISE EXCEPTION 'the decision on % is history', OLD.op_id USING ERRCODE = 'PA001';
  END IF;
  RETURN NEW;
END $$;
"""

# As in 0015; a reopened operation has its event, an edited one the edit that took its place.
WHOLE = """
CREATE OR REPLACE FUNCTION palimpsest_operation_whole() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE op consolidation_operation%ROWTYPE; stamp text; n_named integer; n_strange integer; n_consumed integer; n_moved integer;
BEGIN
  SELECT * INTO op FROM consolidation_operation WHERE id = NEW.id;
  stamp := op.op_id || '#' || op.generation;
  IF op.status IN ('approved', 'rejected', 'distinct', 'applied', 'undone', 'stale', 'failed', 'edited') AND NOT EXISTS (
       SELECT 1 FROM observations_event e
       WHERE e.scope_id = op.scope_id AND e.subject = op.op_id AND e.generation = op.generation AND e.action = op.status) THEN
    RAISE EXCEPTION '% became % without its event: no audit, no action', op.op_id, op.status USING ERRCODE = 'PA007';
  END IF;
  IF TG_OP = 'UPDATE' AND op.status IN ('planned', 'needs_human', 'skipped') AND NOT EXISTS (
       SELECT 1 FROM observations_event e
       WHERE e.scope_id = op.scope_id AND e.subject = op.op_id AND e.generation = op.generation AND e.action = 'reopened') THEN
    RAISE EXCEPTION '% was reopened without its event: no audit, no action', op.op_id USING ERRCODE = 'PA007';
  END IF;
  IF op.status = 'edited' AND NOT EXISTS (
       SELECT 1 FROM consolidation_operation e WHERE e.scope_id = op.scope_id AND e.edited_from_id = op.id) THEN
    RAISE EXCEPTION '% is edited and no edit took its place', op.op_id USING ERRCODE = 'PA006';
  END IF;
  SELECT count(*) INTO n_consumed FROM consolidation_consumption c WHERE c.scope_id = op.scope_id AND c.operation_id = op.id;
  IF op.status <> 'applied' THEN
    IF n_consumed > 0 THEN
      RAISE EXCEPTION '% is % and still consumes sources', op.op_id, op.status USING ERRCODE = 'PA006';
    END IF;
    RETURN NULL;
  END IF;
  SELECT count(*) INTO n_moved
  FROM consolidation_operationsource s
  LEFT JOIN observations_observation o ON o.id = s.observation_id AND o.scope_id = s.scope_id
  LEFT JOIN observations_episode e ON e.id = s.episode_id AND e.scope_id = s.scope_id
  WHERE s.scope_id = op.scope_id AND s.operation_id = op.id AND coalesce(o.status, e.status) <> s.prior_status;
  IF n_moved <> n_consumed OR (n_moved = 0 AND op.kind NOT IN ('prune', 'supersede', 'promote', 'alias')) THEN
    RAISE EXCEPTION '% moved % sources and consumed %', op.op_id, n_moved, n_consumed USING ERRCODE = 'PA006';
  END IF;
  IF op.kind IN ('merge', 'promote', 'compact') THEN
    SELECT count(*) INTO n_named FROM consolidation_operationsource s
    WHERE s.scope_id = op.scope_id AND s.operation_id = op.id AND (
      EXISTS (SELECT 1 FROM observations_lineage l WHERE l.scope_id = op.scope_id AND l.derived_id = op.derived_id
              AND (l.source_observation_id = s.observation_id OR l.source_episode_id = s.episode_id))
      OR (op.kind = 'merge' AND palimpsest_lineage_carries(op.scope_id, op.derived_id, s.observation_id)));
    SELECT count(*) INTO n_strange FROM (
      SELECT l.source_observation_id, l.source_episode_id FROM observations_lineage l
      WHERE l.scope_id = op.scope_id AND l.derived_id = op.derived_id AND l.operation = stamp
      EXCEPT (
        SELECT s.observation_id, s.episode_id FROM consolidation_operationsource s
        WHERE s.scope_id = op.scope_id AND s.operation_id = op.id
        UNION ALL
        SELECT l.source_observation_id, l.source_episode_id FROM consolidation_operationsource s
        JOIN observations_lineage l ON l.scope_id = op.scope_id AND l.derived_id = s.observation_id
        WHERE s.scope_id = op.scope_id AND s.operation_id = op.id AND op.kind = 'merge' AND NOT EXISTS (
          SELECT 1 FROM observations_lineage d WHERE d.scope_id = op.scope_id AND d.derived_id = op.derived_id
          AND d.source_observation_id = s.observation_id))
      UNION ALL
      SELECT l.source_observation_id, l.source_episode_id FROM observations_lineage l
      WHERE l.scope_id = op.scope_id AND l.derived_id = op.derived_id AND l.operation <> stamp
    ) strange;
    IF op.derived_id IS NULL OR n_named <> op.n_sources OR n_strange > 0 THEN
      RAISE EXCEPTION '% has % sources, % of them in its lineage, and % strange edges', op.op_id, op.n_sources, n_named, n_strange
        USING ERRCODE = 'PA006';
    END IF;
  END IF;
  IF op.kind IN ('merge', 'compact') AND n_moved <> op.n_sources THEN
    RAISE EXCEPTION '% moved % of % sources', op.op_id, n_moved, op.n_sources USING ERRCODE = 'PA006';
  END IF;
  IF op.kind IN ('promote', 'alias') AND n_moved > 0 THEN  -- R105: what it rests on stays as it is
    RAISE EXCEPTION '% of % moved % sources', op.kind, op.op_id, n_moved USING ERRCODE = 'PA006';
  END IF;
  IF op.kind = 'alias' AND NOT EXISTS (
       SELECT 1 FROM consolidation_alias a WHERE a.scope_id = op.scope_id AND a.removed_at IS NULL
         AND a.operation = stamp) THEN
    RAISE EXCEPTION '% is applied without its alias', op.op_id USING ERRCODE = 'PA006';
  END IF;
  RETURN NULL;
END $$;
"""

# A comment's words may leave and nothing else changes; a drill is answered once; an item of a bulk decision ends once.
ONCE = """
CREATE FUNCTION palimpsest_comment_update() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF to_jsonb(NEW) - 'text' <> to_jsonb(OLD) - 'text' OR NEW.text <> '' THEN
    RAISE EXCEPTION 'a comment is written once' USING ERRCODE = 'PA001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER written_once BEFORE UPDATE ON consolidation_comment
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION palimpsest_comment_update();
CREATE FUNCTION palimpsest_drill_update() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF OLD.answer <> 'waiting'
     OR to_jsonb(NEW) - '{answer,answered_at}'::text[] <> to_jsonb(OLD) - '{answer,answered_at}'::text[] THEN
    RAISE EXCEPTION 'a drill is answered once' USING ERRCODE = 'PA001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER answered_once BEFORE UPDATE ON consolidation_drill
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION palimpsest_drill_update();
CREATE FUNCTION palimpsest_bulkitem_update() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF OLD.outcome <> 'waiting'
     OR to_jsonb(NEW) - '{outcome,sentence}'::text[] <> to_jsonb(OLD) - '{outcome,sentence}'::text[] THEN
    RAISE EXCEPTION 'an item of a bulk decision ends once' USING ERRCODE = 'PA001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER ended_once BEFORE UPDATE ON consolidation_bulkitem
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION palimpsest_bulkitem_update();
"""
DROP_ONCE = """
DROP TRIGGER ended_once ON consolidation_bulkitem;
DROP FUNCTION palimpsest_bulkitem_update();
DROP TRIGGER answered_once ON consolidation_drill;
DROP FUNCTION palimpsest_drill_update();
DROP TRIGGER written_once ON consolidation_comment;
DROP FUNCTION palimpsest_comment_update();
"""

# The words of comments, and of the reason of a bulk decision that is not finished, leave with the records they are about.
CLEARS = """
CREATE FUNCTION palimpsest_tombstone_clears_reviewing() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  WITH about (id) AS (
    SELECT operation_id FROM consolidation_operationsource WHERE scope_id = NEW.scope_id
      AND (observation_id = NEW.observation_id OR episode_id = NEW.episode_id)
    UNION SELECT id FROM consolidation_operation WHERE scope_id = NEW.scope_id AND derived_id = NEW.observation_id
  ), silenced AS (
    UPDATE consolidation_comment c SET text = '' FROM about
    WHERE c.scope_id = NEW.scope_id AND c.operation_id = about.id AND c.text <> ''
  )
  UPDATE consolidation_bulkdecision b SET reason = '' FROM consolidation_bulkitem i, about
  WHERE i.scope_id = NEW.scope_id AND i.operation_id = about.id AND b.id = i.bulk_id AND b.reason <> '';
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION palimpsest_tombstone_clears_reviewing() FROM PUBLIC;
CREATE TRIGGER clears_reviewing AFTER INSERT ON observations_tombstone
  FOR EACH ROW EXECUTE FUNCTION palimpsest_tombstone_clears_reviewing();
"""
DROP_CLEARS = """
DROP TRIGGER clears_reviewing ON observations_tombstone;
DROP FUNCTION palimpsest_tombstone_clears_reviewing();
"""

KEPT = "".join(
    f"CREATE TRIGGER never_deleted BEFORE DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION palimpsest_append_only();\n"
    for table in NEVER_DELETED
)
DROP_KEPT = "".join(f"DROP TRIGGER never_deleted ON {table};\n" for table in NEVER_DELETED)

# What waited before it had a risk is given its kind's; the guard lets what a proposal says stand, so it steps aside once.
RISKS = """
ALTER TABLE consolidation_operation DISABLE TRIGGER operation_update;
UPDATE consolidation_operation SET risk = CASE WHEN kind IN ('prune', 'forget') THEN 3
  WHEN kind IN ('merge', 'promote', 'archive') THEN 1 ELSE 2 END,
  uncertainty = coalesce(round((1 - least(1, greatest(0, score)))::numeric, 6), 0.5);
ALTER TABLE consolidation_operation ENABLE TRIGGER operation_update;
"""


class Migration(migrations.Migration):
    """Forward on any data; backward drops only what this adds."""

    dependencies = [("consolidation", "0020_review_desk")]

    operations = [
        _EDGES.edge(OPERATION, "edited_from_id", OPERATION),
        *(_EDGES.edge(table, "operation_id", OPERATION) for table in (COMMENT, DEFERRAL, BULK_ITEM, OVERDUE)),
        _EDGES.edge(DRILL, "low_id", OBSERVATION),
        _EDGES.edge(DRILL, "high_id", OBSERVATION),
        migrations.RunSQL(RISKS, migrations.RunSQL.noop),
        migrations.RunSQL(GUARD, _GUARD_BEFORE.GUARD),
        migrations.RunSQL(WHOLE, _WHOLE_BEFORE.WHOLE),
        migrations.RunSQL(ONCE, DROP_ONCE),
        migrations.RunSQL(CLEARS, DROP_CLEARS),
        migrations.RunSQL(KEPT, DROP_KEPT),
        *(_KEPT.no_truncate(table) for table in NEVER_DELETED),
    ]
