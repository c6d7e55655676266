"""Residue: what agents handed in at the end of a run, and the day each item leaves the prompts. Looked at only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest, HttpResponse

from consolidation.admin.texts import snippet, when
from consolidation.operations import visible
from observations.admin.base import Reach, Screen
from observations.admin.listing import listing, scope_filter
from observations.ingest import RESIDUE_LASTS
from observations.models import Residue, database_now


@dataclass(frozen=True, slots=True)
class Row:
    """One item."""

    text: str
    scope: str
    session: str
    first: str
    held: str  # when it was held again; empty: it was not
    drops: str
    gone: bool  # no prompt has it any more; the next sweep deletes it
    by: str


class ResidueScreen(Screen):
    """The list; an item has no page of its own, it is at most 500 characters."""

    has_page = False

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """Items of visible scopes, the newest first."""
        reach, now = Reach.of(request), database_now()
        chosen = scope_filter(request=request, reach=reach)
        found = Residue.objects.filter(scope__in=reach.scopes)
        found = found.filter(scope_id=int(chosen.value)) if chosen.value else found
        page = listing(found.select_related("scope").order_by("-first_held_at", "-pk"), data=request.GET)
        context = {
            "title": "Residue",
            "page": page,
            "rows": [_row(row, now=now) for row in page.rows],
            "filters": (chosen,),
        }
        return self.render(request, "admin/observations/residue/change_list.html", context)


def _row(row: Residue, *, now: datetime) -> Row:
    drops = row.first_held_at + RESIDUE_LASTS
    return Row(
        text=snippet(row.text, limit=500),
        scope=visible(row.scope.name),
        session=snippet(row.session, limit=40),
        first=when(row.first_held_at),
        held=when(row.held_at) if when(row.held_at) != when(row.first_held_at) else "",
        drops=when(drops),
        gone=drops <= now,
        by=visible(row.by),
    )
