"""The shapes of calls: strict, and still no character and no item sinks what stands beside it (C1)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from observations.calls import CALLS, schemas
from observations.calls.shapes import Faulty

SCOPE = {"scope": "team/a"}


def test_words_keep_characters_that_no_database_can_hold() -> None:
    asked = schemas.Remember.model_validate({**SCOPE, "text": "a\0b \ud83d"})
    assert asked.text == "a\0b \ud83d"


def test_a_faulty_item_stands_alone_and_its_fault_names_the_field_and_not_the_text() -> None:
    facts = [
        {"text": "good"},
        {"text": 5},
        {"txt": "secret words"},
        "secret words",
        {"text": "x", "kind": "secret words"},
    ]
    asked = schemas.StoreFacts.model_validate({**SCOPE, "about": "ana", "facts": facts})
    assert [isinstance(fact, Faulty) for fact in asked.facts] == [False, True, True, True, True]
    faults = [fact.fault for fact in asked.facts if isinstance(fact, Faulty)]
    assert faults[0] == "text: Give a string."
    assert not any("secret words" in fault for fault in faults)


@pytest.mark.parametrize("given", [{"fault": "made up"}, {"text": "x", "fault": "made up"}])
def test_a_caller_cannot_say_that_an_item_is_faulty(given: dict[str, str]) -> None:
    [turn] = schemas.Observe.model_validate({**SCOPE, "turns": [given]}).turns
    assert isinstance(turn, Faulty)
    assert "made up" not in turn.fault


@pytest.mark.parametrize("given", ["obs_12", 12])
def test_an_id_is_read_with_its_prefix_or_as_a_number_and_shown_with_it(given: object) -> None:
    asked = schemas.Retire.model_validate({**SCOPE, "id": given})
    assert asked.id == 12
    assert asked.model_dump(mode="json")["id"] == "obs_12"


@pytest.mark.parametrize(
    "given", ["12", "ep_12", "obs_0", "obs_-1", "obs_1.0", True, 0, -1, 2**63, None, "obs_" + "9" * 19]
)
def test_what_is_no_id_is_refused(given: object) -> None:
    with pytest.raises(ValidationError):
        schemas.Retire.model_validate({**SCOPE, "id": given})


@pytest.mark.parametrize("given", ["2020", 0, 2020.5, "2026-05-31T09:30:00", "yesterday", True])
def test_a_time_without_its_zone_and_a_number_are_no_times(given: object) -> None:
    with pytest.raises(ValidationError):
        schemas.Remember.model_validate({**SCOPE, "text": "x", "said_at": given})


@pytest.mark.parametrize(
    ("shape", "given"),
    [
        (schemas.Remember, {"text": "x", "txt": "y"}),
        (schemas.Remember, {"text": "x" * 100_001}),
        (schemas.Remember, {"text": "x", "confidence": float("nan")}),
        (schemas.Remember, {"text": "x", "stated_by": "god"}),
        (schemas.StoreFacts, {"about": "a", "facts": []}),
        (schemas.StoreFacts, {"about": "a", "facts": [{"text": "x"}] * 501}),
        (schemas.ListObservations, {"limit": 201}),
        (schemas.CoreReplace, {"label": "human", "old": "", "new": "x"}),
        (schemas.Propose, {"kind": "merge", "ids": [1]}),
    ],
)
def test_what_a_call_cannot_take_is_refused(shape: type[BaseModel], given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        shape.model_validate({**SCOPE, **given})


@pytest.mark.parametrize("name", CALLS)
def test_every_call_has_shapes_that_can_be_published_and_says_what_it_does(name: str) -> None:
    call = CALLS[name]
    takes = call.takes.model_json_schema()
    assert "scope" in takes["required"]
    assert takes["additionalProperties"] is False
    assert call.gives.model_json_schema(mode="serialization")["type"] == "object"
    assert call.says.endswith((".", "?", "dead."))


def test_a_search_asks_for_one_past_and_for_known_words_only() -> None:
    """A misspelt or half-understood filter would be a silent loss."""
    moment = "2024-05-01T00:00:00Z"
    for wrong in ({"as_of": moment, "include_history": True}, {"as_of": "2024"}, {"kind": "mood"}, {"asof": moment}):
        with pytest.raises(ValidationError):
            schemas.Search.model_validate({**SCOPE, "query": "tea", **wrong})
    asked = schemas.Search.model_validate({**SCOPE, "query": "tea", "as_of": moment, "kind": None})
    assert (asked.as_of is not None, asked.kind, asked.include_history) == (True, None, False)
