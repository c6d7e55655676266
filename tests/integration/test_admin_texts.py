"""How a memory text is shown: whole, exactly, and with what differs marked (F5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consolidation.admin.texts import COMPARED, WHOLE, compared, flat, period, snippet, whole
from consolidation.operations import visible

TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60)


@given(text=TEXTS, other=TEXTS)
def test_the_marked_runs_of_a_text_are_the_text(text: str, other: str) -> None:
    """F5: put together, what the page shows of a text is that text, made visible, byte for byte."""
    assert compared(text, to=other).plain == visible(text)


@given(text=TEXTS)
def test_a_text_compared_with_itself_has_no_marks(text: str) -> None:
    """Nothing is marked that is the same."""
    assert not any(run.own for run in compared(text, to=text).words)


def test_only_the_words_that_differ_are_marked() -> None:
    """Six against eight, not the whole sentence."""
    own = [
        run.text for run in compared("retries for up to 6 attempts", to="retries for up to 8 attempts").words if run.own
    ]
    assert own == ["6"]


def test_a_moved_word_is_marked_where_it_stands() -> None:
    """Order is meaning: Florida to New York is not New York to Florida."""
    shown = compared("from Ghent to Lyon", to="from Lyon to Ghent")
    assert any(run.own for run in shown.words)


def test_a_long_text_says_how_much_is_left_out() -> None:
    """Nothing vanishes unseen."""
    assert whole("x" * (WHOLE + 5)).left_out == 5


def test_texts_of_many_words_are_shown_without_marks() -> None:
    """Comparing costs the product of both lengths; past COMPARED words the texts still stand side by side."""
    shown = compared("a " * COMPARED, to="b " * COMPARED)
    assert not any(run.own for run in shown.words)
    assert shown.plain == "a " * COMPARED


def test_line_breaks_of_a_text_stay_on_its_own_page_only() -> None:
    """A list shows one line; nothing but a line feed is let through."""
    assert whole("one\ntwo\rthree").plain == "one\ntwo\\rthree"
    assert snippet("one\ntwo") == "one\\ntwo"


@pytest.mark.parametrize("text", [None, ""])
def test_a_text_that_is_gone_or_empty_is_shown(text: str | None) -> None:
    """An erased row says so; an empty one is empty."""
    assert snippet(text) == ("text erased" if text is None else "")


def test_figures_of_a_rule_are_flattened_into_lines() -> None:
    """JSON whose shape belongs to a rule; every word of it visible."""
    value = {
        "values": 3,
        "pairs": [{"a": 1, "cosine": 0.9500001}],
        "empty": [],
        "by": "x\u202e",
        "all": [1, 2],
        "off": None,
    }
    assert flat(value) == [
        ("values", "3"),
        ("pairs 1 a", "1"),
        ("pairs 1 cosine", "0.95"),
        ("by", "x\\u202e"),
        ("all", "1, 2"),
        ("off", "none"),
    ]


def test_an_open_period_says_nothing() -> None:
    """Only what is bounded is told."""
    assert period(None, None) == ""
