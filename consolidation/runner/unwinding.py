"""UNDO with what was built on it: the tree of later operations, the shortest order, and undoing in that order (C13).

Looking writes nothing. Doing undoes one operation after the other, each in its own transaction, and stops at the first
that refuses: what was undone by then is whole, what was not is untouched.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import connection

from consolidation import review
from consolidation.models import Operation
from consolidation.runner.execution import undo
from consolidation.runner.work import Outcome, Result

MOST: Final = 200  # operations of one tree; more are undone by their plans

# The edges "was built on": a later applied operation took in a row that the earlier one wrote or moved. What promotions
# and aliases leave as it is, is not theirs.
_LATER: Final = """
WITH RECURSIVE built (id, under) AS (
  SELECT %(root)s::bigint, NULL::bigint
  UNION
  SELECT later.id, b.id FROM built b JOIN LATERAL (
    SELECT o.id FROM consolidation_operation a
    JOIN consolidation_operationsource s ON s.scope_id = a.scope_id AND (
      s.observation_id = a.derived_id OR (a.kind NOT IN ('promote', 'alias') AND EXISTS (
        SELECT 1 FROM consolidation_operationsource mine WHERE mine.scope_id = a.scope_id AND mine.operation_id = a.id
          AND (mine.observation_id = s.observation_id OR mine.episode_id = s.episode_id))))
    JOIN consolidation_operation o ON o.scope_id = a.scope_id AND o.id = s.operation_id
    WHERE a.id = b.id AND a.scope_id = %(scope)s AND o.status = 'applied' AND o.kind <> 'alias' AND o.id <> a.id
      AND o.applied_at > a.applied_at
  ) later ON true
)
SELECT DISTINCT id, under FROM built WHERE under IS NOT NULL ORDER BY 1, 2 LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True)
class Later:
    """One applied operation that was built on the one to undo, or on one that was."""

    pk: int
    op_id: str
    kind: str
    applied_at: datetime
    applied_by: str
    derived: int | None  # the row it wrote, which its undo retracts
    on: tuple[int, ...]  # keys of the operations it was built on


@dataclass(frozen=True, slots=True)
class Unwinding:
    """What has to be undone before one operation can be, the last applied first: every one, each once."""

    operation: int
    order: tuple[Later, ...]
    cut: bool  # there are more than MOST
    shown: str  # fingerprint of exactly these, in this order: what is confirmed is what is done (D2)

    @property
    def tree(self) -> tuple[tuple[int, Later], ...]:
        """Each with its depth beneath the operation, in the order a reader goes down; built on two, it stands under
        the later one.
        """
        under: defaultdict[int, list[Later]] = defaultdict(list)
        place = {row.pk: number for number, row in enumerate(self.order)}
        for row in self.order:
            under[min(row.on, key=lambda pk: place.get(pk, len(place)))].append(row)
        return tuple(_below(self.operation, under, depth=0))


def _below(pk: int, under: Mapping[int, list[Later]], *, depth: int) -> Iterable[tuple[int, Later]]:
    for row in sorted(under.get(pk, ()), key=lambda row: (row.applied_at, row.pk)):
        yield depth, row
        yield from _below(row.pk, under, depth=depth + 1)


def unwinding(*, operation: Operation) -> Unwinding:
    """What was built on an applied operation, directly and through others. Two queries; writes nothing."""
    edges: defaultdict[int, list[int]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_LATER, {"root": operation.pk, "scope": operation.scope_id, "most": MOST + 1})
        found = cursor.fetchall()
    for pk, under in found:
        edges[pk].append(under)
    rows = Operation.objects.filter(scope_id=operation.scope_id, pk__in=list(edges)).order_by("-applied_at", "-pk")
    order = tuple(
        Later(
            pk=row.pk,
            op_id=row.op_id,
            kind=row.kind,
            applied_at=row.applied_at,
            applied_by=row.applied_by,
            derived=row.derived_id,
            on=tuple(edges[row.pk]),
        )
        for row in rows
        if row.applied_at is not None
    )
    return Unwinding(operation=operation.pk, order=order, cut=len(found) > MOST, shown=_fingerprint(operation, order))


def _fingerprint(operation: Operation, order: Iterable[Later]) -> str:
    names = [f"{operation.op_id}#{operation.generation} {operation.applied_at}", *(f"{row.pk}" for row in order)]
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def unwind(
    *, operation: Operation, by: str, shown: str, progress: Callable[[Result], None] | None = None
) -> list[Result]:
    """Undo everything that was built on an operation, then the operation itself; a result per operation.

    Raises review.Changed when it is not what was `shown` any more. Stops after the first that is refused or fails.
    """
    found = unwinding(operation=operation)
    if found.shown != shown:
        raise review.Changed("What was built on it changed since you looked: read it again, then confirm.")
    if found.cut:
        raise review.Refused(f"More than {MOST} operations were built on it: undo their plans first.")
    rows = Operation.objects.select_related("scope").in_bulk([row.pk for row in found.order])
    results: list[Result] = []
    for row in [*(rows[later.pk] for later in found.order), operation]:
        asked = row.pk == operation.pk  # the others are no judgement of anybody's: they stood in the way
        results.append(undo(operation=row, by=by, along_with="" if asked else operation.op_id))
        if progress:
            progress(results[-1])
        if results[-1].outcome not in (Outcome.UNDONE, Outcome.ALREADY):
            break
    return results
