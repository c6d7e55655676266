"""Beat may ask every suite in force once a week, so that recall is known over time. Off until a person enables it."""

from __future__ import annotations

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

NAME = "probing: every suite in force"


def seed(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Add the entry, disabled, unless one of that name is there."""
    crontab = apps.get_model("django_celery_beat", "CrontabSchedule")
    weekly, _ = crontab.objects.get_or_create(  # after the night's planning, before anybody works
        minute="17", hour="5", day_of_week="1", day_of_month="*", month_of_year="*", timezone="UTC"
    )
    values = {
        "task": "consolidation.tasks.run_suites",
        "crontab": weekly,
        "enabled": False,
        "description": "Asks every probe suite in force, so that recall is known over time. Writes no memory.",
        "expire_seconds": 3600,
    }
    apps.get_model("django_celery_beat", "PeriodicTask").objects.get_or_create(name=NAME, defaults=values)


def unseed(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Remove it again."""
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name=NAME).delete()


class Migration(migrations.Migration):
    """One entry of the schedule."""

    dependencies = [
        ("consolidation", "0018_accuracy"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [migrations.RunPython(seed, unseed)]
