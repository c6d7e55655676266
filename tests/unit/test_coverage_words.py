"""A text as words with their places: what every other reading of it stands on."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consolidation.compact.lexing import Word, key, sentences, words


def keys(text: str) -> list[str]:
    return [word.key for word in words(text)]


def starts(text: str) -> list[str]:
    """The words that start a sentence."""
    return [word.text for word in words(text) if word.starts]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ann met Bob.", ["ann", "met", "bob"]),
        ("Ann's dog, the Smiths' cat", ["ann", "dog", "the", "smiths", "cat"]),
        ("James’s trip and Sam’s", ["james", "trip", "and", "sam"]),
        ("they didn't and can't, cannot", ["they", "not", "and", "not", "not"]),
        ("two dogs, twenty cats", ["2", "dogs", "20", "cats"]),
        ("the first and the tenth", ["the", "1st", "and", "the", "10th"]),
        ("12,400 rows and 1,2 or 2022,2023", ["12400", "rows", "and", "1", "2", "or", "2022", "2023"]),
        ("$1,200 or €3.50", ["$1200", "or", "€3.50"]),
        ("30% of 5 %", ["30%", "of", "5 %"]),
        ("a 25-year-old on a two-week trip", ["a", "25", "year", "old", "on", "a", "2", "week", "trip"]),
        ("10-15 and 2019–2020", ["10", "15", "and", "2019", "2020"]),
        ("mid-June, hand-painted", ["mid", "june", "hand", "painted"]),
        ("Anne-Marie and LGBTQ-friendly", ["anne", "marie", "and", "lgbtq", "friendly"]),
        ("and/or his/her", ["and", "or", "his", "her"]),
        ("Ann/Bob", ["ann", "bob"]),
        ("U.S. and J.K. Rowling", ["us", "and", "jk", "rowling"]),
        ("at 1:56 pm or 2 p.m.", ["at", "1:56", "pm", "or", "2", "pm"]),
        ("It is -5 outside", ["it", "is", "-5", "outside"]),
        ("C++ and C# or F#", ["c++", "and", "c#", "or", "f#"]),
        ("", []),
        ("... — !!", []),
    ],
)
def test_words_are_compared_by_their_keys(text: str, expected: list[str]) -> None:
    assert keys(text) == expected


@pytest.mark.parametrize(
    "code",
    [
        "https://acme.example/a?b=1&c=2#d",
        "www.acme.example/x",
        "ops@acme.example",
        "/var/log/app.log",
        "~/notes.txt",
        "./run.sh",
        "C:\\logs\\a.txt",
        "2023-05-08",
        "2023-05-08T13:56:00Z",
        "GPT-4",
        "A-113",
        "COVID-19",
        "555-0199",
        "3f2a-99bc",
        "AT&T",
        "CS:GO",
        "v1.2.3",
        "3.12.1",
        "std::vector",
        "snake_case",
        "@sam",
        "#7",
        "bin/bash",
        "x86_64",
        "INV-2023-118",
        "1/2",
        "5/8/2023",
    ],
)
def test_a_code_is_one_word(code: str) -> None:
    found = words(f"see {code}, please")
    assert [word.text for word in found] == ["see", code, "please"]


@pytest.mark.parametrize("mark", [".", ",", "!", "?", ")", "...", '"', ";"])
def test_marks_around_a_word_are_not_part_of_it(mark: str) -> None:
    for word in ("Ann", "4417", "https://acme.example/x", "ops@acme.example", "v1.2"):
        assert words(f"({word}{mark} then")[0].text == word


def test_a_word_knows_its_place() -> None:
    text = "Ann paid — on 8 May — $1,200."
    assert [text[word.start : word.end] for word in words(text)] == ["Ann", "paid", "on", "8", "May", "$1,200"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ann left. Bob stayed! Why? Nobody knows", ["Ann", "Bob", "Why", "Nobody"]),
        ("Summary:\nAnn left", ["Summary", "Ann"]),
        ("- Ann left\n- Bob stayed", ["Ann", "Bob"]),
        ("* Ann\n• Bob", ["Ann", "Bob"]),
        ("note: Call Ann", ["note", "Call"]),
        ("Dr. Smith met Mrs. Jones", ["Dr"]),
        ("J.K. Rowling wrote it", ["J.K"]),
        ("at 5 p.m. Ann left", ["at"]),
        ('He read "The Hobbit." They left', ["He", "They"]),
        ('He said, "Come in."', ["He"]),
        ("Great 🎉 Ann won", ["Great", "Ann"]),
        ("It ended.Then it began", ["It", "Then"]),
        ("Wait… Ann?", ["Wait", "Ann"]),
    ],
)
def test_sentences_start_where_a_reader_would_say_so(text: str, expected: list[str]) -> None:
    assert starts(text) == expected


def test_sentences_are_ranges_of_words() -> None:
    assert sentences(words("Ann left. Bob stayed at home.")) == ((0, 2), (2, 6))
    assert sentences(words("")) == ()


def test_a_joined_word_never_starts_a_sentence() -> None:
    assert [(word.text, word.joined, word.starts) for word in words("Well-known")] == [
        ("Well", False, True),
        ("known", True, False),
    ]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("Caroline's", "caroline"),
        ("James'", "james"),
        ("Won’t", "not"),
        ("twelve", "12"),
        ("U.S", "us"),
        ("Ph.D", "phd"),
        ("1,200", "1200"),
        ("1,2", "1,2"),
        ("STRASSE", "strasse"),
        ("Ｆｕｌｌ", "full"),
        ("second", "second"),
    ],
)
def test_a_key_is_what_two_spellings_share(word: str, expected: str) -> None:
    assert key(word) == expected


@given(st.text(max_size=300))
def test_no_text_crashes_the_reading_and_every_word_is_where_it_says(text: str) -> None:
    found = words(text)
    assert all(text[word.start : word.end] == word.text != "" for word in found)
    assert all(left.end <= right.start for left, right in pairwise(found))
    assert sentences(found) == () or sentences(found)[-1][1] == len(found)


@given(st.lists(st.sampled_from(["Ann", "4417", "1:56", "pm", "mid-June", "v1.2", "$5", "don't", "U.S."]), max_size=8))
def test_words_between_spaces_do_not_change_each_other(parts: list[str]) -> None:
    together = [word.text for word in words(" ".join(parts))]
    assert together == [word.text for part in parts for word in words(part)]


@pytest.mark.parametrize(
    "text",
    ["a-" * 20_000, "a." * 20_000, "1," * 20_000, "/a" * 20_000, "a@" * 20_000, "'" * 50_000, "e\u0301" * 20_000],
)
def test_a_long_hostile_text_is_read_in_one_go(text: str) -> None:
    """No pattern goes back and forth over a text: each of these takes well under a second."""
    assert isinstance(words(text), tuple)


def test_a_word_is_a_value() -> None:
    assert words("Ann") == (Word("Ann", 0, 3, "ann", "ann", starts=True, joined=False),)
