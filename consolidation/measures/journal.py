"""The store's size over time, replayed from what the database itself wrote down: when each row was recorded, and every
change of a status since.

What was recorded before yesterday does not change any more, as nothing that it is read from is updated or deleted. So
it is added up once per scope and process and remembered; a look then reads what came since.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from threading import Lock
from typing import Final

from django.db import connection

from consolidation.measures.values import Size, Step
from observations.models import Scope
from observations.records import Status

LONGEST: Final = 62  # steps of one length; more are drawn in longer ones
_EVER: Final = datetime(1, 1, 2, tzinfo=UTC)
_SLACK: Final = timedelta(hours=1)  # two rows' ids and times may disagree by less than this
Changes = dict[date, Counter[str]]  # day -> status -> rows more or fewer


@dataclass(slots=True)
class Past:
    """What one scope did up to a day."""

    changes: Changes = field(default_factory=lambda: defaultdict(Counter))
    oldest: datetime | None = None
    rows: int = 0  # the highest ids that are surely older than whatever comes after
    moves: int = 0


@dataclass(slots=True)
class _Closed:
    """What was added up until a midnight, by scope: its id, and when it was made, which a restored store changes."""

    until: datetime = _EVER
    scopes: dict[tuple[int, datetime], Past] = field(default_factory=dict)


_closed: dict[str, _Closed] = {}  # by database
_lock: Final = Lock()

# A row is born active or held back. Which of the two, its first move says, and before that its status.
_READ: Final = """
SELECT scope_id, (recorded_at AT TIME ZONE 'UTC')::date AS day,
       CASE WHEN version = 1 AND status = 'quarantined' THEN 'quarantined' ELSE 'active' END AS status,
       count(*), min(created_at), max(id) FILTER (WHERE recorded_at < %(sure)s), 0::bigint
FROM observations_observation
WHERE scope_id = ANY (%(scopes)s) AND id > %(rows)s AND recorded_at >= %(since)s AND recorded_at < %(until)s
GROUP BY 1, 2, 3
UNION ALL
SELECT scope_id, (at AT TIME ZONE 'UTC')::date, from_status || '>' || to_status,
       count(*), NULL, 0, max(id) FILTER (WHERE at < %(sure)s)
FROM observations_transition
WHERE scope_id = ANY (%(scopes)s) AND id > %(moves)s AND at >= %(since)s AND at < %(until)s
      AND observation_id IS NOT NULL AND from_status <> to_status
GROUP BY 1, 2, 3
UNION ALL
SELECT o.scope_id, (o.recorded_at AT TIME ZONE 'UTC')::date, 'active>quarantined', count(*), NULL, 0, 0
FROM observations_transition t JOIN observations_observation o ON o.id = t.observation_id AND o.scope_id = t.scope_id
WHERE t.scope_id = ANY (%(scopes)s) AND t.version = 2 AND t.from_status = 'quarantined'
      AND o.id > %(rows)s AND o.recorded_at >= %(since)s AND o.recorded_at < %(until)s
GROUP BY 1, 2
"""


def replay(*, scopes: Sequence[Scope], now: datetime) -> Past:
    """Every change of the scopes by day, from the first; `now` is the database's. One query, and one more at a
    process's first look of a day at any of them.
    """
    until = _midnight(now.astimezone(UTC).date() - timedelta(days=1))
    closed = _closing(scopes, until=until)
    # Ids are given in the order of time, whatever the scope: what one scope has seen is old in all of them.
    rows, moves = max((past.rows for past in closed), default=0), max((past.moves for past in closed), default=0)
    ids = [scope.pk for scope in scopes]
    live = _read(ids, since=until, until=now + timedelta(days=1), rows=rows, moves=moves)
    whole = Past()
    for past in [*closed, *live.values()]:
        for day, changed in past.changes.items():
            whole.changes[day].update(changed)
        whole.oldest = min(filter(None, (whole.oldest, past.oldest)), default=None)
    return whole


def size_over_time(*, past: Past, today: date) -> tuple[Step, tuple[Size, ...]]:
    """The size at the end of each step up to today. No query."""
    if not past.changes:
        return Step.DAY, ()
    first = min(past.changes)
    step = _step(first, today)
    points, standing = [], Counter[str]()
    days = sorted(past.changes)
    for start in _starts(first, today, step):
        end = _next(start, step)
        while days and days[0] < end:
            standing.update(past.changes[days.pop(0)])
        points.append(_size(start, standing))
    return step, tuple(points)


def standing(*, past: Past) -> dict[str, int]:
    """How many rows stand how now, by status; statuses that no row has are left out. No query."""
    total = sum(past.changes.values(), Counter[str]())
    return {status.value: total[status] for status in sorted(Status) if total[status]}


def _size(start: date, standing: Mapping[str, int]) -> Size:
    return Size(
        day=start,
        active=standing.get(Status.ACTIVE, 0),
        superseded=standing.get(Status.SUPERSEDED, 0),
        archived=standing.get(Status.ARCHIVED, 0),
        other=standing.get(Status.RETRACTED, 0) + standing.get(Status.QUARANTINED, 0),
    )


# --- adding up --------------------------------------------------------------------------------------------------------


def _closing(scopes: Sequence[Scope], *, until: datetime) -> list[Past]:
    """What is over, of each of these scopes."""
    keys = [(scope.pk, scope.created_at) for scope in scopes]
    with _lock:
        closed = _closed.setdefault(str(connection.settings_dict["NAME"]), _Closed())
        if closed.until != until:
            closed.until, closed.scopes = until, {}
        if missing := [key for key in keys if key not in closed.scopes]:
            found = _read([pk for pk, _ in missing], since=_EVER, until=until, rows=0, moves=0)
            closed.scopes |= {key: found.get(key[0], Past()) for key in missing}
        return [closed.scopes[key] for key in keys]


def _read(scopes: Sequence[int], *, since: datetime, until: datetime, rows: int, moves: int) -> dict[int, Past]:
    """What each scope did between two moments. One query."""
    bounds = {"since": since, "until": until, "sure": until - _SLACK}
    with connection.cursor() as cursor:
        cursor.execute(_READ, {"scopes": list(scopes), "rows": rows, "moves": moves, **bounds})
        found = cursor.fetchall()
    pasts: defaultdict[int, Past] = defaultdict(Past)
    for scope, day, what, count, oldest, row, move in found:
        past = pasts[scope]
        _add(past.changes[day], what, count)
        past.oldest = min(filter(None, (past.oldest, oldest)), default=None)
        past.rows, past.moves = max(past.rows, row or 0), max(past.moves, move or 0)
    return dict(pasts)


def _add(changed: Counter[str], what: str, count: int) -> None:
    before, moved, after = what.rpartition(">")
    changed[after] += count
    if moved:
        changed[before] -= count


# --- steps ------------------------------------------------------------------------------------------------------------


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


def _step(first: date, today: date) -> Step:
    days = (today - first).days + 1
    return Step.DAY if days <= LONGEST else Step.WEEK if days <= LONGEST * 7 else Step.MONTH


def _starts(first: date, today: date, step: Step) -> Iterable[date]:
    start = _start(first, step)
    while start <= today:
        yield start
        start = _next(start, step)


def _start(day: date, step: Step) -> date:
    if step is Step.MONTH:
        return day.replace(day=1)
    return day - timedelta(days=day.weekday()) if step is Step.WEEK else day


def _next(start: date, step: Step) -> date:
    if step is Step.MONTH:
        return (start + timedelta(days=31)).replace(day=1)
    return start + timedelta(days=7 if step is Step.WEEK else 1)
