"""Quoted words are found where they stand in the source, or they are not there (C3, C9)."""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observations.llm import find_quote

SOURCE = "Morning! I moved to the caf\u00e9 on Rue Verte; I can\u2019t swim, and I\u2019m not a smoker."

FOUND = [
    ("I moved to the caf\u00e9", SOURCE, "I moved to the caf\u00e9"),
    ("i MOVED to THE Caf\u00c9", SOURCE, "I moved to the caf\u00e9"),
    ("I moved to the cafe\u0301", SOURCE, "I moved to the caf\u00e9"),
    ("moved  to\nthe", SOURCE, "moved to the"),
    ("can't swim", SOURCE, "can\u2019t swim"),
    ("\u201ccan't swim\u201d", SOURCE, "can\u2019t swim"),
    ("'I moved to'", SOURCE, "I moved to"),
    ("  not a smoker. ", SOURCE, "not a smoker."),
    ("She said no to it", 'Ann: she said "no" to it', 'she said "no" to it'),
    ('she said "no" to it', "she said \u201eno\u201c to it", "she said \u201eno\u201c to it"),
    ("STRASSE DREI", "die stra\u00dfe drei", "stra\u00dfe drei"),
    ("stra\u00dfe drei", "DIE STRASSE DREI", "STRASSE DREI"),
    ("\u6211\u662f\u533b\u751f", "\u4f60\u597d\u6211\u662f\u533b\u751f\u3002", "\u6211\u662f\u533b\u751f"),
    ("at 14:05", "It failed at 14:05, twice", "at 14:05"),
    ("hard\u00adware store", "the hardware store", "hardware store"),
    ("line\u00a0break here", "a line\u2003 break here", "line\u2003 break here"),
    ("there are 5", "there are 55 or there are 5", "there are 5"),
    ("I like tea", "I dislike tea; i like tea", "i like tea"),
]


@pytest.mark.parametrize(("quote", "source", "words"), FOUND)
def test_the_words_are_found(quote: str, source: str, words: str) -> None:
    """C3: equal but for case, white space, quotation marks and composition; the place is the source's."""
    place = find_quote(quote, source)
    assert place is not None
    assert source[slice(*place)] == words


def test_the_first_place_that_is_whole_is_taken() -> None:
    source = "a non-smoker since 2010, a smoker since 2010"
    assert find_quote("smoker since 2010", source) == (source.index("a smoker") + 2, len(source))


ABSENT = [
    ("I moved to Lyon", SOURCE),
    ("I can swim", SOURCE),
    ("can swim", SOURCE),
    ("I can", "I can't come along"),
    ("swim, and we", SOURCE),
    ("like dogs", "I dislike dogs"),
    ("smoker since 2010", "a non-smoker since 2010"),
    ("smoker since 2010", "a non\u2010smoker since 2010"),
    ("price is 1", "the price is 1.5"),
    ("price is 1", "the price is 1,500"),
    ("5 degrees", "it was -5 degrees"),
    ("5 degrees", "it was \u22125 degrees"),
    ("05 and done", "at 14.05 and done"),
    ("the cafe", "the cafe\u0301"),
    ("my head", "my headache"),
    ("were late", "we're late"),
    ("were late", "we\u2019re late"),
]


@pytest.mark.parametrize(("quote", "source"), ABSENT)
def test_words_that_are_not_there_are_not_found(quote: str, source: str) -> None:
    """A quote that begins or ends inside a word, a number or a negation says something else."""
    assert find_quote(quote, source) is None


def test_a_search_for_the_letters_would_find_what_nobody_said() -> None:
    """The control: most of the absent quotes are substrings of their source."""
    assert sum(quote.lower() in source.lower() for quote, source in ABSENT) >= 9


@pytest.mark.parametrize("quote", ["", " ", "''", "tea", "vegetarian", "I am", "a b c", "...", "\u6211\u662f", "5 + 5"])
def test_too_little_is_no_quote(quote: str) -> None:
    """Fewer than two words or six letters stand in any text."""
    assert find_quote(quote, f"I am {quote} and that was it") is None


def test_an_empty_source_holds_no_quote() -> None:
    assert find_quote("I moved to Lyon", "") is None


def test_a_long_source_that_nearly_holds_it_is_searched_quickly() -> None:
    started = time.perf_counter()
    assert find_quote("aa aaaa aaa", "aa aaaa aaax " * 20_000) is None
    assert time.perf_counter() - started < 2


def plain(text: str) -> list[str]:
    """What has to be equal, computed in another way."""
    return unicodedata.normalize("NFD", text).casefold().replace("'", "").split()


_spaces = st.sampled_from([" ", "  ", "\n"])
_cases = st.sampled_from([str.upper, str.lower, str.title])


@settings(deadline=None)
@given(st.lists(st.text("aB\u00e9\u00df7", min_size=2, max_size=5), min_size=3, max_size=8), _cases, _spaces)
def test_a_quote_of_whole_words_is_found(words: list[str], case: Callable[[str], str], space: str) -> None:
    source = f"So: {' '.join(words)} , she said"
    place = find_quote(case(space.join(words)), source)
    assert place is not None
    assert plain(source[slice(*place)]) == plain(" ".join(words))


@settings(deadline=None)
@given(st.lists(st.text("aB\u00e9\u0301'-.7", min_size=1, max_size=4), min_size=2, max_size=6), st.data())
def test_what_is_found_reads_as_the_quote_does(words: list[str], data: st.DataObject) -> None:
    """Whatever is cut out of a source: a place that is given holds the quoted words and no others."""
    source = f"So {' '.join(words)} now"
    start = data.draw(st.integers(0, len(source) - 1))
    quote = source[start : data.draw(st.integers(start + 1, len(source)))].upper()
    place = find_quote(quote, source)
    if place is not None:
        assert plain(source[slice(*place)].strip("'")) == plain(quote.strip(" '"))


@settings(deadline=None)
@given(st.text(max_size=40), st.text(max_size=80))
def test_any_texts_give_a_place_inside_the_source_or_none(quote: str, source: str) -> None:
    place = find_quote(quote, source)
    assert place is None or 0 <= place[0] < place[1] <= len(source)
