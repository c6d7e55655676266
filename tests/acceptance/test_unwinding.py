"""Undoing an operation with everything that was built on it: the tree, the shortest order, and stopping (C13)."""

from __future__ import annotations

import pytest

from consolidation import review, runner
from consolidation.models import Operation
from consolidation.operations import Kind, State
from consolidation.runner import Outcome
from observations.models import Event, Observation
from tests.acceptance import world
from tests.acceptance.acting import KEY, apply, correct, derived_of, fresh, three
from tests.building import observe, propose, scope

pytestmark = pytest.mark.django_db


def tower() -> tuple[list[Observation], list[Operation]]:
    """Three merges, each of the result of the one before, and a fourth that has nothing to do with them."""
    rows = three(scope())
    more = [observe("The relay sits in rack 4", within=scope(), key=KEY) for _ in range(3)]
    operations: list[Operation] = []
    below = rows[0]
    for row in (rows[1], rows[2], more[0]):
        operation = propose(Kind.MERGE, sorted([below, row], key=lambda each: each.pk))
        assert apply(operation).outcome == Outcome.APPLIED
        operations.append(fresh(operation))
        below = derived_of(operation)
    beside = propose(Kind.MERGE, more[1:])
    apply(beside)
    return [*rows, more[0]], [*operations, fresh(beside)]


def test_the_order_is_every_later_operation_once_the_last_applied_first() -> None:
    """C13. What has nothing to do with it is no part of it."""
    _, (first, second, third, _beside) = tower()
    found = runner.unwinding(operation=first)
    assert [row.pk for row in found.order] == [third.pk, second.pk]
    assert [(depth, row.pk) for depth, row in found.tree] == [(0, second.pk), (1, third.pk)]
    assert runner.unwinding(operation=third).order == ()


def test_looking_writes_nothing() -> None:
    """Promise 5."""
    _, (first, *_) = tower()
    before = world.snapshot()
    runner.unwinding(operation=first)
    assert world.snapshot() == before


@pytest.mark.django_db(transaction=True)
def test_unwinding_restores_every_row_and_leaves_what_stands_beside() -> None:
    """C13, I9."""
    rows, (first, second, third, beside) = tower()
    shown = runner.unwinding(operation=first).shown
    results = runner.unwind(operation=first, by="olga", shown=shown)
    assert [(result.operation, result.outcome) for result in results] == [
        (operation.op_id, Outcome.UNDONE) for operation in (third, second, first)
    ]
    assert {row.pk for row in rows} <= set(Observation.objects.active().values_list("pk", flat=True))
    assert fresh(beside).status == State.APPLIED
    for row in rows:
        again = Observation.objects.get(pk=row.pk)
        assert (again.text, again.created_at, again.superseded_by_id) == (row.text, row.created_at, None)


def test_what_was_built_since_it_was_shown_is_not_undone_unseen() -> None:
    """D2."""
    rows, (first, second, third, _) = tower()
    shown = runner.unwinding(operation=first).shown
    late = propose(
        Kind.MERGE,
        sorted(
            [derived_of(third), observe(str(rows[0].text), within=rows[0].scope, key=KEY)], key=lambda each: each.pk
        ),
    )
    apply(late)
    before = world.snapshot()
    with pytest.raises(review.Changed, match="changed since you looked"):
        runner.unwind(operation=first, by="olga", shown=shown)
    assert world.snapshot() == before
    assert fresh(second).status == State.APPLIED


def test_it_stops_at_the_first_refusal_and_says_which() -> None:
    """A row that somebody corrected stands in the way: what comes after it stays applied, and nothing is half done."""
    _, (first, second, third, _) = tower()
    new = correct(derived_of(third))
    found = runner.unwinding(operation=first)
    results = runner.unwind(operation=first, by="olga", shown=found.shown)
    assert [result.outcome for result in results] == [Outcome.REFUSED]
    assert f"was superseded by obs_{new} since" in results[0].sentence
    assert {fresh(each).status for each in (first, second, third)} == {State.APPLIED}


@pytest.mark.django_db(transaction=True)
def test_only_the_one_that_was_asked_for_counts_as_a_judgement() -> None:
    """Those above it stood in the way: nobody said that they were wrong."""
    _, (first, second, third, _) = tower()
    runner.unwind(operation=first, by="olga", shown=runner.unwinding(operation=first).shown)
    details = {
        event.subject: event.detail.get("with")
        for event in Event.objects.filter(action="undone", subject__in=[first.op_id, second.op_id, third.op_id])
    }
    assert details == {first.op_id: None, second.op_id: first.op_id, third.op_id: first.op_id}
