"""The model's budget is counted in the database, per day of UTC, per scope and over all (DESIGN 8, R124)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from observations import spending
from observations.llm import Answer, BudgetSpent, Call, Cost, Price, Usage
from observations.models import ModelCall, Scope
from observations.spending import DailyBudget, Use
from tests.building import scope

KNOWN = "claude-haiku-5-5"
SECRET = "the patient said she moved to Lyon"  # stands for memory text


@pytest.fixture(autouse=True)
def _limits(settings: Settings) -> None:
    """A dollar a day, half of it for each scope."""
    settings.PALIMPSEST_BUDGET_DOLLARS_PER_DAY = 1.0
    settings.PALIMPSEST_BUDGET_DOLLARS_PER_SCOPE_PER_DAY = 0.5
    settings.PALIMPSEST_MODEL_DEBUG = False


@pytest.fixture
def budget() -> DailyBudget:
    return DailyBudget(model=KNOWN)


def call(dollars: float = 0.1, *, within: Scope | None = None, **changes: Any) -> Call:
    fields: dict[str, Any] = {
        "purpose": "promote",
        "model": KNOWN,
        "prompt_version": "p1",
        "scope_id": within.pk if within else None,
        "answer": Answer.OK,
        "usage": Usage(100, 20, 7, 3),
        "cost_microdollars": round(dollars * 1_000_000),
        "latency_ms": 250,
        "question": SECRET,
        "reply": SECRET,
    }
    return Call(**{**fields, **changes})


def cost(dollars: float, *, within: Scope | None = None) -> Cost:
    return Cost(within.pk if within else None, round(dollars * 1_000_000))


# --- the record ------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_call_becomes_a_row_without_its_text() -> None:
    home = scope()
    spending.record(call(within=home, batch=True))
    [values] = ModelCall.objects.values()
    row: dict[str, object] = dict(values)
    assert {name: row[name] for name in row if name not in {"id", "at"}} == {
        "scope_id": home.pk,
        "purpose": "promote",
        "model": KNOWN,
        "prompt_version": "p1",
        "answer": "ok",
        "input_tokens": 100,
        "output_tokens": 20,
        "cache_read_tokens": 7,
        "cache_write_tokens": 3,
        "cost_microdollars": 100_000,
        "latency_ms": 250,
        "batch": True,
    }
    assert "Lyon" not in str(row)


@pytest.mark.django_db
@pytest.mark.parametrize("answer", list(Answer))
def test_every_way_a_call_can_end_can_be_written(answer: Answer) -> None:
    spending.record(call(answer=answer))
    assert ModelCall.objects.get().answer == answer


@pytest.mark.django_db
def test_words_that_are_too_long_are_cut() -> None:
    spending.record(call(model="m" * 200, purpose="p" * 50, prompt_version="v" * 50))
    row = ModelCall.objects.get()
    assert (len(row.model), len(row.purpose), len(row.prompt_version)) == (80, 20, 20)


@pytest.mark.django_db
def test_a_call_is_one_line_of_figures(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        spending.record(call())
    [line] = caplog.messages
    assert line == (
        "model call promote (claude-haiku-5-5, prompt p1): ok, 110 tokens read (7 cached), 20 written, "
        "100000 microdollars, 250 ms"
    )


@pytest.mark.django_db
def test_a_failed_call_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    spending.record(call(answer=Answer.UNREACHABLE))
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.django_db
def test_the_texts_are_logged_only_for_who_asked_for_them(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        spending.record(call())
        assert "Lyon" not in caplog.text
        settings.PALIMPSEST_MODEL_DEBUG = True
        spending.record(call())
    assert "Lyon" in caplog.text


@pytest.mark.django_db
def test_a_row_that_cannot_be_written_is_an_error_of_the_log_and_no_more(caplog: pytest.LogCaptureFixture) -> None:
    """The answer is worth more than its row; but nobody may think that all is counted."""
    spending.record(call(cost_microdollars=2**70))
    assert ModelCall.objects.count() == 0
    assert "is not recorded: " in caplog.text
    assert "Lyon" not in caplog.text


@pytest.mark.django_db(transaction=True)
def test_a_row_outlives_the_work_it_was_paid_for() -> None:
    """Each row is a transaction of its own."""
    spending.record(call())
    with transaction.atomic():
        scope()
        transaction.set_rollback(True)
    assert not Scope.objects.exists()
    assert ModelCall.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("using", ["check", "hold", "record"])
def test_the_door_is_not_used_inside_a_transaction(using: str, budget: DailyBudget) -> None:
    """A rolled-back transaction would take the row with it, and a model is not waited for with locks held."""
    use: dict[str, Callable[[], object]] = {
        "check": lambda: budget.check(cost=cost(0.1)),
        "hold": lambda: budget.hold(costs=[cost(0.1)]),
        "record": lambda: spending.record(call()),
    }
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
        use[using]()


@pytest.mark.django_db(transaction=True)
def test_calls_are_append_only() -> None:
    spending.record(call())
    with pytest.raises(DatabaseError):
        ModelCall.objects.update(cost_microdollars=0)
    with pytest.raises(DatabaseError):
        ModelCall.objects.all().delete()


# --- what was spent --------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_what_was_spent_today_is_a_sum_by_scope_and_over_all() -> None:
    ann, ben = scope("team/ann"), scope("team/ben")
    for spent in (call(0.1, within=ann), call(0.2, within=ann), call(0.05, within=ben), call(0.01)):
        spending.record(spent)
    assert spending.spent_today(scope_id=ann.pk) == 300_000
    assert spending.spent_today(scope_id=ben.pk) == 50_000
    assert spending.spent_today() == 360_000


@pytest.mark.django_db
def test_nothing_was_spent_before_the_first_call() -> None:
    assert (spending.spent_today(), spending.spent_today(scope_id=scope().pk)) == (0, 0)


def written(at: datetime, microdollars: int = 100_000, **changes: Any) -> None:
    fields: dict[str, Any] = {"purpose": "promote", "model": KNOWN, "prompt_version": "p1", "answer": Answer.OK}
    ModelCall.objects.create(at=at, cost_microdollars=microdollars, **{**fields, **changes})


def midnight() -> datetime:
    """The start of today in UTC, by the database's clock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT date_trunc('day', statement_timestamp() AT TIME ZONE 'UTC')")
        row = cursor.fetchone()
    assert row is not None
    naive: datetime = row[0]
    return naive.replace(tzinfo=UTC)


@pytest.mark.django_db
@pytest.mark.parametrize("zone", ["UTC", "Pacific/Auckland", "America/Los_Angeles"])
def test_the_day_begins_at_midnight_of_utc_wherever_the_session_is(zone: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('TimeZone', %s, true)", [zone])
    written(midnight() - timedelta(microseconds=1), 7)
    written(midnight(), 100)
    assert spending.spent_today() == 100


@pytest.mark.django_db
def test_what_was_spent_is_one_query_by_the_index() -> None:
    """The start of the day is the same for the whole statement, so that the index of days can serve."""
    days = [midnight() - timedelta(days=n % 50) for n in range(2_000)]  # as many that reading them all is dearer
    fields: dict[str, Any] = {"purpose": "promote", "model": KNOWN, "prompt_version": "p1", "answer": Answer.OK}
    ModelCall.objects.bulk_create(ModelCall(at=day, cost_microdollars=1, **fields) for day in days)
    with CaptureQueriesContext(connection) as queries:
        spending.spent_today()
    assert len(queries) == 1
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {queries[0]['sql']}")
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Index Cond: (at >=" in plan


@pytest.mark.django_db
def test_use_is_counted_by_day_and_purpose() -> None:
    """For a dashboard: the newest day first."""
    today = midnight()
    tokens = {"input_tokens": 10, "cache_read_tokens": 3, "cache_write_tokens": 2, "output_tokens": 4}
    written(today, 5, **tokens)
    written(today, 6, answer=Answer.UNUSABLE, **tokens)
    written(today, 0, answer=Answer.BUDGET, purpose="keys")
    written(today - timedelta(hours=1), 9, purpose="keys", **tokens)
    written(today - timedelta(days=3), 99)
    yesterday = (today - timedelta(days=1)).date()
    assert spending.usage(days=2) == [
        Use(today.date(), "keys", 1, 1, 0, 0, 0),
        Use(today.date(), "promote", 2, 1, 30, 8, 11),
        Use(yesterday, "keys", 1, 0, 15, 4, 9),
    ]
    assert len(spending.usage(days=1)) == 2


@pytest.mark.django_db
def test_use_is_one_query() -> None:
    with CaptureQueriesContext(connection) as queries:
        assert spending.usage(days=30) == []
    assert len(queries) == 1


# --- the budget ------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("spent", "asked", "allowed"), [(0, 0.5, True), (0.4, 0.1, True), (0.4, 0.100001, False), (0.6, 0, False)]
)
def test_a_scope_may_spend_its_part_and_no_more(spent: float, asked: float, allowed: bool, budget: DailyBudget) -> None:
    home = scope()
    spending.record(call(spent, within=home))
    if allowed:
        budget.check(cost=cost(asked, within=home))
    else:
        with pytest.raises(BudgetSpent, match="PALIMPSEST_BUDGET_DOLLARS_PER_SCOPE_PER_DAY"):
            budget.check(cost=cost(asked, within=home))


@pytest.mark.django_db
def test_one_scopes_spending_is_not_anothers(budget: DailyBudget) -> None:
    ann, ben = scope("team/ann"), scope("team/ben")
    spending.record(call(0.5, within=ann))
    budget.check(cost=cost(0.5, within=ben))


@pytest.mark.django_db
def test_all_scopes_together_may_spend_the_days_budget_and_no_more(budget: DailyBudget) -> None:
    for name in ("a", "b", "c"):
        spending.record(call(0.3, within=scope(f"team/{name}")))
    with pytest.raises(BudgetSpent, match="PALIMPSEST_BUDGET_DOLLARS_PER_DAY"):
        budget.check(cost=cost(0.2, within=scope("team/d")))
    budget.check(cost=cost(0.1, within=scope("team/d")))


@pytest.mark.django_db
def test_a_call_of_no_scope_counts_for_the_day_only(budget: DailyBudget) -> None:
    spending.record(call(0.7))
    budget.check(cost=cost(0.3))
    with pytest.raises(BudgetSpent):
        budget.check(cost=cost(0.4))


@pytest.mark.django_db
def test_a_new_day_has_a_new_budget(budget: DailyBudget) -> None:
    written(midnight() - timedelta(seconds=1), 10_000_000)
    budget.check(cost=cost(0.5))


@pytest.mark.django_db
def test_no_budget_allows_nothing_that_costs(settings: Settings, budget: DailyBudget) -> None:
    settings.PALIMPSEST_BUDGET_DOLLARS_PER_DAY = 0.0
    with pytest.raises(BudgetSpent):
        budget.check(cost=cost(0.000001))


@pytest.mark.django_db
@pytest.mark.parametrize(("limit", "allowed"), [("inf", True), ("nan", False), ("-1", False), ("0.29", True)])
def test_a_limit_that_is_no_number_allows_nothing(
    limit: str, allowed: bool, settings: Settings, budget: DailyBudget
) -> None:
    """No limit has to be asked for; a slip of the pen must not mean it."""
    settings.PALIMPSEST_BUDGET_DOLLARS_PER_DAY = float(limit)
    if allowed:
        budget.check(cost=cost(0.29))
    else:
        with pytest.raises(BudgetSpent):
            budget.check(cost=cost(0.0))


@pytest.mark.django_db
def test_the_refusal_is_one_sentence_with_the_figures(budget: DailyBudget) -> None:
    spending.record(call(0.98765))
    with pytest.raises(BudgetSpent) as caught:
        budget.check(cost=cost(0.1))
    assert str(caught.value) == (
        "Of $1.00 for the model today $0.9877 are spent and this question may cost $0.10; "
        "wait for tomorrow (UTC) or raise PALIMPSEST_BUDGET_DOLLARS_PER_DAY."
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("model", "price", "said"), [("gemma", None, True), ("gemma", Price(0, 0), False), (KNOWN, None, False)]
)
def test_who_pays_the_dearest_price_for_not_knowing_is_told(model: str, price: Price | None, said: bool) -> None:
    with pytest.raises(BudgetSpent) as caught:
        DailyBudget(model=model, price=price).check(cost=cost(2))
    assert ("PALIMPSEST_MODEL_PRICES" in str(caught.value)) is said


@pytest.mark.django_db
def test_a_check_is_one_query(budget: DailyBudget) -> None:
    with CaptureQueriesContext(connection) as queries:
        budget.check(cost=cost(0.1, within=None))
    assert len([query for query in queries if query["sql"].startswith("SELECT")]) == 1


@pytest.mark.django_db
@pytest.mark.parametrize("using", ["check", "hold"])
def test_a_database_that_does_not_answer_allows_nothing(
    using: str, budget: DailyBudget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was spent is not known, so nothing is."""

    def broken() -> dict[int | None, int]:
        raise DatabaseError(SECRET)

    monkeypatch.setattr(spending, "_spent", broken)
    if using == "check":
        with pytest.raises(BudgetSpent, match="cannot be read"):
            budget.check(cost=cost(0.1))
    else:
        hold = budget.hold(costs=[cost(0.1), cost(0.1)])
        assert [type(no) for no in hold.refused] == [BudgetSpent, BudgetSpent]
        hold.release()
    assert ModelCall.objects.count() == 0


# --- batches under way -----------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_what_a_batch_may_cost_counts_until_it_is_given_back(budget: DailyBudget) -> None:
    ann, ben = scope("team/ann"), scope("team/ben")
    hold = budget.hold(costs=[cost(0.1, within=ann), cost(0.2, within=ben), cost(0.3, within=ann)])
    assert list(hold.refused) == [None, None, None]
    assert spending.spent_today(scope_id=ann.pk) == 400_000
    assert spending.spent_today() == 600_000
    with pytest.raises(BudgetSpent):
        budget.check(cost=cost(0.2, within=ann))
    hold.release()
    assert (spending.spent_today(scope_id=ann.pk), spending.spent_today()) == (0, 0)


@pytest.mark.django_db
def test_what_the_budget_does_not_allow_is_refused_and_the_rest_put_aside(budget: DailyBudget) -> None:
    """In order; a cheaper one after a refused one may still fit."""
    ann, ben = scope("team/ann"), scope("team/ben")
    asked = [cost(0.4, within=ann), cost(0.2, within=ann), cost(0.4, within=ben), cost(0.3), cost(0.1, within=ann)]
    hold = budget.hold(costs=asked)
    assert [no is None for no in hold.refused] == [True, False, True, False, True]
    assert spending.spent_today() == 900_000


@pytest.mark.django_db
def test_what_is_given_back_after_midnight_is_given_to_the_day_it_was_taken_from(budget: DailyBudget) -> None:
    """Else tomorrow could spend it twice."""
    hold = budget.hold(costs=[cost(0.4)])
    hold.rows[0].at = midnight() - timedelta(minutes=1)
    hold.release()
    assert spending.spent_today() == 400_000


@pytest.mark.django_db
def test_what_is_put_aside_knows_when_it_was(budget: DailyBudget) -> None:
    hold = budget.hold(costs=[cost(0.4)])
    assert hold.rows[0].at == ModelCall.objects.get().at


@pytest.mark.django_db
def test_money_put_aside_is_no_call_of_the_dashboard(budget: DailyBudget) -> None:
    hold = budget.hold(costs=[cost(0.4)])
    assert [(use.purpose, use.calls, use.cost_microdollars) for use in spending.usage(days=1)] == [
        ("batch", 0, 400_000)
    ]
    hold.release()
    assert spending.usage(days=1) == []


@pytest.mark.django_db
def test_nothing_put_aside_is_no_row(budget: DailyBudget) -> None:
    budget.hold(costs=[]).release()
    assert ModelCall.objects.count() == 0


@pytest.mark.django_db
def test_money_that_cannot_be_given_back_is_an_error_of_the_log_and_no_more(
    budget: DailyBudget, caplog: pytest.LogCaptureFixture
) -> None:
    hold = budget.hold(costs=[cost(0.1)])
    hold.rows[0].cost_microdollars = 2**70
    hold.release()
    assert "stays counted until tomorrow" in caplog.text
    assert spending.spent_today() == 100_000


@pytest.mark.django_db(transaction=True)
def test_two_batches_at_once_never_get_more_than_is_left(budget: DailyBudget) -> None:
    """Each in a process of its own: one waits for the other."""
    start = threading.Barrier(4)
    got: list[bool] = []

    def hold() -> None:
        try:
            start.wait()
            got.append(budget.hold(costs=[cost(0.4)]).refused == [None])
        finally:
            connection.close()

    threads = [threading.Thread(target=hold) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [False, False, True, True]
    assert spending.spent_today() == 800_000
