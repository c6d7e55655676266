"""How many new questions a scope may put to people in a day, and which of them come first: those about rows that
nobody compared with memory yet, then those that reads feel most.

Held back is not forgotten: the count is shown, and the next pass proposes the rest again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from consolidation.merge import unasked
from consolidation.models import Operation
from consolidation.operations import Approval, Proposal


@dataclass(frozen=True, slots=True)
class Effect:
    """How much of what agents were given would change."""

    shared: int  # answers that gave two or more of the sources at once: they took each other's place
    uses: int  # times that any of the sources was given


def within(
    *,
    scope_id: int,
    proposals: Sequence[Proposal],
    budget: int | None,
    now: datetime,
    known: Collection[str],
    flagged: Collection[int] = (),
) -> tuple[list[Proposal], int]:
    """The proposals that may be stored, in their order, and how many are held back, which no skip names then.

    Only new questions count: what was asked before (`known`) stays, what needs nobody passes. Those that hold a
    `flagged` row come before all others, so that none of them is held back for one without. Three queries.
    """
    new = [proposal for proposal in proposals if proposal.awaits_review and proposal.id not in known]
    if budget is None or not new:
        return list(proposals), 0
    left = max(0, budget - _asked_today(scope_id, now))
    if len(new) <= left:
        return list(proposals), 0
    effects = _effects(scope_id, new)
    places = {proposal.id: place for place, proposal in enumerate(new)}

    def rank(one: Proposal) -> tuple[int, ...]:
        waits = not one.of_episodes and not set(one.sources).isdisjoint(flagged)
        return (not waits, -effects[one.id].shared, -effects[one.id].uses, places[one.id])

    ranked = sorted(new, key=rank)
    held_back = {proposal.id for proposal in ranked[left:]}
    kept = [unasked(proposal, held_back=held_back) for proposal in proposals if proposal.id not in held_back]
    return kept, len(held_back)


def _asked_today(scope_id: int, now: datetime) -> int:
    """Questions that plans put to people since midnight UTC, whatever became of them. One query."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    asked = Operation.objects.filter(
        scope_id=scope_id, approval=Approval.NEEDS_HUMAN, created_at__gte=midnight, requested_by="", edited_from=None
    )
    return asked.count()


def _effects(scope_id: int, proposals: Iterable[Proposal]) -> dict[str, Effect]:
    """The effect of each proposal, by id; of episodes nothing is read, so theirs is none. One query."""
    wanted = {row for proposal in proposals if not proposal.of_episodes for row in proposal.sources}
    answers: defaultdict[int, Counter[str]] = defaultdict(Counter)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT observation_id, answer::text FROM observations_use"
            " WHERE scope_id = %s AND observation_id = ANY (%s)",
            [scope_id, sorted(wanted)],
        )
        for row, answer in cursor.fetchall():
            answers[row][answer] += 1
    return {proposal.id: _effect([answers[row] for row in proposal.sources]) for proposal in proposals}


def _effect(given: Sequence[Counter[str]]) -> Effect:
    rows_per_answer = Counter(answer for one in given for answer in one)
    shared = sum(rows > 1 for rows in rows_per_answer.values())
    return Effect(shared=shared, uses=sum(one.total() for one in given))
