"""OBSERVE: turns come in word for word, and whoever hands them in is told what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from django.db import DatabaseError, IntegrityError, InterfaceError, OperationalError, connection, transaction

from observations import outbox, spending, store
from observations.ingest.background.settings import due_scopes
from observations.models import Event, Intake, IntakeRun, Scope
from observations.records import Turn
from observations.store import Fate, Written

EXTRACT: Final = "extract"  # the outbox task: read what waits in a scope
KEY: Final = "turns"  # the one row of it that a scope has open; whoever leases it reads


class Extracting(StrEnum):
    """What becomes of turns that were handed in."""

    QUEUED = "queued"  # a worker was asked to read them
    WAITING = "waiting"  # too few so far; read with the next ones, or by the schedule
    OFF = "off"  # this scope's turns are not read
    NO_MODEL = "no model"  # none is configured; they wait


@dataclass(frozen=True, slots=True)
class Observed:
    """What became of some turns, one by one, and what happens next."""

    written: list[Written]
    extraction: Extracting
    waiting: int = 0  # turns newer than the last one that was read
    every: int = 0  # so many have to wait before a worker is asked


def observe(*, scope: Scope, turns: Sequence[Turn], by: str) -> Observed:
    """Store turns word for word, each once, and ask a worker to read them when enough wait (R9, R121).

    A turn that cannot be stored is refused for itself (C1). Nothing is raised for a broker or a model that is dead;
    django.db.Error for a database that is.
    """
    written = _stored(scope, turns)
    added = [each.id for each in written if each.fate == Fate.ADDED and each.id is not None]
    with transaction.atomic():
        if added:
            detail = {"turns": len(added), "first": min(added), "last": max(added)}
            Event.objects.append(
                scope_id=scope.pk, action="observed", actor=by[:150], subject=str(scope.pk), detail=detail
            )
        intake = Intake.objects.filter(scope=scope, enabled=True).first()
        if intake is None:
            return Observed(written, Extracting.OFF)
        waiting = _newer(intake)
        extraction = _next(scope, waiting, intake.every_turns)
    return Observed(written, extraction, waiting=waiting, every=intake.every_turns)


def queue_due(*, older_than_seconds: float) -> int | None:
    """Ask workers to read the enabled scopes in which a turn has waited that long; how many, or None without a model.

    A scope that is being read, or waits for another attempt, is left to that. Two queries.
    """
    if not spending.configured():
        return None
    due = due_scopes(older_than_seconds=older_than_seconds)
    payload = {"trigger": IntakeRun.Trigger.SCHEDULE.value}
    outbox.enqueue_in_scopes(task=EXTRACT, scope_ids=due, key=KEY, payload=payload)
    return len(due)


def _next(scope: Scope, waiting: int, every: int) -> Extracting:
    if not spending.configured():
        return Extracting.NO_MODEL
    if waiting < every:
        return Extracting.WAITING
    outbox.enqueue(task=EXTRACT, scope_id=scope.pk, key=KEY, payload={"trigger": IntakeRun.Trigger.TURNS.value})
    return Extracting.QUEUED


def _newer(intake: Intake) -> int:
    """Turns after the last one that was read: what came since, without looking at every turn of the scope."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM observations_episode e WHERE e.scope_id = %(scope)s AND e.status = 'active'"
            " AND e.recorded_at >= %(since)s AND e.id > coalesce((SELECT max(x.episode_id)"
            "  FROM observations_extraction x WHERE x.scope_id = %(scope)s), 0)",
            {"scope": intake.scope_id, "since": intake.since},
        )
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def _stored(scope: Scope, turns: Sequence[Turn]) -> list[Written]:
    """The fate of every turn: in one transaction, or in ever smaller ones when one of them cannot be stored."""
    if not turns:
        return []
    reason = ""
    for _again in range(2):  # once more: another writer may have added the same turn at the same moment
        try:
            with transaction.atomic():
                return store.add_episodes(scope=scope, turns=turns)
        except (InterfaceError, OperationalError):
            raise
        except IntegrityError:
            reason = "another writer holds this id or this source"
        except (DatabaseError, UnicodeError, ValueError):
            reason = "a part of it is too long, or cannot be stored"
            break
    if len(turns) == 1:
        return [Written(fate=Fate.REFUSED, reason=reason)]
    middle = len(turns) // 2
    return [*_stored(scope, turns[:middle]), *_stored(scope, turns[middle:])]
