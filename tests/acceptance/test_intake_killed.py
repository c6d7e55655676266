"""Kill -9 at every statement of a run of the background: a batch is stored whole or not at all, once (R55, R58, C17).

A naive pipeline, kept beside ours, must fail the same examination: that is how we know that it bites.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection, transaction

from consolidation import invariants
from observations import ingest, store
from observations.models import Episode, Extraction, IntakeRun, Scope
from observations.records import Claim, EvidenceRef, WrittenBy
from tests.acceptance import intake_world as world
from tests.acceptance.boundaries import run_in_child
from tests.intaking import HASHING, active, deciding, echo, model
from tests.scripted import ScriptedCompleter

pytestmark = pytest.mark.django_db(transaction=True)

FEWEST_STATEMENTS = 40  # of one run; a smaller number means that the count itself broke
STORING = "SELECT pg_advisory_xact_lock_shared"  # what the storing transaction begins with
Act = Callable[[Scope], object]


def _examine(act: Act, *, every: int = 1) -> Iterator[tuple[str, str]]:
    """Kill the act after each of its statements; yields (statement, what is wrong there or '').

    Of what it reads before it stores anything, again and again for each claim, one of a kind is enough. `every` names
    how many statements are passed over for one death.
    """
    first = world.build()
    before = world.dump(first)
    whole = run_in_child(lambda: act(first))
    assert whole.code == 0, "it does not even work unharmed"
    after = world.dump(first)
    assert before != after
    passed: set[str] = set()
    stores = False
    for position, (statement, side) in enumerate(whole.boundaries):
        stores = stores or statement.startswith(STORING)
        if side == "before" or (not stores and statement in passed):  # nothing happens after one and before the next
            continue
        passed.add(statement)
        if position % (2 * every) != 1:  # odd positions are those after a statement
            continue
        here = world.build()
        assert world.dump(here) == before, "the world is not the same every time"
        death = run_in_child(lambda here=here: act(here), kill_at=position)  # type: ignore[misc]
        assert death.code == -9, f"the child outlived boundary {position}"
        yield statement, _wrong(act, here, before, after)


def _wrong(act: Act, here: Scope, before: list[str], after: list[str]) -> str:
    """Why the store is not sound after the death, or does not come to the undisturbed end when it is run again."""
    if world.dump(here) not in (before, after):
        return "half done"
    world.let_the_lease_end(here)
    act(here)
    return "" if world.dump(here) == after else "running again does not converge"


def test_killed_after_any_statement_a_run_stores_its_batch_whole_or_not_at_all_and_the_next_converges(
    show: Callable[[str], None],
) -> None:
    """R131: whenever a worker dies, at any of its statements."""
    examined = list(_examine(world.act))
    lines = [f"  {statement:<62}{wrong or 'sound'}" for statement, wrong in examined]
    show("\n".join([f"a run of the background: killed (exit status -9) at {len(examined)} statements", *lines]))
    assert len(examined) >= FEWEST_STATEMENTS
    assert [line for line in examined if line[1]] == []
    states = set(IntakeRun.objects.values_list("state", flat=True))
    assert states == {"done", "interrupted"}  # no dead run is left that seems to run
    assert [str(found) for found in invariants.check()] == []


def test_the_world_holds_every_kind_of_decision() -> None:
    here = world.build()
    report = world.act(here)
    assert (report.updated, report.replaced, report.known, report.added, report.review) == (1, 1, 1, 1, 2)
    assert (report.turns, report.left) == (7, 0)
    assert len(active(here)) == 8


@pytest.mark.parametrize("purpose", ["extract", "reconcile"])
def test_a_crash_between_an_answer_and_its_storing_costs_the_answer_and_nothing_else(purpose: str) -> None:
    """The reply came and was paid for; the turns are asked about again."""
    here, undisturbed = world.build(), world.build()
    world.act(undisturbed)
    before = world.dump(here)

    def dying(answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def die(request: Any) -> Any:
            answer(request)
            os.kill(os.getpid(), signal.SIGKILL)

        return die

    answers = {"extract": echo, "reconcile": deciding(world.DECIDES)}
    answers[purpose] = dying(answers[purpose])
    death = run_in_child(lambda: world.act(here, completer=ScriptedCompleter(by_purpose=answers)))
    assert (death.code, world.dump(here)) == (-9, before)
    assert world.act(here).state == "already running"  # its lease holds for half a minute
    world.let_the_lease_end(here)
    report = world.act(here)
    assert (report.state, world.dump(here)) == ("done", world.dump(undisturbed))


# --- the naive control ----------------------------------------------------------------------------------------------


def _naive(here: Scope) -> None:
    """What sample code does: the cursor first, so that nothing is read twice; then each claim by itself."""
    run = IntakeRun.objects.filter(scope=here).first()
    assert run is not None
    unread = Episode.objects.filter(scope=here, extractions=None).order_by("happened_at", "seq", "pk")
    for turn in unread:
        with transaction.atomic():
            store.take_turns(run=run, states={turn.pk: Extraction.State.CLAIMS})
        claim = Claim(text=turn.text or "", created_at=turn.happened_at, evidence=(EvidenceRef(turn.source_uri),))
        with transaction.atomic():
            store.add_observations(scope=here, claims=[claim], written_by=WrittenBy.BACKGROUND)


def test_the_control_a_naive_pipeline_is_found_out_at_most_of_its_statements(show: Callable[[str], None]) -> None:
    """A6: at least 70% of the statements at which it dies leave a store that ours never leaves."""
    examined = list(_examine(_naive, every=3))
    found_out = [line for line in examined if line[1]]
    show(f"naive pipeline: found out at {len(found_out)} of {len(examined)} statements")
    assert len(found_out) >= 0.7 * len(examined)


def test_model_and_embedder_are_asked_outside_every_transaction() -> None:
    """R132: locks are held for milliseconds, whatever a model takes."""
    here, seen = world.build(), list[bool]()

    def outside(answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def asked(about: Any) -> Any:
            seen.append(connection.in_atomic_block)
            return answer(about)

        return asked

    answers = {"extract": outside(echo), "reconcile": outside(deciding(world.DECIDES))}
    embed = SimpleNamespace(profile=HASHING.profile, embed=outside(HASHING.embed))
    completer = ScriptedCompleter(by_purpose=answers)
    ingest.run_intake(scope=here, by="test", completer=completer, embedder=embed)
    assert (len(seen), set(seen)) == (3, {False})


def test_the_model_of_the_world_is_asked_twice_a_batch() -> None:
    """R124."""
    here = world.build()
    completer = model(reconcile=deciding(world.DECIDES))
    world.act(here, completer=completer)
    assert [request.purpose for request in completer.requests] == ["extract", "reconcile"]
