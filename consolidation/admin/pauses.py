"""Pausing: planning and applying refuse, in one scope or everywhere, until somebody resumes; reads and writes go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path

from consolidation import pausing
from consolidation.admin.texts import when
from consolidation.models import Pause
from consolidation.operations import visible
from observations.admin.base import Reach, Screen, signed_in
from observations.admin.listing import Choice
from observations.models import Scope

PAUSE: Final = "consolidation.pause"


@dataclass(frozen=True, slots=True)
class Row:
    """One pause."""

    pk: int
    scope: str
    by: str
    at: str
    reason: str
    yours: bool  # this person may end it


class PauseScreen(Screen):
    """What is paused, and the two buttons."""

    has_page = False

    def extra_urls(self) -> list[URLPattern]:
        """Pause and resume."""
        return [
            path("set/", self.guarded(self.set_view, PAUSE), name=self.url_name("set")),
            path("<int:pk>/lift/", self.guarded(self.lift_view, PAUSE), name=self.url_name("lift")),
        ]

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """Every pause of a visible scope, and the one of everything, which concerns everybody."""
        reach = Reach.of(request)
        found = Pause.objects.filter(scope=None) | Pause.objects.filter(scope__in=reach.scopes)
        mine = reach.where(PAUSE)
        rows = [
            Row(
                pk=row.pk,
                scope=visible(row.scope.name) if row.scope else pausing.EVERYTHING,
                by=visible(row.by),
                at=when(row.at),
                reason=visible(row.reason),
                yours=reach.may(PAUSE, scope=row.scope) if row.scope else mine.everything,
            )
            for row in found.select_related("scope").order_by("pk")[:500]
        ]
        context = {"title": "Pauses", "rows": rows, "targets": self._targets(mine) if reach.may(PAUSE) else []}
        return self.render(request, "admin/consolidation/pause/change_list.html", context)

    def _targets(self, reach: Reach) -> list[Choice]:
        scopes = reach.scopes.filter(pause=None).order_by("name").values_list("pk", "name")[:200]
        whole = [Choice(value=pausing.EVERYTHING, label=pausing.EVERYTHING, chosen=False)] if reach.everything else []
        return whole + [Choice(value=str(pk), label=name, chosen=False) for pk, name in scopes]

    def set_view(self, request: HttpRequest) -> HttpResponse:
        """Pause one scope, or everything for people who see every scope."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        reach, target = Reach.of(request), request.POST.get("target", "")
        scope: Scope | None = None
        if target.isascii() and target.isdigit() and len(target) < 19:
            scope = get_object_or_404(reach.scopes, pk=int(target))
        if scope is None and not (target == pausing.EVERYTHING and reach.everything):
            messages.error(request, "Choose a scope that you may see.")
            return self._back()
        reason = request.POST.get("reason", "").replace("\0", "").strip()[:200]
        self._pause(request, scope, reason)
        return self._back()

    def _pause(self, request: HttpRequest, scope: Scope | None, reason: str) -> None:
        if pausing.pause(scope=scope, by=signed_in(request).get_username(), reason=reason):
            messages.success(request, "Paused: nothing is planned or applied there until somebody resumes it.")
        else:
            messages.info(request, "It is paused already.")

    def lift_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Resume."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        mine = Reach.of(request).rows(Pause.objects.select_related("scope"))
        pause = get_object_or_404(mine, pk=pk)
        pausing.resume(scope=pause.scope, by=signed_in(request).get_username())
        messages.success(request, "Resumed: planning and applying go on.")
        return self._back()

    def _back(self) -> HttpResponse:
        return redirect(f"admin:{self.url_name('changelist')}")
