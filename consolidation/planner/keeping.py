"""How proposals become operations that stay the same from plan to plan (DESIGN 4, Identity).

The same proposal planned again is the same operation. What was applied is done; what a person refused or took back is
not asked again until its sources or the policy changed, which makes a new generation; what is no longer proposed goes
stale. An approved operation keeps its rows until it is applied or its approval expires.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import combinations, islice
from typing import Final, TypeVar

from django.db import connection
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce

from consolidation import accuracy, review
from consolidation.models import OPEN, Operation, OperationSource, Plan, PlanItem
from consolidation.operations import OF_EPISODES, Kind, Proposal, State
from observations.models import Episode, Event, Observation

Pair = tuple[int, int]
Version = tuple[int, str]  # version and content hash of a source
_Item = TypeVar("_Item")

# What a plan makes; an alias and a forget come by request.
PLANNED_KINDS: Final = (Kind.MERGE, Kind.SUPERSEDE, Kind.PRUNE, Kind.ARCHIVE, Kind.PROMOTE, Kind.COMPACT)
_REFUSED: Final = (State.REJECTED, State.UNDONE, State.DISTINCT, State.EDITED)  # an edit asks in its place
_UNFINISHED: Final = (*OPEN, State.FAILED)
_LOCK_SPACE: Final = 0x5062 << 40  # our corner of PostgreSQL's advisory locks, beside the store's
_BATCH: Final = 2_000


@dataclass(frozen=True, slots=True)
class Settled:
    """What earlier decisions mean for a pass over one scope."""

    rejected: Mapping[Kind, frozenset[Pair]]  # pairs of refused operations that nothing changed about
    reserved: frozenset[int]  # rows of approved operations that wait to be applied
    reserved_turns: frozenset[int] = frozenset()  # episodes of such operations
    refused: frozenset[str] = frozenset()  # ids of refused operations: proposed again, they are not asked again


@dataclass(frozen=True, slots=True)
class Versions:
    """How the sources stood when they were read."""

    rows: Mapping[int, Version]  # observations
    turns: Mapping[int, Version]  # episodes

    def of(self, source: OperationSource) -> Version | None:
        """Version and content hash of a source; None when it was not read."""
        known = self.rows if source.observation_id else self.turns
        return known.get(source.row_id)

    def under(self, proposal: Proposal) -> list[Version]:
        """Those of a proposal's sources, in order."""
        known = self.turns if proposal.of_episodes else self.rows
        return [known[source] for source in proposal.sources]


def settled(*, scope_id: int, policy_hash: str, now: datetime) -> Settled:
    """The decisions that stand in a scope: nothing about their sources or the policy changed since. A reviewer's edit
    that waits keeps its rows as an approved operation does. Two queries.
    """
    rejected: defaultdict[Kind, set[Pair]] = defaultdict(set)
    reserved: set[int] = set()
    turns: set[int] = set()
    refused_ids: set[str] = set()
    stands = Q(status__in=(State.REJECTED, State.UNDONE, State.APPROVED))
    stands |= Q(status=State.NEEDS_HUMAN, edited_from__isnull=False)
    decided = list(_latest(scope_id).filter(stands))
    sources = _sources(decided)
    carried = _carried(scope_id)
    for operation in decided:
        rows = sources[operation.pk]
        refused = operation.status in (State.REJECTED, State.UNDONE)
        if operation.policy_hash != policy_hash or any(
            _moved(row, operation) and not (refused and row.row_id in carried) for row in rows
        ):
            continue
        ids = sorted(row.row_id for row in rows)
        if refused:
            refused_ids.add(operation.op_id)
        if refused and operation.kind in review.TELLS_APART:
            standing = sorted({carried.get(pk, pk) for pk in ids})
            rejected[Kind(operation.kind)].update(combinations(standing, 2))
        elif not refused and not review.expired(operation, now=now):
            (turns if operation.kind in OF_EPISODES else reserved).update(ids)
    pairs_of = {kind: frozenset(pairs) for kind, pairs in rejected.items()}
    return Settled(pairs_of, frozenset(reserved), frozenset(turns), frozenset(refused_ids))


# A row that was merged with repeats of itself lives on in the merged row, word for word and with the same key.
_CARRIED: Final = """
WITH RECURSIVE stands (source, id, text_key, spo_key) AS (
  SELECT o.id, d.id, d.text_key, d.spo_key FROM observations_observation o
  JOIN observations_observation d ON d.scope_id = o.scope_id AND d.id = o.superseded_by_id AND d.derivation = 'merge'
    AND (d.text_key, d.sp_key, d.spo_key) = (o.text_key, o.sp_key, o.spo_key)
  WHERE o.scope_id = %(scope)s AND o.status = 'archived'
  UNION
  SELECT s.source, d.id, d.text_key, d.spo_key FROM stands s
  JOIN observations_observation m ON m.scope_id = %(scope)s AND m.id = s.id AND m.status = 'archived'
  JOIN observations_observation d ON d.scope_id = %(scope)s AND d.id = m.superseded_by_id AND d.derivation = 'merge'
    AND (d.text_key, d.sp_key, d.spo_key) = (m.text_key, m.sp_key, m.spo_key)
)
SELECT s.source, s.id FROM stands s
JOIN observations_observation o ON o.scope_id = %(scope)s AND o.id = s.id AND o.status = 'active'
"""


def _carried(scope_id: int) -> dict[int, int]:
    """Rows that left the reads only because they were merged with repeats, each with the live row that says the same in
    the same words: what was refused about one is refused about the other. One query.
    """
    with connection.cursor() as cursor:
        cursor.execute(_CARRIED, {"scope": scope_id})
        return {int(source): int(live) for source, live in cursor.fetchall()}


def _latest(scope_id: int) -> QuerySet[Operation]:
    newer = Operation.objects.filter(
        scope_id=OuterRef("scope_id"), op_id=OuterRef("op_id"), generation__gt=OuterRef("generation")
    )
    return Operation.objects.filter(~Exists(newer), scope_id=scope_id, kind__in=PLANNED_KINDS)


def _sources(operations: Iterable[Operation]) -> Mapping[int, list[OperationSource]]:
    """The sources of operations, each with the version and hash of its row as it stands now. One query per 2,000."""
    found: defaultdict[int, list[OperationSource]] = defaultdict(list)
    for part in _batches(operation.pk for operation in operations):
        rows = OperationSource.objects.filter(operation__in=part).order_by("operation_id", "position")
        standing = {
            "now_at": Coalesce(F("observation__version"), F("episode__version")),
            "now_hash": Coalesce(F("observation__content_hash"), F("episode__content_hash")),
        }
        for row in rows.annotate(**standing):
            found[row.operation_id].append(row)
    return found


def _batches(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    iterator = iter(items)
    while part := list(islice(iterator, _BATCH)):
        yield part


def _expected(row: OperationSource, operation: Operation) -> Version:
    """How a source stood when the operation was planned, or as its undo left it."""
    undone = operation.status == State.UNDONE and row.applied_version is not None
    return (row.applied_version or 0) if undone else row.planned_version, row.planned_hash


def _moved(row: OperationSource, operation: Operation) -> bool:
    now: Version = (getattr(row, "now_at", 0), getattr(row, "now_hash", ""))
    return now != _expected(row, operation)


# --- storing ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Decided:
    """What becomes of the proposals of one scope."""

    items: list[Operation] = field(default_factory=list)  # of the plan, in order; new ones are not saved yet
    new: dict[str, Proposal] = field(default_factory=dict)  # by operation id
    stale: dict[int, str] = field(default_factory=dict)  # operation pk -> what changed
    counts: Counter[str] = field(default_factory=Counter)


def take_turns(*, scope_id: int) -> None:
    """Two planners of one scope take turns from here to the end of the transaction. One query."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK_SPACE + scope_id])


def known_ids(*, scope_id: int) -> frozenset[str]:
    """Ids of the operations of a scope that plans made, but for those gone stale: what asks nothing new. One query."""
    return frozenset(_latest(scope_id).exclude(status=State.STALE).values_list("op_id", flat=True))


def moved_turns(*, scope_id: int, versions: Mapping[int, int]) -> frozenset[int]:
    """Which of these episodes are not as they were read, or are just being changed; the others stay until the end of
    the transaction. Never waits for another's lock, so it cannot be part of a deadlock. One query.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, version FROM observations_episode WHERE scope_id = %s AND id = ANY (%s) ORDER BY id"
            " FOR SHARE SKIP LOCKED",
            [scope_id, sorted(versions)],
        )
        standing = dict(cursor.fetchall())
    return frozenset(pk for pk, version in versions.items() if standing.get(pk) != version)


def keep(
    *,
    plan: Plan,
    scope_id: int,
    proposals: Sequence[Proposal],
    versions: Versions,
    policy_hash: str,
    settled: Settled,
    unfinished: frozenset[Kind],
    by: str,
    position: int,
) -> Counter[str]:
    """Store one scope's part of a plan inside the caller's transaction, from a position on.

    `versions` are those of the sources as they were read; kinds that could not be planned to the end are `unfinished`,
    and what stands of them stays. Returns how many operations are `new`, planned `again`, went
    `stale`, were `done` or `refused` before. `take_turns` comes first.
    """
    known = _known(scope_id, proposals)
    sources = _sources(known.values())
    decided = _Decided()
    for proposal in proposals:
        _decide(proposal, known.get(proposal.id), sources, versions, policy_hash, decided)
    _sweep(known, sources, decided, settled, unfinished)
    decided.counts["stale"] = _go_stale(scope_id, decided.stale, by)
    _let_go(scope_id, decided, versions)
    _save(plan, scope_id, decided, versions, position)
    return decided.counts


def _known(scope_id: int, proposals: Sequence[Proposal]) -> dict[str, Operation]:
    """The newest generation of every unfinished planned operation, and of whatever is proposed now."""
    planned = PlanItem.objects.filter(scope_id=scope_id, operation_id=OuterRef("pk"))
    known = {row.op_id: row for row in _latest(scope_id).filter(Exists(planned), status__in=_UNFINISHED)}
    for part in _batches(proposal.id for proposal in proposals if proposal.id not in known):
        known |= {row.op_id: row for row in _latest(scope_id).filter(op_id__in=part)}
    return known


def _decide(
    proposal: Proposal,
    known: Operation | None,
    sources: Mapping[int, list[OperationSource]],
    versions: Versions,
    policy_hash: str,
    decided: _Decided,
) -> None:
    changed = _changed(proposal, known, sources[known.pk], versions, policy_hash) if known is not None else ""
    if known is not None and known.status == State.APPLIED:
        decided.counts["done"] += 1
    elif known is not None and known.status in _REFUSED and not changed:
        decided.counts["refused"] += 1
    elif known is not None and known.status in _UNFINISHED and not changed:
        decided.counts["again"] += 1
        decided.items.append(known)
    else:
        if known is not None and known.status in _UNFINISHED:
            decided.stale[known.pk] = f"planned anew: {changed}"
        decided.counts["new"] += 1
        decided.new[proposal.id] = proposal
        decided.items.append(_operation(proposal, 1 if known is None else known.generation + 1, policy_hash))


def _changed(
    proposal: Proposal,
    operation: Operation,
    rows: Sequence[OperationSource],
    versions: Versions,
    policy_hash: str,
) -> str:
    """What is different from when the operation was planned or decided; empty when nothing is."""
    if operation.policy_hash != policy_hash:
        return "the policy changed"
    if any(versions.of(row) != _expected(row, operation) for row in rows):
        return "its sources changed"
    if operation.status in _REFUSED:
        return ""  # a refusal stands whatever the figures are now
    then = (operation.approval, operation.skipped_reason, operation.keeper_id, operation.product, operation.reason)
    now = (proposal.approval, proposal.skipped_reason, proposal.keeper, proposal.product, proposal.reason)
    said = (operation.text, operation.claim_subject, operation.claim_predicate, operation.claim_object)
    if said != (proposal.text, *proposal.key):
        return "it says something else"
    return "" if then == now else "it is proposed differently"


def _sweep(
    known: Mapping[str, Operation],
    sources: Mapping[int, list[OperationSource]],
    decided: _Decided,
    settled: Settled,
    unfinished: frozenset[Kind],
) -> None:
    """Approved operations and reviewers' edits stay in the plan; every other unfinished one that is not proposed any
    more goes stale.
    """
    proposed = {operation.op_id for operation in decided.items}
    for operation in sorted(known.values(), key=lambda row: row.pk):
        if operation.op_id in proposed or operation.status not in _UNFINISHED:
            continue
        ids = {row.row_id for row in sources[operation.pk]}
        of_episodes = operation.kind in OF_EPISODES
        waiting = settled.reserved_turns if of_episodes else settled.reserved
        if operation.status == State.APPROVED and ids <= waiting:
            decided.counts["approved"] += 1
            decided.items.append(operation)
            continue
        if operation.edited_from_id and operation.status == State.NEEDS_HUMAN and ids <= waiting:
            decided.counts["again"] += 1
            decided.items.append(operation)
            continue
        rows = (Episode if of_episodes else Observation).objects.in_bulk(ids)
        moved = review.changes(operation=operation, sources=sources[operation.pk], rows=rows)
        if not moved and operation.kind in unfinished:
            decided.counts["again"] += 1
            decided.items.append(operation)
            continue
        decided.stale[operation.pk] = "; ".join(moved) or "no longer proposed"


def _let_go(scope_id: int, decided: _Decided, versions: Versions) -> None:
    """Leave out what would be new about episodes that moved while the model read them; the next pass looks again."""
    read = {pk: versions.turns[pk][0] for one in decided.new.values() if one.of_episodes for pk in one.sources}
    moved = moved_turns(scope_id=scope_id, versions=read) if read else frozenset()
    gone = {name for name, one in decided.new.items() if one.of_episodes and not moved.isdisjoint(one.sources)}
    if gone:
        decided.items = [operation for operation in decided.items if operation.pk or operation.op_id not in gone]
        decided.new = {name: one for name, one in decided.new.items() if name not in gone}
        decided.counts["new"] -= len(gone)


def _go_stale(scope_id: int, reasons: Mapping[int, str], by: str) -> int:
    """How many went stale: what a person decided or an applier applied in the meantime stays. Two queries per 2,000."""
    gone = 0
    for part in _batches(sorted(reasons)):
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE consolidation_operation o SET status = %s, outcome = left(v.reason, 500)"
                " FROM unnest(%s::bigint[], %s::text[]) AS v (id, reason)"
                " WHERE o.id = v.id AND o.status = ANY (%s) RETURNING o.op_id, o.generation, o.outcome",
                [State.STALE, part, [reasons[pk] for pk in part], list(_UNFINISHED)],
            )
            rows = cursor.fetchall()
        Event.objects.bulk_create(
            Event(
                scope_id=scope_id,
                action=State.STALE,
                actor=by,
                subject=op_id,
                generation=generation,
                detail={"changed": outcome},
            )
            for op_id, generation, outcome in rows
        )
        gone += len(rows)
    return gone


def _operation(proposal: Proposal, generation: int, policy_hash: str) -> Operation:
    own = accuracy.named(proposal)
    return Operation(
        op_id=proposal.id,
        generation=generation,
        input_key=proposal.input_key,
        scope_id=proposal.scope_id,
        kind=proposal.kind,
        approval=proposal.approval,
        status=proposal.state,
        reason=proposal.reason,
        skipped_reason=proposal.skipped_reason,
        score=proposal.score,
        keeper_id=proposal.keeper,
        product=dict(proposal.product),
        signals=dict(proposal.signals),
        text=proposal.text,
        claim_subject=proposal.key[0],
        claim_predicate=proposal.key[1],
        claim_object=proposal.key[2],
        rule=own.rule,
        band=own.band,
        risk=proposal.risk,
        uncertainty=proposal.uncertainty,
        n_sources=len(proposal.sources),
        policy_hash=policy_hash,
    )


def _save(plan: Plan, scope_id: int, decided: _Decided, versions: Versions, position: int) -> None:
    """New operations with their sources, and the plan's items. Sources and items go in as arrays: a plan has many."""
    new = [operation for operation in decided.items if operation.op_id in decided.new]
    Operation.objects.bulk_create(new, batch_size=_BATCH)
    for column, of_episodes in (("observation_id", False), ("episode_id", True)):
        proposed = [(operation.pk, decided.new[operation.op_id]) for operation in new]
        sources = [
            (pk, source, at, *version)
            for pk, proposal in proposed
            if proposal.of_episodes is of_episodes
            for at, (source, version) in enumerate(zip(proposal.sources, versions.under(proposal), strict=True))
        ]
        _insert_sources(scope_id, column, sources)
    items = [(operation.pk, at) for at, operation in enumerate(decided.items, start=position)]
    with connection.cursor() as cursor:
        for part in _batches(items):
            cursor.execute(
                "INSERT INTO consolidation_planitem (scope_id, plan_id, operation_id, position, opened_by)"
                " SELECT %s, %s, v.*, '' FROM unnest(%s::bigint[], %s::int[]) AS v",
                [scope_id, plan.pk, *map(list, zip(*part, strict=True))],
            )


def _insert_sources(scope_id: int, column: str, sources: Sequence[tuple[int, int, int, int, str]]) -> None:
    with connection.cursor() as cursor:
        for rows in _batches(sources):
            cursor.execute(
                f"INSERT INTO consolidation_operationsource (scope_id, operation_id, {column}, position,"  # noqa: S608
                " planned_version, planned_hash, prior_status)"
                " SELECT %s, v.*, '' FROM unnest(%s::bigint[], %s::bigint[], %s::int[], %s::int[], %s::text[]) AS v",
                [scope_id, *map(list, zip(*rows, strict=True))],
            )
