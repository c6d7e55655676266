"""How rows stood at a moment, by the database's own journal. Texts never change, so only the state is to be found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import Final

from django.db.models import Q

from consolidation.admin.reading import Chip
from consolidation.admin.telling import status_chip
from observations.models import Episode, Observation, Transition

LONGEST: Final = 32  # characters of a moment in an address
NOT_YET: Final = Chip(word="not written yet", tone="quiet")


@dataclass(frozen=True, slots=True)
class Stood:
    """How one row stood at a moment."""

    status: str  # empty: it was written later
    successor: int | None  # what stood in its place then

    @property
    def chip(self) -> Chip:
        """The same in a word."""
        return status_chip(self.status) if self.status else NOT_YET


def moment_of(words: str) -> datetime | None:
    """A moment as an address holds it: ISO 8601, UTC where no zone is said; a day means its end. Else None."""
    if not words or len(words) > LONGEST:
        return None
    try:
        found = datetime.fromisoformat(words)
        if len(words) <= len("2024-01-01"):
            found = datetime.combine(found.date(), time.max)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def stood(
    *, scope_id: int, observations: Iterable[Observation], episodes: Iterable[Episode] = (), at: datetime
) -> tuple[dict[int, Stood], dict[int, Stood]]:
    """How these rows of a scope stood at a moment: of observations, and of episodes, by id. One query."""
    claims, turns = list(observations), list(episodes)
    named = Q(observation__in=[row.pk for row in claims]) | Q(episode__in=[row.pk for row in turns])
    moves = list(Transition.objects.filter(named, scope_id=scope_id).order_by("version"))
    of_claims = {row.pk: _stood(row, [move for move in moves if move.observation_id == row.pk], at) for row in claims}
    of_turns = {row.pk: _stood(row, [move for move in moves if move.episode_id == row.pk], at) for row in turns}
    return of_claims, of_turns


def _stood(row: Observation | Episode, moves: Sequence[Transition], at: datetime) -> Stood:
    if row.recorded_at > at:
        return Stood("", None)
    before = [move for move in moves if move.at <= at]
    if before:
        return Stood(before[-1].to_status, before[-1].superseded_by_id)
    if moves:
        return Stood(moves[0].from_status, None)
    return Stood(row.status, row.superseded_by_id if isinstance(row, Observation) else None)
