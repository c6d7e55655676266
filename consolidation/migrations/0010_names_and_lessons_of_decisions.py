"""What was named and learnt comes from an applied decision, is taken back once, and cannot be emptied out.

Raising codes: PA003 (append-only), PA006 (a name or lesson that no applied operation made).
"""

from __future__ import annotations

from django.db import migrations

# A forged name would have two people's memory compared as one; a forged lesson would silence a contradiction (R46, I17).
DECIDED = """
CREATE FUNCTION palimpsest_learnt_of_a_decision() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF NOT EXISTS (
       SELECT 1 FROM consolidation_operation p
       WHERE p.scope_id = NEW.scope_id AND p.status = 'applied' AND p.kind = TG_ARGV[0]
         AND NEW.operation = p.op_id || '#' || p.generation) THEN
    RAISE EXCEPTION '% % names no applied % of its scope', TG_TABLE_NAME, NEW.id, TG_ARGV[0] USING ERRCODE = 'PA006';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER alias_decided AFTER INSERT ON consolidation_alias
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION palimpsest_learnt_of_a_decision('alias');
CREATE CONSTRAINT TRIGGER cardinality_decided AFTER INSERT ON consolidation_cardinality
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION palimpsest_learnt_of_a_decision('supersede');
"""

DROP_DECIDED = """
DROP TRIGGER cardinality_decided ON consolidation_cardinality;
DROP TRIGGER alias_decided ON consolidation_alias;
DROP FUNCTION palimpsest_learnt_of_a_decision();
"""

# A date that takes something back, or enables it, is set once and never changed.
ONCE = """
CREATE TRIGGER taken_back_once BEFORE UPDATE ON consolidation_alias FOR EACH ROW
  WHEN (OLD.removed_at IS NOT NULL AND NEW.removed_at IS DISTINCT FROM OLD.removed_at)
  EXECUTE FUNCTION palimpsest_append_only();
CREATE TRIGGER taken_back_once BEFORE UPDATE ON consolidation_cardinality FOR EACH ROW
  WHEN (OLD.withdrawn_at IS NOT NULL AND NEW.withdrawn_at IS DISTINCT FROM OLD.withdrawn_at)
  EXECUTE FUNCTION palimpsest_append_only();
CREATE TRIGGER enabled_once BEFORE UPDATE ON consolidation_calibration FOR EACH ROW
  WHEN (OLD.enabled_at IS NOT NULL
        AND (NEW.enabled_at, NEW.enabled_by) IS DISTINCT FROM (OLD.enabled_at, OLD.enabled_by))
  EXECUTE FUNCTION palimpsest_append_only();
"""

DROP_ONCE = """
DROP TRIGGER enabled_once ON consolidation_calibration;
DROP TRIGGER taken_back_once ON consolidation_cardinality;
DROP TRIGGER taken_back_once ON consolidation_alias;
"""

KEPT = ("consolidation_policyrevision", "consolidation_calibration", "consolidation_cardinality", "consolidation_alias")


def no_truncate(table: str) -> migrations.RunSQL:
    """Refuses TRUNCATE to everyone; the function is the store's."""
    return migrations.RunSQL(
        f"""
        CREATE TRIGGER no_truncate BEFORE TRUNCATE ON {table}
          FOR EACH STATEMENT EXECUTE FUNCTION palimpsest_append_only();
        """,
        f"DROP TRIGGER no_truncate ON {table}",
    )


class Migration(migrations.Migration):
    """Forward on any data; backward drops only what this adds."""

    dependencies = [("consolidation", "0009_planning_by_records"), ("observations", "0008_given_keys_move_one_way")]

    operations = [
        migrations.RunSQL(DECIDED, DROP_DECIDED),
        migrations.RunSQL(ONCE, DROP_ONCE),
        *(no_truncate(table) for table in KEPT),
    ]
