"""One wording for what is said in several: units, times, dates, possessives, exchangeable words and set phrases.

Only this module and the normalising before it let a difference pass; everything here must be the same claim wherever
both wordings make sense.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from consolidation.guards import lexicon
from consolidation.guards.permission import permits

UNIT_MARK: Final = "\u00b7"  # before a unit that follows a number, so that 'min' there is not the 'min' of elsewhere
DAY_MARK: Final = "\u2027"  # before the day of a month

_DIGIT = re.compile("[0-9]")
_MEASURE = re.compile(r"([-+]?[0-9][0-9.,]*)(%|[a-z]{1,3})")
_MONEY = re.compile(r"([$€])([0-9][0-9.,]*)")
_CURRENCIES: Final = {"$": "dollar", "€": "euro"}
_SHORT_UNITS: Final = lexicon.words("% km kg cm mm mg ml lb lbs oz ft gb mb tb kb ms hr hrs min mins")
_CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
_HOUR = re.compile(r"(?:[1-9]|1[0-2])(?::[0-5][0-9])?")
_ORDINAL = re.compile(r"([0-9]{1,2})(?:st|nd|rd|th)")
_ISO_DATE = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])")
_MONTH_NAMES: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def wording(compared: Sequence[str]) -> tuple[str, ...]:
    """Tokens in one wording; numbers, dates and phrases in the order in which they stand."""
    words: Sequence[str] = compared
    if "cent" in words:
        words = f" {' '.join(words)} ".replace(" per cent ", " percent ").split()
    if _DIGIT.search(" ".join(words)):
        words = _dates(_measures(words))
    if any(word.endswith("'s") for word in words):
        words = [part for word in words for part in _owner(word)]
    words = _phrases([_EQUIVALENT(word, word) for word in words])
    return tuple(words) if _LOOSE.isdisjoint(words) else _tightened(words)


_EQUIVALENT: Final = lexicon.EQUIVALENT.get
_LOOSE: Final = lexicon.HARMLESS | {"that", "may"}
_LIMITING: Final = lexicon.NEGATION | {"only", "just", "merely", "but"}


def _tightened(words: Sequence[str]) -> tuple[str, ...]:
    """Without what may be left out, and with 'can' for a 'may' that gives leave."""
    droppable = frozenset() if not _LIMITING.isdisjoint(words) else lexicon.HARMLESS
    kept: list[str] = []
    for at, word in enumerate(words):
        before = words[at - 1] if at else ""
        after = words[at + 1] if at + 1 < len(words) else ""
        if word in droppable or (word == "that" and before in lexicon.SAYING and after in lexicon.PRONOUN):
            continue
        kept.append("can" if word == "may" and permits(words, at) else word)
    return tuple(kept)


def _owner(word: str) -> tuple[str, ...]:
    """A possessive as two words, so that whose it is counts as a place in the order and not as another name."""
    return (word[:-2], "'s") if len(word) > 2 and word.endswith("'s") else (word,)


# --- units and times -------------------------------------------------------------------------------------------------


def _measures(compared: Sequence[str]) -> list[str]:
    """'5km' and '5 kilometres' as '5 km'; '5%' as '5 percent', '$5' as '5 dollars', '21:30' as '9:30 pm'."""
    parts: list[str] = []
    for word in compared:
        if word in _DAY_HALVES and parts and parts[-1] == UNIT_MARK + word:
            continue  # 09:30 am
        if word in lexicon.UNITS and parts and parts[-1][-1:].isdigit():
            if word in _DAY_HALVES and _HOUR.fullmatch(parts[-1]):
                parts[-1] = _minuted(parts[-1])
            parts.append(UNIT_MARK + lexicon.UNITS[word])
        elif _DIGIT.search(word):
            parts.extend(_measured(word))
        else:
            parts.append(word)
    return parts


_DAY_HALVES: Final = frozenset({"am", "pm"})


def _measured(word: str) -> tuple[str, ...]:
    measure = _MEASURE.fullmatch(word)
    if measure and measure.group(2) in _SHORT_UNITS:
        return measure.group(1), UNIT_MARK + lexicon.UNITS.get(measure.group(2), measure.group(2))
    money = _MONEY.fullmatch(word)
    if money:
        return money.group(2), UNIT_MARK + _CURRENCIES[money.group(1)]
    return _timed(word) if ":" in word else (word,)


def _timed(word: str) -> tuple[str, ...]:
    """A time as the clock of 24 hours has it, by that of 12; '9:30' may be either half of the day and says neither."""
    clock = _CLOCK.fullmatch(word)
    if clock is None or len(clock.group(1)) == 1 or 10 <= int(clock.group(1)) <= 12:
        return (word,)
    hour = int(clock.group(1))
    return f"{(hour + 11) % 12 + 1}:{clock.group(2)}", UNIT_MARK + ("am" if hour < 12 else "pm")


def _minuted(hour: str) -> str:
    return hour if ":" in hour else f"{hour}:00"


# --- dates -----------------------------------------------------------------------------------------------------------


def _dates(parts: list[str]) -> list[str]:
    """'June 27', '27 June' and '27th of June' as '27 jun', '1841-06-27' as '27 jun 1841'.

    A month's name without a day or a year stays as it is.
    """
    if lexicon.MONTHS.keys().isdisjoint(parts) and not any("-" in part for part in parts):
        return parts
    dated: list[str] = []
    at = 0
    while at < len(parts):
        found, used = _date(parts[at : at + 3])
        dated.extend(found)
        at += used
    return dated


def _date(parts: Sequence[str]) -> tuple[tuple[str, ...], int]:
    """What the words start with, in one form, and how many of them it takes; the first word as it is when no date."""
    first, second, third = (*parts, "", "")[:3]
    day = _day(first)
    if first in lexicon.MONTHS and _day(second):
        return (DAY_MARK + _day(second), lexicon.MONTHS[first]), 2
    if day and second in lexicon.MONTHS:
        return (DAY_MARK + day, lexicon.MONTHS[second]), 2
    if day and second == "of" and third in lexicon.MONTHS:
        return (DAY_MARK + day, lexicon.MONTHS[third]), 3
    if first in lexicon.MONTHS and len(second) == 4 and second.isdecimal():
        return (lexicon.MONTHS[first],), 1
    iso = _ISO_DATE.fullmatch(first)
    if iso:
        return (DAY_MARK + iso.group(3).lstrip("0"), _MONTH_NAMES[int(iso.group(2)) - 1], iso.group(1)), 1
    return (first,), 1


def _day(word: str) -> str:
    ordinal = _ORDINAL.fullmatch(word)
    digits = ordinal.group(1) if ordinal else word
    return digits if digits.isascii() and digits.isdecimal() and 1 <= int(digits[:3]) <= 31 else ""


# --- phrases ---------------------------------------------------------------------------------------------------------

_PHRASES_FROM: Final = {
    start: tuple((old, new) for old, new in lexicon.PHRASES if old[0] == start)
    for start in {old[0] for old, _ in lexicon.PHRASES}
}


def _phrases(parts: list[str]) -> list[str]:
    if not any(_phrase_at(parts, at) for at, word in enumerate(parts) if word in _PHRASES_FROM):
        return parts
    phrased: list[str] = []
    at = 0
    while at < len(parts):
        found = _phrase_at(parts, at)
        phrased.extend(found[1] if found else (parts[at],))
        at += len(found[0]) if found else 1
    return phrased


def _phrase_at(parts: Sequence[str], at: int) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The set phrase that begins here, and what it is read as."""
    for old, new in _PHRASES_FROM.get(parts[at], ()):
        if tuple(parts[at : at + len(old)]) == old:
            before = parts[at - 1] if at else ""
            after = parts[at + len(old)] if at + len(old) < len(parts) else ""
            return (old, new) if _holds(old, before, after) else None
    return None


_OF_FIGURES: Final = frozenset({("no", "more", "than"), ("no", "less", "than"), ("no", "fewer", "than")})
_IN_ORDER: Final = lexicon.words("is are was were be been being am put keep kept all")


def _holds(old: Sequence[str], before: str, after: str) -> bool:
    """Whether a phrase says here what it is read as: 'no less than' before a figure, 'has got' before a thing."""
    if old in _OF_FIGURES:
        return after[:1].isdigit()
    if old == ("has", "got"):
        return not lexicon.is_participle(after)
    return old != ("in", "order", "to") or before not in _IN_ORDER
