"""An applied operation has its lineage: an edge to every source, or, of a source that its repeats replace, to all that this
one came from; and to nothing else.

Raising codes: PA006 (an applied operation is not whole), PA007 (a change of state without its event).
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from django.db import migrations

_BEFORE: Final = import_module("consolidation.migrations.0008_engine_integrity")  # what going back puts in place

# A merged row that was merged again in the same words, with the same key: what it came from stands for it.
CARRIED = """
CREATE FUNCTION palimpsest_lineage_carries(p_scope bigint, p_derived bigint, p_source bigint) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
  SELECT EXISTS (
    SELECT 1 FROM observations_observation s JOIN observations_observation d ON d.scope_id = s.scope_id AND d.id = p_derived
    WHERE s.scope_id = p_scope AND s.id = p_source AND s.derivation = 'merge' AND d.derivation = 'merge' AND s.text_key <> 0
      AND (s.text_key, s.subject_key, s.sp_key, s.spo_key) = (d.text_key, d.subject_key, d.sp_key, d.spo_key)
  ) AND EXISTS (
    SELECT 1 FROM observations_lineage l WHERE l.scope_id = p_scope AND l.derived_id = p_source
  ) AND NOT EXISTS (
    SELECT l.source_observation_id, l.source_episode_id FROM observations_lineage l
    WHERE l.scope_id = p_scope AND l.derived_id = p_source
    EXCEPT
    SELECT l.source_observation_id, l.source_episode_id FROM observations_lineage l
    WHERE l.scope_id = p_scope AND l.derived_id = p_derived
  )
$$;
"""

DROP_CARRIED = "DROP FUNCTION palimpsest_lineage_carries(bigint, bigint, bigint)"

# The function of 0008_engine_integrity, which counted the edges.
WHOLE = """
CREATE OR REPLACE FUNCTION palimpsest_operation_whole() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE op consolidation_operation%ROWTYPE; stamp text; n_named integer; n_strange integer; n_consumed integer; n_moved integer;
BEGIN
  SELECT * INTO op FROM consolidation_operation WHERE id = NEW.id;
  stamp := op.op_id || '#' || op.generation;
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


class Migration(migrations.Migration):
    """Forward on any data; backward drops only what this adds, and what was applied meanwhile stays as it is."""

    dependencies = [("consolidation", "0014_intake_by_schedule")]

    operations = [
        migrations.RunSQL(CARRIED, DROP_CARRIED),
        migrations.RunSQL(WHOLE, _BEFORE.WHOLE),
    ]
