"""Rows that programs and people wrote by hand, under the engine: planned, applied, undone, and verified after each."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from consolidation import invariants, review, rollout
from consolidation.models import Operation
from consolidation.operations import Kind, State
from observations import calls, outbox
from observations.calls import Caller, CallRefused
from observations.models import Observation, Scope, database_now
from tests.acceptance.acting import apply, derived_of, undo
from tests.building import embed, scope, tell
from tests.integration.planning import operations, plan, twins

pytestmark = pytest.mark.django_db(transaction=True)

SCOPE = "team-a/u1"
RIGHTS: dict[str, Any] = {"may_read": True, "may_write": True, "may_propose": True}
PROGRAM = Caller(name="token:0123456789abcdef", pattern="team-a/*", **RIGHTS)
TRUSTED = Caller(name="token:fedcba9876543210", pattern="team-a/*", speaks_for_user=True, **RIGHTS)
PERSON = Caller(name="ana@command", pattern="*", person=True, **RIGHTS)
ANA = {"name": "Ana", "role": "user"}
RACK = {"subject": "relay", "predicate": "sits in"}
TEXTS = (
    "The relay sits in rack 4",
    "the relay sits in rack 4.",
    "The relay sits in rack 7",
    "Relay: rack 4",
    "It rains",
)
KEYS: tuple[dict[str, str], ...] = ({}, {**RACK, "object": "rack 4"}, RACK)


def ask(name: str, caller: Caller = PROGRAM, /, **given: Any) -> Any:
    """Make a call; a refusal is an answer."""
    call = calls.CALLS[name]
    try:
        return call.run(caller=caller, asked=call.takes.model_validate({"scope": SCOPE, **given}))
    except CallRefused as refused:
        return refused


def whole() -> list[invariants.Violation]:
    return invariants.check()


def vectors(within: Scope) -> None:
    embed(list(Observation.objects.active().values_list("pk", flat=True)), within=within)


# --- one after the other ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("act", ["correct", "retire", "remember", "remember as the user", "correct back", "restore"])
def test_a_merge_of_written_rows_can_be_changed_and_what_holds_holds(act: str) -> None:
    within = scope(SCOPE)
    twins(within)
    made = plan(within)
    for operation in operations(made, Kind.MERGE):
        apply(operation)
    assert whole() == []
    applied = list(Operation.objects.filter(status=State.APPLIED))
    derived = derived_of(applied[0])
    later = "Standup moved to 10:00"
    acts: dict[str, Callable[[], Any]] = {
        "correct": lambda: ask("correct", id=derived.pk, text="Standup moved to 10:00"),
        "retire": lambda: ask("retire", id=derived.pk),
        "remember": lambda: ask("remember", text=derived.text),
        "remember as the user": lambda: ask("remember", TRUSTED, text=derived.text, stated_by="user"),
        "correct back": lambda: (
            ask("correct", id=derived.pk, text=later),
            ask("correct", id=Observation.objects.active().get(text=later).pk, text=derived.text),
        ),
        "restore": lambda: (ask("retire", id=derived.pk), ask("restore", id=derived.pk)),
    }
    acts[act]()
    assert whole() == []
    for operation in applied:
        undo(operation)
        assert whole() == []
    rollout.apply_plan(plan=plan(within), by="ann")
    assert whole() == []


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_written_planned_applied_and_undone_in_any_order_holds(seed: int) -> None:
    chance = random.Random(seed)
    within = scope(SCOPE)
    turn = tell("I said that the relay sits in rack 4", within=within, role="user")

    def row() -> int:
        rows = Observation.objects.all() if chance.random() < 0.3 else Observation.objects.active()
        return chance.choice(list(rows.values_list("pk", flat=True)) or [1])

    def claim() -> dict[str, Any]:
        quoted = {"stated_by": "user", "evidence": [{"quote": turn.text, "episode": turn.external_id}]}
        return {"text": chance.choice(TEXTS), **chance.choice(KEYS), **(quoted if chance.random() < 0.3 else {})}

    def who() -> Caller:
        return chance.choice([PROGRAM, TRUSTED, PERSON])

    def settle() -> None:
        for operation in Operation.objects.awaiting_review():
            kept = review.sources_of(operation)[-1].observation_id if operation.kind == Kind.SUPERSEDE else None
            try:
                shown = review.shown_digest(operation=operation)
                chosen = review.Decision(keep=kept)
                review.approve(operation=operation, by="ann", digest=shown, decision=chosen, reason="so")
            except review.Refused:
                continue
            apply(operation)

    def undone() -> None:
        for operation in Operation.objects.filter(status=State.APPLIED):
            if chance.random() < 0.5:
                undo(operation)

    acts: list[Callable[[], Any]] = [
        *([lambda: ask("remember", who(), **claim())] * 4),
        lambda: ask("store_facts", who(), about="relay", author=ANA, facts=[{"text": text} for text in TEXTS[1:4]]),
        *([lambda: ask("correct", who(), id=row(), union=chance.random() < 0.5, **claim())] * 3),
        *([lambda: ask("retire", who(), id=row())] * 2),
        *([lambda: ask("restore", who(), id=row())] * 2),
        lambda: ask("propose", who(), kind="retire", ids=[row()]),
        lambda: ask("propose", who(), kind="supersede", ids=[row()], by_id=row()),
        lambda: ask("forget", who(), ids=[row()]),
        *([lambda: twins(within, chance.choice(TEXTS))] * 2),
        *([lambda: rollout.apply_plan(plan=plan(within), by="ann")] * 3),
        *([outbox.work] * 2),
        *([settle] * 3),
        undone,
    ]
    for _ in range(35):
        act = chance.choice(acts)
        answer = act()
        assert not isinstance(answer, CallRefused) or answer.code.value != "unavailable"
        assert whole() == []


# --- one by one ------------------------------------------------------------------------------------------------------


def test_a_clock_that_runs_ahead_breaks_no_invariant() -> None:
    """A writer's clock may be five minutes ahead; what it said is not said in the future for that (I14)."""
    soon = (database_now() + timedelta(minutes=4)).isoformat()
    assert ask("remember", text="The relay sits in rack 4", said_at=soon).action == "added"
    assert whole() == []
