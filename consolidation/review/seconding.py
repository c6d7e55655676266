"""The second person: agrees to exactly what the first approved, or to exactly what applying a wide plan would do."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.db import transaction

from consolidation.models import Operation, Plan
from consolidation.operations import State
from consolidation.review.deciding import (
    AlreadyDecided,
    Changed,
    Refused,
    expired,
    moved_since_approval,
    policy_of,
)
from consolidation.review.wanting import needs_second, same_person
from observations.models import Event, database_now

SECONDED: Final = "seconded"  # the event's action


@transaction.atomic
def second(*, operation: Operation, by: str, digest: str = "") -> Operation:
    """Agree, as another person, to an approval. `digest` is what the page showed as approved; without one, what was
    approved must still stand.

    Raises AlreadyDecided, Changed, or Refused with a sentence. The approval expires when it would have. Nine queries at
    most.
    """
    locked = Operation.objects.select_for_update(of=("self",)).select_related("scope").get(pk=operation.pk)
    _refuse_unapproved(locked)
    _refuse_the_same(locked, by)
    if digest and digest != locked.approved_digest:
        raise Changed(f"{locked.op_id} was approved anew since it was shown: look at what is approved now.")
    if moved := moved_since_approval(operation=locked):
        raise Changed(f"{locked.op_id} is not what {locked.decided_by} approved any more: {moved}. Plan again.")
    if not locked.needs_second and not needs_second(operation=locked, policy=policy_of(locked.scope.name)):
        raise Refused(f"{locked.op_id} needs no second person: it can be applied.")
    locked.needs_second, locked.seconded_by, locked.seconded_at = True, by, database_now()
    locked.save(update_fields=["needs_second", "seconded_by", "seconded_at"])
    Event.objects.append(
        scope_id=locked.scope_id,
        action=SECONDED,
        actor=by,
        subject=locked.op_id,
        generation=locked.generation,
        detail={"approved_by": locked.decided_by, "digest": locked.approved_digest},
    )
    return locked


def _refuse_unapproved(operation: Operation) -> None:
    name = operation.op_id
    if operation.status != State.APPROVED:
        stands = operation.status.replace("_", " ")
        raise AlreadyDecided(f"{name} is {stands}, not approved: there is nothing to agree to.")
    if operation.seconded_by:
        raise AlreadyDecided(f"{operation.seconded_by} agreed to {name} before: it can be applied.")
    if expired(operation, now=database_now()):
        raise Refused(f"The approval of {name} by {operation.decided_by} has expired: it is approved again first.")


def _refuse_the_same(operation: Operation, by: str) -> None:
    """The rule in words, before the database says it (two_agreed, a_proposer_never_approves)."""
    name = operation.op_id
    if same_person(by, operation.decided_by):
        raise Refused(f"You approved {name}: a second person is another one. Ask another reviewer of its scope.")
    if same_person(by, operation.requested_by):
        raise Refused(f"{by} asked for {name}, and who proposes never approves: ask another reviewer of its scope.")


# --- whole plans ----------------------------------------------------------------------------------------------------


@transaction.atomic
def agree_on_plan(*, plan: Plan, by: str, digest: str, hours: int) -> tuple[str, bool]:
    """Whoever confirms first asks: the name of that person when `by` is another one who confirms exactly the same
    within `hours`, else empty; and whether `by` has asked just now, and not before. Three queries at most.

    What would be applied changed meanwhile: it starts anew.
    """
    locked = Plan.objects.select_for_update(of=("self",)).get(pk=plan.pk)
    now = database_now()
    stands = locked.asked_at is not None and locked.asked_digest == digest
    fresh = stands and locked.asked_at is not None and now - locked.asked_at < timedelta(hours=hours)
    if fresh and same_person(by, locked.asked_by):
        return "", False
    first = locked.asked_by if fresh else ""
    asked: dict[str, datetime | str | None] = {"asked_by": "", "asked_at": None, "asked_digest": ""}
    if not first:
        asked = {"asked_by": by, "asked_at": now, "asked_digest": digest}
    Plan.objects.filter(pk=plan.pk).update(**asked)
    return first, not first
