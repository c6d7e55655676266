"""What the review desk keeps: risk, edits, second persons, comments, deferrals, drills, decisions over many items."""

from __future__ import annotations

import django.contrib.postgres.fields
import django.db.models.deletion
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

import consolidation.operations
import observations.models.base


class Migration(migrations.Migration):
    """Forward on any data: what was decided before is not held to the rules about people. Backward drops this alone."""

    dependencies = [
        ("consolidation", "0019_suites_by_schedule"),
        ("observations", "0015_index_of_large_scopes"),
    ]

    operations = [
        migrations.CreateModel(
            name="BulkDecision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "verb",
                    models.CharField(
                        choices=[
                            ("approve", "approve"),
                            ("reject", "reject"),
                            ("distinct", "distinct"),
                            ("defer", "defer"),
                        ],
                        max_length=8,
                    ),
                ),
                ("by", models.CharField(max_length=150)),
                ("reason", models.CharField(blank=True, default="", max_length=500)),
                ("until", models.DateTimeField(blank=True, null=True)),
                ("scopes", django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None)),
                ("total", models.IntegerField()),
                ("at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp(), editable=False)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="BulkItem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.IntegerField()),
                ("digest", models.CharField(blank=True, default="", max_length=64)),
                (
                    "outcome",
                    models.CharField(
                        choices=[("waiting", "Waiting"), ("done", "Done"), ("refused", "Refused")],
                        default="waiting",
                        max_length=7,
                    ),
                ),
                ("sentence", models.CharField(blank=True, default="", max_length=500)),
            ],
        ),
        migrations.CreateModel(
            name="Comment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("by", models.CharField(max_length=150)),
                ("at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp(), editable=False)),
                ("text", models.CharField(max_length=2000)),
            ],
            options={
                "permissions": [("comment", "Can comment on operations")],
            },
        ),
        migrations.CreateModel(
            name="Deferral",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("by", models.CharField(max_length=150)),
                ("at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp(), editable=False)),
                ("until", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Drill",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("by", models.CharField(max_length=150)),
                ("at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp(), editable=False)),
                (
                    "answer",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("caught", "Caught"),
                            ("missed", "Missed"),
                            ("passed", "Passed"),
                        ],
                        default="waiting",
                        max_length=7,
                    ),
                ),
                ("answered_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Overdue",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp(), editable=False)),
                ("told", models.IntegerField()),
            ],
        ),
        migrations.RemoveConstraint(
            model_name="operation",
            name="operation_status",
        ),
        migrations.AddField(
            model_name="operation",
            name="edited_by",
            field=models.CharField(blank=True, default="", max_length=150),
        ),
        migrations.AddField(
            model_name="operation",
            name="edited_from",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="edits",
                to="consolidation.operation",
            ),
        ),
        migrations.AddField(
            model_name="operation",
            name="needs_second",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="operation",
            name="risk",
            field=models.SmallIntegerField(
                choices=[(1, "low"), (2, "medium"), (3, "high")], default=consolidation.operations.Risk["MEDIUM"]
            ),
        ),
        migrations.AddField(
            model_name="operation",
            name="seconded_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="operation",
            name="seconded_by",
            field=models.CharField(blank=True, default="", max_length=150),
        ),
        migrations.AddField(
            model_name="operation",
            name="uncertainty",
            field=models.FloatField(default=0.5),
        ),
        migrations.AddField(
            model_name="plan",
            name="asked_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="plan",
            name="asked_by",
            field=models.CharField(blank=True, default="", max_length=150),
        ),
        migrations.AddField(
            model_name="plan",
            name="asked_digest",
            field=models.CharField(blank=True, default="", max_length=64),
        ),
        migrations.AlterField(
            model_name="operation",
            name="status",
            field=models.CharField(
                choices=[
                    ("planned", "planned"),
                    ("needs_human", "needs human"),
                    ("skipped", "skipped"),
                    ("approved", "approved"),
                    ("applied", "applied"),
                    ("rejected", "rejected"),
                    ("distinct", "distinct"),
                    ("undone", "undone"),
                    ("stale", "stale"),
                    ("failed", "failed"),
                    ("edited", "edited"),
                ],
                max_length=11,
            ),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                condition=models.Q(
                    ("status", consolidation.operations.State["NEEDS_HUMAN"]),
                    models.Q(
                        ("approval", consolidation.operations.Approval["NEEDS_HUMAN"]),
                        ("status", consolidation.operations.State["SKIPPED"]),
                    ),
                    _connector="OR",
                ),
                fields=["-risk", "-uncertainty", "id"],
                name="operation_waiting",
            ),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                condition=models.Q(("decided_at__isnull", False)),
                fields=["scope", "-decided_at"],
                name="operation_decided",
            ),
        ),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "status__in",
                        [
                            consolidation.operations.State["PLANNED"],
                            consolidation.operations.State["NEEDS_HUMAN"],
                            consolidation.operations.State["SKIPPED"],
                            consolidation.operations.State["APPROVED"],
                            consolidation.operations.State["APPLIED"],
                            consolidation.operations.State["REJECTED"],
                            consolidation.operations.State["DISTINCT"],
                            consolidation.operations.State["UNDONE"],
                            consolidation.operations.State["STALE"],
                            consolidation.operations.State["FAILED"],
                            consolidation.operations.State["EDITED"],
                        ],
                    )
                ),
                name="operation_status",
            ),
        ),
        AddConstraintNotValid(
            model_name="operation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("status", "applied"), _negated=True),
                    ("needs_second", False),
                    models.Q(
                        ("seconded_at__isnull", False),
                        models.Q(("seconded_by", ""), _negated=True),
                        models.Q(("seconded_by", models.F("decided_by")), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="two_agreed",
            ),
        ),
        AddConstraintNotValid(
            model_name="operation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("status__in", ["approved", "applied"]), _negated=True),
                    ("requested_by", ""),
                    models.Q(
                        models.Q(("requested_by", models.F("decided_by")), _negated=True),
                        models.Q(("requested_by", models.F("seconded_by")), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="a_proposer_never_approves",
            ),
        ),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("edited_from__isnull", True), models.Q(("edited_by", ""), _negated=True), _connector="OR"
                ),
                name="an_edit_has_an_editor",
            ),
        ),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.CheckConstraint(
                condition=models.Q(("uncertainty__gte", 0), ("uncertainty__lte", 1)), name="operation_uncertainty"
            ),
        ),
        migrations.AddIndex(
            model_name="bulkdecision",
            index=models.Index(fields=["by", "-id"], name="bulk_newest"),
        ),
        migrations.AddConstraint(
            model_name="bulkdecision",
            constraint=models.CheckConstraint(
                condition=models.Q(("verb__in", ("approve", "reject", "distinct", "defer"))), name="bulk_verb"
            ),
        ),
        migrations.AddField(
            model_name="bulkitem",
            name="bulk",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="items", to="consolidation.bulkdecision"
            ),
        ),
        migrations.AddField(
            model_name="bulkitem",
            name="operation",
            field=models.ForeignKey(
                db_constraint=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="bulk_items",
                to="consolidation.operation",
            ),
        ),
        migrations.AddField(
            model_name="bulkitem",
            name="scope",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="observations.scope"
            ),
        ),
        migrations.AddField(
            model_name="comment",
            name="operation",
            field=models.ForeignKey(
                db_constraint=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="comments",
                to="consolidation.operation",
            ),
        ),
        migrations.AddField(
            model_name="comment",
            name="scope",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="observations.scope"
            ),
        ),
        migrations.AddField(
            model_name="deferral",
            name="operation",
            field=models.ForeignKey(
                db_constraint=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="deferrals",
                to="consolidation.operation",
            ),
        ),
        migrations.AddField(
            model_name="deferral",
            name="scope",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="observations.scope"
            ),
        ),
        migrations.AddField(
            model_name="drill",
            name="high",
            field=models.ForeignKey(
                db_constraint=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="observations.observation",
            ),
        ),
        migrations.AddField(
            model_name="drill",
            name="low",
            field=models.ForeignKey(
                db_constraint=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="observations.observation",
            ),
        ),
        migrations.AddField(
            model_name="drill",
            name="scope",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="observations.scope"
            ),
        ),
        migrations.AddField(
            model_name="overdue",
            name="operation",
            field=models.ForeignKey(
                db_constraint=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="overdue",
                to="consolidation.operation",
            ),
        ),
        migrations.AddField(
            model_name="overdue",
            name="scope",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="observations.scope"
            ),
        ),
        migrations.AddIndex(
            model_name="bulkitem",
            index=models.Index(fields=["bulk", "position"], name="bulk_items_in_order"),
        ),
        migrations.AddConstraint(
            model_name="bulkitem",
            constraint=models.UniqueConstraint(fields=("bulk", "operation"), name="bulk_item_once"),
        ),
        migrations.AddConstraint(
            model_name="bulkitem",
            constraint=models.CheckConstraint(
                condition=models.Q(("outcome__in", ["waiting", "done", "refused"])), name="bulk_outcome"
            ),
        ),
        migrations.AddIndex(
            model_name="comment",
            index=models.Index(fields=["scope", "operation", "id"], name="comments_of"),
        ),
        migrations.AddIndex(
            model_name="deferral",
            index=models.Index(fields=["by", "until"], name="deferrals_of"),
        ),
        migrations.AddConstraint(
            model_name="deferral",
            constraint=models.UniqueConstraint(fields=("scope", "operation", "by"), name="deferred_once"),
        ),
        migrations.AddIndex(
            model_name="drill",
            index=models.Index(fields=["by", "-id"], name="drills_of"),
        ),
        migrations.AddConstraint(
            model_name="drill",
            constraint=models.CheckConstraint(
                condition=models.Q(("low__lt", models.F("high"))), name="a_drill_tells_two_apart"
            ),
        ),
        migrations.AddConstraint(
            model_name="drill",
            constraint=models.CheckConstraint(
                condition=models.Q(("answer__in", ["waiting", "caught", "missed", "passed"])), name="drill_answer"
            ),
        ),
        migrations.AddConstraint(
            model_name="drill",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("answer", "waiting"), ("answered_at__isnull", True)),
                    models.Q(models.Q(("answer", "waiting"), _negated=True), ("answered_at__isnull", False)),
                    _connector="OR",
                ),
                name="an_answer_is_whole",
            ),
        ),
        migrations.AddConstraint(
            model_name="overdue",
            constraint=models.UniqueConstraint(fields=("scope", "operation"), name="overdue_once"),
        ),
        migrations.CreateModel(
            name="Planning",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("by", models.CharField(max_length=150)),
                ("pattern", models.CharField(max_length=200)),
                (
                    "scopes",
                    django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None),
                ),
                (
                    "asked_at",
                    models.DateTimeField(db_default=observations.models.base.ClockTimestamp(), editable=False),
                ),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("done", models.IntegerField(default=0)),
                ("doing", models.CharField(blank=True, default="", max_length=200)),
                ("error", models.CharField(blank=True, default="", max_length=300)),
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
            ],
        ),
    ]
