"""ANSWERS: what reads handed out, by ids and without words, kept 90 days: "what was the agent told" has an answer.

A row is telemetry: it is written after the answer was made, in one insert, and a read never fails for it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from observations import failures
from observations.models import Episode, GivenAnswer, Observation, Scope, database_now
from observations.records import Status

log = logging.getLogger(__name__)

KEPT: Final = timedelta(days=90)
_KEEP: Final = """INSERT INTO observations_givenanswer
  (scope_id, answer, call_site, shown, left_out, outdated, failed, chosen_by)
VALUES (%s, %s, %s, %s::bigint[], %s::bigint[], %s::bigint[], %s::varchar[], %s)"""


def of_episode(pk: int) -> int:
    """An episode among the ids of an answer: below zero, where observations are above."""
    return -pk


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What one answer handed out. Ids are those of observations, and of episodes by `of_episode`."""

    answer: UUID
    call_site: str
    shown: Sequence[int] = ()  # in the order in which they were shown
    left_out: Sequence[int] = ()  # found, and not shown
    outdated: Sequence[int] = ()  # of those shown: marked so
    failed: Sequence[str] = ()  # sections that could not be read
    chosen_by: str = ""  # the model that selected; "": the rule


def note(*, scope: Scope, given: Given) -> None:
    """Keep what an answer handed out: one insert. A failure is logged and counted, and changes nothing."""
    values: list[Any] = [
        *(scope.pk, given.answer, given.call_site[:40]),
        *(list(given.shown), list(given.left_out), list(given.outdated)),
        *([part[:40] for part in given.failed], given.chosen_by[:80]),
    ]
    try:
        with aside() as cursor:
            cursor.execute(_KEEP, values)
    except Exception as error:  # R133: whatever a driver raises, the agent that asked goes on
        failures.count("the record of answers")
        log.warning("an answer is not recorded (%s); it was given all the same", type(error).__name__)


@contextmanager
def aside() -> Iterator[CursorWrapper]:
    """For one statement of telemetry: by itself, or within somebody's transaction in a savepoint, which keeps a failure
    from spoiling that.
    """
    with transaction.atomic() if connection.in_atomic_block else nullcontext(), connection.cursor() as cursor:
        yield cursor


def age() -> int:
    """Delete answers given more than 90 days ago; returns how many. One statement."""
    return GivenAnswer.objects.filter(at__lt=database_now() - KEPT).delete()[0]


# --- what was the agent told -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of an answer as it stands now. `text` is None where it was erased since."""

    id: int  # of the observation, or of the episode
    episode: bool
    text: str | None
    status: Status
    shown: bool  # False: it was found, and left out
    outdated: bool


@dataclass(frozen=True, slots=True)
class Told:
    """One answer, its rows as they stand now: those shown in their order, then those left out."""

    row: GivenAnswer
    entries: tuple[Entry, ...]


def told(*, scope: Scope, answer: UUID | None = None, at: datetime | None = None) -> Told | None:
    """The answer of that id, or the last one that was given by that moment; None where there is none. Three queries.

    Raises ValueError unless exactly one of the two is named.
    """
    if (answer is None) == (at is None):
        raise ValueError("Name an answer, or a moment.")
    rows = GivenAnswer.objects.filter(scope=scope)
    rows = rows.filter(answer=answer) if answer else rows.filter(at__lte=at).order_by("-at", "-pk")
    row = rows.first()
    return Told(row, entries_of(row)) if row else None


def entries_of(row: GivenAnswer) -> tuple[Entry, ...]:
    """The rows of an answer as they stand now. Two queries."""
    ids = [*row.shown, *row.left_out]
    claims = Observation.objects.filter(scope=row.scope_id, pk__in=[pk for pk in ids if pk > 0])
    turns = Episode.objects.filter(scope=row.scope_id, pk__in=[-pk for pk in ids if pk < 0])
    now = {pk: (text, status) for pk, text, status in claims.values_list("pk", "text", "status")}
    now |= {of_episode(pk): (text, status) for pk, text, status in turns.values_list("pk", "text", "status")}
    shown, outdated = set(row.shown), set(row.outdated)
    return tuple(
        Entry(abs(pk), pk < 0, now[pk][0], Status(now[pk][1]), pk in shown, pk in outdated) for pk in ids if pk in now
    )
