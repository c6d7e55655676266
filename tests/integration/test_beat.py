"""What beat runs: housekeeping always, planning only after a person enabled it, and nothing that writes memory (R94,
E4).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from datetime import timedelta

import pytest
from celery import current_app
from django.apps import apps
from django.db import connection
from django_celery_beat.models import CrontabSchedule, PeriodicTask
from django_celery_beat.schedulers import DatabaseScheduler

from observations.models import Outbox, database_now
from tests.building import observe, scope

PLANNING = "consolidation.tasks.plan_all"
KEYS = "consolidation.tasks.keys_due"
PROBING = "consolidation.tasks.run_suites"
schedule = importlib.import_module("consolidation.migrations.0003_schedule")
by_records = importlib.import_module("consolidation.migrations.0009_planning_by_records")
keys = importlib.import_module("consolidation.migrations.0013_keys_by_schedule")
turns = importlib.import_module("consolidation.migrations.0014_intake_by_schedule")
error = importlib.import_module("consolidation.migrations.0018_accuracy")
suites = importlib.import_module("consolidation.migrations.0019_suites_by_schedule")
health = importlib.import_module("consolidation.migrations.0022_queue_health")
SEEDS = (schedule, by_records, keys, turns, error, suites, health)


@pytest.fixture
def beats_own_connection(transactional_db: None) -> Iterator[None]:
    """Beat closes and commits as it likes; the schedule is put back afterwards, because the suite's flush leaves it
    alone.
    """
    yield
    PeriodicTask.objects.all().delete()
    for migration in SEEDS:
        migration.seed(apps, None)


def beat() -> DatabaseScheduler:
    """Beat's scheduler, which at the end of this process does not write to a database that is gone."""
    scheduler = DatabaseScheduler(app=current_app, lazy=False)
    scheduler._finalize.cancel()
    return scheduler


def entries(*, enabled: bool) -> dict[str, str]:
    return dict(PeriodicTask.objects.filter(enabled=enabled).values_list("task", "name"))


@pytest.mark.django_db
def test_housekeeping_is_on_and_what_plans_or_costs_money_is_off_until_somebody_enables_it() -> None:
    """R131."""
    assert set(entries(enabled=True)) == {
        "observations.tasks.sweep",
        "observations.tasks.age_outbox",
        "observations.tasks.observe_due",
        "consolidation.tasks.plan_due",
        "consolidation.tasks.verify",
        "consolidation.tasks.measure",
        "consolidation.tasks.tell_overdue",
        "consolidation.tasks.expire_waiting",
    }
    assert set(entries(enabled=False)) == {PLANNING, KEYS, PROBING}


@pytest.mark.django_db
def test_the_outbox_is_swept_every_thirty_seconds_and_a_message_nobody_took_expires() -> None:
    sweep = PeriodicTask.objects.get(task="observations.tasks.sweep")
    assert (sweep.interval.every, sweep.interval.period, sweep.expire_seconds) == (30, "seconds", 30)


@pytest.mark.django_db
def test_every_scheduled_task_exists() -> None:
    current_app.loader.import_default_modules()
    for path in PeriodicTask.objects.values_list("task", flat=True):
        assert path in current_app.tasks


@pytest.mark.django_db
def test_nothing_that_is_scheduled_writes_memory() -> None:
    """Every seeded task is run; the tables of memory stay as they were (DESIGN 7, C12)."""
    within = scope("team-a/u1")
    observe("Prefers tea", within=within)
    observe("Prefers tea.", within=within)
    current_app.loader.import_default_modules()
    Outbox.objects.update(done_at=database_now())  # the embedding the write asked for is not the schedule's doing
    before = snapshot()
    for path in PeriodicTask.objects.values_list("task", flat=True):
        current_app.tasks[path].run()
    assert snapshot() == before


def snapshot() -> dict[str, str]:
    tables = ("observation", "episode", "evidence", "embedding", "lineage", "use", "transition", "tombstone", "scope")
    with connection.cursor() as cursor:
        found = {}
        for table in tables:
            cursor.execute(
                f"SELECT coalesce(md5(string_agg(t::text, '|' ORDER BY id)), '') FROM observations_{table} t"
            )
            row = cursor.fetchone()
            assert row is not None
            found[table] = row[0]
    return found


@pytest.mark.usefixtures("beats_own_connection")
def test_a_start_of_beat_keeps_what_an_admin_edited_and_adds_nothing() -> None:
    """beat_schedule settings would be written back at every start; rows seeded once are not."""
    PeriodicTask.objects.filter(task="observations.tasks.sweep").update(expire_seconds=99)
    PeriodicTask.objects.filter(task=PLANNING).update(enabled=True)
    nightly = CrontabSchedule.objects.create(minute="17", hour="4")
    PeriodicTask.objects.filter(task=PLANNING).update(crontab=nightly)
    before = set(PeriodicTask.objects.values_list("name", "enabled", "expire_seconds", "crontab__hour"))
    beat()
    assert set(PeriodicTask.objects.values_list("name", "enabled", "expire_seconds", "crontab__hour")) == before


@pytest.mark.django_db
def test_migrating_again_keeps_what_an_admin_edited() -> None:
    PeriodicTask.objects.filter(task=PLANNING).update(enabled=True)
    for migration in SEEDS:
        migration.seed(apps, None)
    assert set(entries(enabled=False)) == {KEYS, PROBING}
    assert PeriodicTask.objects.count() == 11


@pytest.mark.django_db
def test_the_schedule_can_be_taken_back() -> None:
    for migration in reversed(SEEDS):
        migration.unseed(apps, None)
    assert not PeriodicTask.objects.exists()


@pytest.mark.usefixtures("beats_own_connection")
def test_a_beat_that_was_down_for_three_days_asks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """E4: no burst; one message for all the nights that were missed."""
    entry = PeriodicTask.objects.get(task=PLANNING)
    now = database_now()
    entry.crontab, _ = CrontabSchedule.objects.get_or_create(minute="0", hour=str(now.hour), timezone="UTC")
    entry.enabled, entry.last_run_at = True, now - timedelta(days=3)
    entry.save()
    scheduler = beat()
    sent: list[str] = []
    monkeypatch.setattr(scheduler, "apply_async", lambda entry, **_: sent.append(entry.task))
    monkeypatch.setattr(scheduler, "apply_entry", lambda entry, **_: sent.append(entry.task))
    for _ in range(6):
        scheduler.tick()
    assert sent.count(PLANNING) == 1
