"""Whether a scope's turns are read in the background: off until a person enables it, one scope at a time (R121)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django.db import connection, transaction

from observations.models import ClockTimestamp, Episode, Event, Intake, IntakeRun, Scope
from observations.records import EpisodeRecord
from observations.store import MAX_READINGS

EVERY_TURNS: Final = 5  # turns that wait before a worker is asked, where nobody says otherwise
_START: Final = datetime(1970, 1, 1, tzinfo=UTC)  # before any turn was recorded


@dataclass(frozen=True, slots=True)
class IntakeState:
    """How a scope stands with the background."""

    enabled: bool = False
    every_turns: int = EVERY_TURNS
    residue: bool = False
    waiting: int = 0  # turns that nobody has read yet, and those whose answer could not be used but may be asked again
    stuck: int = 0  # turns that were asked about as often as they may be, without a usable answer
    last_run: IntakeRun | None = None


def enable_intake(
    *,
    scope: Scope,
    by: str,
    every_turns: int = EVERY_TURNS,
    from_start: bool = False,
    residue: bool | None = None,
) -> int:
    """Read a scope's turns from now on, or with `from_start` all of them; enabled again, only the settings change.

    Returns how many turns that nobody has read stay unread because they were recorded before: said and waiting while it
    was off, or ever; `from_start` reads them.

    `every_turns` is 1 to 1,000. `residue` None leaves it as it is, off at first. Raises ValueError for another number.
    """
    if not 1 <= every_turns <= 1_000:
        raise ValueError(f"Turns are read every 1 to 1,000, not every {every_turns}.")
    with transaction.atomic():
        Intake.objects.get_or_create(scope=scope, defaults={"updated_by": by[:150]})
        intake = Intake.objects.select_for_update(of=("self",)).get(scope=scope)
        changes: dict[str, Any] = {"enabled": True, "every_turns": every_turns}
        if from_start:
            changes["since"] = _START
        elif not intake.enabled:
            changes["since"] = ClockTimestamp()
        if residue is not None:
            changes["residue"] = residue
        _change(intake, by=by, action="intake_on", changes=changes)
        return count_passed_over(scope_id=scope.pk, since=intake.since)


def disable_intake(*, scope: Scope, by: str) -> bool:
    """Stop reading a scope's turns; False when it was off. What was read stays, and a run under way ends its batch."""
    with transaction.atomic():
        intake = Intake.objects.select_for_update(of=("self",)).filter(scope=scope, enabled=True).first()
        if intake is not None:
            _change(intake, by=by, action="intake_off", changes={"enabled": False})
    return intake is not None


def _change(intake: Intake, *, by: str, action: str, changes: Mapping[str, Any]) -> None:
    """Change the settings, with an event that says what they are now."""
    Intake.objects.filter(pk=intake.pk).update(**changes, updated_at=ClockTimestamp(), updated_by=by[:150])
    intake.refresh_from_db()
    detail = {
        "every_turns": intake.every_turns,
        "since": intake.since.isoformat(),
        "residue": intake.residue,
    }
    Event.objects.append(
        scope_id=intake.scope_id, action=action, actor=by[:150], subject=str(intake.scope_id), detail=detail
    )


def intake_of(*, scope: Scope) -> IntakeState:
    """How a scope stands: settings, how many turns wait, and the last run. Four queries."""
    intake = Intake.objects.filter(scope=scope).first()
    last = IntakeRun.objects.filter(scope=scope).order_by("-pk").first()
    if intake is None:
        return IntakeState(last_run=last)
    return IntakeState(
        enabled=intake.enabled,
        every_turns=intake.every_turns,
        residue=intake.residue,
        waiting=count_unread(scope_id=scope.pk, since=intake.since),
        stuck=_stuck(scope.pk),
        last_run=last,
    )


_UNREAD: Final = f"""
FROM observations_episode e
LEFT JOIN observations_extraction x ON x.scope_id = e.scope_id AND x.episode_id = e.id
WHERE e.scope_id = %(scope)s AND e.status = 'active' AND e.recorded_at >= %(since)s
  AND (x.id IS NULL OR (x.state = 'unusable' AND x.attempts < {MAX_READINGS}))
"""  # the only figure put in is a constant of the store


def count_unread(*, scope_id: int, since: datetime) -> int:
    """How many turns of a scope wait to be read. One query, which looks at every turn recorded since."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) {_UNREAD}", {"scope": scope_id, "since": since})
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def count_passed_over(*, scope_id: int, since: datetime) -> int:
    """How many turns that nobody has read were recorded before. One query, which looks at every turn from then."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM observations_episode e LEFT JOIN observations_extraction x"
            " ON x.scope_id = e.scope_id AND x.episode_id = e.id WHERE e.scope_id = %s AND e.status = 'active'"
            " AND e.recorded_at < %s AND (x.id IS NULL OR x.state = 'unusable')",
            [scope_id, since],
        )
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def unread(*, scope_id: int, since: datetime, most: int) -> dict[int, int]:
    """Ids of the oldest turns that wait, with how often they were asked about, in their order. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT e.id, coalesce(x.attempts, 0) {_UNREAD} ORDER BY e.happened_at, e.seq, e.id LIMIT %(most)s",
            {"scope": scope_id, "since": since, "most": most},
        )
        return dict(cursor.fetchall())


_JUST_BEFORE: Final = """
SELECT e.id FROM observations_episode e
JOIN observations_extraction x ON x.scope_id = e.scope_id AND x.episode_id = e.id
WHERE e.scope_id = %(scope)s AND e.session = %(session)s AND e.status = 'active' AND e.recorded_at >= %(since)s
  AND (e.happened_at, e.seq, e.id) < (%(at)s, %(seq)s, %(id)s) AND x.state IN ('claims', 'nothing')
ORDER BY e.happened_at DESC, e.seq DESC, e.id DESC LIMIT %(most)s
"""


def just_before(*, turn: EpisodeRecord, since: datetime, most: int) -> list[EpisodeRecord]:
    """The last turns of a turn's session before it that were read, oldest first. Two queries, the second by id.

    What nobody asked to have read is not shown either, and a turn that spoilt an answer spoils no other.
    """
    with connection.cursor() as cursor:
        whose: dict[str, Any] = {"scope": turn.scope_id, "session": turn.session, "since": since, "most": most}
        cursor.execute(_JUST_BEFORE, {**whose, "at": turn.happened_at, "seq": turn.seq, "id": turn.id})
        ids = [pk for (pk,) in cursor.fetchall()]
    rows = Episode.objects.filter(scope=turn.scope_id, pk__in=ids).exclude(text=None)
    return [row.record() for row in rows.order_by("happened_at", "seq", "pk")] if ids else []


_DUE: Final = f"""
SELECT i.scope_id FROM observations_intake i WHERE i.enabled AND EXISTS (
  SELECT 1 FROM observations_episode e
  LEFT JOIN observations_extraction x ON x.scope_id = e.scope_id AND x.episode_id = e.id
  WHERE e.scope_id = i.scope_id AND e.status = 'active' AND e.recorded_at >= i.since
    AND e.recorded_at < clock_timestamp() - %(age)s * interval '1 second'
    AND (x.id IS NULL OR (x.state = 'unusable' AND x.attempts < {MAX_READINGS})))
ORDER BY i.scope_id
"""  # noqa: S608  the only figure put in is a constant of the store


def due_scopes(*, older_than_seconds: float) -> list[int]:
    """Ids of the enabled scopes in which a turn has waited that long. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_DUE, {"age": older_than_seconds})
        return [int(pk) for (pk,) in cursor.fetchall()]


def _stuck(scope_id: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM observations_extraction"
            " WHERE scope_id = %s AND state = 'unusable' AND attempts >= %s",
            [scope_id, MAX_READINGS],
        )
        row = cursor.fetchone()
    return int(row[0]) if row else 0
