"""Times that words name, from the day on which they were said; a claim's date has to follow from its turn's."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observations.extraction import dating
from observations.extraction.dating import Unit
from tests.unit.extracting import believed, verdict

MONDAY = date(2024, 4, 8)
LEAP = date(2024, 2, 29)
NEW_YEAR = date(2024, 1, 1)


def days(phrase: str, on: date = MONDAY) -> list[tuple[str, str]]:
    """First and last day of everything that one phrase may mean."""
    [when] = dating.whens(f"We met {phrase}.", on=on)
    return sorted({(str(span.first), str(span.last)) for span in when.spans})


def day(phrase: str, on: date = MONDAY) -> str:
    [(first, last)] = days(phrase, on)
    assert first == last
    return first


@pytest.mark.parametrize(
    ("phrase", "on", "expected"),
    [
        ("today", MONDAY, "2024-04-08"),
        ("this morning", MONDAY, "2024-04-08"),
        ("tonight", MONDAY, "2024-04-08"),
        ("yesterday", MONDAY, "2024-04-07"),
        ("Yesterday evening", MONDAY, "2024-04-07"),
        ("last night", MONDAY, "2024-04-07"),
        ("the day before yesterday", MONDAY, "2024-04-06"),
        ("tomorrow", MONDAY, "2024-04-09"),
        ("the day after tomorrow", MONDAY, "2024-04-10"),
        ("yesterday", NEW_YEAR, "2023-12-31"),
        ("tomorrow", LEAP, "2024-03-01"),
        ("yesterday", date(2024, 3, 1), "2024-02-29"),
        ("yesterday", date(2023, 3, 1), "2023-02-28"),
        ("two days ago", MONDAY, "2024-04-06"),
        ("2 days ago", MONDAY, "2024-04-06"),
        ("a week ago", MONDAY, "2024-04-01"),
        ("two weeks ago", MONDAY, "2024-03-25"),
        ("a fortnight ago", MONDAY, "2024-03-25"),
        ("3 weeks earlier", MONDAY, "2024-03-18"),
        ("in 2 days", MONDAY, "2024-04-10"),
        ("in a week", MONDAY, "2024-04-15"),
        ("in three weeks' time", MONDAY, "2024-04-29"),
        ("two days from now", MONDAY, "2024-04-10"),
        ("on 2024-02-29", MONDAY, "2024-02-29"),
        ("on 7 May 2023", MONDAY, "2023-05-07"),
        ("on the 7th of May, 2023", MONDAY, "2023-05-07"),
        ("on May 7, 2023", MONDAY, "2023-05-07"),
        ("on May 7th 2023", MONDAY, "2023-05-07"),
        ("on Sept. 3 2021", MONDAY, "2021-09-03"),
        ("gestern", MONDAY, "2024-04-07"),
        ("ayer", MONDAY, "2024-04-07"),
    ],
)
def test_a_phrase_that_means_one_day(phrase: str, on: date, expected: str) -> None:
    assert day(phrase, on) == expected


@pytest.mark.parametrize(
    ("phrase", "on", "expected"),
    [
        ("last Friday", MONDAY, [("2024-04-05", "2024-04-05")]),
        ("last Friday", date(2024, 4, 13), [("2024-04-05", "2024-04-05"), ("2024-04-12", "2024-04-12")]),
        ("next Friday", MONDAY, [("2024-04-12", "2024-04-12"), ("2024-04-19", "2024-04-19")]),
        ("this Friday", MONDAY, [("2024-04-05", "2024-04-05"), ("2024-04-12", "2024-04-12")]),
        ("on Friday night", MONDAY, [("2024-04-05", "2024-04-05"), ("2024-04-12", "2024-04-12")]),
        ("last Tues", MONDAY, [("2024-04-02", "2024-04-02")]),
        ("last Monday", MONDAY, [("2024-04-01", "2024-04-01")]),
        (
            "last week",
            MONDAY,
            [("2024-03-31", "2024-04-06"), ("2024-04-01", "2024-04-01"), ("2024-04-01", "2024-04-07")],
        ),
        ("last weekend", MONDAY, [("2024-04-06", "2024-04-07")]),
        ("this weekend", MONDAY, [("2024-04-13", "2024-04-14")]),
        ("last month", MONDAY, [("2024-03-01", "2024-03-31")]),
        ("last month", NEW_YEAR, [("2023-12-01", "2023-12-31")]),
        ("next month", date(2023, 12, 31), [("2024-01-01", "2024-01-31")]),
        ("next month", date(2024, 1, 31), [("2024-02-01", "2024-02-29")]),
        ("this year", MONDAY, [("2024-01-01", "2024-12-31")]),
        ("last year", LEAP, [("2023-01-01", "2023-12-31")]),
        ("two months ago", date(2024, 4, 30), [("2024-02-01", "2024-02-29")]),
        ("14 months ago", NEW_YEAR, [("2022-11-01", "2022-11-30")]),
        ("four years ago", LEAP, [("2020-01-01", "2020-12-31")]),
        ("a few days ago", MONDAY, [("2024-04-01", "2024-04-06")]),
        ("a couple of weeks ago", MONDAY, [("2024-03-18", "2024-03-25")]),
        ("in May 2023", MONDAY, [("2023-05-01", "2023-05-31")]),
        ("in May", MONDAY, [("2023-05-01", "2023-05-31"), ("2024-05-01", "2024-05-31"), ("2025-05-01", "2025-05-31")]),
        ("on May 7", MONDAY, [("2023-05-07", "2023-05-07"), ("2024-05-07", "2024-05-07")]),
        ("on 29 February", MONDAY, [("2024-02-29", "2024-02-29")]),
        ("on 8 April", MONDAY, [("2024-04-08", "2024-04-08"), ("2025-04-08", "2025-04-08")]),
        ("last May", date(2024, 6, 3), [("2023-05-01", "2023-05-31"), ("2024-05-01", "2024-05-31")]),
        ("next May", date(2024, 6, 3), [("2025-05-01", "2025-05-31")]),
        (
            "last summer",
            MONDAY,
            [("2023-06-01", "2023-08-31")],
        ),
        ("in the winter of 2022", MONDAY, [("2021-12-01", "2022-02-28"), ("2022-12-01", "2023-02-28")]),
        ("in 2019", MONDAY, [("2019-01-01", "2019-12-31")]),
        ("the 31st", MONDAY, [("2024-03-31", "2024-03-31"), ("2024-05-31", "2024-05-31")]),
    ],
)
def test_a_phrase_that_may_mean_more(phrase: str, on: date, expected: list[tuple[str, str]]) -> None:
    assert days(phrase, on) == expected


@pytest.mark.parametrize(
    "text",
    [
        "You may go 5 times.",
        "I sat in the sun.",
        "We wed there.",
        "31 February does not exist: on 31 February 2023",
        "on 2023-13-01",
        "Cyberpunk 2077 is great.",
        "the 1990s",
        "It has 2019km on it.",
        "second place",
        "march on",
    ],
)
def test_what_is_no_time_is_none(text: str) -> None:
    assert [when for when in dating.whens(text, on=MONDAY) if "31 Feb" not in text] == []


# Said on Monday 8 April 2024.
@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("I moved to Bonn yesterday.", "Ana moved to Bonn yesterday"),
        ("I moved to Bonn yesterday.", "Ana moved to Bonn on 7 April 2024"),
        ("I moved to Bonn yesterday.", "Ana moved to Bonn on Sunday, 7 April 2024"),
        ("I moved to Bonn yesterday.", "Ana moved to Bonn on 2024-04-07"),
        ("I moved to Bonn yesterday.", "Ana moved to Bonn in April 2024"),
        ("I moved to Bonn yesterday.", "Ana moved to Bonn in April"),
        ("I moved to Bonn yesterday.", "Ana moved to Bonn in 2024"),
        ("I moved to Bonn last Friday.", "Ana moved to Bonn on 5 April 2024"),
        ("I moved to Bonn last Friday.", "Ana moved to Bonn the Friday before 8 April 2024"),
        ("I moved to Bonn on Friday.", "Ana moved to Bonn on Friday"),
        ("I move to Bonn next month.", "Ana moves to Bonn in May 2024"),
        ("I move to Bonn in 2 days.", "Ana moves to Bonn on 10 April 2024"),
        ("I moved to Bonn two weeks ago.", "Ana moved to Bonn on 25 March 2024"),
        ("I moved to Bonn last year.", "Ana moved to Bonn in 2023"),
        ("I moved to Bonn on May 7, 2023.", "Ana moved to Bonn in May 2023"),
        ("I moved to Bonn on May 7, 2023.", "Ana moved to Bonn on the 7th of May 2023"),
        ("I have lived in Bonn for 4 years.", "Ana has lived in Bonn for 4 years"),
        ("I have lived in Bonn for 4 years.", "Ana has lived in Bonn since 2020"),
        ("I have 4 years in Bonn behind me.", "Ana lived in Bonn for 4 years"),
        ("I moved to Bonn.", "As of 8 April 2024 Ana moved to Bonn"),
        ("I play chess in Bonn on Mondays.", "Ana plays chess in Bonn every Monday"),
        ("June lives in Bonn with me, a gift from June.", "Ana has a gift from June in Bonn"),
    ],
)
def test_a_date_that_follows_from_the_turn_is_believed(words: str, text: str) -> None:
    assert verdict(words, text) == ""


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("I moved to Bonn.", "Ana moved to Bonn yesterday"),
        ("I moved to Bonn.", "Ana moved to Bonn on 8 April 2024"),
        ("I moved to Bonn.", "Ana moved to Bonn in 2019"),
        ("I moved to Bonn.", "Ana moved to Bonn last week"),
        ("I moved to Bonn yesterday.", "Ana moved to Bonn on 8 April 2024"),
        ("I moved to Bonn yesterday.", "Ana moved to Bonn on Monday, 7 April 2024"),
        ("I moved to Bonn yesterday.", "Ana moved to Bonn last month"),
        ("I moved to Bonn yesterday.", "Ana moved to Bonn on 7 April 2023"),
        ("I moved to Bonn last month.", "Ana moved to Bonn on 7 March 2024"),
        ("I moved to Bonn last week.", "Ana moved to Bonn on 2 April 2024"),
        ("I moved to Bonn last year.", "Ana moved to Bonn in May 2023"),
        ("I moved to Bonn last Friday.", "Ana moved to Bonn on 29 March 2024"),
        ("I moved to Bonn in 2019.", "Ana moved to Bonn on 3 May 2019"),
        ("I moved to Bonn in 2019.", "Ana moved to Bonn in 2018"),
        ("I moved to Bonn on Friday.", "Ana moved to Bonn on Thursday"),
        ("I play chess in Bonn.", "Ana plays chess in Bonn on Mondays"),
        ("I play chess in Bonn on Mondays.", "Ana plays chess in Bonn every Friday"),
        ("I have 4 years in Bonn behind me.", "Ana lived in Bonn 4 years ago"),
    ],
)
def test_a_date_that_does_not_follow_is_refused(words: str, text: str) -> None:
    assert verdict(words, text) == "DATE"


def test_the_day_of_a_turn_is_that_of_utc() -> None:
    late = datetime(2024, 4, 7, 23, 30, tzinfo=timezone(timedelta(hours=-5)))  # Monday in UTC
    assert verdict("I moved to Bonn yesterday.", "Ana moved to Bonn on 7 April 2024", at=late) == ""


@pytest.mark.parametrize(
    ("words", "text", "since"),
    [
        ("I moved to Bonn yesterday.", "Ana moved to Bonn yesterday", "2024-04-07"),
        ("I moved to Bonn yesterday.", "Ana moved to Bonn on 7 April 2024", "2024-04-07"),
        ("I moved to Bonn in May 2023.", "Ana moved to Bonn in May 2023", "2023-05-01"),
        ("I moved to Bonn in 2019.", "Ana moved to Bonn in 2019", "2019-01-01"),
        ("I lived in Bonn from 2015 to 2019.", "Ana lived in Bonn from 2015 to 2019", "2015-01-01"),
        ("I have lived in Bonn since 2019.", "Ana has lived in Bonn since 2019", "2019-01-01"),
        ("I moved to Bonn last Friday.", "Ana moved to Bonn last Friday", "2024-04-05"),
        ("I moved to Bonn.", "Ana moved to Bonn", ""),
        ("I moved to Bonn last week.", "Ana moved to Bonn last week", ""),
        ("I move to Bonn tomorrow.", "Ana moves to Bonn tomorrow", ""),
        ("I move to Bonn next month.", "Ana moves to Bonn in May 2024", ""),
        ("I lived in Bonn until 2019.", "Ana lived in Bonn until 2019", ""),
        ("I moved to Bonn in May.", "Ana moved to Bonn in May", ""),
        ("I met Bo in 2015 and Cy in 2019.", "Ana met Bo in 2015 and Cy in 2019", ""),
    ],
)
def test_a_claim_that_names_one_exact_past_time_is_valid_from_it(words: str, text: str, since: str) -> None:
    found = believed(words, text).valid_from
    assert (str(found.date()) if found else "") == since
    assert found is None or found.tzinfo is UTC


ANY_DAY = st.dates(date(1990, 1, 1), date(2060, 12, 31))


@given(ANY_DAY, st.integers(1, 99), st.sampled_from(["day", "week", "month", "year"]))
def test_what_is_ago_lies_before_and_what_is_ahead_after(on: date, count: int, unit: str) -> None:
    [ago] = dating.whens(f"{count} {unit}s ago", on=on)
    [ahead] = dating.whens(f"in {count} {unit}s", on=on)
    assert all(span.first <= span.last < on for span in ago.spans)
    assert all(on < span.first <= span.last for span in ahead.spans)
    if unit in ("day", "week"):
        length = timedelta(days=count * (7 if unit == "week" else 1))
        assert [span.first for span in (*ago.spans, *ahead.spans)] == [on - length, on + length]
    else:
        assert {span.unit for span in (*ago.spans, *ahead.spans)} == {Unit.MONTH if unit == "month" else Unit.YEAR}


@given(ANY_DAY, st.sampled_from(["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]))
def test_a_named_day_is_that_day_of_the_week_within_two_weeks(on: date, name: str) -> None:
    for which, sides in (("last", {-1}), ("next", {1}), ("", {-1, 0, 1})):
        [when] = dating.whens(f"{which} {name}", on=on)
        for span in when.spans:
            away = (span.first - on).days
            assert f"{span.first:%A}".lower() == name
            assert abs(away) <= 14
            assert (away > 0) - (away < 0) in sides


@given(ANY_DAY, ANY_DAY)
def test_a_whole_date_is_itself_on_every_day(on: date, named: date) -> None:
    for form in (f"{named:%Y-%m-%d}", f"{named.day} {named:%B %Y}", f"{named:%B} {named.day}, {named.year}"):
        [when] = dating.whens(f"It was on {form}.", on=on)
        assert [(span.first, span.last) for span in when.spans] == [(named, named)]


@given(ANY_DAY, ANY_DAY)
def test_a_date_without_its_year_is_the_one_before_or_after(on: date, named: date) -> None:
    found = dating.whens(f"on {named.day} {named:%B}", on=on)
    if (named.month, named.day) != (2, 29):
        assert {span.first.year for span in found[0].spans} <= {on.year - 1, on.year, on.year + 1}
        assert len(found[0].spans) == 2
    for when in found:
        assert all((span.first.month, span.first.day) == (named.month, named.day) for span in when.spans)


@given(st.text(max_size=120), ANY_DAY)
def test_any_text_is_read_without_an_error(text: str, on: date) -> None:
    assert not dating.undated(claim=text, turn=text, on=on)
    assert len(dating.masked(text, on=on)) == len(text)
    dating.begins(claim=text, on=datetime(on.year, on.month, on.day, tzinfo=UTC))


_WORDS = (
    "yesterday last next in on May 7 2023 two weeks ago Friday the 5th of since for a few days 31 February summer 0 99 "
    "9999-99-99 this month before"
)
_PIECES = st.sampled_from([*_WORDS.split(), "0 months ago", "999 years ago", "in 999 years"])


@given(st.lists(_PIECES, max_size=12).map(" ".join), st.sampled_from([date.min, date.max, LEAP, NEW_YEAR, MONDAY]))
def test_words_of_time_in_any_order_are_read_without_an_error_at_both_ends_of_the_calendar(text: str, on: date) -> None:
    for when in dating.whens(text, on=on):
        assert when.spans
        assert all(span.first <= span.last for span in when.spans)
    assert not dating.undated(claim=text, turn=text, on=on)
