"""What PostgreSQL enforces about promotions, compactions, aliases, drafts and policies: as 0002 and 0005 do.

Raising codes: PA001 (immutable), PA003 (append-only), PA006 (an applied operation is not whole).
"""

from __future__ import annotations

from django.db import migrations

LOST = """
CREATE FUNCTION palimpsest_operation_lost_a_record(p_id bigint, p_scope bigint, p_derived bigint) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
  SELECT EXISTS (
    SELECT 1 FROM observations_tombstone t WHERE t.scope_id = p_scope AND (
      t.observation_id = p_derived
      OR t.observation_id IN (SELECT s.observation_id FROM consolidation_operationsource s
                              WHERE s.scope_id = p_scope AND s.operation_id = p_id)
      OR t.episode_id IN (SELECT s.episode_id FROM consolidation_operationsource s
                          WHERE s.scope_id = p_scope AND s.operation_id = p_id)))
$$;
"""

DROP_LOST = "DROP FUNCTION palimpsest_operation_lost_a_record(bigint, bigint, bigint)"

# The functions of 0002_integrity, for products that no source says, for episodes and for aliases.
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
          OR (NEW.decision_text <> OLD.decision_text AND NOT (
                NEW.decision_text = '' AND palimpsest_operation_lost_a_record(OLD.id, OLD.scope_id, OLD.derived_id)))) THEN
    RAISE EXCEPTION 'the decision on % is history', OLD.op_id USING ERRCODE = 'PA001';
  END IF;
  RETURN NEW;
END $$;
"""

GUARD_BEFORE = """
CREATE OR REPLACE FUNCTION palimpsest_operation_update() RETURNS trigger LANGUAGE plpgsql
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
"""

WHOLE = """
CREATE OR REPLACE FUNCTION palimpsest_operation_whole() RETURNS trigger LANGUAGE plpgsql
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
  FROM consolidation_operationsource s
  LEFT JOIN observations_observation o ON o.id = s.observation_id AND o.scope_id = s.scope_id
  LEFT JOIN observations_episode e ON e.id = s.episode_id AND e.scope_id = s.scope_id
  WHERE s.scope_id = op.scope_id AND s.operation_id = op.id AND coalesce(o.status, e.status) <> s.prior_status;
  IF n_moved <> n_consumed OR (n_moved = 0 AND op.kind NOT IN ('prune', 'supersede', 'promote', 'alias')) THEN
    RAISE EXCEPTION '% moved % sources and consumed %', op.op_id, n_moved, n_consumed USING ERRCODE = 'PA006';
  END IF;
  IF op.kind IN ('merge', 'promote', 'compact') THEN
    SELECT count(*) INTO n_lineage FROM observations_lineage l
      WHERE l.scope_id = op.scope_id AND l.derived_id = op.derived_id AND l.operation = op.op_id || '#' || op.generation;
    IF op.derived_id IS NULL OR n_lineage <> op.n_sources THEN
      RAISE EXCEPTION '% has % sources and % lineage rows', op.op_id, op.n_sources, n_lineage USING ERRCODE = 'PA006';
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
         AND a.operation = op.op_id || '#' || op.generation) THEN
    RAISE EXCEPTION '% is applied without its alias', op.op_id USING ERRCODE = 'PA006';
  END IF;
  RETURN NULL;
END $$;
"""

WHOLE_BEFORE = """
CREATE OR REPLACE FUNCTION palimpsest_operation_whole() RETURNS trigger LANGUAGE plpgsql
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
"""

CLEAR = """
CREATE OR REPLACE FUNCTION palimpsest_tombstone_clears() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  UPDATE consolidation_operation
  SET decision_text = '', decision_reason = '', text = '', claim_subject = '', claim_predicate = '', claim_object = ''
  WHERE scope_id = NEW.scope_id AND decision_text || decision_reason || text || claim_subject || claim_predicate || claim_object <> ''
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
DROP TRIGGER tombstone_clears ON observations_tombstone;
CREATE TRIGGER tombstone_clears AFTER INSERT ON observations_tombstone
  FOR EACH ROW EXECUTE FUNCTION palimpsest_tombstone_clears();
"""

CLEAR_BEFORE = """
CREATE OR REPLACE FUNCTION palimpsest_tombstone_clears() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
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
DROP TRIGGER tombstone_clears ON observations_tombstone;
CREATE TRIGGER tombstone_clears AFTER INSERT ON observations_tombstone
  FOR EACH ROW WHEN (NEW.observation_id IS NOT NULL) EXECUTE FUNCTION palimpsest_tombstone_clears();
"""

# Every version of a policy is kept, whoever changes it, and counted by the database.
POLICY = """
CREATE FUNCTION palimpsest_policy_version() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  NEW.version := 1 + coalesce((SELECT max(r.version) FROM consolidation_policyrevision r WHERE r.pattern = NEW.pattern), 0);
  RETURN NEW;
END $$;
CREATE TRIGGER policy_version BEFORE INSERT OR UPDATE OF pattern, body ON consolidation_policy
  FOR EACH ROW EXECUTE FUNCTION palimpsest_policy_version();
CREATE FUNCTION palimpsest_policy_journal() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF TG_OP = 'DELETE' OR (TG_OP = 'UPDATE' AND OLD.pattern <> NEW.pattern) THEN
    INSERT INTO consolidation_policyrevision (pattern, version, body, at, by)
    SELECT OLD.pattern, 1 + max(r.version), NULL, clock_timestamp(), ''
    FROM consolidation_policyrevision r WHERE r.pattern = OLD.pattern;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO consolidation_policyrevision (pattern, version, body, at, by)
    VALUES (NEW.pattern, NEW.version, NEW.body, clock_timestamp(), NEW.updated_by)
    ON CONFLICT DO NOTHING;  -- a change of who or when alone is no new version
  END IF;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION palimpsest_policy_journal() FROM PUBLIC;
CREATE TRIGGER policy_journal AFTER INSERT OR UPDATE OR DELETE ON consolidation_policy
  FOR EACH ROW EXECUTE FUNCTION palimpsest_policy_journal();
INSERT INTO consolidation_policyrevision (pattern, version, body, at, by)
SELECT pattern, version, body, updated_at, updated_by FROM consolidation_policy;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON consolidation_policyrevision
  FOR EACH ROW EXECUTE FUNCTION palimpsest_append_only();
"""

DROP_POLICY = """
DROP TRIGGER append_only ON consolidation_policyrevision;
DROP TRIGGER policy_journal ON consolidation_policy;
DROP FUNCTION palimpsest_policy_journal();
DROP TRIGGER policy_version ON consolidation_policy;
DROP FUNCTION palimpsest_policy_version();
"""

# What was measured, learnt and named is taken back by a date, never deleted.
KEPT = """
CREATE TRIGGER append_only BEFORE DELETE ON consolidation_calibration
  FOR EACH ROW EXECUTE FUNCTION palimpsest_append_only();
CREATE TRIGGER append_only BEFORE DELETE ON consolidation_cardinality
  FOR EACH ROW EXECUTE FUNCTION palimpsest_append_only();
CREATE TRIGGER append_only BEFORE DELETE ON consolidation_alias
  FOR EACH ROW EXECUTE FUNCTION palimpsest_append_only();
"""

DROP_KEPT = """
DROP TRIGGER append_only ON consolidation_alias;
DROP TRIGGER append_only ON consolidation_cardinality;
DROP TRIGGER append_only ON consolidation_calibration;
"""


class Migration(migrations.Migration):
    """Forward on any data that fits; backward drops only what this adds."""

    dependencies = [("consolidation", "0007_engine"), ("observations", "0007_engine_integrity")]

    operations = [
        migrations.RunSQL(LOST, DROP_LOST),
        migrations.RunSQL(GUARD, GUARD_BEFORE),
        migrations.RunSQL(WHOLE, WHOLE_BEFORE),
        migrations.RunSQL(CLEAR, CLEAR_BEFORE),
        migrations.RunSQL(POLICY, DROP_POLICY),
        migrations.RunSQL(KEPT, DROP_KEPT),
    ]
