"""Beat may have a model asked for the keys that observations lack, every night before planning.

It is off until a person enables it: it costs money, and no scope needs it.
"""

from __future__ import annotations

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

NAME = "keys: every scope that lacks some"


def seed(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Add the entry, unless one of that name is there."""
    crontab = apps.get_model("django_celery_beat", "CrontabSchedule")
    nightly, _ = crontab.objects.get_or_create(  # an hour before planning, which finds candidates by them
        minute="17", hour="1", day_of_week="*", day_of_month="*", month_of_year="*", timezone="UTC"
    )
    values = {
        "task": "consolidation.tasks.keys_due",
        "crontab": nightly,
        "enabled": False,
        "description": "Asks the language model for the keys that observations lack. Does nothing without a model.",
        "expire_seconds": 3_600,
    }
    apps.get_model("django_celery_beat", "PeriodicTask").objects.get_or_create(name=NAME, defaults=values)


def unseed(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Remove it again."""
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name=NAME).delete()


class Migration(migrations.Migration):
    """One entry of the schedule."""

    dependencies = [
        ("consolidation", "0011_object_of_the_right_claim"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [migrations.RunPython(seed, unseed)]
