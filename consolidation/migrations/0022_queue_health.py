"""Beat looks once an hour what has waited past its age: people are mailed, and in the end an item goes stale."""

from __future__ import annotations

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

HOURLY = 3_600
ENTRIES = [  # name, task, what it does
    (
        "queue: tell of what is overdue",
        "consolidation.tasks.tell_overdue",
        "Mails reviewers once per item. Reads only.",
    ),
    (
        "queue: let the undecided go stale",
        "consolidation.tasks.expire_waiting",
        "Makes stale what nobody decided for as long as its policy lets it wait. Never approves; writes no memory.",
    ),
]


def seed(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Add the entries that are missing."""
    interval = apps.get_model("django_celery_beat", "IntervalSchedule")
    task = apps.get_model("django_celery_beat", "PeriodicTask")
    hourly, _ = interval.objects.get_or_create(every=HOURLY, period="seconds")
    for name, path, description in ENTRIES:
        values = {"task": path, "interval": hourly, "description": description, "expire_seconds": HOURLY}
        task.objects.get_or_create(name=name, defaults=values)


def unseed(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Remove them again."""
    names = [name for name, *_ in ENTRIES]
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name__in=names).delete()


class Migration(migrations.Migration):
    """Two entries of the schedule."""

    dependencies = [
        ("consolidation", "0021_review_desk_guarded"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [migrations.RunPython(seed, unseed)]
