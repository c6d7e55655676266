"""What reading leaves behind: answers by ids, kept 90 days; and claims that are held back until a person looks."""

from __future__ import annotations

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import observations.models.base


class Migration(migrations.Migration):
    """Forward on any data; backward drops only what this adds."""

    dependencies = [
        ("observations", "0012_revisions_can_be_erased"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="intakeitem",
            options={"permissions": [("decide_held", "Can release or discard claims that are held back")]},
        ),
        migrations.AlterField(
            model_name="intakeitem",
            name="verdict",
            field=models.CharField(
                choices=[
                    ("add", "Add"),
                    ("update", "Update"),
                    ("delete", "Delete"),
                    ("noop", "Noop"),
                    ("refused", "Refused"),
                    ("review", "Review"),
                    ("held", "Held"),
                ],
                max_length=7,
            ),
        ),
        migrations.CreateModel(
            name="GivenAnswer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("answer", models.UUIDField()),
                ("at", models.DateTimeField(db_default=observations.models.base.ClockTimestamp())),
                ("call_site", models.CharField(max_length=40)),
                (
                    "shown",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=list, size=None
                    ),
                ),
                (
                    "left_out",
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
                (
                    "failed",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=40), default=list, size=None
                    ),
                ),
                ("chosen_by", models.CharField(blank=True, default="", max_length=80)),
                (
                    "scope",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="observations.scope"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["scope", "-at"], name="answer_by_time"),
                    models.Index(fields=["at"], name="answer_age"),
                ],
                "constraints": [models.UniqueConstraint(fields=("scope", "answer"), name="answer_once")],
            },
        ),
    ]
