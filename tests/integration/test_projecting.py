"""A plan's impact before it is applied: computed without writing to memory, and equal to what is measured after."""

from __future__ import annotations

import random
import re

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from consolidation import planner, probing, projecting, review, rollout, runner
from consolidation.models import Operation, Plan, PlanItem, Policy, Projection, Suite
from consolidation.operations import Approval, Kind, State
from consolidation.policy import Policy as Rules
from consolidation.probes import Figures
from consolidation.projecting import Projected
from consolidation.review import Decision, Refused
from consolidation.runner import Outcome
from observations import ingest, outbox
from observations.models import Event, Observation, Outbox, Scope, database_now
from observations.retrieval import Overlay
from tests import probing as given
from tests.building import first_confirms, observe, propose, scope, seconded, tell
from tests.conftest import superuser
from tests.consolidating import run
from tests.desk import client_of, person

pytestmark = pytest.mark.django_db(transaction=True)

MEMORY = ("observation", "episode", "evidence", "embedding", "lineage", "use", "transition", "tombstone", "corememory")
COMPARED = ("k", "probes", "negatives", "records", "recall", "hit", "mrr", "distinct", "unmarked", "stale", "mistaken")


def lossy(within: Scope) -> tuple[Plan, int]:
    """A plan that archives the row one probe asks for, merges two that nothing is lost with, and the probe's number."""
    suite = given.suite(within)
    plan = Plan.objects.create(pattern=within.name, requested_by="test", trigger="command", scope=within)
    propose(Kind.ARCHIVE, [Observation.objects.get(external_id="violin-bakery")], plan=plan)
    twins = [
        observe("The relay listens on port 4411", within=within),
        observe("The relay listens on port 4411.", within=within),
    ]
    propose(Kind.MERGE, twins, plan=plan)
    ingest.embed_now(scopes=[within])
    [number] = [probe.number for probe in probing.probes_of(suite=suite) if "violin" in probe.query]
    return plan, number


def memory() -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table of memory, and of operations, as they stand."""
    found: dict[str, list[tuple[object, ...]]] = {}
    with connection.cursor() as cursor:
        for table in (
            *(f"observations_{name}" for name in MEMORY),
            "consolidation_operation",
            "consolidation_consumption",
        ):
            cursor.execute(f"SELECT t::text FROM {table} t ORDER BY 1")
            found[table] = cursor.fetchall()
    return found


def test_a_plan_that_loses_one_probe_names_exactly_that_one() -> None:
    """R112: known before anything is applied, and nothing of memory is written to know it."""
    within = scope()
    plan, number = lossy(within)
    before = memory()
    [row] = projecting.project(plan=plan, by="ann", scopes=[within])
    assert (row.lost, row.fell, row.operations) == ([number], True, 2)
    assert (row.records_before, row.records_after) == (42, 40)
    assert memory() == before


def test_the_projected_numbers_are_those_that_are_measured_after_applying() -> None:
    """R112, R115: of the same plan, projected and then really applied."""
    within = scope()
    plan, number = lossy(within)
    [row] = projecting.project(plan=plan, by="ann", scopes=[within])
    first_confirms(plan)
    applied = rollout.apply_measured(plan=plan, by="ann", confirmed=True)
    [before], [after] = applied.impact.before, applied.impact.after
    assert before.figures is not None
    assert after.figures is not None
    assert row.before["measures"]["recall"] == before.figures.recall
    assert row.after["measures"]["recall"] == after.figures.recall
    assert row.after["measures"]["distinct"] == after.figures.distinct
    assert row.records_after == after.records
    assert after.figures.missed == (number,)


def everything(within: Scope) -> tuple[Suite, list[Operation]]:
    """A store with a suite, and one operation of each kind that reads can tell, decided in every way."""
    key = ("office", "coffee machine is on floor")
    floors = [
        observe(f"The coffee machine is on floor {n}", within=within, key=(*key, str(n)), external_id=f"floor-{n}")
        for n in (2, 3, 4)
    ]
    cups = [
        observe(
            f"The {colour} cup belongs to Ann", within=within, key=("cup", "is", colour), external_id=f"cup-{colour}"
        )
        for colour in ("red", "blue")
    ]
    twins = [
        observe(text, within=within, external_id=f"relay-{n}")
        for n, text in enumerate(
            ("The relay listens on port 4411", "The relay listens on port 4411.", "the relay listens on port 4411")
        )
    ]
    turns = [tell(f"We water the fern of the office on day {n}", within=within) for n in range(3)]
    also: list[dict[str, object]] = [
        {"query": "which floor has the coffee machine", "expected": ["floor-3"], "outdated": ["floor-2"]},
        {"query": "whose is the red cup", "expected": ["cup-red"], "forbidden": ["cup-blue"]},
        {"query": "relay port", "expected": ["relay-0", "relay-1", "relay-2"]},
        {"query": "who waters the fern", "expected": ["violin-tower"]},
        {"query": "fern of the cellar", "expected": ["anvil-cellar"], "negative": True},
    ]
    suite = given.suite(within, also=also)
    ask = Approval.NEEDS_HUMAN
    operations = [
        propose(Kind.MERGE, twins, keeper=twins[1]),
        propose(Kind.SUPERSEDE, floors, approval=ask),
        propose(Kind.SUPERSEDE, cups, approval=ask),
        propose(
            Kind.PROMOTE,
            turns,
            text="The fern of the office is watered daily",
            key=("fern", "is watered", "daily"),
            product={"confidence": 0.5, "support": []},
        ),
        propose(Kind.ARCHIVE, [Observation.objects.get(external_id="saddle-bakery")]),
        propose(Kind.PRUNE, [Observation.objects.get(external_id="teapot-bakery")], approval=ask),
    ]
    review.approve(operation=operations[1], by="ann", decision=Decision(keep=floors[1].pk), reason="so it is")
    review.approve(
        operation=operations[2],
        by="ann",
        decision=Decision(text="Both cups belong to Bob", object="Bob"),
        reason="asked",
    )
    seconded(review.approve(operation=operations[5], by="ann", decision=Decision(), reason="asked for"))
    ingest.embed_now(scopes=[within])
    return suite, list(
        Operation.objects.filter(pk__in=[row.pk for row in operations]).select_related("scope").order_by("pk")
    )


def counted(suite: Suite, world: probing.World) -> Figures:
    return probing.count(world=world, asked=probing.probes_of(suite=suite), units=suite.units)


def named(figures: Figures, ids: dict[int, int]) -> tuple[object, ...]:
    """What is compared of a run, projected ids replaced by those that were given."""
    rows = {number: sorted(ids.get(pk, pk) for pk in came) for number, came in figures.leaked.items()}
    return (
        *(getattr(figures, name) for name in COMPARED),
        dict(figures.missing),
        dict(figures.staled),
        rows,
        figures.confused,
    )


def test_every_kind_is_projected_as_it_is_applied() -> None:
    """R112: merge, ways to settle a contradiction, promotion, archive and prune, by the code that applies them."""
    within = scope()
    suite, operations = everything(within)
    world = projecting.projected(scope=within, operations=operations)
    assert world.refused == ()
    expected, rows = counted(suite, world), world.rows()
    assert [runner.apply(operation=row, by="ann").outcome for row in operations] == [Outcome.APPLIED] * 6
    ingest.embed_now(scopes=[within])
    new = Operation.objects.exclude(derived=None).order_by("derived").values_list("derived", flat=True)
    ids = {-number: pk for number, pk in enumerate(new, 1)}
    assert len(ids) == 3
    measured = counted(suite, probing.Stored(scope=within))
    assert named(expected, ids) == named(measured, ids)
    assert tuple(ids.get(pk, pk) for pk in rows) == probing.Stored(scope=within).rows()


@pytest.mark.parametrize("seed", range(4))
def test_drawn_plans_are_projected_as_they_are_applied(seed: int) -> None:
    """R112: merges of any rows with any keeper, archives and prunes, the same row wanted twice."""
    chance, within = random.Random(seed), scope()
    suite = given.suite(within, also=[{"query": "the painted tower", "expected": ["lantern-tower", "violin-tower"]}])
    rows = list(Observation.objects.filter(scope=within).order_by("pk"))
    operations = []
    for _ in range(8):
        some = chance.sample(rows, chance.choice((1, 2, 3)))
        if len(some) > 1:
            operations.append(propose(Kind.MERGE, some, keeper=chance.choice(some)))
        else:
            operations.append(propose(Kind.ARCHIVE, some))
    operations = list(
        Operation.objects.filter(pk__in=[row.pk for row in operations]).select_related("scope").order_by("pk")
    )
    world = projecting.projected(scope=within, operations=operations)
    expected = counted(suite, world)
    results = [runner.apply(operation=row, by="ann") for row in operations]
    assert len(world.refused) == sum(one.outcome != Outcome.APPLIED for one in results)
    new = Operation.objects.exclude(derived=None).order_by("derived").values_list("derived", flat=True)
    ids = {-number: pk for number, pk in enumerate(new, 1)}
    assert named(expected, ids) == named(counted(suite, probing.Stored(scope=within)), ids)


def test_without_the_rows_that_would_be_written_the_figures_differ() -> None:
    """Control: what would leave is not all of it; a merge that was projected as an archive would lose its probe."""
    within = scope()
    suite, operations = everything(within)
    world = projecting.projected(scope=within, operations=operations)
    naive = Projected(stored=world.stored, overlay=Overlay(without=world.overlay.without))
    assert {*counted(suite, naive).missing} - {*counted(suite, world).missing}


# --- kept, shown, signed off ------------------------------------------------------------------------------------------


def trusted(within: Scope) -> None:
    """The policy allows unattended application, and the trial is over."""
    Policy.objects.create(pattern=within.name, body=Rules(unattended=True).to_dict())
    fresh = review.policy_of(within.name).hash
    with superuser() as owner:  # as if it had been planned under this policy, a month ago
        owner.execute("SET session_replication_role = replica")
        owner.execute("UPDATE consolidation_operation SET policy_hash = %s", [fresh])
        owner.execute("UPDATE consolidation_plan SET created_at = now() - interval '30 days'")
    PlanItem.objects.update(opened_at=database_now(), opened_by="ann")


def test_a_plan_that_costs_recall_is_not_applied_unattended_until_a_person_signs_it_off() -> None:
    """R112, R118: the refusal names the probe; a sign-off needs a reason, is an event, and covers what it was of."""
    within = scope()
    plan, number = lossy(within)
    trusted(within)
    with pytest.raises(
        rollout.NotUnattended, match=rf"would cost recall \(probes {number}\), and nobody signed that off"
    ):
        rollout.apply_unattended(plan=plan)
    assert not Operation.objects.filter(status=State.APPLIED).exists()
    row = Projection.objects.get()
    with pytest.raises(Refused, match="needs a reason"):
        projecting.sign_off(projection=row, by="sue", reason=" ")
    projecting.sign_off(projection=row, by="sue", reason="the violin was sold")
    with pytest.raises(Refused, match="sue signed it off"):
        projecting.sign_off(projection=row, by="tom", reason="me too")
    assert Event.objects.get(action="signed_off").detail["lost"] == [number]
    applied = rollout.apply_unattended(plan=plan)
    assert [one.outcome for one in applied.results] == [Outcome.APPLIED] * 2


def test_a_sign_off_does_not_cover_a_plan_that_loses_more_than_was_signed() -> None:
    """R118: it is of exact operations and of the probes they were said to lose."""
    within = scope()
    plan, number = lossy(within)
    [row] = projecting.project(plan=plan, by="ann", scopes=[within])
    projecting.sign_off(projection=row, by="sue", reason="sold")
    assert projecting.fallen(projections=[row]) == {}
    row.lost = [number, number + 1]
    assert within.pk in projecting.fallen(projections=[row])
    row.lost, row.digest = [number], "another"
    assert within.pk in projecting.fallen(projections=[row])


def test_a_scope_without_a_suite_says_that_recall_is_not_measured() -> None:
    within = scope()
    twins = [observe(f"The relay is number {n}", within=within) for n in range(2)]
    plan = PlanItem.objects.get(operation=propose(Kind.MERGE, twins)).plan
    [row] = projecting.project(plan=plan, by="ann", scopes=[within])
    assert (row.fell, row.records_before, row.records_after) == (False, 2, 1)
    assert row.why_not == probing.NO_SUITE
    assert "recall: not measured, it has no probe suite" in run(f"impact {plan}").out


def test_the_command_says_a_fall_first_and_ends_with_one() -> None:
    """R118: a script can stop there; the same as JSON."""
    within = scope()
    plan, number = lossy(within)
    ran = run(f"impact {plan}")
    assert ran.status == 1
    assert ran.out.startswith(f"RECALL WOULD FALL  recall@5 of team-a/u1: 1.0000 → 0.9000 (lost: probe {number})")
    assert re.search(r"records +42 → 40", ran.out)
    document = run(f"impact {plan} --json").document
    assert (document["fell"], document["scopes"][0]["lost"]) == (True, [number])
    assert not Operation.objects.filter(status=State.APPLIED).exists()


def test_planning_has_a_worker_measure_the_impact_where_there_is_a_suite() -> None:
    """A worker fills the plan page; without a suite there is nothing to measure and nothing is asked for."""
    within = scope()
    observe("The relay listens on port 4411", within=within)
    run("plan")
    assert not Outbox.objects.filter(task=planner.PROJECT).exists()
    given.suite(within)
    observe("The relay listens on port 4411.", within=within)
    run("plan")
    assert outbox.work() > 0
    assert Projection.objects.get().by


@pytest.fixture
def page() -> tuple[Plan, int, Client]:
    """A lossy plan and an operator who sees its scope."""
    within = scope()
    plan, number = lossy(within)
    return plan, number, client_of(person("olga", "Operator", "team-a/*"))


def address(plan: Plan, page: str = "change") -> str:
    return reverse(f"admin:consolidation_plan_{page}", args=[plan.pk])


def test_the_page_has_a_red_line_on_top_and_names_the_lost_question(page: tuple[Plan, int, Client]) -> None:
    """R112, R118: the fall stands before everything else of the plan, and on the page that applies it."""
    plan, number, client = page
    assert "Nobody has measured it yet" in client.get(address(plan)).content.decode()
    assert client.post(address(plan, "impact")).status_code == 302
    text = client.get(address(plan)).content.decode()
    line = f"Recall@5 of team-a/u1 would fall from 1.0000 to 0.9000 (probe {number} would newly fail)."
    assert text.index(line) < text.index("Kind</th>")
    assert "violin of the bakery" in text
    assert line in client.get(address(plan, "apply")).content.decode()


def test_the_page_says_when_the_figures_are_not_of_what_would_be_applied_now(page: tuple[Plan, int, Client]) -> None:
    plan, _number, client = page
    client.post(address(plan, "impact"))
    review.reject(operation=plan.items.get(operation__kind=Kind.ARCHIVE).operation, by="ann", reason="keep it")
    text = client.get(address(plan)).content.decode()
    assert "Not of what would be applied now" in text
    assert "would fall" not in text
    client.post(address(plan, "impact"))
    assert "Not of what would be applied now" not in client.get(address(plan)).content.decode()


def test_only_a_steward_who_sees_the_scope_signs_off(page: tuple[Plan, int, Client]) -> None:
    plan, _number, client = page
    client.post(address(plan, "impact"))
    form = {"projection": str(Projection.objects.get().pk), "reason": "sold"}
    assert client.post(address(plan, "signoff"), form).status_code == 403
    elsewhere = client_of(person("eve", "Steward", "team-b/*"))
    assert elsewhere.post(address(plan, "signoff"), form).status_code == 404
    steward = client_of(person("sue", "Steward", "team-a/*"))
    assert "Sign off for schedules" in steward.get(address(plan)).content.decode()
    assert steward.post(address(plan, "signoff"), form).status_code == 302
    assert Projection.objects.get().signed_off_by == "sue"
    assert "signed off" in client.get(address(plan)).content.decode()
    assert client.get(address(plan, "impact")).status_code == 405


def test_a_hostile_question_is_shown_as_text(page: tuple[Plan, int, Client]) -> None:
    """O2, F5: a probe's question is memory text."""
    plan, number, client = page
    given.rename(Suite.objects.get(), number, "violin of the bakery <script>alert(1)</script> \u202e")
    client.post(address(plan, "impact"))
    text = client.get(address(plan)).content.decode()
    assert "<script>alert(1)" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;alert(1)" in text
