"""Beside the decision on an item's page: the second person, which rule stands in the way, and what people remarked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import URLPattern, path

from consolidation import review
from consolidation.admin.item.deciding import REVIEW
from consolidation.admin.item.of_operation import OfOperation
from consolidation.admin.texts import Text, signed, when, whole
from consolidation.models import Operation, Policy
from consolidation.operations import State, visible
from consolidation.policy import PolicyError, most_specific
from observations.admin.base import Reach, require, signed_in
from observations.models import database_now

COMMENT: Final = "consolidation.comment"
COMMENTS: Final = "comments"  # where they stand on the page


@dataclass(frozen=True, slots=True)
class Second:
    """Which rule wants a second person, who that may be, and what a steward could change."""

    pk: int
    rule: str  # a clause that names the rule and the policy's field
    approved: str  # by whom; empty: nobody approved it yet
    agreed: str  # who agreed and when; empty: nobody yet
    may: bool  # the person who looks may agree now
    why_not: str  # why they may not; empty: they may, or nobody asks them yet
    digest: str  # of what they would agree to
    policy: int | None  # whose rule it is; None: no policy is set, and its defaults hold


@dataclass(frozen=True, slots=True)
class Remark:
    """One comment."""

    by: str
    at: str
    iso: str
    text: Text  # empty where its words left with a record


class BesidePages(OfOperation):
    """Leaving a remark; agreeing is a verb among the decisions."""

    def extra_urls(self) -> list[URLPattern]:
        """The one thing that is posted."""
        return [
            *super().extra_urls(),
            path("<int:pk>/comment/", self.guarded(self.comment_view, COMMENT), name=self.url_name("comment")),
        ]

    def comment_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """One remark, for whoever reads the item next. It decides nothing."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        operation = self.operation_of(request, pk)
        require(request, COMMENT, scope=operation.scope)
        try:
            review.comment(
                operation=operation, by=signed_in(request).get_username(), text=request.POST.get("comment", "")
            )
        except review.Refused as refusal:
            messages.error(request, str(refusal))
        else:
            messages.success(request, "Noted. Nothing is decided by it.")
        answer = redirect(f"admin:{self.url_name('change')}", pk=pk)
        answer["Location"] += f"#{COMMENTS}"
        return answer


def beside(request: HttpRequest, operation: Operation) -> dict[str, object]:
    """Context of the includes "operation/second.html" and "operation/comments.html". Four queries at most."""
    reach = Reach.seen_by(request)
    second = second_of(operation, reach=reach)
    return {
        "second": second,
        "second_waits": second is not None and not second.agreed,
        "remarks": remarks(operation),
        "may_comment": reach.may(COMMENT, scope=operation.scope),
        "comment_long": review.COMMENT_LIMIT,
    }


def second_of(operation: Operation, *, reach: Reach) -> Second | None:
    """What the page says about a second person; None where no rule wants one. Three queries at most."""
    approved = operation.status == State.APPROVED
    if not approved and operation.status not in review.DECIDABLE:
        return _agreed(operation) if operation.seconded_by else None
    try:
        rule = review.needs_second(operation=operation, policy=review.policy_of(operation.scope.name))
    except review.Refused:
        return None  # the page says that the policy cannot be read
    if not rule and not operation.needs_second:
        return None
    why_not = _why_not(operation, reach=reach) if approved else ""
    return Second(
        pk=operation.pk,
        rule=rule or review.WANTED_THEN,
        approved=visible(operation.decided_by) if approved else "",
        agreed=_said(operation),
        may=approved and not why_not and not operation.seconded_by,
        why_not=why_not,
        digest=operation.approved_digest,
        policy=_policy(operation.scope.name),
    )


def _agreed(operation: Operation) -> Second:
    return Second(operation.pk, "", "", _said(operation), False, "", "", None)


def _said(operation: Operation) -> str:
    return signed(operation.seconded_by, operation.seconded_at)


def _why_not(operation: Operation, *, reach: Reach) -> str:
    """Why the person who looks is not the second one, in a sentence. One query at most."""
    me = reach.user.get_username()
    if operation.seconded_by:
        return ""
    if review.same_person(me, operation.decided_by):
        return "You approved it, so another reviewer of this scope has to agree."
    if review.same_person(me, operation.requested_by):
        return "You asked for it, and who proposes never approves: another reviewer has to agree."
    if not reach.may(REVIEW, scope=operation.scope):
        return "Your role in this scope lets you read this, not agree to it."
    if review.expired(operation, now=database_now()):
        return "The approval has expired: it is approved again first."
    return ""


def _policy(scope: str) -> int | None:
    """The policy that holds for a scope, to go to. One query."""
    rows = dict(Policy.objects.values_list("pattern", "pk"))
    try:
        found = most_specific(patterns=rows, scope=scope)
    except PolicyError:
        return None
    return rows.get(found) if found else None


def remarks(operation: Operation) -> list[Remark]:
    """The comments on an operation, the oldest first. One query."""
    return [
        Remark(by=visible(one.by), at=when(one.at), iso=one.at.isoformat(), text=whole(one.text))
        for one in review.comments_on(operation=operation)
    ]
