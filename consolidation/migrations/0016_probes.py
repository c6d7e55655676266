"""Probe suites and their runs, and what PostgreSQL enforces about them.

Raising codes: PA003 (append-only). A probe's query goes with the records it names, in the transaction of the erase.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import observations.models.base

_EDGES: Final = import_module("consolidation.migrations.0002_integrity")
_KEPT: Final = import_module("consolidation.migrations.0010_names_and_lessons_of_decisions")

SUITE, PROBE, RUN = "consolidation_suite", "consolidation_probe", "consolidation_proberun"

# A question that names an erased record, or one that a merge made it part of, may say its words. One that names none is
# emptied with the last words of its scope: nothing else says whose they are.
CLEAR = """
CREATE FUNCTION palimpsest_tombstone_clears_probes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE named bigint[];
BEGIN
  WITH RECURSIVE near (id) AS (
    SELECT NEW.observation_id WHERE NEW.observation_id IS NOT NULL
    UNION
    SELECT CASE WHEN l.derived_id = n.id THEN l.source_observation_id ELSE l.derived_id END
    FROM near n JOIN observations_lineage l ON l.scope_id = NEW.scope_id AND l.derivation = 'merge'
      AND (l.derived_id = n.id OR l.source_observation_id = n.id)
    WHERE l.source_observation_id IS NOT NULL
  ) SELECT coalesce(array_agg(id), '{}') INTO named FROM near;
  UPDATE consolidation_probe SET query = '', category = ''
  WHERE scope_id = NEW.scope_id AND query <> '' AND (
    (expected || forbidden || outdated) && named
    OR (expected || forbidden || outdated = '{}' AND NOT EXISTS (
      SELECT 1 FROM observations_observation o WHERE o.scope_id = NEW.scope_id AND o.status <> 'erased'
        AND NOT EXISTS (SELECT 1 FROM observations_tombstone t
                        WHERE t.scope_id = o.scope_id AND t.observation_id = o.id))));
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION palimpsest_tombstone_clears_probes() FROM PUBLIC;
CREATE TRIGGER clears_probes AFTER INSERT ON observations_tombstone
  FOR EACH ROW WHEN (NEW.observation_id IS NOT NULL) EXECUTE FUNCTION palimpsest_tombstone_clears_probes();
"""

DROP_CLEAR = """
DROP TRIGGER clears_probes ON observations_tombstone;
DROP FUNCTION palimpsest_tombstone_clears_probes();
"""

# A suite, a probe and a run are written once, so that runs can be compared; of a probe, only its words may go.
KEPT = """
CREATE TRIGGER written_once BEFORE UPDATE OR DELETE ON consolidation_suite
  FOR EACH ROW EXECUTE FUNCTION palimpsest_append_only();
CREATE TRIGGER written_once BEFORE UPDATE OR DELETE ON consolidation_proberun
  FOR EACH ROW EXECUTE FUNCTION palimpsest_append_only();
CREATE TRIGGER never_deleted BEFORE DELETE ON consolidation_probe
  FOR EACH ROW EXECUTE FUNCTION palimpsest_append_only();
CREATE TRIGGER written_once BEFORE UPDATE ON consolidation_probe
  FOR EACH ROW WHEN (NEW.query <> '' OR NEW.category <> ''
    OR (NEW.id, NEW.scope_id, NEW.suite_id, NEW.number, NEW.expected, NEW.forbidden, NEW.outdated, NEW.negative, NEW.as_of)
       IS DISTINCT FROM
       (OLD.id, OLD.scope_id, OLD.suite_id, OLD.number, OLD.expected, OLD.forbidden, OLD.outdated, OLD.negative, OLD.as_of))
  EXECUTE FUNCTION palimpsest_append_only();
"""

DROP_KEPT = """
DROP TRIGGER written_once ON consolidation_probe;
DROP TRIGGER never_deleted ON consolidation_probe;
DROP TRIGGER written_once ON consolidation_proberun;
DROP TRIGGER written_once ON consolidation_suite;
"""


class Migration(migrations.Migration):
    """Forward on any data; backward drops only what this adds."""

    dependencies = [
        ("consolidation", "0015_lineage_of_repeats"),
        ("observations", "0012_revisions_can_be_erased"),
    ]

    operations = [
        migrations.CreateModel(
            name="Suite",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=80)),
                ("units", models.JSONField(default=dict)),
                (
                    "created_at",
                    models.DateTimeField(db_default=observations.models.base.ClockTimestamp(), editable=False),
                ),
                ("by", models.CharField(max_length=150)),
                (
                    "scope",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="suites", to="observations.scope"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ProbeRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "cause",
                    models.CharField(
                        choices=[("command", "Command"), ("before", "Before"), ("after", "After")], max_length=7
                    ),
                ),
                ("recall", models.FloatField(blank=True, null=True)),
                ("figures", models.JSONField(default=dict)),
                ("at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp(), editable=False)),
                ("by", models.CharField(max_length=150)),
                (
                    "plan",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="consolidation.plan",
                    ),
                ),
                (
                    "scope",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="observations.scope"
                    ),
                ),
                (
                    "suite",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="runs",
                        to="consolidation.suite",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Probe",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.IntegerField()),
                ("query", models.TextField(blank=True)),
                ("category", models.CharField(blank=True, default="", max_length=40)),
                (
                    "expected",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=list, size=None
                    ),
                ),
                (
                    "forbidden",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=list, size=None
                    ),
                ),
                (
                    "outdated",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=list, size=None
                    ),
                ),
                ("negative", models.BooleanField(default=False)),
                ("as_of", models.DateTimeField(blank=True, null=True)),
                (
                    "scope",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="observations.scope"
                    ),
                ),
                (
                    "suite",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="probes",
                        to="consolidation.suite",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="suite",
            index=models.Index(fields=["scope", "-id"], name="suite_newest"),
        ),
        migrations.AddConstraint(
            model_name="suite",
            constraint=models.UniqueConstraint(fields=("scope", "name"), name="suite_once"),
        ),
        migrations.AddConstraint(
            model_name="suite",
            constraint=models.UniqueConstraint(fields=("id", "scope"), name="suite_scope_id"),
        ),
        migrations.AddIndex(
            model_name="proberun",
            index=models.Index(fields=["scope", "suite", "-id"], name="probe_run_newest"),
        ),
        migrations.AddConstraint(
            model_name="probe",
            constraint=models.UniqueConstraint(fields=("scope", "suite", "number"), name="probe_once"),
        ),
        migrations.AddConstraint(
            model_name="probe",
            constraint=models.CheckConstraint(condition=models.Q(("number__gte", 1)), name="probe_number"),
        ),
        *(_EDGES.edge(table, "suite_id", SUITE) for table in (PROBE, RUN)),
        migrations.RunSQL(CLEAR, DROP_CLEAR),
        migrations.RunSQL(KEPT, DROP_KEPT),
        *(_KEPT.no_truncate(table) for table in (SUITE, PROBE, RUN)),
    ]
