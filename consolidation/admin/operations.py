"""One operation: what it would do, why, what happened to it, and what you may do about it."""

from __future__ import annotations

import re
from typing import Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import URLPattern, path

from consolidation import review
from consolidation.admin.item.beside import BesidePages, beside
from consolidation.admin.item.deciding import (
    APPLY,
    PERMISSIONS,
    REVIEW,
    Asked,
    Verb,
    asked,
    carry_out,
    done_by_the_same,
)
from consolidation.admin.item.editing import EditPages
from consolidation.admin.item.reading import read_item
from consolidation.admin.item.undoing import UndoPages
from consolidation.admin.item.values import periods
from consolidation.admin.queue.focus import FocusPages
from consolidation.admin.queue.listing import QueueScreen
from consolidation.admin.record.pages import RecordPages
from consolidation.models import Operation
from observations.admin.base import Reach, require, signed_in

OP_ID: Final = re.compile(r"op_[0-9a-f]{32}")
LOST = 409  # the state of the item does not allow what was asked: the page says why, and shows the state


class OperationScreen(EditPages, FocusPages, UndoPages, BesidePages, RecordPages, QueueScreen):
    """The queue, and the page of one operation."""

    def extra_urls(self) -> list[URLPattern]:
        """Deciding, undoing, and finding an operation by the id that commands print."""
        return [
            *super().extra_urls(),
            path("named/<str:name>/", self.guarded(self.named_view), name=self.url_name("named")),
            path("<int:pk>/decide/", self.guarded(self.decide_one_view), name=self.url_name("decide_one")),
        ]

    def page_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """The item. Looking at it as a reviewer marks it opened, once, in the plans that hold it (R94, R116)."""
        operation = self.operation_of(request, pk)
        if Reach.of(request).may(REVIEW, scope=operation.scope):
            review.opened(operation=operation, by=signed_in(request).get_username())
        return self._page(request, operation)

    def _page(
        self, request: HttpRequest, operation: Operation, *, refusal: str = "", status: int = 200
    ) -> HttpResponse:
        reach = Reach.seen_by(request)
        item = read_item(operation)
        given = request.POST.dict() if refusal else {}
        context = {
            "title": f"{operation.kind} {operation.op_id[:11]}",
            "item": item,
            "refusal": refusal,
            "may_review": reach.may(REVIEW, scope=operation.scope),
            "may_apply": reach.may(APPLY, scope=operation.scope),
            **beside(request, operation),
            "given": given,
            "given_text": given.get("text", ""),
            "given_reason": given.get("reason", ""),
            "periods": periods(item.sources, given) if item.values else [],
        }
        return self.render(request, "admin/consolidation/operation/change_form.html", context, status=status)

    def decide_one_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """One decision. The loser of a race reads who decided and when; a second click finds the first one (C16)."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        operation = self.operation_of(request, pk)
        by = signed_in(request).get_username()
        verb = request.POST.get("verb", "")
        if verb in set(Verb):
            require(request, *PERMISSIONS[Verb(verb)], scope=operation.scope)
        wanted: Asked | None = None
        try:
            wanted = asked(data=request.POST, operation=operation)
            sentence = carry_out(request=wanted, operation=operation, by=by)
        except review.Refused as refusal:
            if wanted is not None and done_by_the_same(request=wanted, operation=operation, by=by):
                messages.info(request, "You did that already. This is how it stands.")
                return self._back(pk)
            return self._page(request, self.operation_of(request, pk), refusal=str(refusal), status=LOST)
        messages.success(request, sentence)
        return self._back(pk)

    def _back(self, pk: int) -> HttpResponse:
        return redirect(f"admin:{self.url_name('change')}", pk=pk)

    def named_view(self, request: HttpRequest, *, name: str) -> HttpResponse:
        """From "op_…" or "op_…#2", as lineage and events name it, to its page."""
        op_id, _, generation = name.partition("#")
        found = Reach.of(request).rows(Operation.objects.filter(op_id=op_id))
        if generation:
            known = generation.isascii() and generation.isdigit() and len(generation) < 10
            found = found.filter(generation=int(generation)) if known else found.none()
        row = found.order_by("-generation").first()
        if row is None:
            raise Http404
        return self._back(row.pk)
