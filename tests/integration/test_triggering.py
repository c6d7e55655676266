"""When a scope is planned though nobody asked: by the schedule, after so many records, or never (R33, M2)."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from consolidation import revising
from consolidation.models import Pause, Plan, Policy
from consolidation.policy import Policy as Rules
from consolidation.policy import Trigger
from consolidation.triggering import COUNTED, by_schedule, counted, due_by_records
from observations import store
from observations.models import Observation, Scope, database_now
from observations.records import Claim, Status, Turn, WrittenBy
from tests.building import scope

pytestmark = pytest.mark.django_db


def rules(pattern: str, **fields: Any) -> Policy:
    return revising.revise(pattern=pattern, policy=Rules(**fields), by="seed", version=revising.NEW)


def every(pattern: str, number: int) -> Policy:
    return rules(pattern, trigger=Trigger.RECORDS, every_records=number)


def write(within: Scope, number: int, *, word: str = "Fact") -> None:
    with transaction.atomic():
        claims = [Claim(text=f"{word} {n} of {within.pk}") for n in range(number)]
        store.add_observations(scope=within, claims=claims, written_by=WrittenBy.DELIBERATE)


def say(within: Scope, number: int) -> None:
    turns = [Turn(text=f"Turn {n}", external_id=f"e{n}", source_uri=f"u{n}") for n in range(number)]
    with transaction.atomic():
        store.add_episodes(scope=within, turns=turns)


def planned(*scopes: Scope, state: str = "complete") -> Plan:
    """A plan as the planner stores it, with what its snapshot counted."""
    figures = {COUNTED: {str(pk): n for pk, n in counted(scope_ids=[one.pk for one in scopes]).items()}}
    only = scopes[0] if len(scopes) == 1 else None
    return Plan.objects.create(
        scope=only, pattern="x", requested_by="t", trigger="command", figures=figures, state=state
    )


def due() -> list[int]:
    return due_by_records(now=database_now())


# --- by the schedule --------------------------------------------------------------------------------------------------


def test_the_schedule_plans_what_is_said_to_be_scheduled_and_what_nobody_spoke_about() -> None:
    """An explicit word goes before the switch that somebody set for everything."""
    quiet, nightly, byhand, counting = (scope(f"team/{name}") for name in ("quiet", "nightly", "byhand", "counting"))
    rules("team/nightly", trigger=Trigger.SCHEDULE)
    rules("team/byhand")
    every("team/counting", 5)
    assert by_schedule(scopes=[quiet, nightly, byhand, counting]) == [quiet, nightly]
    rules("*")
    assert by_schedule(scopes=[quiet, nightly, byhand, counting]) == [nightly]


def test_a_policy_that_does_not_say_when_leaves_it_to_the_schedule() -> None:
    """Policies stored before there was such a field go on as they did."""
    within = scope("team/u1")
    Policy.objects.create(pattern="team/*", body={"block_cap": 100})
    assert by_schedule(scopes=[within]) == [within]


def test_a_policy_that_cannot_be_read_stays_scheduled_so_that_its_fault_is_shown() -> None:
    within = scope("team/u1")
    Policy.objects.create(pattern="team/*", body={"trigger": "manual", "blokc": 1})
    assert by_schedule(scopes=[within]) == [within]


def test_any_number_of_scopes_takes_one_query() -> None:
    scopes = [scope(f"team/u{number}") for number in range(20)]
    with CaptureQueriesContext(connection) as captured:
        by_schedule(scopes=scopes)
    assert len(captured) == 1


# --- after so many records --------------------------------------------------------------------------------------------


def test_a_scope_is_due_when_it_gained_as_many_records_as_its_policy_asks_for() -> None:
    within = scope("team/u1")
    every("team/*", 5)
    write(within, 4)
    assert due() == []
    say(within, 1)
    assert due() == [within.pk]


def test_only_what_is_new_since_the_last_plan_counts() -> None:
    within = scope("team/u1")
    every("team/*", 3)
    write(within, 10)
    planned(within)
    assert due() == []
    write(within, 2, word="New")
    assert due() == []
    say(within, 1)
    assert due() == [within.pk]
    planned(within)
    assert due() == []


def test_a_plan_of_many_scopes_covers_each_of_them() -> None:
    one, two = scope("team/u1"), scope("team/u2")
    every("team/*", 3)
    write(one, 5)
    write(two, 5)
    planned(one, two)
    write(two, 3, word="New")
    assert due() == [two.pk]


def test_a_plan_that_failed_or_left_the_scope_out_covers_nothing() -> None:
    one, two = scope("team/u1"), scope("team/u2")
    every("team/*", 3)
    write(one, 5)
    planned(two)
    assert due() == [one.pk]


def test_a_scope_with_another_trigger_is_never_due() -> None:
    for name, fields in (("a", {}), ("b", {"trigger": Trigger.SCHEDULE}), ("c", {"trigger": Trigger.MANUAL})):
        within = scope(f"team/{name}")
        write(within, 9)
        if fields:
            rules(f"team/{name}", every_records=1, **fields)
    every("elsewhere/*", 1)
    assert due() == []


def test_scopes_on_hold_or_paused_are_left_alone() -> None:
    held, paused, free = scope("team/held"), scope("team/paused"), scope("team/free")
    every("team/*", 1)
    for within in (held, paused, free):
        write(within, 2)
    Scope.objects.filter(pk=held.pk).update(held_at=database_now(), hold_reason="audit")
    pause = Pause.objects.create(scope=paused, by="maya")
    assert due() == [free.pk]
    pause.delete()
    Pause.objects.create(scope=None, by="maya")
    assert due() == []


def test_a_hold_that_ended_is_no_hold() -> None:
    within = scope("team/u1")
    every("team/*", 1)
    write(within, 1)
    past = database_now() - timedelta(hours=1)
    Scope.objects.filter(pk=within.pk).update(held_at=past, held_until=past, hold_reason="audit")
    assert due() == [within.pk]


def test_a_change_of_status_is_no_new_record() -> None:
    """What is archived or erased stays a row, so the count never falls and a merge makes one record."""
    within = scope("team/u1")
    every("team/*", 2)
    write(within, 3)
    planned(within)
    row = Observation.objects.in_scope(within).first()
    assert row is not None
    with transaction.atomic():
        store.lock_scope(scope_id=within.pk)
        store.move(scope_id=within.pk, ids=[row.pk], to=Status.ARCHIVED)
    assert counted(scope_ids=[within.pk]) == {within.pk: 3}
    assert due() == []


def test_a_policy_that_cannot_be_read_makes_nothing_due() -> None:
    within = scope("team/u1")
    write(within, 9)
    Policy.objects.create(pattern="team/*", body={"trigger": "records", "every_records": 1, "blokc": 1})
    assert due() == []


def test_where_no_policy_counts_records_nothing_is_counted() -> None:
    """What runs every few minutes costs one query while nobody uses it; five when somebody does."""
    for number in range(3):
        write(scope(f"team/u{number}"), 2)
    with CaptureQueriesContext(connection) as captured:
        due_by_records(now=database_now())
    assert len(captured) == 2  # the clock is one of them
    every("team/*", 1)
    with CaptureQueriesContext(connection) as captured:
        assert len(due_by_records(now=database_now())) == 3
    assert len(captured) == 6


@pytest.mark.django_db(transaction=True)
def test_a_write_that_commits_after_the_plan_counts_as_new() -> None:
    """M2: its id and its time are older than the plan; a watermark over either would never count it. 10 rounds."""
    within = scope("team/u1")
    every("team/*", 1)
    for number in range(10):
        wrote, made = threading.Event(), threading.Event()

        def late(number: int = number, wrote: threading.Event = wrote, made: threading.Event = made) -> None:
            try:
                with transaction.atomic():
                    claim = Claim(text=f"Late fact {number}")
                    store.add_observations(scope=within, claims=[claim], written_by=WrittenBy.DELIBERATE)
                    wrote.set()
                    made.wait(20)
            finally:
                connection.close()

        writer = threading.Thread(target=late)
        writer.start()
        assert wrote.wait(20)
        plan = planned(within)
        assert due() == []
        made.set()
        writer.join()
        assert due() == [within.pk]
        newest = Observation.objects.in_scope(within).order_by("-pk").first()
        assert newest is not None
        assert newest.recorded_at < Plan.objects.get(pk=plan.pk).created_at  # the naive control would say: nothing new
        planned(within)
