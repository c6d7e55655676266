"""One observation, or a scope, as it was believed at a moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from consolidation.admin.history.chain import chain_of
from consolidation.admin.history.moments import Stood, stood
from consolidation.admin.history.rows import Row, light, row_of
from consolidation.admin.reading import Chip
from consolidation.admin.telling import status_chip
from consolidation.admin.texts import Text, when, whole
from consolidation.operations import obs, visible
from observations.models import Observation, Scope


@dataclass(frozen=True, slots=True)
class AsOf:
    """One observation at a moment."""

    pk: int
    name: str
    scope: str
    text: Text
    then: Chip
    now: Chip
    successor: int | None  # what stood in its place then
    believed: bool  # reads would have held it
    instead: tuple[Row, ...]  # of its chain: those that were believed then
    recorded: str
    said: str


def read_as_of(row: Observation, *, at: datetime) -> AsOf:
    """Four queries, however long its chain is. The row's scope was selected with it."""
    of_claims, _ = stood(scope_id=row.scope_id, observations=[row], at=at)
    then: Stood = of_claims[row.pk]
    chain = chain_of(row)
    believed = light(read_believed(row.scope, at=at).filter(pk__in=[each.pk for each in chain])).order_by("pk")
    held = list(believed)
    return AsOf(
        pk=row.pk,
        name=obs(row.pk),
        scope=visible(row.scope.name),
        text=whole(row.text),
        then=then.chip,
        now=status_chip(row.status),
        successor=then.successor,
        believed=any(each.pk == row.pk for each in held),
        instead=tuple(row_of(each) for each in held if each.pk != row.pk),
        recorded=when(row.recorded_at),
        said=when(row.created_at),
    )


def read_believed(scope: Scope, *, at: datetime) -> QuerySet[Observation]:
    """What the reads of a scope held at a moment. No query."""
    return Observation.objects.as_of(at).filter(scope=scope)
