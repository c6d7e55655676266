"""What moved since a plan was made: stale items with the difference, and what keeps others from being applied."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from consolidation import review
from consolidation.admin.texts import Edit, edited, told, when
from consolidation.models import Operation, OperationSource, Pause, waits
from consolidation.operations import OF_EPISODES, State, obs, visible
from observations.models import Observation, database_now

MOST = 20  # stale items of one page that are compared; the others say in words what moved


@dataclass(frozen=True, slots=True)
class Moved:
    """One source that is not what it was: its words then, and those of what took its place."""

    name: str
    successor: str
    edit: Edit | None  # None: nothing took its place


@dataclass(frozen=True, slots=True)
class Changed:
    """One stale item of a plan."""

    pk: int
    short: str
    kind: str
    why: str
    moved: tuple[Moved, ...]


@dataclass(frozen=True, slots=True)
class Blocked:
    """What keeps items of this page from being applied."""

    why: str
    items: tuple[tuple[int, str], ...]  # key and short id


def changes(operations: Sequence[Operation]) -> list[Changed]:
    """The stale items among these, each with what became of its sources. Three queries, or none."""
    stale = [operation for operation in operations if operation.status == State.STALE]
    compared = [operation for operation in stale[:MOST] if operation.kind not in OF_EPISODES]
    found: defaultdict[int, list[OperationSource]] = defaultdict(list)
    if compared:
        sources = OperationSource.objects.filter(operation__in=compared).order_by("operation_id", "position")
        for source in sources.select_related("observation"):
            found[source.operation_id].append(source)
    heads = _heads([source.observation for sources in found.values() for source in sources if source.observation])
    return [
        Changed(
            pk=operation.pk,
            short=operation.op_id[:11],
            kind=operation.kind,
            why=visible(operation.outcome),
            moved=tuple(_moved(source.observation, heads) for source in found[operation.pk] if _has_moved(source)),
        )
        for operation in stale
    ]


def _has_moved(source: OperationSource) -> bool:
    row = source.observation
    return row is not None and (row.version, row.content_hash) != (source.planned_version, source.planned_hash)


def _heads(rows: Sequence[Observation]) -> dict[int, Observation]:
    """The successors of these rows by their ids. One query, or none."""
    scopes, ids = {row.scope_id for row in rows}, {row.superseded_by_id for row in rows if row.superseded_by_id}
    return {row.pk: row for row in Observation.objects.filter(scope__in=scopes, pk__in=ids)} if ids else {}


def _moved(row: Observation | None, heads: dict[int, Observation]) -> Moved:
    assert row is not None
    head = heads.get(row.superseded_by_id or 0)
    return Moved(
        name=obs(row.pk),
        successor=obs(head.pk) if head else "",
        edit=edited(row.text, head.text) if head else None,
    )


def blocked(operations: Sequence[Operation]) -> list[Blocked]:
    """Why appliable items of this page would be refused now: a hold, a pause, an approval that ran out, a second person
    who has not agreed. Two queries, or none.
    """
    ready = [row for row in operations if row.status in (State.APPROVED, State.PLANNED)]
    if not ready:
        return []
    now = database_now()
    pauses = dict(Pause.objects.filter(scope__in={row.scope_id for row in ready}).values_list("scope_id", "by"))
    found: defaultdict[str, list[Operation]] = defaultdict(list)
    for row in ready:
        if why := waits(scope=row.scope, now=now, paused=pauses.get(row.scope_id, "")):
            found[f"{visible(row.scope.name)}: {visible(why)}"].append(row)
        elif row.status == State.APPROVED and review.expired(row, now=now):
            found[told("the approval ran out on {} UTC: approve again", when(row.approval_expires_at))].append(row)
        elif row.status == State.APPROVED and row.needs_second and not row.seconded_by:
            found["a second person has to agree"].append(row)
    return [Blocked(why=why, items=tuple((row.pk, row.op_id[:11]) for row in rows)) for why, rows in found.items()]
