"""The rows of one scope that the rules have to judge, as values (DESIGN 8).

Called inside the planner's read-only repeatable-read transaction; nothing here writes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from django.db import connection
from django.db.models import Count, Q, QuerySet

from consolidation.policy import Policy
from consolidation.prune import Spent
from observations.models import Evidence, GivenKey, Observation, Use
from observations.records import Record, StatedBy, Status, WrittenBy, roles_of

_CHUNK: Final = 5_000  # rows of one ORM query


def records(
    *, scope_id: int, ids: Iterable[int], status: Status = Status.ACTIVE, aliases: Mapping[str, str] | None = None
) -> list[Record]:
    """The rows of these ids that have a status, as the rules see them, by id: with the keys a model gave, and subjects
    under their names. Four queries per 5,000 ids.
    """
    found: list[Record] = []
    ordered = iter(sorted(set(ids)))
    while part := list(islice(ordered, _CHUNK)):
        roots, used, given = _roots(scope_id, part), _uses(scope_id, part), _given(scope_id, part)
        rows = Observation.objects.filter(scope_id=scope_id, pk__in=part, status=status).order_by("pk")
        found += [row.record(roots=roots[row.pk], uses=used[row.pk], given=given.get(row.pk)) for row in rows]
    return [_named(record, aliases) for record in found] if aliases else found


def untouchable(*, scope_id: int, policy: Policy) -> int:
    """How many active rows of a scope are of a kind that the policy lets no proposal touch. One query, or none."""
    if not policy.untouchable:
        return 0
    return Observation.objects.active().filter(scope_id=scope_id, kind__in=policy.untouchable).count()


def unreconciled(*, scope_id: int) -> int:
    """How many current rows of a scope the background wrote without comparing them: an outage, an answer that could not
    be used, a row that moved meanwhile. One query.
    """
    return _flagged(scope_id).count()


def flagged(*, scope_id: int, ids: Iterable[int]) -> frozenset[int]:
    """Which of these rows are so. One query per 5,000 ids."""
    found: set[int] = set()
    ordered = iter(sorted(set(ids)))
    while part := list(islice(ordered, _CHUNK)):
        found.update(_flagged(scope_id).filter(pk__in=part).values_list("pk", flat=True))
    return frozenset(found)


def _flagged(scope_id: int) -> QuerySet[Observation]:
    rows = Observation.objects.active().filter(scope_id=scope_id)
    return rows.filter(written_by=WrittenBy.BACKGROUND, reconciled_at=None)


def _given(scope_id: int, ids: Sequence[int]) -> dict[int, GivenKey]:
    rows = GivenKey.objects.filter(scope_id=scope_id, observation_id__in=ids, state=GivenKey.State.GIVEN)
    return {row.observation_id: row for row in rows}


def _named(record: Record, aliases: Mapping[str, str]) -> Record:
    subject, predicate, object_ = record.key
    name = aliases.get(subject, subject)
    return record if name == subject else replace(record, key=(name, predicate, object_), renamed=True)


def _roots(scope_id: int, ids: Sequence[int]) -> Mapping[int, frozenset[str]]:
    roots: defaultdict[int, frozenset[str]] = defaultdict(frozenset)
    rows = Evidence.objects.filter(scope_id=scope_id, observation_id__in=ids)
    for pk, root in rows.values_list("observation_id", "root_source"):
        roots[pk] |= {root}
    return roots


def _uses(scope_id: int, ids: Sequence[int]) -> Counter[int]:
    rows = Use.objects.filter(scope_id=scope_id, observation_id__in=ids)
    return Counter(dict(rows.values_list("observation_id").annotate(n=Count("id")).order_by()))


@dataclass(frozen=True, slots=True)
class Prunable:
    """What the rules of pruning look at."""

    aged: list[Record]  # active rows past some retention rule
    spent: list[Spent]  # derived rows in use, with their archived sources
    protected: frozenset[int]  # rows that carry a user's word further down their lineage


def prunable(*, scope_id: int, policy: Policy, now: datetime) -> Prunable:
    """The rows of a scope that the pruning rules have to judge. No query unless the policy prunes, else two or more."""
    if not policy.prune:
        return Prunable([], [], frozenset())
    past = past_retention(policy=policy, now=now)
    aged: list[int] = []
    if past:
        rows = Observation.objects.active().filter(past, scope_id=scope_id)
        aged = list(rows.values_list("pk", flat=True))
    sources = _archived_sources(scope_id)
    spent = _spent(scope_id, sources)
    protected = carrying_a_users_word(scope_id=scope_id) if aged or spent else frozenset[int]()
    return Prunable(aged=records(scope_id=scope_id, ids=aged), spent=spent, protected=protected)


def past_retention(*, policy: Policy, now: datetime) -> Q:
    """Which observations some retention rule names, but for their uses; empty, and false, without a rule. No query."""
    past = Q()
    for rule in policy.retention:
        kind = Q() if rule.kind is None else Q(kind=rule.kind)
        past |= kind & Q(stated_by=rule.stated_by, created_at__lt=now - timedelta(days=rule.older_than_days))
    return past


# What was archived for a derived row: its lineage names it, or it is a merged row that says the same with the same key,
# and the lineage names what that one came from (decision 0014).
_ARCHIVED_SOURCES: Final = """
SELECT d.id, s.id FROM observations_observation d
JOIN observations_observation s ON s.scope_id = d.scope_id AND s.superseded_by_id = d.id AND s.status = 'archived'
LEFT JOIN observations_lineage l ON l.scope_id = d.scope_id AND l.derived_id = d.id AND l.source_observation_id = s.id
WHERE d.scope_id = %s AND d.status = 'active' AND d.derivation IS NOT NULL AND (l.id IS NOT NULL
  OR (s.derivation = 'merge' AND d.derivation = 'merge'
      AND (s.text_key, s.subject_key, s.sp_key, s.spo_key) = (d.text_key, d.subject_key, d.sp_key, d.spo_key)))
  AND EXISTS (SELECT 1 FROM observations_use u WHERE u.scope_id = d.scope_id AND u.observation_id = d.id
              AND u.used_at >= d.derived_at)
ORDER BY 1, 2
"""


def _archived_sources(scope_id: int) -> Mapping[int, list[int]]:
    """Per active derived row that was used since it was derived: its archived sources (R51, I13). One query."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_ARCHIVED_SOURCES, [scope_id])
        for derived, source in cursor.fetchall():
            found[derived].append(source)
    return found


def _spent(scope_id: int, sources: Mapping[int, list[int]]) -> list[Spent]:
    if not sources:
        return []
    derived = records(scope_id=scope_id, ids=sources)
    every = [source for rows in sources.values() for source in rows]
    archived = {row.id: row for row in records(scope_id=scope_id, ids=every, status=Status.ARCHIVED)}
    used = _uses(scope_id, sorted(sources))
    return [
        Spent(
            derived=row,
            sources=tuple(archived[source] for source in sources[row.id] if source in archived),
            uses=used[row.id],
        )
        for row in derived
    ]


def carrying_a_users_word(*, scope_id: int) -> frozenset[int]:
    """Rows of a scope with a user's word further down their lineage, whatever their own origin. One query.

    A summary of what a user said carries it too: its episodes left the reads. A promoted fact does not: they are there.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH RECURSIVE carries(id) AS ("
            " SELECT l.derived_id FROM observations_lineage l JOIN observations_episode e"
            " ON e.id = l.source_episode_id AND e.scope_id = l.scope_id"
            " WHERE l.scope_id = %(scope)s AND l.derivation = 'compact' AND lower(btrim(e.role)) = ANY (%(roles)s)"
            " UNION"
            " SELECT l.derived_id FROM observations_lineage l JOIN observations_observation s"
            " ON s.id = l.source_observation_id AND s.scope_id = l.scope_id"
            " WHERE l.scope_id = %(scope)s AND s.stated_by = 'user'"
            " UNION SELECT l.derived_id FROM observations_lineage l JOIN carries c ON c.id = l.source_observation_id"
            " WHERE l.scope_id = %(scope)s) SELECT id FROM carries",
            {"scope": scope_id, "roles": list(roles_of(StatedBy.USER))},
        )
        return frozenset(pk for (pk,) in cursor.fetchall())
