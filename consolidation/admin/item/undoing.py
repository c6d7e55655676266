"""The undo page: what would be restored, removed and asked again, and what stands in the way, in its shortest order.

Nothing is done until it is confirmed, and then exactly what was shown (C13, D2, promise 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.contrib import messages
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path

from consolidation import review, runner
from consolidation.admin.item.deciding import APPLY, Answer
from consolidation.admin.item.of_operation import OfOperation
from consolidation.admin.texts import SNIPPET, snippet, when
from consolidation.models import Operation
from consolidation.operations import Kind, ep, obs, visible
from consolidation.runner import Later, Outcome, Unwinding
from observations.admin.base import Reach, signed_in
from observations.models import Episode, Observation

CHANGED: Final = 409
# What an undo opens again beside the rows it restores.
REOPENS: Final[dict[Kind, str]] = {
    Kind.MERGE: "Nothing is asked again: no pair of these records is proposed together any more.",
    Kind.SUPERSEDE: "The contradiction stands again. It is asked once its records or the policy changed.",
    Kind.PROMOTE: "The episodes may be promoted again once more of them agree.",
    Kind.COMPACT: "The episodes may be compacted again once one of them or the policy changed.",
    Kind.ARCHIVE: "The records may be proposed for archiving again once they or the policy changed.",
    Kind.PRUNE: "The erasure that waits for the end of the grace period is called off.",
    Kind.ALIAS: "The two names are compared as two again. What was merged under one name stays merged.",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One operation that has to be undone first."""

    pk: int
    short: str
    kind: str
    number: int  # its place in the shortest order, from 1
    depth: int  # beneath the operation to undo, from 0; shown as 5 at most
    applied: str
    by: str
    retracts: str


class UndoPages(OfOperation):
    """Undoing one operation, alone or with what was built on it."""

    def extra_urls(self) -> list[URLPattern]:
        """The page, and the way to undo all of it in order."""
        return [
            *super().extra_urls(),
            path("<int:pk>/undo/", self.guarded(self.undo_view, APPLY), name=self.url_name("undo")),
        ]

    def undo_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """What an undo would put back, or what stands in its way. Posted: undo what stands in the way, then it."""
        operation = self.operation_of(request, pk)
        if request.method != "POST":
            return self._undo_page(request, operation)
        shown = request.POST.get("unwind", "")
        try:
            results = runner.unwind(operation=operation, by=signed_in(request).get_username(), shown=shown)
        except review.Refused as refusal:
            return self._undo_page(request, self.operation_of(request, pk), refusal=str(refusal), status=CHANGED)
        return self._undone(request, operation, results)

    def _undo_page(
        self, request: HttpRequest, operation: Operation, *, refusal: str = "", status: int = 200
    ) -> HttpResponse:
        """In a fixed number of queries."""
        preview = runner.undo_preview(operation=operation)
        later = runner.unwinding(operation=operation) if operation.applied_at and preview.blockers else None
        steps = _steps(later) if later else []
        context = {
            "title": f"Undo {operation.op_id[:11]}",
            "pk": operation.pk,
            "op_id": operation.op_id,
            "kind": operation.kind,
            "of_episodes": preview.of_episodes,
            "restores": _texts(operation, preview.restores, of_episodes=preview.of_episodes),
            "retracts": _texts(operation, [preview.retracts] if preview.retracts else []),
            "reopens": REOPENS.get(Kind(operation.kind), ""),
            "instead": _texts(operation, preview.instead),
            "refusal": refusal,
            "steps": steps,
            "cut": later.cut if later else False,
            "unwind": later.shown if later and steps and not later.cut else "",
            **_standing(operation, preview.blockers),
        }
        return self.render(request, "admin/consolidation/operation/undo.html", context, status=status)

    def _undone(self, request: HttpRequest, operation: Operation, results: Sequence[runner.Result]) -> HttpResponse:
        """A result per operation, from the runner's own answers. One query."""
        found = Reach.of(request).rows(Operation.objects.filter(op_id__in=[result.operation for result in results]))
        keys = dict(found.order_by("generation").values_list("op_id", "pk"))
        answers = [
            Answer(
                pk=keys.get(result.operation, 0),
                op_id=result.operation,
                done=result.outcome in (Outcome.UNDONE, Outcome.ALREADY),
                sentence=result.sentence,
            )
            for result in results
        ]
        if all(answer.done for answer in answers):
            messages.success(request, f"{len(answers)} operations undone, the last applied first.")
            return redirect(f"admin:{self.url_name('change')}", pk=operation.pk)
        context = {
            "title": f"Undo of {operation.op_id[:11]} stopped",
            "done": [answer for answer in answers if answer.done],
            "refused": [answer for answer in answers if not answer.done],
            "back": "",
        }
        return self.render(request, "admin/consolidation/operation/answers.html", context)


def _steps(found: Unwinding) -> list[Step]:
    place = {row.pk: number for number, row in enumerate(found.order, 1)}
    return [_step(row, number=place[row.pk], depth=depth) for depth, row in found.tree]


def _step(row: Later, *, number: int, depth: int) -> Step:
    return Step(
        pk=row.pk,
        short=row.op_id[:11],
        kind=row.kind,
        number=number,
        depth=min(depth, 5),
        applied=when(row.applied_at),
        by=visible(row.applied_by),
        retracts=obs(row.derived) if row.derived else "",
    )


def _texts(operation: Operation, ids: Sequence[int], *, of_episodes: bool = False) -> list[tuple[int, str, str]]:
    """Rows with their shown id and the beginning of their text, in this order. One query."""
    table: type[Observation | Episode] = Episode if of_episodes else Observation
    rows = table.objects.filter(scope_id=operation.scope_id, pk__in=ids).annotate(start=Left("text", SNIPPET + 1))
    texts = dict(rows.values_list("pk", "start"))
    shown = ep if of_episodes else obs
    return [(pk, shown(pk), snippet(texts.get(pk))) for pk in ids]


def _standing(operation: Operation, blockers: tuple[str, ...]) -> dict[str, object]:
    """What stands in the way, and the digest the form carries."""
    try:
        return {"blockers": blockers, "digest": review.shown_digest(operation=operation)}
    except review.Refused as refusal:
        return {"blockers": (*blockers, str(refusal)), "digest": ""}
