"""The whole door: settings, the budget in the database, the provider's SDK, a local server, and the rows behind it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from observations import spending
from observations.llm import Answer, BudgetSpent, NoModel, Outcome, Reply, Unreachable
from observations.llm.adapter import BATCH_FROM
from observations.models import ModelCall
from tests.building import scope
from tests.messages_stub import BatchScript, Received, Scripted, Stub, failing, limited, messages_stub, ok, refusal
from tests.unit.model_door import KEY, SECRET, question

pytestmark = pytest.mark.django_db


def configure(settings: Settings, url: str) -> None:
    settings.ANTHROPIC_API_KEY = KEY
    settings.ANTHROPIC_BASE_URL = url
    settings.PALIMPSEST_MODEL = "claude-haiku-5-5"
    settings.PALIMPSEST_MODEL_TIMEOUT_SECONDS = 2.0
    settings.PALIMPSEST_MODEL_RETRIES = 1
    settings.PALIMPSEST_MODEL_PRICES = ""
    settings.PALIMPSEST_MODEL_DEBUG = False
    settings.PALIMPSEST_BUDGET_DOLLARS_PER_DAY = 5.0
    settings.PALIMPSEST_BUDGET_DOLLARS_PER_SCOPE_PER_DAY = 1.0


def echo(received: Received) -> Scripted:
    """Every question is its own answer; some words do something else."""
    return {"decline": refusal(), "fail": failing(500), "limit": limited()}.get(received.text) or ok(received.text)


@pytest.fixture
def stub(settings: Settings) -> Iterator[Stub]:
    """A model that is configured, and answers."""
    with messages_stub(echo) as running:
        configure(settings, running.url)
        yield running


def words(outcomes: list[Outcome]) -> list[str]:
    return [outcome.text if isinstance(outcome, Reply) else str(outcome.answer) for outcome in outcomes]


# --- whether there is one --------------------------------------------------------------------------------------------


def test_without_a_key_there_is_no_model_and_it_is_said_what_to_set(settings: Settings) -> None:
    settings.ANTHROPIC_API_KEY = ""
    assert not spending.configured()
    with pytest.raises(
        NoModel, match=r"^No language model is configured; set ANTHROPIC_API_KEY, then run this again\.$"
    ):
        spending.door(scope_id=None)


def test_with_a_key_there_is_one(stub: Stub) -> None:
    assert spending.configured()
    assert spending.door(scope_id=None).model == "claude-haiku-5-5"


def test_a_price_that_is_none_closes_the_door(stub: Stub, settings: Settings) -> None:
    """A budget counted at a price nobody understood is no budget."""
    settings.PALIMPSEST_MODEL_PRICES = "cheap"
    with pytest.raises(NoModel, match="PALIMPSEST_MODEL_PRICES"):
        spending.door(scope_id=None)


def test_a_door_that_nobody_goes_through_costs_no_query(stub: Stub) -> None:
    with CaptureQueriesContext(connection) as queries:
        spending.door(scope_id=1)
    assert len(queries) == 0
    assert stub.everything == []


# --- one question ----------------------------------------------------------------------------------------------------


def test_a_question_is_answered_and_its_row_is_there(stub: Stub) -> None:
    home = scope()
    reply = spending.door(scope_id=home.pk).complete(question("hello"))
    assert reply.text == "hello"
    row = ModelCall.objects.get()
    assert (row.scope_id, row.answer, row.cost_microdollars, row.input_tokens) == (home.pk, Answer.OK, 20, 100)
    assert spending.spent_today(scope_id=home.pk) == 20


@pytest.mark.parametrize(
    ("text", "answer"), [("decline", "refused"), ("fail", "unreachable"), ("limit", "unreachable")]
)
def test_a_failure_has_its_row_too(text: str, answer: str, stub: Stub) -> None:
    [outcome] = spending.door(scope_id=None).complete_all([question(text)])
    assert words([outcome]) == [answer]
    assert ModelCall.objects.get().answer == answer


def test_a_scope_that_has_spent_its_budget_is_not_asked_for(stub: Stub, settings: Settings) -> None:
    settings.PALIMPSEST_BUDGET_DOLLARS_PER_SCOPE_PER_DAY = 0.000001
    with pytest.raises(BudgetSpent):
        spending.door(scope_id=scope().pk).complete(question("hello"))
    assert stub.everything == []
    assert ModelCall.objects.get().answer == Answer.BUDGET


def test_the_budget_stops_a_day_of_questions_and_is_never_exceeded(stub: Stub, settings: Settings) -> None:
    """The naive control: without the budget all of them are sent."""
    home = scope()
    settings.PALIMPSEST_BUDGET_DOLLARS_PER_SCOPE_PER_DAY = 0.0012
    door = spending.door(scope_id=home.pk)
    asked = [question("hello")] * (BATCH_FROM - 1)
    assert 0 < words(door.complete_all(asked)).count("hello") < len(asked)
    assert spending.spent_today(scope_id=home.pk) <= 1_200
    settings.PALIMPSEST_BUDGET_DOLLARS_PER_SCOPE_PER_DAY = 1.0
    assert words(door.complete_all(asked)).count("hello") == len(asked)


def test_a_price_of_nothing_makes_a_model_of_ones_own_free(stub: Stub, settings: Settings) -> None:
    settings.PALIMPSEST_MODEL, settings.PALIMPSEST_MODEL_PRICES = "gemma4:12b", "0,0"
    settings.PALIMPSEST_BUDGET_DOLLARS_PER_DAY = 0.0
    spending.door(scope_id=None).complete(question("hello"))
    assert ModelCall.objects.get().cost_microdollars == 0


def test_a_model_that_is_not_known_costs_the_dearest_price(stub: Stub, settings: Settings) -> None:
    settings.PALIMPSEST_MODEL = "gemma4:12b"
    spending.door(scope_id=None).complete(question("hello"))
    assert ModelCall.objects.get().cost_microdollars == 5_000


def test_no_log_of_the_whole_way_holds_memory_text(stub: Stub, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        spending.door(scope_id=None).complete(question(SECRET))
    assert "Lyon" not in caplog.text
    assert KEY not in caplog.text


@pytest.mark.django_db(transaction=True)
def test_nothing_is_asked_inside_a_transaction(stub: Stub) -> None:
    """The row would be lost with it, and locks would be held while a model thinks."""
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
        spending.door(scope_id=None).complete(question("hello"))
    assert stub.everything == []


@pytest.mark.django_db(transaction=True)
def test_a_question_that_can_be_asked_takes_one_query_before_it_and_one_after_it(stub: Stub) -> None:
    with CaptureQueriesContext(connection) as queries:
        spending.door(scope_id=None).complete(question("hello"))
    verbs = [query["sql"].split()[0] for query in queries]
    assert [verb for verb in verbs if verb in {"SELECT", "INSERT", "UPDATE"}] == ["SELECT", "INSERT"]


# --- many ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def many(settings: Settings) -> Iterator[Stub]:
    """A model that is configured, and whose batches end at the second look."""
    with messages_stub(echo, batch=BatchScript(looks=1)) as running:
        configure(settings, running.url)
        yield running


def test_a_batch_leaves_a_row_for_every_question_and_nothing_put_aside(many: Stub) -> None:
    home = scope()
    asked = [question(f"q{number}") for number in range(BATCH_FROM)]
    outcomes = spending.door(scope_id=home.pk).complete_all(asked)
    assert words(outcomes) == [request.text for request in asked]
    assert ModelCall.objects.filter(answer=Answer.OK, batch=True, scope=home).count() == BATCH_FROM
    assert spending.spent_today(scope_id=home.pk) == 10 * BATCH_FROM
    assert [(use.purpose, use.calls) for use in spending.usage(days=1)] == [("promote", BATCH_FROM)]


def test_a_budget_for_half_of_a_batch_asks_half_of_it(many: Stub, settings: Settings) -> None:
    """Each scope has its own: one that has spent it does not keep the other from its answers."""
    rich, poor = scope("team/rich"), scope("team/poor")
    ModelCall.objects.create(
        scope=poor, purpose="x", model="x", prompt_version="x", answer=Answer.OK, cost_microdollars=1_000_000
    )
    asked = [replace(question("yes"), scope_id=home.pk) for home in (rich, poor) for _ in range(BATCH_FROM)]
    outcomes = spending.door(scope_id=None).complete_all(asked)
    assert words(outcomes) == ["yes"] * BATCH_FROM + ["budget spent"] * BATCH_FROM
    assert ModelCall.objects.filter(answer=Answer.BUDGET, scope=poor).count() == BATCH_FROM


@pytest.mark.django_db(transaction=True)
def test_while_a_batch_is_under_way_every_process_counts_it(settings: Settings) -> None:
    """The naive control is the sum of the calls that ended: it sees nothing yet."""
    looked = threading.Event()
    seen: list[tuple[int, int]] = []
    with messages_stub(echo, batch=BatchScript(looks=2)) as running:
        configure(settings, running.url)

        def look() -> None:
            try:
                while not running.batched:
                    looked.wait(0.01)
                ended = sum(row.cost_microdollars for row in ModelCall.objects.exclude(answer=Answer.HELD))
                seen.append((spending.spent_today(), ended))
            finally:
                connection.close()

        watcher = threading.Thread(target=look)
        watcher.start()
        spending.door(scope_id=None).complete_all([question("yes")] * BATCH_FROM)
        watcher.join()
    [(counted, ended)] = seen
    assert counted > 10 * BATCH_FROM > ended == 0
    assert spending.spent_today() == 10 * BATCH_FROM


def test_a_batch_that_cannot_be_started_gives_everything_back(settings: Settings) -> None:
    with messages_stub(echo, batch=BatchScript(create=failing(500))) as running:
        configure(settings, running.url)
        outcomes = spending.door(scope_id=None).complete_all([question("yes")] * BATCH_FROM)
    assert {type(outcome) for outcome in outcomes} == {Unreachable}
    assert spending.spent_today() == 0
    assert spending.usage(days=1)[0].failed == BATCH_FROM
