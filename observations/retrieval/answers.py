"""What a read returns."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import StrEnum

from observations.models import Observation
from observations.records import Status


class Why(StrEnum):
    """Why a hit is among the answers."""

    WORDS = "words"
    MEANING = "meaning"
    BOTH = "both"
    NEITHER = "neither"  # it shares no word and has no vector yet, and there is room for it


class Trust(StrEnum):
    """How far a reader may trust a row: by what kind of record it is, never by what its text says (C15)."""

    HIGH = "high"  # verbatim: an episode; no row of an answer is one
    MEDIUM = "medium"  # an extracted or merged claim
    LOW = "low"  # a summary that a model wrote

    @classmethod
    def of(cls, derivation: str | None) -> Trust:
        """That of a claim derived so; None: not derived."""
        return cls.LOW if derivation == "compact" else cls.MEDIUM


@dataclass(frozen=True, slots=True)
class Hit:
    """One row of an answer."""

    id: int
    external_id: str
    text: str
    why: Why
    trust: Trust
    status: Status
    score: float  # comparable within one answer only
    cosine: float | None  # to the query; None while the row has no vector
    share: float = 0.0  # of the query's words that it holds, each weighed by how rare it is
    relevant: bool = True  # not below the floor of the embedder's profile (R7)
    named: float = 0.0  # how much of its subject the query names, 0 to 1, the less the more rows bear the name
    place_by_words: int | None = None  # 1 for the largest share; None where it shares no word
    place_by_meaning: int | None = None  # 1 for the nearest; None where it is not among the nearest


@dataclass(frozen=True, slots=True)
class Answer:
    """What one read returned, best first. Not `complete` when a part of the search failed: not the same as empty."""

    id: uuid.UUID
    hits: tuple[Hit, ...]
    complete: bool


def trust_of(row: Observation) -> Trust:
    """How far a row may be trusted, by what kind of record it is."""
    return Trust.of(row.derivation)
