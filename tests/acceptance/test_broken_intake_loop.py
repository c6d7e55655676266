"""Outages at every point of a run, through the provider's SDK and the database, and the loop on one scope.

A run that failed is shown as failed and loses nothing; what was asked of people is decided, applied and undone.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection
from pytest_django import Settings

from consolidation import review, runner
from consolidation import tasks as review_tasks
from consolidation.models import Operation
from consolidation.operations import Kind
from observations import ingest, outbox, prompting, tasks
from observations.llm import Request
from observations.models import Extraction, IntakeRun, ModelCall, Observation, Outbox, database_now
from tests import messages_stub as stub
from tests.building import scope
from tests.intaking import HASHING, Decides, active, deciding, echo, enabled, items, model, read, the, told, turn
from tests.messages_stub import Received, Scripted, messages_stub
from tests.unit.model_door import KEY

pytestmark = pytest.mark.django_db(transaction=True)

OSLO, LYON = "Ana lives in Oslo", "Ana lives in Lyon"


@contextmanager
def server(
    settings: Settings, decides: Decides | None = None, *, failing: str = "", reply: Scripted | None = None
) -> Iterator[None]:
    """The Messages API, answered as `echo` and `deciding` do, but for the questions of one purpose if one fails."""

    def answer(received: Received) -> Scripted:
        purpose = "extract" if "<turns>" in received.text else "reconcile"
        if purpose == failing and reply is not None:
            return reply
        asked = Request(purpose, "1", received.system, received.text, {}, 1000, None)
        if purpose == "reconcile":
            return stub.ok(json.dumps(deciding(decides)(asked)))
        return stub.ok(json.dumps(echo(asked)))

    with messages_stub(answer) as running:
        settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL = KEY, running.url
        settings.PALIMPSEST_MODEL_RETRIES, settings.PALIMPSEST_BUDGET_DOLLARS_PER_DAY = 0, 5.0
        yield


def due() -> None:
    """As if the worker's lease, or the wait after an outage, had passed."""
    Outbox.objects.filter(task=ingest.EXTRACT, done_at=None).update(due_at=database_now())


# --- outages ---------------------------------------------------------------------------------------------------------

OUTAGES = {
    "429": stub.limited(),
    "529": stub.overloaded(),
    "a refused key": stub.failing(401, "authentication_error"),
    "a web page": stub.malformed(b"<html>Sign in</html>", "text/html"),
    "hung up": stub.hung_up(),
}


@pytest.mark.parametrize("name", OUTAGES)
def test_an_outage_of_extraction_fails_the_run_and_gives_no_turn_up(name: str, settings: Settings) -> None:
    """Also where a proxy answers 200 with a page of its own: no turn is to blame, and none is asked about less."""
    here = enabled(scope(), every_turns=1)
    with server(settings, failing="extract", reply=OUTAGES[name]):
        told(here, OSLO)
        tasks.sweep.run()
    [run] = IntakeRun.objects.all()
    assert (run.state, bool(run.error), Extraction.objects.count(), active(here)) == ("failed", True, 0, [])
    row = Outbox.objects.get(task=ingest.EXTRACT)
    assert (row.done_at, row.attempts, row.last_error) == (None, 0, f"waits: {run.error}")
    assert ModelCall.objects.count() == 1
    with server(settings):
        due()
        tasks.sweep.run()
    assert active(here) == [OSLO]


@pytest.mark.parametrize("reply", [stub.refusal(), stub.cut_off(), stub.ok("")], ids=["refusal", "cut off", "empty"])
def test_an_answer_that_cannot_be_used_three_times_is_visible_and_no_success(
    reply: Scripted, settings: Settings
) -> None:
    """C2: every run says that it did not read the turn."""
    here = enabled(scope(), every_turns=1)
    with server(settings, failing="extract", reply=reply):
        told(here, OSLO)
        tasks.sweep.run()
    runs = IntakeRun.objects.values_list("state", "figures__unusable", "error")
    assert len(runs) == 3
    assert all(unusable == 1 and "could not be used" in error for _, unusable, error in runs)
    assert (ingest.intake_of(scope=here).stuck, Extraction.objects.get().attempts) == (1, 3)


@pytest.mark.parametrize("name", [*OUTAGES, "refusal", "cut off"])
def test_an_outage_of_the_reconciler_adds_flagged_and_says_so(name: str, settings: Settings) -> None:
    here = enabled(scope(), every_turns=1)
    told(here, OSLO)
    read(here)
    others = {"refusal": stub.refusal(), "cut off": stub.cut_off()}
    with server(settings, failing="reconcile", reply={**OUTAGES, **others}[name]):
        told(here, LYON)
        tasks.sweep.run()
    assert (active(here), the(LYON, here).reconciled_at) == ([OSLO, LYON], None)
    run = IntakeRun.objects.order_by("pk").last()
    assert run is not None
    assert (run.state, run.error.startswith("Some claims were stored without being compared.")) == ("done", True)


def test_a_budget_that_is_spent_in_the_middle_keeps_what_was_stored(settings: Settings) -> None:
    here = enabled(scope(), every_turns=1)
    with server(settings):
        settings.PALIMPSEST_BUDGET_DOLLARS_PER_SCOPE_PER_DAY = 0.0013
        told(here, *(turn(f"Claim {n} of session", number=n, session=f"s{n}") for n in range(20)))
        tasks.sweep.run()
    [run] = IntakeRun.objects.all()
    assert (run.state, "spent" in run.error) == ("failed", True)
    assert 0 < run.figures["added"] == len(active(here)) < 20
    with server(settings):
        settings.PALIMPSEST_BUDGET_DOLLARS_PER_SCOPE_PER_DAY = 1.0
        due()
        tasks.sweep.run()
    assert sorted(active(here)) == sorted(f"Claim {n} of session" for n in range(20))


@pytest.mark.parametrize("purpose", ["extract", "reconcile"])
def test_a_database_that_goes_away_during_the_models_answer_loses_the_batch_and_nothing_else(purpose: str) -> None:
    here = enabled(scope())
    told(here, OSLO)
    read(here)
    told(here, LYON)

    def gone(request: Request) -> Any:
        with pytest.raises(DatabaseError), connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return echo(request) if purpose == "extract" else deciding()(request)

    broken = model(gone) if purpose == "extract" else model(reconcile=gone)
    with pytest.raises(DatabaseError):
        read(here, completer=broken)
    connection.close()
    assert active(here) == [OSLO]
    due()
    assert read(here).added == 1
    assert list(IntakeRun.objects.order_by("pk").values_list("state", flat=True)) == ["done", "interrupted", "done"]


# --- the loop --------------------------------------------------------------------------------------------------------


def verified() -> str:
    """What the invariants say; "" where all of them hold."""
    out = io.StringIO()
    call_command("memory", "verify", stdout=out)
    lines = out.getvalue().splitlines()
    return "\n".join(line for line in lines if " ok " not in line and " a test " not in line)


def decide(operation: Operation) -> None:
    keep = operation.product.get("suggested_keep")
    decision = review.Decision(keep=keep) if operation.kind == Kind.SUPERSEDE else review.Decision()
    shown = review.shown_digest(operation=operation)
    review.approve(operation=operation, by="rev", digest=shown, decision=decision, reason="seen")


def test_the_loop_of_the_product_on_one_scope(settings: Settings) -> None:
    """Observe, extract, reconcile, plan, review, apply, undo and prompt, by the functions that workers call."""
    here = enabled(scope(), every_turns=3)
    waiting, shipped, left = "Ana is waiting on the relay fix", "The relay fix shipped", "Ana has left Oslo for good"
    tea, coffee = "Ana drinks green tea", "Ana drinks only coffee"
    decides: Decides = {
        shipped: ("DELETE", waiting, True),  # the user's own later word
        left: ("DELETE", OSLO, False),  # without a replacement
        coffee: ("UPDATE", tea, False),  # somebody else's word
    }
    with server(settings, decides):
        told(here, waiting, OSLO, tea, "Hello Bo")
        tasks.sweep.run()
        told(here, shipped, left, turn(coffee, number=9, speaker="Bo"), turn(f"{tea}.", number=10, speaker="Bo"))
        tasks.sweep.run()
    current = [OSLO, tea, shipped, left, coffee]
    assert active(here) == current
    assert Observation.objects.get(text=waiting).superseded_by == the(shipped, here)
    assert [verdict for verdict, _ in items(here)] == [*["add"] * 3, "delete", "review", "review", "noop"]
    settings.ANTHROPIC_API_KEY = ""  # the planner asks nothing
    review_tasks.plan_scope.run(here.pk, "w1")
    asked = list(Operation.objects.order_by("pk"))
    assert [(each.kind, each.status) for each in asked] == [("archive", "needs_human"), ("supersede", "needs_human")]
    for operation in asked:
        decide(operation)
        assert runner.apply(operation=operation, by="ops").outcome == "applied"
    assert (active(here), verified()) == ([shipped, left, coffee], "")
    shown = prompting.prompt(scope=here, about="the relay fix of Ana", embedder=HASHING).text
    assert shipped in shown
    assert waiting not in shown
    for operation in reversed(asked):
        operation.refresh_from_db()
        assert runner.undo(operation=operation, by="ops").outcome == "undone"
    assert (active(here), verified()) == (current, "")
    assert outbox.backlog().stopped == 0
