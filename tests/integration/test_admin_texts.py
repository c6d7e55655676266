"""How a memory text is shown: whole, exactly, and with what differs marked (F5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consolidation.admin.texts import COMPARED, WHOLE, compared, edited, flat, marked, period, snippet, whole
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


# --- marked places --------------------------------------------------------------------------------------------------

SPANS = st.lists(st.tuples(st.integers(-3, 70), st.integers(-3, 70)), max_size=5)
MIXED = st.text(alphabet="ab\u0430\u0435_ \u0301\u0335\n\u202e.", max_size=40)  # Latin, Cyrillic, piled marks


@given(text=TEXTS | MIXED, spans=SPANS)
def test_marking_places_changes_nothing_of_what_is_shown(text: str, spans: list[tuple[int, int]]) -> None:
    """F5, C3: put together, the runs are the text as it is shown without marks, whatever a model says where it is."""
    assert marked(text, spans).plain == whole(text).plain


def test_a_mark_cut_at_any_place_would_hide_a_look_alike_letter() -> None:
    """The control: cut inside the word, the Cyrillic letter stands alone and is shown as it is."""
    text = "p\u0430ypal"
    assert visible(text[1:2]) == "\u0430"
    assert marked(text, [(1, 2)]).plain == "p\\u0430ypal"


@given(text=TEXTS | MIXED, spans=SPANS)
def test_every_place_inside_a_text_is_marked(text: str, spans: list[tuple[int, int]]) -> None:
    """A mark may be wider than what was asked for, never narrower."""
    inside = [(start, end) for start, end in spans if 0 <= start < end <= len(text)]
    shown = "".join(run.text for run in marked(text, inside).words if run.own)
    for start, end in inside:
        words = [visible(word) for word in text[start:end].split() if word.isascii() and word.isalnum()]
        assert all(word in shown for word in words)


def test_places_that_touch_are_one_mark() -> None:
    shown = [run.text for run in marked("one two three", [(0, 3), (3, 7), (8, 9)]).words if run.own]
    assert shown == ["one two", "three"]


def test_a_long_text_is_shown_around_its_marks_and_says_how_much_is_left_out() -> None:
    """The words before and after stay; the rest is counted, not dropped."""
    text = "a " * 400 + "the night train" + " b" * 400
    shown = marked(text, [(800, 815)], around=20)
    assert shown.plain.startswith("… a ")
    assert shown.plain.endswith(" b …")
    assert [run.text for run in shown.words if run.own] == ["the night train"]
    assert shown.left_out == len(text) - len(shown.plain.removeprefix("… ").removesuffix(" …"))


def test_a_long_text_without_a_mark_begins_at_its_beginning() -> None:
    shown = marked("word " * 1_000, [], around=50)
    assert shown.plain.startswith("word word")
    assert shown.left_out > 4_000


def test_an_erased_text_has_no_marks() -> None:
    """Its places may still stand in the operation."""
    shown = marked(None, [(0, 4)])
    assert shown.erased
    assert not any(run.own for run in shown.words)


@given(before=TEXTS, after=TEXTS)
def test_an_edit_holds_both_texts_and_marks_nothing_that_is_in_both(before: str, after: str) -> None:
    """Without what was added it is the text before, without what was removed the text after; line ends stay."""
    edit = edited(before, after)
    old, new = ("".join(run.text for run in edit.runs if run.sort != left) for left in ("added", "removed"))
    assert (old, new) == (whole(before).plain, whole(after).plain)
    assert edit.changed == (whole(before).plain != whole(after).plain)


def test_an_edit_of_spaces_only_says_so() -> None:
    """What cannot be seen in the marks is told in words."""
    assert edited("Kind and brief", "Kind and\nbrief").blank
    assert not edited("Kind", "Kind and brief").blank
    assert not edited("Kind", "Kind").changed


def test_an_edit_that_is_too_long_or_erased_is_shown_as_it_is_after_it() -> None:
    long = " ".join(f"w{number}" for number in range(COMPARED))
    other = long.replace("w", "v")
    shown = edited(long, other)
    assert not shown.compared
    assert [run.text for run in shown.runs] == [other]
    assert edited(long, f"{long} end").compared, "what both share at the ends is not counted"
    assert not edited(None, "after").compared
    assert edited("before", None).runs[0].text == "text erased"
