"""The description of the API is whole, and the API keeps to it: schemathesis asks what nobody would.

Bounded and seeded: the same requests in every run.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from memory_site.wsgi import application
from observations import ingest
from observations.api import api
from observations.api.examples import EXAMPLES as SHOWN
from observations.calls import CALLS
from tests.building import observe, scope
from tests.programs import PREFIX, program, stranger

ROOT = Path(__file__).resolve().parents[2]
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
# Requests that fit the description, and as many that do not, for each address: of a program that may do everything, and
# of one that is refused wherever it writes.
EXAMPLES = {True: 9, False: 4}

IN_ADDRESSES = {"{obs_id}": ("id", "obs_12"), "{label}": ("label", "human")}

# Paths and operation ids are what programs are written against: a change here is a change for all of them.
SNAPSHOT = """
GET /answers get_answer
GET /core core_list
GET /core/{label} core_get
GET /core/{label}/revisions core_revisions
GET /intake intake_status
GET /observations list_observations
GET /observations/{obs_id} get_observation
GET /observations/{obs_id}/history history_of_observation
POST /core core_create
POST /core/{label}/append core_append
POST /core/{label}/replace core_replace
POST /core/{label}/rethink core_rethink
POST /core/{label}/undo core_undo
POST /episodes observe
POST /episodic-context episodic_context
POST /facts store_facts
POST /forget forget
POST /known known
POST /observations remember
POST /observations/{obs_id}/correct correct
POST /observations/{obs_id}/restore restore
POST /observations/{obs_id}/retire retire
POST /observations/{obs_id}/take-back take_back
POST /prompt prompt
POST /proposals propose
POST /residue residue_hold
POST /search search
"""


def operations() -> dict[str, dict[str, Any]]:
    """Every operation of the description, by method and path."""
    return {
        f"{method.upper()} {path.removeprefix(PREFIX)}": operation
        for path, methods in api.get_openapi_schema()["paths"].items()
        for method, operation in methods.items()
    }


def test_the_addresses_and_their_names_are_those_that_programs_were_written_against() -> None:
    found = sorted(f"{place} {operation['operationId']}" for place, operation in operations().items())
    assert found == SNAPSHOT.strip().splitlines()


@pytest.mark.parametrize("place", operations())
def test_an_operation_is_described_for_a_newcomer_with_every_answer_it_may_give(place: str) -> None:
    operation = operations()[place]
    assert len(operation["summary"]) > 15
    assert "Needs a token that may" in operation["description"]
    wanted = {"200", "401", "403", "404", "422", "429", "500", "503"}
    wanted |= {"400", "411", "413", "415"} if place.startswith("POST") else set()
    assert wanted <= operation["responses"].keys()
    assert operation["security"] == [{"Token": []}]
    for status, response in operation["responses"].items():
        kind = "application/json" if status == "200" else "application/problem+json"
        assert list(response["content"]) == [kind]


def test_the_description_is_served_to_anybody_and_says_how_to_begin() -> None:
    answer = stranger().get("/openapi.json")
    assert (answer.status, answer.headers["Cache-Control"]) == (200, "no-store")
    assert answer.body == json.loads(json.dumps(api.get_openapi_schema()))
    assert answer.body["openapi"].startswith("3.1")
    assert "Authorization: Bearer" in answer.body["info"]["description"]
    assert stranger().ask("DELETE", "/openapi.json").problem in ("method_not_allowed", "forbidden")
    assert stranger().ask("HEAD", "/openapi.json").status == 200
    assert answer.body["components"]["securitySchemes"]["Token"]["scheme"] == "bearer"


def test_every_body_is_shown_by_an_example_that_its_call_takes() -> None:
    """An integrator begins with a request that works; one for an address that is gone is found as well."""
    shown: dict[str, Any] = {
        operation["operationId"]: operation["requestBody"]["content"]["application/json"]["example"]
        for operation in operations().values()
        if "requestBody" in operation
    }
    assert shown == dict(SHOWN)
    for place, operation in operations().items():
        if (name := operation["operationId"]) in shown:
            said = {field: value for mark, (field, value) in IN_ADDRESSES.items() if mark in place}
            CALLS[name].takes.model_validate({**said, **shown[name]})


def test_only_writes_may_carry_an_idempotency_key() -> None:
    with_key = {
        operation["operationId"]
        for operation in operations().values()
        if any(each["name"] == "Idempotency-Key" for each in operation["parameters"])
    }
    assert with_key == {name for name, call in CALLS.items() if call.right != "read"}


def test_docs_api_lists_every_address_and_every_kind_of_problem() -> None:
    """Habit 19."""
    from observations.api.problems import KINDS

    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    missing = [place for place in operations() if f"| `{place}` |" not in text]
    assert not missing, f"docs/api.md: add {missing}"
    known = {line.split("`")[1] for line in text.splitlines() if line.startswith(("| `GET ", "| `POST "))}
    assert known == set(operations())
    assert not [kind for kind, _ in KINDS.values() if f"`{kind}`" not in text]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("may_write", [True, False], ids=["write", "read"])
def test_schemathesis_finds_no_fault_and_no_answer_that_is_not_described(may_write: bool) -> None:
    """Valid and invalid requests for every address; none is answered with 5xx, all as the description says."""
    within = scope("team/a")
    observe("Ana drinks tea", within=within)
    row = observe("Ana drinks oat milk", within=within)
    ingest.create_core(scope=within, label="human", value="Ana", by="a test")
    headers = {"Authorization": f"Bearer {program('team/*', may_write=may_write, may_propose=may_write).bearer}"}
    schema = schemathesis.openapi.from_wsgi(f"{PREFIX}/openapi.json", application)
    statuses: Counter[int] = Counter()
    for result in schema.get_all_operations():
        assert isinstance(result, Ok)
        operation = result.ok()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            strategy = operation.as_strategy(generation_mode=mode)

            @seed(20_260)
            @settings(
                max_examples=EXAMPLES[may_write],
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=strategy)
            def asks(case: Any) -> None:
                aim(case, row=row.pk, number=statuses.total())
                response = case.call(headers=headers)
                statuses[response.status_code] += 1
                case.validate_response(response, checks=CHECKS)

            asks()
    enough = 5 * EXAMPLES[may_write]
    assert statuses[200 if may_write else 403] > enough, statuses
    assert statuses[422] > enough, statuses
    assert statuses.total() > (450 if may_write else 200)
    assert not may_write or statuses[200] > statuses.total() / 5, "most requests come no further than the door"


def aim(case: Any, *, row: int, number: int) -> None:
    """Most requests name a scope within the token's reach, every other a row and a core memory that are there, and each
    that has a key has one of its own, so that they come further than the door.
    """
    for part in (case.body, case.query):
        if isinstance(part, dict) and isinstance(part.get("scope"), str) and number % 5:
            part["scope"] = "team/a"
    there = {"obs_id": f"obs_{row}", "label": "human"}
    if isinstance(case.path_parameters, dict) and number % 2:
        case.path_parameters |= {name: there[name] for name in case.path_parameters}
    if case.headers and "Idempotency-Key" in case.headers and number % 10:
        case.headers["Idempotency-Key"] = f"key-{number}"
