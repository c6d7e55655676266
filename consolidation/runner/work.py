"""One operation under lock: what apply, undo and the end of a prune look at, and how they speak of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from consolidation import review
from consolidation.models import Operation, OperationSource
from consolidation.operations import Json
from consolidation.policy import Policy as Rules
from observations import store
from observations.models import Event, Observation


class Outcome(StrEnum):
    """What became of one attempt to apply or undo."""

    APPLIED = "applied"
    UNDONE = "undone"
    ALREADY = "already"  # it was done before: nothing changed
    STALE = "stale"  # its sources or the policy changed since planning: nothing of it was written
    REFUSED = "refused"  # not approved, expired, held, paused, or something was built on top
    FAILED = "failed"  # the database refused it: nothing of it was written


@dataclass(frozen=True, slots=True)
class Result:
    """One attempt, for a person to read."""

    operation: str
    kind: str
    outcome: Outcome
    sentence: str


@dataclass(frozen=True, slots=True)
class Work:
    """One operation under lock, with everything apply and undo look at."""

    operation: Operation
    sources: list[OperationSource]
    rows: dict[int, Observation]
    policy: Rules
    now: datetime  # the database's clock, read when the lock was had

    @property
    def ids(self) -> list[int]:
        return [source.observation_id or 0 for source in self.sources]


def lock(operation: Operation, *, cause: str) -> Work:
    """Take every lock, in the one order that cannot deadlock, and read what stands under it."""
    now = store.lock_scope(scope_id=operation.scope_id, exclusive=True, cause=f"{cause} {stamp(operation)}")
    locked = Operation.objects.select_for_update(of=("self",)).select_related("scope").get(pk=operation.pk)
    sources = review.sources_of(locked)
    ids = [source.observation_id or 0 for source in sources]
    if locked.derived_id:
        ids.append(locked.derived_id)
    rows = store.lock_rows(scope_id=locked.scope_id, ids=ids)
    return Work(locked, sources, rows, review.policy_of(locked.scope.name), now)


def stamp(operation: Operation) -> str:
    """How rows name the operation that made them: its id and generation."""
    return f"{operation.op_id}#{operation.generation}"


def record(operation: Operation, action: str, by: str, detail: dict[str, Json]) -> None:
    """Append the event of a change of state; the last statement of its transaction. One query."""
    Event.objects.append(
        scope_id=operation.scope_id,
        action=action,
        actor=by,
        subject=operation.op_id,
        generation=operation.generation,
        detail=detail,
    )


def result(operation: Operation, outcome: Outcome, sentence: str) -> Result:
    """One attempt's result, for a person to read."""
    return Result(operation=operation.op_id, kind=operation.kind, outcome=outcome, sentence=sentence)
