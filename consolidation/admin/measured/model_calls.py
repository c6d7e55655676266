"""The language model: what it was asked for, what that cost, how it failed, and what its answers were no use for.

Figures only; no word of a question or an answer is read here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from typing import Any, Final

from django.conf import settings
from django.db.models import Count, F, Max, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.http import HttpRequest, HttpResponse

from consolidation.admin.plan.reading import visible_plans
from consolidation.admin.texts import when
from consolidation.models import Draft
from consolidation.operations import plan, visible
from observations import spending
from observations.admin.base import Reach, Screen
from observations.admin.listing import scope_filter
from observations.llm import Answer
from observations.models import ModelCall

DAYS: Final = (7, 30, 90)
DRAFTS: Final = 100  # lines of drafts that could not be used
PLANS: Final = 200  # plans looked at for the one that names a step which failed
_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Day:
    """What one purpose took on one day of UTC."""

    day: str
    purpose: str
    calls: str
    read: str  # tokens, those of the cache among them
    written: str
    cost: str
    failed: tuple[tuple[str, int], ...]  # how, and how often
    held: str  # money put aside for batches under way; empty: none


@dataclass(frozen=True, slots=True)
class Budget:
    """What today has used of a limit."""

    whose: str
    used: str
    limit: str  # empty: there is none
    share: str  # of a hundred, for the picture


@dataclass(frozen=True, slots=True)
class Unusable:
    """Questions of one scope whose answer could not be used."""

    scope: str
    kind: str
    answer: str
    questions: int
    attempts: int
    last: str
    plan: int | None  # the newest plan that says so
    plan_name: str


class ModelCallScreen(Screen):
    """One page; a call has none of its own."""

    has_page = False

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """Calls by day and purpose, today's budget, and answers of no use. Calls of hidden scopes count nowhere."""
        reach = Reach.of(request)
        asked, chosen = request.GET.get("show", ""), scope_filter(request=request, reach=reach)
        days, scope = int(asked) if asked in map(str, DAYS) else DAYS[0], chosen.value
        calls = _visible(reach, scope)
        context = {
            "title": "Language model",
            "configured": spending.configured(),
            "model": visible(settings.PALIMPSEST_MODEL),
            "filters": (chosen,),
            "tabs": [(number, number == days) for number in DAYS],
            "show": days,
            "days": _by_day(calls, days=days),
            "budget": _budget(reach, scope),
            "drafts": _unusable(reach, scope),
        }
        return self.render(request, "admin/observations/modelcall/change_list.html", context)


def _visible(reach: Reach, scope: str) -> QuerySet[ModelCall]:
    """Calls of one scope or of all visible ones; those of no scope only for people who see every scope. No query."""
    return ModelCall.objects.filter(scope_id=int(scope)) if scope else reach.rows(ModelCall.objects.all())


# --- by day and purpose ---------------------------------------------------------------------------------------------


def _by_day(calls: QuerySet[ModelCall], *, days: int) -> list[Day]:
    """The newest day first, then by purpose. Money put aside counts as money, never as a call. One query."""
    rows = (
        calls.filter(at__gte=spending.Today() - timedelta(days=days - 1))
        .values("answer", day=TruncDate("at", tzinfo=UTC), of=F("purpose"))
        .annotate(
            calls=Count("pk"),
            read=Sum(F("input_tokens") + F("cache_read_tokens") + F("cache_write_tokens")),
            written=Sum("output_tokens"),
            cost=Sum("cost_microdollars"),
        )
        .order_by("-day", "of", "answer")
    )
    groups: defaultdict[tuple[date, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["day"], row["of"]].append(row)
    found = [_day(day, purpose, group) for (day, purpose), group in groups.items()]
    return [row for row in found if row.calls != "0" or row.held]


def _day(day: date, purpose: str, group: Sequence[Mapping[str, Any]]) -> Day:
    asked = [row for row in group if row["answer"] != Answer.HELD]
    held = sum(row["cost"] for row in group if row["answer"] == Answer.HELD)
    return Day(
        day=f"{day.day} {day:%b %Y}",
        purpose=visible(purpose),
        calls=f"{sum(row['calls'] for row in asked):,}",
        read=f"{sum(row['read'] for row in asked):,}",
        written=f"{sum(row['written'] for row in asked):,}",
        cost=dollars(sum(row["cost"] for row in asked)),
        failed=tuple((visible(row["answer"]), row["calls"]) for row in asked if row["answer"] != Answer.OK),
        held=dollars(held) if held else "",
    )


def dollars(microdollars: float) -> str:
    """Money as it is shown: "$1.20", or to a hundredth of a cent where it is less."""
    amount = microdollars / _MILLION
    return f"${amount:,.2f}" if amount >= 1 or round(amount, 2) == amount else f"${amount:.4f}"


# --- today's budget -------------------------------------------------------------------------------------------------


def _budget(reach: Reach, scope: str) -> Budget | None:
    """What today has used: of one scope's limit, or of the whole store's for people who see all of it. One query at
    most.
    """
    if scope:
        limit = settings.PALIMPSEST_BUDGET_DOLLARS_PER_SCOPE_PER_DAY
        return _used("this scope", spending.spent_today(scope_id=int(scope)), limit)
    if not reach.everything:
        return None
    return _used("the whole store", spending.spent_today(), settings.PALIMPSEST_BUDGET_DOLLARS_PER_DAY)


def _used(whose: str, spent: int, limit: float) -> Budget:
    used = min(1.0, spent / (limit * _MILLION)) if limit > 0 else 1.0
    endless = limit == float("inf")
    return Budget(
        whose=whose,
        used=dollars(spent),
        limit="" if endless else dollars(limit * _MILLION),
        share="0" if endless else f"{100 * used:.1f}",
    )


# --- answers of no use ----------------------------------------------------------------------------------------------


def _unusable(reach: Reach, scope: str) -> list[Unusable]:
    """Questions without a usable answer, by scope, kind and how it ended, the newest first. Two queries."""
    drafts = Draft.objects.filter(~Q(answer=Answer.OK), scope__in=reach.scopes)
    drafts = drafts.filter(scope_id=int(scope)) if scope else drafts
    rows = list(
        drafts.values("scope__name", "kind", "answer")
        .annotate(questions=Count("pk"), attempts=Sum("attempts"), last=Max("at"))
        .order_by("-last")[:DRAFTS]
    )
    plans = _plans_that_say_so(reach) if rows else {}
    return [
        Unusable(
            scope=visible(row["scope__name"]),
            kind=row["kind"],
            answer=visible(row["answer"]),
            questions=row["questions"],
            attempts=row["attempts"],
            last=when(row["last"]),
            plan=(found := plans.get((row["scope__name"], row["kind"]))),
            plan_name=plan(found) if found else "",
        )
        for row in rows
    ]


def _plans_that_say_so(reach: Reach) -> dict[tuple[str, str], int]:
    """The newest plan that notes a step of a scope as not done, by both. One query."""
    rows = visible_plans(reach).exclude(failures=[]).order_by("-pk").values_list("pk", "failures")[:PLANS]
    found: dict[tuple[str, str], int] = {}
    for pk, failures in rows:
        for scope, step in _steps(failures):
            found.setdefault((scope, step), pk)
    return found


def _steps(failures: Iterable[dict[str, Any]]) -> Iterable[tuple[str, str]]:
    return ((str(item.get("scope")), str(item["step"])) for item in failures if item.get("step"))
