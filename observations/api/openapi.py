"""The description of the API for programs: OpenAPI 3.1, with every problem, header and limit it has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from django.http import HttpRequest
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.parser import Parser
from pydantic.json_schema import models_json_schema

from observations.api import problems
from observations.api.answering import KEY, REPLAYED
from observations.api.examples import EXAMPLES
from observations.calls import CALLS, Right, receipts

_EVERY: Final = (401, 403, 404, 422, 429, 500, 503)
_BODY: Final = (400, 411, 413, 415)
_WRITE: Final = (409,)
_WHOLE_SECONDS: Final = {"type": "string", "pattern": "^[0-9]+$"}
_LIMITS: Final = {
    "RateLimit-Policy": ("How many requests a window has.", {"type": "string"}),
    "RateLimit": ("How many are left in it, and in how many seconds the next begins.", {"type": "string"}),
}


class StrictJson(Parser):
    """JSON in UTF-8 as RFC 8259 has it: no NaN, no Infinity, no other encoding, and no name given twice, of which one
    value would be lost without a word.
    """

    def parse_body(self, request: HttpRequest) -> Any:
        """The body's value. Raises ValueError or RecursionError, which become a problem (400)."""
        return json.loads(request.body.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_each_once)


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


class Api(NinjaAPI):
    """django-ninja's API, whose description also has what happens when a request is not answered as asked."""

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        """The whole description, as a new dictionary."""
        schema = super().get_openapi_schema(path_prefix=path_prefix, path_params=path_params)
        schema["components"]["schemas"].update(_problem_schemas())
        for methods in schema["paths"].values():
            for operation in methods.values():
                _complete(operation)
        return schema


def _problem_schemas() -> Mapping[str, Any]:
    _, found = models_json_schema([(problems.ProblemOut, "serialization")], ref_template="#/components/schemas/{model}")
    schemas: dict[str, Any] = found["$defs"]
    problem = schemas.pop("ProblemOut")
    problem["required"] = ["type", "title", "status", "detail"]  # the empty extensions are left out
    return {**schemas, "Problem": problem}


def _complete(operation: dict[str, Any]) -> None:
    writes = CALLS[operation["operationId"]].right is not Right.READ
    for status in sorted((*_EVERY, *(_BODY if "requestBody" in operation else ()), *(_WRITE if writes else ()))):
        operation["responses"][str(status)] = _problem(status)
    answer = operation["responses"].pop(200)
    answer["headers"] = _headers(*_LIMITS, *((REPLAYED,) if writes else ()))
    operation["responses"] = {"200": answer, **operation["responses"]}
    if writes:
        operation["parameters"].append(_key_parameter())
    if "requestBody" in operation:
        operation["requestBody"]["content"]["application/json"]["example"] = EXAMPLES[operation["operationId"]]


def _problem(status: int) -> dict[str, Any]:
    kind, advice = problems.KINDS[status]
    wait = ("Retry-After",)
    names = {401: ("WWW-Authenticate",), 409: wait, 429: (*wait, *_LIMITS), 503: wait}.get(status, ())
    told = {"type": f"{problems.TYPE}{kind}", "title": HTTPStatus(status).phrase, "status": status, "detail": advice}
    return {
        "description": f"{kind}: {advice}",
        "headers": _headers(*names),
        "content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}, "example": told}},
    }


def _headers(*names: str) -> dict[str, Any]:
    known: dict[str, tuple[str, dict[str, str]]] = {
        **_LIMITS,
        "Retry-After": ("In how many seconds to try again.", _WHOLE_SECONDS),
        "WWW-Authenticate": ("What to send.", {"type": "string"}),
        REPLAYED: ("true: the answer of an earlier request with this key; nothing was done again.", {"type": "string"}),
    }
    return {name: {"description": known[name][0], "schema": known[name][1]} for name in names}


def _key_parameter() -> dict[str, Any]:
    return {
        "in": "header",
        "name": KEY,
        "required": False,
        "description": (
            "Your own id of this request, such as a UUID. Sent again within a day with the same body, it is answered"
            " again and not carried out again; with another body it is a conflict."
        ),
        "schema": {"type": "string", "pattern": f"^{receipts.KEY}$"},
    }
