"""What applying an operation would leave in the reads and take out of them, by the code that applies it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from consolidation import review
from consolidation.models import Operation, OperationSource, waits
from consolidation.operations import OF_EPISODES, Kind
from consolidation.policy import Policy as Rules
from consolidation.runner.distilling import promoted_claim, summary_claim
from consolidation.runner.effects import kept, merged_claim, own_words, right_claim
from consolidation.runner.execution import moved_since_review, refusal_to_apply
from consolidation.runner.work import Work, around
from observations.models import Episode, Observation, database_now
from observations.records import Claim, Status


@dataclass(frozen=True, slots=True)
class ApplyPreview:
    """What one application would do to the reads; nothing at all where it would not go through."""

    operation: Operation
    leaves: tuple[int, ...] = ()  # observations that reads return now and would not
    stands: Claim | None = None  # the claim that a new row would hold, without its evidence
    vector_of: int | None = None  # the row whose vector it would have, because it has its text
    key_of: int | None = None  # the row that would hand on to it what a model said about its key
    refused: str = ""  # why it would not be applied: a sentence

    @property
    def says_of(self) -> tuple[int, ...]:
        """The rows whose claim the new row would say: those that a merge joins."""
        return self.leaves if self.operation.kind == Kind.MERGE else ()


def apply_preview(*, operation: Operation, moved: Collection[int] = ()) -> ApplyPreview:
    """What applying would do, without doing it. `moved` are rows that operations before it would have moved by then.

    Reads only, about ten queries. Raises Refused where the policy cannot be read.
    """
    work = _work(operation)
    if done := refusal_to_apply(work, agreed=True):  # a plan's: how much it touches is said with the whole
        return ApplyPreview(operation, refused=done.sentence)
    if gone := [pk for pk in work.ids if not work.of_episodes and pk in moved]:
        return ApplyPreview(operation, refused=f"obs_{gone[0]} would have been moved by an earlier operation.")
    if why := moved_since_review(work):
        return ApplyPreview(operation, refused=f"{operation.op_id} is stale: {why}.")
    return _previewed(work)


def draft_claim(*, operation: Operation, sources: Sequence[OperationSource], policy: Rules) -> Claim | None:
    """The claim that an operation which is not stored yet would write from these sources, by the code that applies it,
    without its evidence. Three queries.
    """
    ids = [source.row_id for source in sources]
    of_episodes = operation.kind in OF_EPISODES
    rows = Observation.objects.filter(scope_id=operation.scope_id).in_bulk([] if of_episodes else ids)
    turns = Episode.objects.filter(scope_id=operation.scope_id).in_bulk(ids if of_episodes else [])
    return _previewed(Work(operation, list(sources), rows, policy, database_now(), "", turns)).stands


def told_claim(
    *, operation: Operation, sources: Sequence[OperationSource], turns: Mapping[int, Episode], policy: Rules
) -> Claim | None:
    """The claim that a promotion or a compaction would write from these episodes, by the code that applies it, without
    its evidence; None of other kinds, and where the text of one is erased. No query.
    """
    taken = {source.row_id: turns[source.row_id] for source in sources if source.row_id in turns}
    if operation.kind not in OF_EPISODES or len(taken) < len(sources) or any(t.text is None for t in taken.values()):
        return None
    return _previewed(Work(operation, list(sources), {}, policy, operation.created_at, "", taken)).stands


def _work(operation: Operation) -> Work:
    sources = review.sources_of(operation)
    ids = [source.row_id for source in sources]
    of_episodes = operation.kind in OF_EPISODES
    rows = Observation.objects.filter(scope_id=operation.scope_id).in_bulk([] if of_episodes else ids)
    turns = Episode.objects.filter(scope_id=operation.scope_id).in_bulk(ids if of_episodes else [])
    beside, now = around(operation), database_now()
    held = waits(scope=operation.scope, now=now, paused=beside.paused)
    return Work(operation, sources, rows, beside.policy, now, held, turns, demoted=beside.demoted)


def _previewed(work: Work) -> ApplyPreview:
    operation, kind = work.operation, Kind(work.operation.kind)
    live = tuple(pk for pk in work.ids if not work.of_episodes and work.rows[pk].status == Status.ACTIVE)
    if kind is Kind.MERGE:
        claim, key_of = merged_claim(work)
        vector_of = None if own_words(work) else kept(work)
        return ApplyPreview(operation, live, claim, vector_of=vector_of, key_of=key_of)
    if kind is Kind.SUPERSEDE:
        return _settled(work, live)
    if kind is Kind.PROMOTE:
        return ApplyPreview(operation, stands=promoted_claim(work))
    if kind is Kind.COMPACT:
        return ApplyPreview(operation, stands=summary_claim(work))
    return ApplyPreview(operation, live if kind in (Kind.ARCHIVE, Kind.PRUNE) else ())


def _settled(work: Work, live: tuple[int, ...]) -> ApplyPreview:
    """One claim stays, or all do, or the reviewer's own words stand instead of them."""
    chosen = work.operation.decision
    if chosen.get("many_valued") or chosen.get("both"):
        return ApplyPreview(work.operation)
    winner = chosen.get("keep")
    leaves = tuple(pk for pk in live if pk != winner)
    return ApplyPreview(work.operation, leaves, None if winner else right_claim(work))
