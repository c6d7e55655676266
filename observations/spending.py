"""What the language model costs: the door with today's budget before it and a row of every call behind it.

The budget is counted in the database, by its clock, per day of UTC, so that it holds for all processes together. A row
of `ModelCall` is its own transaction: what was paid is kept, whatever becomes of the work it was paid for. So the door
is used outside transactions, and Django raises RuntimeError when it is not ("A durable atomic block ...").
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from typing import Final

from django.conf import settings
from django.db import Error, connection, models, transaction
from django.db.models import Count, Q, Sum
from django.db.models.functions import TruncDate

from observations.llm import Answer, AnthropicCompleter, BudgetSpent, Call, Completer, Cost, NoModel, Price
from observations.llm.pricing import UNKNOWN, family, price_in
from observations.models import ModelCall

log = logging.getLogger(__name__)

_LOCK: Final = 0x5063 << 40  # our corner of PostgreSQL's advisory locks, beside the planner's
_MILLION: Final = 1_000_000
_BATCH: Final = "batch"  # the purpose of money that is put aside


class Today(models.Func):
    """The start of the day in UTC by the database's clock; the same for a whole statement, so that an index serves."""

    template = "date_trunc('day', statement_timestamp(), 'UTC')"
    output_field = models.DateTimeField()


def configured() -> bool:
    """Whether a model can be asked at all. No query."""
    return bool(settings.ANTHROPIC_API_KEY)


def door(*, scope_id: int | None, model: str = "", seconds: float | None = None) -> Completer:
    """The model, for requests of this scope (None: of the whole store). Raises NoModel when none is configured.

    No query and no connection until something is asked; then one query before a call and one insert after it. `model`
    names another one than the settings do. With `seconds` there is one attempt, and it may take so long.
    """
    if not configured():
        raise NoModel("No language model is configured; set ANTHROPIC_API_KEY, then run this again.")
    try:
        price = price_in(settings.PALIMPSEST_MODEL_PRICES)
    except ValueError as error:
        raise NoModel(str(error)) from None
    model = model or settings.PALIMPSEST_MODEL
    return AnthropicCompleter(
        model=model,
        api_key=settings.ANTHROPIC_API_KEY,
        base_url=settings.ANTHROPIC_BASE_URL or None,
        timeout_seconds=settings.PALIMPSEST_MODEL_TIMEOUT_SECONDS if seconds is None else seconds,
        max_retries=settings.PALIMPSEST_MODEL_RETRIES if seconds is None else 0,
        recorder=record,
        budget=DailyBudget(model=model, price=price),
        scope_id=scope_id,
        price=price,
    )


# --- what was spent --------------------------------------------------------------------------------------------------


def spent_today(*, scope_id: int | None = None) -> int:
    """Microdollars of today, batches under way at the most they can cost: of a scope, or (None) of all. One query."""
    spent = _spent()
    return sum(spent.values()) if scope_id is None else spent.get(scope_id, 0)


@dataclass(frozen=True, slots=True)
class Use:
    """What one purpose took on one day of UTC."""

    day: date
    purpose: str  # "batch": put aside for batches that have not ended, or whose process died
    calls: int
    failed: int  # every call that gave no answer, also those the budget did not allow
    input_tokens: int  # those read from and written to the cache among them
    output_tokens: int
    cost_microdollars: int


def usage(*, days: int, scope_ids: Collection[int] | None = None) -> list[Use]:
    """What was used in the last days, today among them: the newest first, then by purpose. By these scopes, or (None)
    by all and by no scope. One query.
    """
    call = ~Q(answer=Answer.HELD)
    whose = Q() if scope_ids is None else Q(scope__in=scope_ids)
    rows = (
        ModelCall.objects.filter(whose, at__gte=Today() - timedelta(days=days - 1))
        .values(day=TruncDate("at", tzinfo=UTC), of=models.F("purpose"))
        .annotate(
            calls=Count("pk", filter=call),
            failed=Count("pk", filter=call & ~Q(answer=Answer.OK)),
            read=Sum(models.F("input_tokens") + models.F("cache_read_tokens") + models.F("cache_write_tokens")),
            written=Sum("output_tokens"),
            cost=Sum("cost_microdollars"),
        )
        .filter(Q(calls__gt=0) | ~Q(cost=0))
        .order_by("-day", "of")
    )
    return [
        Use(row["day"], row["of"], row["calls"], row["failed"], row["read"], row["written"], row["cost"])
        for row in rows
    ]


def _spent() -> dict[int | None, int]:
    """Microdollars of today by scope; None for calls of no scope."""
    rows = ModelCall.objects.filter(at__gte=Today()).values_list("scope_id").annotate(Sum("cost_microdollars"))
    return dict(rows.order_by())


# --- the budget ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyBudget:
    """Today's budget, of all scopes together and of each. Implements `Budget`.

    Two processes that ask at the same moment may each make one more call than is left; batches are put aside one
    process after the other, and never together more than is left.
    """

    model: str
    price: Price | None = None

    def check(self, *, cost: Cost) -> None:
        """Raise BudgetSpent when the cost is more than today has left. One query."""
        try:
            with transaction.atomic(durable=True):
                spent = _spent()
        except Error:
            raise _unreadable() from None
        if refusal := self._refusal(spent, cost):
            raise refusal

    def hold(self, *, costs: Sequence[Cost]) -> PutAside:
        """Put aside what today has left for the costs, in order. Raises no error of the database: then all is refused.

        Until it is released it counts as spent; for the whole day when the process dies, as its batch is still billed.
        """
        try:
            with transaction.atomic(durable=True):
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
                refused = self._refusals(_spent(), costs)
                rows = self._put_aside([cost for cost, no in zip(costs, refused, strict=True) if no is None])
        except Error:
            return PutAside(refused=[_unreadable() for _ in costs])
        return PutAside(refused=refused, rows=rows)

    def _refusals(self, spent: Mapping[int | None, int], costs: Sequence[Cost]) -> list[BudgetSpent | None]:
        now = dict(spent)
        refused: list[BudgetSpent | None] = []
        for cost in costs:
            refusal = self._refusal(now, cost)
            if refusal is None:
                now[cost.scope_id] = now.get(cost.scope_id, 0) + cost.microdollars
            refused.append(refusal)
        return refused

    def _refusal(self, spent: Mapping[int | None, int], cost: Cost) -> BudgetSpent | None:
        limits = [
            ("", sum(spent.values()), "PALIMPSEST_BUDGET_DOLLARS_PER_DAY"),
            ("this scope's ", spent.get(cost.scope_id, 0), "PALIMPSEST_BUDGET_DOLLARS_PER_SCOPE_PER_DAY"),
        ]
        for whose, already, setting in limits if cost.scope_id is not None else limits[:1]:
            limit = getattr(settings, setting) * _MILLION
            if not already + cost.microdollars <= limit + 0.5:  # half: of rounding; a limit that is no number is none
                return BudgetSpent(
                    f"Of {whose}{_dollars(limit)} for the model today {_dollars(already)} are spent and this question "
                    f"may cost {_dollars(cost.microdollars)}; wait for tomorrow (UTC) or raise {setting}{self._hint()}."
                )
        return None

    def _hint(self) -> str:
        if self.price is not None or family(self.model) is not UNKNOWN:
            return ""
        return f", and set PALIMPSEST_MODEL_PRICES: the price of {self.model} is not known, the dearest is assumed"

    def _put_aside(self, costs: Sequence[Cost]) -> list[ModelCall]:
        """One row for each scope. Two queries or none."""
        sums: dict[int | None, int] = {}
        for cost in costs:
            sums[cost.scope_id] = sums.get(cost.scope_id, 0) + cost.microdollars
        return ModelCall.objects.bulk_create(
            ModelCall(
                scope_id=scope_id,
                purpose=_BATCH,
                model=self.model[:80],
                answer=Answer.HELD,
                cost_microdollars=microdollars,
                batch=True,
            )
            for scope_id, microdollars in sums.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PutAside:
    """Money put aside for a batch. Implements `Hold`."""

    refused: list[BudgetSpent | None]
    rows: Sequence[ModelCall] = ()

    def release(self) -> None:
        """Give it back, to the day it was taken from, by a second row: the table is append-only. Never raises."""
        back = [
            ModelCall(
                scope_id=row.scope_id,
                at=row.at,
                purpose=row.purpose,
                model=row.model,
                answer=Answer.HELD,
                cost_microdollars=-row.cost_microdollars,
                batch=True,
            )
            for row in self.rows
        ]
        try:
            with transaction.atomic(durable=True):
                ModelCall.objects.bulk_create(back)
        except Error as error:
            log.error("what was put aside for a batch stays counted until tomorrow: %s", type(error).__name__)


def _unreadable() -> BudgetSpent:
    return BudgetSpent("What was spent today cannot be read, so the model was not asked; look at the database's log.")


def _dollars(microdollars: float) -> str:
    return f"${microdollars / _MILLION:.{2 if round(microdollars, 3) % 10_000 == 0 else 4}f}"


# --- the record ------------------------------------------------------------------------------------------------------


def record(call: Call) -> None:
    """A row and a line of the log. An answer is worth more than its row: a failure to write is logged, and no more."""
    try:
        with transaction.atomic(durable=True):
            ModelCall.objects.create(
                scope_id=call.scope_id,
                purpose=call.purpose[:20],
                model=call.model[:80],
                prompt_version=call.prompt_version[:20],
                answer=call.answer,
                input_tokens=call.usage.input_tokens,
                output_tokens=call.usage.output_tokens,
                cache_read_tokens=call.usage.cache_read_tokens,
                cache_write_tokens=call.usage.cache_write_tokens,
                cost_microdollars=call.cost_microdollars,
                latency_ms=call.latency_ms,
                batch=call.batch,
            )
    except Error as error:
        log.error("a model call of %d microdollars is not recorded: %s", call.cost_microdollars, type(error).__name__)
    _log(call)


def _log(call: Call) -> None:
    """One line of figures; the texts only for who asked for them, as they are memory text."""
    log.log(
        logging.INFO if call.answer is Answer.OK else logging.WARNING,
        "model call %s (%s, prompt %s%s): %s, %d tokens read (%d cached), %d written, %d microdollars, %d ms",
        *(call.purpose, call.model, call.prompt_version, ", batch" if call.batch else "", call.answer),
        call.usage.input_tokens + call.usage.cache_read_tokens + call.usage.cache_write_tokens,
        *(call.usage.cache_read_tokens, call.usage.output_tokens, call.cost_microdollars, call.latency_ms),
    )
    if settings.PALIMPSEST_MODEL_DEBUG:
        log.info("model call %s: question %r, answer %r", call.purpose, call.question, call.reply)
