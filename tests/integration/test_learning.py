"""A decision teaches how many values a predicate holds; the lesson lasts as long as the decision stands."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from django.db import transaction

from consolidation import learning, requests, review
from consolidation.models import Cardinality, Operation, Policy
from consolidation.operations import Approval, Kind
from consolidation.runner import Outcome
from observations import ingest, store
from observations.models import Observation, Scope, database_now
from observations.records import Given, KeyState
from tests.acceptance.acting import apply, undo
from tests.building import LONG_AGO, observe, propose, scope
from tests.integration.planning import operations, plan

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def within() -> Scope:
    return scope("team-a/u1")


def hobbies(within: Scope, who: str, *values: str, predicate: str = "has hobby") -> list[Observation]:
    """Several values of one predicate of a subject."""
    return [observe(f"{who} likes {value}", within=within, key=(who, predicate, value)) for value in values]


def questions(within: Scope) -> list[Operation]:
    return operations(plan(within), Kind.SUPERSEDE)


def decided(operation: Operation, decision: review.Decision) -> Operation:
    """Approved and applied."""
    review.approve(operation=operation, by="rita", decision=decision, reason="asked her")
    result = apply(operation)
    assert result.outcome is Outcome.APPLIED, result.sentence
    return operation


def said_many(within: Scope, who: str = "ann") -> Operation:
    hobbies(within, who, "chess", "rowing")
    [question] = questions(within)
    return decided(question, review.Decision(many_valued=True))


def said_one(within: Scope, who: str) -> Operation:
    rows = hobbies(within, who, "chess", "rowing")
    question = next(one for one in questions(within) if one.sources.filter(observation=rows[0]).exists())
    return decided(question, review.Decision(keep=rows[1].pk))


def given_likes(within: Scope) -> list[Observation]:
    """Two values of one key, which a model gave."""
    rows = [observe(f"Ann likes {value}", within=within) for value in ("chess", "rowing")]
    given = {
        row.pk: Given(KeyState.GIVEN, model="m", prompt_version="1", subject="Ann", predicate="likes", object=value)
        for row, value in zip(rows, ("chess", "rowing"), strict=True)
    }
    with transaction.atomic():
        store.put_keys(scope_id=within.pk, given=given)
    return rows


def lessons(within: Scope) -> dict[str, str]:
    return learning.cardinalities(scope_id=within.pk)


# --- that it holds several -------------------------------------------------------------------------------------------


def test_a_predicate_that_holds_several_is_not_asked_about_for_any_subject_again(within: Scope) -> None:
    """R71, and the first question teaches it."""
    said_many(within)
    assert lessons(within) == {"has hobby": "many"}
    hobbies(within, "bo", "chess", "rowing")
    hobbies(within, "cy", "tennis", "golf", predicate="Has_Hobby")
    assert questions(within) == []
    assert Observation.objects.active().count() == 6


def test_a_subject_of_another_scope_is_asked_about_all_the_same(within: Scope) -> None:
    """C6."""
    said_many(within)
    other = scope("team-a/u2")
    hobbies(other, "bo", "chess", "rowing")
    assert len(questions(other)) == 1
    assert lessons(other) == {}


def test_another_predicate_of_the_same_subject_is_asked_about_all_the_same(within: Scope) -> None:
    said_many(within)
    hobbies(within, "ann", "Oslo", "Rome", predicate="was born in")
    assert len(questions(within)) == 1


def test_undoing_the_decision_brings_the_question_back_for_the_others(within: Scope) -> None:
    """DESIGN 4: undo takes back what was decided, the lesson too. The same question of the same rows waits until
    something moves (decision 0008).
    """
    many = said_many(within)
    hobbies(within, "bo", "chess", "rowing")
    assert questions(within) == []
    assert undo(many).outcome is Outcome.UNDONE
    assert lessons(within) == {}
    [again] = questions(within)
    assert again.op_id != many.op_id
    assert Cardinality.objects.get().withdrawn_at is not None


def test_a_lesson_is_about_the_predicate_of_a_key_that_a_model_gave_too(within: Scope) -> None:
    """The question was asked because of that key, so it is answered about it."""
    given_likes(within)
    [question] = questions(within)
    decided(question, review.Decision(many_valued=True))
    assert lessons(within) == {"likes": "many"}


@pytest.mark.parametrize("choice", ["keep", "many_valued", "text"])
def test_a_question_whose_keys_were_all_taken_back_since_is_stale(choice: str, within: Scope) -> None:
    """C11, I18: it was asked because of keys that a model gave, and a person said of each that it is wrong."""
    rows = given_likes(within)
    [question] = questions(within)
    decision = {
        "keep": review.Decision(keep=rows[1].pk),
        "many_valued": review.Decision(many_valued=True),
        "text": review.Decision(text="Ann likes golf", object="golf"),
    }[choice]
    review.approve(operation=question, by="rita", decision=decision, reason="asked her")
    for row in rows:
        ingest.withdraw_key(observation=row, by="rita")
    result = apply(question)
    assert (result.outcome, "not about one subject and predicate any more" in result.sentence) == (Outcome.STALE, True)
    assert (lessons(within), set(Observation.objects.active())) == ({}, set(rows))


def test_a_question_that_somebody_asked_about_claims_without_keys_is_settled_all_the_same(within: Scope) -> None:
    """The control: it rests on no key. An object of the right claim would belong to nothing there, and is refused."""
    rows = [observe(f"The coffee machine is on floor {floor}", within=within) for floor in (2, 3)]
    asked = requests.settle(scope=within, ids=[row.pk for row in rows], by="intake", request="1", why="it was denied")
    assert asked is not None
    right = review.Decision(text="The coffee machine is on floor 4", object="4")
    with pytest.raises(review.Refused, match="leave the object out"):
        review.approve(operation=asked, by="rita", decision=right, reason="looked")
    decided(asked, replace(right, object=""))
    assert [row.text for row in Observation.objects.active()] == [right.text]


# --- that it holds one -----------------------------------------------------------------------------------------------


def test_keeping_one_value_teaches_that_the_predicate_holds_one(within: Scope) -> None:
    said_one(within, "ann")
    assert lessons(within) == {"has hobby": "one"}


def test_that_it_holds_one_asks_about_every_subject_as_before(within: Scope) -> None:
    said_one(within, "ann")
    hobbies(within, "bo", "chess", "rowing")
    [question] = questions(within)
    assert question.signals["holds"] == "one"


def test_periods_for_every_value_teach_nothing(within: Scope) -> None:
    """One after the other: that says neither that it holds one nor that it holds several at a time."""
    first, second = hobbies(within, "ann", "chess", "rowing")
    [question] = questions(within)
    until = database_now()
    both = ((first.pk, LONG_AGO, until), (second.pk, until, None))
    decided(question, review.Decision(both=both))
    assert lessons(within) == {}


def test_writing_the_right_claim_teaches_that_the_predicate_holds_one(within: Scope) -> None:
    hobbies(within, "ann", "chess", "rowing")
    [question] = questions(within)
    decided(question, review.Decision(text="Ann likes fencing"))
    assert lessons(within) == {"has hobby": "one"}


def test_rows_without_a_predicate_teach_nothing(within: Scope) -> None:
    learning.teach(scope_id=within.pk, predicate=" ", many=True, operation="op_1#1", by="rita")
    assert not Cardinality.objects.exists()


# --- which lesson holds ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", sorted(set(permutations(["one", "many", "one"]))))
def test_several_holds_whatever_else_was_taught_before_or_after(order: tuple[str, ...], within: Scope) -> None:
    """That it holds several was said in so many words; that it holds one follows from keeping one."""
    for number, holds in enumerate(order):
        rows = hobbies(within, f"subject {number}", "chess", "rowing")
        keep = review.Decision(many_valued=True) if holds == "many" else review.Decision(keep=rows[0].pk)
        decided(propose(Kind.SUPERSEDE, rows, approval=Approval.NEEDS_HUMAN), keep)
    assert lessons(within) == {"has hobby": "many"}


def test_a_second_decision_keeps_the_lesson_when_the_first_is_undone(within: Scope) -> None:
    """Each decision teaches for as long as it stands."""
    first, second = said_one(within, "ann"), said_one(within, "bo")
    undo(first)
    assert lessons(within) == {"has hobby": "one"}
    undo(second)
    assert lessons(within) == {}


def test_what_was_taught_before_several_holds_again_when_that_is_undone(within: Scope) -> None:
    said_one(within, "ann")
    hobbies(within, "bo", "chess", "rowing")
    [question] = questions(within)
    many = decided(question, review.Decision(many_valued=True))
    assert lessons(within) == {"has hobby": "many"}
    undo(many)
    assert lessons(within) == {"has hobby": "one"}


@pytest.mark.parametrize(
    ("field", "asked"), [("single_valued", 1), ("many_valued", 0)], ids=["the policy says one", "the policy says many"]
)
def test_the_policys_word_wins_over_what_was_taught(field: str, asked: int, within: Scope) -> None:
    said_many(within) if field == "single_valued" else said_one(within, "ann")
    hobbies(within, "bo", "chess", "rowing")
    Policy.objects.create(pattern="*", body={field: ["Has hobby"]})
    about_bo = [one for one in questions(within) if one.sources.filter(observation__subject="bo").exists()]
    assert len(about_bo) == asked


def test_a_lesson_is_never_deleted_and_says_which_decision_taught_it(within: Scope) -> None:
    many = said_many(within)
    lesson = Cardinality.objects.get()
    assert (lesson.operation, lesson.by) == (f"{many.op_id}#1", "rita")
    undo(many)
    lesson.refresh_from_db()
    assert lesson.withdrawn_at is not None
