"""Days, weeks, months and years that words name, from the day on which they were said (UTC).

'Yesterday', 'last Friday', 'two weeks ago' and '7 May' stand for the days they may mean; where a phrase may mean
several, all of them are kept, and a claim's date has to fit one. Nothing is guessed: what is not read here is no date.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import IntEnum
from functools import lru_cache
from typing import Final

from observations.extraction.wording import words
from observations.normalise import normalised


class Unit(IntEnum):
    """How exact a phrase is."""

    DAY = 1
    WEEK = 2  # seven days or fewer: a weekend, a few days
    MONTH = 3  # or a season
    YEAR = 4


@dataclass(frozen=True, slots=True)
class Span:
    """Days from the first to the last, both included."""

    first: date
    last: date
    unit: Unit

    def holds(self, other: Span) -> bool:
        """Whether another span lies in it: what is told may be less exact than what was said, never more."""
        return self.first <= other.first and other.last <= self.last


@dataclass(frozen=True, slots=True)
class When:
    """A phrase of a text and what it may mean."""

    start: int
    end: int
    spans: tuple[Span, ...]
    relative: bool  # counted from the day of the turn


@lru_cache(maxsize=1 << 10)
def whens(text: str, *, on: date) -> tuple[When, ...]:
    """The phrases of a text that name a time, in order, as somebody means them who says them on that day."""
    matches = ((match, form) for form in _FORMS for match in form.pattern.finditer(text))
    found: list[When] = []
    for match, form in sorted(matches, key=lambda pair: (pair[0].start(), -pair[0].end())):
        if found and match.start() < found[-1].end:
            continue
        if spans := _read(form, match, on):
            found.append(When(*match.span(), spans, form.relative))
    return tuple(found)


def _read(form: _Form, match: re.Match[str], on: date) -> tuple[Span, ...]:
    """What a phrase may mean; nothing where that day does not exist or lies outside the calendar."""
    try:
        return tuple(form.read(match, on))
    except (ValueError, OverflowError):
        return ()


def undated(*, claim: str, turn: str, on: date) -> bool:
    """Whether a claim names a time that neither stands in its turn nor follows from it and its day.

    A phrase may be less exact than the turn's ('in May' for 'on 7 May'), never more. The turn's own day may be named
    where it is only counted from: 'the Friday before 8 May', 'as of 8 May'.
    """
    said = whens(turn, on=on)
    known = [span for when in said for span in when.spans]
    for when in whens(claim, on=on):
        fits = any(told.holds(span) for told in when.spans for span in known)
        if not fits and not _repeated(claim[when.start : when.end], turn) and not _counted_from(claim, when, said, on):
            return True
    return not _recurring(claim) <= _day_names(turn)


def _repeated(phrase: str, turn: str) -> bool:
    """Whether the turn has the words of a phrase that says for how long, or names no day: June may be somebody."""
    plain = _FOR.sub("", phrase)
    bare = plain != phrase or not any(map(str.isdigit, phrase))
    return bare and f" {normalised(plain)} " in f" {normalised(turn)} "


def _counted_from(claim: str, when: When, said: Sequence[When], on: date) -> bool:
    """Whether a claim names the turn's own day for what the turn counts from it."""
    if not any(span.unit is Unit.DAY and span.first == on for span in when.spans):
        return False
    before = claim[: when.start]
    counts = any(each.relative for each in said) and _COUNTED_FROM.search(before)
    return bool(counts or _AS_OF.search(before))


def begins(*, claim: str, on: datetime) -> datetime | None:
    """Since when a claim holds, or when what it tells happened: the one past time that it names, if it is exact.

    Of a month or a year its first day. None where the claim names no time or several, a week, a time to come, or an
    end ('until May').
    """
    day = on.astimezone(UTC).date()
    found = whens(claim, on=day)
    chosen = tuple(when for when in found if _SINCE.search(claim[: when.start])) or found
    if len(chosen) != 1:
        return None
    [when] = chosen
    before = claim[: when.start]
    if _ENDING.search(before) or not (when.relative or _INTRODUCED.search(before)):
        return None
    firsts = {span.first for span in when.spans}
    if len(firsts) > 1 or any(span.unit is Unit.WEEK or span.first > day for span in when.spans):
        return None
    return datetime.combine(firsts.pop(), datetime.min.time(), UTC)


def masked(text: str, *, on: date) -> str:
    """The text with its times blanked: their figures are looked at as dates and not as numbers."""
    for when in whens(text, on=on):
        text = text[: when.start] + " " * (when.end - when.start) + text[when.end :]
    return text


_SINCE: Final = re.compile(r"\b(?:since|from)\s+(?:the\s+)?$", re.IGNORECASE)
_ENDING: Final = re.compile(r"\b(?:until|till|til|by|before|through|to|not)\s+(?:the\s+)?$", re.IGNORECASE)
_INTRODUCED: Final = re.compile(
    r"\b(?:on|in|since|from|during|of|at|early|late|mid|as of)[ -]+(?:the\s+)?$|[,(]\s*$", re.IGNORECASE
)
_AS_OF: Final = re.compile(r"\bas of\s+$", re.IGNORECASE)
_COUNTED_FROM: Final = re.compile(
    r"\b(?:before|prior to|preceding|after|following|of|around)\s+(?:the\s+)?$", re.IGNORECASE
)
_FOR: Final = re.compile(
    r"^(?:for|over|in|during)\s+(?:the\s+)?(?:(?:past|last)\s+)?|^the\s+(?:past|last)\s+", re.IGNORECASE
)


# --- the calendar ----------------------------------------------------------------------------------------------------

_MONTHS: Final = "january february march april may june july august september october november december".split()  # noqa: SIM905
_NAMES_OF_NUMBERS: Final = "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
_DAYS: Final = "monday tuesday wednesday thursday friday saturday sunday".split()  # noqa: SIM905
_MONTH_OF: Final = {form: at for at, name in enumerate(_MONTHS, 1) for form in (name, name[:3])} | {"sept": 9}
_DAY_OF: Final = {form: at for at, name in enumerate(_DAYS) for form in (name, name[:3])} | {
    "tues": 1,
    "thur": 3,
    "thurs": 3,
}
_SEASONS: Final = {"spring": (3, 5), "summer": (6, 8), "autumn": (9, 11), "fall": (9, 11), "winter": (12, 2)}


def _day(on: date, days: int = 0) -> Span:
    on += timedelta(days=days)
    return Span(on, on, Unit.DAY)


def _days(first: date, last: date) -> Span:
    return Span(first, last, Unit.WEEK)


def _month(year: int, month: int) -> Span:
    """A month; months below 1 and above 12 are those of other years."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    return Span(date(year, month, 1), date(year, month, monthrange(year, month)[1]), Unit.MONTH)


def _year(year: int) -> Span:
    return Span(date(year, 1, 1), date(year, 12, 31), Unit.YEAR)


def _season(name: str, year: int) -> Span:
    """A season by the year in which it begins."""
    first, last = _SEASONS[name]
    return Span(date(year, first, 1), _month(year, last if last > first else last + 12).last, Unit.MONTH)


def _week(on: date, weeks: int = 0) -> Iterator[Span]:
    """A week from Monday, and one from Sunday."""
    monday = on - timedelta(days=on.weekday()) + timedelta(weeks=weeks)
    sunday = on - timedelta(days=on.isoweekday() % 7) + timedelta(weeks=weeks)
    yield _days(monday, monday + timedelta(days=6))
    yield _days(sunday, sunday + timedelta(days=6))


def _weekend(on: date, weeks: int = 0) -> Span:
    saturday = on - timedelta(days=on.weekday()) + timedelta(days=5, weeks=weeks)
    return _days(saturday, saturday + timedelta(days=1))


def _shifted(on: date, unit: str, count: int) -> Span:
    """The day, month or year that many units away; a month or year is no more exact than itself."""
    if unit in ("day", "night"):
        return _day(on, count)
    if unit in ("week", "fortnight"):
        return _day(on, 7 * count * (2 if unit == "fortnight" else 1))
    if unit == "month":
        return _month(on.year, on.month + count)
    return _year(on.year + count * (10 if unit == "decade" else 1))


# --- phrases ---------------------------------------------------------------------------------------------------------

_NUMBERS: Final = {word: count for count, word in enumerate(_NAMES_OF_NUMBERS)} | {"a": 1, "an": 1, "twenty": 20}
_SOME: Final = {"few": (2, 7), "several": (3, 9), "couple": (2, 3)}
_N: Final = rf"(?P<n>\d{{1,3}}|(?:a\s+)?(?:few|couple(?:\s+of)?)|several|{'|'.join(_NUMBERS)})"
_UNIT: Final = r"(?P<unit>day|night|week|fortnight|month|year|decade)s?"
_MONTH: Final = rf"(?P<month>{'|'.join([*_MONTHS, 'sept', *(name[:3] for name in _MONTHS)])})\b\.?"
_FULL_DAY: Final = rf"(?P<day>{'|'.join(_DAYS)})"
_NAMED_DAY: Final = rf"(?P<day>{'|'.join(sorted(_DAY_OF, key=len, reverse=True))})\b\.?"
_D: Final = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
_Y: Final = r"(?P<y>(?:19|20)\d{2})"
_SEASON: Final = r"(?P<season>spring|summer|autumn|fall|winter)"


def _months_around(on: date, month: int, *, years: tuple[int, ...] = (-1, 0, 1)) -> Iterator[Span]:
    for year in years:
        yield _month(on.year + year, month)


def _iso(found: re.Match[str], _on: date) -> Iterator[Span]:
    yield _day(date(int(found["y"]), int(found["m"]), int(found["d"])))


def _calendar_day(found: re.Match[str], on: date) -> Iterator[Span]:
    """A day of a month; without a year the last one, the next one, or the one in this year."""
    month, day, year = _MONTH_OF[found["month"].lower()], int(found["d"]), found["y"]
    years = (int(year),) if year else (on.year - 1, on.year, on.year + 1)
    fitting = [date(each, month, day) for each in years if 1 <= day <= monthrange(each, month)[1]]
    before, after = [each for each in fitting if each <= on], [each for each in fitting if each > on]
    yield from map(_day, fitting if year else (*before[-1:], *after[:1]))


def _calendar_month(found: re.Match[str], on: date) -> Iterator[Span]:
    month, year = _MONTH_OF[found["month"].lower()], found["y"]
    yield from [_month(int(year), month)] if year else _months_around(on, month)


def _calendar_year(found: re.Match[str], _on: date) -> Iterator[Span]:
    """A year by itself; after a name ("Route 1966") it is a figure of the name."""
    if not _NAME_BEFORE.search(found.string[: found.start()]):
        yield _year(int(found["y"]))


_NAME_BEFORE: Final = re.compile(r"\b(?!In\b|Since\b|From\b|By\b|During\b|Until\b|The\b)[A-Z]\w*\s$")


def _calendar_season(found: re.Match[str], _on: date) -> Iterator[Span]:
    season, year = found["season"].lower(), int(found["y"])
    yield _season(season, year)
    if season == "winter":
        yield _season(season, year - 1)


def _near_day(found: re.Match[str], on: date) -> Iterator[Span]:
    yield _day(on, _NEAR[" ".join(found[0].lower().split())])


_NEAR: Final = {
    **dict.fromkeys(words("today tonight heute hoy aujourd'hui oggi hoje vandaag"), 0),
    **dict.fromkeys(("this morning", "this afternoon", "this evening"), 0),
    **dict.fromkeys(("yesterday", "yesterday morning", "yesterday afternoon", "yesterday evening", "last night"), -1),
    **dict.fromkeys(words("gestern ayer ieri ontem gisteren"), -1),
    **dict.fromkeys(("tomorrow", "tomorrow morning", "tomorrow afternoon", "tomorrow evening", "tomorrow night"), 1),
    **dict.fromkeys(words("demain domani amanhã"), 1),
    **dict.fromkeys(("the day before yesterday", "vorgestern"), -2),
    **dict.fromkeys(("the day after tomorrow", "übermorgen"), 2),
}


def _ago(found: re.Match[str], on: date) -> Iterator[Span]:
    yield from _away(found, on, -1)


def _ahead(found: re.Match[str], on: date) -> Iterator[Span]:
    yield from _away(found, on, 1)


def _away(found: re.Match[str], on: date, sign: int) -> Iterator[Span]:
    """That many units before or after; 'a few' is all that it may be."""
    count, unit = found["n"].lower().split(), found["unit"].lower()
    vague = next((_SOME[word] for word in count if word in _SOME), None)
    if vague is None:
        yield _shifted(on, unit, sign * (int(count[0]) if count[0].isdigit() else _NUMBERS[count[0]]))
        return
    ends = sorted((_shifted(on, unit, sign * each) for each in vague), key=lambda span: span.first)
    yield Span(ends[0].first, ends[1].last, max(Unit.WEEK, ends[0].unit))


def _for_long(found: re.Match[str], on: date) -> Iterator[Span]:
    """'For two weeks', 'the past month': from then until now, and since then."""
    for span in _away(found, on, -1):
        yield Span(span.first, on, max(Unit.WEEK, span.unit))
        yield span


def _beside(found: re.Match[str], on: date) -> Iterator[Span]:
    """'Last', 'this' or 'next' week, weekend, month, year or season."""
    step, unit = _STEPS[" ".join(found["which"].lower().split())], found["unit"].lower()
    if unit == "week":
        yield from _week(on, step)
        if step:
            yield _day(on, 7 * step)
    elif unit == "weekend":
        yield _weekend(on, step)
        if step > 0:  # 'next weekend' may be the coming one
            yield _weekend(on, 0)
    elif unit == "month":
        yield _month(on.year, on.month + step)
    elif unit == "year":
        yield _year(on.year + step)
    else:
        for year in (-1, 0, 1):
            season = _season(unit, on.year + year)
            if (step <= 0 and year <= 0 and season.first <= on) or (step >= 0 and year >= 0 and season.last >= on):
                yield season


_STEPS: Final = {
    **dict.fromkeys(("last", "past", "previous", "this past"), -1),
    "this": 0,
    **dict.fromkeys(("next", "coming", "this coming"), 1),
}


def _weekday(found: re.Match[str], on: date) -> Iterator[Span]:
    """A day of the week: of this week or beside it, as 'last' and 'next' say; without them the one on either side."""
    which = " ".join((found.groupdict().get("which") or "").lower().split())
    ahead = (_DAY_OF[found["day"].lower()] - on.weekday()) % 7
    monday = on - timedelta(days=on.weekday())
    step = _STEPS.get(which, 0)
    in_week = _day(monday, _DAY_OF[found["day"].lower()] + 7 * step)
    if step < 0:
        yield from {_day(on, ahead - 7), in_week}
    elif step > 0:
        yield from {_day(on, ahead or 7), in_week}
    else:
        yield from (_day(on, days) for days in (ahead - 7, ahead, ahead + 7)[: 3 if ahead == 0 else 2])


def _named_month(found: re.Match[str], on: date) -> Iterator[Span]:
    """'Last May' on a day in June may be this year's or last year's."""
    step, month = _STEPS[" ".join(found["which"].lower().split())], _MONTH_OF[found["month"].lower()]
    for span in _months_around(on, month):
        if (
            (step < 0 and span.first < on)
            or (step > 0 and span.last > on)
            or (step == 0 and span.first.year == on.year)
        ):
            yield span


def _ordinal_day(found: re.Match[str], on: date) -> Iterator[Span]:
    """'On the 5th': of this month or of one beside it."""
    day = int(found["d"])
    for month in (-1, 0, 1):
        whole = _month(on.year, on.month + month)
        if 1 <= day <= whole.last.day:
            yield _day(whole.first, day - 1)


@dataclass(frozen=True, slots=True)
class _Form:
    """A form that phrases take, and what they mean then."""

    pattern: re.Pattern[str]
    read: Callable[[re.Match[str], date], Iterator[Span]]
    relative: bool


def _form(pattern: str, read: Callable[[re.Match[str], date], Iterator[Span]], *, relative: bool = False) -> _Form:
    return _Form(re.compile(rf"(?<![\w.-])(?:{pattern})(?![\w-])", re.IGNORECASE), read, relative)


def _counted(pattern: str, read: Callable[[re.Match[str], date], Iterator[Span]]) -> _Form:
    return _form(pattern, read, relative=True)


_WHICH: Final = r"(?P<which>last|past|previous|this\s+past|this\s+coming|this|next|coming)"
_PART: Final = r"(?:\s+(?:morning|afternoon|evening|night))?"
_MAYBE_YEAR: Final = rf"(?:,?\s+(?:of\s+)?{_Y})?"
_PERIOD: Final = r"(?P<unit>weekend|week|month|year|spring|summer|autumn|fall|winter)"
_AFTER: Final = "|".join(
    rf"(?<=\b{word}[ -])"
    for word in ("in", "since", "by", "until", "till", "during", "of", "from", "early", "late", "mid", "for", "through")
)
_FORMS: Final = (
    _form(rf"{_Y}-(?P<m>\d\d)-(?P<d>\d\d)", _iso),
    _form(rf"(?:the\s+)?{_D}\s+(?:of\s+)?{_MONTH}{_MAYBE_YEAR}", _calendar_day),
    _form(rf"{_MONTH}\s+(?:the\s+)?{_D}{_MAYBE_YEAR}", _calendar_day),
    _form(rf"{_MONTH},?\s+(?:of\s+)?{_Y}", _calendar_month),
    _form(rf"(?:{_AFTER}){_MONTH}{_MAYBE_YEAR}(?!,?\s+\d)", _calendar_month),
    _form(rf"(?:the\s+)?{_SEASON}\s+(?:of\s+)?{_Y}", _calendar_season),
    _form(_Y, _calendar_year),
    _counted(
        "|".join(re.escape(each).replace(r"\ ", r"\s+") for each in sorted(_NEAR, key=len, reverse=True)), _near_day
    ),
    _counted(rf"(?:about\s+|around\s+|over\s+|almost\s+)?{_N}\s+{_UNIT}\s+(?:ago|back|earlier)", _ago),
    _counted(rf"(?:in|within)\s+(?:about\s+)?{_N}\s+{_UNIT}(?:'\s+time)?", _ahead),
    _counted(rf"{_N}\s+{_UNIT}\s+from\s+now", _ahead),
    _counted(rf"for\s+(?:the\s+)?(?:(?:past|last)\s+)?{_N}\s+{_UNIT}", _for_long),
    _counted(rf"(?:over\s+|in\s+|during\s+)?the\s+(?:past|last)\s+{_N}\s+{_UNIT}", _for_long),
    _counted(rf"(?:the\s+)?{_WHICH}\s+{_PERIOD}", _beside),
    _counted(rf"(?:the\s+)?{_WHICH}\s+{_NAMED_DAY}{_PART}", _weekday),
    _counted(rf"(?<!every )(?<!each ){_FULL_DAY}{_PART}", _weekday),
    _counted(rf"{_WHICH}\s+{_MONTH}", _named_month),
    _counted(rf"the\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)(?!\s+(?:of\s+)?{_MONTH})", _ordinal_day),
)

# --- days that come again --------------------------------------------------------------------------------------------

_AGAIN: Final = re.compile(
    rf"\b(?P<day>{'|'.join(_DAYS)})s\b|\b(?:every|each)\s+(?P<other>{'|'.join(_DAYS)})\b", re.IGNORECASE
)
_ANY_DAY: Final = re.compile(rf"\b(?P<day>{'|'.join(_DAYS)})s?\b", re.IGNORECASE)


def _recurring(text: str) -> frozenset[str]:
    """The days of 'on Mondays' and 'every Monday'."""
    return frozenset((found["day"] or found["other"]).lower() for found in _AGAIN.finditer(text))


def _day_names(text: str) -> frozenset[str]:
    return frozenset(found["day"].lower() for found in _ANY_DAY.finditer(text))
