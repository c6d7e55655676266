"""Who may take whose place without a person: the same user's later word, and nobody else (DESIGN 4, C4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observations.reconciliation import Rests, Waits, why_it_waits
from observations.records import EpisodeRecord, StatedBy, WrittenBy

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
FIRST = Rests(StatedBy.USER, speaker="Ana", session="s", happened_at=MONDAY, seq=1, id=1)
LATER = replace(FIRST, happened_at=MONDAY + timedelta(days=1), id=2)
ECHO = Rests(StatedBy.AGENT, speaker="Helper", session="s", happened_at=MONDAY + timedelta(days=9), id=9)
ELSEWHERE = Rests(None)


def waits(
    *rests_on: Rests,
    quoted: Rests = LATER,
    stated_by: StatedBy = StatedBy.USER,
    written_by: WrittenBy = WrittenBy.BACKGROUND,
    claimed_by: StatedBy = StatedBy.USER,
) -> Waits | None:
    return why_it_waits(
        stated_by=stated_by,
        written_by=written_by,
        rests_on=rests_on or (FIRST,),
        claimed_by=claimed_by,
        quoted_from=[quoted],
    )


def test_a_users_later_turn_may_take_the_place_of_what_was_extracted_from_the_same_user() -> None:
    assert waits() is None


@pytest.mark.parametrize("claimed_by", [each for each in StatedBy if each is not StatedBy.USER])
def test_a_claim_that_is_not_the_users_own_word_waits(claimed_by: StatedBy) -> None:
    assert waits(claimed_by=claimed_by) is Waits.NOT_THE_USER


@pytest.mark.parametrize("stated_by", [each for each in StatedBy if each is not StatedBy.USER])
def test_what_is_not_the_users_own_word_is_not_replaced(stated_by: StatedBy) -> None:
    assert waits(stated_by=stated_by) is Waits.SOMEBODY_ELSES


@pytest.mark.parametrize("written_by", [each for each in WrittenBy if each is not WrittenBy.BACKGROUND])
def test_what_was_written_directly_imported_or_derived_is_not_replaced(written_by: WrittenBy) -> None:
    assert waits(written_by=written_by) is Waits.NOT_EXTRACTED


@pytest.mark.parametrize("rests_on", [(ELSEWHERE,), (FIRST, ELSEWHERE), (ECHO,)])
def test_what_does_not_rest_on_the_users_turns_alone_is_not_replaced(rests_on: tuple[Rests, ...]) -> None:
    assert waits(*rests_on) is Waits.NO_TURN


def test_an_operators_turn_among_them_is_not_the_users_alone() -> None:
    assert waits(FIRST, replace(FIRST, stated_by=StatedBy.OPERATOR, id=3)) is Waits.NO_TURN


def test_an_agents_echo_neither_helps_nor_hinders() -> None:
    assert waits(FIRST, ECHO) is None


@pytest.mark.parametrize("speaker", ["Bo", "ana", ""])
def test_another_speaker_waits(speaker: str) -> None:
    assert waits(quoted=replace(LATER, speaker=speaker)) is Waits.ANOTHER_SPEAKER


def test_where_two_users_said_it_neither_replaces_it_alone() -> None:
    assert waits(FIRST, replace(FIRST, speaker="Bo", id=3)) is Waits.ANOTHER_SPEAKER


def test_a_scope_with_one_user_needs_no_name() -> None:
    assert waits(replace(FIRST, speaker=""), quoted=replace(LATER, speaker="")) is None


@pytest.mark.parametrize(
    ("quoted", "right"),
    [
        (replace(FIRST, seq=2, id=2), None),
        (replace(FIRST, seq=1, id=2), None),
        (replace(FIRST, seq=0, id=2), Waits.NOT_LATER),
        (FIRST, Waits.NOT_LATER),
        (replace(FIRST, session="other", seq=9, id=2), Waits.NOT_LATER),
        (replace(LATER, happened_at=MONDAY - timedelta(seconds=1)), Waits.NOT_LATER),
    ],
    ids=["by its order", "by its id", "before", "the very turn", "an order of another session", "earlier"],
)
def test_later_is_by_the_time_it_was_said_then_by_the_order_inside_the_session(
    quoted: Rests, right: Waits | None
) -> None:
    assert waits(quoted=quoted) is right


def test_it_is_later_than_all_that_the_row_rests_on() -> None:
    assert waits(FIRST, replace(FIRST, happened_at=MONDAY + timedelta(days=5), id=5)) is Waits.NOT_LATER


def test_a_turn_is_something_to_rest_on() -> None:
    turn = EpisodeRecord(
        id=4,
        scope_id=1,
        text="I moved",
        happened_at=MONDAY,
        source_uri="a",
        root_source="a",
        content_hash="x",
        version=1,
        speaker="Ana",
        role="user",
        session="s",
        seq=7,
    )
    assert Rests.on(turn) == Rests(StatedBy.USER, "Ana", "s", MONDAY, 7, 4)


_RESTS = st.builds(
    Rests,
    st.sampled_from([None, *StatedBy]),
    speaker=st.sampled_from(["Ana", "Bo", ""]),
    session=st.sampled_from(["s", "t"]),
    happened_at=st.sampled_from([MONDAY, MONDAY + timedelta(days=1), None]),
    seq=st.integers(0, 2),
    id=st.integers(1, 9),
)


@given(st.lists(_RESTS, max_size=3), st.lists(_RESTS, max_size=3), *[st.sampled_from(list(StatedBy))] * 2)
def test_whatever_it_rests_on_only_one_users_later_turn_ever_replaces(
    rests_on: list[Rests], quoted: list[Rests], stated_by: StatedBy, claimed_by: StatedBy
) -> None:
    waiting = why_it_waits(
        stated_by=stated_by,
        written_by=WrittenBy.BACKGROUND,
        rests_on=rests_on,
        claimed_by=claimed_by,
        quoted_from=quoted,
    )
    if waiting is None:
        assert stated_by is claimed_by is StatedBy.USER
        theirs = [each for each in rests_on if each.stated_by is StatedBy.USER]
        assert theirs
        assert None not in {each.stated_by for each in rests_on}
        assert len({each.speaker for each in theirs}) == 1
        assert {each.speaker for each in theirs} <= {each.speaker for each in quoted if each.stated_by is StatedBy.USER}
