"""Which word of some texts is which word of another: equal stretches, the longest first, in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Final, TypeAlias

from consolidation.compact.specifics import Text

Key: TypeAlias = "str | int"  # a number matches nothing

_STRETCHES: Final = (8, 5, 3, 2)  # words that a stretch has to have: long ones first, so that none takes their words
_PASSES: Final = 12  # each keeps the order; what stands in another order is left to the next
_WORK: Final = 10_000_000  # comparisons, about a second: only texts of thousands of words, or made to repeat, need more
_REACH: Final = 4  # words that may lie between a stretch and a single word that belongs to it


@dataclass(frozen=True, slots=True)
class Sentence:
    """A half-open range of a stream."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Stream:
    """The words of texts in a row; sentences never touch, so no stretch runs over their ends."""

    keys: list[str] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)  # (text, word)
    sentences: list[Sentence] = field(default_factory=list)
    holders: list[Sentence] = field(default_factory=list)  # per place, its sentence

    @classmethod
    def of(cls, texts: Sequence[Text], *, known: frozenset[str] | None = None, share: float = 0.0) -> Stream:
        """The sentences of texts; with `known`, only those of whose words that share is known."""
        stream = cls()
        for at, text in enumerate(texts):
            for first, last in text.sentences:
                keys = [word.key for word in text.words[first:last]]
                if known is None or sum(key in known for key in keys) >= share * len(keys):
                    begins = len(stream.keys)
                    stream.keys.extend(keys)
                    stream.places.extend((at, word) for word in range(first, last))
                    sentence = Sentence(begins, begins + len(keys))
                    stream.sentences.append(sentence)
                    stream.holders.extend([sentence] * len(keys))
        return stream


class Alignment:
    """Places of one stream and the places of the other that they are; every place is used once."""

    def __init__(self, there: Stream, here: Stream) -> None:
        self.there, self.here = there, here
        self.to: dict[int, int] = {}
        self.back: dict[int, int] = {}
        held = Counter(here.keys)
        self._each = sum(held[key] for key in there.keys) / max(1, len(there.keys))  # comparisons a word, on average
        self._work = 0.0

    @property
    def complete(self) -> bool:
        """False when the texts were too long or too repetitive to align."""
        return self._work <= _WORK

    def run(self, *, droppable: frozenset[int] = frozenset()) -> None:
        """Align. `droppable`: places of `there` that a short sentence may lack and still be the same sentence."""
        for least in _STRETCHES:
            for _ in range(_PASSES):
                before = len(self.to)
                self._pass(least)
                if len(self.to) == before:
                    break
            self._extend()
        self._short(droppable)

    def _match(self, there: int, here: int) -> None:
        self.to[there], self.back[here] = here, there

    def _pass(self, least: int) -> None:
        left, there = _open(self.there, self.to, -1)
        right, here = _open(self.here, self.back, -2)
        matcher: SequenceMatcher[Key] = SequenceMatcher(None, left, right, autojunk=False)
        waiting = [(0, len(left), 0, len(right))]
        while waiting:
            low, high, start, end = waiting.pop()
            self._work += (high - low) * max(1.0, self._each * (end - start) / max(1, len(right)))
            if not self.complete:
                return
            found = matcher.find_longest_match(low, high, start, end)
            if found.size < least:
                continue
            for step in range(found.size):
                self._match(there[found.a + step], here[found.b + step])
            waiting.append((low, found.a, start, found.b))
            waiting.append((found.a + found.size, high, found.b + found.size, end))

    def _extend(self) -> None:
        """Single words beside what is aligned already, nearest first, within both sentences."""
        waiting = list(self.to.items())
        while waiting:
            there, here = waiting.pop()
            for way in (1, -1):
                if there + way in self.to or here + way in self.back:
                    continue
                found = self._beside(there, here, way)
                if found is not None:
                    self._match(*found)
                    waiting.append(found)

    def _beside(self, there: int, here: int, way: int) -> tuple[int, int] | None:
        left = self._free(there, way, self.there, self.to)
        right = self._free(here, way, self.here, self.back)
        same = [
            (a + b, abs(a - b), at, to)
            for a, at in enumerate(left)
            for b, to in enumerate(right)
            if self.there.keys[at] == self.here.keys[to]
        ]
        return min(same)[2:] if same else None

    @staticmethod
    def _free(at: int, way: int, stream: Stream, taken: dict[int, int]) -> list[int]:
        """The next places that are not aligned, up to the first that is or the end of the sentence."""
        sentence = stream.holders[at]
        found: list[int] = []
        at += way
        while sentence.first <= at < sentence.last and at not in taken and len(found) < _REACH:
            found.append(at)
            at += way
        return found

    def _short(self, droppable: frozenset[int]) -> None:
        """Whole short sentences that differ by what may be dropped: 'Thanks, Sam!' and 'Thanks!'"""
        unused = list(self._unused())
        for sentence in self.there.sentences:
            places = range(sentence.first, sentence.last)
            if not self.to.keys().isdisjoint(places):
                continue
            plain = [at for at in places if at not in droppable]
            keys = [self.there.keys[at] for at in plain]
            same = next((run for run in unused if keys and [self.here.keys[at] for at in run] == keys), None)
            if same is not None:
                unused.remove(same)
                for at, to in zip(plain, same, strict=True):
                    self._match(at, to)

    def _unused(self) -> Iterator[range]:
        """Words of `here` in a row that align with nothing, from the start of a sentence or up to its end."""
        for sentence in self.here.sentences:
            taken = [at for at in range(sentence.first, sentence.last) if at in self.back]
            if not taken or taken[0] > sentence.first:
                yield range(sentence.first, taken[0] if taken else sentence.last)
            if taken and taken[-1] < sentence.last - 1:
                yield range(taken[-1] + 1, sentence.last)


def _open(stream: Stream, taken: dict[int, int], blank: Key) -> tuple[list[Key], list[int]]:
    """What is not aligned yet: keys with the place of each, and a blank for what is, and between sentences."""
    keys: list[Key] = []
    places: list[int] = []
    for sentence in stream.sentences:
        inside = range(sentence.first, sentence.last)
        if all(at in taken for at in inside):
            continue
        keys.extend(blank if at in taken else stream.keys[at] for at in inside)
        keys.append(blank)
        places.extend((*inside, -1))
    return keys, places
