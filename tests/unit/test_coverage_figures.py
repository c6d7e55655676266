"""Which numbers, days, times and identifiers a text holds, and which spellings are the same (C9)."""

from __future__ import annotations

import pytest

from consolidation.compact import Sort

from .compacting import covered, firm, gives, lost_words, needs, specifics


def same(a: str, b: str) -> bool:
    """Whether each text answers all that the other needs."""
    return needs(a) <= gives(b) and needs(b) <= gives(a) and bool(needs(a))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("it took 38 s", "it took 38 seconds"),
        ("it took 38s", "it took 38 sec"),
        ("twenty-one apples", "21 apples"),
        ("two hundred and five rows", "205 rows"),
        ("a hundred people", "100 people"),
        ("3 thousand users", "3,000 users"),
        ("12,400 rows", "12400 rows"),
        ("30%", "30 percent"),
        ("30 %", "thirty per cent"),
        ("$5", "five dollars"),
        ("€40,000", "40000 euros"),
        ("USD 20", "$20"),
        ("$1.2 million", "1.2 million dollars"),
        ("$3M", "3 million dollars"),
        ("5 km", "5 kilometres"),
        ("5km", "five kilometers"),
        ("a two-week trip", "a trip of 2 weeks"),
        ("a 25-year-old", "25 years old"),
        ("the 10th", "the tenth"),
        ("her second dog", "her 2nd dog"),
    ],
)
def test_a_number_is_the_same_in_digits_and_words_and_with_any_name_of_its_unit(a: str, b: str) -> None:
    assert same(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("38 s", "38 min"),
        ("38 s", "38"),
        ("5 km", "5 miles"),
        ("$5", "€5"),
        ("$5", "5"),
        ("30%", "30"),
        ("-5 degrees", "5 degrees"),
        ("10", "10th"),
        ("1.5", "15"),
        ("3.10", "3.1"),
        ("2 million", "2"),
        ("1200", "1,200.5"),
        ("half", "third"),
        ("twice", "thrice"),
        ("1990s", "1990"),
    ],
)
def test_another_unit_sign_or_value_is_another_number(a: str, b: str) -> None:
    assert not same(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("on 8 May 2023", "on May 8, 2023"),
        ("on 8 May 2023", "on the 8th of May 2023"),
        ("on 8 May 2023", "on 2023-05-08"),
        ("on 8 May 2023", "on 8-May-2023"),
        ("September 14th", "14 Sept"),
        ("at 1:56 pm", "at 1:56 PM"),
        ("at 1:56 pm", "at 13:56"),
        ("at 1:56 pm", "at 1:56p.m."),
        ("at 2 p.m.", "at 14:00"),
        ("at 5pm", "at 5 p.m."),
        ("at 2 o'clock", "at 2:00"),
        ("at 0:30", "at 12:30 am"),
        ("on Friday", "on Fridays"),
        ("on Friday", "on Fri"),
        ("last Friday", "last friday"),
        ("two weeks ago", "2 weeks ago"),
        ("in mid-June", "in mid June"),
        ("past few years", "past few years"),
        ("in the morning", "in the mornings"),
    ],
)
def test_a_day_or_time_is_the_same_however_it_is_written(a: str, b: str) -> None:
    assert same(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("on 8 May", "on 9 May"),
        ("on 8 May", "on 8 June"),
        ("on 8 May", "in May, 8 came"),
        ("on 8 May 2023", "on 8 May 2024"),
        ("at 1:56 pm", "at 1:56 am"),
        ("at 1:56 pm", "at 1:56"),
        ("at 14:05", "at 2:05"),
        ("last week", "next week"),
        ("last week", "last month"),
        ("last Friday", "on Friday"),
        ("two weeks ago", "two weeks"),
        ("two weeks ago", "two weeks later"),
        ("a week ago", "last week"),
        ("in mid-June", "in June"),
        ("early 2022", "late 2022"),
        ("yesterday", "today"),
        ("in summer", "in winter"),
        ("yesterday morning", "yesterday evening"),
        ("weekly", "daily"),
    ],
)
def test_another_day_or_time_is_another_date(a: str, b: str) -> None:
    assert not same(a, b)


@pytest.mark.parametrize(
    ("source", "summary"),
    [
        ("in June", "on 27 June"),
        ("on the 27th", "on 27 June"),
        ("at 1:56", "at 1:56 pm"),
        ("at 03:12", "at 3:12 am"),
        ("38", "38 s"),
        ("on Friday", "last Friday"),
        ("in 2023", "on 2023-05-08"),
        ("two weeks", "two weeks ago"),
    ],
)
def test_who_says_more_says_the_less_too(source: str, summary: str) -> None:
    assert needs(source) <= gives(summary)
    assert not needs(summary) <= gives(source) or source == "at 03:12"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("On 8 May 2023 at 1:56 pm they met", ["8 May", "2023", "1:56 pm"]),
        ("two weeks ago she left", ["two weeks", "two weeks ago"]),
        ("a few days ago she left", ["few days ago"]),
        ("in the past few years", ["past few years"]),
        ("a couple of weeks later", ["couple of weeks later"]),
        ("they met for the first time", ["first time"]),
        ("early June, mid-2022 and late 1990s", ["early June", "mid-2022", "late 1990s"]),
        ("Every Sunday at noon", ["Every Sunday", "noon"]),
        ("from 10-15 minutes", ["10", "15 minutes"]),
        ("5 per cent", ["5 per cent"]),
        ("half of a dozen", ["half", "dozen"]),
    ],
)
def test_a_figure_covers_all_its_words(text: str, expected: list[str]) -> None:
    assert firm(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She has one dog", ["one"]),
        ("one of them", []),
        ("the one who left", []),
        ("no one left", []),
        ("another one left", []),
        ("First, they met", []),
        ("at first they met", []),
        ("the first ferry", ["first"]),
        ("a second later", ["second later"]),
        ("good morning", []),
        ("in the morning", ["morning"]),
        ("they may go", []),
        ("they fall asleep", []),
        ("in the fall", ["fall"]),
        ("a spring broke", []),
        ("he sat down", []),
        ("on Sat", ["Sat"]),
        ("they march on", []),
        ("the mark is high", []),
    ],
)
def test_a_word_that_only_looks_like_a_figure_is_none(text: str, expected: list[str]) -> None:
    found = [word for word, sort, demand in specifics(f"Well. {text}") if demand == "firm" and sort != "name"]
    assert found == expected


@pytest.mark.parametrize(
    "code",
    [
        "4417",
        "v1.2.3",
        "3.12.1",
        "E1042",
        "db-7",
        "GPT-4",
        "INV-2023-118",
        "ops@acme.example",
        "https://acme.example/issues/77",
        "/var/log/app.log",
        "src/main.py",
        "a1b2c3d4",
        "3f2a-99bc",
        "#7",
        "@sam",
        "snake_case",
        "C++",
        "5/8/2023",
        "24/7",
        "x86_64",
        "10.0.0.1",
        "deadbeef01",
        "555-0199",
    ],
)
def test_an_identifier_has_to_be_kept_to_the_letter(code: str) -> None:
    source = f"The team saw {code} there."
    assert lost_words(source, f"The team saw {code} there.") == []
    assert lost_words(source, "Something was seen by the team.") == [code]
    assert code in lost_words(source, source.replace(code, f"{code[:-1]}8{code[-1]}"))


def test_the_sort_of_a_specific_is_told() -> None:
    text = "Ann paid $5 on 8 May for v1.2 and did not smile"
    assert [(words, sort) for words, sort, _ in specifics(text)] == [
        ("Ann", "name"),
        ("$5", "number"),
        ("8 May", "date"),
        ("v1.2", "identifier"),
        ("not", "negation"),
    ]


def test_a_number_in_words_is_found_where_it_stands() -> None:
    source = "Kim counted two hundred and five ferries."
    assert lost_words(source, "Kim counted ferries all day long.") == ["two hundred and five"]


def test_a_figure_is_listed_once_per_source_and_for_every_source() -> None:
    sources = ["Build 4417 failed and build 4417 was retried.", "Then build 4417 passed."]
    lost = covered(sources, "A build failed, was retried and then passed.").lost
    assert [(each.source, each.start) for each in lost if each.sort is Sort.NUMBER] == [(0, 6), (1, 11)]


def test_full_width_and_other_digits_are_digits() -> None:
    assert needs("４２ km") == needs("42 km")
    assert same("٤٢ km", "42 km")
