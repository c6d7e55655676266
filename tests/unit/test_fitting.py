"""The budget of a prompt (DESIGN 6): whole entries, a fixed order of what is left out, core memory never."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observations import fencing
from observations.prompting.fitting import BYTES_PER_TOKEN, Room, fit, tokens
from observations.prompting.sections import CLEAN, Clean, Line, Section, Undeclared, declared

SIZES = st.dictionaries(st.sampled_from(list(Section)), st.lists(st.integers(1, 200), max_size=8))


def lines(sizes: dict[Section, list[int]]) -> dict[Section, list[Line]]:
    return {name: [Line(n, "é" * size) for n, size in enumerate(each)] for name, each in sizes.items()}


@given(SIZES, st.integers(50, 2_000))
def test_the_text_is_no_longer_than_asked_but_for_core_memory_and_a_quarter(
    sizes: dict[Section, list[int]], longest: int
) -> None:
    """Entries are whole, and each is shown or named as left out."""
    given_lines = lines(sizes)
    fitted = fit(lines=given_lines, room=Room.of(longest=longest, max_tokens=None))
    text = fencing.fenced(fitted.lines)
    core = sum(size + 1 for size in sizes.get(Section.CORE, [])) + len("Core memory:\n") + len(fencing.fenced(["-"]))
    assert len(text) <= max(longest, core + longest // 4)
    for name, each in given_lines.items():
        shown, left = list(fitted.shown[name]), list(fitted.left_out[name])
        assert sorted([*shown, *left], key=lambda line: line.id) == each
    assert list(fitted.shown[Section.CORE]) == given_lines.get(Section.CORE, [])


@given(SIZES, st.integers(100, 1_000))
def test_tokens_are_counted_as_three_bytes(sizes: dict[Section, list[int]], most: int) -> None:
    """A character of two bytes counts as two."""
    without_core: dict[Section, list[int]] = {name: each for name, each in sizes.items() if name is not Section.CORE}
    fitted = fit(lines=lines(without_core), room=Room.of(longest=10**6, max_tokens=most))
    assert tokens(fencing.fenced(fitted.lines)) <= most


@pytest.mark.parametrize(
    ("longest", "left"),
    [
        (1_000, []),
        (560, [Section.RESIDUE]),
        (410, [Section.RESIDUE, Section.EPISODES]),
        (270, [Section.RESIDUE, Section.EPISODES, Section.OBSERVATIONS]),
        (140, [Section.RESIDUE, Section.EPISODES, Section.OBSERVATIONS, Section.VERBATIM]),
    ],
)
def test_what_is_left_out_first(longest: int, left: list[Section]) -> None:
    """Residue, then episodes, then observations, then turns, and core memory never."""
    every = {name: [Line(1, "x" * 100)] for name in Section}
    fitted = fit(lines=every, room=Room.of(longest=longest, max_tokens=None))
    assert [
        name
        for name in (Section.RESIDUE, Section.EPISODES, Section.OBSERVATIONS, Section.VERBATIM)
        if not fitted.shown[name]
    ] == left
    assert fitted.shown[Section.CORE]


def test_of_turns_the_oldest_go_first_and_of_observations_those_that_rank_last() -> None:
    turns, claims = [[Line(n, "x" * 60) for n in range(3)] for _ in range(2)]
    room = Room.of(longest=340, max_tokens=None)
    fitted = fit(lines={Section.VERBATIM: turns, Section.OBSERVATIONS: claims}, room=room)
    assert [line.id for line in fitted.shown[Section.VERBATIM]] == [0, 1, 2]
    assert [line.id for line in fitted.shown[Section.OBSERVATIONS]] == [0]
    fitted = fit(lines={Section.VERBATIM: turns}, room=Room.of(longest=180, max_tokens=None))
    assert [line.id for line in fitted.shown[Section.VERBATIM]] == [1, 2]


def test_about_how_many_tokens_a_text_is() -> None:
    assert [tokens(""), tokens("abc"), tokens("abcd"), tokens("名")] == [0, 1, 2, 1]
    assert BYTES_PER_TOKEN == 3


def test_a_section_that_does_not_say_when_it_is_cleaned_is_refused() -> None:
    """R10: before anything is read; the sentence says where to say it."""
    with pytest.raises(
        Undeclared, match=r"^Gossip: say in prompting\.CLEAN when it is cleaned, on write or on read\.$"
    ):
        declared([*Section, "Gossip"], CLEAN)
    assert set(CLEAN.values()) == set(Clean)
