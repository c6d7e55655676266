"""Plan now: at once where that is quick, else by a worker, with its progress to look at. Planning changes no memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse

from consolidation import planner, review
from consolidation.admin.texts import when
from consolidation.models import Planning
from consolidation.operations import plan as plan_label
from consolidation.operations import visible
from consolidation.tasks import ADMIN, PLAN_NOW
from observations import outbox, spending
from observations.admin.base import Reach, Screen, signed_in
from observations.admin.listing import Choice
from observations.models import Observation, Scope

MAKE: Final = "consolidation.make_plan"
IN_REQUEST: Final = 2_000  # current records up to which a page can wait for its plan


class PlanNow(Screen):
    """Asking for a plan, and looking how far it is."""

    def extra_urls(self) -> list[URLPattern]:
        """Where a plan is asked for, and where it is awaited."""
        return [
            *super().extra_urls(),
            path("new/", self.guarded(self.new_view, MAKE), name=self.url_name("new")),
            path("coming/<int:pk>/", self.guarded(self.coming_view), name=self.url_name("coming")),
            path("coming/<int:pk>/progress/", self.guarded(self.progress_view), name=self.url_name("progress")),
        ]

    def targets(self, reach: Reach) -> list[Choice]:
        """What "Plan now" may be asked for: whole patterns first, then single scopes. One query."""
        patterns = [
            Choice(value=f"pattern:{pattern}", label="every scope" if pattern == "*" else pattern, chosen=False)
            for pattern in reach.patterns
        ]
        scopes = reach.scopes.order_by("name").values_list("pk", "name")[:200]
        return patterns + [Choice(value=f"scope:{pk}", label=name, chosen=False) for pk, name in scopes]

    def new_view(self, request: HttpRequest) -> HttpResponse:
        """Plan now: a dry run that proposes and changes no memory (C12)."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        scopes, pattern = self._target(request.POST.get("target", ""), Reach.of(request))
        if not scopes:
            messages.error(
                request, "There is no such scope with memory in it that you may see: choose one of the list."
            )
            return redirect(f"admin:{self.url_name('changelist')}")
        by = signed_in(request).get_username()
        if _takes_long(scopes):
            return redirect(f"admin:{self.url_name('coming')}", pk=_ask_a_worker(scopes, pattern, by))
        try:
            plan = planner.plan(scopes=scopes, pattern=pattern, by=by, trigger=ADMIN)
        except review.Refused as refusal:
            messages.error(request, str(refusal))
            return redirect(f"admin:{self.url_name('changelist')}")
        messages.success(request, f"{plan} is ready. Nothing has been changed.")
        return redirect(f"admin:{self.url_name('change')}", pk=plan.pk)

    def _target(self, target: str, reach: Reach) -> tuple[list[Scope], str]:
        what, _, value = target.partition(":")
        if what == "pattern" and value in reach.patterns:
            return list(reach.scopes.filter(pk__in=Scope.objects.matching(value))), value
        if what == "scope" and value.isascii() and value.isdigit() and len(value) < 19:
            scopes = list(reach.scopes.filter(pk=int(value)))
            return scopes, scopes[0].name if scopes else ""
        return [], ""

    def _awaited(self, request: HttpRequest, pk: int) -> Planning:
        """A pass over scopes the person may see, all of them; else 404."""
        row = Planning.objects.filter(pk=pk).first()
        seen = Reach.of(request).scopes.filter(pk__in=row.scopes).count() if row else 0
        if row is None or seen < len(row.scopes):
            raise Http404
        return row

    def coming_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """How far it is; to the plan once that is made. Four queries."""
        row = self._awaited(request, pk)
        if row.plan_id:
            return redirect(f"admin:{self.url_name('change')}", pk=row.plan_id)
        context = {"title": "Planning", "coming": self._told(row), "asked": when(row.asked_at)}
        return self.render(request, "admin/consolidation/plan/coming.html", context)

    def progress_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """The same for the page's script, which asks again every second."""
        return JsonResponse(self._told(self._awaited(request, pk)))

    def _told(self, row: Planning) -> dict[str, Any]:
        """Where a pass stands: a word, a sentence, how many of how many, and where its plan is."""
        total = len(row.scopes)
        told: dict[str, Any] = {"pk": row.pk, "done": min(row.done, total), "total": total, "plan": ""}
        if row.plan_id:
            there = reverse(f"admin:{self.url_name('change')}", args=[row.plan_id])
            return told | {"state": "done", "said": f"{plan_label(row.plan_id)} is ready.", "plan": there}
        if row.finished_at:
            return told | {"state": "failed", "said": visible(row.error) or "It failed; its log says why."}
        if row.started_at is None:
            said = "Waiting for a worker. If this does not change, none is running."
            return told | {"state": "waiting", "said": said}
        return told | {"state": "running", "said": visible(row.doing) or "Reading."}


def _takes_long(scopes: Sequence[Scope]) -> bool:
    """Whether a page should not wait: many records, or a model that is asked. One query at most."""
    if spending.configured():
        return True
    rows = Observation.objects.active().filter(scope__in=[scope.pk for scope in scopes])
    return rows.order_by()[: IN_REQUEST + 1].count() > IN_REQUEST


@transaction.atomic
def _ask_a_worker(scopes: Sequence[Scope], pattern: str, by: str) -> int:
    row = Planning.objects.create(by=by, pattern=pattern, scopes=[scope.pk for scope in scopes])
    outbox.enqueue(task=PLAN_NOW, scope_id=None, key=str(row), payload={"planning": row.pk})
    return row.pk
