"""A selection of the rows that a page showed: one way to decide it, wherever it was made (D2, H2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect
from django.urls import reverse

from consolidation import review
from consolidation.admin.item.deciding import REVIEW, Answer, Verb, decide_many
from consolidation.admin.queue.bulk_reading import too_long
from consolidation.admin.reading import Row, ShownExpired, shown_digests
from consolidation.models import BulkDecision, Operation, OperationQuerySet
from consolidation.operations import State
from consolidation.review import REASON_REQUIRED, bulk
from consolidation.review.bulk import AT_ONCE, ask, start
from observations.admin.base import Reach, Screen, signed_in
from observations.models import database_now

if TYPE_CHECKING:
    from django.http import QueryDict

SELECTION: Final = ("approve", "reject", "distinct", "defer", "second")  # what may be decided for a selection
PUT_OFF: Final = (1, 3, 7, 30)  # days
NOT_YOURS: Final = "are in scopes where you may not decide, and were left out."
BULK: Final = "admin:consolidation_operation_bulk"  # the page that confirms one, and then says what became of it


class Selections(Screen):
    """Pages on which rows are selected. Approving, and agreeing to that, is confirmed on a page that shows each item
    whole; and so is, on one that counts them, what is more than a request decides itself.
    """

    def decide_shown(
        self, request: HttpRequest, *, back: str, among: OperationQuerySet | None = None, plan: int | None = None
    ) -> HttpResponse:
        """One decision for a selection: only what the page showed (of `among`), each checked against what it showed.
        `plan`: the one on whose page it was made, and to which it leads back.
        """
        verb = request.POST.get("verb", "")
        if verb not in SELECTION:
            return HttpResponseBadRequest("Choose approve, reject, distinct, defer or second.")
        user = signed_in(request)
        try:
            shown = shown_digests(token=request.POST.get("shown", ""), user_id=user.pk)
        except ShownExpired as expired:
            messages.error(request, str(expired))
            return redirect(back)
        chosen = picked(request.POST, shown)
        if among is not None:
            there = set(among.filter(pk__in=chosen).values_list("pk", flat=True))
            chosen = {pk: digest for pk, digest in chosen.items() if pk in there}
        if not chosen:
            messages.warning(request, "Nothing was selected.")
            return redirect(back)
        if verb in bulk.WHOLE or len(chosen) > AT_ONCE:
            return self.confirmed_first(request, verb=bulk.Verb(verb), shown=chosen, back=back, plan=plan)
        if verb == "defer":
            return self._put_off(request, shown=chosen, back=back, plan=plan)
        reach, by = Reach.of(request), user.get_username()
        answers = decide_many(verb=Verb(verb), shown=chosen, reach=reach, by=by, reason=self._reason(request))
        return self.answered(request, answers=answers, back=back)

    def confirmed_first(
        self,
        request: HttpRequest,
        *,
        verb: bulk.Verb,
        shown: Mapping[int, str],
        back: str,
        plan: int | None = None,
    ) -> HttpResponse:
        """List them on a page that says what will happen; nothing is decided before it is confirmed there, with its
        reason. What has to be shown whole and is too long for that is refused.
        """
        if verb in bulk.WHOLE and len(shown) <= AT_ONCE and (long := too_long(list(shown))):
            messages.error(request, f"{long[0]} is longer than this page can show: decide it on its own page.")
            return redirect(back)
        try:
            made = self._listed(request, verb, shown)
        except review.Refused as refusal:
            messages.error(request, str(refusal))
            return redirect(back)
        return page_of(made.pk, plan=plan)

    def _put_off(self, request: HttpRequest, *, shown: Mapping[int, str], back: str, plan: int | None) -> HttpResponse:
        """Putting off a few for oneself needs no page to confirm it."""
        try:
            made = self._listed(request, bulk.Verb.DEFER, shown)
            start(bulk=made, by=made.by)
        except review.Refused as refusal:
            messages.error(request, str(refusal))
            return redirect(back)
        return page_of(made.pk, plan=plan)

    def _listed(self, request: HttpRequest, verb: bulk.Verb, shown: Mapping[int, str]) -> BulkDecision:
        """Those of them where this person may decide. Raises Refused."""
        by, among = signed_in(request).get_username(), Operation.objects.filter(scope__in=Reach.of(request).scopes)
        made = ask(verb=verb, among=among, by=by, shown=shown, until=self._until(request, verb))
        if left_out := len(shown) - made.total:
            messages.warning(request, f"{left_out:,} of the selection {NOT_YOURS}")
        return made

    @staticmethod
    def _until(request: HttpRequest, verb: str) -> datetime | None:
        given = request.POST.get("days", "")
        days = int(given) if given in set(map(str, PUT_OFF)) else 0
        return database_now() + timedelta(days=days) if days and verb == bulk.Verb.DEFER else None

    @staticmethod
    def _reason(request: HttpRequest) -> str:
        return request.POST.get("reason", "").replace("\0", "")[:500]

    def answered(
        self,
        request: HttpRequest,
        *,
        answers: Sequence[Answer],
        back: str,
        title: str = "What became of your selection",
        **more: object,
    ) -> HttpResponse:
        """What became of each operation."""
        context = {
            "title": title,
            "done": [answer for answer in answers if answer.done],
            "refused": [answer for answer in answers if not answer.done],
            "back": back,
            **more,
        }
        return self.render(request, "admin/consolidation/operation/answers.html", context)


def page_of(bulk: int, *, plan: int | None) -> HttpResponse:
    """To the page of a decision over many items, which keeps the plan that it leads back to."""
    address = reverse(BULK, args=[bulk])
    return redirect(f"{address}?plan={plan}" if plan else address)


def plan_of(data: QueryDict) -> int | None:
    """The plan that a page of such a decision leads back to. Whether it may be seen is asked there."""
    given = data.get("plan", "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 19 else None


def to_agree(rows: Sequence[Row], operations: Sequence[Operation], *, by: str, now: datetime) -> list[Row]:
    """Rows of what waits for a second person, to be chosen where this person may be it for several at once; each with
    the digest that was approved, so that one approved anew meanwhile is refused. No query.
    """
    pairs = zip(rows, operations, strict=True)
    return [replace(row, decidable=_agreeable(each, by, now), digest=each.approved_digest) for row, each in pairs]


def _agreeable(operation: Operation, by: str, now: datetime) -> bool:
    """Whether `review.second` would take this person's word for it, as far as the row itself says."""
    waits = operation.status == State.APPROVED and operation.needs_second and not operation.seconded_by
    own = any(review.same_person(by, who) for who in (operation.decided_by, operation.requested_by))
    return waits and not own and operation.kind in bulk.APPROVED_TOGETHER and not review.expired(operation, now=now)


def where_decided(rows: Sequence[Row], operations: Sequence[Operation], *, reach: Reach) -> list[Row]:
    """The rows, decidable only where this person may review: whoever reads a scope is offered no decision in it. No
    query.
    """
    names = {operation.scope.name for operation in operations}
    mine = {name for name in names if reach.may(REVIEW, scope=name)}
    pairs = zip(rows, operations, strict=True)
    return [row if operation.scope.name in mine else replace(row, decidable=False) for row, operation in pairs]


def deciding_bar(rows: Sequence[Row]) -> dict[str, object]:
    """What the bar that decides a selection says of the rows it stands under. No query."""
    shown = {row.kind for row in rows if row.decidable}
    reasoned = [kind.value for kind in REASON_REQUIRED if kind in shown]
    return {
        "decidable": sum(row.decidable for row in rows),
        "differs": any(row.differs for row in rows),
        "reasoned": " and ".join([", ".join(reasoned[:-1]), reasoned[-1]] if len(reasoned) > 1 else reasoned),
    }


def picked(data: QueryDict, shown: dict[int, str]) -> dict[int, str]:
    """The rows of a page that were picked, or all that it showed; an id that it did not show is ignored (D2)."""
    if data.get("all"):
        return shown
    wanted = {int(pk) for pk in data.getlist("pick") if pk.isascii() and pk.isdigit() and len(pk) < 19}
    return {pk: digest for pk, digest in shown.items() if pk in wanted}
