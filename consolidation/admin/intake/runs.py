"""Runs of the background: the list, and one run with every claim, its words, the verdict and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from consolidation.admin.intake.reading import (
    ANSWERS,
    VERDICTS,
    answers_of,
    read_items,
    read_runs,
    turns_of,
    unusable_turns,
)
from consolidation.admin.item.deciding import REVIEW
from consolidation.admin.reading import Chip
from observations.admin.base import Reach, Screen
from observations.admin.listing import declared, listing, scope_filter
from observations.models import IntakeItem, IntakeRun

ITEMS: Final = 50  # claims on a page


@dataclass(frozen=True, slots=True)
class Counted:
    """One verdict with how many claims of the run it was given."""

    value: str
    chip: Chip
    claims: int
    chosen: bool


class IntakeRunScreen(Screen):
    """The list and the page of one run."""

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """Runs of visible scopes, newest first."""
        reach = Reach.of(request)
        filters = (
            declared(request=request, name="state", label="State", values=map(str, IntakeRun.State)),
            declared(request=request, name="trigger", label="Asked for", values=map(str, IntakeRun.Trigger)),
            scope_filter(request=request, reach=reach),
        )
        found: QuerySet[IntakeRun] = IntakeRun.objects.filter(scope__in=reach.scopes)
        for chosen in filters:
            if chosen.value:
                found = found.filter(**{"scope_id" if chosen.name == "scope" else chosen.name: chosen.value})
        page = listing(found.select_related("scope").order_by("-pk"), data=request.GET)
        context = {
            "title": "Intake runs",
            "page": page,
            "rows": read_runs(page.rows),
            "filters": filters,
        }
        return self.render(request, "admin/observations/intakerun/change_list.html", context)

    def page_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """One run in a fixed number of queries, however much it did."""
        run = get_object_or_404(Reach.of(request).rows(IntakeRun.objects.select_related("scope")), pk=pk)
        verdicts = self._verdicts(request, run)
        chosen = next((one.value for one in verdicts if one.chosen), "")
        items = IntakeItem.objects.filter(run=run, scope_id=run.scope_id)
        items = items.filter(verdict=chosen) if chosen else items
        page = listing(items.select_related("episode").order_by("pk"), data=request.GET, size=ITEMS)
        context = {
            "title": f"Intake run {pk}",
            "run": read_runs([run])[0],
            "verdicts": verdicts,
            "claims": sum(one.claims for one in verdicts),
            "chosen": chosen,
            "page": page,
            "items": read_items(page.rows),
            "may_review": Reach.of(request).may(REVIEW, scope=run.scope),
            "answers": answers_of(run),
            "answers_shown": ANSWERS,
            "turns": turns_of(run),
            "unusable": unusable_turns(scope_id=run.scope_id, run=run),
        }
        return self.render(request, "admin/observations/intakerun/change_form.html", context)

    def _verdicts(self, request: HttpRequest, run: IntakeRun) -> tuple[Counted, ...]:
        """The verdicts that were given, counted from the claims: an interrupted run has no figures. One query."""
        rows = IntakeItem.objects.filter(run=run, scope_id=run.scope_id).values_list("verdict")
        counted = dict(rows.annotate(n=Count("pk")).order_by())
        asked = request.GET.get("verdict", "")
        return tuple(
            Counted(value=str(verdict), chip=chip, claims=counted[verdict], chosen=asked == verdict)
            for verdict, chip in VERDICTS.items()
            if verdict in counted
        )
