"""The rows of one scope that the rules of decay have to judge.

Called inside the planner's read-only repeatable-read transaction; nothing here writes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.db import connection

from consolidation.planner import reading
from consolidation.policy import Policy
from observations.fading import halvings
from observations.models import Observation
from observations.records import Record, Status


@dataclass(frozen=True, slots=True)
class Fading:
    """What the rules of decay look at."""

    rows: list[Record] = field(default_factory=list)  # active rows that may be weaker than the policy's threshold
    last_used: dict[int, datetime] = field(default_factory=dict)  # for those that were used at all
    protected: frozenset[int] = frozenset()  # rows that carry a user's word further down their lineage


# In seconds and floating point, because a half-life of millennia is no interval that PostgreSQL can subtract. The index
# on a scope's active rows serves it: planning reads each of them anyhow, and few scopes hold many that do not fade.
_WEAK: Final = """
SELECT id FROM observations_observation
WHERE scope_id = %(scope)s AND status = 'active' AND half_life_days IS NOT NULL AND stated_by <> 'user'
  AND kind <> ALL (%(untouchable)s) AND created_at <= %(kept_since)s
  AND extract(epoch FROM %(now)s - created_at) >= half_life_days::float8 * 86400 * %(halvings)s - 1
"""

# A merged row is in use while what it was merged from was: its own counter starts at nothing. What was archived for it
# is below it too where its lineage names only what that came from (decision 0014).
_LAST_USED: Final = """
WITH RECURSIVE below(row, id) AS (
  SELECT id, id FROM unnest(%(ids)s::bigint[]) AS id
  UNION
  SELECT b.row, s.id FROM below b JOIN LATERAL (
    SELECT l.source_observation_id AS id FROM observations_lineage l
    WHERE l.scope_id = %(scope)s AND l.derived_id = b.id AND l.source_observation_id IS NOT NULL
    UNION ALL
    SELECT o.id FROM observations_observation o
    WHERE o.scope_id = %(scope)s AND o.superseded_by_id = b.id AND o.status = 'archived'
  ) s ON true
)
SELECT b.row, max(u.used_at) FROM below b
JOIN observations_use u ON u.scope_id = %(scope)s AND u.observation_id = b.id GROUP BY b.row
"""


def fading(*, scope_id: int, policy: Policy, now: datetime) -> Fading:
    """The rows of a scope that may be archived, at a second's grace: the rules judge. No query while nothing can be.

    One query when there are none, else three and those of `reading.records`.
    """
    if not policy.archive or policy.archive_below <= 0:
        return Fading()
    values: dict[str, int | float | datetime | list[str]] = {
        "scope": scope_id,
        "untouchable": [str(kind) for kind in policy.untouchable],
        "kept_since": now - timedelta(days=policy.keep_days),
        "now": now,
        "halvings": halvings(below=policy.archive_below),
    }
    with connection.cursor() as cursor:
        cursor.execute(_WEAK, values)
        ids = [pk for (pk,) in cursor.fetchall()]
    if not ids:
        return Fading()
    return Fading(
        rows=reading.records(scope_id=scope_id, ids=ids),
        last_used=_last_used(scope_id, ids),
        protected=reading.carrying_a_users_word(scope_id=scope_id),
    )


def _last_used(scope_id: int, ids: list[int]) -> dict[int, datetime]:
    with connection.cursor() as cursor:
        cursor.execute(_LAST_USED, {"scope": scope_id, "ids": ids})
        return dict(cursor.fetchall())


def decayed(*, scope_id: int, policy: Policy, now: datetime) -> list[Record]:
    """Rows that were archived without a successor and are past some retention rule: archiving does not end it.

    Those that carry a user's word are left out (R47). No query while no rule could name a row; one when none is named.
    """
    past = reading.past_retention(policy=policy, now=now)
    if not policy.prune or not past:
        return []
    rows = Observation.objects.filter(past, scope_id=scope_id, status=Status.ARCHIVED, superseded_by=None)
    ids = set(rows.values_list("pk", flat=True))
    if ids:
        ids -= reading.carrying_a_users_word(scope_id=scope_id)
    return reading.records(scope_id=scope_id, ids=ids, status=Status.ARCHIVED)
