"""Whether a claim is what its turn says: the checks beyond the quote. Each can only refuse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from observations.extraction.claims import Dropped, Refusal
from observations.extraction.wording import content
from observations.records import EpisodeRecord


@dataclass(frozen=True, slots=True)
class Said:
    """Quoted words where they stand: code points of the turn's text."""

    turn: EpisodeRecord
    start: int
    end: int

    @property
    def words(self) -> str:
        """The words themselves."""
        return self.turn.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Batch:
    """The turns of one request."""

    turns: tuple[EpisodeRecord, ...]


def doubt(*, text: str, subject: str, said: Said, batch: Batch) -> Refusal | None:
    """Why a claim is not believed, or None."""
    words = content(text)
    if words and words.isdisjoint(content(f"{said.turn.text} {said.turn.speaker}")):
        return Refusal.NOT_SAID
    return None


def key_of(*, text: str, given: Mapping[str, str], said: Said) -> tuple[str, str, str, tuple[Dropped, ...]]:
    """Subject, predicate and object as far as they are believed, and what was left out."""
    return given["subject"], given["predicate"], given["object"], ()
