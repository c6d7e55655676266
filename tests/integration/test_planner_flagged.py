"""Rows that the background stored without comparing them come first in what a plan puts to people (DESIGN 6, R124)."""

from __future__ import annotations

import json

import pytest
from django.db import transaction
from django.urls import reverse

from consolidation import planner
from consolidation.models import Operation, Plan
from consolidation.planner import reading
from consolidation.rendering import render
from observations import store
from observations.embedding import HASHING
from observations.llm import ModelFailed
from observations.models import Observation, Scope
from observations.records import Claim, EvidenceRef, WrittenBy
from tests.building import LONG_AGO, embed, scope
from tests.desk import client_of, person
from tests.intaking import enabled, failing, model, read, told
from tests.integration.planning import plan
from tests.integration.test_review_budget import asked, budget, pair, used

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def within() -> Scope:
    return scope("team-a/ana")


def two_towns(name: str, within: Scope, *, flagged: bool) -> list[Observation]:
    """A contradiction about one person: a question. With `flagged`, one of its rows was never compared."""
    claims = [
        Claim(
            text=f"{name} lives in {city}",
            subject=name,
            predicate="lives in",
            object=city,
            created_at=LONG_AGO,
            evidence=(EvidenceRef(f"test://{name}/{city}"),),
        )
        for city in ("Graz", "Linz")
    ]
    with transaction.atomic():
        written = store.add_observations(
            scope=within, claims=claims, written_by=WrittenBy.BACKGROUND, reconciled=[True, not flagged]
        )
    ids = [each.id for each in written if each.id]
    embed(ids, within=within)
    return list(Observation.objects.filter(pk__in=ids).order_by("pk"))


@pytest.fixture
def pairs(within: Scope) -> tuple[list[Observation], list[Observation]]:
    """A settled pair that reads feel, first in every other order, and a flagged one that nobody read."""
    settled, flagged = two_towns("Ana", within, flagged=False), two_towns("Bo", within, flagged=True)
    used(settled)
    return settled, flagged


def test_with_a_budget_of_one_the_flagged_pair_is_the_one_that_is_asked(
    within: Scope, pairs: tuple[list[Observation], list[Observation]]
) -> None:
    budget(within, 1)
    made = plan(profile=HASHING)
    assert asked() == {pair(pairs[1])}
    key = str(within.pk)
    assert made.figures["held_back"] == 1
    assert (made.figures["unreconciled"], made.figures["unreconciled_covered"]) == ({key: 1}, {key: 1})


def test_the_control_without_the_preference_asks_about_the_other(
    within: Scope, pairs: tuple[list[Observation], list[Observation]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "flagged", lambda **_: frozenset())
    budget(within, 1)
    made = plan(profile=HASHING)
    assert asked() == {pair(pairs[0])}
    assert made.figures["unreconciled_covered"] == {str(within.pk): 0}


def test_the_flagged_come_first_in_the_plan_and_the_operations_are_the_same_ones(
    within: Scope, pairs: tuple[list[Observation], list[Observation]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """R60: an operation's identity knows nothing of the flag, so the same rows planned again are the same question."""
    made = plan(profile=HASHING)
    first = [operation.op_id for operation in _questions(made)]
    assert pair(pairs[1]) == frozenset(_questions(made)[0].sources.values_list("observation", flat=True))
    monkeypatch.setattr(reading, "flagged", lambda **_: frozenset())
    again = plan(profile=HASHING)
    assert [operation.op_id for operation in _questions(again)] == first[::-1]
    assert (again.figures["new"], again.figures["again"]) == (0, made.figures["new"])


def _questions(made: Plan) -> list[Operation]:
    found = Operation.objects.awaiting_review().filter(plan_items__plan=made)
    return list(found.order_by("plan_items__position"))


def test_the_figures_are_printed_in_json_and_on_the_page(
    within: Scope, pairs: tuple[list[Observation], list[Observation]]
) -> None:
    two_towns("Cy", within, flagged=True)[0].refresh_from_db()
    made = plan(profile=HASHING)
    said = "UNRECONCILED  2 records were stored without being compared; this plan takes up 2 of them, "
    assert said in render(planner.printed(made))
    assert json.loads(json.dumps(planner.plan_json(made)["figures"]))["unreconciled"] == {str(within.pk): 2}
    rita = client_of(person("rita", "Reviewer", "team-a/*"))
    text = rita.get(reverse("admin:consolidation_plan_change", args=[made.pk])).content.decode()
    assert "2 records stored without being compared.</strong> This plan takes up 2 of them" in text
    sam = client_of(person("sam", "Reviewer", "team-b/*"))
    assert sam.get(reverse("admin:consolidation_plan_change", args=[made.pk])).status_code == 404


def test_what_an_outage_left_uncompared_is_what_the_plan_counts(within: Scope) -> None:
    """The reconciler did not answer: the claim is stored, flagged, and counted until something becomes of it."""
    enabled(within)
    told(within, "Ana lives in Oslo")
    read(within)
    told(within, "Ana lives in Lyon")
    report = read(within, completer=model(reconcile=failing(ModelFailed("The model did not answer."))))
    assert report.flagged == 1
    assert plan(profile=HASHING).figures["unreconciled"] == {str(within.pk): 1}


def test_a_scope_in_which_all_is_compared_says_nothing_of_it(within: Scope) -> None:
    two_towns("Ana", within, flagged=False)
    made = plan(profile=HASHING)
    assert made.figures["unreconciled"] == {}
    assert "UNRECONCILED" not in render(planner.printed(made))
