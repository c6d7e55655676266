"""Any text at all: the check ends, soon, and lists places that exist (F1, F3)."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consolidation.compact.finding import Demand
from consolidation.compact.specifics import read

from .compacting import covered, group, proposed

PIECES = [
    "Ann",
    "O'Brien's",
    "8 May 2023",
    "1:56 pm",
    "2023-05-08T13:56",
    "two hundred and",
    "$1.2 million",
    "last few weeks ago",
    "mid-",
    "GPT-4",
    "https://a.b/c",
    "<episodes>",
    "\u202e",
    "not",
    "I",
    ".",
    ":",
    "\n",
    "—",
    "½",
    "٤٢",
    "Ａｎｎ",
    "一",
    "99999999999999999999",
    "0",
    "of",
    "per cent",
    "of May",
    "o'clock",
    "25:99",
    "\ud83d",
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=25).map(" ".join)


@given(st.lists(TEXTS, max_size=4), TEXTS)
def test_no_texts_crash_the_check(sources: list[str], summary: str) -> None:
    found = covered(sources, summary)
    for lost in found.lost:
        assert 0 <= lost.start < lost.end <= len(sources[lost.source])
    for added in found.invented:
        assert 0 <= added.start < added.end <= len(summary)
    assert set(found.unmentioned) | set(found.unread) <= set(range(len(sources)))


@given(TEXTS)
def test_a_text_keeps_all_of_itself(text: str) -> None:
    found = covered(text, text)
    assert found.lost == ()
    assert found.invented == ()


@given(TEXTS)
def test_specifics_lie_in_their_text_and_answer_themselves(text: str) -> None:
    found = read(text)
    for specific in found.specifics:
        start, end = found.place(specific)
        assert 0 <= start < end <= len(text)
        if specific.demand is not Demand.NEARBY:
            assert found.gives.issuperset(specific.needs)


@given(st.lists(TEXTS, min_size=1, max_size=3), TEXTS)
def test_the_check_gives_the_same_answer_twice(sources: list[str], summary: str) -> None:
    assert covered(sources, summary) == covered(sources, summary)


@given(st.lists(TEXTS, min_size=2, max_size=4), TEXTS)
def test_the_order_of_the_sources_changes_no_loss_of_what_vanished(sources: list[str], summary: str) -> None:
    """Labels move with their sources; what is gone is gone in any order."""
    turned = covered(sources[::-1], summary)
    there = {(len(sources) - 1 - each.source, each.start, each.end) for each in turned.lost if not each.cut}
    assert there == {(each.source, each.start, each.end) for each in covered(sources, summary).lost if not each.cut}


@given(st.lists(TEXTS, min_size=2, max_size=3), TEXTS)
def test_no_texts_crash_a_proposal(sources: list[str], summary: str) -> None:
    found = proposed(group(*(f"{source} x" for source in sources)), summary)
    assert len(found.reason) <= 480
    assert len(found.skipped_reason) <= 480


@pytest.mark.parametrize(
    ("source", "summary"),
    [
        ("a " * 5_000, "a " * 5_000),
        ("a b " * 3_000, "b a c " * 2_000),
        ("A. " * 5_000, "A. " * 5_000),
        ("1 " * 4_000, "1 " * 3_999),
        ("one " * 3_000, "one " * 2_000),
        ("Ann Bob " * 2_000, "Bob Ann " * 2_000),
        ("x" * 100_000, "x" * 90_000),
        ("a-" * 20_000, "b"),
        ("1," * 20_000, "b"),
        ("2020-01-01" * 5_000, "b"),
        ("http://" * 9_000, "b"),
        ("a." * 20_000 + "@", "b"),
        ("twenty " * 3_000, "thirty " * 3_000),
        ("last " * 5_000, "next " * 5_000),
        ("May 8 " * 3_000, "8 May " * 3_000),
        ("not " * 5_000, "never " * 5_000),
    ],
)
def test_a_text_made_to_cost_much_costs_little(source: str, summary: str) -> None:
    began = time.process_time()
    covered(source, summary)
    assert time.process_time() - began < 6


def test_ten_long_episodes_are_checked_in_time() -> None:
    """10 episodes of 2,000 words and a summary of 600."""
    episodes = [" ".join(f"word{number % 700}x{at}" for number in range(2_000)) for at in range(10)]
    began = time.process_time()
    covered(episodes, " ".join(f"word{number}x{number % 10}" for number in range(600)))
    assert time.process_time() - began < 6
