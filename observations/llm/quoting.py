"""Where quoted words stand in their source (C3: every accepted claim points at words that are really there)."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

MIN_WORDS: Final = 2
MIN_LETTERS: Final = 6  # letters and digits

_QUOTATION_MARKS: Final = frozenset(
    "\"'`´\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2039\u203a\u00ab\u00bb\u02bc\uff02\uff07\u300c\u300d\u300e\u300f"
)
_INVISIBLE: Final = frozenset("\u00ad\u200b\u200e\u200f\u2060\ufeff")
# Scripts written without spaces: each character counts as a word of two letters and stands for itself.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
_WORD = re.compile(r"\w+")


def find_quote(quote: str, source: str) -> tuple[int, int] | None:
    """Start and end (code points) of the quoted words in the source, or None when they are not there.

    Equal but for case, white space, quotation marks and how accents are composed. Whole words only, so that 'can swim'
    is not found in "can't swim" read from its middle, 'smoker' not in 'non-smoker', '5 degrees' not in '-5 degrees'.
    None for less than MIN_WORDS words or MIN_LETTERS letters: that much stands in any text.
    """
    wanted = _folded(quote.strip("".join(_QUOTATION_MARKS) + " \t\r\n"))
    if not _says_enough(wanted.text):
        return None
    exact = source.find(quote.strip())
    if exact >= 0 and _whole(source, exact, exact + len(quote.strip())):
        return exact, exact + len(quote.strip())
    within = _folded(source)
    at = within.text.find(wanted.text)
    while at >= 0:
        end = at + len(wanted.text)
        if within.splits_at(at) and within.splits_at(end) and _whole(within.text, at, end):
            return within.places[at], within.places[end - 1] + 1
        at = within.text.find(wanted.text, at + 1)
    return None


@dataclass(frozen=True, slots=True)
class _Folded:
    """A text as quotes are compared, and for each character the place it comes from."""

    text: str
    places: list[int]

    def splits_at(self, at: int) -> bool:
        """Whether no character of the original lies on both sides."""
        return at in (0, len(self.places)) or self.places[at - 1] != self.places[at]


def _folded(text: str) -> _Folded:
    characters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        for folded in _fold(text, place, character):
            if folded == " " and (not characters or characters[-1] == " "):
                continue
            characters.append(folded)
            places.append(place)
    while characters and characters[-1] == " ":
        characters.pop()
        places.pop()
    return _Folded("".join(characters), places)


def _fold(text: str, place: int, character: str) -> str:
    """One character as it is compared: an apostrophe inside a word stays, other quotation marks go."""
    if character in _QUOTATION_MARKS:
        inside = text[place - 1 : place].isalnum() and text[place + 1 : place + 2].isalnum()
        return "'" if inside else ""
    if character in _INVISIBLE:
        return ""
    if character.isspace():
        return " "
    return character.lower() if character.isascii() else unicodedata.normalize("NFD", character).casefold()


def _says_enough(folded: str) -> bool:
    unspaced = len(_UNSPACED.findall(folded))
    words = len(_WORD.findall(_UNSPACED.sub(" ", folded))) + unspaced
    letters = sum(character.isalnum() for character in _UNSPACED.sub("", folded)) + 2 * unspaced
    return words >= MIN_WORDS and letters >= MIN_LETTERS


def _whole(text: str, start: int, end: int) -> bool:
    """Whether no word, number or sign runs over either end."""
    return not (_runs_on(text, start) or _runs_on(text, end) or _signed(text, start))


def _runs_on(text: str, at: int) -> bool:
    """Whether a word goes on over this place, also over an apostrophe, a hyphen or a decimal point."""
    before, after = text[max(0, at - 2) : at], text[at : at + 2]
    if not before or not after:
        return False
    if _inner(before[-1]) and _inner(after[0]):
        return True
    if _inner(before[-1]) and _joins(after[0]):
        return len(after) == 2 and _goes_on(after[0], before[-1], after[1])
    if _joins(before[-1]) and _inner(after[0]):
        return len(before) == 2 and _goes_on(before[-1], before[0], after[0])
    return False


def _inner(character: str) -> bool:
    """A letter, digit, underscore or combining mark of a script written with spaces."""
    if _UNSPACED.match(character):
        return False
    return character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"


def _joins(character: str) -> bool:
    return character in "'\u2019-\u2010\u2011.,"


def _goes_on(join: str, before: str, after: str) -> bool:
    """Whether the join holds its neighbours together: a decimal point between digits, the others between letters."""
    if join in ".,":
        return before.isdigit() and after.isdigit()
    return _inner(before) and _inner(after)


def _signed(text: str, start: int) -> bool:
    """Whether a number begins here and its sign was left out."""
    sign = text[max(0, start - 1) : start]
    return bool(sign) and sign in "-\u2212+" and text[start : start + 1].isdigit()
