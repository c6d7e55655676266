"""Which episodes make one summary (R81, R89, C6)."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consolidation import compact
from consolidation.compact import Group
from consolidation.policy import Policy
from observations.records import EpisodeRecord, MemoryKind, Status

from .compacting import NOW, START, group, turn


def grouped(*episodes: EpisodeRecord, policy: Policy | None = None) -> list[list[int]]:
    """The ids of each group."""
    found = compact.groups(episodes=episodes, policy=policy or Policy(), now=NOW)
    return [[episode.id for episode in each.episodes] for each in found]


def test_an_empty_scope_has_no_groups() -> None:
    assert grouped() == []


def test_the_turns_of_one_session_are_one_group() -> None:
    assert grouped(turn(1), turn(2), turn(3)) == [[1, 2, 3]]


def test_a_group_names_its_scope_and_session() -> None:
    (found,) = compact.groups(
        episodes=[turn(1, scope=7, session="x"), turn(2, scope=7, session="x")], policy=Policy(), now=NOW
    )
    assert (found.scope_id, found.session) == (7, "x")
    assert found.episodes == (turn(1, scope=7, session="x"), turn(2, scope=7, session="x"))


def test_two_sessions_never_share_a_group() -> None:
    assert grouped(*(turn(number, session="ab"[number % 2]) for number in range(1, 7))) == [[1, 3, 5], [2, 4, 6]]


def test_episodes_of_two_scopes_are_refused() -> None:
    """C6, R90: block on scope first, always."""
    with pytest.raises(ValueError, match="one scope"):
        grouped(turn(1), turn(2, scope=2))


def test_a_single_turn_is_left_as_it_is() -> None:
    assert grouped(turn(1), turn(2, session="other"), turn(3, session="other")) == [[2, 3]]


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.ACTIVE])
def test_only_active_episodes_are_compacted(status: Status) -> None:
    assert grouped(turn(1), turn(2), turn(3, status=status)) == [[1, 2]]


# --- parts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("turns", "sizes"),
    [
        (2, [2]),
        (10, [10]),
        (11, [6, 5]),
        (20, [10, 10]),
        (21, [7, 7, 7]),
        (40, [10, 10, 10, 10]),
        (41, [9, 8, 8, 8, 8]),
    ],
)
def test_a_long_session_is_split_evenly_within_the_limit(turns: int, sizes: list[int]) -> None:
    """R81, R89: at most ten episodes go into one summary, and forty never do."""
    assert [len(part) for part in grouped(*map(turn, range(1, turns + 1)))] == sizes


def test_parts_follow_each_other_in_time() -> None:
    assert grouped(*map(turn, range(1, 13))) == [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]]


def test_a_lower_limit_makes_smaller_parts() -> None:
    policy = Policy(max_compression=4.9)
    assert [len(part) for part in grouped(*map(turn, range(1, 11)), policy=policy)] == [4, 3, 3]


def test_a_limit_of_one_compacts_nothing() -> None:
    assert grouped(*map(turn, range(1, 11)), policy=Policy(max_compression=1.0)) == []


def test_a_part_that_would_be_a_single_turn_is_left() -> None:
    assert grouped(turn(1), turn(2), turn(3), policy=Policy(max_compression=2.0)) == [[1, 2]]


def test_forty_to_one_is_over_the_limit() -> None:
    """R107."""
    forty = group(*(f"Turn {number} of forty" for number in range(40)))
    assert compact.over_limit(group=forty, policy=Policy())
    assert not compact.over_limit(group=group(*(f"Turn {number}" for number in range(10))), policy=Policy())


# --- order -----------------------------------------------------------------------------------------------------------


def test_turns_of_one_moment_follow_their_sequence_and_then_their_id() -> None:
    turns = [turn(1, seq=2, at=START), turn(2, seq=1, at=START), turn(4, seq=3, at=START), turn(3, seq=3, at=START)]
    assert grouped(*turns) == [[2, 1, 3, 4]]


def test_groups_come_in_the_order_of_their_first_turn() -> None:
    late, early = [turn(1, session="a"), turn(2, session="a")], [turn(3, session="b", at=START), turn(4, session="b")]
    assert grouped(*late, *early) == [[3, 4], [1, 2]]


@st.composite
def histories(draw: st.DrawFn) -> list[EpisodeRecord]:
    """Turns of up to four sessions, or of none, over some months."""
    count = draw(st.integers(0, 45))
    return [
        turn(
            number,
            session=draw(st.sampled_from(["", "a", "b", "c"])),
            seq=draw(st.integers(0, 3)),
            at=NOW - timedelta(hours=draw(st.integers(0, 3_000))),
            status=draw(st.sampled_from([Status.ACTIVE, Status.ACTIVE, Status.ARCHIVED])),
        )
        for number in range(1, count + 1)
    ]


@given(histories(), st.randoms(use_true_random=False), st.sampled_from([2.0, 3.0, 7.5, 10.0]))
def test_the_order_of_the_input_plays_no_part(turns: list[EpisodeRecord], random: Random, cap: float) -> None:
    policy = Policy(max_compression=cap)
    shuffled = list(turns)
    random.shuffle(shuffled)
    assert grouped(*shuffled, policy=policy) == grouped(*turns, policy=policy)


@given(histories(), st.sampled_from([2.0, 3.0, 7.5, 10.0]))
def test_every_group_keeps_the_rules(turns: list[EpisodeRecord], cap: float) -> None:
    """R81: within the limit, at least two, of one session, in order, active, old enough, no episode twice."""
    policy = Policy(max_compression=cap)
    found = compact.groups(episodes=turns, policy=policy, now=NOW)
    used = [episode.id for each in found for episode in each.episodes]
    assert len(used) == len(set(used))
    for each in found:
        assert 2 <= len(each.episodes) <= cap
        assert {episode.session for episode in each.episodes} == {each.session}
        assert list(each.episodes) == sorted(each.episodes, key=lambda turn: (turn.happened_at, turn.seq, turn.id))
        assert all(episode.status is Status.ACTIVE for episode in each.episodes)
        assert max(episode.happened_at for episode in each.episodes) < NOW - timedelta(days=30)


@given(histories())
def test_a_second_pass_finds_nothing_more(turns: list[EpisodeRecord]) -> None:
    """C4: what the first pass left is left by the second too."""
    first = compact.groups(episodes=turns, policy=Policy(), now=NOW)
    used = {episode.id for each in first for episode in each.episodes}
    left = [episode for episode in turns if episode.id not in used]
    assert compact.groups(episodes=left, policy=Policy(), now=NOW) == ()


# --- age -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("days", "found"), [(29, 0), (31, 1)])
def test_a_session_is_compacted_after_the_policys_days(days: int, found: int) -> None:
    turns = [turn(number, at=NOW - timedelta(days=days, minutes=-number)) for number in range(2)]
    assert len(grouped(*turns)) == found


def test_a_session_whose_last_turn_is_young_is_left_whole() -> None:
    """Its old turns may still be taken up by what is being said."""
    old = [turn(number) for number in range(1, 6)]
    assert grouped(*old, turn(6, at=NOW - timedelta(days=1))) == []


def test_a_retention_duty_keeps_episodes_longer() -> None:
    policy = Policy(keep_days=400)
    assert grouped(turn(1), turn(2), policy=policy) == []
    assert grouped(turn(1), turn(2), policy=Policy(keep_days=300)) == [[1, 2]]


def test_untouchable_episodes_are_in_no_group() -> None:
    """R32."""
    assert grouped(turn(1), turn(2), policy=Policy(untouchable=(MemoryKind.EPISODE,))) == []
    assert grouped(turn(1), turn(2), policy=Policy(untouchable=(MemoryKind.NOTE,))) == [[1, 2]]


# --- turns without a session -----------------------------------------------------------------------------------------


def loose(*hours: float) -> list[EpisodeRecord]:
    """Turns without a session, so many hours after the start."""
    return [
        turn(number, session="", at=START + timedelta(hours=hour), speaker="ab"[number % 2])
        for number, hour in enumerate(hours, start=1)
    ]


def test_turns_without_a_session_belong_together_within_the_policys_hours() -> None:
    assert grouped(*loose(0, 5, 23, 25, 26, 90)) == [[1, 2, 3], [4, 5]]


def test_a_window_opens_with_its_first_turn_and_does_not_slide() -> None:
    assert grouped(*loose(0, 20, 40, 60)) == [[1, 2], [3, 4]]


def test_the_policy_sets_the_windows_length() -> None:
    assert grouped(*loose(0, 5, 23, 25), policy=Policy(session_hours=48)) == [[1, 2, 3, 4]]


def test_who_speaks_plays_no_part_in_a_window() -> None:
    (found,) = compact.groups(episodes=loose(0, 1, 2), policy=Policy(), now=NOW)
    assert {episode.speaker for episode in found.episodes} == {"a", "b"}
    assert found.session == ""


def test_turns_without_a_session_do_not_join_a_session() -> None:
    assert grouped(turn(1), turn(2), *[turn(number, session="") for number in (3, 4)]) == [[1, 2], [3, 4]]


def test_a_young_window_is_left_and_an_old_one_is_not() -> None:
    young = [turn(number, session="", at=NOW - timedelta(days=2, minutes=number)) for number in (8, 9)]
    assert grouped(*loose(0, 1), *young) == [[1, 2]]


def test_a_group_is_a_value() -> None:
    assert group("one thing", "another") == group("one thing", "another")
    assert isinstance(hash(group("one thing", "another")), int)
    with pytest.raises(AttributeError):
        group("one thing").session = "x"  # type: ignore[misc]
    assert isinstance(group("one"), Group)
