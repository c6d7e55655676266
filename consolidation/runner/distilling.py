"""What promoting and compacting do to memory: a new row that rests on episodes.

No model is called here: what the row says was written before, and reviewed.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from consolidation import compact as summaries
from consolidation import promote as promotion
from consolidation.models import Operation
from consolidation.operations import Kind
from consolidation.runner.work import Effect, Work, free_name, stamp
from observations import store
from observations.records import Claim, MemoryKind, StatedBy, Status

SUMMARY_HALF_LIFE_DAYS = 180  # its episodes left the reads: it must not fade as fast as one of them would


def promote(work: Work, by: str) -> Effect:
    """A new observation at the promoted ceiling, with the episodes' words as evidence; they stay as they are (R75, R77,
    R78, R104, R105).
    """
    support = work.operation.product.get("support", [])
    quotes = {episode: (start, end) for episode, start, end in support}
    return Effect(moved=(), derived=_write(work, promoted_claim(work), quotes=quotes))


def promoted_claim(work: Work) -> Claim:
    """The claim that a promotion writes, without its name and evidence. No query."""
    operation = work.operation
    planned = float(operation.product.get("confidence", 0.0))
    return Claim(
        text=operation.text,
        subject=operation.claim_subject,
        predicate=operation.claim_predicate,
        object=operation.claim_object,
        confidence=min(planned, work.policy.promoted_confidence, promotion.CEILING),
        stated_by=_stated_by(work),
        created_at=_first_said(work),
    )


def compact(work: Work, by: str) -> Effect:
    """A summary that reads see instead of its episodes, which are archived and stay readable (R44, C9)."""
    operation = work.operation
    derived = _write(work, summary_claim(work), quotes={})
    store.move_episodes(scope_id=operation.scope_id, ids=work.ids, to=Status.ARCHIVED)
    return Effect(moved=tuple(work.ids), derived=derived)


def summary_claim(work: Work) -> Claim:
    """The summary that a compaction writes, without its name. No query."""
    return Claim(
        text=work.operation.text,
        confidence=summaries.CONFIDENCE,
        stated_by=_stated_by(work),
        kind=MemoryKind.EPISODE,
        half_life_days=SUMMARY_HALF_LIFE_DAYS,
        created_at=_first_said(work),
    )


def _write(work: Work, claim: Claim, *, quotes: dict[int, tuple[int, int]]) -> int:
    operation: Operation = work.operation
    return store.write_derived(
        scope=operation.scope,
        derived=store.Derived(
            claim=replace(claim, external_id=free_name(work)),
            sources=tuple(work.ids),
            derivation=Kind(operation.kind),
            operation=stamp(operation),
            at=work.now,
            of_episodes=True,
            quotes=quotes,
        ),
    )


def _stated_by(work: Work) -> StatedBy:
    """The agent's own conclusion at most, and never above the lowest of its sources (the origin lattice, DESIGN 3)."""
    return promotion.stated_by(turn.record() for turn in work.turns.values())


def _first_said(work: Work) -> datetime:
    return min(turn.happened_at for turn in work.turns.values())
