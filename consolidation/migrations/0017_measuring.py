"""What is measured about proposals: projections of plans, samples of automatic operations, demoted bands."""

from __future__ import annotations

from importlib import import_module

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import observations.models.base

_EDGES = import_module("consolidation.migrations.0002_integrity")
_KEPT = import_module("consolidation.migrations.0010_names_and_lessons_of_decisions")
PROJECTION, SAMPLE, DEMOTION = "consolidation_projection", "consolidation_sample", "consolidation_demotion"

# What was measured is written once; a person's word on it is added once.
KEPT = "".join(
    f"""
CREATE TRIGGER never_deleted BEFORE DELETE ON {table}
  FOR EACH ROW EXECUTE FUNCTION palimpsest_append_only();
"""
    for table in (PROJECTION, SAMPLE, DEMOTION)
)
DROP_KEPT = "".join(f"DROP TRIGGER never_deleted ON {table};\n" for table in (PROJECTION, SAMPLE, DEMOTION))


class Migration(migrations.Migration):
    """Forward on any data; backward drops only what this adds."""

    dependencies = [
        ("consolidation", "0016_probes"),
        ("observations", "0013_reading"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="suite",
            options={"permissions": [("make_suite", "Can make probe suites"), ("run_suite", "Can run probe suites")]},
        ),
        migrations.AddField(
            model_name="operation",
            name="band",
            field=models.CharField(blank=True, default="", max_length=20),
        ),
        migrations.AddField(
            model_name="operation",
            name="rule",
            field=models.CharField(blank=True, default="", max_length=40),
        ),
        migrations.AlterField(
            model_name="proberun",
            name="cause",
            field=models.CharField(
                choices=[
                    ("command", "Command"),
                    ("before", "Before"),
                    ("after", "After"),
                    ("button", "Button"),
                    ("task", "Task"),
                ],
                max_length=7,
            ),
        ),
        migrations.CreateModel(
            name="Demotion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("merge", "merge"),
                            ("promote", "promote"),
                            ("compact", "compact"),
                            ("supersede", "supersede"),
                            ("archive", "archive"),
                            ("prune", "prune"),
                            ("alias", "alias"),
                            ("forget", "forget"),
                        ],
                        max_length=10,
                    ),
                ),
                ("rule", models.CharField(max_length=40)),
                ("band", models.CharField(max_length=20)),
                ("at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp())),
                ("judged", models.IntegerField()),
                ("wrong", models.IntegerField()),
                ("lower", models.FloatField()),
                ("limit", models.FloatField()),
                ("lifted_at", models.DateTimeField(blank=True, null=True)),
                ("lifted_by", models.CharField(blank=True, default="", max_length=150)),
                ("lifted_reason", models.CharField(blank=True, default="", max_length=300)),
            ],
            options={
                "permissions": [("lift_demotion", "Can let a demoted rule decide again")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("lifted_at__isnull", True)),
                        fields=("kind", "rule", "band"),
                        name="one_standing_demotion",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("lifted_at__isnull", True), ("lifted_by", "")),
                            models.Q(("lifted_at__isnull", False), models.Q(("lifted_by", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="a_lift_is_whole",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Projection",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=64)),
                ("operations", models.IntegerField()),
                ("before", models.JSONField(default=dict)),
                ("after", models.JSONField(default=dict)),
                ("records_before", models.IntegerField()),
                ("records_after", models.IntegerField()),
                (
                    "lost",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), default=list, size=None
                    ),
                ),
                ("fell", models.BooleanField(default=False)),
                ("why_not", models.CharField(blank=True, default="", max_length=200)),
                ("at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp(), editable=False)),
                ("by", models.CharField(max_length=150)),
                ("signed_off_at", models.DateTimeField(blank=True, null=True)),
                ("signed_off_by", models.CharField(blank=True, default="", max_length=150)),
                ("sign_off_reason", models.CharField(blank=True, default="", max_length=300)),
                (
                    "plan",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="projections", to="consolidation.plan"
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
                        blank=True,
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="consolidation.suite",
                    ),
                ),
            ],
            options={
                "permissions": [("sign_off", "Can sign off a plan that loses recall")],
                "indexes": [models.Index(fields=["plan", "scope", "-id"], name="projection_newest")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("signed_off_at__isnull", True), ("signed_off_by", "")),
                            models.Q(("signed_off_at__isnull", False), models.Q(("signed_off_by", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="a_sign_off_is_whole",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Sample",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("merge", "merge"),
                            ("promote", "promote"),
                            ("compact", "compact"),
                            ("supersede", "supersede"),
                            ("archive", "archive"),
                            ("prune", "prune"),
                            ("alias", "alias"),
                            ("forget", "forget"),
                        ],
                        max_length=10,
                    ),
                ),
                ("rule", models.CharField(max_length=40)),
                ("band", models.CharField(max_length=20)),
                ("chosen_at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp())),
                (
                    "judged",
                    models.CharField(
                        choices=[("waiting", "Waiting"), ("right", "Right"), ("wrong", "Wrong")],
                        default="waiting",
                        max_length=7,
                    ),
                ),
                ("judged_at", models.DateTimeField(blank=True, null=True)),
                ("judged_by", models.CharField(blank=True, default="", max_length=150)),
                (
                    "operation",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="samples",
                        to="consolidation.operation",
                    ),
                ),
                (
                    "scope",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="observations.scope"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["kind", "rule", "band"], name="sample_of_band"),
                    models.Index(
                        condition=models.Q(("judged", "waiting")), fields=["scope", "-id"], name="sample_waiting"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("scope", "operation"), name="sample_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("judged", "waiting"), ("judged_at__isnull", True), ("judged_by", "")),
                            models.Q(
                                models.Q(("judged", "waiting"), _negated=True),
                                ("judged_at__isnull", False),
                                models.Q(("judged_by", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="a_judgement_is_whole",
                    ),
                ],
            },
        ),
        _EDGES.edge(PROJECTION, "suite_id", "consolidation_suite"),
        _EDGES.edge(SAMPLE, "operation_id", "consolidation_operation"),
        migrations.RunSQL(KEPT, DROP_KEPT),
        *(_KEPT.no_truncate(table) for table in (PROJECTION, SAMPLE, DEMOTION)),
    ]
