"""The completer of tests keeps the production protocol: what the door does, it does (habit 16)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from observations.llm import (
    BudgetSpent,
    Completer,
    CutOff,
    Denied,
    ModelFailed,
    NoModel,
    Refused,
    Reply,
    Request,
    Unreachable,
    Unusable,
    json_in,
)
from tests.messages_stub import Scripted, cut_off, failing, messages_stub, ok, refusal
from tests.scripted import ScriptedCompleter
from tests.unit.model_door import door, question

FAILURES = [NoModel, BudgetSpent, Refused, CutOff, Unusable, Unreachable, Denied]
SCRIPT = {
    "good": '{"a": 1}',
    "declined": Refused("No."),
    "long": CutOff("Long."),
    "down": Unreachable("Down."),
    "blank": " ",
}
REPLIES = {"good": ok('{"a": 1}'), "declined": refusal(), "long": cut_off(), "down": failing(500), "blank": ok(" ")}


@pytest.fixture(params=["scripted", "real"])
def completer(request: pytest.FixtureRequest) -> Iterator[Completer]:
    """Both, with the same script."""

    def reply(received_text: str) -> Scripted:
        return REPLIES[received_text]

    with ExitStack() as stack:
        if request.param == "scripted":
            yield ScriptedCompleter(lambda asked: SCRIPT[asked.text])
        else:
            stub = stack.enter_context(messages_stub(lambda received: reply(received.text)))
            yield door(stub, [], max_retries=0)


def test_an_answer_is_a_reply(completer: Completer) -> None:
    reply = completer.complete(question("good"))
    assert isinstance(reply, Reply)
    assert (json_in(reply.text), reply.model) == ({"a": 1}, completer.model)


@pytest.mark.parametrize(
    ("text", "kind"), [("declined", Refused), ("long", CutOff), ("down", Unreachable), ("blank", Unusable)]
)
def test_a_failure_is_raised_for_one_and_handed_back_for_many(
    text: str, kind: type[ModelFailed], completer: Completer
) -> None:
    with pytest.raises(kind):
        completer.complete(question(text))
    outcomes = completer.complete_all([question("good"), question(text), question("good")])
    assert [type(outcome) for outcome in outcomes] == [Reply, kind, Reply]


def test_each_is_answered_in_order_as_it_is_taken(completer: Completer) -> None:
    answers = completer.complete_each([question("good"), question("declined"), question("good")])
    assert [type(outcome) for outcome in answers] == [Reply, Refused, Reply]


def test_the_scripted_completer_asks_each_when_its_answer_is_taken() -> None:
    completer = ScriptedCompleter({"a": 1})
    answers = completer.complete_each([question("one"), question("two")])
    assert completer.requests == []
    assert isinstance(next(answers), Reply)
    assert [request.text for request in completer.requests] == ["one"]


def test_the_scripted_completer_keeps_what_it_was_asked() -> None:
    completer = ScriptedCompleter({"a": 1})
    completer.complete(question("one"))
    completer.complete_all([question("two", purpose="keys"), question("three")])
    assert [request.text for request in completer.requests] == ["one", "two", "three"]
    assert [request.text for request in completer.asked_for("keys")] == ["two"]
    assert completer.batches == [2]


def test_the_scripted_completer_answers_by_purpose() -> None:
    completer = ScriptedCompleter(by_purpose={"promote": [1, 2], "keys": lambda request: {"said": request.text}})
    assert completer.complete(question()).text == "[1, 2]"
    assert json_in(completer.complete(question("hi", purpose="keys")).text) == {"said": "hi"}


def test_a_purpose_without_an_answer_is_the_tests_own_error() -> None:
    with pytest.raises(AssertionError, match="no answer for 'promote'"):
        ScriptedCompleter(by_purpose={"keys": "{}"}).complete(question())


@pytest.mark.parametrize("kind", FAILURES)
def test_the_scripted_completer_can_fail_in_every_way(kind: type[ModelFailed]) -> None:
    def fail(_request: Request) -> ModelFailed:
        return kind("A sentence.")

    for script in (kind("A sentence."), fail):
        with pytest.raises(kind, match="A sentence"):
            ScriptedCompleter(script).complete(question())
