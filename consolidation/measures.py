"""Figures of the store for people: its size over time, how much of it says the same, what was done about it and what
that took (R86).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import connection
from django.db.models import Count, F, Max, Min, Q, Sum

from consolidation.models import Alias, Consumption, Operation, Plan, PlanItem
from consolidation.operations import Kind, State
from consolidation.operations import plan as plan_label
from observations import spending
from observations.models import Episode, GivenKey, Observation, Scope
from observations.records import KeyState, Status

MODEL_DAYS: Final = 30  # days of UTC, today among them, over which calls of the model are counted

_CURVE: Final = 40  # characters of the longest bar
_MILLION: Final = 1_000_000
_WAITING: Final = (State.PLANNED, State.NEEDS_HUMAN, State.APPROVED)


@dataclass(frozen=True, slots=True)
class Month:
    """The rows first said in one month, and the running totals up to its end."""

    month: str  # 2025-03
    said: int  # rows that somebody wrote, not derived ones
    said_total: int
    active_total: int  # rows of this or an earlier month that reads return now


@dataclass(frozen=True, slots=True)
class Planned:
    """The newest plan that covers any of the scopes, and how much of it is not new."""

    plan: int
    operations: int  # its items of these scopes
    before: int  # of those, what an earlier plan proposed too
    held_back: int  # questions of the whole plan that its review budget left for another day

    @property
    def churn(self) -> float:
        """The share of the plan that people were shown before: what nobody decides comes back."""
        return self.before / self.operations if self.operations else 0.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What language models were asked for these scopes in the last MODEL_DAYS."""

    calls: int = 0
    failed: int = 0  # those the budget did not allow among them
    microdollars: int = 0


@dataclass(frozen=True, slots=True)
class Stats:
    """The store of some scopes, now."""

    scopes: int
    episodes: int
    by_status: dict[str, int]
    same_text: int  # active rows whose text another active row of their scope has too
    waiting_merges: int  # rows that waiting merges would take out of the reads
    applied: dict[str, int]  # operations applied and not undone, by kind
    archived_by_decay: int  # rows
    aliases: int  # that hold
    longest_chain: int  # merges after one another behind one active row
    given_keys: dict[str, int]  # active rows by what a model said about their key
    newest: Planned | None  # None: nothing was planned yet
    asked: Asked
    oldest: datetime | None
    months: tuple[Month, ...]

    @property
    def active(self) -> int:
        """Rows that reads return."""
        return self.by_status.get(Status.ACTIVE, 0)

    @property
    def promotions(self) -> int:
        """Facts promoted from episodes, applied and not undone."""
        return self.applied.get(Kind.PROMOTE, 0)

    @property
    def compactions(self) -> int:
        """Summaries made of episodes, applied and not undone."""
        return self.applied.get(Kind.COMPACT, 0)

    @property
    def duplicates(self) -> float:
        """The share of active rows that say what another says: equal texts, or what waits to be merged when that is
        more.
        """
        return max(self.same_text, self.waiting_merges) / self.active if self.active else 0.0


def stats(*, scopes: Sequence[Scope]) -> Stats:
    """The figures of these scopes. Twelve queries, or thirteen once there is a plan, however much there is."""
    ids = [scope.pk for scope in scopes]
    rows = Observation.objects.filter(scope__in=ids)
    operations = Operation.objects.filter(scope__in=ids)
    waiting = operations.filter(kind=Kind.MERGE, status__in=_WAITING).aggregate(n=Sum(F("n_sources") - 1))["n"]
    applied = operations.filter(status=State.APPLIED).values_list("kind").annotate(n=Count("id"))
    ends = rows.aggregate(oldest=Min("created_at"), chain=Max("chain", filter=Q(status=Status.ACTIVE)))
    said = GivenKey.objects.filter(scope__in=ids, observation__status=Status.ACTIVE)
    keys = said.values_list("state").annotate(n=Count("id"))
    return Stats(
        scopes=len(ids),
        episodes=Episode.objects.filter(scope__in=ids).count(),
        by_status=dict(rows.values_list("status").annotate(n=Count("id")).order_by("status")),
        same_text=_same_text(ids),
        waiting_merges=waiting or 0,
        applied=dict(applied.order_by("kind")),
        archived_by_decay=Consumption.objects.filter(scope__in=ids, operation__kind=Kind.ARCHIVE).count(),
        aliases=Alias.objects.filter(scope__in=ids, removed_at=None).count(),
        longest_chain=ends["chain"] or 0,
        given_keys={str(state): 0 for state in KeyState} | dict(keys.order_by("state")),
        newest=_newest(ids),
        asked=_asked(ids),
        oldest=ends["oldest"],
        months=_months(ids),
    )


def _newest(ids: list[int]) -> Planned | None:
    """One or two queries."""
    plan = Plan.objects.filter(policies__has_any_keys=[str(pk) for pk in ids]).order_by("-pk").first()
    if plan is None:
        return None
    items = PlanItem.objects.filter(plan=plan, scope__in=ids)
    before = Count("id", filter=Q(operation__created_at__lt=plan.created_at))
    counted = items.aggregate(operations=Count("id"), before=before)
    return Planned(plan=plan.pk, held_back=int(plan.figures.get("held_back", 0)), **counted)


def _asked(ids: list[int]) -> Asked:
    """One query."""
    used = spending.usage(days=MODEL_DAYS, scope_ids=ids)
    return Asked(
        calls=sum(use.calls for use in used),
        failed=sum(use.failed for use in used),
        microdollars=sum(use.cost_microdollars for use in used),
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
    """The figures as JSON. `newest_plan` is null before the first plan; money is in dollars."""
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
        "compactions": stats.compactions,
        "archived_by_decay": stats.archived_by_decay,
        "aliases": stats.aliases,
        "longest_chain": stats.longest_chain,
        "applied": stats.applied,
        "given_keys": stats.given_keys,
        "newest_plan": _newest_json(stats.newest),
        "model": {
            "days": MODEL_DAYS,
            "calls": stats.asked.calls,
            "failed": stats.asked.failed,
            "dollars": stats.asked.microdollars / _MILLION,
        },
        "oldest": stats.oldest.isoformat() if stats.oldest else None,
        "months": [
            {"month": m.month, "said": m.said, "said_total": m.said_total, "active_total": m.active_total}
            for m in stats.months
        ],
    }


def _newest_json(newest: Planned | None) -> dict[str, object] | None:
    if newest is None:
        return None
    return {
        "plan": plan_label(newest.plan),
        "operations": newest.operations,
        "proposed_before": newest.before,
        "churn": round(newest.churn, 4),
        "held_back": newest.held_back,
    }


def stats_text(stats: Stats) -> str:
    """The figures as text, with the growth curve as bars."""
    asked = stats.asked
    keys = ", ".join(f"{number} {state}" for state, number in stats.given_keys.items())
    lines = [
        f"SCOPES        {stats.scopes}",
        f"EPISODES      {stats.episodes}",
        f"OBSERVATIONS  {sum(stats.by_status.values())}" + _listed(stats.by_status),
        f"DUPLICATES    about {stats.duplicates:.1%} of what reads return"
        f"  ({stats.same_text} rows with the text of another, {stats.waiting_merges} in merges that wait)",
        f"PROMOTIONS    {stats.promotions}",
        f"COMPACTIONS   {stats.compactions}",
        f"FADED         {stats.archived_by_decay} archived by decay",
        f"ALIASES       {stats.aliases}",
        f"CHAINS        at most {stats.longest_chain} merges behind one row",
        f"APPLIED       {', '.join(f'{number} {kind}' for kind, number in stats.applied.items()) or 'nothing'}",
        f"NEWEST PLAN   {_newest_text(stats.newest)}",
        f"MODEL         {asked.calls} calls in {MODEL_DAYS} days, {asked.failed} without an answer,"
        f" ${asked.microdollars / _MILLION:.2f}",
        f"KEYS          {keys}",
        f"OLDEST        {stats.oldest:%Y-%m-%d}" if stats.oldest else "OLDEST        nothing yet",
    ]
    return "\n".join([*lines, *_curve(stats.months)])


def _listed(by_status: dict[str, int]) -> str:
    listed = ", ".join(f"{number} {status}" for status, number in by_status.items())
    return f"  ({listed})" if listed else ""


def _newest_text(newest: Planned | None) -> str:
    if newest is None:
        return "nothing was planned yet"
    return (
        f"{plan_label(newest.plan)}: {newest.before} of {newest.operations} operations proposed before"
        f" (churn {newest.churn:.0%}), {newest.held_back} held back by the review budget"
    )


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
