"""How many statements an application takes inside its transaction: few, and the same however many rows it moves (DESIGN
8, applying).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from consolidation.models import Operation
from consolidation.operations import Kind
from observations import store
from observations.models import Observation, Scope
from observations.records import Given, KeyState
from tests.acceptance.acting import apply, undo
from tests.building import observe, propose, scope, tell

pytestmark = pytest.mark.django_db(transaction=True)

FRAME = ("BEGIN", "COMMIT")
KEY = ("relay", "sits in", "rack 4")


def statements(act: Callable[[Operation], object], operation: Operation) -> list[str]:
    """What one attempt sends, but for the look-up of the operation before it and the frame of the transaction."""
    with CaptureQueriesContext(connection) as captured:
        act(operation)
    sent = [query["sql"] for query in captured.captured_queries]
    return [statement for statement in sent[1:] if statement not in FRAME]


def same(within: Scope, count: int) -> list[Observation]:
    return [observe("The relay sits in rack 4", within=within, key=KEY) for _ in range(count)]


@pytest.mark.parametrize("count", [2, 7])
def test_a_merge_takes_fourteen_statements_however_many_rows_it_joins(count: int) -> None:
    operation = propose(Kind.MERGE, same(scope(), count))
    assert len(statements(apply, operation)) == 14
    assert len(statements(undo, operation)) == 15


def test_a_merge_of_a_row_that_a_merge_made_takes_no_statement_more() -> None:
    within = scope()
    first = propose(Kind.MERGE, same(within, 5))
    apply(first)
    second = propose(Kind.MERGE, [Observation.objects.get(derivation="merge"), *same(within, 1)])
    assert len(statements(apply, second)) == 14
    assert len(statements(undo, second)) == 15


def test_a_key_that_a_model_gave_costs_one_statement_more_and_only_then() -> None:
    within = scope()
    rows = [observe("The relay hums", within=within) for _ in "ab"]
    given = {rows[0].pk: Given(KeyState.GIVEN, model="m", prompt_version="1", subject="relay")}
    with transaction.atomic():
        store.put_keys(scope_id=within.pk, given=given)
    assert len(statements(apply, propose(Kind.MERGE, rows))) == 15


def test_no_kind_takes_more_statements_for_many_rows_than_for_few() -> None:
    """Set-based: at most fourteen to apply, whatever it moves; one more to undo."""
    within, counted = scope(), []
    for count in (3, 9):
        archive = propose(Kind.ARCHIVE, [observe(f"Waiting for part {n}", within=within) for n in range(count)])
        compact = propose(Kind.COMPACT, [tell(f"Day {n}", within=within) for n in range(count)], text="Some days.")
        made = [len(statements(apply, operation)) for operation in (archive, compact)]
        counted.append((made, [len(statements(undo, operation)) for operation in (archive, compact)]))
    few, many = counted
    assert few == many
    assert max(few[0]) <= 14
    assert max(few[1]) <= 15
