"""Taking a decision back while it changed no memory, and putting an item off. What was applied is undone instead."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import Q

from consolidation.models import Comment, Deferral, Operation, OperationQuerySet
from consolidation.operations import Approval, State
from consolidation.review.deciding import DECIDABLE, AlreadyDecided, Refused
from consolidation.review.within import Scopes
from observations.models import Event, database_now

REOPENED: Final = "reopened"  # the event's action
TAKEN_BACK: Final = (State.APPROVED, State.REJECTED, State.DISTINCT)
LONGEST: Final = timedelta(days=90)  # an item is put off
REMARK: Final = 2_000  # characters of a remark
_WAITS: Final = (State.PLANNED, State.NEEDS_HUMAN, State.SKIPPED)
_UNDECIDED: Final[dict[str, Any]] = {
    "decision": {},
    "decision_text": "",
    "decision_object": "",
    "decision_reason": "",
    "decided_by": "",
    "decided_at": None,
    "approved_digest": "",
    "approval_expires_at": None,
    "needs_second": False,
    "seconded_by": "",
    "seconded_at": None,
}


@transaction.atomic
def reopen(*, operation: Operation, by: str, reason: str = "") -> Operation:
    """Take a decision back: the operation is what it was before, and undecided. A reason becomes a remark on it.

    Anybody who may review may take anybody's decision back; the event names both. Raises AlreadyDecided for what was
    applied, Refused for the rest that cannot be reopened. Seven queries at most.
    """
    locked = _lock(operation)
    _refuse_closed(locked)
    before, who = locked.status, locked.decided_by
    to = _as_it_was(locked)
    changed = Operation.objects.filter(pk=locked.pk, status=before).update(status=to, **_UNDECIDED)
    if changed != 1:
        raise AlreadyDecided(f"{locked.op_id} was decided meanwhile. Look at it again.")
    Event.objects.append(
        scope_id=locked.scope_id,
        action=REOPENED,
        actor=by,
        subject=locked.op_id,
        generation=locked.generation,
        detail={"from": before, "to": to, "decided_by": who, "chosen": locked.decision},
    )
    if remark := reason.strip()[:REMARK]:
        Comment.objects.create(scope_id=locked.scope_id, operation=locked, by=by, text=remark)
    locked.refresh_from_db()
    return locked


def _lock(operation: Operation) -> Operation:
    """The row, locked: an application that is under way ends first, and finds what was taken back (C16). One query."""
    return Operation.objects.select_for_update(of=("self",)).select_related("scope").get(pk=operation.pk)


def _refuse_closed(operation: Operation) -> None:
    """Refuse what holds no decision that can be taken back, saying what to do instead. One query at most."""
    name = operation.op_id
    match operation.status:
        case State.APPLIED:
            who = f"{operation.applied_by} applied it" if operation.applied_by else "it changed memory"
            raise AlreadyDecided(f"{name} is applied: {who}. Undo it instead.")
        case State.UNDONE:
            raise Refused(f"{name} was applied and undone: the next plan proposes it again if it still holds.")
        case State.STALE:
            raise Refused(f"{name} is stale: {operation.outcome or 'its sources changed'}. Plan again.")
        case State.EDITED:
            raise Refused(f"{name} was edited: decide the edit that took its place.")
        case status if status not in TAKEN_BACK:
            raise Refused(f"{name} is {status.replace('_', ' ')}: there is no decision to take back.")
    newer = Operation.objects.filter(
        scope_id=operation.scope_id, op_id=operation.op_id, generation__gt=operation.generation
    )
    if newer.exists():
        raise Refused(f"{name} was proposed again since: decide its newest generation.")


def _as_it_was(operation: Operation) -> State:
    """The state before the decision, as its newest event says; what failed or was approved before waits as it was
    first proposed. One query.
    """
    said = Event.objects.filter(
        scope_id=operation.scope_id,
        subject=operation.op_id,
        generation=operation.generation,
        action=operation.status,
    )
    before = said.order_by("-id").values_list("detail__from", flat=True).first()
    if before in _WAITS:
        return State(before)
    if operation.skipped_reason:
        return State.SKIPPED
    return State.PLANNED if operation.approval == Approval.AUTO else State.NEEDS_HUMAN


# --- putting off ------------------------------------------------------------------------------------------------------


@transaction.atomic
def defer(*, operation: Operation, by: str, until: datetime) -> Deferral:
    """Leave an open item out of one reviewer's queue until a time; it stays in everybody else's. Again moves the time.

    Raises AlreadyDecided for one that is not open, Refused for a time that has passed or is more than 90 days off.
    """
    locked = _lock(operation)
    now = database_now()
    if locked.status not in DECIDABLE or locked.approval == Approval.NEVER:
        raise AlreadyDecided(f"{locked.op_id} is {locked.status.replace('_', ' ')}: there is nothing to put off.")
    if not now < until <= now + LONGEST:
        raise Refused(f"Put it off until a time in the next {LONGEST.days} days.")
    put_off = Deferral(scope_id=locked.scope_id, operation=locked, by=by, at=now, until=until)
    [kept] = Deferral.objects.bulk_create(
        [put_off],
        update_conflicts=True,
        update_fields=["at", "until"],
        unique_fields=["scope", "operation", "by"],
    )
    return kept


def call_back(*, operation: Operation, by: str) -> bool:
    """Put an item that this reviewer put off back into their queue; False when it was not put off. One query."""
    mine = Deferral.objects.filter(scope_id=operation.scope_id, operation=operation, by=by)
    return mine.delete()[0] > 0


def waiting_for(*, by: str, scopes: Scopes, now: datetime | None = None) -> OperationQuerySet:
    """What awaits this reviewer in these scopes: what needs a person, without what they proposed, edited or put off.

    A proposer never approves, so their own proposals wait for somebody else. One query for the time, where it is not
    given.
    """
    return left_to(by=by, operations=Operation.objects.filter(scope__in=scopes), now=now)


def left_to(*, by: str, operations: OperationQuerySet, now: datetime | None = None) -> OperationQuerySet:
    """Which of these operations await this reviewer, as above. One query for the time, where it is not given."""
    waiting = operations.awaiting_review()
    return waiting.filter(~Q(requested_by=by), ~Q(edited_by=by), ~put_off(by=by, now=now))


def put_off(*, by: str, now: datetime | None = None) -> Q:
    """Whether this reviewer has put an operation off until a time that is still to come, as a condition of a query.

    A set that is looked up, not a join: statistics that are older than a sitting make the join of what it put off, row
    by row, for every item that waits.
    """
    standing = Deferral.objects.filter(by=by, until__gt=now or database_now())
    return Q(pk__in=standing.values("operation_id"))
