"""RECONCILE, who may take whose place: only the user's own later word, and only what was extracted (docs: DESIGN 4).

Everything else waits for a person, with both rows in the reads. Plain Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from observations.records import EpisodeRecord, StatedBy, WrittenBy


class Waits(StrEnum):
    """Why a person decides; completes the sentence "A person decides: ..."."""

    NOT_THE_USER = "the claim is not the user's own word"
    SOMEBODY_ELSES = "what it would replace is not the user's own word"
    NOT_EXTRACTED = "what it would replace was written directly, imported or derived"
    NO_TURN = "what it would replace does not rest on turns alone"
    ANOTHER_SPEAKER = "another speaker said what it would replace"
    NOT_LATER = "it was not said after what it would replace"


@dataclass(frozen=True, slots=True)
class Rests:
    """One thing that a stored row rests on, as far as it is a turn."""

    stated_by: StatedBy | None  # None: it is no turn of this scope
    speaker: str = ""
    session: str = ""
    happened_at: datetime | None = None
    seq: int = 0
    id: int = 0

    @classmethod
    def on(cls, turn: EpisodeRecord) -> Rests:
        """A turn as something to rest on."""
        return cls(turn.stated_by, turn.speaker, turn.session, turn.happened_at, turn.seq, turn.id)


def why_it_waits(
    *,
    stated_by: StatedBy,
    written_by: WrittenBy,
    rests_on: Sequence[Rests],
    claimed_by: StatedBy,
    quoted_from: Sequence[Rests],
) -> Waits | None:
    """Why a claim may not take a stored row's place without a person; None when it may.

    It may when the row is the user's word, extracted, and the claim is quoted from a later turn of the same user. What
    an agent or a tool said to the same effect neither helps nor hinders.
    """
    if claimed_by is not StatedBy.USER:
        return Waits.NOT_THE_USER
    if stated_by is not StatedBy.USER:
        return Waits.SOMEBODY_ELSES
    if written_by is not WrittenBy.BACKGROUND:
        return Waits.NOT_EXTRACTED
    theirs = [each for each in rests_on if each.stated_by is None or each.stated_by.rank >= StatedBy.OPERATOR.rank]
    if not theirs or any(each.stated_by is not StatedBy.USER for each in theirs):
        return Waits.NO_TURN
    ours = [each for each in quoted_from if each.stated_by is StatedBy.USER]
    same = [each for each in ours if all(each.speaker == other.speaker for other in theirs)]
    if not same:
        return Waits.ANOTHER_SPEAKER
    if not any(all(_later(each, other) for other in theirs) for each in same):
        return Waits.NOT_LATER
    return None


def _later(one: Rests, other: Rests) -> bool:
    """By the time it was said; inside a session whose turns share one time by their order."""
    if one.happened_at is None or other.happened_at is None:
        return False
    if one.happened_at != other.happened_at:
        return one.happened_at > other.happened_at
    return one.session == other.session and (one.seq, one.id) > (other.seq, other.id)
