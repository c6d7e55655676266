"""Drills: in a long sitting, one item in 50 is planted: two claims known to be different, shown as if a rule would
merge them.

A drill has no operation, so nothing can apply it and no measured error counts it. It says how often a reviewer looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection
from django.db.models import Count, Q

from consolidation.calibration import Rate
from consolidation.models import Drill
from consolidation.operations import obs
from consolidation.review.deciding import AlreadyDecided
from consolidation.review.within import Scopes, condition
from observations.models import ScopeQuerySet, database_now
from observations.records import Status

EVERY: Final = 50  # decisions of a sitting
SITTING: Final = timedelta(hours=4)  # no decision before that belongs to it
PAUSE: Final = timedelta(minutes=30)  # a longer one ends it
LOOKED_AT: Final = 2_000  # newest rows of a scope among which a pair is looked for
_COUNTED: Final = 1_000  # decisions of a sitting that are read
_CAUGHT: Final = ("reject", "distinct")
_MISSED: Final = ("approve",)
NO_DRILLS: Final = Rate(0, 0)


@dataclass(frozen=True, slots=True)
class Sitting:
    """A reviewer's decisions without a longer pause, and how their drills stand."""

    decided: int = 0
    scope_id: int | None = None  # where the newest decision was made
    since: int = 0  # of the decisions, those after the last drill
    waits: bool = False  # the last drill has no answer yet
    rate: Rate = NO_DRILLS  # of the drills that were answered yes or no, those that were caught

    @property
    def due(self) -> bool:
        """Whether 50 decisions of the sitting were made since the last drill."""
        return self.since >= EVERY


# The pause before a decision ends at the next one, or now; what is at or before the newest long one is another sitting.
_SITTING: Final = """
WITH made AS (
  SELECT decided_at, scope_id FROM consolidation_operation
  WHERE scope_id {scopes} AND decided_by = %(by)s AND decided_at > %(now)s - %(sitting)s
  ORDER BY decided_at DESC LIMIT %(counted)s
), paused AS (
  SELECT decided_at, lag(decided_at, 1, %(now)s) OVER (ORDER BY decided_at DESC) - decided_at AS pause FROM made
), mine AS (
  SELECT decided_at, scope_id FROM made
  WHERE decided_at > coalesce((SELECT max(decided_at) FROM paused WHERE pause > %(pause)s), '-infinity')
), newest AS (
  SELECT at, answer FROM consolidation_drill WHERE by = %(by)s ORDER BY id DESC LIMIT 1
), answered AS (
  SELECT count(*) FILTER (WHERE answer = 'caught') AS caught, count(*) AS of FROM consolidation_drill
  WHERE by = %(by)s AND answer IN ('caught', 'missed')
)
SELECT count(*), (array_agg(scope_id ORDER BY decided_at DESC))[1],
       count(*) FILTER (WHERE decided_at > coalesce((SELECT at FROM newest), '-infinity')),
       coalesce((SELECT answer = 'waiting' FROM newest), false),
       (SELECT caught FROM answered), (SELECT of FROM answered)
FROM mine
"""


def sitting(*, by: str, scopes: Scopes, now: datetime) -> Sitting:
    """This reviewer's sitting, from decisions that still stand, and their drills. One query."""
    within, named = condition(scopes)
    values = {"by": by, "now": now, "sitting": SITTING, "pause": PAUSE, "counted": _COUNTED, **named}
    with connection.cursor() as cursor:
        cursor.execute(_SITTING.format(scopes=within), values)
        decided, scope_id, since, waits, caught, of = cursor.fetchone()
    return Sitting(decided=decided, scope_id=scope_id, since=since, waits=waits, rate=Rate(caught, of))


def waiting(*, by: str, scopes: Scopes, mine: Sitting, now: datetime) -> Drill | None:
    """The drill that waits for this reviewer's answer, while it may be shown: looked at, never written. No query while
    none waits, two at most.
    """
    newest = _newest(by) if mine.waits else None
    return newest if newest is not None and _stands(newest, scopes, now) else None


def plant(*, by: str, scopes: Scopes, mine: Sitting, now: datetime) -> Drill | None:
    """The drill that comes next, once something was decided: one that waits for an answer, or a new one when it is time
    and a pair is known. What may not be shown any more is closed as passed. No query while none is due, four at most.
    """
    if (newest := _newest(by) if mine.waits else None) is not None:
        if _stands(newest, scopes, now):
            return newest
        _close(newest, Drill.Answer.PASSED, now)
        return None
    if not mine.due:
        return None
    pair = _told_apart(by, scopes) or _other_object(by, mine.scope_id)
    if pair is None:
        return None
    scope_id, low, high = pair
    return Drill.objects.create(scope_id=scope_id, by=by, low_id=low, high_id=high)


def passed(*, pk: int, by: str) -> None:
    """The reviewer went on from a drill and answered something else: that says nothing of them. Two queries at most."""
    drill = Drill.objects.filter(pk=pk, by=by).first()
    if drill is not None:
        _close(drill, Drill.Answer.PASSED, database_now())


def _newest(by: str) -> Drill | None:
    waits = Drill.objects.select_related("scope", "low", "high").filter(by=by, answer=Drill.Answer.WAITING)
    return waits.order_by("-id").first()


def _stands(drill: Drill, scopes: Scopes, now: datetime) -> bool:
    """Whether a waiting drill may be shown: of this sitting, in a scope they may see, and its rows did not move."""
    seen = scopes.filter(pk=drill.scope_id).exists() if isinstance(scopes, ScopeQuerySet) else drill.scope_id in scopes
    standing = drill.low.status == drill.high.status == Status.ACTIVE
    return seen and standing and now - drill.at <= SITTING


def _close(drill: Drill, answer: Drill.Answer, now: datetime) -> bool:
    waiting = Drill.objects.filter(pk=drill.pk, answer=Drill.Answer.WAITING)
    return waiting.update(answer=answer, answered_at=now) == 1


# --- which pair -------------------------------------------------------------------------------------------------------

# Pairs that people told apart and still do, first those that somebody else judged: a memory of one's own is no test.
_TOLD_APART: Final = """
SELECT v.scope_id, v.low_id, v.high_id FROM consolidation_verdict v
JOIN observations_observation a ON a.id = v.low_id AND a.scope_id = v.scope_id AND a.status = 'active'
JOIN observations_observation b ON b.id = v.high_id AND b.scope_id = v.scope_id AND b.status = 'active'
WHERE v.scope_id {scopes}
  AND EXISTS (SELECT 1 FROM consolidation_operation o
              WHERE o.scope_id = v.scope_id AND o.op_id = v.operation AND o.status = 'distinct')
  AND NOT EXISTS (SELECT 1 FROM consolidation_drill d
                  WHERE d.by = %(by)s AND d.scope_id = v.scope_id AND d.low_id = v.low_id AND d.high_id = v.high_id)
ORDER BY (v.by = %(by)s), v.id LIMIT 1
"""
# Two values of one subject and predicate, among the newest rows of the scope the reviewer is at.
_OTHER_OBJECT: Final = """
SELECT a.scope_id, least(a.id, b.id), greatest(a.id, b.id)
FROM (SELECT id, scope_id, sp_key, spo_key FROM observations_observation
      WHERE scope_id = %(scope)s AND status = 'active' ORDER BY id DESC LIMIT %(rows)s) a
JOIN LATERAL (
  SELECT o.id FROM observations_observation o
  WHERE o.scope_id = a.scope_id AND o.sp_key = a.sp_key AND o.sp_key <> 0 AND o.status = 'active' AND o.id < a.id
    AND o.spo_key <> 0 AND a.spo_key <> 0 AND o.spo_key <> a.spo_key
    AND NOT EXISTS (SELECT 1 FROM consolidation_drill d
                    WHERE d.by = %(by)s AND d.scope_id = o.scope_id AND d.low_id = o.id AND d.high_id = a.id)
  ORDER BY o.id DESC LIMIT 1
) b ON true
ORDER BY a.id DESC LIMIT 1
"""


def _told_apart(by: str, scopes: Scopes) -> tuple[int, int, int] | None:
    """One query."""
    within, named = condition(scopes)
    return _pair(_TOLD_APART.format(scopes=within), {"by": by, **named})


def _other_object(by: str, scope_id: int | None) -> tuple[int, int, int] | None:
    """One query."""
    return _pair(_OTHER_OBJECT, {"scope": scope_id, "by": by, "rows": LOOKED_AT})


def _pair(statement: str, values: dict[str, Any]) -> tuple[int, int, int] | None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        found = cursor.fetchone()
    return (found[0], found[1], found[2]) if found else None


# --- answers ----------------------------------------------------------------------------------------------------------


def answer(*, drill: Drill, by: str, verb: str) -> Drill:
    """Record what the reviewer did with it: reject and distinct caught it, approve missed it, everything else passed.

    The same person's second click finds the first answer. Raises AlreadyDecided for somebody else's drill. Three
    queries at most.
    """
    if drill.by != by:
        raise AlreadyDecided("This item was not shown to you.")
    given = Drill.Answer.PASSED
    if verb in _CAUGHT:
        given = Drill.Answer.CAUGHT
    elif verb in _MISSED:
        given = Drill.Answer.MISSED
    _close(drill, given, database_now())
    drill.refresh_from_db()
    return drill


def verdict_of(drill: Drill) -> str:
    """What the reviewer hears at once, in one sentence. No query."""
    pair = f"{obs(drill.low_id)} and {obs(drill.high_id)} are known to be different claims"
    match drill.answer:
        case Drill.Answer.CAUGHT:
            return f"That was a drill, and you caught it: {pair}. Nothing was changed."
        case Drill.Answer.MISSED:
            return f"That was a drill, and you missed it: {pair}, and you approved their merge. Nothing was changed."
        case _:
            return f"That was a drill: {pair}. You passed it, which says nothing. Nothing was changed."


def catch_rate(*, by: str | None = None, scopes: ScopeQuerySet | Sequence[int] | None = None) -> Rate:
    """How many of the drills that were answered yes or no were caught, with Wilson's 95% interval; of one reviewer, in
    some scopes, or of all. One query.
    """
    rows = Drill.objects.filter(answer__in=[Drill.Answer.CAUGHT, Drill.Answer.MISSED])
    rows = rows if by is None else rows.filter(by=by)
    rows = rows if scopes is None else rows.filter(scope__in=scopes)
    counted = rows.aggregate(caught=Count("pk", filter=Q(answer=Drill.Answer.CAUGHT)), of=Count("pk"))
    return Rate(counted["caught"], counted["of"])
