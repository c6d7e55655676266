"""Whether a summary still says what its episodes say: every figure, date, identifier and name, and every episode (C9).

The check errs towards a person: what may be a name is one. It sees words, not meaning: a summary may keep every
specific, their order and every denial and still tell them wrong, which is why it stays at trust low. Lists hold
places, never words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from consolidation.compact.copies import Cut, cuts
from consolidation.compact.finding import Demand, Sort, Specific
from consolidation.compact.specifics import Text, present_key, read
from consolidation.compact.turning import Turned, turns
from consolidation.compact.words import EVERYDAY, GRAMMAR
from consolidation.guards.lexicon import words


@dataclass(frozen=True, slots=True)
class Lost:
    """A specific of a source that the summary does not keep."""

    source: int  # which source, from 0
    start: int  # in its text, in code points
    end: int
    sort: Sort
    cut: bool  # True: it may stand elsewhere in the summary, but a sentence that is nearly a copy lost it


@dataclass(frozen=True, slots=True)
class Invented:
    """A specific that the summary has from no source."""

    start: int  # in the summary, in code points
    end: int
    sort: Sort


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a summary lost and what it added; places and figures, never words."""

    specifics: int  # distinct specifics in the sources that have to be kept
    lost: tuple[Lost, ...]
    invented: tuple[Invented, ...]
    unmentioned: tuple[int, ...]  # sources that no sentence of the summary really mentions
    unnamed: tuple[int, ...]  # sources told by somebody as 'I' whose name the summary never says
    unread: tuple[int, ...]  # sources that cannot be checked: another language or script, or much too long
    unfounded: tuple[int, ...]  # sentences of the summary, from 0, that share next to nothing with any source
    turned: tuple[Turned, ...] = ()  # names that changed places, denials dropped or added

    @property
    def whole(self) -> bool:
        """True when nothing vanished and everything could be checked."""
        return not (self.lost or self.unmentioned or self.unnamed or self.unread)

    @property
    def faithful(self) -> bool:
        """True when the summary says nothing that no source says, as far as specifics, order and denials tell."""
        return not (self.invented or self.unfounded or self.turned)


_FIRST_PERSON: Final = words("i i'm i've i'd i'll me my mine myself we we're we've we'll us our")
_ROLES: Final = words("user assistant human agent system tool function operator bot ai")
_ENOUGH: Final = 1.5  # weight of shared words at which a sentence mentions a source
_SHARE: Final = 0.5  # for sources that say little: this much of all they say
_NOTHING_ELSE: Final = 0.8  # share of a sentence's words that are a source's
_FOUNDED: Final = 0.2  # share of a sentence's words that some source has


def coverage(
    *, sources: Sequence[str], summary: str, speakers: Sequence[str] = (), known: Iterable[str] = ()
) -> Coverage:
    """What vanished between the sources and their summary, and what no source says (C9, DESIGN 4).

    `speakers`: who says each source, parallel to the sources. `known`: texts that a summary may take specifics from and
    need not keep, such as the days of the episodes. Pure; equal texts lose nothing.
    """
    said = [read(source) for source in sources]
    told = read(summary)
    copies = cuts(said, told)
    turning = turns(said, told, speakers=[read(speaker) for speaker in speakers])
    lost = sorted(
        {*_gone(said, told), *_cut(copies.lost, said, told)}, key=lambda each: (each.source, each.start, each.end)
    )
    given = frozenset[str]().union(
        *(text.gives for text in said), *(read(text).gives for text in (*known, *speakers) if text)
    )
    return Coverage(
        specifics=len({need for text in said for each in _kept(text) for need in each.needs}),
        lost=tuple(sorted(lost, key=lambda each: (each.source, each.start, each.end))),
        invented=tuple(_invented(told, given, copies.gained)),
        unmentioned=_unmentioned(said, told),
        unnamed=tuple(_unnamed(said, told, speakers)),
        unread=tuple(
            at for at, text in enumerate(said) if not (text.readable and copies.complete and turning.complete)
        ),
        unfounded=tuple(_unfounded(told, given)),
        turned=turning.found,
    )


# --- what vanished ---------------------------------------------------------------------------------------------------


def _kept(text: Text) -> Iterator[Specific]:
    """The specifics that have to be somewhere in a summary."""
    return (each for each in text.specifics if each.demand is not Demand.NEARBY)


def _gone(said: Sequence[Text], told: Text) -> Iterator[Lost]:
    """Specifics that are nowhere in the summary, once per source."""
    for at, text in enumerate(said):
        listed: set[tuple[str, ...]] = set()
        for specific in _missing(text, told):
            if specific.needs not in listed:
                listed.add(specific.needs)
                yield Lost(at, *text.place(specific), specific.sort, cut=False)


def _missing(text: Text, told: Text) -> Iterator[Specific]:
    return (specific for specific in _kept(text) if not told.gives.issuperset(specific.needs))


def _cut(found: Iterable[Cut], said: Sequence[Text], told: Text) -> Iterator[Lost]:
    """What nearly copied sentences lost, but for what is gone altogether."""
    gone = {
        (at, word)
        for at, text in enumerate(said)
        for specific in _missing(text, told)
        for word in range(specific.first, specific.last + 1)
    }
    for cut in found:
        if (cut.source, cut.word) not in gone:
            word = said[cut.source].words[cut.word]
            yield Lost(cut.source, word.start, word.end, cut.sort, cut=True)


def _unnamed(said: Sequence[Text], told: Text, speakers: Sequence[str]) -> Iterator[int]:
    """Sources in the first person whose speaker the summary never names: nobody could tell whose word it was."""
    for at, (text, speaker) in enumerate(zip(said, speakers, strict=False)):
        names = {word.key for word in read(speaker).words} - _ROLES
        mine = any(word.lower in _FIRST_PERSON for word in text.words)
        if names and mine and names.isdisjoint(word.key for word in told.words):
            yield at


# --- what was added --------------------------------------------------------------------------------------------------


def _invented(told: Text, given: frozenset[str], denied: Iterable[Cut]) -> Iterator[Invented]:
    for specific in _kept(told):
        known = given.issuperset(specific.needs)
        if specific.sort is Sort.NAME and not known:  # what the sources write without a capital is no new name
            known = present_key(told.words[specific.first].key) in given
        if not known:
            yield Invented(*told.place(specific), specific.sort)
    for cut in denied:
        yield Invented(told.words[cut.word].start, told.words[cut.word].end, cut.sort)


def _unfounded(told: Text, given: frozenset[str]) -> Iterator[int]:
    for at, sentence in enumerate(told.sentences):
        content = _content(told, sentence)
        if len(content) > 1 and len(content & given) < _FOUNDED * len(content):
            yield at


# --- whom the sentences mention --------------------------------------------------------------------------------------


def _unmentioned(said: Sequence[Text], told: Text) -> tuple[int, ...]:
    """Sources that no sentence mentions: it has to share words that few other sources have.

    What the model says a sentence is about plays no part. A source that says nothing ('Thanks!') needs no mention.
    """
    contents = [_content(text, (0, len(text.words))) for text in said]
    holders = Counter(word for content in contents for word in content)
    sentences = [_content(told, sentence) for sentence in told.sentences]
    missing = []
    for at, content in enumerate(contents):
        weights = {word: _weight(word) / holders[word] for word in content}
        enough = min(_ENOUGH, _SHARE * sum(weights.values()))
        if content and not any(_mentions(sentence, content, weights, enough) for sentence in sentences):
            missing.append(at)
    return tuple(missing)


def _mentions(sentence: frozenset[str], content: frozenset[str], weights: Mapping[str, float], enough: float) -> bool:
    """Whether a sentence says enough of a source, or next to nothing else."""
    shared = content & sentence
    return sum(weights[word] for word in shared) >= enough or len(shared) >= max(3.0, _NOTHING_ELSE * len(sentence))


def _weight(word: str) -> float:
    """Everyday words say half as much."""
    return 0.5 if word[2:] in EVERYDAY else 1.0


def _content(text: Text, sentence: tuple[int, int]) -> frozenset[str]:
    """The words of a sentence that say something, in any form, and what its figures and names answer."""
    first, last = sentence
    found = {
        present_key(word.key)
        for word in text.words[first:last]
        if word.key not in GRAMMAR and word.lower not in GRAMMAR and not word.lower.startswith("i'")
    }
    for specific in text.specifics:
        if specific.demand is Demand.FIRM and first <= specific.first < last and specific.sort is not Sort.NAME:
            found.update(f"w:{need}" for need in specific.needs)
    return frozenset(found)
