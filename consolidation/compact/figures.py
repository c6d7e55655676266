"""Numbers with their units, days, times of day and words of time, read from a text's words at one place."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, TypeAlias

from consolidation.compact.finding import Demand, Sort, Specific, firm, nearby
from consolidation.compact.lexing import Word
from consolidation.compact.words import (
    AMOUNTS,
    CURRENCIES,
    DAY_PARTS,
    GRAMMAR,
    HOW_OFTEN,
    IN_THE,
    NEAR_DAYS,
    NEED_CAPITAL,
    PERIODS,
    ROUGH,
    SCALES,
    SEASONS,
    TIMELY,
    TURNED_TO,
)
from consolidation.guards import lexicon
from consolidation.guards.lexicon import words
from observations.normalise import tokens

Words: TypeAlias = Sequence[Word]
Reader: TypeAlias = Callable[[Words, int], Specific | None]

_FIGURE = re.compile(r"([$€£¥]?)([-+]?\d[\d.,:]*\d|[-+]?\d)(st|nd|rd|th|[a-zµ°]{0,3}|\s?[%‰€£$¥])")
_CLOCK = re.compile(r"(\d{1,2})(?:[:.](\d{2}))?(?:[:.]\d{2})?([ap]\.?m)?")
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[t ](\d\d):(\d\d))?.*")
_DECADE = re.compile(r"'?(?:[12]\d)?\d0s")
_YEAR = re.compile(r"1[5-9]\d\d|20\d\d")
_SHORT_UNITS: Final = {"s": "second", "h": "hour", "d": "day", "%": "%", "‰": "‰"}
_MERIDIEM: Final = {"am": "am", "pm": "pm", "a.m": "am", "p.m": "pm"}
_MONTHS: Final = lexicon.MONTHS
_MONTH_NAMES: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MODIFIERS: Final = TURNED_TO | IN_THE
_BEFORE_DAY_PART: Final = _MODIFIERS | NEAR_DAYS | lexicon.DAYS | words("at")
_SEASON_VERBS: Final = words("fall spring")
_BEFORE_SEASON: Final = _MODIFIERS | words("in the of during since until")
_NO_FIGURE_BEFORE_ONE: Final = words("the this that no any every each another which some good only as by such")
_OWNERS: Final = words("the a his her my their our its your")


def _lower(read: Words, at: int) -> str:
    """The word at a place, folded; empty outside the text."""
    return read[at].lower if 0 <= at < len(read) else ""


def _stays(read: Words, at: int) -> bool:
    """Whether the word at this place belongs to the sentence of the word before it."""
    return at < len(read) and not read[at].starts


def _touches(read: Words, at: int) -> bool:
    """Whether no more than a space stands between this word and the one before it."""
    return _stays(read, at) and read[at].start - read[at - 1].end <= 1


# --- days ------------------------------------------------------------------------------------------------------------


def iso_date(read: Words, at: int) -> Specific | None:
    """2023-05-08 and 2023-05-08T13:56: says what '8 May 2023' and '1:56 pm' say."""
    found = _ISO.fullmatch(read[at].lower)
    if found is None or not 1 <= int(found[2]) <= 12:
        return None
    month, day = _MONTH_NAMES[int(found[2]) - 1], str(int(found[3]))
    needs = [f"{day} {month}", found[1]]
    gives = {month, day, f"{day}th", read[at].lower}
    if found[4]:
        needs.append(_time(int(found[4]), found[5], ""))
    return Specific(Sort.DATE, Demand.FIRM, tuple(needs), frozenset(gives | set(needs)), at, at)


def day_of_month(read: Words, at: int) -> Specific | None:
    """'8 May', 'May 8th', 'the 8th of May' as one key, whichever comes first."""
    month = _month(read, at)
    if month and _touches(read, at + 1) and (day := _day(read, at + 1)):
        return _dated(day, month, at, at + 1)
    day = _day(read, at)
    after = at + 1 + (_lower(read, at + 1) == "of")
    if day and _touches(read, after) and (month := _month(read, after)):
        return _dated(day, month, at, after)
    return None


def _dated(day: str, month: str, first: int, last: int) -> Specific:
    return firm(Sort.DATE, f"{day} {month}", first, last, gives=(month, day, _ordinal(day)))


def _ordinal(day: str) -> str:
    return day + ("th" if day in ("11", "12", "13") else {"1": "st", "2": "nd", "3": "rd"}.get(day[-1], "th"))


def _day(read: Words, at: int) -> str:
    found = re.fullmatch(r"0?(\d{1,2})(?:st|nd|rd|th)?", read[at].key) if at < len(read) else None
    return str(int(found[1])) if found and 1 <= int(found[1]) <= 31 else ""


def _month(read: Words, at: int) -> str:
    """The month named here; short and ambiguous names need their capital."""
    if at >= len(read) or (read[at].key not in _MONTHS and read[at].lower not in _MONTHS):
        return ""
    name = read[at].key if read[at].key in _MONTHS else read[at].lower
    if name in NEED_CAPITAL and not read[at].text[0].isupper():
        return ""
    if name == "may" and read[at].starts and not _day(read, at + 1):
        return ""  # 'May I ...'; a name at the start of a sentence is read as one
    return _MONTHS[name]


def month_or_weekday(read: Words, at: int) -> Specific | None:
    """A month or weekday by itself, plural too."""
    named = _named_period(read, at)
    return firm(Sort.DATE, named, at) if named else None


def _named_period(read: Words, at: int) -> str:
    lower = read[at].key if at < len(read) else ""
    if lower in lexicon.DAYS and (lower not in NEED_CAPITAL or read[at].text[0].isupper()):
        return lower[:3]
    return _month(read, at)


def turned_to(read: Words, at: int) -> Specific | None:
    """'last week', 'next Friday', 'past few years', 'early June', 'mid-2022' as one key."""
    lead = _lower(read, at)
    if lead not in _MODIFIERS or not _stays(read, at + 1):
        return None
    last = at + 1
    rough = ""
    if _lower(read, last) in ("few", "couple", "several", "two", "three") and _stays(read, last + 1):
        rough = f"{read[last].key} "
        last += 1 + (_lower(read, last + 1) == "of")
    period = _period(read, last)
    if lead in IN_THE and not period and last < len(read) and re.fullmatch(r"'?\d{2,4}s?", read[last].key):
        period = read[last].key
    if not period or (lead == "this" and period == "second"):
        return None
    return firm(Sort.DATE, f"{lead} {rough}{period}", at, last, gives=(period,))


def _period(read: Words, at: int) -> str:
    if at >= len(read):
        return ""
    named = _named_period(read, at)
    return named or next((form for form in (read[at].key, read[at].key.removesuffix("s")) if form in PERIODS), "")


def ago(read: Words, at: int) -> Specific | None:
    """'a week ago', 'a few days ago', 'two weeks later', up to the word that says it."""
    if _lower(read, at) not in ("ago", "later", "earlier", "before") or at == 0 or read[at].starts:
        return None
    period = _period(read, at - 1) or _unit(_lower(read, at - 1))
    if period not in PERIODS:
        return None
    first = at - 1
    said = [period, _lower(read, at)]
    back = at - 2
    if _lower(read, back) == "of":
        back -= 1
    if back >= 0 and (_lower(read, back) in ("few", "couple", "several") or read[back].key.isdecimal()):
        said.insert(0, read[back].key)
        first = back
    return firm(Sort.DATE, " ".join(said), first, at, gives=(period,))


def word_of_time(read: Words, at: int) -> Specific | None:
    """Yesterday, weekly, at noon, in the morning, in summer; other words of time count in near copies only."""
    lower, before = read[at].key, _lower(read, at - 1)
    if lower in NEAR_DAYS | HOW_OFTEN or lower in ("noon", "midnight"):
        return firm(Sort.DATE, lower, at)
    singular = lower if lower in DAY_PARTS | SEASONS else lower.removesuffix("s")
    if singular in DAY_PARTS and (before in _BEFORE_DAY_PART or (before == "the" and _lower(read, at - 2) in _IN_ON)):
        return firm(Sort.DATE, singular, at)
    if singular in SEASONS and (singular not in _SEASON_VERBS or before in _BEFORE_SEASON):
        return firm(Sort.DATE, singular, at)
    return nearby(Sort.DATE, lower, at) if lower in TIMELY else None


_IN_ON: Final = words("in on over during")

# --- times of day ----------------------------------------------------------------------------------------------------


def clock(read: Words, at: int) -> Specific | None:
    """'1:56 pm', '13:56', '2 p.m.', '5pm', "2 o'clock": the same moment is the same key."""
    found = _CLOCK.fullmatch(read[at].key)
    if found is None or int(found[1]) > 24:
        return None
    half, last = (found[3] or "").replace(".", ""), at
    if not half and _stays(read, at + 1) and _lower(read, at + 1) in _MERIDIEM:
        half, last = _MERIDIEM[_lower(read, at + 1)], at + 1
    elif not half and _lower(read, at + 1) == "o'clock":
        return firm(Sort.DATE, f"{int(found[1])}:00", at, at + 1)
    if not half and (found[2] is None or ":" not in read[at].key):
        return None
    bare = f"{int(found[1])}:{found[2] or '00'}"
    need = _time(int(found[1]), found[2] or "00", half)
    early = (f"{bare} am",) if found[1][0] == "0" and not half else ()  # a leading zero counts from midnight
    return firm(Sort.DATE, need, at, last, gives=(bare, *early) if half or need == bare else ())


def _time(hour: int, minute: str, half: str) -> str:
    """With the half of the day where it is known; 'bare' hours from 1 to 12 may be of either."""
    if half:
        return f"{hour}:{minute} {half}"
    if hour == 0 or hour == 24:
        return f"12:{minute} am"
    return f"{hour - 12}:{minute} pm" if hour > 12 else f"{hour}:{minute}"


# --- numbers ---------------------------------------------------------------------------------------------------------


def number(read: Words, at: int) -> Specific | None:
    """A number in digits or words with its scale, unit or currency."""
    if _DECADE.fullmatch(read[at].key):
        return firm(Sort.DATE, read[at].key, at)
    if read[at].lower in CURRENCIES and _touches(read, at + 1):
        counted = number(read, at + 1)  # USD 20
        return counted and replace(counted, first=at)
    spelled = _spelled(read, at)
    if spelled is not None:
        value, last = spelled
        return _measured(read, value, "", at, last)
    found = _FIGURE.fullmatch(read[at].lower.replace(",", "") if read[at].key[:1].isdigit() else read[at].key)
    if found is None:
        return None
    sign, digits, tail = found[1], _plain(found[2]), found[3].strip()
    if tail in ("st", "nd", "rd", "th"):
        return firm(Sort.NUMBER, digits + tail, at)
    if sign or tail in CURRENCIES:
        scale = SCALES.get(tail, "")
        return _measured(read, digits, CURRENCIES.get(sign or tail, ""), at, at, scale=scale)
    return _measured(read, digits, _attached(tail), at, at)


def _attached(tail: str) -> str:
    return _SHORT_UNITS.get(tail, "") or lexicon.UNITS.get(tail, tail)


def _plain(digits: str) -> str:
    """ASCII digits without a plus."""
    return "".join(str(unicodedata.decimal(mark, mark)) for mark in digits.removeprefix("+"))


def _measured(read: Words, value: str, unit: str, first: int, last: int, *, scale: str = "") -> Specific:
    after = last + 1
    if not scale and _stays(read, after) and (word := _lower(read, after).removesuffix("s")) in _SCALE_WORDS:
        scale, after = word, after + 1
    if not unit and _stays(read, after):
        unit, used = _unit_after(read, after)
        after += used
    if not unit and first and _lower(read, first - 1) in CURRENCIES:
        unit = CURRENCIES[_lower(read, first - 1)]
    whole = " ".join(part for part in (value, scale, unit) if part)
    gives = [value, f"{value} {unit}", f"{value} {scale}"] if unit or scale else [value]
    if unit == "second" and value.endswith("0"):
        gives.append(f"{value}s")
    dated = not unit and not scale and _YEAR.fullmatch(value) is not None
    return firm(Sort.DATE if dated else Sort.NUMBER, whole, first, after - 1, gives=tuple(gives))


_SCALE_WORDS: Final = words("million billion trillion dozen hundred thousand")


def _unit_after(read: Words, at: int) -> tuple[str, int]:
    if _lower(read, at) == "per" and _lower(read, at + 1) == "cent":
        return "%", 2
    unit = _unit(_lower(read, at))
    return unit, int(bool(unit))


def _unit(word: str) -> str:
    return _SHORT_UNITS.get(word) or ("" if word in _MERIDIEM else lexicon.UNITS.get(word, ""))


def _spelled(read: Words, at: int) -> tuple[str, int] | None:
    """The value and last word of the longest number in words here: 'two hundred and five'; None: there is none."""
    scaled = read[at].key.isdecimal() and _lower(read, at + 1) in ("hundred", "thousand")  # 3 thousand
    if not (scaled or _counts(_lower(read, at))):
        return None
    best: tuple[str, int] | None = None
    said = ""
    for last in range(at, min(len(read), at + 8)):
        word = _lower(read, last)
        if last > at and (read[last].starts or not (_counts(word) or word == "and")):
            break
        said = f"{said} {word}" if said else (f"one {word}" if word in ("hundred", "thousand") else word)
        digits = tokens(said)
        if len(digits) == 1 and digits[0][:1].isdigit():
            best = digits[0], last
    return best


@lru_cache(maxsize=1 << 12)
def _counts(word: str) -> bool:
    """Whether a word without digits is a number word."""
    if word in ("hundred", "thousand"):
        return True
    return word.isalpha() and len(digits := tokens(word)) == 1 and digits[0][:1].isdigit()


def amount(read: Words, at: int) -> Specific | None:
    """Half, twice, dozens; one and first where they count; rough amounts in near copies only."""
    lower, before, after = read[at].lower, _lower(read, at - 1), _lower(read, at + 1)
    if lower in AMOUNTS:
        return firm(Sort.NUMBER, lower, at)
    if lower == "one":
        said = before in _NO_FIGURE_BEFORE_ONE or not _stays(read, at + 1) or after in GRAMMAR
        return nearby(Sort.NUMBER, "1", at) if said else None
    if lower == "first" and (read[at].starts or before == "at" or after == "of"):
        return nearby(Sort.NUMBER, "1st", at)
    if lower == "second" and before in _OWNERS and after not in ("ago", "later", "earlier"):
        return firm(Sort.NUMBER, "2nd", at, gives=("second",))
    if lower in ROUGH and not _counts(lower):
        return nearby(Sort.NUMBER, lower, at)
    return None


READERS: Final[tuple[Reader, ...]] = (
    day_of_month,
    turned_to,
    clock,
    ago,
    amount,
    number,
    month_or_weekday,
    word_of_time,
)
