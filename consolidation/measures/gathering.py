"""What the admin's first page draws: a fixed number of queries, each aggregated by the database."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from typing import Any, Final

from django.db import connection
from django.db.models import Count, F, Q

from consolidation import review, sampling
from consolidation.measures.journal import replay, size_over_time, standing
from consolidation.measures.values import (
    DECIDING_DAYS,
    MODEL_DAYS,
    RISKS,
    Asked,
    Board,
    Duplicates,
    Planned,
    Queue,
    Run,
    Spent,
    Suite,
)
from consolidation.models import Plan, PlanItem, ProbeRun
from consolidation.operations import Kind, State
from consolidation.probes import K
from consolidation.review import ageing
from observations import spending
from observations.models import Scope, database_now
from observations.records import Status

EXACT: Final = 20_000  # active rows up to which equal texts are counted; of more, from a part of the texts
PART: Final = 16
PLANS: Final = 12
SUITES: Final = 4
RUNS: Final = 40  # of one suite
_WAITING: Final = (State.PLANNED, State.NEEDS_HUMAN, State.APPROVED)


def board(*, scopes: Sequence[Scope]) -> Board:
    """The board of these scopes. Fifteen queries, and one more at a process's first look of a day at any of them."""
    ids = [scope.pk for scope in scopes]
    now = database_now()
    past = replay(scopes=scopes, now=now)
    step, size = size_over_time(past=past, today=now.astimezone(UTC).date())
    by_status = standing(past=past)
    operations = _operations(ids)
    spent, asked = _spent(ids, now.astimezone(UTC).date())
    return Board(
        step=step,
        size=size,
        by_status=by_status,
        oldest=past.oldest,
        duplicates=_duplicates(ids, active=by_status.get(Status.ACTIVE, 0), merges=operations["merges"]),
        applied=operations["applied"],
        chains=_chains(ids),
        queue=operations["queue"],
        plans=_plans(ids),
        suites=_suites(ids),
        spent=spent,
        asked=asked,
        notices=sampling.notices(scopes=scopes),
    )


def _rows(statement: str, values: dict[str, Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


# --- rows -------------------------------------------------------------------------------------------------------------

# The key of a text is a hash: a range of keys is a fair draw of texts, all rows of each, and an index holds them by it.
_SAME_TEXT: Final = """
SELECT coalesce(sum(n - 1), 0) FROM (
  SELECT count(*) AS n FROM observations_observation
  WHERE scope_id = ANY (%(scopes)s) AND status = 'active' AND text_key < %(below)s GROUP BY scope_id, text_key
) AS texts
"""
_LOWEST: Final = -(2**63)


def _duplicates(ids: Sequence[int], *, active: int, merges: int) -> Duplicates:
    """One query."""
    part = PART if active > EXACT else 1
    below = _LOWEST + 2**64 // part if part > 1 else 2**63 - 1
    [(same,)] = _rows(_SAME_TEXT, {"scopes": list(ids), "below": below})
    return Duplicates(same_text=int(same) * part, about=part > 1, waiting_merges=merges)


_CHAINS: Final = """
SELECT o.chain, count(*) FROM consolidation_operation p
JOIN observations_observation o ON o.id = p.derived_id AND o.scope_id = p.scope_id
WHERE p.scope_id = ANY (%(scopes)s) AND p.status = 'applied' AND p.kind = 'merge'
      AND o.status = 'active' AND o.chain > 0
GROUP BY 1 ORDER BY 1
"""


def _chains(ids: Sequence[int]) -> dict[int, int]:
    """One query."""
    return dict(_rows(_CHAINS, {"scopes": list(ids)}))


# --- operations -------------------------------------------------------------------------------------------------------

_OPERATIONS: Final = """
SELECT kind, status, approval, count(*), sum(n_sources - 1), min(created_at),
       count(*) FILTER (WHERE decided_by <> '' AND decided_at >= date_trunc('day', statement_timestamp(), 'UTC'))
FROM consolidation_operation WHERE scope_id = ANY (%(scopes)s) GROUP BY 1, 2, 3
"""
_SECONDS: Final = """
SELECT count(*), count(opened), percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM decided_at - opened))
FROM (
  SELECT o.decided_at, (
    SELECT min(i.opened_at) FROM consolidation_planitem i
    WHERE i.scope_id = o.scope_id AND i.operation_id = o.id AND i.opened_at <= o.decided_at
  ) AS opened
  FROM consolidation_operation o
  WHERE o.scope_id = ANY (%(scopes)s) AND o.decided_by <> ''
        AND o.decided_at >= statement_timestamp() - %(days)s * interval '1 day'
) AS decided
"""


def _operations(ids: Sequence[int]) -> dict[str, Any]:
    """Operations by kind, what waits, how fast people decide, and how well they look. Five queries."""
    applied: Counter[str] = Counter()
    waiting: Counter[str] = Counter()
    oldest: defaultdict[str, list[datetime]] = defaultdict(list)
    today = merges = 0
    risk_of = {kind: risk for risk, kinds in RISKS.items() for kind in kinds}
    for kind, status, approval, count, folded, first, decided in _rows(_OPERATIONS, {"scopes": list(ids)}):
        today += decided
        if status == State.APPLIED:
            applied[kind] += count
        if kind == Kind.MERGE and status in _WAITING:
            merges += int(folded)
        if status == State.NEEDS_HUMAN or (status == State.SKIPPED and approval == "NEEDS_HUMAN"):
            waiting[risk_of[Kind(kind)]] += count
            oldest[risk_of[Kind(kind)]].append(first)
    [(decided, timed, median)] = _rows(_SECONDS, {"scopes": list(ids), "days": DECIDING_DAYS})
    queue = Queue(
        waiting={risk: waiting[risk] for risk in RISKS},
        oldest=min(chain(*oldest.values()), default=None),
        oldest_by_risk={risk: min(oldest[risk], default=None) for risk in RISKS},
        overdue=ageing.overdue(scopes=ids),
        decided_today=today,
        decided=decided,
        timed=timed,
        median_seconds=None if median is None else float(median),
        drills=review.catch_rate(scopes=ids),
    )
    return {"applied": dict(sorted(applied.items())), "queue": queue, "merges": merges}


def _plans(ids: Sequence[int]) -> tuple[Planned, ...]:
    """The newest plans that cover any of the scopes, with their items of these scopes only (C6). Two queries."""
    plans = list(Plan.objects.filter(policies__has_any_keys=[str(pk) for pk in ids]).order_by("-pk")[:PLANS])[::-1]
    items = PlanItem.objects.filter(plan__in=[plan.pk for plan in plans] or [0], scope__in=ids)
    before = Count("id", filter=Q(operation__created_at__lt=F("plan__created_at")))
    found = items.values_list("plan").annotate(n=Count("id"), known=before).order_by()
    counted = {pk: (n, known) for pk, n, known in found}
    return tuple(
        Planned(
            plan=plan.pk,
            at=plan.created_at,
            operations=counted.get(plan.pk, (0, 0))[0],
            before=counted.get(plan.pk, (0, 0))[1],
            held_back=int(plan.figures.get("held_back", 0)),
        )
        for plan in plans
    )


# --- reading and asking -----------------------------------------------------------------------------------------------


def _suites(ids: Sequence[int]) -> tuple[Suite, ...]:
    """The suites that ran last, with their newest runs. One query."""
    newest = (
        ProbeRun.objects.filter(scope__in=ids, figures__k=K)
        .select_related("suite", "scope")
        .order_by("-pk")[: SUITES * RUNS]
    )
    found: defaultdict[int, list[ProbeRun]] = defaultdict(list)
    for row in newest:
        if row.suite_id in found or len(found) < SUITES:
            found[row.suite_id].append(row)
    return tuple(
        Suite(
            suite=pk,
            name=rows[0].suite.name,
            scope=rows[0].scope.name,
            runs=tuple(_run(row) for row in reversed(rows[:RUNS])),
        )
        for pk, rows in found.items()
    )


def _run(row: ProbeRun) -> Run:
    measured = row.recall is not None
    distinct = row.figures.get("measures", {}).get("distinct") if measured else None
    return Run(
        at=row.at,
        cause=row.cause,
        records=int(row.figures.get("records", 0)),
        recall=row.recall,
        distinct=distinct,
    )


def _spent(ids: Sequence[int], today: date) -> tuple[tuple[Spent, ...], Asked]:
    """One query."""
    used = spending.usage(days=MODEL_DAYS, scope_ids=list(ids))
    calls, money = Counter[Any](), Counter[Any]()
    for use in used:
        calls[use.day] += use.calls
        money[use.day] += use.cost_microdollars
    days = [today - timedelta(days=back) for back in reversed(range(MODEL_DAYS))]
    asked = Asked(
        calls=sum(use.calls for use in used),
        failed=sum(use.failed for use in used),
        microdollars=sum(use.cost_microdollars for use in used),
    )
    return tuple(Spent(day=day, calls=calls[day], microdollars=money[day]) for day in days), asked
