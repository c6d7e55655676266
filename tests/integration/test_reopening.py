"""A decision that changed no memory is taken back whole; an item is put off by one reviewer; what awaits whom."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import DatabaseError, transaction

from consolidation import review, runner
from consolidation.models import Comment, Deferral, Operation, Verdict
from consolidation.operations import Approval, Kind, State
from consolidation.review import Decision
from observations.models import Event, Observation, Scope, database_now
from observations.records import Status
from tests.building import observe, propose, scope
from tests.desk import settle
from tests.integration.test_admin_races import at_once

pytestmark = pytest.mark.django_db


def merge(*, approval: Approval = Approval.NEEDS_HUMAN, skipped_reason: str = "") -> Operation:
    """Two claims that a rule would merge."""
    pair = [observe(text, within=scope()) for text in ("Tea, no sugar", "Prefers tea, no sugar")]
    return propose(Kind.MERGE, pair, approval=approval, skipped_reason=skipped_reason)


def contradiction() -> Operation:
    """Two values of one key."""
    rows = [observe(f"Lives in {city}", within=scope(), key=("ann", "lives in", city)) for city in ("Ghent", "Lyon")]
    return propose(Kind.SUPERSEDE, rows, approval=Approval.NEEDS_HUMAN, keeper=rows[1])


DECISIONS: dict[str, Callable[[Operation], Operation]] = {
    "approved": lambda one: review.approve(operation=one, by="ana", reason="newer"),
    "rejected": lambda one: review.reject(operation=one, by="ana", reason="no"),
    "distinct": lambda one: review.distinct(operation=one, by="ana", reason="two people"),
}
UNDECIDED: tuple[object, ...] = ("", None, {}, "", "", "", None, False, "", None)


def decided(operation: Operation) -> tuple[object, ...]:
    """Every column of a decision."""
    one = Operation.objects.get(pk=operation.pk)
    return (
        *(one.decided_by, one.decided_at, one.decision, one.decision_text, one.decision_object, one.decision_reason),
        *(one.approval_expires_at, one.needs_second, one.approved_digest, one.seconded_at),
    )


@pytest.mark.parametrize("state", [State.NEEDS_HUMAN, State.SKIPPED, State.PLANNED])
@pytest.mark.parametrize("decision", sorted(DECISIONS))
def test_a_decision_taken_back_leaves_the_operation_as_it_was(decision: str, state: State) -> None:
    """E.1: the state before, no column of the decision, an event that names both people; and it can be decided anew."""
    approval = Approval.AUTO if state == State.PLANNED else Approval.NEEDS_HUMAN
    one = merge(approval=approval, skipped_reason="held back" if state == State.SKIPPED else "")
    assert one.status == state
    before = review.shown_digest(operation=one)
    DECISIONS[decision](one)
    settle()
    back = review.reopen(operation=one, by="ben", reason="too early")
    settle()
    assert (back.status, decided(one)) == (state, UNDECIDED)
    assert review.shown_digest(operation=back) == before
    event = Event.objects.filter(subject=one.op_id).order_by("-id")[0]
    assert (event.action, event.actor, event.detail["decided_by"]) == ("reopened", "ben", "ana")
    assert (event.detail["from"], event.detail["to"]) == (decision, state)
    assert [remark.text for remark in Comment.objects.filter(operation=one)] == ["too early"]
    for again in (DECISIONS["approved"], DECISIONS["rejected"]):
        again(back)
        settle()
        review.reopen(operation=back, by="ben")
        settle()


def test_a_choice_is_taken_back_with_the_decision() -> None:
    """E.1: the right claim in a reviewer's words goes too, and the event keeps no memory text."""
    one = contradiction()
    review.approve(operation=one, by="ana", decision=Decision(text="Lives in Bruges", object="Bruges"), reason="heard")
    settle()
    review.reopen(operation=one, by="ana")
    settle()
    assert decided(one) == UNDECIDED
    assert "Bruges" not in str(list(Event.objects.values_list("detail", flat=True)))


def test_claims_told_apart_by_mistake_may_be_proposed_together_again() -> None:
    """E.1: a reopened "distinct" no longer stands between two claims."""
    one = merge()
    review.distinct(operation=one, by="ana")
    settle()
    assert len(Verdict.objects.pairs(scope_id=one.scope_id)) == 1
    review.reopen(operation=one, by="ana")
    settle()
    assert Verdict.objects.pairs(scope_id=one.scope_id) == frozenset()
    review.distinct(operation=one, by="ben")
    settle()
    assert len(Verdict.objects.pairs(scope_id=one.scope_id)) == 1


def test_what_failed_or_was_withdrawn_waits_as_it_was_first_proposed() -> None:
    """E.1: an approval that was refused afterwards goes back to before both."""
    one = merge()
    review.approve(operation=one, by="ana")
    review.reject(operation=one, by="ben", reason="no", withdraw=True)
    settle()
    assert review.reopen(operation=one, by="ben").status == State.NEEDS_HUMAN


def test_what_changed_memory_or_was_never_decided_is_not_reopened() -> None:
    """E.1: applied says undo, undone and stale say plan, open says there is nothing; each in one sentence."""
    one = merge(approval=Approval.AUTO)
    with pytest.raises(review.Refused, match="no decision to take back"):
        review.reopen(operation=one, by="ana")
    runner.apply(operation=one, by="olga")
    settle()
    with pytest.raises(review.AlreadyDecided, match=r"olga applied it\. Undo it instead"):
        review.reopen(operation=one, by="ana")
    runner.undo(operation=one, by="olga")
    settle()
    with pytest.raises(review.Refused, match="was applied and undone"):
        review.reopen(operation=one, by="ana")
    gone = merge()
    Event.objects.append(
        scope_id=gone.scope_id, action="stale", actor="planner", subject=gone.op_id, generation=gone.generation
    )
    Operation.objects.filter(pk=gone.pk).update(status=State.STALE, outcome="obs_1 was archived")
    with pytest.raises(review.Refused, match="obs_1 was archived"):
        review.reopen(operation=gone, by="ana")


def test_an_older_generation_stays_decided() -> None:
    """E.1: of one proposal only the newest generation is ever open."""
    one = merge()
    review.reject(operation=one, by="ana", reason="no")
    settle()
    rows = [source.observation for source in review.sources_of(one)]
    propose(Kind.MERGE, [row for row in rows if row is not None], approval=Approval.NEEDS_HUMAN)
    with pytest.raises(review.Refused, match="proposed again since"):
        review.reopen(operation=one, by="ana")


def test_the_database_lets_no_half_reopening_through() -> None:
    """Naive control: a state set back with the decision left, or without its event, is refused by PostgreSQL."""
    one = merge()
    review.reject(operation=one, by="ana", reason="no")
    settle()
    with pytest.raises(DatabaseError), transaction.atomic():
        Operation.objects.filter(pk=one.pk).update(status=State.NEEDS_HUMAN)
    with pytest.raises(DatabaseError):
        _without_an_event(one)
    assert decided(one)[0] == "ana"


@transaction.atomic
def _without_an_event(one: Operation) -> None:
    cleared = dict.fromkeys(("decided_by", "approved_digest", "decision_reason"), "")
    Operation.objects.filter(pk=one.pk).update(status=State.NEEDS_HUMAN, decided_at=None, **cleared)
    settle()


@pytest.mark.django_db(transaction=True)
def test_of_a_reopening_and_an_application_at_once_one_wins() -> None:
    """C16: applied and whole, or reopened and whole; in no round both, and in no round something half."""
    seen = set()
    for number in range(10):
        pair = [observe(f"{text} {number}", within=scope()) for text in ("Six tries", "six tries.")]
        one = propose(Kind.MERGE, pair, approval=Approval.NEEDS_HUMAN)
        review.approve(operation=one, by="ana")

        def reopened(one: Operation = one) -> int:
            try:
                review.reopen(operation=one, by="ben")
            except review.Refused:
                return 0
            return 1

        def applied(one: Operation = one) -> int:
            return int(runner.apply(operation=one, by="olga").outcome == runner.Outcome.APPLIED)

        acts = (reopened, applied) if number % 2 else (applied, reopened)
        assert sum(at_once(*acts)) == 1
        one.refresh_from_db()
        seen.add(one.status)
        statuses = set(Observation.objects.filter(pk__in=[row.pk for row in pair]).values_list("status", flat=True))
        if one.status == State.APPLIED:
            assert (one.decided_by, statuses) == ("ana", {Status.ARCHIVED})
        else:
            assert (one.status, decided(one), statuses) == (State.NEEDS_HUMAN, UNDECIDED, {Status.ACTIVE})
    assert seen <= {State.APPLIED, State.NEEDS_HUMAN}


# --- putting off ------------------------------------------------------------------------------------------------------


def waiting(by: str) -> set[int]:
    """The operations that await somebody who sees every scope."""
    return set(review.waiting_for(by=by, scopes=Scope.objects.all()).values_list("pk", flat=True))


def test_an_item_put_off_leaves_one_queue_and_comes_back_by_itself() -> None:
    """E.1: it stays in everybody else's; putting off again moves the time."""
    one, now = merge(), database_now()
    for days in (1, 7):
        review.defer(operation=one, by="ana", until=now + timedelta(days=days))
    assert (waiting("ana"), waiting("ben")) == (set(), {one.pk})
    [kept] = Deferral.objects.all()
    assert kept.until == now + timedelta(days=7)
    Deferral.objects.update(until=now)
    assert waiting("ana") == {one.pk}
    review.defer(operation=one, by="ana", until=now + timedelta(days=1))
    assert review.call_back(operation=one, by="ana")
    assert waiting("ana") == {one.pk}


def test_only_what_is_open_is_put_off_and_not_for_ever() -> None:
    """E.1: each refusal says what is in the way."""
    one, now = merge(), database_now()
    for until in (now, now + timedelta(days=91)):
        with pytest.raises(review.Refused, match="in the next 90 days"):
            review.defer(operation=one, by="ana", until=until)
    review.reject(operation=one, by="ben", reason="no")
    with pytest.raises(review.AlreadyDecided, match="is rejected"):
        review.defer(operation=one, by="ana", until=now + timedelta(days=1))
    assert not Deferral.objects.exists()


def test_nobody_waits_for_their_own_proposal() -> None:
    """E.1, E.7: what somebody asked for awaits everybody else; so does what they edited."""
    one = merge()
    asked = Operation.objects.create(
        **{
            field.attname: getattr(one, field.attname)
            for field in Operation._meta.concrete_fields
            if field.name not in ("id", "op_id", "requested_by")
        },
        op_id="op_" + "1" * 32,
        requested_by="ana",
    )
    assert (waiting("ana"), waiting("ben")) == ({one.pk}, {one.pk, asked.pk})
