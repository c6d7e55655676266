"""Swaps and denials made by rule in reference summaries that nobody here wrote, and how rarely those are objected to.

The texts are read where they lie and never copied (C9).
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from consolidation.compact.specifics import read
from consolidation.compact.turning import Turns, turns
from tests.jsonl import real

from .compacting import covered
from .test_coverage_on_sessions import sentences_of

Show = Callable[[str], None]

AUXILIARY: Final = re.compile(r"\b(?:was|were|is|are|has|have|had|will|can|could)\b (?!not\b)")
TAIL: Final = re.compile(r"(.*\S) (in|at|on|about|for|with|during|after) (\S.*)\.")
DROPPABLE: Final = re.compile(r"\b\w+(?:ly|ful|ive|ous) ")


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in real(name).read_text(encoding="utf-8").splitlines()]


@cache
def told() -> tuple[tuple[str, frozenset[str]], ...]:
    """Every sentence of the reference summaries, with the two who speak."""
    return tuple(
        (sentence, frozenset(row["speakers"]))
        for row in rows("locomo_sessions.jsonl")
        for sentence in sentences_of(row["summary"])
    )


def reworded(sentence: str) -> Iterator[str]:
    """The sentence as it is, without some of its words, and with its end first."""
    yield sentence
    yield DROPPABLE.sub("", sentence)
    tail = TAIL.fullmatch(sentence)
    if tail:
        yield f"{tail[2].capitalize()} {tail[3]}, {tail[1]}."


def swaps() -> Iterator[tuple[str, str]]:
    """Sentences with both names around something, and the names the other way round; not of 'Ann and Bob'."""
    for sentence, (one, other) in ((sentence, sorted(names)) for sentence, names in told()):
        name = re.compile(rf"\b({one}|{other})\b")
        joined = re.search(rf"\b(?:{one},? and {other}|{other},? and {one})\b", sentence)
        if {one, other} <= set(name.findall(sentence)) and not joined:
            yield sentence, name.sub(lambda found: other if found[1] == one else one, sentence)  # noqa: B023


def denials() -> Iterator[tuple[str, str]]:
    """A sentence and its denial, both ways round."""
    for sentence, _ in told():
        verb = AUXILIARY.search(sentence)
        if verb:
            denied = f"{sentence[: verb.end()]}not {sentence[verb.end() :]}"
            yield sentence, denied
            yield denied, sentence


def caught(pairs: Iterator[tuple[str, str]]) -> tuple[int, int, int]:
    """How many of how many were turned, and how many went to a person for any reason."""
    total = hits = persons = 0
    for source, turned in pairs:
        for summary in reworded(turned):
            total += 1
            found = covered(source, summary)
            hits += bool(found.turned)
            persons += not (found.whole and found.faithful)
    return hits, persons, total


def test_names_that_changed_places_in_a_reference_summary_are_seen(show: Show) -> None:
    hits, persons, total = caught(swaps())
    show(f"turned summaries, names swapped: {hits} of {total} seen as such, {persons} left to a person")
    assert total > 500
    assert hits >= 0.85 * total
    assert persons >= 0.9 * total


def test_denials_dropped_from_or_added_to_a_reference_summary_are_seen(show: Show) -> None:
    hits, persons, total = caught(denials())
    show(f"turned summaries, denials dropped or added: {hits} of {total} seen as such, {persons} left to a person")
    assert total > 500
    assert hits >= 0.7 * total
    assert persons >= 0.97 * total


def test_a_check_of_words_alone_misses_every_swap() -> None:
    """The naive control: both sides hold the same words."""
    assert all(set(re.findall(r"\w+", a)) == set(re.findall(r"\w+", b)) for a, b in swaps())


def test_reference_summaries_are_hardly_ever_objected_to(show: Show) -> None:
    """The other side: each against the turns that it sums up, and against itself in other words."""
    said: defaultdict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for row in rows("locomo_episodes.jsonl"):
        said[row["conversation"], row["session"]].append(row)
    alarms = Counter[bool]()
    for row in rows("locomo_sessions.jsonl"):
        spoken = sorted(said[row["conversation"], row["session"]], key=lambda turn: int(turn["seq"]))
        alarms[bool(against(spoken, row["summary"]).found)] += 1
    again = sum(bool(covered(sentence, other).turned) for sentence, _ in told() for other in reworded(sentence))
    show(f"turned summaries, false alarms: {alarms[True]} of {alarms.total()} summaries, {again} reworded sentences")
    assert alarms.total() == 136
    assert alarms[True] <= 3
    assert again == 0


def against(spoken: list[dict[str, Any]], summary: str) -> Turns:
    speakers = [read(turn["speaker"]) for turn in spoken]
    return turns([read(turn["text"]) for turn in spoken], read(summary), speakers=speakers)
