"""What happened to one observation or episode: operations that touch it, its moves in the database's journal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db.models import Q

from consolidation.admin.reading import Chip, state_chip
from consolidation.admin.telling import status_chip
from consolidation.admin.texts import when
from consolidation.models import Operation
from consolidation.operations import visible
from observations.models import Episode, Observation, Transition

SHOWN: Final = 50  # rows of each list


@dataclass(frozen=True, slots=True)
class Touched:
    """One operation that takes this row in, or made it."""

    pk: int
    op_id: str
    kind: str
    state: Chip
    why: str
    at: str
    made: bool


@dataclass(frozen=True, slots=True)
class Moved:
    """One move of this row, from the database's own journal."""

    version: int
    before: Chip
    after: Chip
    successor: int | None
    at: str
    cause: str
    operation: str


def moves(row: Observation | Episode) -> tuple[Moved, ...]:
    """Its moves, newest first. One query."""
    mine = Q(observation=row) if isinstance(row, Observation) else Q(episode=row)
    journal = Transition.objects.filter(mine, scope_id=row.scope_id).order_by("-version")[:SHOWN]
    return tuple(
        Moved(
            version=move.version,
            before=status_chip(move.from_status),
            after=status_chip(move.to_status),
            successor=move.superseded_by_id,
            at=when(move.at),
            cause=visible(move.cause),
            operation=_operation_in(move.cause),
        )
        for move in journal
    )


def _operation_in(cause: str) -> str:
    """The operation a cause names, as "op_…#1"; empty when it names none."""
    last = cause.rpartition(" ")[2]
    return visible(last) if last.startswith("op_") else ""


def operations(row: Observation | Episode) -> tuple[Touched, ...]:
    """Operations that take this row in or made it, newest first. One query."""
    mine = Operation.objects.filter(scope_id=row.scope_id)
    is_observation = isinstance(row, Observation)
    taking = mine.filter(Q(sources__observation=row) if is_observation else Q(sources__episode=row)).values("pk")
    made = Q(derived=row) if is_observation else Q(pk=None)
    found = mine.filter(Q(pk__in=taking) | made).order_by("-pk")[:SHOWN]
    return tuple(
        Touched(
            pk=operation.pk,
            op_id=operation.op_id,
            kind=operation.kind,
            state=state_chip(operation),
            why=visible(operation.skipped_reason or operation.reason),
            at=when(operation.created_at),
            made=is_observation and operation.derived_id == row.pk,
        )
        for operation in found
    )
