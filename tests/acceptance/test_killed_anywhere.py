"""Kill -9 at every statement boundary of applying and undoing: wholly done or not done, and re-running converges
(R55-R58, R82, R100, A1).

A naive applier, kept beside ours, must fail the same examination: that is how we know that it bites (A6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.db import transaction

from consolidation.models import Operation
from consolidation.operations import State
from observations import store
from observations.models import Event
from observations.records import Claim, Status
from tests.acceptance import world
from tests.acceptance.boundaries import Side, run_in_child
from tests.conftest import empty_the_store
from tests.keeping import kept

pytestmark = pytest.mark.django_db(transaction=True)

FEWEST_BOUNDARIES = 26  # of one scenario, before and after counted; a smaller number means that the count itself broke


def _examine(scenario: world.Scenario, *, invariants: bool = True) -> Iterator[tuple[str, Side, str]]:
    """Kill the scenario at each of its boundaries; yields (statement, side, what is wrong there or '')."""
    build = kept(scenario.build)
    pk = build()
    before = world.snapshot()
    whole = run_in_child(lambda: scenario.act(pk))
    assert whole.code == 0, f"{scenario.name} does not even work unharmed"
    after = world.snapshot()
    assert before != after
    looked_at: dict[str, list[str]] = {}
    for position, (statement, side) in enumerate(whole.boundaries):
        empty_the_store()
        pk = build()
        assert world.snapshot() == before, "the world is not the same every time"
        death = run_in_child(lambda pk=pk: scenario.act(pk), kill_at=position)  # type: ignore[misc]
        assert death.code == -9, f"the child outlived boundary {position} of {scenario.name}"
        assert death.boundaries[-1] == (statement, side)
        found = world.snapshot()
        if invariants and found not in looked_at:  # what deaths leave alike is alike sound
            looked_at[found] = world.broken()
        yield statement, side, _wrong(scenario, pk, found, (before, after), looked_at.get(found, []))


def _wrong(scenario: world.Scenario, pk: int, found: str, whole: tuple[str, str], broken: list[str]) -> str:
    """Why the store is not sound after the death, or does not reach the undisturbed end when run again."""
    if found not in whole:
        return "half done"
    if broken:
        return f"broken: {broken}"
    scenario.act(pk)
    if world.snapshot() != whole[1]:
        return "running again does not converge"
    return ""


@pytest.mark.parametrize("scenario", world.SCENARIOS, ids=lambda scenario: scenario.name)
def test_killed_at_any_statement_an_operation_is_wholly_done_or_not_done_and_running_it_again_converges(
    scenario: world.Scenario, show: Callable[[str], None]
) -> None:
    examined = list(_examine(scenario))
    lines = [f"  {side:>6} {statement:<62}{wrong or 'sound'}" for statement, side, wrong in examined]
    show("\n".join([f"{scenario.name}: killed (exit status -9) at {len(examined)} boundaries", *lines]))
    assert len(examined) >= FEWEST_BOUNDARIES
    assert [line for line in examined if line[2]] == []


def test_an_applied_operation_whose_lineage_is_missing_never_commits() -> None:
    """I1: the deferred check reads the rows at COMMIT, whoever wrote them."""
    from django.db import DatabaseError

    pk = world.merge()
    with pytest.raises(DatabaseError, match=r"moved 0 sources|without its event|lineage"), transaction.atomic():
        Operation.objects.filter(pk=pk).update(
            status=State.APPLIED, applied_by="nobody", applied_digest="x", applied_at="2026-01-01T00:00Z"
        )
    assert Operation.objects.get(pk=pk).status == State.PLANNED


# --- the naive control ----------------------------------------------------------------------------------------------


def _naive_apply(pk: int) -> None:
    """What sample code does: the same writes in the same order, each by itself, marking the operation done at the
    end.
    """
    operation = Operation.objects.select_related("scope").get(pk=pk)
    if operation.status == State.APPLIED:
        return
    ids = list(operation.sources.values_list("observation_id", flat=True))
    derived = store.write_derived(
        scope=operation.scope,
        derived=store.Derived(
            claim=Claim(text="The relay sits in rack 4", external_id=f"naive-{Event.objects.count()}"),
            sources=tuple(ids),
            derivation="merge",
            operation=f"{operation.op_id}#1",
            same_text_as=ids[0],
        ),
    )
    for source in ids:
        operation.sources.filter(observation_id=source).update(prior_status=Status.ACTIVE, applied_version=2)
        store.move(scope_id=operation.scope_id, ids=[source], to=Status.ARCHIVED, successor=derived)
        Event.objects.append(scope_id=operation.scope_id, action="archived", actor="naive", subject=f"obs_{source}")


def test_the_control_a_naive_applier_is_found_out_at_most_of_its_boundaries(show: Callable[[str], None]) -> None:
    """A6: at least 70% of the boundaries at which the naive applier dies leave a store that ours never leaves."""
    naive = world.Scenario("naive apply", world.merge, _naive_apply)
    examined = list(_examine(naive, invariants=False))
    found_out = [line for line in examined if line[2]]
    show(f"naive applier: found out at {len(found_out)} of {len(examined)} boundaries")
    assert len(found_out) >= 0.7 * len(examined)
