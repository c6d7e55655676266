"""Probe suites: what they ask, what came of it, making one and running one. A suite is never changed (R26, R112)."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.db import transaction
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path

from consolidation import probing
from consolidation.admin.measured import suite_editing as editing
from consolidation.admin.measured.suite_reading import RUNS, picture, probe_rows, run_row, suite_row
from consolidation.models import Probe, ProbeRun, Suite
from consolidation.operations import visible
from consolidation.probes import K
from observations.admin.base import SCOPES_OFFERED, Reach, Screen, signed_in
from observations.admin.listing import Choice, listing, scope_filter
from observations.models import Scope

MAKE: Final = "consolidation.make_suite"
RUN: Final = "consolidation.run_suite"
AT_ONCE: Final = 50  # probes that are asked while the page waits; more are a worker's
MOST_K: Final = 100
UNUSABLE: Final = 422
_PAGES: Final = "admin/consolidation/suite"


class SuiteScreen(Screen):
    """The list, one suite, making and running."""

    def extra_urls(self) -> list[URLPattern]:
        """Making one, and what is posted."""
        return [
            path("new/", self.guarded(self.new_view, MAKE), name=self.url_name("new")),
            path("<int:pk>/run/", self.guarded(self.run_view, RUN), name=self.url_name("run")),
        ]

    # --- looking

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """Suites of visible scopes, newest first, each with its newest run."""
        reach = Reach.of(request)
        chosen = scope_filter(request=request, reach=reach)
        found = Suite.objects.filter(scope__in=reach.scopes)
        found = found.filter(scope_id=int(chosen.value)) if chosen.value else found
        page = listing(found.select_related("scope").order_by("-pk"), data=request.GET, size=50)
        held = frozenset(Suite.objects.in_force().filter(scope__in=reach.scopes).values_list("pk", flat=True))
        newest = ProbeRun.objects.filter(suite__in=[suite.pk for suite in page.rows])
        runs = {run.suite_id: run for run in newest.order_by("suite_id", "-pk").distinct("suite_id")}
        counted = Probe.objects.filter(suite__in=[suite.pk for suite in page.rows]).values_list("suite_id")
        sizes = dict(counted.annotate(n=Count("pk")).order_by())
        context = {
            "title": "Suites",
            "page": page,
            "rows": [
                suite_row(suite, run=runs.get(suite.pk), in_force=suite.pk in held, probes=sizes.get(suite.pk, 0))
                for suite in page.rows
            ],
            "filters": (chosen,),
            "may_make": reach.may(MAKE),
        }
        return self.render(request, f"{_PAGES}/change_list.html", context)

    def page_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """One suite: its runs as a picture and a table, and each probe with what came of it, in a fixed number of
        queries.
        """
        suite, reach = self._suite(request, pk), Reach.of(request)
        runs = list(ProbeRun.objects.filter(suite=suite).select_related("plan").order_by("-pk")[:RUNS])
        page = listing(Probe.objects.filter(suite=suite).order_by("number"), data=request.GET, size=50)
        holds = Suite.objects.in_force().filter(scope=suite.scope).first()
        same = [run for run in runs if run.figures.get("k") == (runs[0].figures.get("k") if runs else K)]
        context = {
            "title": visible(suite.name),
            "suite": suite_row(suite, run=runs[0] if runs else None, in_force=suite == holds, probes=page.total),
            "page": page,
            "probes": probe_rows(page.rows, run=runs[0] if runs else None),
            "runs": [run_row(run) for run in runs],
            "drawing": picture(same[::-1], k=int(same[0].figures.get("k", K))) if same else None,
            "waiting": probing.waiting(suite=suite),
            "may_run": reach.may(RUN, scope=suite.scope),
            "may_make": reach.may(MAKE, scope=suite.scope),
            "copyable": page.total <= editing.MOST,
            "at_once": page.total <= AT_ONCE,
            "k": K,
            "most_k": MOST_K,
        }
        return self.render(request, f"{_PAGES}/change_form.html", context)

    def _suite(self, request: HttpRequest, pk: int) -> Suite:
        found = Suite.objects.filter(scope__in=Reach.of(request).scopes).select_related("scope")
        return get_object_or_404(found, pk=pk)

    # --- running

    def run_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Ask every probe: at once where they are few, else by a worker."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        suite, by = self._suite(request, pk), signed_in(request).get_username()
        k = _whole(request.POST.get("k", ""))
        if not 1 <= k <= MOST_K:
            messages.error(request, f"Not run: the places that count are a number from 1 to {MOST_K}.")
        elif suite.probes.count() > AT_ONCE:
            with transaction.atomic():
                probing.run_later(suite=suite, by=by, k=k)
            messages.success(request, "A worker runs it; load this page again to see how far it is.")
        else:
            figures = probing.run_suite(suite=suite, by=by, k=k, cause=ProbeRun.Cause.BUTTON).figures
            if figures.gates:
                messages.error(request, f"Run. A gate failed: {'; '.join(figures.gates)}.")
            else:
                messages.success(request, f"Run: recall@{k} is {figures.recall:.4f}.")
        return redirect(f"admin:{self.url_name('change')}", pk=pk)

    # --- making

    def new_view(self, request: HttpRequest) -> HttpResponse:
        """How to make one; the form; and what was posted: a file, a button of the form, or the whole to be saved."""
        data = request.POST if request.method == "POST" else request.GET
        copied = self._suite(request, _whole(data["copy"])) if data.get("copy") else None
        scope = copied.scope if copied else self._scope(request, data.get("scope", ""))
        if scope is None:
            return self._choose(request, refusal="Choose a scope." if request.method == "POST" else "")
        if request.method == "POST":
            if "upload" in request.POST:
                return self._upload(request, scope)
            return self._written(
                request, editing.posted(request.POST, scope=scope, copied=copied.pk if copied else None)
            )
        if copied is not None:
            if copied.probes.count() > editing.MOST:
                raise Http404
            return self._form(request, editing.copy_of(copied))
        return self._form(request, editing.proposed(scope) if request.GET.get("propose") else editing.empty(scope))

    def _scope(self, request: HttpRequest, asked: str) -> Scope | None:
        """The scope that was chosen; one that this person may not see is not there. One query."""
        if not asked:
            return None
        return get_object_or_404(Reach.of(request).scopes, pk=_whole(asked))

    def _choose(self, request: HttpRequest, *, refusal: str = "", scope: Scope | None = None) -> HttpResponse:
        scopes = Reach.of(request).scopes.order_by("name").values_list("pk", "name")[:SCOPES_OFFERED]
        context = {
            "title": "A new suite",
            "scopes": [Choice(str(pk), visible(name), scope is not None and pk == scope.pk) for pk, name in scopes],
            "refusal": refusal,
            "given_name": visible(request.POST.get("name", "")[:200]),
            "longest": probing.LONGEST_NAME,
        }
        return self.render(request, f"{_PAGES}/new.html", context, status=UNUSABLE if refusal else 200)

    def _upload(self, request: HttpRequest, scope: Scope) -> HttpResponse:
        file, by = request.FILES.get("file"), signed_in(request).get_username()
        if file is None:
            return self._choose(request, refusal="Choose a file.", scope=scope)
        try:
            sheet = probing.read_file(name=file.name or "", data=file.read(probing.LARGEST + 1))
            suite, resolved = probing.import_suite(scope=scope, name=request.POST.get("name", ""), sheet=sheet, by=by)
        except probing.NotImported as refusal:
            return self._choose(request, refusal=str(refusal), scope=scope)
        left = f" {resolved.unknown:,} name records that this scope does not hold, and were left out."
        messages.success(request, f"{len(resolved.probes):,} probes are in force.{left if resolved.unknown else ''}")
        return redirect(f"admin:{self.url_name('change')}", pk=suite.pk)

    def _written(self, request: HttpRequest, draft: editing.Draft) -> HttpResponse:
        act = request.POST.get("act", "")
        if act != "save":
            return self._form(request, editing.acted(draft, act=act))
        draft, probes = editing.checked(draft)
        if not probes:
            return self._form(request, draft, status=UNUSABLE)
        units = Suite.objects.get(pk=draft.copied, scope=draft.scope).units if draft.copied else {}
        by = signed_in(request).get_username()
        try:
            suite = probing.keep(scope=draft.scope, name=draft.name, probes=probes, units=units, by=by)
        except probing.NotImported as refusal:
            return self._form(request, draft, refusal=str(refusal), status=UNUSABLE)
        messages.success(request, f"{len(probes):,} probes are in force: plans are measured with them from now on.")
        return redirect(f"admin:{self.url_name('change')}", pk=suite.pk)

    def _form(
        self, request: HttpRequest, draft: editing.Draft, *, refusal: str = "", status: int = 200
    ) -> HttpResponse:
        draft = editing.named(draft)
        context = {
            "title": "A new version of a suite" if draft.copied else "A new suite",
            "draft": draft,
            "scope": visible(draft.scope.name),
            "name": visible(draft.name),
            "refusal": refusal,
            "longest": probing.LONGEST_NAME,
            "more": len(draft.rows) < editing.MOST,
        }
        return self.render(request, f"{_PAGES}/edit.html", context, status=status)


def _whole(text: str) -> int:
    """A whole number of a form; 0 for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
