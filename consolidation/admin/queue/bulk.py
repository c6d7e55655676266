"""Deciding many items at once: what is chosen, what it will do, and how far it is (D2, H2)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBadRequest,
    HttpResponseNotAllowed,
    JsonResponse,
)
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path, reverse

from consolidation import review
from consolidation.admin.item.deciding import REVIEW
from consolidation.admin.queue.bulk_reading import DOES, MEANS, document, effect, ended, in_full
from consolidation.admin.queue.reading import SECOND, WAITING, Given, address, part
from consolidation.admin.queue.selecting import Selections, page_of, plan_of
from consolidation.admin.reading import rows_of
from consolidation.models import BulkDecision, BulkItem, Operation
from consolidation.operations import visible
from consolidation.review.ageing import Patience
from consolidation.review.bulk import WHOLE, Verb, ask, progress, start, stop
from observations.admin.base import MAY_NOT, Reach, signed_in
from observations.admin.listing import listing
from observations.models import database_now

RESULTS: Final = 200  # items of a page of results
SHOWN: Final = 50  # of what is listed, before it is confirmed
WHOLE_LISTS: Final = (Verb.REJECT, Verb.DISTINCT, Verb.DEFER)


class BulkPages(Selections):
    """What is chosen, confirmed, and how it went on. A decision is confirmed on a page that says what it will do."""

    def extra_urls(self) -> list[URLPattern]:
        """The whole list's form is posted to `ask`; each decision has its own page from then on."""
        return [
            *super().extra_urls(),
            path("bulk/ask/", self.guarded(self.ask_view, REVIEW), name=self.url_name("bulkask")),
            path("bulk/<int:pk>/", self.guarded(self.bulk_view), name=self.url_name("bulk")),
            path("bulk/<int:pk>/progress/", self.guarded(self.progress_view), name=self.url_name("bulkprogress")),
            path("bulk/<int:pk>/confirm/", self.guarded(self.confirm_view, REVIEW), name=self.url_name("bulkconfirm")),
        ]

    # --- choosing ---------------------------------------------------------------------------------------------------

    def ask_view(self, request: HttpRequest) -> HttpResponse:
        """List everything of one sort that waits for this person now; what arrives later is no part of it (D2)."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        verb = request.POST.get("verb", "")
        if verb not in WHOLE_LISTS:
            return HttpResponseBadRequest("Choose reject, distinct or defer.")
        given, by, now = Given.of(request.POST), signed_in(request).get_username(), database_now()
        mine = given.narrow(Operation.objects.filter(scope__in=Reach.of(request).scopes))
        waiting = part(WAITING, mine, by=by, now=now)
        if given.age:
            waiting = given.narrow_age(waiting, patience=Patience.read(), now=now)
        try:
            bulk = ask(verb=Verb(verb), among=waiting, by=by, until=self._until(request, verb))
        except review.Refused as refusal:
            messages.error(request, str(refusal))
            listed = reverse(f"admin:{self.url_name('changelist')}")
            return redirect(f"{listed}?{given.query()}")
        return redirect(f"admin:{self.url_name('bulk')}", pk=bulk.pk)

    # --- confirming -------------------------------------------------------------------------------------------------

    def _found(self, request: HttpRequest, pk: int) -> BulkDecision:
        """The decision, when every scope of it is visible; else 404, as if it did not exist. Two queries."""
        bulk = get_object_or_404(BulkDecision, pk=pk)
        if Reach.seen_by(request).scopes.filter(pk__in=bulk.scopes).count() != len(bulk.scopes):
            raise Http404
        return bulk

    def bulk_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """What it will do, until it is confirmed; then how far it is, and what became of each item."""
        bulk = self._found(request, pk)
        found = progress(bulk=bulk)
        mine = bulk.by == signed_in(request).get_username() and Reach.of(request).may(REVIEW)
        context = {
            "bulk": bulk,
            "by": visible(bulk.by),
            "verb": DOES[bulk.verb],
            "progress": found,
            "mine": mine,
            "back": self._chosen_on(request, bulk),
            "plan": plan_of(request.GET),
            **(self._results(request, bulk) if found.started else self._preview(request, bulk)),
        }
        context["title"] = f"{DOES[bulk.verb]} {bulk.total:,} item{'' if bulk.total == 1 else 's'}"
        return self.render(request, "admin/consolidation/operation/bulk.html", context)

    def _chosen_on(self, request: HttpRequest, bulk: BulkDecision) -> str:
        """The list that the items were chosen on: a plan's, or a part of the queue."""
        if plan := plan_of(request.GET):
            return reverse("admin:consolidation_plan_change", args=[plan])
        listed = reverse(f"admin:{self.url_name('changelist')}")
        return f"{listed}{address(Given(), SECOND)}" if bulk.verb == Verb.SECOND else listed

    def _preview(self, request: HttpRequest, bulk: BulkDecision) -> dict[str, object]:
        page = listing(self._items(bulk), data=request.GET, size=SHOWN)
        operations = [item.operation for item in page.rows]
        full = bulk.verb in WHOLE
        return {
            "means": MEANS[bulk.verb],
            "effect": effect(bulk),
            "page": page,
            "whole": in_full(operations) if full else [],
            "rows": [] if full else rows_of(operations),
            "needs_reason": bulk.verb == Verb.REJECT,
            "takes_reason": bulk.verb not in (Verb.DEFER, Verb.SECOND),
        }

    def _results(self, request: HttpRequest, bulk: BulkDecision) -> dict[str, object]:
        items, only = self._items(bulk), request.GET.get("only") == "refused"
        page = listing(
            items.filter(outcome=BulkItem.Outcome.REFUSED) if only else items, data=request.GET, size=RESULTS
        )
        return {"page": page, "ended": ended(page.rows), "only": only}

    @staticmethod
    def _items(bulk: BulkDecision) -> QuerySet[BulkItem]:
        return BulkItem.objects.filter(bulk=bulk).select_related("operation__scope").order_by("position", "pk")

    def confirm_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Do it, or stop it. A second click finds the first one (C16)."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        bulk = self._found(request, pk)
        by = signed_in(request).get_username()
        if bulk.by != by:
            raise Http404
        if not Reach.of(request).scopes.filter(pk__in=bulk.scopes).exists():
            raise PermissionDenied(MAY_NOT)
        if request.POST.get("do") == "stop":
            left = stop(bulk=bulk, by=by)
            messages.info(request, f"Stopped. {left:,} item{'' if left == 1 else 's'} stay as they were.")
            return page_of(pk, plan=plan_of(request.POST))
        try:
            start(bulk=bulk, by=by, reason=self._reason(request))
        except review.AlreadyDecided:
            messages.info(request, "You did that already. This is how it stands.")
        except review.Refused as refusal:
            messages.error(request, str(refusal))
        return page_of(pk, plan=plan_of(request.POST))

    def progress_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """How far it is, as JSON for the page's script: figures and one sentence."""
        return JsonResponse(document(progress(bulk=self._found(request, pk))))


def newest(*, by: str) -> Sequence[BulkDecision]:
    """This person's decisions over many items that a worker has not finished, and the last ones of a day. One query."""
    since = database_now() - timedelta(days=1)
    return list(BulkDecision.objects.filter(by=by, at__gt=since).order_by("-pk")[:3])
