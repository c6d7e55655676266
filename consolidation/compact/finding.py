"""The values that reading specifics passes around."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Sort(StrEnum):
    """What a specific is."""

    NUMBER = "number"  # with its unit, in digits or words
    DATE = "date"  # days, times of day, and words that tell a time from the day they are said
    IDENTIFIER = "identifier"  # codes, versions, paths, addresses, handles
    NAME = "name"  # people, places, things: what has a capital where a sentence asks for none
    NEGATION = "negation"  # not, never, without: looked at in sentences that are nearly copies only


class Demand(StrEnum):
    """How a summary keeps a specific."""

    FIRM = "firm"  # it has to hold the specific itself
    LOOSE = "loose"  # it has to hold the word, in any case and form: the capital may be the sentence's
    NEARBY = "nearby"  # only a sentence that is nearly a copy may not lose it


@dataclass(frozen=True, slots=True)
class Specific:
    """A number, date, identifier or name in a text."""

    sort: Sort
    demand: Demand
    needs: tuple[str, ...]  # every one of these keys has to be among what the other text gives
    gives: frozenset[str]  # what it answers itself: '27 june' answers '27 jun', 'jun', '27' and '27th'
    first: int  # words, both included
    last: int


def firm(sort: Sort, need: str, first: int, last: int | None = None, *, gives: tuple[str, ...] = ()) -> Specific:
    """A specific that has to be kept as it is."""
    return Specific(sort, Demand.FIRM, (need,), frozenset((need, *gives)), first, first if last is None else last)


def nearby(sort: Sort, key: str, at: int) -> Specific:
    """A word that only a sentence that is nearly a copy may not lose."""
    return Specific(sort, Demand.NEARBY, (key,), frozenset((key,)), at, at)
