"""Ten planning passes over a store that grows for 200 sessions: it flattens, nothing is asked twice (R26, R30, R114).

A store without consolidation, counted beside it, must not flatten: that is how we know that the sessions keep coming.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from consolidation import invariants, planner, rollout
from consolidation.models import Plan, Policy
from observations.embedding import HASHING
from observations.models import Scope
from tests.acceptance import growing
from tests.building import first_confirms, scope

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

SESSIONS, PASSES, ROUNDS = 200, 10, 6


@dataclass(frozen=True)
class Pass:
    """How the store stood after one pass."""

    written: int  # rows written so far: the size of a store that nobody consolidates
    active: int
    chain: int  # the longest chain of merges of different words, which the policy limits
    depth: int  # the longest way down the lineage from any row, repeats included
    decisions: int
    churn: int  # new or stale operations of a further plan with nothing changed in between


@dataclass(frozen=True)
class Grown:
    """The whole simulation."""

    passes: tuple[Pass, ...]
    asked_again: tuple[str, ...]
    broken: tuple[str, ...]


def _plan(within: Scope) -> Plan:
    return planner.plan(scopes=[within], pattern=within.name, by="test", trigger="command", profile=HASHING)


def _consolidate(within: Scope, reviewer: growing.Reviewer) -> int:
    """Plan, apply and decide until nothing new is proposed; returns how many decisions that took."""
    decisions = 0
    for _ in range(ROUNDS):
        made = _plan(within)
        first_confirms(made)
        rollout.apply_plan(plan=made, by="test", confirmed=True)
        decided = reviewer.decide_all()
        decisions += decided
        if not decided and not made.figures["new"]:
            return decisions
    raise AssertionError(f"a pass did not come to rest in {ROUNDS} rounds")


def simulate() -> Grown:
    within = scope("team-a/everybody")
    Policy.objects.create(pattern=within.name, body={"review_budget": None})
    world = growing.World(within)
    reviewer = growing.Reviewer(world)
    passes = []
    for number in range(PASSES):
        for session in range(SESSIONS // PASSES):
            world.session(number * SESSIONS // PASSES + session)
        decisions = _consolidate(within, reviewer)
        again = _plan(within).figures
        passes.append(
            Pass(
                written=world.written,
                active=growing.active(within),
                chain=growing.longest_chain(within),
                depth=growing.lineage_depth(within),
                decisions=decisions,
                churn=again["new"] + again["stale"],
            )
        )
    return Grown(tuple(passes), tuple(reviewer.asked_again), tuple(str(one) for one in invariants.check()))


def test_ten_passes_over_a_growing_store_flatten_it_and_ask_nothing_twice(show: Callable[[str], None]) -> None:
    """R114: size flattens; DESIGN 4: chains stay at most 3 deep, as the policy counts them and as a reader walks the
    lineage; and decisions are remembered.
    """
    grown = simulate()
    lines = [
        f"  pass {at}: {one.written:>5} written  {one.active:>4} active  chain {one.chain}  lineage {one.depth}"
        f"  {one.decisions:>3} decisions  {one.churn} proposed again"
        for at, one in enumerate(grown.passes, start=1)
    ]
    show("\n".join([f"{SESSIONS} sessions, seed 7, one scope, hashing embedder, 256 dimensions:", *lines]))
    first, last = grown.passes[0], grown.passes[-1]
    before_last = grown.passes[-2]
    assert last.active - before_last.active <= 0.1 * first.active, "it still grows"
    assert last.written - before_last.written >= 0.9 * first.written, "the control: without consolidation it does grow"
    assert last.active <= last.written / 8
    assert max(one.chain for one in grown.passes) <= 3
    assert max(one.depth for one in grown.passes) <= 3
    assert min(one.depth for one in grown.passes) >= 1, "the control: rows were merged"
    assert [one.churn for one in grown.passes] == [0] * PASSES
    assert grown.asked_again == ()
    assert grown.broken == ()
