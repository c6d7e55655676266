"""A search over current and past rows: what was asked, read from a posted form, and the rows that hold it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Final

from django.db.models import QuerySet
from django.http import HttpRequest

from consolidation.admin.history.rows import holding
from observations.admin.base import SCOPES_OFFERED, Reach
from observations.admin.listing import Choice
from observations.models import Observation
from observations.records import MemoryKind, Status

QUERY_LONG: Final = 200  # characters of a search
PAST: Final = "past"  # every status but active


@dataclass(frozen=True, slots=True)
class Asked:
    """What was posted; whatever is not one of the declared values counts as nothing chosen."""

    query: str
    status: str
    kind: str
    scope: int
    since: date | None
    until: date | None
    statuses: tuple[Choice, ...]
    kinds: tuple[Choice, ...]
    scopes: tuple[Choice, ...]

    @property
    def narrowed(self) -> bool:
        """Something was chosen besides words."""
        return bool(self.status or self.kind or self.scope or self.since or self.until)


def asked(*, request: HttpRequest, reach: Reach) -> Asked:
    """One query: the scopes that may be chosen. Only a posted form asks for anything."""
    given = request.POST if request.method == "POST" else {}
    names = list(reach.scopes.order_by("name").values_list("pk", "name")[:SCOPES_OFFERED])
    scope = str(given.get("scope", ""))
    status, kind = str(given.get("status", "")), str(given.get("kind", ""))
    statuses = _choices([(PAST, "any but active"), *((str(each), str(each)) for each in Status)], status)
    kinds = _choices([(str(each), str(each)) for each in MemoryKind], kind)
    scopes = _choices([(str(pk), name) for pk, name in names], scope)
    return Asked(
        query=str(given.get("q", "")).replace("\0", "").strip()[:QUERY_LONG],
        status=_chosen(statuses),
        kind=_chosen(kinds),
        scope=int(_chosen(scopes) or 0),
        since=_day(str(given.get("since", ""))),
        until=_day(str(given.get("until", ""))),
        statuses=statuses,
        kinds=kinds,
        scopes=scopes,
    )


def _choices(values: Iterable[tuple[str, str]], chosen: str) -> tuple[Choice, ...]:
    return tuple(Choice(value=value, label=label, chosen=value == chosen) for value, label in values)


def _chosen(choices: tuple[Choice, ...]) -> str:
    return next((each.value for each in choices if each.chosen), "")


def _day(words: str) -> date | None:
    try:
        return date.fromisoformat(words)
    except ValueError:
        return None


def found(wanted: Asked, *, reach: Reach) -> QuerySet[Observation]:
    """The rows of visible scopes that hold every word, whatever became of them. No query."""
    rows: QuerySet[Observation] = Observation.objects.filter(scope__in=reach.scopes)
    if wanted.query:
        rows = holding(rows, wanted.query)
    if wanted.status:
        rows = rows.exclude(status=Status.ACTIVE) if wanted.status == PAST else rows.filter(status=wanted.status)
    if wanted.kind:
        rows = rows.filter(kind=wanted.kind)
    if wanted.scope:
        rows = rows.filter(scope_id=wanted.scope)
    if wanted.since:
        rows = rows.filter(created_at__date__gte=wanted.since)
    return rows.filter(created_at__date__lte=wanted.until) if wanted.until else rows
