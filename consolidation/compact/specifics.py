"""Everything in a text that a summary may not lose: numbers, dates, identifiers and names, each with its place."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from consolidation.compact import figures
from consolidation.compact.finding import Demand, Sort, Specific, firm, nearby
from consolidation.compact.lexing import Word, folded, sentences, words
from consolidation.compact.words import (
    ALSO_NAMES,
    ASKS_OR_WISHES,
    CAPITAL_WORDS,
    EVERYDAY,
    GRAMMAR,
    TITLES,
)
from consolidation.guards import lexicon
from consolidation.guards.reading import is_identifier, is_number, stem
from observations.normalise import is_english

_SELF: Final = re.compile(r"i(?:'(?:m|d|ll|ve|s|am))?")
_PRESENT: Final = "w:"  # before the stem of any word of a text
_NAMED: Final = "n:"  # before a word with a capital
_DOTTED = re.compile(r"(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}")
_FOREIGN: Final = 0.05  # share of letters of another script: a name or two


@dataclass(frozen=True)
class Text:
    """A text with what a summary may not lose of it."""

    text: str
    words: tuple[Word, ...]
    specifics: tuple[Specific, ...]  # in order of their first word; they may share words
    readable: bool  # False: in a language or script whose names and numbers are not known here

    @cached_property
    def gives(self) -> frozenset[str]:
        """Every key that this text answers."""
        named = {name_key(word) for word in self.words if _has_capital(word)}
        present = {present_key(word.key) for word in self.words}
        return frozenset(named | present).union(*(specific.gives for specific in self.specifics))

    @cached_property
    def sentences(self) -> tuple[tuple[int, int], ...]:
        """Half-open ranges of words."""
        return sentences(self.words)

    def place(self, specific: Specific) -> tuple[int, int]:
        """Start and end of a specific in the text, in code points."""
        return self.words[specific.first].start, self.words[specific.last].end


@lru_cache(maxsize=1 << 8)
def read(text: str) -> Text:
    """A text read once. Pure; any string will do."""
    found = words(text)
    cased = any(letter.isupper() for letter in text)
    specifics = tuple(sorted(_specifics(found, cased=cased), key=lambda each: (each.first, each.last)))
    return Text(text, found, specifics, _is_readable(found))


def _is_readable(found: Sequence[Word]) -> bool:
    """Whether nearly all letters are Latin and the words read as English."""
    letters = [letter for word in found for letter in word.text if letter.isalpha()]
    foreign = sum(not letter.isascii() and not unicodedata.name(letter, "").startswith("LATIN") for letter in letters)
    return foreign <= len(letters) * _FOREIGN and is_english(word.lower for word in found)


def present_key(word: str) -> str:
    """What says that a text holds a word, in any form and case."""
    return _PRESENT + stem(lexicon.EQUIVALENT.get(word, word))


def name_key(word: Word) -> str:
    """What says that a text holds a word with a capital."""
    return _NAMED + word.key.rstrip("+")


def _has_capital(word: Word) -> bool:
    return not word.whole and word.text != word.text.lower()


def _specifics(read_words: Sequence[Word], *, cased: bool) -> Iterator[Specific]:
    at = 0
    while at < len(read_words):
        specific = _figure(read_words, at) or _word(read_words, at, cased=cased)
        if specific is not None:
            yield specific
        at = max(at, specific.last if specific else at) + 1


def _figure(read_words: Sequence[Word], at: int) -> Specific | None:
    if read_words[at].whole:
        dated = figures.iso_date(read_words, at)
        return dated or firm(Sort.IDENTIFIER, read_words[at].text, at)
    found = (reader(read_words, at) for reader in figures.READERS)
    specific = next((each for each in found if each is not None), None)
    loose = specific is not None and specific.demand is Demand.NEARBY and specific.sort is Sort.DATE
    if loose and _has_capital(read_words[at]):
        return None  # a word of time with a capital may be a name
    return specific


def _word(read_words: Sequence[Word], at: int, *, cased: bool) -> Specific | None:
    """An identifier, a name or a denial; None for a plain word."""
    word = read_words[at]
    if word.key in lexicon.NEGATION or word.key == "not":
        return nearby(Sort.NEGATION, word.key, at)
    if _is_code(word):
        return firm(Sort.IDENTIFIER if not is_number(word.key) else Sort.NUMBER, word.key, at)
    if _has_capital(word):
        return _name(read_words, at)
    if not cased and _is_unusual(word.key):  # a text without any capital: any unusual word may be a name
        return Specific(Sort.NAME, Demand.LOOSE, (present_key(word.key),), frozenset(), at, at)
    return None


def _is_code(word: Word) -> bool:
    if any(mark.isdigit() for mark in word.key):
        return True
    return not word.key.isalpha() and is_identifier(word.key) and _DOTTED.fullmatch(word.lower) is None


def _is_unusual(key: str) -> bool:
    return len(key) > 2 and key not in GRAMMAR and stem(key) not in EVERYDAY and key not in _TIME_AND_UNITS


_TIME_AND_UNITS: Final = (frozenset(lexicon.UNITS) | lexicon.DATE) - {"christmas", "easter"}


def _name(read_words: Sequence[Word], at: int) -> Specific | None:
    """What a capital says: a name, perhaps a name, or only the start of a sentence."""
    word = read_words[at]
    shouted = len(word.text) > 1 and word.text.isupper()
    bare = folded(word.text).split("'")[0]
    if _SELF.fullmatch(word.lower) or (word.starts and bare in GRAMMAR and not (shouted and bare in CAPITAL_WORDS)):
        return None if not shouted else nearby(Sort.NAME, word.key, at)
    named = Specific(Sort.NAME, Demand.FIRM, (name_key(word),), frozenset(), at, at)
    if shouted and bare in CAPITAL_WORDS:
        return named
    everyday = bare in GRAMMAR or stem(word.key) in EVERYDAY or word.key in _TIME_AND_UNITS
    if bare in GRAMMAR or word.key in TITLES or (shouted and everyday):
        return nearby(Sort.NAME, word.key, at)
    if not word.starts or word.text[1:] != word.text[1:].lower():
        return named
    if word.key in ALSO_NAMES:
        wishes = at + 1 < len(read_words) and read_words[at + 1].lower in ASKS_OR_WISHES
        return nearby(Sort.NAME, word.key, at) if wishes else named
    if everyday:
        return nearby(Sort.NAME, word.key, at)
    return Specific(Sort.NAME, Demand.LOOSE, (present_key(word.key),), frozenset(), at, at)
