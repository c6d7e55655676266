"""Drafts of models, aliases, learnt cardinalities, revisions of policies, calibrations; what an operation will say."""

from __future__ import annotations

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import observations.models.base


class Migration(migrations.Migration):
    """Adds tables and columns; changes no row."""

    dependencies = [
        ("consolidation", "0006_verdict_of_each_operation"),
        ("observations", "0006_engine"),
    ]

    operations = [
        migrations.CreateModel(
            name="Alias",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("subject", models.CharField(max_length=500)),
                ("name", models.CharField(max_length=500)),
                ("subject_key", models.BigIntegerField()),
                ("name_key", models.BigIntegerField()),
                ("at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp())),
                ("by", models.CharField(max_length=150)),
                ("operation", models.CharField(max_length=80)),
                ("removed_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "verbose_name_plural": "aliases",
            },
        ),
        migrations.CreateModel(
            name="Calibration",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("profile", models.CharField(max_length=80)),
                ("space", models.CharField(max_length=200)),
                ("t_candidate", models.FloatField()),
                ("t_merge", models.FloatField()),
                ("figures", models.JSONField(default=dict)),
                ("at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp())),
                ("by", models.CharField(max_length=150)),
                ("enabled_at", models.DateTimeField(blank=True, null=True)),
                ("enabled_by", models.CharField(blank=True, default="", max_length=150)),
            ],
            options={
                "permissions": [("enable_calibration", "Can let a measured embedder merge automatically")],
            },
        ),
        migrations.CreateModel(
            name="Cardinality",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("predicate", models.CharField(max_length=500)),
                ("holds", models.CharField(choices=[("one", "One"), ("many", "Many")], max_length=4)),
                ("at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp())),
                ("by", models.CharField(max_length=150)),
                ("operation", models.CharField(max_length=80)),
                ("withdrawn_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "verbose_name_plural": "cardinalities",
            },
        ),
        migrations.CreateModel(
            name="Draft",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(choices=[("promote", "promote"), ("compact", "compact")], max_length=10)),
                ("input_key", models.CharField(max_length=40)),
                (
                    "episode_ids",
                    django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None),
                ),
                ("reply", models.TextField(blank=True, default="")),
                ("answer", models.CharField(max_length=12)),
                ("attempts", models.SmallIntegerField(default=1)),
                ("model", models.CharField(max_length=80)),
                ("prompt_version", models.CharField(max_length=20)),
                ("at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp())),
            ],
        ),
        migrations.CreateModel(
            name="PolicyRevision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("pattern", models.CharField(max_length=200)),
                ("version", models.IntegerField()),
                ("body", models.JSONField(null=True)),
                ("at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp())),
                ("by", models.CharField(blank=True, default="", max_length=150)),
            ],
        ),
        migrations.AddField(
            model_name="operation",
            name="claim_object",
            field=models.CharField(blank=True, default="", max_length=1000),
        ),
        migrations.AddField(
            model_name="operation",
            name="claim_predicate",
            field=models.CharField(blank=True, default="", max_length=500),
        ),
        migrations.AddField(
            model_name="operation",
            name="claim_subject",
            field=models.CharField(blank=True, default="", max_length=500),
        ),
        migrations.AddField(
            model_name="operation",
            name="requested_by",
            field=models.CharField(blank=True, default="", max_length=150),
        ),
        migrations.AddField(
            model_name="operation",
            name="text",
            field=models.TextField(blank=True, default=""),
        ),
        migrations.AddField(
            model_name="plan",
            name="snapshots",
            field=models.JSONField(default=dict),
        ),
        migrations.AddIndex(
            model_name="operationsource",
            index=models.Index(
                condition=models.Q(("episode__isnull", False)), fields=["scope", "episode"], name="source_by_episode"
            ),
        ),
        migrations.AddConstraint(
            model_name="operationsource",
            constraint=models.UniqueConstraint(fields=("scope", "operation", "episode"), name="source_episode_once"),
        ),
        migrations.AddField(
            model_name="alias",
            name="scope",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="observations.scope"
            ),
        ),
        migrations.AddIndex(
            model_name="calibration",
            index=models.Index(fields=["profile", "-id"], name="calibration_newest"),
        ),
        migrations.AddConstraint(
            model_name="calibration",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("t_candidate__gte", 0), ("t_merge__lte", 1), ("t_candidate__lte", models.F("t_merge"))
                ),
                name="calibration_thresholds",
            ),
        ),
        migrations.AddField(
            model_name="cardinality",
            name="scope",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="observations.scope"
            ),
        ),
        migrations.AddField(
            model_name="draft",
            name="scope",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="observations.scope"
            ),
        ),
        migrations.AddConstraint(
            model_name="policyrevision",
            constraint=models.UniqueConstraint(fields=("pattern", "version"), name="policy_revision_once"),
        ),
        migrations.AddConstraint(
            model_name="alias",
            constraint=models.UniqueConstraint(
                condition=models.Q(("removed_at", None)), fields=("scope", "subject_key"), name="one_name_for_a_subject"
            ),
        ),
        migrations.AddConstraint(
            model_name="alias",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("subject_key", models.F("name_key")), _negated=True),
                    ("removed_at__isnull", False),
                    _connector="OR",
                ),
                name="an_alias_is_of_another",
            ),
        ),
        migrations.AddIndex(
            model_name="cardinality",
            index=models.Index(fields=["scope", "predicate", "-id"], name="cardinality_newest"),
        ),
        migrations.AddConstraint(
            model_name="draft",
            constraint=models.UniqueConstraint(fields=("scope", "input_key"), name="draft_once"),
        ),
    ]
