"""The check on reference summaries that nobody here wrote: every figure, date and name that is taken out is missed.

The texts are read where they lie and never copied. What counts as a figure, date or name is decided here, by patterns
of their own, so that the check does not mark its own work.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Final

import pytest

from tests.jsonl import real

from .compacting import covered

Show = Callable[[str], None]


def words(text: str) -> frozenset[str]:
    """The words of a list written as prose."""
    return frozenset(text.split())


# Words that start a sentence without being a name; everything else with a capital is one.
STARTERS: Final = words(
    """
    the a an this that these those they he she it we you i both their his her its our your my at on in of by for to
    from with and but or so as if when while after before since during despite although though meanwhile however
    overall finally then there here all each every some many most both either neither one once also summary what who
    where why how is are was were do does did has have had will not no yes
    """
)
NUMBER_WORDS: Final = words(
    """
    one two three four five six seven eight nine ten eleven twelve thirteen fifteen twenty thirty forty fifty sixty
    hundred thousand first second third fourth fifth tenth half dozen once twice couple several
    """
)
TIME_WORDS: Final = words(
    """
    monday tuesday wednesday thursday friday saturday sunday january february march april june july august september
    october november december yesterday today tomorrow tonight weekend weekends morning afternoon evening night noon
    spring summer autumn winter day days week weeks month months year years hour hours minute minutes am pm ago last
    next upcoming recently daily weekly
    """
)
PHRASES: Final = re.compile(
    r"""\b\d{1,2}(?:st|nd|rd|th)?(?:\sof)?\s(?:January|February|March|April|May|June|July|August|September|October
    |November|December),?\s\d{4}|\b(?:January|February|March|April|May|June|July|August|September|October|November
    |December)\s\d{1,2}(?:st|nd|rd|th)?(?:,\s\d{4})?|\b\d{1,2}:\d\d\s?[ap]m
    |\b(?:last|next|this|past|few|two|three|four|a)\s(?:few\s)?(?:days?|weeks?|months?|years?|weekend|night|summer
    |Friday|Saturday|Monday|Tuesday)(?:\sago)?\b|(?:[A-Z][\w'’]+\s)+[A-Z][\w'’]+""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Found:
    """A specific of a summary, as this file reads it."""

    sort: str
    word: str
    start: int
    end: int
    chunk: tuple[int, int]  # with the marks around it


@cache
def summaries() -> tuple[str, ...]:
    lines = real("locomo_sessions.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(json.loads(line)["summary"] for line in lines)


def found_in(text: str) -> Iterator[Found]:
    """Every figure, date and name, word by word."""
    for match in re.finditer(r"\S+", text):
        word = match.group().strip(".,;:!?\"'()")
        if not word:
            continue
        start = match.start() + match.group().find(word)
        first = text[: match.start()].rstrip(" \"'")[-1:] in ("", ".", "!", "?", ":", "\n")
        sort = sort_of(word, first=first)
        if sort:
            yield Found(sort, word, start, start + len(word), match.span())


def sort_of(word: str, *, first: bool) -> str:
    parts = re.split(r"[-’']", word.lower())
    if re.search(r"\d", word) or not NUMBER_WORDS.isdisjoint(parts):
        return "number"
    if not TIME_WORDS.isdisjoint(parts):
        return "date"
    if re.search(r"[A-Z]", word) and parts[0] != "i" and not (first and parts[0] in STARTERS):
        return "name"
    return ""


def taken_out(text: str) -> Iterator[tuple[str, str, str]]:
    """(how, sort, the text without it) for every occurrence and every word, as the word alone and with its marks."""
    places: defaultdict[tuple[str, str], list[Found]] = defaultdict(list)
    for found in found_in(text):
        places[found.sort, found.word].append(found)
        yield "one occurrence", found.sort, text[: found.start] + text[found.end :]
        yield "one, with its marks", found.sort, text[: found.chunk[0]] + text[found.chunk[1] :].lstrip()
    for (sort, _word), occurrences in places.items():
        left = text
        for found in reversed(occurrences):
            left = left[: found.start] + left[found.end :]
        yield "every occurrence", sort, re.sub(r"\s+", " ", left)
    for match in PHRASES.finditer(text):
        yield "phrase", "phrase", text[: match.start()] + text[match.end() :]


def counted(outcomes: Counter[tuple[str, str, bool]]) -> str:
    """One line per way and sort: how many of how many were caught."""
    keys = sorted({(how, sort) for how, sort, _ in outcomes})
    rows = [(how, sort, outcomes[how, sort, True], outcomes[how, sort, False]) for how, sort in keys]
    return "\n".join(f"  {how:20} {sort:7} {hit:5} of {hit + miss:5}" for how, sort, hit, miss in rows)


@pytest.mark.slow
def test_whatever_is_taken_out_of_a_reference_summary_is_missed(show: Show) -> None:
    """C9: numbers, dates and names, every occurrence and each single one, over every line: all of them."""
    outcomes: Counter[tuple[str, str, bool]] = Counter()
    missed: list[int] = []
    for line, text in enumerate(summaries(), start=1):
        for how, sort, left in taken_out(text):
            caught = bool(covered(text, left).lost)
            outcomes[how, sort, caught] += 1
            if not caught:
                missed.append(line)
    total = sum(outcomes.values())
    noticed = sum(count for (*_, caught), count in outcomes.items() if caught)
    show(f"coverage check, {len(summaries())} reference summaries: {noticed} of {total} losses caught")
    show(counted(outcomes))
    assert len(summaries()) == 136
    assert total > 5_000
    assert not missed, f"lines {sorted(set(missed))}"


MASKS: Final = ("", "[REDACTED]", "___", "something")
CUTS: Final = (r"\b[A-Z]\w*", r"[A-Z][a-z]+", r"\d+", r"\d[\d:,.]*\d|\d")


def test_parts_of_words_and_masks_hide_nothing(show: Show) -> None:
    """Cut by patterns that split words ('17' of '17th'), removed or covered: a sample of every line."""
    random = Random(11)
    missed = total = 0
    for text in summaries():
        for pattern in CUTS:
            found = [match for match in re.finditer(pattern, text) if match.group().lower() not in STARTERS]
            for match in random.sample(found, min(2, len(found))):
                total += 1
                left = text[: match.start()] + random.choice(MASKS) + text[match.end() :]
                missed += not covered(text, left).lost
    show(f"coverage check, parts of words and masks: {total - missed} of {total} losses caught")
    assert total > 800
    assert missed == 0


def test_a_reference_summary_against_itself_reports_nothing(show: Show) -> None:
    """The other side: 136 summaries that lost nothing."""
    found = [covered(text, text) for text in summaries()]
    alarms = [at for at, each in enumerate(found) if not (each.whole and each.faithful)]
    show(f"coverage check, unchanged summaries with an alarm: {len(alarms)} of {len(found)}")
    assert not alarms


def sentences_of(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.!?])\s+(?=[A-Z])", text) if part]


def test_sentences_in_another_order_report_nothing() -> None:
    random = Random(7)
    for text in summaries():
        parts = sentences_of(text)
        found = covered(parts, " ".join(random.sample(parts, len(parts))))
        assert found.lost == ()
        assert found.unmentioned == ()


@pytest.mark.slow
def test_a_sentence_that_is_left_out_leaves_its_episode_unmentioned(show: Show) -> None:
    """Each sentence of a summary as an episode, and the summary without it."""
    caught = total = 0
    for text in summaries():
        parts = sentences_of(text)
        for at in range(len(parts) if len(parts) > 2 else 0):
            total += 1
            caught += at in covered(parts, " ".join(parts[:at] + parts[at + 1 :])).unmentioned
    show(f"coverage check, episodes that no sentence mentions: {caught} of {total} noticed")
    assert caught >= 0.98 * total


# --- controls that must fail -----------------------------------------------------------------------------------------


def digits_kept(source: str, summary: str) -> bool:
    """The naive check: every run of digits of the source stands in the summary."""
    return set(re.findall(r"\d+", source)) <= set(re.findall(r"\d+", summary))


def words_kept(source: str, summary: str) -> bool:
    """The less naive one: every word with a capital or a digit stands somewhere in the summary."""
    kept = set(re.findall(r"\w+", summary))
    return all(word in kept for word in re.findall(r"\w+", source) if re.search(r"[A-Z\d]", word))


def rate(check: Callable[[str, str], bool], how: str, sorts: tuple[str, ...]) -> float:
    outcomes = [
        not check(text, left)
        for text in summaries()
        for way, sort, left in taken_out(text)
        if way == how and sort in sorts
    ]
    return sum(outcomes) / len(outcomes)


def test_a_check_of_digits_alone_misses_the_names(show: Show) -> None:
    """The naive control: it would let nearly every name go."""
    share = rate(digits_kept, "every occurrence", ("name",))
    show(f"naive control, digits only: {share:.0%} of lost names noticed")
    assert share < 0.05
    assert rate(digits_kept, "every occurrence", ("number",)) > 0.5


def test_a_check_that_looks_for_a_word_anywhere_misses_single_losses(show: Show) -> None:
    share = rate(words_kept, "one occurrence", ("name",))
    show(f"naive control, anywhere: {share:.0%} of single lost names noticed")
    assert share < 0.5


def test_what_is_taken_out_is_what_this_file_says() -> None:
    """The patterns themselves, on words of our own."""
    text = "At 1:56 pm on 8 May 2023, Ann told the LGBTQ+ group. They left two weeks ago."
    assert [(found.sort, found.word) for found in found_in(text)] == [
        ("number", "1:56"),
        ("date", "pm"),
        ("number", "8"),
        ("name", "May"),
        ("number", "2023"),
        ("name", "Ann"),
        ("name", "LGBTQ+"),
        ("number", "two"),
        ("date", "weeks"),
        ("date", "ago"),
    ]
    assert "phrase" in {how for how, _, _ in taken_out(text)}
    assert "At 1:56 pm on 8 May 2023,  told the LGBTQ+ group. They left two weeks ago." in {
        left for _, _, left in taken_out(text)
    }
