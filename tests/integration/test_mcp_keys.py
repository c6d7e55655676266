"""A tool call with an idempotency key is carried out once, by the receipts of the API (INTEGRITY part 1)."""

from __future__ import annotations

from typing import Any

import pytest

from observations.calls import CALLS, Right
from observations.mcp.answering import Answer, call_tool, caller_of
from observations.mcp.tools import KEY, tool
from observations.models import CoreMemory, Event, Observation, Receipt
from tests.agents import arguments
from tests.building import observe, scope
from tests.programs import Program, program

pytestmark = pytest.mark.django_db

UUID = "0b1f1a52-9d3e-4b8f-9a39-54ac0a1f0c3d"


@pytest.fixture
def asking() -> Program:
    return program()


def made(asking: Program, name: str, **asked: Any) -> Answer:
    return call_tool(who=lambda: caller_of(bearer=asking.bearer), name=name, arguments=asked, scope="team/a")


def lines_of_core(asking: Program, **key: Any) -> str:
    """What a core memory holds after the same line was added twice by a tool."""
    made(asking, "core_create", label="human", value="Ana")
    for _ in range(2):
        made(asking, "core_append", label="human", text="drinks tea", **key)
    return CoreMemory.objects.get().value


def test_the_same_call_twice_is_one_effect_and_the_same_answer(asking: Program) -> None:
    """Adding a line is not idempotent by itself: a second effect would be seen."""
    first, second = (made(asking, "remember", text="Ana drinks tea", **{KEY: UUID}) for _ in range(2))
    assert first.content is not None
    assert (first.content["action"], first) == ("added", second)
    assert (Observation.objects.count(), Receipt.objects.count()) == (1, 1)
    assert lines_of_core(asking, **{KEY: "another"}) == "Ana\ndrinks tea"


def test_without_a_key_the_same_line_is_added_twice(asking: Program) -> None:
    """The control of the test above."""
    assert lines_of_core(asking) == "Ana\ndrinks tea\ndrinks tea"
    assert not Receipt.objects.exists()


def test_a_request_to_people_is_put_before_them_once(asking: Program) -> None:
    row = observe("Ana drinks tea", within=scope("team/a"))
    first, second = (made(asking, "forget", ids=[f"obs_{row.pk}"], **{KEY: UUID}) for _ in range(2))
    assert (first.refused, first) == (False, second)
    assert Event.objects.filter(action="asked to forget").count() == 1


def test_the_scope_that_need_not_be_named_and_the_order_of_arguments_make_no_other_call(asking: Program) -> None:
    first = made(asking, "remember", text="Ana drinks tea", subject="Ana", **{KEY: UUID})
    second = made(asking, "remember", **{KEY: UUID}, scope="team/a", subject="Ana", text="Ana drinks tea")
    assert (first.refused, first) == (False, second)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("remember", {"text": "Ana drinks soy milk"}),
        ("remember", {"text": "Ana drinks tea", "scope": "team/b"}),
        ("residue_hold", {"items": ["x"]}),
    ],
)
def test_a_key_that_was_used_for_another_call_is_refused_as_the_api_does(
    asking: Program, name: str, other: dict[str, Any]
) -> None:
    made(asking, "remember", text="Ana drinks tea", **{KEY: UUID})
    assert made(asking, name, **other, **{KEY: UUID}).text.startswith("key_used: This key was used for another request")
    assert Observation.objects.count() == 1


def test_a_key_of_the_api_is_not_free_for_a_tool(asking: Program) -> None:
    """Keys are the token's, whichever doorway they come through."""
    asking.post("/observations", {"scope": "team/a", "text": "Ana drinks tea"}, Idempotency_Key=UUID)
    assert made(asking, "remember", text="Ana drinks tea", **{KEY: UUID}).text.startswith("key_used: ")


@pytest.mark.parametrize("key", ["", "a b", "é", "x" * 201, 7, {"a": 1}, ["x"]])
def test_a_key_that_is_none_is_refused_before_anything_is_done(asking: Program, key: Any) -> None:
    answer = made(asking, "remember", text="Ana drinks tea", **{KEY: key})
    assert answer.text.startswith("invalid: ")
    assert (Observation.objects.count(), Receipt.objects.count()) == (0, 0)


def test_a_refused_call_leaves_no_receipt_and_its_key_may_be_used_again(asking: Program) -> None:
    assert made(asking, "core_append", label="human", text="x", **{KEY: UUID}).text.startswith("not_found: ")
    assert not Receipt.objects.exists()
    made(asking, "core_create", label="human", value="Ana")
    assert not made(asking, "core_append", label="human", text="x", **{KEY: UUID}).refused


@pytest.mark.parametrize("name", CALLS)
def test_every_write_takes_a_key_and_no_read_does(asking: Program, name: str) -> None:
    writes = CALLS[name].right is not Right.READ
    assert (KEY in tool(name=name, scope="").takes["properties"]) is writes
    row = observe("Ana drinks tea", within=scope("team/a"))
    answer = made(asking, name, **arguments(name, scope="team/a", row=row.pk), **{KEY: UUID})
    assert writes or "Extra inputs are not permitted" in answer.text
    assert Receipt.objects.count() == (writes and not answer.refused)
