"""Applying exactly what was reviewed, and taking it back: R96, R99-R102, R108, C10, C11, C13, C16, I8-I10, I17, I18."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import transaction

from consolidation import review, rollout, runner
from consolidation.models import Operation, Pause, Plan, Policy
from consolidation.operations import Approval, Kind, State
from consolidation.runner import Outcome
from observations import store
from observations.models import Event, Lineage, Observation, Outbox, Scope, database_now
from observations.records import Claim, StatedBy, Status, WrittenBy
from tests.acceptance import world
from tests.acceptance.actors import together
from tests.acceptance.boundaries import run_in_child
from tests.building import LONG_AGO, observe, propose, scope
from tests.conftest import empty_the_store

pytestmark = pytest.mark.django_db(transaction=True)

KEY = ("relay", "sits in", "rack 4")


def _three(within: Scope) -> list[Observation]:
    return [
        observe(
            "The relay sits in rack 4",
            within=within,
            key=KEY,
            created_at=LONG_AGO + timedelta(days=days),
            confidence=0.6,
        )
        for days in (1500, 3, 900)
    ]


def _fresh(operation: Operation) -> Operation:
    return Operation.objects.select_related("scope").get(pk=operation.pk)


def _derived(operation: Operation) -> Observation:
    pk = _fresh(operation).derived_id
    assert pk is not None
    return Observation.objects.select_related("scope").get(pk=pk)


def _apply(operation: Operation) -> runner.Result:
    return runner.apply(operation=_fresh(operation), by="operator")


def _undo(operation: Operation) -> runner.Result:
    return runner.undo(operation=_fresh(operation), by="operator")


def _correct(row: Observation, text: str = "The relay sits in rack 7") -> int:
    with transaction.atomic():
        claim = Claim(text=text, external_id=f"correction of {row.pk}", stated_by=StatedBy.USER)
        written = store.replace(scope=row.scope, old_id=row.pk, claim=claim, written_by=WrittenBy.DELIBERATE)
    assert written.id is not None
    return written.id


# --- merge ----------------------------------------------------------------------------------------------------------


def test_merging_preserves_every_source_id() -> None:
    """R96."""
    sources = _three(scope())
    operation = propose(Kind.MERGE, sources)
    assert _apply(operation).outcome == Outcome.APPLIED
    lineage = Lineage.objects.filter(derived_id=_fresh(operation).derived_id)
    assert set(lineage.values_list("source_observation_id", flat=True)) == {row.pk for row in sources}
    assert {edge.operation for edge in lineage} == {f"{operation.op_id}#1"}


def test_merged_evidence_is_the_union_of_the_sources_evidence() -> None:
    sources = _three(scope())
    operation = propose(Kind.MERGE, sources)
    _apply(operation)
    uris = {evidence.source_uri for row in sources for evidence in row.evidence.all()}
    merged = _derived(operation)
    assert set(merged.evidence.values_list("source_uri", flat=True)) == uris


def test_sources_are_archived_and_still_present_with_their_text() -> None:
    """R101."""
    sources = _three(scope())
    operation = propose(Kind.MERGE, sources)
    _apply(operation)
    for row in sources:
        kept = Observation.objects.get(pk=row.pk)
        assert (kept.status, kept.text, kept.superseded_by_id) == (
            Status.ARCHIVED,
            row.text,
            _fresh(operation).derived_id,
        )


def test_merged_created_at_is_the_earliest() -> None:
    """R108, R73."""
    sources = _three(scope())
    operation = propose(Kind.MERGE, sources)
    _apply(operation)
    merged = _derived(operation)
    assert merged.created_at == min(row.created_at for row in sources)


def test_a_merged_row_is_current_found_by_its_vector_and_never_more_certain_than_the_cap() -> None:
    operation = propose(Kind.MERGE, _three(scope()))
    _apply(operation)
    merged = _derived(operation)
    assert merged in Observation.objects.active()
    assert merged.embeddings.get().active
    assert 0.6 < merged.confidence <= 0.99


def test_the_reviewers_choice_of_keeper_is_the_text_that_stays() -> None:
    within = scope()
    short, long = observe("Standup is at nine", within=within), observe("Standup is at nine in room 2", within=within)
    operation = propose(Kind.MERGE, [short, long], approval=Approval.NEEDS_HUMAN, keeper=short)
    review.approve(operation=operation, by="reviewer", decision=review.Decision(keep=long.pk))
    _apply(operation)
    assert _derived(operation).text == "Standup is at nine in room 2"


def test_undo_makes_sources_active_and_retracts_the_derived_row() -> None:
    """R102."""
    sources = _three(scope())
    operation = propose(Kind.MERGE, sources)
    _apply(operation)
    assert _undo(operation).outcome == Outcome.UNDONE
    assert set(Observation.objects.active()) == set(sources)
    assert _derived(operation).status == Status.RETRACTED


@pytest.mark.parametrize("build", world.KINDS.values(), ids=list(world.KINDS))
def test_undo_after_apply_is_the_identity_on_everything_but_versions(build: Callable[[], int]) -> None:
    """I9."""
    fields = ("external_id", "text", "status", "superseded_by_id", "valid_from", "valid_to", "confidence", "created_at")
    pk = build()
    before = list(Observation.objects.order_by("pk").values(*fields))
    world.apply(pk)
    world.undo(pk)
    after = list(Observation.objects.exclude(status=Status.RETRACTED).order_by("pk").values(*fields))
    assert after == before
    assert world.broken() == []


def test_undone_is_undone_once_and_applied_again_only_by_a_new_operation() -> None:
    """I9, I10: undo of an undone operation changes nothing, and neither does applying it again."""
    operation = propose(Kind.MERGE, _three(scope()))
    _apply(operation)
    _undo(operation)
    before = world.snapshot()
    assert _undo(operation).outcome == Outcome.ALREADY
    assert _apply(operation).outcome == Outcome.REFUSED
    assert world.snapshot() == before


def test_applying_an_applied_operation_changes_no_row_no_version_and_no_event() -> None:
    """I8, R57."""
    operation = propose(Kind.MERGE, _three(scope()))
    _apply(operation)
    before, events = world.snapshot(), Event.objects.count()
    assert _apply(operation).outcome == Outcome.ALREADY
    assert (world.snapshot(), Event.objects.count()) == (before, events)


# --- plans ----------------------------------------------------------------------------------------------------------


def _plan_of(count: int) -> Plan:
    within = scope()
    plan = Plan.objects.create(pattern=within.name, requested_by="test", trigger="command")
    for number in range(count):
        pair = [
            observe(f"Shelf {number} holds cables", within=within, key=("shelf", "holds", f"c{number}")) for _ in "ab"
        ]
        propose(Kind.MERGE, pair, plan=plan)
    return plan


def test_a_second_apply_applies_nothing_and_skips_what_the_first_applied() -> None:
    """R99."""
    plan = _plan_of(4)
    first = rollout.apply_plan(plan=plan, by="operator")
    second = rollout.apply_plan(plan=plan, by="operator")
    assert [result.outcome for result in first] == [Outcome.APPLIED] * 4
    assert [result.outcome for result in second] == [Outcome.ALREADY] * 4


def test_a_crash_after_two_operations_leaves_two_whole_and_the_rest_resumes_to_the_last() -> None:
    """R56, R100: killed (-9) at the first boundary of the third operation."""
    plan = _plan_of(4)
    whole = run_in_child(lambda: rollout.apply_plan(plan=plan, by="operator"))
    assert whole.code == 0
    empty_the_store()
    plan = _plan_of(4)
    boundary = [
        number for number, (statement, side) in enumerate(whole.boundaries) if (statement, side) == ("COMMIT", "after")
    ][1]
    death = run_in_child(lambda: rollout.apply_plan(plan=plan, by="operator"), kill_at=boundary + 2)
    assert death.code == -9
    states = list(
        Operation.objects.filter(plan_items__plan=plan)
        .order_by("plan_items__position")
        .values_list("status", flat=True)
    )
    assert states == [State.APPLIED, State.APPLIED, State.PLANNED, State.PLANNED]
    assert world.broken() == []
    resumed = rollout.apply_plan(plan=plan, by="operator")
    assert [result.outcome for result in resumed] == [
        Outcome.ALREADY,
        Outcome.ALREADY,
        Outcome.APPLIED,
        Outcome.APPLIED,
    ]


def test_a_plan_is_undone_in_reverse_order_with_a_result_per_item() -> None:
    plan = _plan_of(3)
    rollout.apply_plan(plan=plan, by="operator")
    applied = list(Operation.objects.order_by("applied_at").values_list("op_id", flat=True))
    undone = rollout.undo_plan(plan=plan, by="operator")
    assert [result.operation for result in undone] == applied[::-1]
    assert {result.outcome for result in undone} == {Outcome.UNDONE}


def test_a_plan_wider_than_the_blast_radius_needs_a_second_confirmation() -> None:
    plan = _plan_of(11)
    with pytest.raises(rollout.TooWide, match="22 of 22 records of team-a/u1, over the limit of 20"):
        rollout.apply_plan(plan=plan, by="operator")
    assert Operation.objects.filter(status=State.APPLIED).count() == 0
    results = rollout.apply_plan(plan=plan, by="operator", confirmed=True)
    assert {result.outcome for result in results} == {Outcome.APPLIED}


# --- staleness ------------------------------------------------------------------------------------------------------


def test_a_merge_whose_source_was_corrected_after_approval_is_stale_and_the_other_item_applies() -> None:
    """C11, I18."""
    within = scope()
    a, b, c, d = (observe(text, within=within, key=KEY) for text in ["A", "B", "C", "D"])
    plan = Plan.objects.create(pattern=within.name, requested_by="test", trigger="command")
    first, second = propose(Kind.MERGE, [a, b], plan=plan), propose(Kind.MERGE, [c, d], plan=plan)
    for operation in (first, second):
        review.approve(operation=operation, by="reviewer")
    corrected = _correct(b)
    results = rollout.apply_plan(plan=plan, by="operator")
    assert [result.outcome for result in results] == [Outcome.STALE, Outcome.APPLIED]
    assert f"obs_{b.pk} was superseded by obs_{corrected}" in results[0].sentence
    assert Observation.objects.get(pk=corrected).status == Status.ACTIVE
    assert Observation.objects.get(pk=a.pk).status == Status.ACTIVE
    assert _fresh(first).status == State.STALE


def _archive(row: Observation) -> None:
    with transaction.atomic():
        store.move(scope_id=row.scope_id, ids=[row.pk], to=Status.ARCHIVED)


def _erase(row: Observation) -> None:
    with transaction.atomic():
        store.erase(scope_id=row.scope_id, ids=[row.pk], by="someone", reason="asked", request="forget:1")


def _change_policy(row: Observation) -> None:
    Policy.objects.create(pattern=row.scope.name, body={"t_merge": 0.99})


CHANGES = {"corrected": _correct, "archived": _archive, "erased": _erase, "policy changed": _change_policy}


@pytest.mark.parametrize("approved", [False, True], ids=["planned", "approved"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_whatever_moves_between_planning_and_applying_makes_the_operation_stale(
    change: Callable[[Observation], object], approved: bool
) -> None:
    """C11, D1: refused whole, with what changed."""
    rows = _three(scope())
    operation = propose(Kind.MERGE, rows)
    if approved:
        review.approve(operation=operation, by="reviewer")
    change(rows[1])
    result = _apply(operation)
    assert result.outcome == Outcome.STALE
    assert f"obs_{rows[1].pk}" in result.sentence or "policy changed" in result.sentence
    assert Observation.objects.filter(derivation="merge").count() == 0
    assert world.broken() == []


def test_an_approval_of_something_else_than_was_shown_is_refused() -> None:
    """I17, D2."""
    rows = _three(scope())
    operation = propose(Kind.MERGE, rows)
    digest = review.shown_digest(operation=operation)
    _correct(rows[0])
    with pytest.raises(review.Changed, match="was superseded by"):
        review.approve(operation=operation, by="reviewer", digest=digest)
    assert _fresh(operation).status == State.PLANNED


def test_an_expired_approval_is_refused_until_it_is_given_again() -> None:
    operation = propose(Kind.MERGE, _three(scope()), approval=Approval.NEEDS_HUMAN)
    review.approve(operation=operation, by="reviewer")
    Operation.objects.filter(pk=operation.pk).update(approval_expires_at=database_now() - timedelta(seconds=1))
    assert "approve it again" in _apply(operation).sentence
    review.approve(operation=operation, by="reviewer")
    assert _apply(operation).outcome == Outcome.APPLIED


def test_nothing_is_applied_under_a_hold_or_a_pause_while_writes_go_on() -> None:
    within = scope()
    operation = propose(Kind.MERGE, _three(within))
    Scope.objects.filter(pk=within.pk).update(held_at=database_now(), hold_reason="audit")
    assert "on hold" in _apply(operation).sentence
    Scope.objects.filter(pk=within.pk).update(held_at=None, hold_reason="")
    Pause.objects.create(by="operator")
    assert "paused by operator" in _apply(operation).sentence
    assert observe("Writes go on", within=within).status == Status.ACTIVE
    Pause.objects.all().delete()
    assert _apply(operation).outcome == Outcome.APPLIED


# --- what needs a person ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Kind.MERGE, Kind.SUPERSEDE, Kind.PRUNE])
def test_what_needs_a_person_is_not_applied_without_one(kind: Kind) -> None:
    """I17, C10."""
    operation = propose(kind, _three(scope()), approval=Approval.NEEDS_HUMAN)
    assert _apply(operation).outcome == Outcome.REFUSED
    assert Observation.objects.active().count() == 3


@pytest.mark.parametrize("kind", [Kind.SUPERSEDE, Kind.PRUNE])
def test_a_reason_is_required_to_approve_what_removes_something(kind: Kind) -> None:
    rows = _three(scope())
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
    assert _apply(operation).outcome == Outcome.APPLIED
    assert list(Observation.objects.active()) == [live[2]]
    assert {row.superseded_by_id for row in Observation.objects.filter(status=Status.SUPERSEDED)} == {live[2].pk}


def test_both_true_gives_each_its_period_and_keeps_both_in_the_reads() -> None:
    within = scope()
    live = [observe(f"Lives in {town}", within=within, key=("ana", "lives in", town)) for town in ("Bonn", "Turin")]
    operation = propose(Kind.SUPERSEDE, live, approval=Approval.NEEDS_HUMAN)
    moved = LONG_AGO + timedelta(days=1000)
    decision = review.Decision(both=((live[0].pk, None, moved), (live[1].pk, moved, None)))
    review.approve(operation=operation, by="reviewer", decision=decision, reason="she moved")
    assert _apply(operation).outcome == Outcome.APPLIED
    assert [(row.valid_from, row.valid_to) for row in Observation.objects.active().order_by("pk")] == [
        (None, moved),
        (moved, None),
    ]
    assert _undo(operation).outcome == Outcome.UNDONE
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
    _apply(operation)
    [current] = Observation.objects.active()
    assert (current.text, current.stated_by, current.subject) == (
        "Backups run at 04:00 since May",
        StatedBy.OPERATOR,
        "backup",
    )


def test_a_prune_leaves_the_reads_at_once_is_undone_within_grace_and_erased_after_it() -> None:
    """R85: undo only while archived, not erased."""
    rows = _three(scope())
    operation = propose(Kind.PRUNE, rows, approval=Approval.NEEDS_HUMAN)
    review.approve(operation=operation, by="reviewer", reason="over a year old")
    _apply(operation)
    assert Observation.objects.active().count() == 0
    due = Outbox.objects.get(task="erase_pruned")
    assert timedelta(days=29) < due.due_at - database_now() <= timedelta(days=30)
    runner.erase_pruned(scope_id=operation.scope_id, operation_id=operation.pk)
    assert set(Observation.objects.values_list("text", "status")) == {(None, Status.ERASED)}
    undone = _undo(operation)
    assert undone.outcome == Outcome.REFUSED
    assert "is erased and cannot come back" in undone.sentence
    assert runner.erase_pruned(scope_id=operation.scope_id, operation_id=operation.pk) == 0


def test_an_undone_prune_is_never_erased() -> None:
    rows = _three(scope())
    operation = propose(Kind.PRUNE, rows, approval=Approval.NEEDS_HUMAN)
    review.approve(operation=operation, by="reviewer", reason="over a year old")
    _apply(operation)
    _undo(operation)
    assert Outbox.objects.get(task="erase_pruned").done_at is not None
    assert runner.erase_pruned(scope_id=operation.scope_id, operation_id=operation.pk) == 0
    assert Observation.objects.active().count() == 3


# --- what was built on it --------------------------------------------------------------------------------------------


def test_undoing_what_others_were_built_on_is_refused_by_name_and_works_in_the_right_order() -> None:
    """C13."""
    a, b, c = _three(scope())
    first = propose(Kind.MERGE, [a, b])
    _apply(first)
    merged = _derived(first)
    second = propose(Kind.MERGE, [merged, c])
    _apply(second)
    before = world.snapshot()
    refused = _undo(first)
    assert (refused.outcome, refused.sentence) == (
        Outcome.REFUSED,
        f"{second.op_id} was built on it: undo {second.op_id} first.",
    )
    assert runner.undo_preview(operation=_fresh(first)).blockers == (refused.sentence,)
    assert world.snapshot() == before
    assert [_undo(second).outcome, _undo(first).outcome] == [Outcome.UNDONE, Outcome.UNDONE]
    assert set(Observation.objects.active()) == {a, b, c}
    for row in (a, b, c):
        again = Observation.objects.get(pk=row.pk)
        assert (again.text, again.created_at, again.superseded_by_id) == (row.text, row.created_at, None)


def test_undo_is_refused_when_the_result_was_corrected_since() -> None:
    operation = propose(Kind.MERGE, _three(scope()))
    _apply(operation)
    _correct(_derived(operation))
    assert "was superseded since" in _undo(operation).sentence


def test_the_preview_says_what_undo_would_restore_and_retract() -> None:
    sources = _three(scope())
    operation = propose(Kind.MERGE, sources)
    _apply(operation)
    preview = runner.undo_preview(operation=_fresh(operation))
    assert set(preview.restores) == {row.pk for row in sources}
    assert (preview.retracts, preview.blockers) == (_fresh(operation).derived_id, ())


# --- two reviewers ----------------------------------------------------------------------------------------------------


def test_of_two_reviewers_at_the_same_moment_one_decides_and_the_other_reads_who_and_when() -> None:
    """C16: over two backends; if the rejection won, nothing is deleted by a late application."""
    for number in range(20):
        operation = propose(Kind.PRUNE, _three(scope()), approval=Approval.NEEDS_HUMAN)
        results = together(
            number,
            lambda operation=operation: review.approve(operation=operation, by="ana", reason="old"),  # type: ignore[misc]
            lambda operation=operation: review.reject(operation=operation, by="bela", reason="used"),  # type: ignore[misc]
        )
        [refused] = [result for result in results if isinstance(result, review.AlreadyDecided)]
        decided = _fresh(operation)
        loser = "bela" if decided.decided_by == "ana" else "ana"
        assert f"{decided.decided_by} decided it on" in str(refused)
        assert loser not in str(refused)
        events = Event.objects.filter(subject=operation.op_id, generation=operation.generation)
        assert list(events.values_list("action", flat=True)) == [decided.status]
        if decided.status == State.REJECTED:
            assert _apply(operation).outcome == Outcome.REFUSED


def test_an_approval_is_taken_back_only_by_somebody_who_knows_of_it() -> None:
    operation = propose(Kind.MERGE, _three(scope()), approval=Approval.NEEDS_HUMAN)
    review.approve(operation=operation, by="ana")
    with pytest.raises(review.AlreadyDecided, match="ana decided it on"):
        review.reject(operation=operation, by="bela", reason="they differ")
    review.reject(operation=operation, by="bela", reason="they differ", withdraw=True)
    assert _apply(operation).outcome == Outcome.REFUSED


def test_a_double_click_on_approve_is_one_decision_and_one_application() -> None:
    """C16."""
    operation = propose(Kind.MERGE, _three(scope()), approval=Approval.NEEDS_HUMAN)
    review.approve(operation=operation, by="ana")
    with pytest.raises(review.AlreadyDecided, match="ana decided it on"):
        review.approve(operation=operation, by="ana")
    assert [_apply(operation).outcome, _apply(operation).outcome] == [Outcome.APPLIED, Outcome.ALREADY]
    assert Event.objects.filter(subject=operation.op_id, action="approved").count() == 1


def test_a_pair_judged_distinct_is_remembered_for_good() -> None:
    from consolidation.models import Verdict

    rows = _three(scope())
    operation = propose(Kind.MERGE, rows, approval=Approval.NEEDS_HUMAN)
    review.distinct(operation=operation, by="ana")
    assert len(Verdict.objects.pairs(scope_id=rows[0].scope_id)) == 3


# --- unattended -------------------------------------------------------------------------------------------------------


def test_unattended_application_is_off_refused_in_the_first_week_and_a_named_override_is_an_event() -> None:
    """R94, R116."""
    plan = _plan_of(2)
    with pytest.raises(rollout.NotUnattended, match="does not allow"):
        rollout.apply_unattended(plan=plan)
    Policy.objects.create(pattern="*", body={"unattended": True})
    with pytest.raises(rollout.NotUnattended, match="less than 7 days old"):
        rollout.apply_unattended(plan=plan)
    results = rollout.apply_unattended(plan=plan, override_by="ana", override_reason="moved from another store")
    assert {result.outcome for result in results} == {Outcome.STALE}  # the policy changed since it was planned
    event = Event.objects.get(action="unattended_override")
    assert (event.actor, event.detail["reason"]) == ("ana", "moved from another store")
