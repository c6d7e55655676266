"""What people decide, and that nothing is done without them: C10, C16, I17, R47, R85, R94, R116."""

from __future__ import annotations

from datetime import timedelta

import pytest

from consolidation import review, rollout, runner
from consolidation.models import Operation, Policy, Verdict
from consolidation.operations import Approval, Kind, State
from consolidation.runner import Outcome
from observations.models import Event, Observation, Outbox, database_now
from observations.records import StatedBy, Status
from tests.acceptance.acting import apply, correct, fresh, let_the_grace_pass, plan_of, three, undo
from tests.acceptance.actors import together
from tests.building import LONG_AGO, observe, propose, scope, seconded

pytestmark = pytest.mark.django_db(transaction=True)

# --- what needs a person ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Kind.MERGE, Kind.SUPERSEDE, Kind.PRUNE])
def test_what_needs_a_person_is_not_applied_without_one(kind: Kind) -> None:
    """I17, C10."""
    operation = propose(kind, three(scope()), approval=Approval.NEEDS_HUMAN)
    assert apply(operation).outcome == Outcome.REFUSED
    assert Observation.objects.active().count() == 3


@pytest.mark.parametrize("kind", [Kind.SUPERSEDE, Kind.PRUNE])
def test_a_reason_is_required_to_approve_what_removes_something(kind: Kind) -> None:
    rows = three(scope())
    operation = propose(kind, rows, approval=Approval.NEEDS_HUMAN)
    with pytest.raises(review.Refused, match="needs a reason"):
        review.approve(operation=operation, by="reviewer", decision=review.Decision(keep=rows[0].pk))


def test_a_contradiction_is_settled_by_keeping_one_and_superseding_the_rest() -> None:
    within = scope()
    live = [
        observe(f"Backups run at 0{hour}:00", within=within, key=("backup", "runs at", f"0{hour}:00"))
        for hour in (1, 2, 3)
    ]
    operation = propose(Kind.SUPERSEDE, live, approval=Approval.NEEDS_HUMAN)
    review.approve(operation=operation, by="reviewer", decision=review.Decision(keep=live[2].pk), reason="checked cron")
    assert apply(operation).outcome == Outcome.APPLIED
    assert list(Observation.objects.active()) == [live[2]]
    assert {row.superseded_by_id for row in Observation.objects.filter(status=Status.SUPERSEDED)} == {live[2].pk}


def test_both_true_gives_each_its_period_and_keeps_both_in_the_reads() -> None:
    within = scope()
    live = [observe(f"Lives in {town}", within=within, key=("ana", "lives in", town)) for town in ("Bonn", "Turin")]
    operation = propose(Kind.SUPERSEDE, live, approval=Approval.NEEDS_HUMAN)
    moved = LONG_AGO + timedelta(days=1000)
    decision = review.Decision(both=((live[0].pk, None, moved), (live[1].pk, moved, None)))
    review.approve(operation=operation, by="reviewer", decision=decision, reason="she moved")
    assert apply(operation).outcome == Outcome.APPLIED
    assert [(row.valid_from, row.valid_to) for row in Observation.objects.active().order_by("pk")] == [
        (None, moved),
        (moved, None),
    ]
    assert undo(operation).outcome == Outcome.UNDONE
    assert set(Observation.objects.active().values_list("valid_from", "valid_to")) == {(None, None)}


def test_neither_is_right_writes_the_reviewers_claim_as_an_operators_word() -> None:
    within = scope()
    live = [
        observe(f"Backups run at 0{hour}:00", within=within, key=("backup", "runs at", f"0{hour}:00"))
        for hour in (1, 2)
    ]
    operation = propose(Kind.SUPERSEDE, live, approval=Approval.NEEDS_HUMAN)
    decision = review.Decision(text="Backups run at 04:00 since May")
    review.approve(operation=operation, by="reviewer", decision=decision, reason="read the crontab")
    apply(operation)
    [current] = Observation.objects.active()
    assert (current.text, current.stated_by, current.subject) == (
        "Backups run at 04:00 since May",
        StatedBy.OPERATOR,
        "backup",
    )


def test_a_prune_leaves_the_reads_at_once_is_undone_within_grace_and_erased_after_it() -> None:
    """R85: undo only while archived, not erased."""
    rows = three(scope())
    operation = propose(Kind.PRUNE, rows, approval=Approval.NEEDS_HUMAN)
    review.approve(operation=operation, by="reviewer", reason="over a year old")
    seconded(operation)
    apply(operation)
    assert Observation.objects.active().count() == 0
    due = Outbox.objects.get(task="erase_pruned")
    assert timedelta(days=29) < due.due_at - database_now() <= timedelta(days=30)
    with pytest.raises(review.Refused, match="its grace period ends on"):
        runner.erase_pruned(scope_id=operation.scope_id, operation_id=operation.pk)
    let_the_grace_pass(operation)
    runner.erase_pruned(scope_id=operation.scope_id, operation_id=operation.pk)
    assert set(Observation.objects.values_list("text", "status")) == {(None, Status.ERASED)}
    undone = undo(operation)
    assert undone.outcome == Outcome.REFUSED
    assert "is erased and cannot come back" in undone.sentence
    assert runner.erase_pruned(scope_id=operation.scope_id, operation_id=operation.pk) == 0


def test_an_undone_prune_is_never_erased() -> None:
    rows = three(scope())
    operation = propose(Kind.PRUNE, rows, approval=Approval.NEEDS_HUMAN)
    review.approve(operation=operation, by="reviewer", reason="over a year old")
    seconded(operation)
    apply(operation)
    undo(operation)
    assert Outbox.objects.get(task="erase_pruned").done_at is not None
    assert runner.erase_pruned(scope_id=operation.scope_id, operation_id=operation.pk) == 0
    assert Observation.objects.active().count() == 3


# --- exactly what was shown -------------------------------------------------------------------------------------------


def test_an_approval_of_something_else_than_was_shown_is_refused() -> None:
    """I17, D2."""
    rows = three(scope())
    operation = propose(Kind.MERGE, rows)
    digest = review.shown_digest(operation=operation)
    correct(rows[0])
    with pytest.raises(review.Changed, match="was superseded by"):
        review.approve(operation=operation, by="reviewer", digest=digest)
    assert fresh(operation).status == State.PLANNED


def test_an_expired_approval_is_refused_until_it_is_given_again() -> None:
    operation = propose(Kind.MERGE, three(scope()), approval=Approval.NEEDS_HUMAN)
    review.approve(operation=operation, by="reviewer")
    Operation.objects.filter(pk=operation.pk).update(approval_expires_at=database_now() - timedelta(seconds=1))
    assert "approve it again" in apply(operation).sentence
    review.approve(operation=operation, by="reviewer")
    assert apply(operation).outcome == Outcome.APPLIED


# --- two reviewers ----------------------------------------------------------------------------------------------------


def test_of_two_reviewers_at_the_same_moment_one_decides_and_the_other_reads_who_and_when() -> None:
    """C16: over two backends; if the rejection won, nothing is deleted by a late application."""
    for number in range(20):
        operation = propose(Kind.PRUNE, three(scope()), approval=Approval.NEEDS_HUMAN)
        results = together(
            number,
            lambda operation=operation: review.approve(operation=operation, by="ana", reason="old"),  # type: ignore[misc]
            lambda operation=operation: review.reject(operation=operation, by="bela", reason="used"),  # type: ignore[misc]
        )
        [refused] = [result for result in results if isinstance(result, review.AlreadyDecided)]
        decided = fresh(operation)
        loser = "bela" if decided.decided_by == "ana" else "ana"
        assert f"{decided.decided_by} decided it on" in str(refused)
        assert loser not in str(refused)
        events = Event.objects.filter(subject=operation.op_id, generation=operation.generation)
        assert list(events.values_list("action", flat=True)) == [decided.status]
        if decided.status == State.REJECTED:
            assert apply(operation).outcome == Outcome.REFUSED


def test_an_approval_is_taken_back_only_by_somebody_who_knows_of_it() -> None:
    operation = propose(Kind.MERGE, three(scope()), approval=Approval.NEEDS_HUMAN)
    review.approve(operation=operation, by="ana")
    with pytest.raises(review.AlreadyDecided, match="ana decided it on"):
        review.reject(operation=operation, by="bela", reason="they differ")
    review.reject(operation=operation, by="bela", reason="they differ", withdraw=True)
    assert apply(operation).outcome == Outcome.REFUSED


def test_a_double_click_on_approve_is_one_decision_and_one_application() -> None:
    """C16."""
    operation = propose(Kind.MERGE, three(scope()), approval=Approval.NEEDS_HUMAN)
    review.approve(operation=operation, by="ana")
    with pytest.raises(review.AlreadyDecided, match="ana decided it on"):
        review.approve(operation=operation, by="ana")
    assert [apply(operation).outcome, apply(operation).outcome] == [Outcome.APPLIED, Outcome.ALREADY]
    assert Event.objects.filter(subject=operation.op_id, action="approved").count() == 1


def test_a_pair_judged_distinct_is_remembered_for_good() -> None:
    rows = three(scope())
    operation = propose(Kind.MERGE, rows, approval=Approval.NEEDS_HUMAN)
    review.distinct(operation=operation, by="ana")
    assert len(Verdict.objects.pairs(scope_id=rows[0].scope_id)) == 3


# --- unattended -------------------------------------------------------------------------------------------------------


def test_unattended_application_is_off_refused_in_the_first_week_and_a_named_override_is_an_event() -> None:
    """R94, R116."""
    plan = plan_of(2)
    with pytest.raises(rollout.NotUnattended, match="does not allow"):
        rollout.apply_unattended(plan=plan)
    Policy.objects.create(pattern="*", body={"unattended": True})
    with pytest.raises(rollout.NotUnattended, match="less than 7 days old"):
        rollout.apply_unattended(plan=plan)
    applied = rollout.apply_unattended(plan=plan, override_by="ana", override_reason="moved from another store")
    assert {result.outcome for result in applied.results} == {Outcome.STALE}  # the policy changed since it was planned
    event = Event.objects.get(action="unattended_override")
    assert (event.actor, event.detail["reason"]) == ("ana", "moved from another store")
