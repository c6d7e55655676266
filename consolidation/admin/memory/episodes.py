"""Episodes: what happened, verbatim. Looked at only."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import F
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from consolidation.admin.history.past import SHOWN, Moved, Touched, moves, operations
from consolidation.admin.reading import Chip
from consolidation.admin.telling import status_chip
from consolidation.admin.texts import SNIPPET, Text, snippet, when, whole
from consolidation.operations import Kind, ep, obs, visible
from observations.admin.base import Reach, Screen
from observations.admin.listing import declared, listing, scope_filter
from observations.models import Episode, Lineage
from observations.records import Outcome, Status

STATUSES = ("active", "archived", "erased")


@dataclass(frozen=True, slots=True)
class Row:
    """One episode in a list."""

    pk: int
    name: str
    text: str
    speaker: str
    role: str
    session: str
    outcome: str
    at: str
    status: Chip
    scope: str


@dataclass(frozen=True, slots=True)
class Derived:
    """One observation that rests on an episode."""

    pk: int
    name: str
    text: str
    status: Chip
    how: str  # promote, compact


@dataclass(frozen=True, slots=True)
class Page:
    """One episode."""

    head: Row
    text: Text
    external_id: str
    source: str
    root: str
    recorded: str
    version: int
    scope_id: int
    archived: bool
    summary: Derived | None  # what reads see in its place
    derived: tuple[Derived, ...]  # observations that rest on it
    operations: tuple[Touched, ...]
    moves: tuple[Moved, ...]


class EpisodeScreen(Screen):
    """The list and the page."""

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """Episodes, newest row first."""
        reach = Reach.of(request)
        filters = (
            declared(request=request, name="outcome", label="Outcome", values=map(str, Outcome)),
            declared(request=request, name="status", label="Status", values=STATUSES),
            scope_filter(request=request, reach=reach),
        )
        found = Episode.objects.filter(scope__in=reach.scopes)
        for chosen in filters:
            if chosen.value:
                found = found.filter(**{"scope_id" if chosen.name == "scope" else chosen.name: chosen.value})
        found = found.select_related("scope").defer("text").annotate(start=Left("text", SNIPPET + 1))
        page = listing(found.order_by("-pk"), data=request.GET)
        context = {"title": "Episodes", "page": page, "rows": [row_of(row) for row in page.rows], "filters": filters}
        return self.render(request, "admin/observations/episode/change_list.html", context)

    def page_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """One episode and what was derived from it."""
        found = Reach.of(request).rows(Episode.objects.select_related("scope"))
        context = {"title": ep(pk), "page": _page(get_object_or_404(found, pk=pk))}
        return self.render(request, "admin/observations/episode/change_form.html", context)


def row_of(row: Episode) -> Row:
    """One episode as a list shows it."""
    return Row(
        pk=row.pk,
        name=ep(row.pk),
        text=snippet(getattr(row, "start", "")),
        speaker=visible(row.speaker),
        role=visible(row.role),
        session=snippet(row.session, limit=40),
        outcome=row.outcome,
        at=when(row.happened_at),
        status=status_chip(row.status),
        scope=visible(row.scope.name),
    )


def _page(row: Episode) -> Page:
    """One episode, whose scope was selected with it. Three queries."""
    edges = (
        Lineage.objects.filter(scope_id=row.scope_id, source_episode=row)
        .annotate(start=Left("derived__text", SNIPPET + 1), end_status=F("derived__status"))
        .values_list("derived_id", "start", "end_status", "derivation")
        .order_by("-id")[:SHOWN]
    )
    derived = tuple(
        Derived(pk=pk, name=obs(pk), text=snippet(text), status=status_chip(status), how=visible(how))
        for pk, text, status, how in edges
    )
    current = (one for one in derived if one.how == Kind.COMPACT and one.status.word == Status.ACTIVE)
    archived = row.status == Status.ARCHIVED
    return Page(
        head=row_of(row),
        text=whole(row.text),
        external_id=visible(row.external_id),
        source=snippet(row.source_uri),
        root=snippet(row.root_source),
        recorded=when(row.recorded_at),
        version=row.version,
        scope_id=row.scope_id,
        archived=archived,
        summary=next(current, None) if archived else None,
        derived=derived,
        operations=operations(row),
        moves=moves(row),
    )
