"""The trash: what applied prunes took out of the reads and is not erased yet, and until when it can come back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Left

from consolidation import policy as rules
from consolidation.admin.reading import Chip
from consolidation.admin.texts import SNIPPET, snippet, told, when
from consolidation.models import Operation, OperationSource, Pause, Policy
from consolidation.operations import Kind, State, obs, visible
from consolidation.runner import ERASE_PRUNED
from observations.admin.base import Reach
from observations.models import Outbox, Scope
from observations.records import Status

LINES: Final = 10  # records of one prune that are listed; what is beyond is counted
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Record:
    """One record that is still there."""

    pk: int
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Thrown:
    """What one prune took out of the reads."""

    pk: int
    op_id: str
    scope: str
    reason: str
    records: tuple[Record, ...]
    more: int
    by: str  # who approved it
    applied: str
    erased_at: str  # when what is left of it will be erased; empty: nothing is due
    left: Chip  # how long that is, or what keeps it from happening


def thrown_away(reach: Reach, *, scope: str = "") -> QuerySet[Operation]:
    """Applied prunes of visible scopes with a record that is not erased, the soonest to be erased first. No query."""
    there = OperationSource.objects.filter(scope=OuterRef("scope"), operation=OuterRef("pk"))
    kept = there.exclude(observation__status=Status.ERASED)
    found = Operation.objects.filter(
        Exists(kept), scope__in=reach.scopes, kind=Kind.PRUNE, status=State.APPLIED
    ).select_related("scope")
    found = found.filter(scope_id=int(scope)) if scope else found
    return found.order_by("applied_at", "pk")


def read_trash(operations: Sequence[Operation], *, now: datetime) -> list[Thrown]:
    """These prunes as the page shows them. Four queries, however many there are."""
    records = _records(operations)
    due, pauses = _due(operations), _pauses(operations)
    graces = _graces({operation.scope.name for operation in operations})
    found = []
    for operation in operations:
        erased_at = _erased_at(operation, due, graces.get(operation.scope.name))
        kept = records[operation.pk]
        found.append(
            Thrown(
                pk=operation.pk,
                op_id=operation.op_id,
                scope=visible(operation.scope.name),
                reason=visible(operation.reason),
                records=tuple(kept[:LINES]),
                more=max(0, len(kept) - LINES),
                by=visible(operation.decided_by),
                applied=told("{}, {}", visible(operation.applied_by), when(operation.applied_at)),
                erased_at=when(erased_at),
                left=_left(operation.scope, erased_at, pauses, now),
            )
        )
    return found


def _records(operations: Sequence[Operation]) -> defaultdict[int, list[Record]]:
    found: defaultdict[int, list[Record]] = defaultdict(list)
    rows = (
        OperationSource.objects.filter(operation__in=[operation.pk for operation in operations])
        .exclude(observation__status=Status.ERASED)
        .annotate(start=Left("observation__text", SNIPPET + 1))
        .order_by("operation_id", "position")
        .values_list("operation_id", "observation_id", "start")
    )
    for operation, pk, start in rows:
        if pk is not None:
            found[operation].append(Record(pk=pk, name=obs(pk), text=snippet(start)))
    return found


def _due(operations: Sequence[Operation]) -> dict[int, datetime]:
    """When the worker was asked to erase, by operation."""
    keys = {_key(operation): operation.pk for operation in operations}
    rows = Outbox.objects.filter(
        scope__in={operation.scope_id for operation in operations}, task=ERASE_PRUNED, key__in=keys, done_at=None
    )
    return {keys[key]: due for key, due in rows.values_list("key", "due_at")}


def _key(operation: Operation) -> str:
    return f"{operation.op_id}#{operation.generation}"


def _graces(scopes: Iterable[str]) -> dict[str, timedelta]:
    """How long a prune can be undone in each scope, by its policy now.

    A scope whose policy cannot be read is not there: nothing is erased in it. One query.
    """
    bodies = dict(Policy.objects.values_list("pattern", "body"))
    found = {}
    for scope in scopes:
        pattern = rules.most_specific(patterns=bodies, scope=scope)
        try:
            policy = rules.Policy.from_dict(bodies[pattern] if pattern else {})
        except rules.PolicyError:
            continue
        found[scope] = policy.grace_days * _DAY
    return found


def _pauses(operations: Sequence[Operation]) -> frozenset[int | None]:
    """Scopes that are paused; None: all of them."""
    scopes = {operation.scope_id for operation in operations}
    return frozenset(Pause.objects.filter(Q(scope=None) | Q(scope__in=scopes)).values_list("scope_id", flat=True))


def _erased_at(operation: Operation, due: Mapping[int, datetime], grace: timedelta | None) -> datetime | None:
    """The later of when the worker looks and when the grace period of today's policy ends."""
    looked_at = due.get(operation.pk)
    if looked_at is None or operation.applied_at is None or grace is None:
        return None
    return max(looked_at, operation.applied_at + grace)


def _left(scope: Scope, erased_at: datetime | None, pauses: frozenset[int | None], now: datetime) -> Chip:
    if scope.held(now=now):
        until = told(" until {}", when(scope.held_until)) if scope.held_until else ""
        return Chip(told("on hold{}: not erased while it lasts", until), "warn")
    if pauses & {None, scope.pk}:
        return Chip("paused: not erased while it lasts", "warn")
    if erased_at is None:
        return Chip("no erasure is due", "quiet")
    if erased_at <= now:
        return Chip("due now", "bad")
    days = (erased_at - now) // _DAY
    return Chip("less than a day left" if not days else f"{days} day{'s' if days > 1 else ''} left", "wait")
