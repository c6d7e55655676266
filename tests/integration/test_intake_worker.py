"""Workers that read turns: asked by enough turns or by the schedule, one at a time, never in the way of who observes.

A Celery message is a wake-up; what there is to do is a row of the outbox (R33, R121, R132, C17).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from celery import current_app
from django.db import connection

from consolidation.pausing import pause
from observations import ingest, outbox, spending, tasks
from observations.ingest.background import observing
from observations.llm import Answer, BudgetSpent, Denied, ModelFailed, NoModel, Unreachable
from observations.models import IntakeRun, Outbox, Scope, database_now
from tests.building import scope
from tests.intaking import HASHING, active, echo, enabled, model, read, told, turn
from tests.scripted import ScriptedCompleter

pytestmark = pytest.mark.django_db

PLANT = "The office plant is watered on Mondays"


@pytest.fixture
def configured(settings: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A model is configured, and answers from a script that a test may change: what it says to an extraction."""
    settings.ANTHROPIC_API_KEY = "a key"
    script: list[Any] = [echo]
    monkeypatch.setattr(spending, "door", lambda *, scope_id: model(script[0]))
    return script


def work() -> Outbox | None:
    """Do what the outbox holds of this, and give the row back."""
    Outbox.objects.exclude(task=ingest.EXTRACT).update(done_at=database_now())
    outbox.work(seconds=5)
    return Outbox.objects.filter(task=ingest.EXTRACT).order_by("-pk").first()


def open_rows() -> int:
    return Outbox.objects.filter(task=ingest.EXTRACT, done_at=None).count()


# --- when a worker is asked ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("configured")
def test_a_worker_is_asked_once_enough_turns_wait_and_observe_says_so() -> None:
    """The default is every five turns."""
    here = scope()
    ingest.enable_intake(scope=here, by="rita")
    answers = [ingest.observe(scope=here, turns=[turn(f"Claim {n} holds", number=n)], by="test") for n in range(6)]
    assert [(each.extraction, each.waiting, each.every) for each in answers] == [
        *(("waiting", n, 5) for n in range(1, 5)),
        ("queued", 5, 5),
        ("queued", 6, 5),
    ]
    assert open_rows() == 1
    row = work()
    assert row is not None
    assert (row.done_at is not None, row.payload) == (True, {"trigger": "turns"})
    assert len(active(here)) == 6
    assert (IntakeRun.objects.get().trigger, IntakeRun.objects.get().by) == ("turns", "intake")
    assert ingest.observe(scope=here, turns=[turn("Claim 9 holds", number=9)], by="test").waiting == 1


def test_without_a_model_observe_says_so_and_nobody_is_asked(settings: Any) -> None:
    settings.ANTHROPIC_API_KEY = ""
    here = enabled(scope(), every_turns=1)
    observed = ingest.observe(scope=here, turns=[turn(PLANT)], by="test")
    assert (observed.extraction, observed.waiting, open_rows()) == ("no model", 1, 0)
    assert tasks.observe_due.run() == "no model"


@pytest.mark.usefixtures("configured")
def test_turns_that_are_there_already_ask_for_nothing() -> None:
    here = enabled(scope(), every_turns=1)
    told(here, PLANT)
    read(here)
    Outbox.objects.all().delete()
    observed = ingest.observe(scope=here, turns=[turn(PLANT)], by="test")
    assert (observed.written[0].fate, observed.extraction, observed.waiting, open_rows()) == (
        "already there",
        "waiting",
        0,
        0,
    )


@pytest.mark.usefixtures("configured")
def test_the_schedule_asks_for_scopes_in_which_a_turn_has_waited_and_for_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, young, off = enabled(scope("a/1")), enabled(scope("a/2")), scope("a/3")
    for within in (here, young, off):
        told(within, PLANT)
    monkeypatch.setattr(tasks, "WAITED_SECONDS", -1.0)
    read(young)
    assert tasks.observe_due.run() == "1 scopes"
    assert Outbox.objects.get(task=ingest.EXTRACT, done_at=None).scope == here
    assert tasks.observe_due.run() == "1 scopes"
    assert open_rows() == 1
    monkeypatch.setattr(tasks, "WAITED_SECONDS", 300.0)
    told(young, "The lift was repaired")
    assert ingest.queue_due(older_than_seconds=300.0) == 0
    work()
    assert IntakeRun.objects.get(scope=here).trigger == "schedule"


@pytest.mark.usefixtures("configured")
def test_a_broker_that_is_dead_is_no_concern_of_who_observes(monkeypatch: pytest.MonkeyPatch) -> None:
    """R132: the row is there, and the sweeper finds it."""

    def dead(*_: object, **__: object) -> None:
        raise ConnectionError

    monkeypatch.setattr(current_app, "send_task", dead)
    here = enabled(scope(), every_turns=1)
    assert ingest.observe(scope=here, turns=[turn(PLANT)], by="test").extraction == "queued"
    outbox.send_wake()
    assert open_rows() == 1


def test_nothing_of_a_turn_is_in_the_queue(configured: list[Any]) -> None:
    """Ids only."""
    here = enabled(scope(), every_turns=1)
    ingest.observe(scope=here, turns=[turn(PLANT)], by="test")
    work()
    with connection.cursor() as cursor:
        cursor.execute("SELECT string_agg(o::text, ' ') FROM observations_outbox o")
        everything = cursor.fetchone()[0]
    assert "plant" not in everything.casefold()


# --- what a worker does with a failure -------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [Unreachable("Try later."), BudgetSpent("Wait."), Denied("Check the key.")])
def test_an_outage_is_asked_for_again_later_and_uses_up_no_attempt(configured: list[Any], failure: ModelFailed) -> None:
    here = enabled(scope(), every_turns=1)
    ingest.observe(scope=here, turns=[turn(PLANT)], by="test")
    configured[0] = failure
    row = work()
    assert row is not None
    assert (row.done_at, row.attempts, row.last_error) == (None, 0, f"waits: {failure}")
    assert row.due_at > database_now() + timedelta(minutes=50)
    assert IntakeRun.objects.get().state == "failed"
    configured[0] = echo
    assert read(here).added == 1  # by hand, at once


def test_a_model_that_was_taken_away_is_hopeless_until_the_schedule_sees_one_again(
    configured: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = enabled(scope(), every_turns=1)
    ingest.observe(scope=here, turns=[turn(PLANT)], by="test")

    def none(*, scope_id: int) -> ScriptedCompleter:
        raise NoModel("No language model is configured; set ANTHROPIC_API_KEY, then run this again.")

    monkeypatch.setattr(spending, "door", none)
    row = work()
    assert row is not None
    assert (row.done_at is not None, row.last_error.startswith("refused: No language model")) == (True, True)
    run = IntakeRun.objects.get()
    assert (run.state, run.error.startswith("No language model")) == ("failed", True)
    assert read(here, completer=model()).added == 1


def test_turns_whose_answer_was_unusable_are_asked_about_again_by_the_same_job(configured: list[Any]) -> None:
    """Three times in all, then they stay visible and nobody is asked any more."""
    here = enabled(scope(), every_turns=1)
    ingest.observe(scope=here, turns=[turn(PLANT)], by="test")
    configured[0] = "no"
    row = work()
    assert row is not None
    assert (row.done_at is not None, IntakeRun.objects.count()) == (True, 3)
    assert (ingest.intake_of(scope=here).stuck, ingest.intake_of(scope=here).waiting) == (1, 0)
    assert ingest.queue_due(older_than_seconds=-1) == 0


def test_a_failure_of_ours_is_shown_and_tried_again(configured: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    here = enabled(scope(), every_turns=1)
    ingest.observe(scope=here, turns=[turn(PLANT)], by="test")

    def broken(*_: object) -> None:
        raise RuntimeError("The office plant is a secret")

    configured[0] = broken
    row = work()
    assert row is not None
    assert (row.done_at, row.attempts) == (None, 1)
    assert row.last_error.startswith("RuntimeError")
    run = IntakeRun.objects.get()
    assert (run.state, "plant" in run.error) == ("failed", False)


# --- one at a time ---------------------------------------------------------------------------------------------------


def test_a_second_delivery_while_the_first_works_ends_as_already_running(configured: list[Any]) -> None:
    """C17: also for a run by hand."""
    here = enabled(scope(), every_turns=1)
    ingest.observe(scope=here, turns=[turn(PLANT)], by="test")
    said: list[object] = []

    def slow(request: Any) -> Any:
        payload = {"trigger": "turns"}
        said.append(outbox.perform(task=ingest.EXTRACT, scope_id=here.pk, key=observing.KEY, payload=payload))
        said.append(read(here).state)
        return echo(request)

    configured[0] = slow
    work()
    assert said == [outbox.ALREADY_RUNNING, "already running"]
    assert (active(here), IntakeRun.objects.count()) == ([PLANT], 1)


def test_a_worker_waits_for_a_run_by_hand_too(configured: list[Any]) -> None:
    here = enabled(scope(), every_turns=1)
    told(here, PLANT)
    taken: list[int] = []

    def slow(request: Any) -> Any:
        taken.append(outbox.work(seconds=1))
        return echo(request)

    Outbox.objects.exclude(task=ingest.EXTRACT).update(done_at=database_now())
    assert read(here, completer=model(slow)).added == 1
    assert (taken, open_rows(), IntakeRun.objects.count()) == ([0], 0, 1)


def test_what_is_left_after_some_minutes_is_the_same_rows_next_job(
    configured: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job of a worker has nine minutes; nobody else may begin on the scope in between."""
    here = enabled(scope(), every_turns=1)
    told(here, *(turn(f"Claim {n} of session", number=n, session=f"s{n}") for n in range(3)))
    report = ingest.run_taken(
        scope=here, trigger="turns", by="intake", completer=model(), embedder=HASHING, seconds=-1.0
    )
    assert (report.turns, report.left) == (0, 3)
    monkeypatch.setattr(ingest, "SECONDS", -1.0)
    payload = {"trigger": "turns"}
    said = outbox.perform(task=ingest.EXTRACT, scope_id=here.pk, key=observing.KEY, payload=payload)
    assert said == outbox.MORE
    row = Outbox.objects.get(task=ingest.EXTRACT)
    assert (row.done_at, row.attempts, row.last_error) == (None, 0, "")


def test_a_scope_that_was_switched_off_meanwhile_is_left_at_once(configured: list[Any]) -> None:
    here = enabled(scope(), every_turns=1)
    told(here, *(turn(f"Claim {n} of session", number=n, session=f"s{n}") for n in range(3)))

    def off(request: Any) -> Any:
        ingest.disable_intake(scope=here, by="rita")
        return echo(request)

    report = read(here, completer=model(off))
    assert (report.added, report.left) == (1, 2)
    assert Answer.NO_MODEL is not report.failure


def test_a_hold_and_a_pause_stop_operations_and_no_reading(configured: list[Any]) -> None:
    """Reads and writes go on: what is said meanwhile is kept, and nothing that was there is lost."""
    here = enabled(scope(), every_turns=1)
    ingest.hold(scope=here, by="olga", reason="a dispute")
    pause(scope=here, by="olga")
    told(here, PLANT)
    work()
    assert active(here) == [PLANT]


def test_two_scopes_are_read_by_rows_of_their_own(configured: list[Any]) -> None:
    """C6: no question holds two scopes."""
    for name in ("a/1", "a/2"):
        told(enabled(scope(name), every_turns=1), f"Claim of {name}")
    assert open_rows() == 2
    work()
    assert [active(within) for within in Scope.objects.order_by("name")] == [["Claim of a/1"], ["Claim of a/2"]]
