"""An alias is a person's word that two subjects are one: asked once, decided once, nothing is rewritten (R46)."""

from __future__ import annotations

import pytest
from django.db import transaction

from consolidation import invariants, learning, review
from consolidation.aliases import request_alias
from consolidation.models import Alias, Operation
from consolidation.operations import Approval, Kind, State
from consolidation.runner import Outcome
from observations import ingest, store
from observations.models import Event, Observation, Scope
from observations.records import Given, KeyState
from tests.acceptance.acting import apply, undo
from tests.building import observe, scope
from tests.giving import key_of
from tests.integration.planning import change_policy, memory, operations, plan

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def within() -> Scope:
    return scope("team-a/u1")


def known(within: Scope, *names: str) -> list[Observation]:
    """A record about each of these subjects."""
    return [observe(f"{name} was seen", within=within, key=(name, "was seen", "here")) for name in names]


def ask(within: Scope, subject: str, name: str) -> Operation:
    return request_alias(scope=within, subject=subject, name=name, by="ann")


def named(within: Scope, subject: str, name: str) -> Operation:
    """An alias that holds."""
    operation = ask(within, subject, name)
    review.approve(operation=operation, by="rita", reason="one person")
    result = apply(operation)
    assert result.outcome is Outcome.APPLIED, result.sentence
    return operation


def approved(within: Scope, subject: str, name: str) -> Operation:
    return review.approve(operation=ask(within, subject, name), by="rita", reason="one person")


def names(within: Scope) -> dict[str, str]:
    return dict(learning.aliases(scope_id=within.pk))


# --- asking ----------------------------------------------------------------------------------------------------------


def test_asking_makes_one_operation_that_waits_for_a_person(within: Scope) -> None:
    """R46: never automatic, and nothing of it holds before somebody decides."""
    rows = known(within, "Ana Brandt", "Ana_B")
    asked = ask(within, "Ana_B", "Ana Brandt")
    assert (asked.kind, asked.approval, asked.status) == (Kind.ALIAS, Approval.NEEDS_HUMAN, State.NEEDS_HUMAN)
    assert (asked.claim_subject, asked.claim_object, asked.requested_by) == ("ana b", "ana brandt", "ann")
    assert [source.row_id for source in asked.sources.order_by("position")] == [row.pk for row in rows]
    assert Event.objects.filter(action="requested", subject=asked.op_id, actor="ann").count() == 1
    assert names(within) == {}


def test_the_newest_records_of_each_subject_are_shown(within: Scope) -> None:
    rows = [observe(f"Ana was seen {n}", within=within, key=("ana", "was", f"seen {n}")) for n in range(5)]
    other = observe("Anna was seen", within=within, key=("anna", "was", "seen"))
    asked = ask(within, "anna", "ana")
    assert {source.row_id for source in asked.sources.all()} == {row.pk for row in rows[2:]} | {other.pk}


@pytest.mark.parametrize(
    ("subject", "name", "why"),
    [
        ("", "ana", "each with a letter or a digit"),
        ("ana", " _ ", "each with a letter or a digit"),
        ("ana", "ANA", "compared as one already"),
        ("ana", "nobody", "No current record"),
        ("nobody", "ana", "No current record"),
    ],
)
def test_what_no_alias_can_be_made_of_is_refused_with_a_sentence(
    subject: str, name: str, why: str, within: Scope
) -> None:
    known(within, "ana", "anna")
    with pytest.raises(review.Refused, match=why):
        ask(within, subject, name)
    assert not Operation.objects.exists()


def test_a_subject_of_another_scope_is_no_subject_here(within: Scope) -> None:
    """C6."""
    known(within, "ana")
    known(scope("team-a/u2"), "anna")
    with pytest.raises(review.Refused, match="No current record"):
        ask(within, "anna", "ana")


def test_a_subject_that_only_archived_records_are_about_is_refused(within: Scope) -> None:
    known(within, "ana")
    [old] = known(within, "anna")
    Observation.objects.filter(pk=old.pk).update(status="archived", version=2)
    with pytest.raises(review.Refused, match="No current record"):
        ask(within, "anna", "ana")


def test_a_question_is_open_once_whichever_way_round_it_is_asked(within: Scope) -> None:
    known(within, "ana", "anna")
    first = ask(within, "ana", "anna")
    assert ask(within, "Ana", "ANNA").pk == first.pk
    assert ask(within, "anna", "ana").pk == first.pk
    review.approve(operation=first, by="rita", reason="one person")
    assert ask(within, "ana", "anna").pk == first.pk
    assert Operation.objects.count() == 1


def test_a_question_about_a_name_that_has_a_name_is_open_once_too(within: Scope) -> None:
    """It is asked about the last name of the chain, and found again by that."""
    known(within, "a", "b", "c")
    named(within, "b", "c")
    first = ask(within, "a", "b")
    assert first.claim_object == "c"
    assert ask(within, "a", "b").pk == first.pk
    assert ask(within, "a", "c").pk == first.pk


@pytest.mark.parametrize("no", ["rejected", "stale"])
def test_what_was_refused_or_went_stale_may_be_asked_again_and_is_another_question(no: str, within: Scope) -> None:
    known(within, "a", "b", "c")
    first = ask(within, "a", "b")
    if no == "rejected":
        review.reject(operation=first, by="rita", reason="two people")
    else:
        review.approve(operation=first, by="rita", reason="one person")
        change_policy(Observation())
        assert apply(first).outcome is Outcome.STALE
    again = ask(within, "a", "b")
    assert again.op_id != first.op_id
    assert again.status == State.NEEDS_HUMAN


# --- chains ----------------------------------------------------------------------------------------------------------


def test_names_are_followed_to_the_last(within: Scope) -> None:
    known(within, "a", "b", "c")
    named(within, "a", "b")
    named(within, "b", "c")
    assert names(within) == {"a": "c", "b": "c"}


def test_a_chain_that_was_made_backwards_is_the_same(within: Scope) -> None:
    known(within, "a", "b", "c")
    named(within, "b", "c")
    named(within, "a", "b")
    assert names(within) == {"a": "c", "b": "c"}


@pytest.mark.parametrize(("subject", "name"), [("b", "a"), ("c", "a"), ("a", "c"), ("c", "b")])
def test_what_a_chain_already_says_is_refused_in_both_directions(subject: str, name: str, within: Scope) -> None:
    """I6: names never lead back to where they began."""
    known(within, "a", "b", "c")
    named(within, "a", "b")
    named(within, "b", "c")
    with pytest.raises(review.Refused, match="compared as one already"):
        ask(within, subject, name)


def test_a_second_name_for_a_subject_is_refused(within: Scope) -> None:
    known(within, "a", "b", "c")
    named(within, "a", "b")
    with pytest.raises(review.Refused, match="has another name already"):
        ask(within, "a", "c")


def test_of_questions_that_would_close_a_circle_together_the_last_goes_stale(within: Scope) -> None:
    """I6: each was fine when it was asked and when it was approved."""
    known(within, "a", "b", "c")
    circle = [approved(within, *pair) for pair in (("a", "b"), ("b", "c"), ("c", "a"))]
    results = [apply(operation) for operation in circle]
    assert [result.outcome for result in results] == [Outcome.APPLIED, Outcome.APPLIED, Outcome.STALE]
    assert "both subjects are compared as one since" in results[-1].sentence
    assert names(within) == {"a": "c", "b": "c"}
    assert invariants.check() == []


def test_of_two_names_approved_for_one_subject_the_second_goes_stale(within: Scope) -> None:
    """Said in words, not as an error of the database."""
    known(within, "a", "b", "c")
    first, second = approved(within, "a", "b"), approved(within, "a", "c")
    assert apply(first).outcome is Outcome.APPLIED
    result = apply(second)
    assert (result.outcome, "its subject has another name since" in result.sentence) == (Outcome.STALE, True)
    assert names(within) == {"a": "b"}


# --- undoing ---------------------------------------------------------------------------------------------------------


def test_undo_gives_back_what_was_and_the_same_may_be_asked_again(within: Scope) -> None:
    known(within, "a", "b")
    operation = named(within, "a", "b")
    assert undo(operation).outcome is Outcome.UNDONE
    assert names(within) == {}
    assert Alias.objects.get().removed_at is not None
    named(within, "a", "b")
    assert names(within) == {"a": "b"}
    assert Alias.objects.count() == 2
    assert invariants.check() == []


def test_undoing_the_middle_of_a_chain_leaves_the_rest(within: Scope) -> None:
    known(within, "a", "b", "c")
    named(within, "a", "b")
    middle = named(within, "b", "c")
    undo(middle)
    assert names(within) == {"a": "b"}


def test_what_happens_to_the_records_later_is_not_an_aliass_business(within: Scope) -> None:
    """It rests on two names: only an erased record changes that."""
    rows = known(within, "a", "b")
    operation = named(within, "a", "b")
    Observation.objects.filter(pk=rows[0].pk).update(status="archived", version=2)
    assert undo(operation).outcome is Outcome.UNDONE


# --- what it does to planning ----------------------------------------------------------------------------------------


def _live_in(within: Scope, *towns: str, text: str = "{who} lives in {town}") -> list[Observation]:
    """Ana's towns, each under another of her names."""
    return [
        observe(text.format(who=who, town=town), within=within, key=(who, "lives in", town))
        for who, town in zip(("Ana Brandt", "Anastasia"), towns, strict=True)
    ]


def _merges(within: Scope) -> list[tuple[Approval, list[int]]]:
    """The merges that a person may still decide, or that need nobody."""
    found = operations(plan(within), Kind.MERGE)
    merges = [op for op in found if op.approval != Approval.NEVER]
    return [(Approval(op.approval), sorted(source.row_id for source in op.sources.all())) for op in merges]


LONG = "{who} lives in {town} by the river with two cats and a very old upright piano from Leipzig"


def test_equal_claims_of_two_subjects_become_a_question_and_nothing_is_rewritten(within: Scope) -> None:
    """R46: what is about two subjects is never proposed; about one, a person is asked."""
    rows = [row.pk for row in _live_in(within, "Bonn", "Bonn", text=LONG)]
    assert _merges(within) == []
    alias = named(within, "Anastasia", "Ana Brandt")
    before = memory()
    assert _merges(within) == [(Approval.NEEDS_HUMAN, rows)]
    assert memory() == before
    assert set(Observation.objects.values_list("subject", flat=True)) == {"Ana Brandt", "Anastasia"}
    undo(alias)
    assert _merges(within) == []


def test_one_text_with_one_whole_key_under_two_names_is_one_claim_while_the_alias_holds(within: Scope) -> None:
    """DESIGN 4: a person said who is who; the rest is the same subject, predicate and object."""
    rows = [row.pk for row in _live_in(within, "Bonn", "Bonn", text="Lives in {town} by the river")]
    assert _merges(within) == []
    alias = named(within, "Anastasia", "Ana Brandt")
    assert _merges(within) == [(Approval.AUTO, rows)]
    undo(alias)
    assert _merges(within) == []


def test_an_automatic_merge_whose_alias_was_undone_meanwhile_is_not_applied(within: Scope) -> None:
    """R46: it rested on a person's word that does not stand any more."""
    _live_in(within, "Bonn", "Bonn", text="Lives in {town} by the river")
    alias = named(within, "Anastasia", "Ana Brandt")
    [merge] = operations(plan(within), Kind.MERGE)
    undo(alias)
    assert apply(merge).outcome is Outcome.STALE
    assert Observation.objects.active().count() == 2


def test_a_decision_between_names_whose_alias_was_undone_meanwhile_is_not_applied(within: Scope) -> None:
    """I18: the approval was of values of one person."""
    rows = _live_in(within, "Bonn", "Oslo")
    alias = named(within, "Anastasia", "Ana Brandt")
    [supersede] = operations(plan(within), Kind.SUPERSEDE)
    review.approve(operation=supersede, by="rita", decision=review.Decision(keep=rows[1].pk), reason="moved")
    undo(alias)
    result = apply(supersede)
    assert (result.outcome, "not about one subject and predicate any more" in result.sentence) == (Outcome.STALE, True)
    assert Observation.objects.active().count() == 2


def test_a_decision_that_rests_on_a_key_somebody_took_back_is_not_applied(within: Scope) -> None:
    """I18: without the key that a model gave, the records do not contradict each other."""
    observe("Ana lives in Bonn", within=within, key=("Ana", "lives in", "Bonn"))
    other = observe("Ana lives in Oslo", within=within)
    _give(other, "Ana", "lives in", "Oslo")
    [supersede] = operations(plan(within), Kind.SUPERSEDE)
    review.approve(operation=supersede, by="rita", decision=review.Decision(keep=other.pk), reason="moved")
    ingest.withdraw_key(observation=other, by="rita")
    assert apply(supersede).outcome is Outcome.STALE
    assert Observation.objects.active().count() == 2


def test_a_contradiction_across_names_is_asked_while_the_alias_holds(within: Scope) -> None:
    """R43, R71: one person in two towns."""
    rows = _live_in(within, "Bonn", "Oslo")
    assert operations(plan(within), Kind.SUPERSEDE) == []
    alias = named(within, "Anastasia", "Ana Brandt")
    [asked] = operations(plan(within), Kind.SUPERSEDE)
    assert [source.row_id for source in asked.sources.order_by("position")] == [row.pk for row in rows]
    undo(alias)
    assert operations(plan(within), Kind.SUPERSEDE) == []
    asked.refresh_from_db()
    assert asked.status == State.STALE


def test_an_alias_reaches_keys_that_a_model_gave(within: Scope) -> None:
    """The planner sees a given key as it sees a writer's."""
    known(within, "Ana Brandt", "Anastasia")
    observe("Ana Brandt lives in Bonn", within=within, key=("Ana Brandt", "lives in", "Bonn"))
    other = observe("Anastasia lives in Oslo", within=within)
    _give(other, "Anastasia", "lives in", "Oslo")
    assert operations(plan(within), Kind.SUPERSEDE) == []
    named(within, "Anastasia", "Ana Brandt")
    [asked] = operations(plan(within), Kind.SUPERSEDE)
    assert other.pk in {source.row_id for source in asked.sources.all()}


def _give(row: Observation, subject: str, predicate: str, object_: str) -> None:
    given = Given(KeyState.GIVEN, model="m", prompt_version="1", subject=subject, predicate=predicate, object=object_)
    with transaction.atomic():
        store.put_keys(scope_id=row.scope_id, given={row.pk: given})
    assert key_of(row) is not None


def test_an_alias_of_one_scope_says_nothing_in_another(within: Scope) -> None:
    """C6."""
    other = scope("team-a/u2")
    known(within, "Ana Brandt", "Anastasia")
    _live_in(other, "Bonn", "Oslo")
    named(within, "Anastasia", "Ana Brandt")
    assert operations(plan(other), Kind.SUPERSEDE) == []


def test_what_was_merged_under_an_alias_stays_merged_when_the_alias_goes(within: Scope) -> None:
    """Undoing a name is not undoing what was decided while it held; each is undone by itself."""
    _live_in(within, "Bonn", "Bonn", text=LONG)
    alias = named(within, "Anastasia", "Ana Brandt")
    [merge] = operations(plan(within), Kind.MERGE)
    review.approve(operation=merge, by="rita")
    assert apply(merge).outcome is Outcome.APPLIED
    assert undo(alias).outcome is Outcome.UNDONE
    assert Observation.objects.active().filter(derivation=Kind.MERGE).count() == 1
    assert undo(merge).outcome is Outcome.UNDONE
    assert invariants.check() == []
