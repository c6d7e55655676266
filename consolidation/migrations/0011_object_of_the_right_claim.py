"""The object of a right claim that a reviewer writes: kept, guarded and emptied like the claim itself.

Raising codes: PA001 (immutable), PA002 (no such transition).
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from django.db import migrations, models

_BEFORE: Final = import_module("consolidation.migrations.0008_engine_integrity")  # what going back puts in place

# The function of 0008_engine_integrity; of a decision that is history, the object goes only with the text and an erase.
GUARD = """
CREATE OR REPLACE FUNCTION palimpsest_operation_update() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF (NEW.id, NEW.op_id, NEW.generation, NEW.input_key, NEW.scope_id, NEW.kind, NEW.approval, NEW.reason,
      NEW.skipped_reason, NEW.score, NEW.keeper_id, NEW.product, NEW.signals, NEW.n_sources, NEW.policy_hash, NEW.created_at, NEW.requested_by)
     IS DISTINCT FROM
     (OLD.id, OLD.op_id, OLD.generation, OLD.input_key, OLD.scope_id, OLD.kind, OLD.approval, OLD.reason,
      OLD.skipped_reason, OLD.score, OLD.keeper_id, OLD.product, OLD.signals, OLD.n_sources, OLD.policy_hash, OLD.created_at, OLD.requested_by) THEN
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
          OR ((NEW.decision_text, NEW.decision_object) IS DISTINCT FROM (OLD.decision_text, OLD.decision_object) AND NOT (
                NEW.decision_text || NEW.decision_object = ''
                AND palimpsest_operation_lost_a_record(OLD.id, OLD.scope_id, OLD.derived_id)))) THEN
    RAISE EXCEPTION 'the decision on % is history', OLD.op_id USING ERRCODE = 'PA001';
  END IF;
  RETURN NEW;
END $$;
"""

# The function of 0008_engine_integrity, which its trigger calls by name.
CLEAR = """
CREATE OR REPLACE FUNCTION palimpsest_tombstone_clears() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  UPDATE consolidation_operation
  SET decision_text = '', decision_object = '', decision_reason = '', text = '', claim_subject = '', claim_predicate = '',
    claim_object = ''
  WHERE scope_id = NEW.scope_id AND decision_text || decision_object || decision_reason || text || claim_subject
      || claim_predicate || claim_object <> ''
    AND (derived_id = NEW.observation_id OR id IN (
      SELECT operation_id FROM consolidation_operationsource
      WHERE scope_id = NEW.scope_id AND (observation_id = NEW.observation_id OR episode_id = NEW.episode_id)));
  UPDATE consolidation_operationsource SET planned_hash = ''
  WHERE scope_id = NEW.scope_id AND (observation_id = NEW.observation_id OR episode_id = NEW.episode_id);
  IF NEW.episode_id IS NOT NULL THEN
    UPDATE consolidation_draft SET reply = '' WHERE scope_id = NEW.scope_id AND NEW.episode_id = ANY (episode_ids);
  END IF;
  IF NEW.observation_id IS NOT NULL THEN  -- a name that no record holds any more
    UPDATE consolidation_alias a
    SET subject = '', name = '', subject_key = 0, name_key = 0, removed_at = coalesce(a.removed_at, clock_timestamp())
    FROM observations_observation gone
    WHERE gone.id = NEW.observation_id AND gone.scope_id = NEW.scope_id AND a.scope_id = NEW.scope_id
      AND gone.subject_key IN (a.subject_key, a.name_key) AND gone.subject_key <> 0
      AND NOT EXISTS (
        SELECT 1 FROM observations_observation o
        WHERE o.scope_id = NEW.scope_id AND o.subject_key = gone.subject_key AND o.status <> 'erased'
          AND NOT EXISTS (SELECT 1 FROM observations_tombstone t
                          WHERE t.scope_id = o.scope_id AND t.observation_id = o.id));
    UPDATE consolidation_cardinality c SET predicate = '', withdrawn_at = coalesce(c.withdrawn_at, clock_timestamp())
    FROM observations_observation gone, consolidation_operation p, consolidation_operationsource s
    WHERE gone.id = NEW.observation_id AND gone.scope_id = NEW.scope_id AND c.scope_id = NEW.scope_id
      AND s.scope_id = NEW.scope_id AND s.observation_id = gone.id AND p.id = s.operation_id
      AND c.operation = p.op_id || '#' || p.generation
      AND NOT EXISTS (
        SELECT 1 FROM observations_observation o
        WHERE o.scope_id = NEW.scope_id AND o.predicate = gone.predicate AND o.status <> 'erased'
          AND NOT EXISTS (SELECT 1 FROM observations_tombstone t
                          WHERE t.scope_id = o.scope_id AND t.observation_id = o.id));
  END IF;
  RETURN NULL;
END $$;
"""


class Migration(migrations.Migration):
    """Forward on any data; backward drops only what this adds."""

    dependencies = [("consolidation", "0010_names_and_lessons_of_decisions")]

    operations = [
        migrations.AddField(
            model_name="operation",
            name="decision_object",
            field=models.CharField(blank=True, default="", max_length=1000),
        ),
        migrations.RunSQL(GUARD, _BEFORE.GUARD),
        migrations.RunSQL(CLEAR, _BEFORE.CLEAR),
    ]
