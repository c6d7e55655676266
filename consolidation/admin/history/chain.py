"""The chain of versions one observation stands in, oldest first: who replaced what, why, and which words changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import connection
from django.db.models import Count, Q

from consolidation.admin.history.written import GaveWay, gave_way
from consolidation.admin.reading import Chip
from consolidation.admin.telling import status_chip
from consolidation.admin.texts import SNIPPET, Edit, day, edited, snippet
from consolidation.models import Operation
from consolidation.operations import obs, visible
from observations.models import Evidence, Observation
from observations.records import Status

DEEP: Final = 50  # versions walked in each direction
READ: Final = 4_000  # characters of each version that are compared with the next one
COMPARED: Final = 60_000  # characters compared on one page; what is further from the row is not compared there


@dataclass(frozen=True, slots=True)
class Version:
    """One row of the chain of versions."""

    pk: int
    name: str
    text: str
    status: Chip
    said: str
    here: bool
    rests_on: str  # how many sources, how many of them independent
    how: str  # how it gave way to the next one; empty for the last
    gave_way: GaveWay | None  # when, by what and on which words
    who: str  # who decided and who carried it out
    why: str  # their reason
    edit: Edit | None  # the next one's text, word by word against this one's; None: not compared here


@dataclass(frozen=True, slots=True)
class Link:
    """One row as the walk finds it. `step` is 0 here, below zero before it."""

    pk: int
    text: str | None
    length: int
    status: str
    created: datetime
    successor: int | None
    step: int

    @property
    def comparable(self) -> bool:
        """Its whole text was read."""
        return self.text is not None and self.length <= READ


# Older versions are found by who names this row as successor, step by step; newer ones by following the successor.
_CHAIN: Final = """
WITH RECURSIVE newer (id, step) AS (
    SELECT superseded_by_id, 1 FROM observations_observation WHERE id = %(id)s AND superseded_by_id IS NOT NULL
  UNION ALL
    SELECT o.superseded_by_id, n.step + 1 FROM observations_observation o JOIN newer n ON o.id = n.id
    WHERE o.superseded_by_id IS NOT NULL AND n.step < %(deep)s
), older (id, step) AS (
    SELECT id, -1 FROM observations_observation WHERE scope_id = %(scope)s AND superseded_by_id = %(id)s
  UNION ALL
    SELECT o.id, p.step - 1 FROM observations_observation o JOIN older p ON o.superseded_by_id = p.id
    WHERE o.scope_id = %(scope)s AND p.step > -%(deep)s
), chain AS (SELECT * FROM newer UNION ALL SELECT * FROM older UNION ALL SELECT %(id)s, 0)
SELECT o.id, left(o.text, %(length)s), coalesce(length(o.text), 0), o.status, o.created_at, o.superseded_by_id, c.step
FROM chain c JOIN observations_observation o ON o.id = c.id AND o.scope_id = %(scope)s
ORDER BY abs(c.step), o.created_at DESC, o.id DESC LIMIT %(limit)s
"""


def versions(row: Observation) -> tuple[Version, ...]:
    """The chain this row stands in, oldest first. Five queries."""
    rows = sorted(chain_of(row), key=lambda each: (each.step, each.created, each.pk))
    steps = {each.pk: each.successor for each in rows if each.successor is not None}
    ways = gave_way(scope_id=row.scope_id, steps=steps)
    operations = _operations(row.scope_id, ways)
    sources = _sources(row.scope_id, [each.pk for each in rows])
    edits = _edits(rows)
    return tuple(
        _version(each, row, way=ways.get(each.pk), by=operations, rests_on=sources, edit=edits.get(each.pk))
        for each in rows
    )


def chain_of(row: Observation) -> list[Link]:
    """The rows of the chain, the nearest first. One query."""
    values = {"id": row.pk, "scope": row.scope_id, "deep": DEEP, "length": READ, "limit": 2 * DEEP + 1}
    with connection.cursor() as cursor:
        cursor.execute(_CHAIN, values)
        return [Link(*found) for found in cursor.fetchall()]


def _operations(scope_id: int, ways: Mapping[int, GaveWay]) -> dict[str, Operation]:
    """The operations that the chain's moves name, as "op_…#1". One query."""
    named = {way.operation for way in ways.values() if way.operation}
    found = Operation.objects.filter(
        scope_id=scope_id, op_id__in=["", *sorted(name.partition("#")[0] for name in named)]
    )
    return {f"{each.op_id}#{each.generation}": each for each in found}


def _sources(scope_id: int, ids: Sequence[int]) -> dict[int, str]:
    """How many sources each row rests on. One query."""
    rows = Evidence.objects.filter(scope_id=scope_id, observation__in=ids).values("observation_id").order_by()
    counted = rows.annotate(n=Count("id"), roots=Count("root_source", distinct=True, filter=~Q(root_source="")))
    return {
        each["observation_id"]: f"{each['n']} source{'' if each['n'] == 1 else 's'}, {each['roots']} independent"
        for each in counted
    }


def _edits(rows: Sequence[Link]) -> dict[int, Edit]:
    """Each row against the one in its place, the nearest to the page's row first, as far as COMPARED goes. No query."""
    known = {each.pk: each for each in rows}
    found: dict[int, Edit] = {}
    left = COMPARED
    for each in sorted(rows, key=lambda one: (abs(one.step), one.pk)):
        after = known.get(each.successor or 0)
        if after is None or not (each.comparable and after.comparable):
            continue
        left -= each.length + after.length
        if left < 0:
            break
        found[each.pk] = edited(each.text, after.text)
    return found


def _version(
    each: Link,
    row: Observation,
    *,
    way: GaveWay | None,
    by: Mapping[str, Operation],
    rests_on: Mapping[int, str],
    edit: Edit | None,
) -> Version:
    operation = by.get(way.operation) if way else None
    return Version(
        pk=each.pk,
        name=obs(each.pk),
        text=snippet(each.text) if each.length <= READ else snippet((each.text or "")[: SNIPPET + 1]),
        status=status_chip(each.status),
        said=day(each.created),
        here=each.pk == row.pk,
        rests_on=rests_on.get(each.pk, "no source is recorded"),
        how=_gave_way(each.status, each.successor),
        gave_way=way,
        who=_who(operation),
        why=visible(operation.decision_reason or operation.reason) if operation else "",
        edit=edit,
    )


def _who(operation: Operation | None) -> str:
    """Who decided, who agreed, who carried it out. No query."""
    if operation is None:
        return ""
    people = (
        ("decided", operation.decided_by),
        ("agreed", operation.seconded_by),
        ("applied", operation.applied_by),
    )
    return ", ".join(f"{done} by {visible(name)}" for done, name in people if name)


def _gave_way(status: str, successor: int | None) -> str:
    if successor is None:
        return ""
    return f"superseded by {obs(successor)}" if status == Status.SUPERSEDED else f"merged into {obs(successor)}"
