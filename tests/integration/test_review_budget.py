"""A scope may put only so many questions to people in a day; those that reads feel most come first."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence

import pytest

from consolidation import planner, review
from consolidation.models import Operation, Plan, Policy
from consolidation.operations import Approval, Kind, State
from consolidation.rendering import render
from observations.embedding import HASHING
from observations.models import Observation, Scope, Use
from tests.building import observe, scope
from tests.conftest import superuser
from tests.integration.planning import plan

pytestmark = pytest.mark.django_db(transaction=True)

CITIES = ("Graz", "Linz", "Wels", "Enns", "Bregenz")


@pytest.fixture
def within() -> Scope:
    return scope("team-a/ana")


def contradictions(within: Scope) -> list[list[Observation]]:
    """Five people with two home towns each: five questions."""
    return [
        [
            observe(f"{name} lives in {city}", within=within, key=(name, "lives in", city))
            for city in (CITIES[at], CITIES[at - 1])
        ]
        for at, name in enumerate(("Ana", "Bo", "Cy", "Di", "Ed"))
    ]


def budget(within: Scope, items: int | None) -> None:
    Policy.objects.update_or_create(pattern=within.name, defaults={"body": {"review_budget": items}})


def used(rows: Sequence[Observation], *, answer: uuid.UUID | None = None) -> None:
    """One answer that gave these rows."""
    answer = answer or uuid.uuid4()
    for row in rows:
        Use.objects.create(scope=row.scope, observation=row, call_site="context", answer=answer)


def asked() -> set[frozenset[int]]:
    """The sources of every question that waits for a person."""
    waiting = Operation.objects.awaiting_review().prefetch_related("sources")
    return {frozenset(source.row_id for source in one.sources.all()) for one in waiting}


def pair(rows: Sequence[Observation]) -> frozenset[int]:
    return frozenset(row.pk for row in rows)


def test_no_more_questions_than_the_budget_reach_people_and_the_rest_are_counted(within: Scope) -> None:
    contradictions(within)
    budget(within, 2)
    made = plan(profile=HASHING)
    assert (len(asked()), made.figures["held_back"]) == (2, 3)
    assert "HELD BACK  3 more questions" in render(planner.printed(made))


def test_without_a_budget_every_question_is_asked(within: Scope) -> None:
    contradictions(within)
    budget(within, None)
    assert plan(profile=HASHING).figures["held_back"] == 0
    assert len(asked()) == 5


def test_fifty_questions_a_day_is_what_nobody_has_to_set(within: Scope) -> None:
    assert Policy.objects.effective(scope=within.name).review_budget == 50


def test_rows_that_took_each_others_place_in_an_answer_come_first_then_the_most_used(within: Scope) -> None:
    """Shared places in one answer count before uses: there duplicates and contradictions do harm."""
    pairs = contradictions(within)
    for _ in range(5):
        used(pairs[3][:1])
    used(pairs[4])
    budget(within, 2)
    plan(profile=HASHING)
    assert asked() == {pair(pairs[4]), pair(pairs[3])}


def test_a_second_pass_on_the_same_day_asks_nothing_more(within: Scope) -> None:
    """C12: the same items; what people were asked today counts whether or not they decided it."""
    contradictions(within)
    budget(within, 2)
    plan(profile=HASHING)
    before = asked()
    again = plan(profile=HASHING)
    assert asked() == before
    assert (again.figures["new"], again.figures["held_back"]) == (0, 3)


def test_a_decision_makes_no_room_on_the_same_day(within: Scope) -> None:
    contradictions(within)
    budget(within, 2)
    plan(profile=HASHING)
    review.reject(operation=Operation.objects.awaiting_review()[0], by="ines", reason="both were wrong")
    assert plan(profile=HASHING).figures["held_back"] == 3
    assert len(asked()) == 1


def test_the_next_day_the_held_back_questions_come(within: Scope) -> None:
    contradictions(within)
    budget(within, 2)
    plan(profile=HASHING)
    with superuser() as admin:  # yesterday's questions
        admin.execute("SET session_replication_role = replica")
        admin.execute("UPDATE consolidation_operation SET created_at = created_at - interval '1 day'")
    assert plan(profile=HASHING).figures["held_back"] == 1
    assert len(asked()) == 4


def skips() -> list[str]:
    """What the merges of contradicting rows say, of those that stand."""
    rows = Operation.objects.filter(kind=Kind.MERGE, status=State.SKIPPED, skipped_reason__startswith="contradiction")
    return list(rows.order_by("pk").values_list("skipped_reason", flat=True))


def test_a_skip_names_no_question_that_is_held_back(within: Scope) -> None:
    """R53, R71: an id in a printed plan leads somewhere; what it would lead to is said to be held back instead."""
    contradictions(within)
    budget(within, 2)
    made = plan(profile=HASHING)
    named = [found.group() for reason in skips() if (found := re.search("op_[0-9a-f]+", reason))]
    held = [reason for reason in skips() if "op_" not in reason]
    assert (len(named), len(held)) == (2, 3)
    assert set(named) == set(Operation.objects.filter(kind=Kind.SUPERSEDE).values_list("op_id", flat=True))
    words = "; it is a question that the review budget holds back"
    assert set(held) == {f"contradiction: same subject and predicate, different object{words}"}
    assert render(planner.printed(made), explain=True).count("the review budget holds back") == 3


def test_once_it_is_asked_the_skip_names_the_question(within: Scope) -> None:
    contradictions(within)
    budget(within, 2)
    plan(profile=HASHING)
    budget(within, None)
    plan(profile=HASHING)
    asked_now = set(Operation.objects.awaiting_review().values_list("op_id", flat=True))
    assert {reason.partition("; see ")[2] for reason in skips()} == asked_now
    assert len(asked_now) == 5


def test_what_needs_nobody_is_never_held_back(within: Scope) -> None:
    """Automatic merges ask no question, and skips that no person has to see are no questions either."""
    contradictions(within)
    for _ in range(2):
        observe("The office is in Graz", within=within, key=("office", "is in", "Graz"))
    budget(within, 1)
    made = plan(profile=HASHING)
    automatic = Operation.objects.filter(kind=Kind.MERGE, approval=Approval.AUTO)
    assert automatic.get().status == State.PLANNED
    assert made.figures["held_back"] == 4


def test_every_scope_has_a_budget_of_its_own(within: Scope) -> None:
    other = scope("team-b/bo")
    contradictions(within)
    contradictions(other)
    Policy.objects.create(pattern="*", body={"review_budget": 2})
    plan(profile=HASHING)
    per_scope = [Operation.objects.awaiting_review().filter(scope=one).count() for one in (within, other)]
    assert per_scope == [2, 2]
    assert Plan.objects.get().figures["held_back"] == 6
