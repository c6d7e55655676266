"""Beat looks every five minutes for turns that wait to be read, in scopes for which a person enabled that.

It is housekeeping, and on: it asks no model and writes no memory, and every scope is off until somebody enables it.
"""

from __future__ import annotations

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

NAME = "housekeeping: read turns that wait"
EVERY = 300


def seed(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Add the entry, unless one of that name is there."""
    interval = apps.get_model("django_celery_beat", "IntervalSchedule")
    schedule, _ = interval.objects.get_or_create(every=EVERY, period="seconds")
    values = {
        "task": "observations.tasks.observe_due",
        "interval": schedule,
        "description": "Asks workers to read the turns that wait, in scopes whose turns are read in the background.",
        "expire_seconds": EVERY,
    }
    apps.get_model("django_celery_beat", "PeriodicTask").objects.get_or_create(name=NAME, defaults=values)


def unseed(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Remove it again."""
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name=NAME).delete()


class Migration(migrations.Migration):
    """One entry of the schedule."""

    dependencies = [
        ("consolidation", "0013_keys_by_schedule"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [migrations.RunPython(seed, unseed)]
