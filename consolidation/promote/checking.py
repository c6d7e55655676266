"""What is left of a model's reply once every item in it has been checked (R76, E9, C2, C3).

One bad item never sinks the good ones beside it, and whatever is refused is listed with its reason. A reply that cannot
be read is not the same as a reply that corroborates nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from consolidation.promote.asking import shown
from consolidation.promote.cluster import Cluster
from consolidation.promote.grounding import Told, denied, in_source, keyed, plainly, told
from observations.llm import ModelFailed
from observations.llm.reading import find_quote, json_in
from observations.normalise import clean, normalised

MAX_FACTS: Final = 40  # of one reply
MAX_TEXT: Final = 400  # characters of a fact
MAX_PART: Final = 200  # characters of a subject, predicate or object
MAX_QUOTE: Final = 1_000  # characters
MAX_QUOTES: Final = 400  # of one reply that are looked up
_JOINERS: Final = "\u200c\u200d"  # words of some scripts, and emoji, are written with them
_LABEL = re.compile(r"[0-9]{1,3}", re.ASCII)


class Why(StrEnum):
    """Why a part of a reply was refused. Words for people: they hold no memory text."""

    NOT_AN_OBJECT = "not an object"
    NO_TEXT = "no text"
    TOO_LONG = "text too long"
    TWICE = "said twice in one answer"
    TOO_MANY = "more facts than an answer may hold"
    BAD_KEY = "subject, predicate or object is no short text"  # the fact stays, without a key
    BAD_LABELS = "supported_by is not a list"
    BAD_LABEL = "a label that is not a whole number"
    UNKNOWN_LABEL = "a label that was not offered"
    LABEL_TWICE = "a label named twice"
    BAD_QUOTES = "quotes is not a list"
    BAD_QUOTE = "a quote without a label and words"
    NOT_NAMED = "a quote from an episode that supported_by does not name"
    TOO_MANY_QUOTES = "more quotes than an answer may hold"
    NO_QUOTE = "no quote for a named episode"
    NOT_THERE = "quoted words not found in the source"
    DENIED = "the quoted words are denied where they stand"
    NO_SUPPORT = "no supporting episode is left"
    NOT_IN_SOURCE = "not found in the source"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One part of a reply that does not count."""

    item: int  # the fact's place in the reply
    why: Why
    label: int | None = None  # the episode concerned, where there is one


@dataclass(frozen=True, slots=True)
class Support:
    """An episode that says a fact, and where its words stand, in code points."""

    episode: int  # id
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact that survived, with at least one supporting episode; how many it needs is for the policy."""

    index: int  # its place in the reply: two facts of the same episodes are two operations (E4)
    text: str
    key: tuple[str, str, str]
    support: tuple[Support, ...]  # by episode id
    plain: frozenset[int]  # the supporting episodes whose quoted words are about it and deny as much as it does
    keyed: bool  # its key is made of its own words; without one, there is nothing to doubt


@dataclass(frozen=True, slots=True)
class Checked:
    """A reply as far as it can be used."""

    facts: tuple[Fact, ...] = ()
    refused: tuple[Refusal, ...] = ()
    usable: bool = True  # False: the reply could not be read at all; ask again, a limited number of times
    why: str = ""  # one sentence, where it is not usable

    def counts(self) -> dict[str, int]:
        """How often each reason occurs."""
        return dict(sorted(Counter(refusal.why.value for refusal in self.refused).items()))


def read(*, reply: str, cluster: Cluster) -> Checked:
    """The facts of a reply about a cluster, each with the episodes whose quoted words were found. Never raises.

    A label may be a number or its digits as a string ("0"); true, null, 1.0, "-1" and what was not offered are refused.
    """
    try:
        answer = json_in(reply)
    except ModelFailed as failed:
        return Checked(usable=False, why=str(failed))
    items = _items(answer)
    if items is None:
        return Checked(usable=False, why="The model's answer cannot be used: it holds no list of facts.")
    reading = _Reading(cluster, tuple(shown(episode, cluster=cluster) for episode in cluster.episodes))
    for index, item in enumerate(items[:MAX_FACTS]):
        reading.take(index, item)
    reading.refused += [Refusal(index, Why.TOO_MANY) for index in range(MAX_FACTS, len(items))][:MAX_FACTS]
    return Checked(facts=tuple(reading.facts), refused=tuple(reading.refused))


def _items(answer: Any) -> list[Any] | None:
    """The list of facts: under 'facts', as the whole answer, as the only list of it, or one fact by itself (C2)."""
    if isinstance(answer, list):
        return answer
    if isinstance(answer.get("facts"), list):
        return list(answer["facts"])
    if isinstance(answer.get("text"), str):
        return [answer]
    lists = [value for value in answer.values() if isinstance(value, list)]
    return lists[0] if len(lists) == 1 and "facts" not in answer else None


@dataclass(slots=True)
class _Reading:
    """One reply while it is read."""

    cluster: Cluster
    shown: tuple[str, ...]  # what the model read of each episode
    facts: list[Fact] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    said: set[str] = field(default_factory=set)
    held_by: dict[int, Told] = field(default_factory=dict)  # by label, as far as anybody asked
    quotes: int = 0  # looked up so far

    def refuse(self, index: int, why: Why, label: int | None = None) -> None:
        """Note what does not count."""
        self.refused.append(Refusal(index, why, label))

    def take(self, index: int, item: Any) -> None:
        """Keep one item as a fact, or note why not."""
        if not isinstance(item, dict):
            return self.refuse(index, Why.NOT_AN_OBJECT)
        text = _line(item.get("text"))
        wording = normalised(text)
        if why := self._unfit(text, wording):
            return self.refuse(index, why)
        key = self._key(index, item)
        held = self._support(index, item, text)
        if not in_source(text=text, key=key, sources=[self._told(label) for label in held or self._labels_of_all()]):
            return self.refuse(index, Why.NOT_IN_SOURCE)
        if not held:
            return self.refuse(index, Why.NO_SUPPORT)
        self.said.add(wording)
        support = tuple(sorted(held.values(), key=lambda support: support.episode))
        plain = frozenset(held[label].episode for label in held if self._plain(label, held[label], text))
        self.facts.append(Fact(index, text, key, support, plain, keyed(text=text, key=key)))
        return None

    def _labels_of_all(self) -> range:
        return range(len(self.cluster.episodes))

    def _plain(self, label: int, support: Support, text: str) -> bool:
        return plainly(text=self.shown[label], start=support.start, end=support.end, fact=text)

    def _told(self, label: int) -> Told:
        if label not in self.held_by:
            self.held_by[label] = told(episode=self.cluster.episodes[label], shown=self.shown[label])
        return self.held_by[label]

    def _unfit(self, text: str, wording: str) -> Why | None:
        if not any(character.isalnum() for character in wording):
            return Why.NO_TEXT
        if len(text) > MAX_TEXT:
            return Why.TOO_LONG
        return Why.TWICE if wording in self.said else None

    def _key(self, index: int, item: Mapping[str, Any]) -> tuple[str, str, str]:
        """Subject, predicate and object, cleaned; all empty when one of them is no short text."""
        given = [item.get(name) for name in ("subject", "predicate", "object")]
        subject, predicate, value = (
            str(part) if isinstance(part, int) and not isinstance(part, bool) else part for part in given
        )
        parts = (_line(subject), _line(predicate), _line(value))
        odd = any(part is not None and not isinstance(part, str) for part in (subject, predicate, value))
        if odd or max(map(len, parts)) > MAX_PART:
            self.refuse(index, Why.BAD_KEY)
            return "", "", ""
        return parts

    def _support(self, index: int, item: Mapping[str, Any], text: str) -> dict[int, Support]:
        """By label, the named episodes in which quoted words stand."""
        labels = self._labels(index, item.get("supported_by"))
        failed: dict[int, Why] = {}
        held: dict[int, Support] = {}
        for label, words in self._quotes(index, item.get("quotes")):
            if label not in labels:
                self.refuse(index, Why.NOT_NAMED, label)
            elif label not in held:
                found = self._found(label, words, text)
                if isinstance(found, Support):
                    held[label] = found
                else:
                    failed[label] = found
        for label in labels:
            if label not in held:
                self.refuse(index, failed.get(label, Why.NO_QUOTE), label)
        return held

    def _labels(self, index: int, given: Any) -> list[int]:
        if not isinstance(given, list):
            self.refuse(index, Why.BAD_LABELS)
            return []
        labels: list[int] = []
        for one in given:
            label = _label(one)
            if label is None:
                self.refuse(index, Why.BAD_LABEL)
            elif not 0 <= label < len(self.cluster.episodes):
                self.refuse(index, Why.UNKNOWN_LABEL)
            elif label in labels:
                self.refuse(index, Why.LABEL_TWICE, label)
            else:
                labels.append(label)
        return labels

    def _quotes(self, index: int, given: Any) -> Iterator[tuple[int, str]]:
        if not isinstance(given, list):
            self.refuse(index, Why.BAD_QUOTES)
            return
        for one in given:
            label = _label(one.get("episode")) if isinstance(one, dict) else None
            words = one.get("words") if isinstance(one, dict) else None
            if label is None or not isinstance(words, str) or len(words) > MAX_QUOTE:
                self.refuse(index, Why.BAD_QUOTE)
            elif not 0 <= label < len(self.cluster.episodes):
                self.refuse(index, Why.UNKNOWN_LABEL)
            else:
                yield label, words

    def _found(self, label: int, words: str, text: str) -> Support | Why:
        self.quotes += 1
        if self.quotes > MAX_QUOTES:
            return Why.TOO_MANY_QUOTES
        source = self.shown[label]
        place = find_quote(words, source)
        if place is None:
            return Why.NOT_THERE
        if denied(text=source, start=place[0], fact=text):
            return Why.DENIED
        return Support(self.cluster.episodes[label].id, *place)


def _label(given: Any) -> int | None:
    """A label as a number; None for what is none: a float, true, null, a list, a signed or a spelt-out number."""
    if isinstance(given, str) and _LABEL.fullmatch(given.strip()):
        return int(given)
    return given if isinstance(given, int) and not isinstance(given, bool) else None


def _line(given: Any) -> str:
    """A model's text as one line that can be stored and hides nothing from a reviewer (F5); "" for what is no text."""
    if not isinstance(given, str):
        return ""
    return " ".join("".join(map(_seen, clean(given)[0])).split())


def _seen(character: str) -> str:
    """Control characters as spaces; invisible, private and unassigned ones left out, but for joiners inside words."""
    category = unicodedata.category(character)
    if category == "Cc":
        return " "
    return "" if category[0] == "C" and character not in _JOINERS else character
