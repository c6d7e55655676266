"""Sentences of a summary that are nearly copies, and what each of them lost on the way.

That a name stands somewhere else in the summary does not help the sentence that lost it: 'Ann told Bob' is not 'told
Bob'. So sources and summary are aligned word by word, and where the words around a specific are still together but the
specific is not among them, it was cut out. Rewritten sentences align too little to say anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from consolidation.compact.aligning import Alignment, Sentence, Stream
from consolidation.compact.finding import Demand, Sort, Specific
from consolidation.compact.specifics import Text, present_key
from consolidation.compact.words import STAND_INS

Marks: TypeAlias = Mapping[tuple[int, int], Specific]  # (text, word) -> the shortest specific that holds the word

_SHARED: Final = 0.5  # a sentence with fewer of its words in the summary is no copy
_AROUND: Final = 5  # words on each side of a gap that are looked at
_TOGETHER: Final = 4  # of them at least so many, or all there are, have to be in one place of the summary
_OTHERS: Final = 3  # a gap with more plain words than this is a shorter sentence, not a copy


@dataclass(frozen=True, slots=True)
class Cut:
    """A word that a nearly copied sentence lost, or a denial that it gained."""

    source: int  # which text
    word: int  # which word of it
    sort: Sort


@dataclass(frozen=True, slots=True)
class _Gap:
    """Words of one sentence that align with nothing, and where in the summary they would be."""

    low: int  # half-open, in the stream of the sources
    high: int
    start: int  # half-open, in the stream of the summary
    end: int
    beside: int  # an aligned word of the summary next to it, in the same sentence


@dataclass(frozen=True, slots=True)
class Copies:
    """What nearly copied sentences lost, and the denials they gained, each in order. Equal texts have neither."""

    lost: tuple[Cut, ...]
    gained: tuple[Cut, ...]
    complete: bool  # False: the texts were too long or too repetitive to be compared sentence by sentence


def cuts(sources: Sequence[Text], summary: Text) -> Copies:
    """The nearly copied sentences of a summary, against its sources."""
    here = Stream.of([summary])
    there = Stream.of(sources, known=frozenset(here.keys), share=_SHARED)
    marks = {(at, word): specific for at, text in enumerate(sources) for word, specific in _marks(text)}
    alignment = Alignment(there, here)
    alignment.run(droppable=frozenset(at for at, place in enumerate(there.places) if _is_droppable(marks.get(place))))
    if not alignment.complete:
        return Copies((), (), complete=False)
    asked = _Asked(alignment, summary, marks)
    lost = sorted(set(asked.lost()), key=lambda cut: (cut.source, cut.word))
    gained = sorted(set(asked.gained()), key=lambda cut: cut.word)
    return Copies(tuple(lost), tuple(gained), complete=True)


def _marks(text: Text) -> Iterator[tuple[int, Specific]]:
    """(word, specific) of every word that must not be cut out, the longest specifics first."""
    for specific in sorted(text.specifics, key=lambda each: each.first - each.last):
        for word in range(specific.first, specific.last + 1):
            yield word, specific


def _is_droppable(specific: Specific | None) -> bool:
    """False for plain words, and for everyday words whose capital may be their sentence's ('Thanks')."""
    return specific is not None and not (specific.sort is Sort.NAME and specific.demand is Demand.NEARBY)


class _Asked:
    """What the gaps of an alignment say was lost or gained."""

    def __init__(self, alignment: Alignment, summary: Text, marks: Marks) -> None:
        self.alignment, self.summary, self.marks = alignment, summary, marks
        self.there, self.here = alignment.there, alignment.here
        self.denials = {each.first for each in summary.specifics if each.sort is Sort.NEGATION}

    def lost(self) -> Iterator[Cut]:
        """Marked words of the sources that the summary cut out."""
        for gap, others in self._copied_gaps():
            marked = [place for place in self.there.places[gap.low : gap.high] if place in self.marks]
            excuse = self._excuse(gap, others=others) if marked else None
            for text, word in marked:
                if excuse and not excuse.allows(self.marks[text, word]):
                    yield Cut(text, word, self.marks[text, word].sort)

    def gained(self) -> Iterator[Cut]:
        """Denials that a copied sentence has and its source has not."""
        for gap, _others in self._copied_gaps():
            added = [word for word in self._added(gap) if word in self.denials]
            places = self.there.places[gap.low : gap.high]
            if added and not any(place in self.marks and self._denies(place) for place in places):
                yield from (Cut(0, word, Sort.NEGATION) for word in added)

    def _denies(self, place: tuple[int, int]) -> bool:
        return self.marks[place].sort is Sort.NEGATION

    def _added(self, gap: _Gap) -> list[int]:
        """The summary's words in a gap that align with nothing."""
        return [self.here.places[at][1] for at in range(gap.start, gap.end) if at not in self.alignment.back]

    # --- gaps --------------------------------------------------------------------------------------------------------

    def _copied_gaps(self) -> Iterator[tuple[_Gap, int]]:
        """The gaps of nearly copied sentences, also empty ones, each with the plain words that it lost."""
        for sentence in self.there.sentences:
            for gap in self._gaps(sentence):
                others = sum(place not in self.marks for place in self.there.places[gap.low : gap.high])
                added = len(self._added(gap))
                if others <= _OTHERS and added <= others + _OTHERS and self._is_together(gap, sentence):
                    yield gap, others

    def _gaps(self, sentence: Sentence) -> Iterator[_Gap]:
        to = self.alignment.to
        aligned = [at for at in range(sentence.first, sentence.last) if at in to]
        if not aligned:
            return
        if aligned[0] > sentence.first:
            start = to[aligned[0]]
            yield _Gap(sentence.first, aligned[0], self._back_from(start), start, start)
        for left, right in pairwise(aligned):
            start = to[left] + 1
            apart = not start <= to[right] <= start + _OTHERS + _AROUND  # the two sides went to different places
            if right > left + 1 or to[right] > start:
                yield _Gap(left + 1, right, start, self._on_from(start) if apart else to[right], to[left])
        if aligned[-1] < sentence.last - 1:
            end = to[aligned[-1]]
            yield _Gap(aligned[-1] + 1, sentence.last, end + 1, self._on_from(end + 1), end)

    def _back_from(self, at: int) -> int:
        """Where the words before this place begin that align with nothing, within their sentence."""
        first = self.here.holders[at].first
        while at > first and at - 1 not in self.alignment.back:
            at -= 1
        return at

    def _on_from(self, at: int) -> int:
        last = self.here.holders[at - 1].last
        while at < last and at not in self.alignment.back:
            at += 1
        return at

    def _is_together(self, gap: _Gap, sentence: Sentence) -> bool:
        """Whether the words around a gap are in one place of the summary too."""
        before = range(max(sentence.first, gap.low - _AROUND), gap.low)
        after = range(gap.high, min(sentence.last, gap.high + _AROUND))
        near = range(gap.start - _AROUND - 2, gap.end + _AROUND + 2)
        together = sum(self.alignment.to.get(at, -1) in near for at in (*before, *after))
        return together >= min(_TOGETHER, len(before) + len(after))

    # --- excuses -----------------------------------------------------------------------------------------------------

    def _excuse(self, gap: _Gap, *, others: int) -> _Excuse:
        """What the summary's sentence around the gap says in other words, or somewhere else."""
        sentence = self.here.holders[gap.beside]
        inside = range(sentence.first, sentence.last)
        spare = {self.here.places[at][1] for at in inside if at not in self.alignment.back}
        added = self._added(gap)
        source = self.there.holders[gap.low]
        said = {self.marks[at].needs for at in self.there.places[source.first : source.last] if at in self.marks}
        sources = {self.there.holders[self.alignment.back[at]] for at in inside if at in self.alignment.back}
        return _Excuse(
            here=self._given(set(added)),
            instead=tuple(each for each in self.summary.specifics if each.first in added and each.needs in said),
            spare=self._given(spare),
            whole=self._given({self.here.places[at][1] for at in inside}),
            pronoun=any(self.summary.words[word].key in STAND_INS for word in added),
            merged=len(sources) > 1 and bool(others or added),
        )

    def _given(self, chosen: set[int]) -> frozenset[str]:
        """What some words of the summary answer."""
        words = self.summary.words
        said = {key for word in chosen for key in (words[word].key, present_key(words[word].key))}
        for specific in self.summary.specifics:
            if not chosen.isdisjoint(range(specific.first, specific.last + 1)):
                said |= specific.gives | set(specific.needs)
        return frozenset(said)


@dataclass(frozen=True, slots=True)
class _Excuse:
    """Why a specific that is not in its place may be there all the same."""

    here: frozenset[str]  # what stands in its place says
    instead: tuple[Specific, ...]  # specifics in its place that the source's sentence has somewhere else
    spare: frozenset[str]  # what words of the sentence that align with nothing say: it moved
    whole: frozenset[str]  # what the whole sentence says
    pronoun: bool  # a pronoun stands in its place
    merged: bool  # two sentences became one, which names it once

    def allows(self, specific: Specific) -> bool:
        """Whether one of the excuses holds for this specific; two names that changed places have none."""
        keys = {key for need in specific.needs for key in (need, need.removeprefix("n:"))}
        if not keys.isdisjoint(self.here):
            return True
        if any(other.sort is specific.sort and keys.isdisjoint(other.needs) for other in self.instead):
            return False
        if not keys.isdisjoint(self.spare) or (self.merged and not keys.isdisjoint(self.whole)):
            return True
        return self.pronoun and specific.sort is Sort.NAME
