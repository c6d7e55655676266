"""What the sources say that the result would not: numbers, dates, identifiers, names and denials, by place (C9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from consolidation import compact
from consolidation.admin.item.sources import Records
from consolidation.admin.texts import snippet
from consolidation.operations import obs
from observations.records import Claim

CHECKED: Final = 20_000  # characters of all sources and the result together; more is not looked through
SHOWN: Final = 24  # words of one source
_DROPPED: Final = compact.Turn.DROPPED


@dataclass(frozen=True, slots=True)
class Word:
    """One specific that is gone."""

    text: str
    sort: str  # number, date, identifier, name, negation


@dataclass(frozen=True, slots=True)
class LostOf:
    """What one source loses."""

    name: str  # as its id is shown
    words: tuple[Word, ...]
    more: int


@dataclass(frozen=True, slots=True)
class Losses:
    """What was found; a page says it in red and with the word."""

    sources: tuple[LostOf, ...]
    unchecked: str = ""  # why some or all could not be looked through; empty: everything was

    @property
    def count(self) -> int:
        """How many specifics are lost."""
        return sum(len(source.words) + source.more for source in self.sources)


def losses(*, sources: Sequence[tuple[str, str | None]], result: str, speakers: Sequence[str] = ()) -> Losses:
    """What the result does not say of these sources, each a shown id and its text. No query."""
    readable = [(name, text) for name, text in sources if text is not None]
    if len(readable) < len(sources):
        return Losses((), "a source is erased")
    if sum(len(text) for _, text in readable) + len(result) > CHECKED:
        return Losses((), "they are too long")
    found = compact.coverage(sources=[text for _, text in readable], summary=result, speakers=speakers)
    turned = [(each.source, each.start, each.end, "negation") for each in found.turned if each.turn is _DROPPED]
    places = sorted({*((each.source, each.start, each.end, str(each.sort)) for each in found.lost), *turned})
    listed = []
    for at, (name, text) in enumerate(readable):
        mine = [place for place in places if place[0] == at]
        words = tuple(dict.fromkeys(Word(snippet(text[start:end], limit=60), sort) for _, start, end, sort in mine))
        if words:
            listed.append(LostOf(name, words[:SHOWN], max(0, len(words) - SHOWN)))
    unread = ", ".join(readable[at][0] for at in found.unread)
    return Losses(tuple(listed), f"{unread}: in a language that is not checked here" if unread else "")


def of_merge(records: Records, made: Claim | None) -> Losses | None:
    """What the sources of a merge lose in the reads; None where nothing would be written. No query."""
    if made is None:
        return None
    result = " ".join([made.text, made.subject, made.predicate, made.object])
    return losses(sources=[(obs(row.pk), row.text) for row in records.sources], result=result)
