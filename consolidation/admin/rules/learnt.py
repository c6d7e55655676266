"""Learnt values: how many values a predicate holds at a time, and which decision taught it. Looked at only.

A lesson is changed by deciding otherwise the next time, or by undoing the decision that taught it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse

from consolidation.admin.reading import Chip
from consolidation.admin.texts import snippet, when
from consolidation.models import Cardinality
from consolidation.operations import visible
from observations.admin.base import Reach, Screen
from observations.admin.listing import declared, listing, scope_filter

_HOLDS: Final = {
    Cardinality.Values.ONE: "one value at a time",
    Cardinality.Values.MANY: "several values at once",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One lesson in the list."""

    predicate: str
    holds: str
    state: Chip
    scope: str
    by: str
    at: str
    operation: str  # the decision that taught it, "op_…#1"
    withdrawn: str


class CardinalityScreen(Screen):
    """The list; a lesson has no page of its own, it is one line."""

    has_page = False

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """Lessons of visible scopes, newest first."""
        reach = Reach.of(request)
        filters = (
            declared(request=request, name="holds", label="Holds", values=map(str, Cardinality.Values.values)),
            scope_filter(request=request, reach=reach),
        )
        holds, scope = (chosen.value for chosen in filters)
        found = _with_newer(Cardinality.objects.filter(scope__in=reach.scopes))
        found = found.filter(holds=holds) if holds else found
        found = found.filter(scope_id=int(scope)) if scope else found
        page = listing(found.select_related("scope").order_by("-pk"), data=request.GET)
        context = {"title": "Learnt values", "page": page, "rows": [_row(row) for row in page.rows], "filters": filters}
        return self.render(request, "admin/consolidation/cardinality/change_list.html", context)


def _with_newer(found: QuerySet[Cardinality]) -> QuerySet[Cardinality]:
    """With `overruled`: a newer lesson about the same predicate stands. No query."""
    newer = Cardinality.objects.filter(
        scope=OuterRef("scope"), predicate=OuterRef("predicate"), withdrawn_at=None, pk__gt=OuterRef("pk")
    )
    return found.annotate(overruled=Exists(newer))


def _row(row: Cardinality) -> Row:
    return Row(
        predicate=snippet(row.predicate or None),
        holds=_HOLDS.get(Cardinality.Values(row.holds), ""),
        state=_state(row),
        scope=visible(row.scope.name),
        by=visible(row.by),
        at=when(row.at),
        operation=visible(row.operation),
        withdrawn=when(row.withdrawn_at),
    )


def _state(row: Cardinality) -> Chip:
    if row.withdrawn_at:
        return Chip("taken back", "back")
    return Chip("a newer one holds", "quiet") if getattr(row, "overruled", False) else Chip("holds", "done")
