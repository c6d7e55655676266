"""Guards over specifics: numbers and units, dates and times, identifiers and versions, names."""

from __future__ import annotations

import re
from typing import Final

from consolidation.guards import lexicon
from consolidation.guards.objection import Objection
from consolidation.guards.reading import IDENTIFIES, NUMBERS, TIMES, UNITS, Pair, Reading, about

# Months and days that are also words count as such where a text gives them a capital.
_ALSO_WORDS: Final = lexicon.words("may march mar sun sat wed mon")


def number(pair: Pair) -> Objection | None:
    """The texts hold different numbers, or numbers in different units."""
    left, right = pair.about_a & NUMBERS, pair.about_b & NUMBERS
    if left and right:
        return Objection("number", "the texts give different numbers", possible_contradiction=True)
    if left or right:
        return Objection("number", "one text gives a number that the other does not", possible_contradiction=False)
    if pair.about & UNITS or primes(pair.a.plain) != primes(pair.b.plain):
        return Objection("number", "the texts give different units", possible_contradiction=True)
    if pair.same_words and _cased_units_differ(pair):
        return Objection("number", "a unit means another by its capital", possible_contradiction=True)
    return None


_PRIME = re.compile(r"[0-9]\s?('|\"|''|\u2032{1,2}|\u2033)(?![^\W_])")


def primes(plain: str) -> tuple[str, ...]:
    """The marks for feet and inches, or minutes and seconds, after digits."""
    return tuple(_PRIME.findall(plain)) if "'" in plain or '"' in plain or not plain.isascii() else ()


# Megabit and megabyte, milliwatt and megawatt, metre and million.
_CASED_UNIT = re.compile(r"[0-9] ?([kKmMgGtT]?[bB](?:ps|/s)?|[mMkKgG][wWvVaA]h?|[mM][hH]z|[mM][gG]|[mM])(?![^\W_])")


def _cased_units_differ(pair: Pair) -> bool:
    """A text all in small letters, or all in capitals, tells nothing by them."""
    if not all(side.has_capitals and not side.all_capitals for side in (pair.a, pair.b)):
        return False
    return _CASED_UNIT.findall(pair.a.plain) != _CASED_UNIT.findall(pair.b.plain)


def date(pair: Pair) -> Objection | None:
    """The texts name different days, months, years, seasons or times of day."""
    if not pair.about & TIMES:
        return None
    left, right = (any(_tells_time(word, pair) for word in side) for side in (pair.only_a, pair.only_b))
    if not left and not right:
        return None
    return Objection("date", "the texts differ in a date or time", possible_contradiction=left and right)


def _tells_time(word: str, pair: Pair) -> bool:
    if word not in _ALSO_WORDS:
        return bool(about(word) & TIMES)
    return not pair.known_names.isdisjoint((word, *_LONG.get(word, ())))


_LONG: Final = {
    short: tuple(name for name, to in lexicon.MONTHS.items() if to == short) for short in lexicon.MONTHS.values()
}


def identifier(pair: Pair) -> Objection | None:
    """The texts hold different versions, paths, addresses, handles or codes."""
    left, right = bool(pair.about_a & IDENTIFIES), bool(pair.about_b & IDENTIFIES)
    if not left and not right:
        return None
    return Objection("identifier", "the texts differ in a version or identifier", left and right)


def name(pair: Pair) -> Objection | None:
    """The texts name different people, places or things: capitals where a sentence does not ask for one.

    At the start of a sentence everything has a capital: there a word counts that does what only one person does.
    """
    left = pair.known_names.intersection(pair.a.counts) | _first_name(pair.a, pair.b)
    right = pair.known_names.intersection(pair.b.counts) | _first_name(pair.b, pair.a)
    left, right = left - right, right - left
    if left and right:
        return Objection("name", "the texts name different people, places or things", possible_contradiction=True)
    if left or right:
        swapped = bool(pair.only_a and pair.only_b) and pair.close
        return Objection("name", "one text has a name that the other has not", possible_contradiction=swapped)
    return None


_ONE_DOES: Final = lexicon.words("is was has had does did will can 's")
_NO_NAME: Final = lexicon.words(
    "he she it they we you i this that these those there here his her its their our my your who what which where when "
    "why how if as in on at by to from with for of and or but so then today yesterday tomorrow now one some every each"
).union(lexicon.NEGATION, lexicon.QUANTIFIER, lexicon.HEDGE, lexicon.DATE, lexicon.DIRECTION)


def _first_name(mine: Reading, theirs: Reading) -> frozenset[str]:
    """The first word where it may be a name: the other text has it not, and what follows is said of one."""
    if len(mine.wording) < 2 or mine.wording[0] in theirs.counts or mine.wording[0] not in mine.parts.raw[:1]:
        return frozenset()
    first, second = mine.wording[:2]
    of_one = second in _ONE_DOES or (len(second) > 3 and second.endswith(("s", "ed")) and not second.endswith("ss"))
    return frozenset((first,)) if of_one and first.isalpha() and first not in _NO_NAME and first[-1] != "s" else _NOBODY


_NOBODY: Final = frozenset[str]()
