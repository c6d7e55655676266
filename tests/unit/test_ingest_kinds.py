"""What lines say of kinds, half-lives and given keys, and why some are refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from observations.ingest.lines import Line
from observations.records import Given, KeyState, MemoryKind, Past, Status
from tests.unit.test_ingest_lines import NOW, claim, parsed, refusal, turn

# --- kinds and half-lives --------------------------------------------------------------------------------------------


def test_the_kind_of_a_memory_is_a_field_of_its_own() -> None:
    """A line's `kind` says whether it is an observation or an episode."""
    item = claim(kind="observation", memory_kind="preference", half_life_days=30)
    assert (item.kind, item.half_life_days) == (MemoryKind.PREFERENCE, 30)


def test_a_line_without_a_kind_is_a_fact_whose_half_life_is_its_kinds() -> None:
    item = claim(memory_kind=None, half_life_days=None)
    assert (item.kind, item.half_life_days) == (MemoryKind.FACT, None)


@pytest.mark.parametrize("kind", list(MemoryKind))
def test_every_kind_is_understood_even_the_one_called_like_an_episode(kind: MemoryKind) -> None:
    assert claim(memory_kind=kind).kind == kind


@pytest.mark.parametrize("value", ["opinion", "FACT", "", 1, True, ["fact"], {"kind": "fact"}])
def test_a_kind_that_does_not_exist_is_refused_with_those_that_do(value: object) -> None:
    assert refusal({"text": "Tea.", "memory_kind": value}) == (
        "memory_kind must be one of preference, identity, fact, state, episode, note"
    )


@pytest.mark.parametrize("value", [0, -1, 1.5, "30", True, 2**31, [], {}])
def test_a_half_life_is_a_whole_number_of_days(value: object) -> None:
    reason = refusal({"text": "Tea.", "half_life_days": value})
    assert reason == f"half_life_days must be a whole number from 1 to {2**31 - 1}"


def test_an_episode_has_no_kind_and_its_line_is_not_refused_for_one() -> None:
    """Other fields are left alone."""
    assert turn(memory_kind="nonsense", half_life_days=-1).text == "Hello."


# --- episodes --------------------------------------------------------------------------------------------------------


def test_an_episode_keeps_its_role_and_may_have_been_archived() -> None:
    item = turn(role="assistant", status="archived")
    assert (item.role, item.status) == ("assistant", Status.ARCHIVED)
    assert turn().status == Status.ACTIVE


@pytest.mark.parametrize("status", ["quarantined", "retracted"])
def test_an_episode_is_nothing_but_active_or_archived(status: str) -> None:
    assert refusal({"text": "Hello.", "speaker": "Ivy", "status": status}) == (
        "status of an episode must be active or archived"
    )


# --- given keys ------------------------------------------------------------------------------------------------------

KEY = {"state": "given", "subject": "tea", "predicate": "served at", "object": "four", "start": 0, "end": 11}
SAID = {"model": "m", "prompt_version": "keys-1"}


def line(text: str = "Tea at four.", *, given_key: object, **fields: object) -> dict[str, object]:
    """A line with a given key."""
    return {"id": "x", "text": text, "given_key": given_key, **fields}


def given(key: dict[str, object]) -> Given:
    """What a line's given key is read as."""
    past = parsed(line(given_key=key)).past
    assert past.given is not None
    return past.given


def test_a_given_key_is_read_with_everything_that_is_known_of_it() -> None:
    at = "2026-05-01T10:00:00+00:00"
    assert given({**KEY, **SAID, "attempts": 2, "at": at}) == Given(
        state=KeyState.GIVEN,
        model="m",
        prompt_version="keys-1",
        subject="tea",
        predicate="served at",
        object="four",
        quote=(0, 11),
        attempts=2,
        at=datetime(2026, 5, 1, 10, tzinfo=UTC),
    )


@pytest.mark.parametrize("state", ["none", "unusable", "withdrawn"])
def test_a_line_may_say_that_there_is_no_key_and_why(state: str) -> None:
    assert given({"state": state, **SAID}) == Given(KeyState(state), model="m", prompt_version="keys-1")


def test_a_line_says_nothing_of_given_keys_by_default() -> None:
    assert parsed({"text": "Tea."}).past == Past()
    assert parsed({"text": "Tea.", "given_key": None}).past.given is None


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("anna", "given_key must be a list of objects"),
        ([{**KEY, **SAID}] * 2, "given_key must be one object"),
        ({**SAID, **KEY, "state": "maybe"}, "given_key.state must be one of given, none, unusable, withdrawn"),
        (KEY, "given_key.model is missing or empty"),
        ({**SAID, **KEY, "model": "m\0"}, "given_key.model holds a character that cannot be stored in an id"),
        ({**SAID, **KEY, "model": "m" * 81}, "given_key.model is longer than 80 characters"),
        ({**SAID, **KEY, "predicate": "p" * 501}, "given_key.predicate is longer than 500 characters"),
        ({**SAID, **KEY, "object": 4}, "given_key.object must be a text, not a number"),
        ({**SAID, **KEY, "attempts": 0}, "given_key.attempts must be a whole number from 1 to 1000"),
        ({**SAID, **KEY, "start": -1}, f"given_key.start must be a whole number from 0 to {2**31 - 1}"),
        ({**SAID, **KEY, "end": 13}, "given_key.start and given_key.end must be a part of the text"),
        ({**SAID, **KEY, "start": 11}, "given_key.start and given_key.end must be a part of the text"),
        ({**SAID, **KEY, "at": str(NOW + timedelta(days=1))}, "given_key.at is in the future"),
        ({**SAID, **KEY, "withdrawn_by": "rev"}, "given_key.withdrawn_by stands beside the state withdrawn only"),
        (
            {**SAID, **KEY, "state": "none"},
            "given_key has a subject, predicate or object when its state is given, and only then",
        ),
        (
            {**SAID, "state": "given"},
            "given_key has a subject, predicate or object when its state is given, and only then",
        ),
    ],
)
def test_a_given_key_that_cannot_be_is_refused_by_the_field(key: object, reason: str) -> None:
    """A reason names the field and never its text."""
    assert refusal(line(given_key=key)) == reason


@pytest.mark.parametrize("part", ["subject", "predicate", "object"])
def test_a_given_key_beside_the_writers_own_part_is_refused(part: str) -> None:
    """B: a model's key never stands over a writer's, in no file either."""
    assert refusal(line(given_key={**SAID, part: "x"}, **{part: "y"})) == (
        f"given_key.{part} cannot stand beside the line's own {part}"
    )


def test_an_erased_line_has_no_given_key() -> None:
    """Erased observations' keys are gone."""
    erased = {"by": "Ana", "reason": "asked", "request": "forget:1"}
    reason = refusal({"id": "x", "status": "erased", "erased": erased, "given_key": {**SAID, "state": "none"}})
    assert reason == "given_key cannot stand in an erased line"


def test_a_line_that_supersedes_brings_no_given_key_along() -> None:
    reason = refusal(line(given_key={**SAID, **KEY}, supersedes="old"))
    assert reason == "supersedes cannot stand beside a status, a derivation or a given key: give one or the other"


def test_a_quote_may_end_where_the_cleaned_text_does() -> None:
    """C1: two halves of a pair become one character before anything is counted."""
    text = "Tea \ud83d\udc4d"
    read: Line = parsed(line(text, given_key={**SAID, **KEY, "end": 5}))
    assert read.past.given is not None
    assert refusal(line(text, given_key={**SAID, **KEY, "end": 6})).endswith("must be a part of the text")
