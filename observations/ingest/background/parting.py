"""What one answer says of some turns, in parts that one question reconciles (R124). Plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields

from observations import reconciliation
from observations.extraction import Extracted
from observations.records import EpisodeRecord


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the turns of a question, in their order, and what the answer says of them."""

    turns: Sequence[EpisodeRecord]
    extracted: Extracted


def in_parts(
    *, turns: Sequence[EpisodeRecord], extracted: Extracted, most: int = reconciliation.MAX_PROPOSALS
) -> list[Part]:
    """The turns, cut between two of them wherever more than `most` claims would stand on one side; mostly one part.

    No claim is left out: each is in the part of the turn that it is quoted from first. A turn that holds more claims
    than `most` is a part of its own, and its claims are reconciled in several questions.
    """
    claims = Counter(claim.episode for claim in extracted.claims)
    cut: list[list[EpisodeRecord]] = [[]]
    size = 0
    for turn in turns:
        if cut[-1] and size + claims[turn.id] > most:
            cut.append([])
            size = 0
        cut[-1].append(turn)
        size += claims[turn.id]
    return [Part(part, _about(extracted, part, first=number == 0)) for number, part in enumerate(cut)]


def _about(extracted: Extracted, turns: Sequence[EpisodeRecord], *, first: bool) -> Extracted:
    """What an answer says of some turns; what names no turn goes with the first."""
    ids: set[int | None] = {turn.id for turn in turns} | ({None} if first else set())
    return Extracted(
        **{
            each.name: tuple(one for one in getattr(extracted, each.name) if one.episode in ids)
            for each in fields(extracted)
        }
    )
