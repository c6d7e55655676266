"""Figures of the store for people: its size over time, how much of it says the same, what was done about it (R86)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import connection
from django.db.models import Count, F, Min, Sum

from consolidation.models import Operation
from consolidation.operations import Kind, State
from observations.models import Episode, Observation, Scope
from observations.records import Status

_CURVE: Final = 40  # characters of the longest bar
_WAITING: Final = (State.PLANNED, State.NEEDS_HUMAN, State.APPROVED)


@dataclass(frozen=True, slots=True)
class Month:
    """The rows first said in one month, and the running totals up to its end."""

    month: str  # 2025-03
    said: int  # rows that somebody wrote, not derived ones
    said_total: int
    active_total: int  # rows of this or an earlier month that reads return now


@dataclass(frozen=True, slots=True)
class Stats:
    """The store of some scopes, now."""

    scopes: int
    episodes: int
    by_status: dict[str, int]
    same_text: int  # active rows whose text another active row of their scope has too
    waiting_merges: int  # rows that waiting merges would take out of the reads
    promotions: int  # applied
    applied: dict[str, int]  # operations applied and not undone, by kind
    oldest: datetime | None
    months: tuple[Month, ...]

    @property
    def active(self) -> int:
        """Rows that reads return."""
        return self.by_status.get(Status.ACTIVE, 0)

    @property
    def duplicates(self) -> float:
        """The share of active rows that say what another says: equal texts, or what waits to be merged when that is
        more.
        """
        return max(self.same_text, self.waiting_merges) / self.active if self.active else 0.0


def stats(*, scopes: Sequence[Scope]) -> Stats:
    """The figures of these scopes. Seven queries."""
    ids = [scope.pk for scope in scopes]
    rows = Observation.objects.filter(scope__in=ids)
    operations = Operation.objects.filter(scope__in=ids)
    waiting = operations.filter(kind=Kind.MERGE, status__in=_WAITING).aggregate(n=Sum(F("n_sources") - 1))["n"]
    applied = operations.filter(status=State.APPLIED).values_list("kind").annotate(n=Count("id"))
    kinds = dict(applied.order_by("kind"))
    return Stats(
        scopes=len(ids),
        episodes=Episode.objects.filter(scope__in=ids).count(),
        by_status=dict(rows.values_list("status").annotate(n=Count("id")).order_by("status")),
        same_text=_same_text(ids),
        waiting_merges=waiting or 0,
        promotions=kinds.get(Kind.PROMOTE, 0),
        applied=kinds,
        oldest=rows.aggregate(first=Min("created_at"))["first"],
        months=_months(ids),
    )


def _same_text(ids: list[int]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(n - 1), 0) FROM (SELECT count(*) AS n FROM observations_observation"
            " WHERE scope_id = ANY (%s) AND status = 'active' GROUP BY scope_id, text_key) AS texts",
            [ids],
        )
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def _months(ids: list[int]) -> tuple[Month, ...]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM') AS month,"
            " count(*) FILTER (WHERE derivation IS NULL), count(*) FILTER (WHERE status = 'active')"
            " FROM observations_observation WHERE scope_id = ANY (%s) GROUP BY month ORDER BY month",
            [ids],
        )
        rows: list[tuple[str, int, int]] = cursor.fetchall()
    months, said_total, active_total = [], 0, 0
    for month, said, active in rows:
        said_total, active_total = said_total + said, active_total + active
        months.append(Month(month=month, said=said, said_total=said_total, active_total=active_total))
    return tuple(months)


def stats_json(stats: Stats) -> dict[str, object]:
    """The figures as JSON."""
    return {
        "scopes": stats.scopes,
        "episodes": stats.episodes,
        "observations": sum(stats.by_status.values()),
        "by_status": stats.by_status,
        "duplicates": {
            "share": round(stats.duplicates, 4),
            "same_text": stats.same_text,
            "waiting_merges": stats.waiting_merges,
        },
        "promotions": stats.promotions,
        "applied": stats.applied,
        "oldest": stats.oldest.isoformat() if stats.oldest else None,
        "months": [
            {"month": m.month, "said": m.said, "said_total": m.said_total, "active_total": m.active_total}
            for m in stats.months
        ],
    }


def stats_text(stats: Stats) -> str:
    """The figures as text, with the growth curve as bars."""
    total = sum(stats.by_status.values())
    by_status = ", ".join(f"{number} {status}" for status, number in stats.by_status.items())
    applied = ", ".join(f"{number} {kind}" for kind, number in stats.applied.items())
    lines = [
        f"SCOPES        {stats.scopes}",
        f"EPISODES      {stats.episodes}",
        f"OBSERVATIONS  {total}" + (f"  ({by_status})" if by_status else ""),
        f"DUPLICATES    about {stats.duplicates:.1%} of what reads return"
        f"  ({stats.same_text} rows with the text of another, {stats.waiting_merges} in merges that wait)",
        f"PROMOTIONS    {stats.promotions}",
        f"APPLIED       {applied or 'nothing'}",
        f"OLDEST        {stats.oldest:%Y-%m-%d}" if stats.oldest else "OLDEST        nothing yet",
    ]
    return "\n".join([*lines, *_curve(stats.months)])


def _curve(months: Sequence[Month]) -> list[str]:
    """A bar per month: what reads return now as #, what was said and left the reads as dots."""
    if not months:
        return []
    longest = max(max(m.said_total, m.active_total) for m in months)
    lines = ["", "GROWTH        by month first said: # returned by reads now, . said and no longer returned"]
    for m in months:
        solid = round(_CURVE * m.active_total / longest)
        dots = max(0, round(_CURVE * m.said_total / longest) - solid)
        bar = ("#" * solid + "." * dots).ljust(_CURVE)
        lines.append(f"  {m.month}  {bar}  {m.active_total} of {m.said_total} (+{m.said})")
    return lines
