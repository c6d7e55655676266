"""The same proposal planned again is the same operation; what was decided stays decided (DESIGN 4, Identity)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import IntegrityError, connections, transaction

from consolidation import review, runner
from consolidation.aliases import request_alias
from consolidation.models import Operation, Plan
from consolidation.operations import Kind, State
from consolidation.runner import Outcome
from observations import ingest, store
from observations.models import Event, Observation, database_now
from observations.records import Claim, Given, KeyState, WrittenBy
from tests.building import observe, scope
from tests.integration.planning import LIVES, asked, change_policy, move, one, operations, plan, twins

pytestmark = pytest.mark.django_db(transaction=True)


# --- identity --------------------------------------------------------------------------------------------------------


def test_planning_twice_gives_the_same_operations_and_no_second_copy() -> None:
    """C12, R57."""
    within = scope()
    twins(within)
    asked(within)
    first, second = plan(), plan()
    assert [row.pk for row in operations(first)] == [row.pk for row in operations(second)]
    assert Operation.objects.count() == 2
    assert second.figures["again"] == 2
    assert second.figures["new"] == 0


def test_an_applied_merge_is_not_planned_again() -> None:
    """R57, R99."""
    twins(scope())
    assert runner.apply(operation=one(plan()), by="ann").outcome == Outcome.APPLIED
    assert operations(plan()) == []


@pytest.mark.parametrize("change", [move, change_policy])
def test_a_rejected_operation_is_not_asked_again_until_something_changed(change: Callable[[Observation], None]) -> None:
    """DESIGN 4, Identity."""
    within = scope()
    first, _ = asked(within)
    operation = one(plan())
    review.reject(operation=operation, by="ann", reason="two shelters")
    assert operations(plan()) == []
    change(first)
    again = one(plan())
    assert (again.op_id, again.generation) == (operation.op_id, 2)


def test_a_rejected_supersede_stays_rejected_and_a_new_value_asks_anew() -> None:
    within = scope()
    for place in ("Oslo", "Bergen"):
        observe(f"Ann lives in {place}", within=within, key=(*LIVES, place))
    [decision] = operations(plan(), Kind.SUPERSEDE)
    review.reject(operation=decision, by="ann", reason="ask her")
    assert operations(plan(), Kind.SUPERSEDE) == []
    observe("Ann lives in Molde", within=within, key=(*LIVES, "Molde"))
    [anew] = operations(plan(), Kind.SUPERSEDE)
    assert anew.n_sources == 3


def test_an_undone_merge_is_not_proposed_again() -> None:
    """INTEGRITY, undo semantics."""
    twins(scope())
    operation = one(plan())
    runner.apply(operation=operation, by="ann")
    assert runner.undo(operation=Operation.objects.get(pk=operation.pk), by="ann").outcome == Outcome.UNDONE
    assert operations(plan()) == []


def test_a_pair_judged_distinct_is_never_proposed_together_again() -> None:
    within = scope()
    first, _ = asked(within)
    review.distinct(operation=one(plan()), by="ann")
    move(first)
    assert operations(plan()) == []


def test_an_operation_that_is_no_longer_proposed_goes_stale_with_its_reason_and_event() -> None:
    within = scope()
    first, second = asked(within)
    operation = one(plan())
    with transaction.atomic():
        claim = Claim(text="Maria moved to another town", external_id="correction")
        written = store.replace(scope=within, old_id=first.pk, claim=claim, written_by=WrittenBy.DELIBERATE)
    assert operations(plan()) == []
    operation.refresh_from_db()
    assert operation.status == State.STALE
    assert operation.outcome == f"obs_{first.pk} was superseded by obs_{written.id}"
    assert Event.objects.filter(action=State.STALE, subject=operation.op_id, actor="ann").count() == 1
    assert second.pk not in set(Operation.objects.open().values_list("sources__observation_id", flat=True))


def test_a_moved_source_makes_a_new_generation_and_the_old_one_stale() -> None:
    """C11: a new item 1 that needs a new approval."""
    first, _ = asked(scope())
    old = one(plan())
    move(first)
    made = plan()
    new = one(made)
    old.refresh_from_db()
    assert (made.figures["new"], made.figures["stale"]) == (1, 1)
    assert (old.status, old.outcome) == (State.STALE, "planned anew: its sources changed")
    assert (new.op_id, new.generation, new.status) == (old.op_id, 2, State.NEEDS_HUMAN)


def test_an_approved_operation_keeps_its_rows_and_its_place_in_the_plan() -> None:
    """A plan has at most one appliable operation per record, also while an approval waits to be applied."""
    within = scope()
    asked(within)
    approved = review.approve(operation=one(plan()), by="ann")
    observe("Maria volunteers at the homeless shelter downtown gladly", within=within)
    made = plan()
    assert [row.pk for row in operations(made)] == [approved.pk]
    assert operations(made)[0].status == State.APPROVED
    assert made.figures["approved"] == 1


def test_an_expired_approval_is_asked_again_in_the_same_operation() -> None:
    asked(scope())
    approved = review.approve(operation=one(plan()), by="ann")
    Operation.objects.filter(pk=approved.pk).update(approval_expires_at=database_now() - timedelta(seconds=1))
    assert one(plan()).pk == approved.pk


def test_operations_made_by_request_are_left_alone() -> None:
    """Only what a plan proposed can stop being proposed."""
    row = observe("A wish of its own", within=scope())
    requested = Operation.objects.create(
        op_id="op_requested",
        input_key="op_r",
        scope=row.scope,
        kind=Kind.PRUNE,
        approval="NEEDS_HUMAN",
        status=State.NEEDS_HUMAN,
        reason="by request",
        n_sources=1,
        policy_hash="",
    )
    plan()
    requested.refresh_from_db()
    assert requested.status == State.NEEDS_HUMAN


def test_a_name_that_somebody_asked_for_waits_through_every_plan() -> None:
    """R46: nothing proposes an alias, so nothing can stop proposing one."""
    within = scope()
    for name in ("Ana Brandt", "Anastasia"):
        observe(f"{name} was seen", within=within, key=(name, "was seen", "here"))
    asked_for = request_alias(scope=within, subject="Anastasia", name="Ana Brandt", by="ann")
    plan()
    asked_for.refresh_from_db()
    assert asked_for.status == State.NEEDS_HUMAN


def test_a_contradiction_that_a_given_key_shows_is_asked_while_the_key_stands() -> None:
    """The same question in every plan; taken back, it is no longer proposed; and never by itself again."""
    within = scope()
    observe("Ann lives in Oslo", within=within, key=(*LIVES, "Oslo"))
    other = observe("Ann lives in Rome", within=within)
    assert operations(plan(), Kind.SUPERSEDE) == []
    given = Given(KeyState.GIVEN, "m", "1", *LIVES, "Rome")
    with transaction.atomic():
        store.put_keys(scope_id=within.pk, given={other.pk: given})
    [first] = operations(plan(), Kind.SUPERSEDE)
    [again] = operations(plan(), Kind.SUPERSEDE)
    assert again.pk == first.pk
    ingest.withdraw_key(observation=other, by="ann")
    assert operations(plan(), Kind.SUPERSEDE) == []
    first.refresh_from_db()
    assert (first.status, first.outcome) == (State.STALE, "no longer proposed")


def test_two_planners_at_once_make_one_set_of_operations() -> None:
    """C17, E4."""
    within = scope()
    twins(within)
    asked(within)
    errors: list[BaseException] = []
    together = threading.Barrier(2)

    def run() -> None:
        try:
            together.wait(10)
            plan()
        except BaseException as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    assert Operation.objects.count() == 2
    assert Plan.objects.count() == 2


def test_one_plan_is_stored_per_pattern_and_window() -> None:
    """E4: a run is unique by (pattern, window)."""
    scope()
    plan(window="2025-06-01T10")
    with pytest.raises(IntegrityError, match="one_plan_per_window"):
        plan(window="2025-06-01T10")
    assert Plan.objects.count() == 1
