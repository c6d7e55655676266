"""Tables of the two ways of writing: intake, core memory, residue, tokens and receipts."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.text
from django.db import migrations, models

import observations.models.base


class Migration(migrations.Migration):
    dependencies = [
        ("observations", "0008_given_keys_move_one_way"),
    ]

    operations = [
        migrations.CreateModel(
            name="CoreMemory",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("label", models.CharField(max_length=50)),
                ("description", models.CharField(blank=True, default="", max_length=500)),
                ("value", models.TextField(blank=True, default="")),
                ("limit", models.PositiveIntegerField(default=2000)),
                ("read_only", models.BooleanField(default=False)),
                ("revision", models.PositiveIntegerField(default=1)),
                (
                    "created_at",
                    models.DateTimeField(db_default=observations.models.base.ClockTimestamp(), editable=False),
                ),
                ("updated_at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp())),
                (
                    "scope",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="core_memory", to="observations.scope"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "core memory",
                "ordering": ["label"],
            },
        ),
        migrations.CreateModel(
            name="CoreRevision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("value", models.TextField(null=True)),
                (
                    "action",
                    models.CharField(
                        choices=[
                            ("create", "Create"),
                            ("append", "Append"),
                            ("replace", "Replace"),
                            ("rethink", "Rethink"),
                            ("undo", "Undo"),
                        ],
                        max_length=7,
                    ),
                ),
                ("undoes", models.PositiveIntegerField(blank=True, null=True)),
                ("by", models.CharField(max_length=150)),
                ("at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp())),
                (
                    "core",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="revisions",
                        to="observations.corememory",
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
                "ordering": ["-number"],
            },
        ),
        migrations.CreateModel(
            name="Intake",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("enabled", models.BooleanField(default=False)),
                ("every_turns", models.PositiveSmallIntegerField(default=5)),
                ("since", models.DateTimeField(db_default=observations.models.base.ClockTimestamp())),
                ("residue", models.BooleanField(default=False)),
                ("updated_at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp())),
                ("updated_by", models.CharField(max_length=150)),
                (
                    "scope",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="intake", to="observations.scope"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "intake",
            },
        ),
        migrations.CreateModel(
            name="IntakeRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "trigger",
                    models.CharField(
                        choices=[("turns", "Turns"), ("schedule", "Schedule"), ("hand", "Hand")], max_length=8
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("interrupted", "Interrupted"),
                        ],
                        default="running",
                        max_length=11,
                    ),
                ),
                ("started_at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp())),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("error", models.CharField(blank=True, default="", max_length=300)),
                ("by", models.CharField(blank=True, default="", max_length=150)),
                ("figures", models.JSONField(default=dict)),
                (
                    "scope",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="observations.scope"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="IntakeItem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("text", models.TextField(blank=True, default="")),
                ("quote_start", models.IntegerField(blank=True, null=True)),
                ("quote_end", models.IntegerField(blank=True, null=True)),
                (
                    "verdict",
                    models.CharField(
                        choices=[
                            ("add", "Add"),
                            ("update", "Update"),
                            ("delete", "Delete"),
                            ("noop", "Noop"),
                            ("refused", "Refused"),
                            ("review", "Review"),
                        ],
                        max_length=7,
                    ),
                ),
                ("reason", models.CharField(blank=True, default="", max_length=200)),
                ("said", models.TextField(blank=True, default="")),
                (
                    "offered",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=list, size=None
                    ),
                ),
                ("at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp())),
                (
                    "episode",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="observations.episode",
                    ),
                ),
                (
                    "observation",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="intake_items",
                        to="observations.observation",
                    ),
                ),
                (
                    "scope",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="observations.scope"
                    ),
                ),
                (
                    "target",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="observations.observation",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="items", to="observations.intakerun"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Extraction",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("claims", "Claims"),
                            ("nothing", "Nothing"),
                            ("unusable", "Unusable"),
                            ("passed", "Passed"),
                        ],
                        max_length=8,
                    ),
                ),
                ("attempts", models.SmallIntegerField(default=1)),
                ("at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp())),
                (
                    "episode",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="extractions",
                        to="observations.episode",
                    ),
                ),
                (
                    "scope",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="observations.scope"
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="extractions",
                        to="observations.intakerun",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Residue",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("text", models.TextField()),
                ("text_key", models.BigIntegerField()),
                ("session", models.CharField(blank=True, default="", max_length=200)),
                (
                    "first_held_at",
                    models.DateTimeField(db_default=observations.models.base.ClockTimestamp(), editable=False),
                ),
                ("held_at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp())),
                ("by", models.CharField(max_length=150)),
                (
                    "scope",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="observations.scope"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "residue",
            },
        ),
        migrations.CreateModel(
            name="Token",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=100)),
                ("key_id", models.CharField(max_length=16, unique=True)),
                ("secret_hash", models.CharField(max_length=64)),
                ("scope_pattern", models.CharField(max_length=200)),
                ("may_read", models.BooleanField(default=True)),
                ("may_write", models.BooleanField(default=False)),
                ("may_propose", models.BooleanField(default=False)),
                ("speaks_for_user", models.BooleanField(default=False)),
                (
                    "created_at",
                    models.DateTimeField(db_default=observations.models.base.ClockTimestamp(), editable=False),
                ),
                ("created_by", models.CharField(max_length=150)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_by", models.CharField(blank=True, default="", max_length=150)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("may_read", True), ("may_write", True), ("may_propose", True), _connector="OR"
                        ),
                        name="token_may_something",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("scope_pattern", ""), _negated=True),
                            models.Q(("scope_pattern", "*"), _negated=True),
                        ),
                        name="token_scope_pattern",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Receipt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=200)),
                ("request_hash", models.CharField(max_length=64)),
                ("answer", models.JSONField(default=dict)),
                ("status", models.PositiveSmallIntegerField()),
                ("at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp())),
                (
                    "token",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="observations.token"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="UnusableAnswer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "purpose",
                    models.CharField(choices=[("extract", "Extract"), ("reconcile", "Reconcile")], max_length=9),
                ),
                (
                    "episode_ids",
                    django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None),
                ),
                ("reply", models.TextField(blank=True, default="")),
                ("reason", models.CharField(max_length=200)),
                ("model", models.CharField(max_length=80)),
                ("prompt_version", models.CharField(max_length=20)),
                ("at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp())),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="answers", to="observations.intakerun"
                    ),
                ),
                (
                    "scope",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="observations.scope"
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="corememory",
            constraint=models.UniqueConstraint(fields=("scope", "label"), name="core_memory_label"),
        ),
        migrations.AddConstraint(
            model_name="corememory",
            constraint=models.UniqueConstraint(fields=("id", "scope"), name="core_memory_scope_id"),
        ),
        migrations.AddConstraint(
            model_name="corememory",
            constraint=models.CheckConstraint(
                condition=models.Q(("label__regex", "^[a-z0-9][a-z0-9_-]*$")), name="core_memory_label_is_a_word"
            ),
        ),
        migrations.AddConstraint(
            model_name="corememory",
            constraint=models.CheckConstraint(
                condition=models.Q(("limit__gte", 1), ("limit__lte", 20000)), name="core_memory_limit"
            ),
        ),
        migrations.AddConstraint(
            model_name="corememory",
            constraint=models.CheckConstraint(
                condition=models.Q(("limit__gte", django.db.models.functions.text.Length(models.F("value")))),
                name="core_memory_fits",
            ),
        ),
        migrations.AddConstraint(
            model_name="corerevision",
            constraint=models.UniqueConstraint(fields=("scope", "core", "number"), name="core_revision_once"),
        ),
        migrations.AddConstraint(
            model_name="intake",
            constraint=models.CheckConstraint(
                condition=models.Q(("every_turns__gte", 1), ("every_turns__lte", 1000)), name="intake_every_turns"
            ),
        ),
        migrations.AddIndex(
            model_name="intakerun",
            index=models.Index(fields=["scope", "-id"], name="intake_run_by_scope"),
        ),
        migrations.AddIndex(
            model_name="intakeitem",
            index=models.Index(fields=["scope", "observation"], name="intake_item_by_row"),
        ),
        migrations.AddIndex(
            model_name="intakeitem",
            index=models.Index(fields=["run", "id"], name="intake_item_by_run"),
        ),
        migrations.AddConstraint(
            model_name="extraction",
            constraint=models.UniqueConstraint(fields=("scope", "episode"), name="extraction_once"),
        ),
        migrations.AddConstraint(
            model_name="residue",
            constraint=models.UniqueConstraint(fields=("scope", "text_key"), name="residue_once"),
        ),
        migrations.AddIndex(
            model_name="receipt",
            index=models.Index(fields=["at"], name="receipt_by_age"),
        ),
        migrations.AddConstraint(
            model_name="receipt",
            constraint=models.UniqueConstraint(fields=("token", "key"), name="receipt_once"),
        ),
    ]
