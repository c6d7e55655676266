"""Kinds and half-lives of claims, keys that a model gave, calls of models, and the journal of episodes."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

import observations.models.base
import observations.records


class Migration(migrations.Migration):
    """Adds tables and columns; changes no row."""

    dependencies = [
        ("observations", "0005_journal_for_owner_only"),
    ]

    operations = [
        migrations.CreateModel(
            name="GivenKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("given", "Given"),
                            ("none", "None"),
                            ("unusable", "Unusable"),
                            ("withdrawn", "Withdrawn"),
                        ],
                        max_length=9,
                    ),
                ),
                ("subject", models.CharField(blank=True, default="", max_length=500)),
                ("predicate", models.CharField(blank=True, default="", max_length=500)),
                ("object", models.CharField(blank=True, default="", max_length=1000)),
                ("subject_key", models.BigIntegerField(default=0)),
                ("sp_key", models.BigIntegerField(default=0)),
                ("spo_key", models.BigIntegerField(default=0)),
                ("quote_start", models.IntegerField(blank=True, null=True)),
                ("quote_end", models.IntegerField(blank=True, null=True)),
                ("model", models.CharField(max_length=80)),
                ("prompt_version", models.CharField(max_length=20)),
                ("attempts", models.SmallIntegerField(default=1)),
                ("at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp())),
                ("withdrawn_by", models.CharField(blank=True, default="", max_length=150)),
            ],
        ),
        migrations.CreateModel(
            name="ModelCall",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp())),
                ("purpose", models.CharField(max_length=20)),
                ("model", models.CharField(max_length=80)),
                ("prompt_version", models.CharField(max_length=20)),
                ("answer", models.CharField(max_length=12)),
                ("input_tokens", models.IntegerField(default=0)),
                ("output_tokens", models.IntegerField(default=0)),
                ("cache_read_tokens", models.IntegerField(default=0)),
                ("cache_write_tokens", models.IntegerField(default=0)),
                ("cost_microdollars", models.BigIntegerField(default=0)),
                ("latency_ms", models.IntegerField(default=0)),
                ("batch", models.BooleanField(default=False)),
            ],
        ),
        migrations.AddField(
            model_name="observation",
            name="half_life_days",
            field=models.IntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="observation",
            name="kind",
            field=models.CharField(
                choices=[
                    ("preference", "preference"),
                    ("identity", "identity"),
                    ("fact", "fact"),
                    ("state", "state"),
                    ("episode", "episode"),
                    ("note", "note"),
                ],
                default=observations.records.MemoryKind["FACT"],
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="transition",
            name="episode",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="transitions",
                to="observations.episode",
            ),
        ),
        migrations.AlterField(
            model_name="transition",
            name="observation",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="transitions",
                to="observations.observation",
            ),
        ),
        migrations.AddConstraint(
            model_name="observation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        [
                            observations.records.MemoryKind["PREFERENCE"],
                            observations.records.MemoryKind["IDENTITY"],
                            observations.records.MemoryKind["FACT"],
                            observations.records.MemoryKind["STATE"],
                            observations.records.MemoryKind["EPISODE"],
                            observations.records.MemoryKind["NOTE"],
                        ],
                    )
                ),
                name="observation_kind",
            ),
        ),
        migrations.AddConstraint(
            model_name="observation",
            constraint=models.CheckConstraint(
                condition=models.Q(("half_life_days__isnull", True), ("half_life_days__gte", 1), _connector="OR"),
                name="observation_half_life",
            ),
        ),
        migrations.AddConstraint(
            model_name="transition",
            constraint=models.UniqueConstraint(
                fields=("scope", "episode", "version"), name="transition_of_episode_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="transition",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("episode__isnull", False), ("observation__isnull", True)),
                    models.Q(("episode__isnull", True), ("observation__isnull", False)),
                    _connector="OR",
                ),
                name="transition_of_one_row",
            ),
        ),
        migrations.AddField(
            model_name="givenkey",
            name="observation",
            field=models.ForeignKey(
                db_constraint=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="given_keys",
                to="observations.observation",
            ),
        ),
        migrations.AddField(
            model_name="givenkey",
            name="scope",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="observations.scope"
            ),
        ),
        migrations.AddField(
            model_name="modelcall",
            name="scope",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="observations.scope"
            ),
        ),
        migrations.AddConstraint(
            model_name="givenkey",
            constraint=models.UniqueConstraint(fields=("scope", "observation"), name="one_given_key"),
        ),
        migrations.AddConstraint(
            model_name="givenkey",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state", "given"),
                    models.Q(("object", ""), ("predicate", ""), ("sp_key", 0), ("spo_key", 0), ("subject", "")),
                    _connector="OR",
                ),
                name="only_a_given_key_has_parts",
            ),
        ),
        migrations.AddIndex(
            model_name="modelcall",
            index=models.Index(fields=["at", "scope"], name="model_call_by_day"),
        ),
    ]
