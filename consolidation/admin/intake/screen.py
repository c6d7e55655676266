"""Intake: of each scope, whether its turns are read in the background, what waits, and how the last run ended.

Off until a steward enables it, one scope at a time (R121). A run by hand is a row in the outbox; a worker does it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.contrib import messages
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path

from consolidation.admin.intake.reading import Run, Unread, read_runs, unusable_turns
from consolidation.admin.texts import when
from consolidation.operations import visible
from observations import ingest, spending
from observations.admin.base import Reach, Screen, signed_in
from observations.admin.listing import declared, listing, scope_filter
from observations.ingest.background.steering import COUNTED
from observations.models import Intake, IntakeRun, Outbox, Scope

SET: Final = "observations.set_intake"
RUN: Final = "observations.run_intake"
STATES: Final = ("on", "off")
RUNS: Final = 8  # the newest runs on a scope's page
LOST: Final = 409
_NEVER_ON: Final = 1971  # a scope that is read from its beginning has a date before this year
_ASKED: Final = {
    ingest.Extracting.QUEUED: (messages.SUCCESS, "A worker is asked to read what waits. The run appears here."),
    ingest.Extracting.NO_MODEL: (messages.WARNING, "No model is configured, so nothing is asked: the turns wait."),
    ingest.Extracting.OFF: (messages.WARNING, "This scope's turns are not read: a steward enables it first."),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One scope."""

    pk: int
    scope: str
    on: bool
    every: int
    residue: bool
    since: str
    waiting: str
    given_up: str  # empty: none
    asked: str  # a worker was asked, and when; empty: nobody was, or it is done
    trouble: str  # what the last attempt of that worker met
    run: Run | None


class IntakeScreen(Screen):
    """The list of scopes, and one of them with its settings. Addresses name the scope, for most have no settings."""

    def extra_urls(self) -> list[URLPattern]:
        """Setting it, and a run by hand."""
        return [
            path("<int:pk>/settings/", self.guarded(self.set_view, SET), name=self.url_name("settings")),
            path("<int:pk>/run/", self.guarded(self.run_view, RUN), name=self.url_name("run")),
            path("<int:pk>/ask-again/", self.guarded(self.ask_again_view, RUN), name=self.url_name("ask_again")),
        ]

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """Visible scopes, those that are read first."""
        reach = Reach.of(request)
        filters = (
            declared(request=request, name="state", label="Read in the background", values=STATES),
            scope_filter(request=request, reach=reach),
        )
        state, scope = (chosen.value for chosen in filters)
        found: QuerySet[Scope] = reach.scopes.select_related("intake")
        found = found.filter(Q(intake__enabled=True) if state == "on" else ~Q(intake__enabled=True)) if state else found
        found = found.filter(pk=int(scope)) if scope else found
        page = listing(found.order_by(F("intake__enabled").desc(nulls_last=True), "name"), data=request.GET)
        context = {
            "title": "Intake",
            "configured": spending.configured(),
            "page": page,
            "rows": read_rows(page.rows),
            "filters": filters,
        }
        return self.render(request, "admin/observations/intake/change_list.html", context)

    def page_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """One scope in a fixed number of queries."""
        return self._page(request, self._scope(request, pk))

    def _scope(self, request: HttpRequest, pk: int) -> Scope:
        return get_object_or_404(Reach.of(request).scopes.select_related("intake"), pk=pk)

    def _page(self, request: HttpRequest, scope: Scope, *, refusal: str = "", status: int = 200) -> HttpResponse:
        reach = Reach.seen_by(request)
        runs = IntakeRun.objects.filter(scope=scope).select_related("scope").order_by("-pk")[:RUNS]
        unusable: tuple[Unread, ...] = unusable_turns(scope_id=scope.pk)
        [row] = read_rows([scope])
        context = {
            "title": f"Intake of {visible(scope.name)}",
            "row": row,
            "runs": read_runs(list(runs)),
            "unusable": unusable,
            "configured": spending.configured(),
            "refusal": refusal,
            "may_set": reach.may(SET, scope=scope),
            "may_run": reach.may(RUN, scope=scope),
            "given_every": request.POST.get("every", "")[:10] if refusal else str(row.every),
        }
        return self.render(request, "admin/observations/intake/change_form.html", context, status=status)

    def set_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Read this scope's turns, or stop; keep residue, or stop. What was read stays either way."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        scope, by = self._scope(request, pk), signed_in(request).get_username()
        on, residue = bool(request.POST.get("on")), bool(request.POST.get("residue"))
        every = request.POST.get("every", "")
        if on:
            if not (every.isascii() and every.isdigit() and 1 <= int(every[:10]) <= 1_000):
                sentence = "Turns are read every 1 to 1,000: write a whole number."
                return self._page(request, scope, refusal=sentence, status=LOST)
            whole = request.POST.get("since") == "start"
            passed_over = ingest.enable_intake(
                scope=scope, by=by, every_turns=int(every), from_start=whole, residue=residue
            )
            if passed_over:
                messages.warning(request, _passed_over(passed_over))
        else:
            ingest.disable_intake(scope=scope, by=by)
            ingest.keep_residue(scope=scope, on=residue, by=by)
        read, kept = "are read" if on else "are not read", "is kept" if residue else "is not kept"
        messages.success(request, f"Saved: turns of this scope {read} in the background, and residue {kept}.")
        return self._back(pk)

    def run_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Ask a worker to read what waits now, and say what comes of it."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        asked = ingest.run_later(scope=self._scope(request, pk), by=signed_in(request).get_username())
        level, sentence = _ASKED[asked]
        messages.add_message(request, level, sentence)
        return self._back(pk)

    def ask_again_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Have the turns wait again that were given up, and say how many."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        opened = ingest.ask_again(scope=self._scope(request, pk), by=signed_in(request).get_username())
        if opened:
            messages.success(request, f"{opened:,} turn{'s' if opened > 1 else ''} wait again for the next run.")
        else:
            messages.info(request, "No turn was given up: nothing is asked again.")
        return self._back(pk)

    def _back(self, pk: int) -> HttpResponse:
        return redirect(f"admin:{self.url_name('change')}", pk=pk)


def read_rows(scopes: Sequence[Scope]) -> list[Row]:
    """Scopes, whose intake was selected with them, as rows. Three queries, two more where a run is open."""
    ids = [scope.pk for scope in scopes]
    waits = ingest.waits(scope_ids=ids)
    found = IntakeRun.objects.filter(scope__in=ids).select_related("scope")
    runs = {run.scope_id: run for run in read_runs(list(found.order_by("scope_id", "-pk").distinct("scope_id")))}
    asked = Outbox.objects.filter(task=ingest.EXTRACT, scope__in=ids, done_at=None)
    jobs = {job.scope_id: job for job in asked}
    return [_row(scope, waits.get(scope.pk), runs, jobs.get(scope.pk)) for scope in scopes]


def _row(scope: Scope, waits: ingest.Waits | None, runs: Mapping[int, Run], job: Outbox | None) -> Row:
    intake: Intake | None = getattr(scope, "intake", None)
    waits = waits or ingest.Waits()
    return Row(
        pk=scope.pk,
        scope=visible(scope.name),
        on=intake is not None and intake.enabled,
        every=intake.every_turns if intake else ingest.EVERY_TURNS,
        residue=intake is not None and intake.residue,
        since=_since(intake),
        waiting=_figure(waits.unread) if intake and intake.enabled else "",
        given_up=_figure(waits.given_up) if waits.given_up else "",
        asked=when(job.created_at) if job else "",
        trouble=visible(job.last_error) if job else "",
        run=runs.get(scope.pk),
    )


def _passed_over(turns: int) -> str:
    """That turns stay unread which were recorded while it was off."""
    were, stay = ("turn was", "stays") if turns == 1 else ("turns were", "stay")
    return f"{turns:,} {were} recorded before and {stay} unread: choose “All, from its beginning” for them."


def _since(intake: Intake | None) -> str:
    if intake is None or not intake.enabled:
        return ""
    return "its beginning" if intake.since.year < _NEVER_ON else when(intake.since)


def _figure(number: int) -> str:
    return f"{COUNTED:,}+" if number > COUNTED else f"{number:,}"
