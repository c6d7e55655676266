"""Two backends at once, 60 schedules each: 0 bad (INTEGRITY, isolation). A naive applier under the same schedules
must go wrong (A6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.db import transaction

from consolidation import runner
from consolidation.models import Operation
from consolidation.operations import Kind, State
from consolidation.runner import Outcome
from observations import store
from observations.models import Observation
from observations.records import Claim, Status, WrittenBy
from tests.acceptance import world
from tests.acceptance.actors import together
from tests.building import propose
from tests.conftest import superuser

pytestmark = pytest.mark.django_db(transaction=True)

SCHEDULES = 60


def _outcomes(results: list[object]) -> list[str]:
    return sorted(str(result.outcome) if isinstance(result, runner.Result) else repr(result) for result in results)


def test_the_same_operation_applied_twice_at_once_is_applied_once(show: Callable[[str], None]) -> None:
    """I8, C16, C17."""
    bad = []
    for seed in range(SCHEDULES):
        pk = world.merge()
        outcomes = _outcomes(together(seed, lambda pk=pk: world.apply(pk), lambda pk=pk: world.apply(pk)))  # type: ignore[misc]
        derived = Observation.objects.filter(derivation="merge").count()
        if outcomes != ["already", "applied"] or derived != 1 or world.broken():
            bad.append(f"{seed}: {outcomes}, {derived} derived")
    show(f"same operation twice: {len(bad)} bad of {SCHEDULES}")
    assert bad == []


def test_of_two_overlapping_operations_applied_at_once_one_is_applied_and_one_is_stale(
    show: Callable[[str], None],
) -> None:
    """I4: no source is used up twice."""
    bad = []
    for seed in range(SCHEDULES):
        first, second = _overlapping()
        outcomes = _outcomes(together(seed, lambda pk=first: world.apply(pk), lambda pk=second: world.apply(pk)))  # type: ignore[misc]
        if outcomes != ["applied", "stale"] or world.broken():
            bad.append(f"{seed}: {outcomes}")
    show(f"overlapping operations: {len(bad)} bad of {SCHEDULES}")
    assert bad == []


def test_an_application_against_a_writer_never_buries_what_was_just_written(show: Callable[[str], None]) -> None:
    """C11: a correction that commits first makes the merge stale; one that comes second finds its row gone from the
    reads.
    """
    bad = []
    for seed in range(SCHEDULES):
        pk = world.merge()
        results = together(seed, lambda pk=pk: world.apply(pk), _correct)  # type: ignore[misc]
        applied = isinstance(results[0], runner.Result) and results[0].outcome == Outcome.APPLIED
        corrected = not isinstance(results[1], Exception)
        gone = isinstance(results[1], Observation.DoesNotExist)
        if applied == corrected or (not corrected and not gone) or world.broken():
            bad.append(f"{seed}: {results}")
    show(f"apply against a writer: {len(bad)} bad of {SCHEDULES}")
    assert bad == []


def test_an_undo_against_an_application_built_on_it_leaves_one_of_two_sound_ends(
    show: Callable[[str], None],
) -> None:
    """C13: either the undo is first and the second merge is stale, or the merge is first and the undo is refused."""
    bad = []
    for seed in range(SCHEDULES):
        first, second = _built_on()
        outcomes = together(seed, lambda pk=first: world.undo(pk), lambda pk=second: world.apply(pk))  # type: ignore[misc]
        named = [result.outcome for result in outcomes if isinstance(result, runner.Result)]
        if named not in ([Outcome.UNDONE, Outcome.STALE], [Outcome.REFUSED, Outcome.APPLIED]) or world.broken():
            bad.append(f"{seed}: {outcomes}")
    show(f"undo against apply: {len(bad)} bad of {SCHEDULES}")
    assert bad == []


def _overlapping() -> tuple[int, int]:
    a, b, c = world.rows(3)
    return propose(Kind.MERGE, [a, b]).pk, propose(Kind.MERGE, [b, c]).pk


def _correct() -> Observation:
    row = Observation.objects.select_related("scope").get(external_id="r1")
    claim = Claim(text="The relay sits in rack 7", external_id="correction")
    with transaction.atomic():
        written = store.replace(scope=row.scope, old_id=row.pk, claim=claim, written_by=WrittenBy.DELIBERATE)
    assert written.id is not None
    return Observation.objects.get(pk=written.id)


def _built_on() -> tuple[int, int]:
    a, b, c = world.rows(3)
    first = propose(Kind.MERGE, [a, b])
    world.apply(first.pk)
    first.refresh_from_db()
    assert first.derived_id is not None
    merged = Observation.objects.get(pk=first.derived_id)
    return first.pk, propose(Kind.MERGE, [merged, c]).pk


# --- the naive control ----------------------------------------------------------------------------------------------

TRIGGERS = (
    ("observations_observation", "observation_update"),
    ("consolidation_operation", "operation_whole"),
)


@contextmanager
def _without_triggers() -> Iterator[None]:
    """The control runs as most stores do: without the database's guards. The only place of the suite that disables a
    trigger.
    """
    with superuser() as admin:
        for table, trigger in TRIGGERS:
            admin.execute(f"ALTER TABLE {table} DISABLE TRIGGER {trigger}")
        try:
            yield
        finally:
            for table, trigger in TRIGGERS:
                admin.execute(f"ALTER TABLE {table} ENABLE TRIGGER {trigger}")


def _naive_apply(pk: int) -> None:
    """Check, then act, in one transaction, without locks and without using the sources up."""
    with transaction.atomic():
        operation = Operation.objects.select_related("scope").get(pk=pk)
        ids = list(operation.sources.values_list("observation_id", flat=True))
        if Observation.objects.active().filter(pk__in=ids).count() < len(ids):
            return
        derived = store.write_derived(
            scope=operation.scope,
            derived=store.Derived(
                claim=Claim(text="The relay sits in rack 4", external_id=f"naive-{pk}"),
                sources=tuple(ids),
                derivation="merge",
                operation=f"{operation.op_id}#1",
            ),
        )
        store.move(scope_id=operation.scope_id, ids=ids, to=Status.ARCHIVED, successor=derived)
        Operation.objects.filter(pk=pk).update(
            status=State.APPLIED, applied_by="naive", applied_digest="x", applied_at="2026-01-01T00:00Z"
        )


def test_the_control_a_naive_applier_without_the_databases_guards_uses_a_source_up_twice(
    show: Callable[[str], None],
) -> None:
    """A6: at least 45 of 60 overlapping pairs go wrong when nobody locks and no trigger looks."""
    bad = []
    with _without_triggers():
        for seed in range(SCHEDULES):
            first, second = _overlapping()
            together(seed, lambda pk=first: _naive_apply(pk), lambda pk=second: _naive_apply(pk))  # type: ignore[misc]
            if Observation.objects.filter(derivation="merge").count() == 2:
                bad.append(str(seed))
    show(f"naive control: {len(bad)} bad of {SCHEDULES}")
    assert len(bad) >= 45
