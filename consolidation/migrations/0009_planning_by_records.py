"""Beat looks every five minutes for scopes that gained as many records as their policy asks for (R33).

It is housekeeping, and on: it plans nothing but what a policy's trigger `records` names, and planning writes no memory.
"""

from __future__ import annotations

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

NAME = "housekeeping: plan what is due by its records"
EVERY = 300


def seed(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Add the entry, unless one of that name is there."""
    interval = apps.get_model("django_celery_beat", "IntervalSchedule")
    schedule, _ = interval.objects.get_or_create(every=EVERY, period="seconds")
    values = {
        "task": "consolidation.tasks.plan_due",
        "interval": schedule,
        "description": "Plans the scopes whose policy has the trigger 'records', once enough of them are new.",
        "expire_seconds": EVERY,
    }
    apps.get_model("django_celery_beat", "PeriodicTask").objects.get_or_create(name=NAME, defaults=values)


def unseed(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Remove it again."""
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name=NAME).delete()


class Migration(migrations.Migration):
    """One entry of the schedule."""

    dependencies = [
        ("consolidation", "0008_engine_integrity"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [migrations.RunPython(seed, unseed)]
