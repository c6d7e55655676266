"""The past of memory on pages: as of a moment, searched whatever its status, and found by an id that may be retired.

Addresses hold ids, moments and nothing else: what was typed into a search is posted (ASVS 14.2.1).
"""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path

from consolidation.admin.history.as_of import AsOf, read_as_of, read_believed
from consolidation.admin.history.moments import moment_of
from consolidation.admin.history.rows import light, row_of
from consolidation.admin.history.searching import Asked, asked, found
from consolidation.admin.texts import when
from consolidation.operations import Prefix, number_of, visible
from observations.admin.base import Reach, Screen
from observations.admin.listing import listing, scope_filter
from observations.models import Episode, Observation, Scope, database_now

NAMED_LONG: Final = 200  # characters of an external id
OFFERED: Final = 50  # rows that share one external id, one per scope


def whole(words: str) -> int:
    """A row's number in an address; 0 for anything else."""
    return int(words) if words.isascii() and words.isdigit() and len(words) < 19 else 0


class HistoryPages(Screen):
    """The pages of observations that look back."""

    def extra_urls(self) -> list[URLPattern]:
        """As of a moment, the search of history, and every id that was ever given out."""
        return [
            *super().extra_urls(),
            path("as-of/", self.guarded(self.as_of_view), name=self.url_name("asof")),
            path("history/", self.guarded(self.past_view), name=self.url_name("history")),
            path("named/<path:name>/", self.guarded(self.named_view), name=self.url_name("named")),
        ]

    def as_of_view(self, request: HttpRequest) -> HttpResponse:
        """How one observation stood at a moment, or what a scope believed then. Eight queries at most for a row."""
        reach = Reach.of(request)
        words = request.GET.get("at", "")
        at = moment_of(words)
        context: dict[str, object] = {
            "title": "As of a moment",
            "at": words if at else "",
            "moment": when(at) if at else "",
            "iso": at.isoformat() if at else "",
            "unread": bool(words) and at is None,
            "future": at is not None and at > database_now(),
        }
        if asked_for := whole(request.GET.get("observation", "")):
            row = get_object_or_404(reach.rows(Observation.objects.select_related("scope")), pk=asked_for)
            one: AsOf = read_as_of(row, at=at or database_now())
            return self.render(request, _AS_OF, {**context, "one": one, "scope": row.scope})
        chosen = scope_filter(request=request, reach=reach)
        if request.GET.get("scope") and not chosen.value:
            raise Http404
        scope = Scope.objects.filter(pk=int(chosen.value)).first() if chosen.value else None
        context |= {"filters": (chosen,), "scope": scope}
        if scope is not None and at is not None:
            page = listing(light(read_believed(scope, at=at)).order_by("-pk"), data=request.GET)
            context |= {"page": page, "rows": [row_of(row) for row in page.rows]}
        return self.render(request, _AS_OF, context)

    def past_view(self, request: HttpRequest) -> HttpResponse:
        """Words over current and past rows. Posted: no search stands in an address, its further pages neither."""
        reach = Reach.of(request)
        wanted: Asked = asked(request=request, reach=reach)
        context = {"title": "Search history", "asked": wanted}
        if wanted.query or wanted.narrowed:
            page = listing(light(found(wanted, reach=reach)).order_by("-pk"), data=request.POST, size=50)
            context |= {"page": page, "rows": [row_of(row) for row in page.rows]}
        return self.render(request, "admin/observations/observation/history.html", context)

    def named_view(self, request: HttpRequest, *, name: str) -> HttpResponse:
        """From "obs_…", "ep_…" or a writer's own id to the row: merged, retracted and erased ones too. One query."""
        reach = Reach.of(request)
        if name.startswith(f"{Prefix.EPISODE}_"):
            turn = get_object_or_404(reach.rows(Episode.objects.all()), _by_number(name, Prefix.EPISODE))
            return redirect("admin:observations_episode_change", pk=turn.pk)
        rows = list(light(_called(reach.rows(Observation.objects.all()), name)).order_by("pk")[:OFFERED])
        if not rows:
            raise Http404
        if len(rows) == 1:
            return redirect(f"admin:{self.url_name('change')}", pk=rows[0].pk)
        messages.info(request, f"{len(rows)} rows of different scopes have this id.")
        context = {"title": visible(name), "rows": [row_of(row) for row in rows], "name": visible(name)}
        return self.render(request, "admin/observations/observation/named.html", context)


_AS_OF: Final = "admin/observations/observation/as_of.html"


def _by_number(name: str, prefix: Prefix) -> Q:
    try:
        return Q(pk=number_of(shown=name, prefix=prefix))
    except ValueError:
        return Q(pk__in=[])


def _called(rows: QuerySet[Observation], name: str) -> QuerySet[Observation]:
    """Rows of that number, where it is one of ours; else those whose writer called them exactly so. No query."""
    if name.startswith(f"{Prefix.OBSERVATION}_"):
        return rows.filter(_by_number(name, Prefix.OBSERVATION) | Q(external_id=name[:NAMED_LONG]))
    return rows.filter(external_id=name) if len(name) <= NAMED_LONG and "\0" not in name else rows.none()
