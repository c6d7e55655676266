"""The key of a merged row, and a question about values from plan to answer: the rules on a real store."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import transaction

from consolidation import invariants, review, runner
from consolidation.models import Operation
from consolidation.operations import Approval, Kind, State
from consolidation.runner import Outcome
from observations import ingest, store
from observations.models import GivenKey, Observation, Scope
from observations.records import Claim, Given, KeyState, MemoryKind, WrittenBy
from tests.building import LONG_AGO, embed, observe, propose, scope
from tests.integration.planning import plan

pytestmark = pytest.mark.django_db(transaction=True)

LIVES = ("Ann", "lives in")


def written(within: Scope, claim: Claim) -> Observation:
    """A claim as the pipeline writes it, with a vector."""
    with transaction.atomic():
        [one] = store.add_observations(scope=within, claims=[claim], written_by=WrittenBy.BACKGROUND)
    assert one.id is not None
    embed([one.id], within=within)
    return Observation.objects.get(pk=one.id)


def derived_of(operation: Operation) -> Observation:
    operation.refresh_from_db()
    assert operation.derived is not None
    return operation.derived


def test_a_merge_kept_in_the_words_of_a_row_without_a_key_keeps_the_key_of_the_other() -> None:
    """R72: also where a model had given the kept row a key: the writer's stands, and the model's stays away."""
    within = scope()
    bare = observe("Ann moved to Oslo for good", within=within)
    keyed = observe("Ann lives in Oslo", within=within, key=(*LIVES, "Oslo"))
    guess = Given(
        state=KeyState.GIVEN, model="m", prompt_version="1", subject="Ann", predicate="moved to", object="Oslo"
    )
    assert store.put_keys(scope_id=within.pk, given={bare.pk: guess}) == {bare.pk}
    operation = propose(Kind.MERGE, [bare, keyed], approval=Approval.NEEDS_HUMAN, keeper=bare)
    review.approve(operation=operation, by="ann")
    assert runner.apply(operation=operation, by="ann").outcome is Outcome.APPLIED
    merged = derived_of(operation)
    assert (merged.text, merged.subject, merged.predicate, merged.object) == (bare.text, *LIVES, "Oslo")
    assert not GivenKey.objects.filter(observation=merged).exists()
    assert invariants.check() == []


@pytest.mark.parametrize("state", [KeyState.GIVEN, KeyState.WITHDRAWN])
def test_what_a_model_said_of_one_spelling_of_a_key_holds_for_the_row_that_is_kept_in_another(state: KeyState) -> None:
    """R71: no question about the key is lost, and what a person took back is not asked about again."""
    within = scope()
    small, kept = (observe("Ann lives in Oslo", within=within, key=(name, "", "")) for name in ("ann", "Ann"))
    guess = Given(state=KeyState.GIVEN, model="m", prompt_version="1", predicate="lives in", object="Oslo")
    store.put_keys(scope_id=within.pk, given={small.pk: guess})
    if state is KeyState.WITHDRAWN:
        store.put_keys(scope_id=within.pk, given={kept.pk: guess})
        ingest.withdraw_key(observation=small, by="rita")
    operation = propose(Kind.MERGE, [small, kept], keeper=kept)
    assert runner.apply(operation=operation, by="ann").outcome is Outcome.APPLIED
    merged = derived_of(operation)
    assert (merged.subject, GivenKey.objects.get(observation=merged).state) == ("Ann", state)
    assert ingest.lacking_keys(scope=within) == 0


def test_a_model_that_was_taken_back_about_another_key_hides_nothing_of_the_kept_row() -> None:
    """The control: one text with two keys, merged by a person; what was said of the other key is no part of it."""
    within = scope()
    other = observe("Ann lives in Oslo", within=within, key=("Ann", "", ""))
    kept = observe("Ann lives in Oslo", within=within)
    whole = Given(
        state=KeyState.GIVEN, model="m", prompt_version="1", subject="Ann", predicate="lives in", object="Oslo"
    )
    store.put_keys(scope_id=within.pk, given={other.pk: replace(whole, subject=""), kept.pk: whole})
    ingest.withdraw_key(observation=other, by="rita")
    operation = propose(Kind.MERGE, [other, kept], approval=Approval.NEEDS_HUMAN, keeper=kept)
    review.approve(operation=operation, by="ann")
    assert runner.apply(operation=operation, by="ann").outcome is Outcome.APPLIED
    assert GivenKey.objects.get(observation=derived_of(operation)).state == KeyState.GIVEN


def test_a_merged_row_is_of_the_kind_that_its_sources_were_of() -> None:
    """A preference that was said twice does not begin to fade when it is merged."""
    within = scope()
    rows = [
        written(within, Claim(text=text, external_id=text, kind=MemoryKind.PREFERENCE))
        for text in ("Prefers tea", "prefers tea")
    ]
    operation = propose(Kind.MERGE, rows)
    assert runner.apply(operation=operation, by="ann").outcome is Outcome.APPLIED
    merged = derived_of(operation)
    assert (merged.kind, merged.half_life_days) == (MemoryKind.PREFERENCE, None)


def test_periods_in_turn_are_asked_about_once_and_the_answer_ends_the_question() -> None:
    """Decision 0009: a period alone settles nothing; "all true, each in its period" does."""
    within = scope()
    left, today = LONG_AGO + timedelta(days=900), LONG_AGO + timedelta(days=1_800)
    periods = [("Bergen", left, today), ("Oslo", LONG_AGO, left)]
    bergen, oslo = (
        written(within, Claim(f"Ann lives in {place}", place, *LIVES, place, valid_from=start, valid_to=end))
        for place, start, end in periods
    )
    plan()
    asked = Operation.objects.get(kind=Kind.SUPERSEDE, status=State.NEEDS_HUMAN)
    assert asked.product["suggested"] == "periods"
    assert asked.product["order"] == [oslo.pk, bergen.pk]
    choice = review.Decision(both=((bergen.pk, left, today), (oslo.pk, LONG_AGO, left)))
    review.approve(operation=asked, by="ann", decision=choice, reason="she moved")
    assert runner.apply(operation=asked, by="ann").outcome is Outcome.APPLIED
    plan()
    assert not Operation.objects.filter(kind=Kind.SUPERSEDE, status=State.NEEDS_HUMAN).exists()
