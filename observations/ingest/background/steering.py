"""What people see and ask of the background for many scopes at once: what waits, a run by hand, residue by itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import connection, transaction

from observations import outbox, spending, store
from observations.ingest.background.observing import EXTRACT, KEY, Extracting
from observations.models import ClockTimestamp, Event, Intake, IntakeRun, Outbox, Scope, database_now
from observations.store import MAX_READINGS

COUNTED: Final = 1_000  # turns of one scope are counted this far


@dataclass(frozen=True, slots=True)
class Waits:
    """What waits in one scope. Figures of more than COUNTED are COUNTED + 1."""

    unread: int = 0  # turns that the next run would read
    given_up: int = 0  # turns whose answer could not be used as often as they may be asked about


_WAITS: Final = f"""
SELECT i.scope_id,
  (SELECT count(*) FROM (
    SELECT 1 FROM observations_episode e
    LEFT JOIN observations_extraction x ON x.scope_id = e.scope_id AND x.episode_id = e.id
    WHERE e.scope_id = i.scope_id AND e.status = 'active' AND e.recorded_at >= i.since
      AND (x.id IS NULL OR (x.state = 'unusable' AND x.attempts < {MAX_READINGS}))
    LIMIT {COUNTED + 1}) unread),
  (SELECT count(*) FROM (
    SELECT 1 FROM observations_extraction x
    WHERE x.scope_id = i.scope_id AND x.state = 'unusable' AND x.attempts >= {MAX_READINGS}
    LIMIT {COUNTED + 1}) given_up)
FROM observations_intake i WHERE i.scope_id = ANY (%s)
"""  # noqa: S608  the only figures put in are constants


def waits(*, scope_ids: Sequence[int]) -> dict[int, Waits]:
    """What waits in each scope that was ever enabled, by its id. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_WAITS, [list(scope_ids)])
        return {scope: Waits(unread=unread, given_up=given_up) for scope, unread, given_up in cursor.fetchall()}


def given_up(attempts: int) -> bool:
    """Whether a turn whose answer could not be used so often is not asked about any more. No query."""
    return attempts >= MAX_READINGS


@transaction.atomic
def run_later(*, scope: Scope, by: str) -> Extracting:
    """Ask a worker to read now what waits, however little it is: QUEUED, and OFF or NO_MODEL where that asks nothing.

    Asked twice it is done once. Three queries.
    """
    if not Intake.objects.filter(scope=scope, enabled=True).exists():
        return Extracting.OFF
    if not spending.configured():
        return Extracting.NO_MODEL
    payload: dict[str, int | str | Sequence[int]] = {"trigger": str(IntakeRun.Trigger.HAND), "by": by[:150]}
    outbox.enqueue(task=EXTRACT, scope_id=scope.pk, key=KEY, payload=payload)
    Event.objects.append(scope_id=scope.pk, action="intake_asked", actor=by[:150], subject=str(scope.pk))
    return Extracting.QUEUED


@transaction.atomic
def ask_again(*, scope: Scope, by: str) -> int:
    """Have the turns wait again that were given up after three unusable answers; how many, none is no event (R124).

    They are asked about up to three times more, by the next run; nothing else becomes waiting. Three queries.
    """
    store.lock_scope(scope_id=scope.pk, cause=f"ask again, by {by}")
    opened = store.open_again(scope_id=scope.pk)
    if opened:
        detail = {"turns": opened}
        Event.objects.append(
            scope_id=scope.pk, action="intake_asked_again", actor=by[:150], subject=str(scope.pk), detail=detail
        )
    return opened


def without_life(*, runs: Iterable[IntakeRun]) -> dict[int, datetime]:
    """Of runs that are not closed, those that nobody works on any more, with the time of the last sign of life.

    Whoever reads a scope renews the lease of its outbox row. The rows of such runs stay as they are: the next run says
    that they were interrupted. Two queries, or none.
    """
    open_ = [run for run in runs if run.state == IntakeRun.State.RUNNING]
    if not open_:
        return {}
    jobs = Outbox.objects.filter(task=EXTRACT, key=KEY, scope__in={run.scope_id for run in open_}, done_at=None)
    leases = {job.scope_id: job for job in jobs.filter(attempts__gt=0, last_error="")}
    now, lease = database_now(), timedelta(seconds=outbox.LEASE_SECONDS)
    found: dict[int, datetime] = {}
    for run in open_:
        job = leases.get(run.scope_id)
        if job is None or job.due_at <= now:
            found[run.pk] = run.started_at if job is None else max(run.started_at, job.due_at - lease)
    return found


@transaction.atomic
def keep_residue(*, scope: Scope, on: bool, by: str) -> None:
    """Keep what an agent hands in at the end of a run, or stop; whether turns are read stays as it is."""
    Intake.objects.get_or_create(scope=scope, defaults={"updated_by": by[:150]})
    changes = {"residue": on, "updated_at": ClockTimestamp(), "updated_by": by[:150]}
    if Intake.objects.filter(scope=scope, residue=not on).update(**changes):
        action = "residue_on" if on else "residue_off"
        Event.objects.append(scope_id=scope.pk, action=action, actor=by[:150], subject=str(scope.pk))
