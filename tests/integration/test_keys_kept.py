"""Given keys stand beside their rows: withdrawn, copied, erased and guarded by the database."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import DatabaseError, transaction

from observations import ingest, store
from observations.models import Event, GivenKey, Observation, Scope
from observations.records import Given, KeyState, Status
from tests.building import observe, scope
from tests.giving import given_by, key_of, keyless, knowing
from tests.scripted import ScriptedCompleter


def given(subject: str = "", predicate: str = "", object: str = "", **fields: object) -> Given:
    """A given key of a model called m."""
    parts = {"subject": subject, "predicate": predicate, "object": object}
    return Given(KeyState.GIVEN, model="m", prompt_version="keys-1", **parts, **fields)  # type: ignore[arg-type]


def put(row: Observation, key: Given) -> set[int]:
    """Store a key for one row."""
    with transaction.atomic():
        return store.put_keys(scope_id=row.scope_id, given={row.pk: key})


@pytest.fixture
def here(db: None) -> Scope:
    """A scope."""
    return scope()


@pytest.fixture
def anna(here: Scope) -> Observation:
    """A row with a given key."""
    [row] = keyless(here, "Anna lives in Oslo.")
    assert given_by(knowing, here).given == 1
    return row


# --- storing ---------------------------------------------------------------------------------------------------------


def test_an_answer_that_stands_is_never_replaced(anna: Observation) -> None:
    assert put(anna, given("Bo", "lives in", "Rome", quote=(0, 18))) == set()
    standing = key_of(anna)
    assert standing is not None
    assert standing.subject == "Anna"


def test_an_unusable_answer_is_replaced_and_counted_up_to_the_limit(here: Scope) -> None:
    [row] = keyless(here, "Anna lives in Oslo.")
    bad = Given(KeyState.UNUSABLE, model="m", prompt_version="1")
    assert [bool(put(row, bad)) for _ in range(4)] == [True, True, True, False]
    assert GivenKey.objects.get().attempts == store.MAX_ATTEMPTS
    assert put(row, given("Anna")) == set()  # given up: a later answer is not taken either


def test_a_key_for_a_row_of_another_scope_is_not_stored(anna: Observation) -> None:
    """C6: the ids of a batch belong to one scope, whatever they say."""
    there = scope("elsewhere")
    [foreign] = keyless(there, "Anna lives in Oslo.")
    with transaction.atomic():
        assert store.put_keys(scope_id=anna.scope_id, given={foreign.pk: given("Anna")}) == set()
    assert key_of(foreign) is None


@pytest.mark.parametrize("part", ["subject", "predicate", "object"])
def test_the_database_refuses_a_part_that_the_writer_gave(here: Scope, part: str) -> None:
    row = observe("Anna lives in Oslo.", within=here, key=("Anna", "lives in", "Oslo"))
    with pytest.raises(DatabaseError, match="has that part of its key from its writer"):
        put(row, given(**{part: "Rome"}))
    assert key_of(row) is None


# --- withdrawing -----------------------------------------------------------------------------------------------------


def test_a_withdrawn_key_is_gone_and_never_asked_for_again(anna: Observation) -> None:
    ingest.withdraw_key(observation=anna, by="rev")
    said = key_of(anna)
    assert said is not None
    assert (said.state, said.withdrawn_by) == ("withdrawn", "rev")
    assert (said.subject, said.predicate, said.object, said.quote_start, said.quote_end) == ("", "", "", None, None)
    assert (said.subject_key, said.sp_key, said.spo_key) == (0, 0, 0)
    model = ScriptedCompleter(knowing)
    assert ingest.give_keys(scope=anna.scope, completer=model).asked == 0
    assert model.requests == []


def test_a_withdrawal_is_an_event_that_holds_no_text(anna: Observation) -> None:
    ingest.withdraw_key(observation=anna, by="rev")
    event = Event.objects.get()
    assert (event.action, event.actor, event.subject, event.detail) == ("key_withdrawn", "rev", str(anna), {})


def test_taking_back_what_was_not_given_is_refused_and_leaves_no_event(anna: Observation) -> None:
    """Habit 3: a zero is an error with a name."""
    other = observe("Bo hums.", within=anna.scope)
    ingest.withdraw_key(observation=anna, by="rev")
    for row in (anna, other):
        with pytest.raises(store.KeyNotGiven, match=f"{row} has no key that a model gave"):
            ingest.withdraw_key(observation=row, by="rev")
    assert Event.objects.count() == 1


def test_the_database_gives_no_withdrawn_key_back(anna: Observation) -> None:
    ingest.withdraw_key(observation=anna, by="rev")
    assert put(anna, given("Anna")) == set()
    with pytest.raises(DatabaseError, match="was withdrawn by a person"):
        GivenKey.objects.filter(observation=anna).update(state="given", subject="Anna")


# --- copying ---------------------------------------------------------------------------------------------------------


def copied(source: Observation, into: Observation) -> GivenKey | None:
    """What a row has after the copy."""
    store.copy_key(scope_id=source.scope_id, into=into.pk, source=source.pk)
    return key_of(into)


def same(a: GivenKey, b: GivenKey) -> bool:
    """Whether two given keys say the same of their rows."""
    left, right = (
        {name: value for name, value in key.__dict__.items() if name not in ("_state", "id", "observation_id")}
        for key in (a, b)
    )
    return left == right


def test_a_row_of_the_same_text_takes_the_key_over_whole(anna: Observation) -> None:
    twin = observe("Anna lives in Oslo.", within=anna.scope)
    source, copy = key_of(anna), copied(anna, twin)
    assert source is not None
    assert copy is not None
    assert same(source, copy)
    again = copied(anna, twin)
    assert again is not None
    assert again.pk == copy.pk  # doing it twice is doing it once


def withdraw(row: Observation) -> None:
    ingest.withdraw_key(observation=row, by="rev")


def archive(row: Observation) -> None:
    store.move(scope_id=row.scope_id, ids=[row.pk], to=Status.ARCHIVED)


@pytest.mark.parametrize(("change", "state"), [(withdraw, "withdrawn"), (archive, "given")])
def test_a_copy_carries_what_a_person_decided_and_what_left_the_reads(
    anna: Observation, change: Callable[[Observation], None], state: str
) -> None:
    """A merge archives its sources first; a withdrawn key stays withdrawn in what was merged of them."""
    change(anna)
    twin = observe("Anna lives in Oslo.", within=anna.scope)
    copy = copied(anna, twin)
    assert copy is not None
    assert copy.state == state


def test_no_copy_goes_to_another_text_another_key_or_another_scope(anna: Observation) -> None:
    others = [
        observe("Anna lives in Bergen.", within=anna.scope),
        observe("Anna lives in Oslo.", within=anna.scope, key=("Anna", "", "")),
        observe("Anna lives in Oslo.", within=scope("elsewhere")),
    ]
    assert [copied(anna, other) for other in others] == [None, None, None]


def test_a_row_of_the_same_words_in_another_spelling_takes_the_key_over_without_its_positions(
    anna: Observation,
) -> None:
    """A merge of the two loses no question about the key (R71)."""
    source, copy = key_of(anna), copied(anna, observe("Anna  lives in Oslo", within=anna.scope))
    assert source is not None
    assert copy is not None
    assert (copy.predicate, copy.object, copy.sp_key) == (source.predicate, source.object, source.sp_key)
    assert (copy.quote_start, copy.quote_end) == (None, None)


def test_no_copy_is_made_of_an_answer_that_could_not_be_used(here: Scope) -> None:
    """The row of a merge gets its own three attempts."""
    [row] = keyless(here, "Anna lives in Oslo.")
    given_by("prose", here)
    assert copied(row, observe("Anna lives in Oslo.", within=here)) is None


def test_a_row_that_was_answered_keeps_its_answer(anna: Observation) -> None:
    twin = observe("Anna lives in Oslo.", within=anna.scope)
    given_by('{"keys": [{"label": 0}]}', anna.scope)
    copy = copied(anna, twin)
    assert copy is not None
    assert copy.state == "none"


# --- erasing ---------------------------------------------------------------------------------------------------------


def test_an_erase_empties_the_given_key_too(anna: Observation) -> None:
    """Promise 7."""
    with transaction.atomic():
        store.erase(scope_id=anna.scope_id, ids=[anna.pk], by="Ana", reason="asked", request="forget:1")
    left = key_of(anna)
    assert left is not None
    assert (left.state, left.subject, left.predicate, left.object, left.spo_key) == ("none", "", "", "", 0)
    assert (left.quote_start, left.quote_end) == (None, None)
    assert given_by(knowing, anna.scope).asked == 0


def test_no_given_key_can_be_deleted(anna: Observation) -> None:
    """The application's role has no right to, and a trigger refuses everybody else."""
    with pytest.raises(DatabaseError), transaction.atomic():
        GivenKey.objects.filter(observation=anna).delete()
    assert key_of(anna) is not None


def test_the_words_of_the_two_lists_of_states_are_the_same() -> None:
    assert set(GivenKey.State.values) == set(KeyState)
