"""Running it: sessions are written into two scopes, one of them is consolidated after every few, both are asked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from django.db import connection

from consolidation import planner, rollout
from consolidation.models import Policy
from consolidation.probes import Figures, Found, K, Probe, Store, measure
from consolidation.simulation.reviewing import BY, SECOND, Reviewer
from consolidation.simulation.world import Meaning, World
from observations import ingest, retrieval
from observations.models import Observation, Scope

CALL_SITE: Final = "probe"
ROUNDS: Final = 6  # of planning and deciding in one pass, until nothing new is proposed
TRIES: Final = 5  # of one question, until all parts of a search answered
_NOISE: Final = 1e-9


class NotThrowaway(Exception):
    """The database was not made to be thrown away, or holds something: nothing is simulated in it."""


@dataclass(frozen=True, slots=True)
class Point:
    """One store after some sessions."""

    size: int  # active rows
    recall: float | None  # None: no number may be shown; `why_not` says why
    distinct: float | None
    stale: float | None
    p95_ms: float
    decisions: int = 0  # a person's, in this pass
    why_not: str = ""  # why recall is not known: a clause


@dataclass(frozen=True, slots=True)
class Simulated:
    """The whole of it: after so many sessions, without and with consolidation."""

    seed: int
    sessions: tuple[int, ...]  # at each of the points
    without: tuple[Point, ...]
    consolidated: tuple[Point, ...]
    embedder: str

    @property
    def lost(self) -> tuple[int, ...]:
        """After which sessions less was found with consolidation than without."""
        pairs = zip(self.sessions, self.without, self.consolidated, strict=True)
        return tuple(
            at
            for at, left, kept in pairs
            if left.recall is not None and (kept.recall is None or kept.recall < left.recall - _NOISE)
        )


Told = Callable[[int, Point, Point], object]


def simulate(*, sessions: int, seed: int, every: int, told: Told | None = None) -> Simulated:
    """Write `sessions` sessions, consolidating after every few of them; `told` hears of each point.

    The same numbers come out for the same seed and embedder, but for times. Raises NotThrowaway, with nothing written.
    """
    _require_throwaway()
    alone, kept = ingest.open_scope(name="simulation/left-alone"), ingest.open_scope(name="simulation/consolidated")
    Policy.objects.create(pattern=kept.name, body={"review_budget": None, "archive": True})
    world = World(seed)
    reviewers = Reviewer(world, alone), Reviewer(world, kept)
    marks, without, consolidated = [], [], []
    for start in range(0, sessions, every):
        end = min(start + every, sessions)
        _write(world, (alone, kept), range(start, end))
        decisions = _consolidate(kept, reviewers[1])
        marks.append(end)
        without.append(_asked(reviewers[0], decisions=0))
        consolidated.append(_asked(reviewers[1], decisions=decisions))
        if told:
            told(end, without[-1], consolidated[-1])
    name = retrieval.current_embedder().profile.name
    return Simulated(seed, tuple(marks), tuple(without), tuple(consolidated), name)


def _require_throwaway() -> None:
    """Two queries."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('palimpsest.throwaway', true)")
        row = cursor.fetchone()
    if row is None or row[0] != "on":
        raise NotThrowaway("This database was not made to be thrown away: run `manage.py simulate`, which makes one.")
    if Scope.objects.exists():
        raise NotThrowaway("This database holds memory already: a simulation begins with an empty one.")


def _write(world: World, scopes: tuple[Scope, ...], numbers: range) -> None:
    """The same sessions into every scope, with their vectors."""
    lines = [json.dumps(saying.line()) for number in numbers for saying in world.session(number)]
    for scope in scopes:
        report = ingest.import_lines(lines, scope=scope.name)
        if report.added != len(lines):
            raise RuntimeError(f"{len(lines) - report.added} sayings were not stored: {report.refused[:1]}")
    ingest.embed_now(scopes=scopes, episodes=False)


def _consolidate(within: Scope, reviewer: Reviewer) -> int:
    """Plan, apply and decide until nothing new is proposed; returns how many decisions that took."""
    decisions = 0
    for _ in range(ROUNDS):
        plan = planner.plan(scopes=[within], pattern=within.name, by=BY, trigger="command")
        with suppress(rollout.SecondWanted):
            rollout.agree(plan=plan, by=SECOND)
        rollout.apply_plan(plan=plan, by=BY, confirmed=True)
        decided = reviewer.decide_all()
        ingest.embed_now(scopes=[within], episodes=False)
        decisions += decided
        if not decided and not plan.figures["new"]:
            break
    return decisions


# --- asking -----------------------------------------------------------------------------------------------------------


def _asked(reviewer: Reviewer, *, decisions: int) -> Point:
    """Ask all that may be asked now, and count what came by what it means."""
    questions = list(reviewer.world.questions())
    number_of: dict[Meaning, int] = {}
    for question in questions:
        for meaning in sorted(question.right | question.outdated):
            number_of.setdefault(meaning, len(number_of) + 1)
    probes = [
        Probe(
            number=number,
            query=question.text,
            expected=frozenset(number_of[meaning] for meaning in question.right),
            outdated=frozenset(number_of[meaning] for meaning in question.outdated),
        )
        for number, question in enumerate(questions, 1)
    ]
    found = {probe.number: _found(reviewer.within, probe.query) for probe in probes}
    store = _store(reviewer, found, number_of)
    return _point(measure(probes=probes, found=found, store=store, k=K), decisions)


def _found(scope: Scope, query: str) -> Found:
    """The answer and what it took. On a busy machine a part of a search may fail: then it is asked again."""
    for _ in range(TRIES):
        start = time.perf_counter()
        answer = retrieval.look(scope=scope, query=query, k=K, call_site=CALL_SITE)
        took = (time.perf_counter() - start) * 1000
        if answer.complete:
            break
    return Found(ids=tuple(hit.id for hit in answer.hits), milliseconds=took, complete=answer.complete)


def _store(reviewer: Reviewer, found: dict[int, Found], number_of: dict[Meaning, int]) -> Store:
    """What each row that came says, by the truth."""
    came = sorted({row for answer in found.values() for row in answer.ids})
    says = {pk: number_of.get(meaning) if meaning else None for pk, meaning in reviewer.meanings(came).items()}
    rows = Observation.objects.active().in_scope(reviewer.within).order_by("pk").values_list("pk", flat=True)
    return Store(
        rows=tuple(rows),
        carried={pk: frozenset({claim} if claim else ()) for pk, claim in says.items()},
        units={pk: f"claim {claim}" for pk, claim in says.items() if claim},
    )


def _point(figures: Figures, decisions: int) -> Point:
    shown = not figures.why_not
    return Point(
        size=figures.records,
        recall=figures.recall if shown else None,
        distinct=figures.distinct if shown else None,
        stale=figures.stale if shown else None,
        p95_ms=figures.p95,
        decisions=decisions,
        why_not=figures.why_not,
    )
