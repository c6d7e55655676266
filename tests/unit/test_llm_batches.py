"""Many questions go as a batch, through the SDK and a local server; each of them ends for itself (R124, E7)."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from observations.llm import Answer, Call, ModelFailed, Outcome, Reply, Request
from observations.llm.adapter import BATCH_FROM, GIVE_UP_AFTER
from observations.llm.pricing import family
from tests.messages_stub import (
    BatchScript,
    Received,
    Scripted,
    cut_off,
    expired,
    failing,
    messages_stub,
    missing,
    ok,
    refusal,
    slow,
)
from tests.unit.model_door import MODEL, SECRET, Purse, door, question

MANY = BATCH_FROM + 5


@pytest.fixture
def calls() -> list[Call]:
    """What the recorder is told."""
    return []


def questions(count: int = MANY) -> list[Request]:
    return [question(f"q{number}", scope_id=number % 2) for number in range(count)]


def echo(received: Received) -> Scripted:
    """Every question is its own answer."""
    return ok(received.text)


def echo_but(**others: Scripted) -> Callable[[Received], Scripted]:
    """The same, but for some questions."""
    return lambda received: others.get(received.text) or echo(received)


def words(outcomes: list[Outcome]) -> list[str]:
    """The text of each answer, the word for each failure."""
    return [outcome.text if isinstance(outcome, Reply) else str(outcome.answer) for outcome in outcomes]


def test_many_questions_are_one_batch_and_their_answers_are_in_order(calls: list[Call]) -> None:
    """The results come in another order; the questions' names put them right."""
    with messages_stub(echo, batch=BatchScript(looks=3)) as stub:
        outcomes = door(stub, calls).complete_all(questions())
        assert [len(batch) for batch in stub.batched] == [MANY]
        assert stub.requests == []
    assert words(outcomes) == [f"q{number}" for number in range(MANY)]


def test_a_question_of_a_batch_is_the_question_that_is_sent_alone(calls: list[Call]) -> None:
    with messages_stub(echo) as stub:
        door(stub, calls).complete_all(questions())
        door(stub, calls).complete(questions()[0])
        assert stub.batched[0][0].body == stub.requests[0].body


def test_fewer_are_no_batch(calls: list[Call]) -> None:
    with messages_stub(echo) as stub:
        door(stub, calls).complete_all(questions(BATCH_FROM - 1))
        assert stub.batched == []


def test_a_batch_costs_half_and_is_recorded_question_by_question(calls: list[Call]) -> None:
    with messages_stub(echo) as stub:
        door(stub, calls).complete_all(questions())
    assert len(calls) == MANY
    assert {(call.answer, call.batch, call.cost_microdollars) for call in calls} == {(Answer.OK, True, 10)}
    assert [call.scope_id for call in calls[:3]] == [0, 1, 0]


def test_each_question_fails_for_itself(calls: list[Call]) -> None:
    script = echo_but(
        q1=refusal(),
        q2=cut_off(),
        q3=ok(""),
        q4=expired(),
        q5=missing(),
        q6=failing(400, "invalid_request_error"),
        q7=failing(529, "overloaded_error"),
        q8=Scripted(result="canceled"),
        q9=failing(500, "an error from the future"),
        q10=failing(404, "not_found_error"),
    )
    with messages_stub(script) as stub:
        outcomes = door(stub, calls).complete_all(questions())
    failures = ["refused", "cut off", "unusable", *["unreachable"] * 2, "denied", *["unreachable"] * 3, "denied"]
    assert words(outcomes) == ["q0", *failures, *(f"q{number}" for number in range(11, MANY))]
    assert [str(call.answer) for call in calls[1:11]] == failures
    assert all(call.batch for call in calls)


def test_what_ended_without_a_result_counts_at_the_most_it_can_cost(calls: list[Call]) -> None:
    """It may have been answered; what expired or failed is not billed."""
    with messages_stub(echo_but(q4=expired(), q5=missing(), q6=failing(500))) as stub:
        door(stub, calls).complete_all(questions())
    most = family(MODEL).price.at_most(questions()[5], batch=True)
    assert [calls[number].cost_microdollars for number in (4, 5, 6)] == [0, most, 0]


def test_a_batch_that_does_not_end_is_stopped_at_the_deadline(calls: list[Call]) -> None:
    started = time.monotonic()
    with messages_stub(echo, batch=BatchScript(ends=False, ends_when_stopped=False)) as stub:
        outcomes = door(stub, calls, batch_seconds=0.3).complete_all(questions())
        assert stub.stopped == 1
    assert set(words(outcomes)) == {"unreachable"}
    assert all(call.cost_microdollars > 0 for call in calls)  # it may still be billed
    assert time.monotonic() - started < 5


def test_what_was_answered_when_a_batch_is_stopped_is_used(calls: list[Call]) -> None:
    script = echo_but(q3=Scripted(result="canceled"))
    with messages_stub(script, batch=BatchScript(ends=False)) as stub:
        outcomes = door(stub, calls, batch_seconds=0.3).complete_all(questions())
    assert words(outcomes)[2:5] == ["q2", "unreachable", "q4"]


def test_a_look_that_fails_is_followed_by_another(calls: list[Call], caplog: pytest.LogCaptureFixture) -> None:
    look = [failing(500), failing(404), Scripted(body=b"<html>"), Scripted(body=b"{}")]
    with messages_stub(echo, batch=BatchScript(looks=0, look=look)) as stub:
        outcomes = door(stub, calls, max_retries=0).complete_all(questions())
    assert words(outcomes) == [f"q{number}" for number in range(MANY)]
    assert "cannot be looked at" in caplog.text


def test_an_outage_while_the_results_are_read_keeps_what_was_read(
    calls: list[Call], caplog: pytest.LogCaptureFixture
) -> None:
    """A partial outage degrades visibly: the rest failed, and that is said."""
    with messages_stub(echo, batch=BatchScript(cut_results_after=5)) as stub:
        outcomes = door(stub, calls).complete_all(questions())
    assert words(outcomes) == ["unreachable"] * (MANY - 5) + [f"q{number}" for number in range(MANY - 5, MANY)]
    assert "its results end early" in caplog.text


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        (failing(401), "denied"),
        (failing(500), "unreachable"),
        (Scripted(body=b"[]"), "unreachable"),
        (Scripted(body=b"{}"), "unreachable"),
        (Scripted(body=b'{"id": "../messages?x\\nERROR: forged"}'), "unreachable"),
        (Scripted(body=b"<html>", content_type="text/html"), "unreachable"),
    ],
)
def test_a_batch_that_cannot_be_started_fails_as_a_whole(reply: Scripted, word: str, calls: list[Call]) -> None:
    with messages_stub(echo, batch=BatchScript(create=reply)) as stub:
        outcomes = door(stub, calls, max_retries=0).complete_all(questions())
        assert stub.requests == []
    assert set(words(outcomes)) == {word}
    assert len(calls) == MANY


@pytest.mark.parametrize("status", [404, 405, 501])
def test_an_endpoint_without_batches_is_asked_one_by_one(
    status: int, calls: list[Call], caplog: pytest.LogCaptureFixture
) -> None:
    """Any endpoint that speaks the Messages API will do; that it costs more is said."""
    purse = Purse()
    with messages_stub(echo, batch=BatchScript(create=failing(status))) as stub:
        outcomes = door(stub, calls, max_retries=0, budget=purse).complete_all(questions())
        assert len(stub.requests) == MANY
    assert words(outcomes) == [f"q{number}" for number in range(MANY)]
    assert not any(call.batch for call in calls)
    assert [hold.released for hold in purse.holds] == [True]
    assert "has no batches" in caplog.text


def test_an_endpoint_that_knows_neither_is_left_alone_soon(calls: list[Call]) -> None:
    with messages_stub([failing(404)], batch=BatchScript(create=failing(404))) as stub:
        outcomes = door(stub, calls).complete_all(questions())
        assert len(stub.requests) == GIVE_UP_AFTER
    assert words(outcomes) == ["denied"] * MANY


def test_a_batch_that_takes_too_long_to_start_may_have_been_started(calls: list[Call]) -> None:
    with messages_stub(echo, batch=BatchScript(create=slow(30))) as stub:
        outcomes = door(stub, calls, timeout_seconds=0.2, max_retries=0).complete_all(questions())
    assert set(words(outcomes)) == {"unreachable"}
    assert all(call.cost_microdollars > 0 for call in calls)


def test_more_than_the_largest_batch_are_several(monkeypatch: pytest.MonkeyPatch, calls: list[Call]) -> None:
    monkeypatch.setattr("observations.llm.adapter.LARGEST", 10)
    with messages_stub(echo) as stub:
        outcomes = door(stub, calls).complete_all(questions())
        assert [len(batch) for batch in stub.batched] == [10, 10, 5]
    assert words(outcomes) == [f"q{number}" for number in range(MANY)]


# --- the budget ------------------------------------------------------------------------------------------------------


def test_what_the_budget_does_not_allow_is_left_out_of_the_batch(calls: list[Call]) -> None:
    most = family(MODEL).price.at_most(questions()[0], batch=True)
    with messages_stub(echo) as stub:
        outcomes = door(stub, calls, budget=Purse(7 * most)).complete_all(questions())
        assert len(stub.batched[0]) == 7
    assert words(outcomes) == [*(f"q{number}" for number in range(7)), *["budget spent"] * (MANY - 7)]
    assert [call.answer for call in calls[6:8]] == [Answer.OK, Answer.BUDGET]
    assert not calls[7].batch


def test_an_empty_budget_starts_no_batch(calls: list[Call]) -> None:
    with messages_stub(echo) as stub:
        outcomes = door(stub, calls, budget=Purse(0)).complete_all(questions())
        assert stub.everything == []
    assert words(outcomes) == ["budget spent"] * MANY


def test_what_was_put_aside_is_given_back_after_the_last_record(calls: list[Call]) -> None:
    """What is spent is never counted less than it is."""
    purse = Purse()
    seen: list[bool] = []
    with messages_stub(echo) as stub:
        door(stub, calls, budget=purse, recorder=lambda call: seen.append(purse.holds[0].released)).complete_all(
            questions()
        )
    assert seen == [False] * MANY
    assert purse.holds[0].released


class SoftTimeLimitExceeded(Exception):
    """As Celery names it."""


def test_a_task_that_has_to_end_stops_its_batch_and_leaves_the_money_aside(
    monkeypatch: pytest.MonkeyPatch, calls: list[Call]
) -> None:
    """What was started is billed, also when nobody reads it."""
    purse = Purse()

    def interrupted(_seconds: float) -> None:
        raise SoftTimeLimitExceeded

    with messages_stub(echo, batch=BatchScript(looks=99)) as stub:
        monkeypatch.setattr("observations.llm.batches.time.sleep", interrupted)
        with pytest.raises(SoftTimeLimitExceeded):
            door(stub, calls, budget=purse).complete_all(questions())
        assert stub.stopped == 1
    assert not purse.holds[0].released


def test_no_log_of_a_batch_holds_memory_text(caplog: pytest.LogCaptureFixture, calls: list[Call]) -> None:
    with messages_stub(echo, batch=BatchScript(cut_results_after=2, look=[failing(500)])) as stub, caplog.at_level(10):
        door(stub, calls, max_retries=0).complete_all([question(SECRET)] * MANY)
    assert "Lyon" not in caplog.text


def test_failures_of_a_batch_are_of_the_models_kind(calls: list[Call]) -> None:
    with messages_stub([expired()]) as stub:
        outcomes = door(stub, calls).complete_all(questions())
    assert all(isinstance(outcome, ModelFailed) and str(outcome).endswith(".") for outcome in outcomes)
