"""What beat runs: housekeeping that writes no memory, always on, and nightly planning, off until a person enables it
(R94).

Data, and not `beat_schedule` settings, which beat writes back over an admin's edits at every start. An entry of the
same name that is already there is kept as it is.
"""

from __future__ import annotations

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

SECONDS = "seconds"
HOUSEKEEPING = [  # name, task, every so many seconds, what it does
    ("housekeeping: sweep the outbox", "observations.tasks.sweep", 30, "Does the work that waits as outbox rows."),
    ("housekeeping: age the outbox", "observations.tasks.age_outbox", 86_400, "Forgets rows finished a month ago."),
    ("housekeeping: verify", "consolidation.tasks.verify", 3_600, "Looks whether the invariants hold, for /healthz."),
]
PLANNING = "planning: every scope that changed"


def seed(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Add the entries that are missing."""
    task = apps.get_model("django_celery_beat", "PeriodicTask")
    interval = apps.get_model("django_celery_beat", "IntervalSchedule")
    crontab = apps.get_model("django_celery_beat", "CrontabSchedule")
    for name, path, every, description in HOUSEKEEPING:
        schedule, _ = interval.objects.get_or_create(every=every, period=SECONDS)
        values = {"task": path, "interval": schedule, "description": description, "expire_seconds": every}
        task.objects.get_or_create(name=name, defaults=values)
    # 17 minutes past: two beats with clocks a little apart still name the same hour, which is a run's window.
    nightly, _ = crontab.objects.get_or_create(
        minute="17", hour="2", day_of_week="*", day_of_month="*", month_of_year="*", timezone="UTC"
    )
    values = {
        "task": "consolidation.tasks.plan_all",
        "crontab": nightly,
        "enabled": False,
        "description": "Plans every scope that changed. Planning writes nothing to memory; people apply.",
        "expire_seconds": 3_600,
    }
    task.objects.get_or_create(name=PLANNING, defaults=values)


def unseed(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Remove them again."""
    names = [PLANNING, *(name for name, *_ in HOUSEKEEPING)]
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name__in=names).delete()


class Migration(migrations.Migration):
    """Depends on beat's newest table layout."""

    dependencies = [
        ("consolidation", "0002_integrity"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [migrations.RunPython(seed, unseed)]
