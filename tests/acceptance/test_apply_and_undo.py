"""Applying exactly what was reviewed, and taking it back: R96, R99-R102, R108, C10, C11, C13, C16, I8-I10, I17, I18."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import transaction

from consolidation import review, rollout, runner
from consolidation.models import Operation, Pause, Plan, Policy
from consolidation.operations import Approval, Kind, State
from consolidation.runner import Outcome
from observations import store
from observations.models import Event, Lineage, Observation, Scope, database_now
from observations.records import Status
from tests.acceptance import world
from tests.acceptance.acting import KEY, apply, correct, derived_of, fresh, plan_of, three, undo
from tests.acceptance.boundaries import run_in_child
from tests.building import observe, propose, scope
from tests.conftest import empty_the_store

pytestmark = pytest.mark.django_db(transaction=True)

# --- merge ----------------------------------------------------------------------------------------------------------


def test_merging_preserves_every_source_id() -> None:
    """R96."""
    sources = three(scope())
    operation = propose(Kind.MERGE, sources)
    assert apply(operation).outcome == Outcome.APPLIED
    lineage = Lineage.objects.filter(derived_id=fresh(operation).derived_id)
    assert set(lineage.values_list("source_observation_id", flat=True)) == {row.pk for row in sources}
    assert {edge.operation for edge in lineage} == {f"{operation.op_id}#1"}


def test_merged_evidence_is_the_union_of_the_sources_evidence() -> None:
    sources = three(scope())
    operation = propose(Kind.MERGE, sources)
    apply(operation)
    uris = {evidence.source_uri for row in sources for evidence in row.evidence.all()}
    merged = derived_of(operation)
    assert set(merged.evidence.values_list("source_uri", flat=True)) == uris


def test_sources_are_archived_and_still_present_with_their_text() -> None:
    """R101."""
    sources = three(scope())
    operation = propose(Kind.MERGE, sources)
    apply(operation)
    for row in sources:
        kept = Observation.objects.get(pk=row.pk)
        assert (kept.status, kept.text, kept.superseded_by_id) == (
            Status.ARCHIVED,
            row.text,
            fresh(operation).derived_id,
        )


def test_merged_created_at_is_the_earliest() -> None:
    """R108, R73."""
    sources = three(scope())
    operation = propose(Kind.MERGE, sources)
    apply(operation)
    merged = derived_of(operation)
    assert merged.created_at == min(row.created_at for row in sources)


def test_a_merged_row_is_current_found_by_its_vector_and_never_more_certain_than_the_cap() -> None:
    operation = propose(Kind.MERGE, three(scope()))
    apply(operation)
    merged = derived_of(operation)
    assert merged in Observation.objects.active()
    assert merged.embeddings.get().active
    assert 0.6 < merged.confidence <= 0.99


def test_the_reviewers_choice_of_keeper_is_the_text_that_stays() -> None:
    within = scope()
    short, long = observe("Standup is at nine", within=within), observe("Standup is at nine in room 2", within=within)
    operation = propose(Kind.MERGE, [short, long], approval=Approval.NEEDS_HUMAN, keeper=short)
    review.approve(operation=operation, by="reviewer", decision=review.Decision(keep=long.pk))
    apply(operation)
    assert derived_of(operation).text == "Standup is at nine in room 2"


def test_undo_makes_sources_active_and_retracts_the_derived_row() -> None:
    """R102."""
    sources = three(scope())
    operation = propose(Kind.MERGE, sources)
    apply(operation)
    assert undo(operation).outcome == Outcome.UNDONE
    assert set(Observation.objects.active()) == set(sources)
    assert derived_of(operation).status == Status.RETRACTED


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
    operation = propose(Kind.MERGE, three(scope()))
    apply(operation)
    undo(operation)
    before = world.snapshot()
    assert undo(operation).outcome == Outcome.ALREADY
    assert apply(operation).outcome == Outcome.REFUSED
    assert world.snapshot() == before


def test_applying_an_applied_operation_changes_no_row_no_version_and_no_event() -> None:
    """I8, R57."""
    operation = propose(Kind.MERGE, three(scope()))
    apply(operation)
    before, events = world.snapshot(), Event.objects.count()
    assert apply(operation).outcome == Outcome.ALREADY
    assert (world.snapshot(), Event.objects.count()) == (before, events)


# --- plans ----------------------------------------------------------------------------------------------------------


def test_a_second_apply_applies_nothing_and_skips_what_the_first_applied() -> None:
    """R99."""
    plan = plan_of(4)
    first = rollout.apply_plan(plan=plan, by="operator")
    second = rollout.apply_plan(plan=plan, by="operator")
    assert [result.outcome for result in first] == [Outcome.APPLIED] * 4
    assert [result.outcome for result in second] == [Outcome.ALREADY] * 4


def test_a_crash_after_two_operations_leaves_two_whole_and_the_rest_resumes_to_the_last() -> None:
    """R56, R100: killed (-9) at the first boundary of the third operation."""
    plan = plan_of(4)
    whole = run_in_child(lambda: rollout.apply_plan(plan=plan, by="operator"))
    assert whole.code == 0
    empty_the_store()
    plan = plan_of(4)
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
    plan = plan_of(3)
    rollout.apply_plan(plan=plan, by="operator")
    applied = list(Operation.objects.order_by("applied_at").values_list("op_id", flat=True))
    undone = rollout.undo_plan(plan=plan, by="operator")
    assert [result.operation for result in undone] == applied[::-1]
    assert {result.outcome for result in undone} == {Outcome.UNDONE}


def test_a_plan_wider_than_the_blast_radius_needs_a_second_confirmation() -> None:
    plan = plan_of(11)
    with pytest.raises(rollout.TooWide, match="22 of 22 records of team-a/u1, over the limit of 20"):
        rollout.apply_plan(plan=plan, by="operator")
    assert Operation.objects.filter(status=State.APPLIED).count() == 0
    with pytest.raises(rollout.SecondWanted, match="until another person confirms the same"):
        rollout.apply_plan(plan=plan, by="operator", confirmed=True)
    assert Operation.objects.filter(status=State.APPLIED).count() == 0
    results = rollout.apply_plan(plan=plan, by="another", confirmed=True)
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
    corrected = correct(b)
    results = rollout.apply_plan(plan=plan, by="operator")
    assert [result.outcome for result in results] == [Outcome.STALE, Outcome.APPLIED]
    assert f"obs_{b.pk} was superseded by obs_{corrected}" in results[0].sentence
    assert Observation.objects.get(pk=corrected).status == Status.ACTIVE
    assert Observation.objects.get(pk=a.pk).status == Status.ACTIVE
    assert fresh(first).status == State.STALE


def _archive(row: Observation) -> None:
    with transaction.atomic():
        store.move(scope_id=row.scope_id, ids=[row.pk], to=Status.ARCHIVED)


def _erase(row: Observation) -> None:
    with transaction.atomic():
        store.erase(scope_id=row.scope_id, ids=[row.pk], by="someone", reason="asked", request="forget:1")


def _change_policy(row: Observation) -> None:
    Policy.objects.create(pattern=row.scope.name, body={"t_merge": 0.99})


CHANGES = {"corrected": correct, "archived": _archive, "erased": _erase, "policy changed": _change_policy}


@pytest.mark.parametrize("approved", [False, True], ids=["planned", "approved"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_whatever_moves_between_planning_and_applying_makes_the_operation_stale(
    change: Callable[[Observation], object], approved: bool
) -> None:
    """C11, D1: refused whole, with what changed."""
    rows = three(scope())
    operation = propose(Kind.MERGE, rows)
    if approved:
        review.approve(operation=operation, by="reviewer")
    change(rows[1])
    result = apply(operation)
    assert result.outcome == Outcome.STALE
    assert f"obs_{rows[1].pk}" in result.sentence or "policy changed" in result.sentence
    assert Observation.objects.filter(derivation="merge").count() == 0
    assert world.broken() == []


def test_nothing_is_applied_under_a_hold_or_a_pause_while_writes_go_on() -> None:
    within = scope()
    operation = propose(Kind.MERGE, three(within))
    Scope.objects.filter(pk=within.pk).update(held_at=database_now(), hold_reason="audit")
    assert "on hold" in apply(operation).sentence
    Scope.objects.filter(pk=within.pk).update(held_at=None, hold_reason="")
    Pause.objects.create(by="operator")
    assert "paused by operator" in apply(operation).sentence
    assert observe("Writes go on", within=within).status == Status.ACTIVE
    Pause.objects.all().delete()
    assert apply(operation).outcome == Outcome.APPLIED


# --- what was built on it --------------------------------------------------------------------------------------------


def test_undoing_what_others_were_built_on_is_refused_by_name_and_works_in_the_right_order() -> None:
    """C13."""
    a, b, c = three(scope())
    first = propose(Kind.MERGE, [a, b])
    apply(first)
    merged = derived_of(first)
    second = propose(Kind.MERGE, [merged, c])
    apply(second)
    before = world.snapshot()
    refused = undo(first)
    assert (refused.outcome, refused.sentence) == (
        Outcome.REFUSED,
        f"{second.op_id} was built on it: undo {second.op_id} first.",
    )
    assert runner.undo_preview(operation=fresh(first)).blockers == (refused.sentence,)
    assert world.snapshot() == before
    assert [undo(second).outcome, undo(first).outcome] == [Outcome.UNDONE, Outcome.UNDONE]
    assert set(Observation.objects.active()) == {a, b, c}
    for row in (a, b, c):
        again = Observation.objects.get(pk=row.pk)
        assert (again.text, again.created_at, again.superseded_by_id) == (row.text, row.created_at, None)


def test_undo_is_refused_when_the_result_was_corrected_since() -> None:
    operation = propose(Kind.MERGE, three(scope()))
    apply(operation)
    new = correct(derived_of(operation))
    assert f"was superseded by obs_{new} since" in undo(operation).sentence


def test_the_preview_says_what_undo_would_restore_and_retract() -> None:
    sources = three(scope())
    operation = propose(Kind.MERGE, sources)
    apply(operation)
    preview = runner.undo_preview(operation=fresh(operation))
    assert set(preview.restores) == {row.pk for row in sources}
    assert (preview.retracts, preview.blockers) == (fresh(operation).derived_id, ())
