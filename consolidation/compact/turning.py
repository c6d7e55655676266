"""What a summary turned round: names that changed places around one deed, a denial that was dropped or added (C9).

Every specific may be kept and the claim still be another: 'Ann beat Bob' as 'Bob beat Ann', 'did not ship' as
'shipped'. Each sentence of a summary is compared with the sentences of the sources that say most of the same. An
objection needs a source that says the opposite and none that says what the summary does, so a free rewording passes;
what nobody wrote down in comparable words is not seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from consolidation.compact.clauses import Clause, Doing, Voices, clauses, doings, in_order, leading, names_of, stem_at
from consolidation.compact.specifics import Text


class Turn(StrEnum):
    """What was turned round. Words for people: they hold no memory text."""

    ORDER = "names in another order"
    DROPPED = "denial dropped"
    ADDED = "denial added"


@dataclass(frozen=True, slots=True, order=True)
class Turned:
    """One objection, with its place in a source and in the summary, in code points."""

    source: int  # which source, from 0
    start: int
    end: int
    at: int  # in the summary
    to: int
    turn: Turn


@dataclass(frozen=True, slots=True)
class Turns:
    """What was turned round, in order of the sources."""

    found: tuple[Turned, ...]
    complete: bool  # False: the texts repeat themselves too much to be compared clause by clause


_SHARE: Final = 0.6  # of the words that say something in the shorter of two clauses
_LEAST: Final = 2  # words that two clauses have to share
_WORK: Final = 200_000  # comparisons of two clauses or sentences: about a second

_ROLES: Final = frozenset("user assistant human agent system tool function operator bot ai".split())  # noqa: SIM905


def turns(sources: Sequence[Text], summary: Text, *, speakers: Sequence[Text] = ()) -> Turns:
    """What a summary turned round. `speakers`: who says each source, parallel to the sources."""
    compared = _Compared(sources, summary, voices=_voices(sources, speakers))
    found = {*compared.swapped(), *compared.dropped(), *compared.added()}
    return Turns(tuple(sorted(found)), complete=compared.work <= _WORK)


def _voices(sources: Sequence[Text], speakers: Sequence[Text]) -> list[Voices]:
    """'I' is the speaker; 'you' is the other one where two people speak."""
    named = [next((word.key for word in speaker.words if word.key not in _ROLES), "") for speaker in speakers]
    everybody = {name for name in named if name}
    others = {name: next(iter(everybody - {name}), "") if len(everybody) == 2 else "" for name in everybody}
    voices = [Voices(name, others.get(name, "")) for name in named]
    return [*voices, *[Voices()] * (len(sources) - len(voices))]


@dataclass(slots=True)
class _Compared:
    """Sources and summary, taken apart once."""

    sources: Sequence[Text]
    summary: Text
    voices: list[Voices]
    work: int = 0
    names: frozenset[str] = frozenset()
    people: frozenset[str] = frozenset()  # and what may be names at the start of a sentence
    leading: frozenset[str] = frozenset()  # those who begin a sentence, and the speakers
    told: list[Clause] = field(default_factory=list)
    said: list[tuple[int, Clause]] = field(default_factory=list)
    holding: Mapping[str, list[tuple[int, Clause]]] = field(default_factory=dict)
    keeping: Mapping[str, list[Clause]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read both sides."""
        speaking = {voice.me for voice in self.voices if voice.me}
        self.names = names_of([*self.sources, self.summary]) | speaking
        self.people = names_of([*self.sources, self.summary], perhaps=True) | speaking
        self.leading = leading([*self.sources, self.summary], names=self.people) | speaking
        self.told = list(clauses(self.summary, names=self.names))
        self.said = [(at, clause) for at, text in enumerate(self.sources) for clause in clauses(text, names=self.names)]
        holding, keeping = defaultdict[str, list[tuple[int, Clause]]](list), defaultdict[str, list[Clause]](list)
        for at, clause in self.said:
            for word in clause.content:
                holding[word].append((at, clause))
        for clause in self.told:
            for word in clause.content:
                keeping[word].append(clause)
        self.holding, self.keeping = holding, keeping

    def _afford(self, cost: int = 1) -> bool:
        self.work += cost
        return self.work <= _WORK

    # --- names -------------------------------------------------------------------------------------------------------

    def swapped(self) -> Iterator[Turned]:
        """Two names that some source has the other way round about one deed, and none this way.

        Looked at twice: with every name, and with those alone that begin a sentence, so that the names of what people
        speak of do not stand between them.
        """
        yield from self._swapped(self.people)
        yield from self._swapped(self.leading)

    def _swapped(self, names: frozenset[str]) -> Iterator[Turned]:
        said: defaultdict[tuple[str, str, str], list[tuple[int, Doing]]] = defaultdict(list)
        for at, text in enumerate(self.sources):
            for doing in doings(text, names=names, voices=self.voices[at]):
                said[doing.doer, doing.does, doing.other].append((at, doing))
        for doing in doings(self.summary, names=names):
            turned = said.get((doing.other, doing.does, doing.doer))
            if turned and (doing.doer, doing.does, doing.other) not in said and not self._told_so(doing):
                at, source = turned[0]
                yield self._turned(Turn.ORDER, at, (source.first, source.last), (doing.first, doing.last))

    def _told_so(self, doing: Doing) -> bool:
        return any(
            self._afford(len(text.words)) and in_order(text, doing, names=self.people, voices=self.voices[at])
            for at, text in enumerate(self.sources)
        )

    # --- denials -----------------------------------------------------------------------------------------------------

    def dropped(self) -> Iterator[Turned]:
        """What a source denies and the summary states, where no source states it."""
        for at, clause in self.said:
            for word, (first, last) in clause.denied.items():
                if clause.asks or any(clause.content & kept.shaded for kept in self._keeping(word)):
                    continue
                for kept in self._keeping(word):
                    if _alike(kept, clause) and not self._stated(word, kept, at_least=_shared(kept, clause)):
                        place = self._word(kept, self.summary, word)
                        yield self._turned(Turn.DROPPED, at, (first, last), (place, place))

    def added(self) -> Iterator[Turned]:
        """What the summary denies and a source states, where no source denies it or doubts it."""
        for kept in self.told:
            for word, (first, last) in kept.denied.items():
                sources = list(self._holding(word))
                if any(word in clause.shaded or clause.asks for _, clause in sources):
                    continue
                for at, clause in sources:
                    if _alike(kept, clause):
                        place = self._word(clause, self.sources[at], word)
                        yield self._turned(Turn.ADDED, at, (place, place), (first, last))
                        break

    def _stated(self, word: str, kept: Clause, *, at_least: int) -> bool:
        """Whether some source states it without a doubt, and shares as much with the summary's clause."""
        return any(
            word not in clause.shaded and len(kept.sentence & clause.sentence) >= at_least
            for _, clause in self._holding(word)
        )

    def _holding(self, word: str) -> Iterator[tuple[int, Clause]]:
        return (each for each in self.holding.get(word, ()) if self._afford())

    def _keeping(self, word: str) -> Iterator[Clause]:
        return (each for each in self.keeping.get(word, ()) if self._afford())

    def _word(self, clause: Clause, text: Text, stem: str) -> int:
        return next(at for at in range(clause.first, clause.last) if stem_at(text, at, self.names) == stem)

    def _turned(self, turn: Turn, source: int, said: tuple[int, int], told: tuple[int, int]) -> Turned:
        (start, end), (at, to) = _place(self.sources[source], said), _place(self.summary, told)
        return Turned(source, start, end, at, to, turn)


def _place(text: Text, place: tuple[int, int]) -> tuple[int, int]:
    first, last = sorted(place)
    return text.words[first].start, text.words[last].end


def _shared(told: Clause, said: Clause) -> int:
    """How many words that say something one of the clauses shares with the sentence of the other."""
    return max(len(told.content & said.sentence), len(told.sentence & said.content))


def _alike(told: Clause, said: Clause) -> bool:
    """Whether they are about the same: most words of the shorter one are the other's."""
    return _shared(told, said) >= max(_LEAST, _SHARE * min(len(told.content), len(said.content)))
