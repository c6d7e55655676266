"""What counting the errors of rules needs: an index of what was applied without a decision, and beat's look at it.

The look is housekeeping, and on: it writes no memory; it asks people about what a crash left unasked, and takes its
automatic status from what is known to be wrong too often.
"""

from __future__ import annotations

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

NAME = "housekeeping: measured error"
EVERY = 900

# Every undo and every judgement counts the labels of one band again.
INDEX = """
CREATE INDEX operation_unasked ON consolidation_operation (kind, rule, band)
  WHERE approval = 'AUTO' AND decided_by = '' AND status IN ('applied', 'undone');
"""


def seed(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Add the entry, unless one of that name is there."""
    interval = apps.get_model("django_celery_beat", "IntervalSchedule")
    schedule, _ = interval.objects.get_or_create(every=EVERY, period="seconds")
    values = {
        "task": "consolidation.tasks.measure",
        "interval": schedule,
        "description": "Chooses what people are asked about afterwards, and demotes rules that are wrong too often.",
        "expire_seconds": EVERY,
    }
    apps.get_model("django_celery_beat", "PeriodicTask").objects.get_or_create(name=NAME, defaults=values)


def unseed(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Remove it again."""
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name=NAME).delete()


class Migration(migrations.Migration):
    """One index, one entry of the schedule."""

    dependencies = [
        ("consolidation", "0017_measuring"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [
        migrations.RunSQL(INDEX, "DROP INDEX operation_unasked"),
        migrations.RunPython(seed, unseed),
    ]
