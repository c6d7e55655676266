"""One operation: what it would do, why, what happened to it, and what you may do about it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from django.contrib import messages
from django.db.models.functions import Left
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path

from consolidation import review, runner
from consolidation.admin.deciding import APPLY, PERMISSIONS, REVIEW, Verb, asked, carry_out, done_by_the_same
from consolidation.admin.item_reading import read_item
from consolidation.admin.item_values import periods
from consolidation.admin.queue import QueueScreen
from consolidation.admin.texts import SNIPPET, snippet
from consolidation.models import Operation
from consolidation.operations import State, ep, obs
from observations.admin.base import Reach, require, signed_in
from observations.models import Episode, Observation

OP_ID: Final = re.compile(r"op_[0-9a-f]{32}")
LOST = 409  # the state of the item does not allow what was asked: the page says why, and shows the state


class OperationScreen(QueueScreen):
    """The queue, and the page of one operation."""

    def extra_urls(self) -> list[URLPattern]:
        """Deciding, undoing, and finding an operation by the id that commands print."""
        return [
            *super().extra_urls(),
            path("named/<str:name>/", self.guarded(self.named_view), name=self.url_name("named")),
            path("<int:pk>/decide/", self.guarded(self.decide_one_view), name=self.url_name("decide_one")),
            path("<int:pk>/undo/", self.guarded(self.undo_view, APPLY), name=self.url_name("undo")),
        ]

    def page_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """The item. Looking at it as a reviewer marks it opened, once, in the plans that hold it (R94, R116)."""
        operation = self._visible(request, pk)
        user = signed_in(request)
        if user.has_perm(REVIEW):
            review.opened(operation=operation, by=user.get_username())
        return self._page(request, operation)

    def _visible(self, request: HttpRequest, pk: int) -> Operation:
        """The operation, when it is of a visible scope; else 404, as if it did not exist."""
        return get_object_or_404(Reach.of(request).rows(Operation.objects.select_related("scope")), pk=pk)

    def _page(
        self, request: HttpRequest, operation: Operation, *, refusal: str = "", status: int = 200
    ) -> HttpResponse:
        user = signed_in(request)
        item = read_item(operation)
        given = request.POST.dict() if refusal else {}
        context = {
            "title": f"{operation.kind} {operation.op_id[:11]}",
            "item": item,
            "refusal": refusal,
            "may_review": user.has_perm(REVIEW),
            "may_apply": user.has_perm(APPLY),
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
        operation = self._visible(request, pk)
        by = signed_in(request).get_username()
        verb = request.POST.get("verb", "")
        if verb in set(Verb):
            require(request, *PERMISSIONS[Verb(verb)])
        try:
            sentence = carry_out(request=asked(data=request.POST, operation=operation), operation=operation, by=by)
        except review.Refused as refusal:
            if verb in set(Verb) and done_by_the_same(verb=Verb(verb), operation=operation, by=by):
                messages.info(request, "You did that already. This is how it stands.")
                return self._back(pk)
            return self._page(request, self._visible(request, pk), refusal=str(refusal), status=LOST)
        messages.success(request, sentence)
        return self._back(pk)

    def _back(self, pk: int) -> HttpResponse:
        return redirect(f"admin:{self.url_name('change')}", pk=pk)

    def undo_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """What an undo would put back, or what stands in its way, before anybody does it (promise 5, C13)."""
        operation = self._visible(request, pk)
        preview = runner.undo_preview(operation=operation)
        context = {
            "title": f"Undo {operation.op_id[:11]}",
            "pk": operation.pk,
            "op_id": operation.op_id,
            "kind": operation.kind,
            "of_episodes": preview.of_episodes,
            "restores": self._texts(operation, preview.restores, of_episodes=preview.of_episodes),
            "retracts": self._texts(operation, [preview.retracts] if preview.retracts else []),
            "first": self._named_in(request, preview.blockers),
            **self._undoable(operation, preview.blockers),
        }
        return self.render(request, "admin/consolidation/operation/undo.html", context)

    def _texts(
        self, operation: Operation, ids: Sequence[int], *, of_episodes: bool = False
    ) -> list[tuple[int, str, str]]:
        """Rows with their shown id and the beginning of their text, in this order. One query."""
        table: type[Observation | Episode] = Episode if of_episodes else Observation
        rows = table.objects.filter(scope_id=operation.scope_id, pk__in=ids).annotate(start=Left("text", SNIPPET + 1))
        texts = dict(rows.values_list("pk", "start"))
        shown = ep if of_episodes else obs
        return [(pk, shown(pk), snippet(texts.get(pk))) for pk in ids]

    def _named_in(self, request: HttpRequest, blockers: tuple[str, ...]) -> list[tuple[int, str]]:
        """The operations that stand in the way, to go to: key and id. One query at most."""
        ids = {word for blocker in blockers for word in OP_ID.findall(blocker)}
        if not ids:
            return []
        found = Reach.of(request).rows(Operation.objects.filter(op_id__in=ids, status=State.APPLIED))
        return list(found.order_by("-applied_at", "-pk").values_list("pk", "op_id"))

    def _undoable(self, operation: Operation, blockers: tuple[str, ...]) -> dict[str, object]:
        """What stands in the way, and the digest the form carries."""
        try:
            return {"blockers": blockers, "digest": review.shown_digest(operation=operation)}
        except review.Refused as refusal:
            return {"blockers": (*blockers, str(refusal)), "digest": ""}

    def named_view(self, request: HttpRequest, *, name: str) -> HttpResponse:
        """From "op_…" or "op_…#2", as lineage and events name it, to its page."""
        op_id, _, generation = name.partition("#")
        found = Reach.of(request).rows(Operation.objects.filter(op_id=op_id))
        if generation:
            found = found.filter(generation=int(generation)) if generation.isdigit() else found.none()
        row = found.order_by("-generation").first()
        if row is None:
            raise Http404
        return self._back(row.pk)
