"""From a request to a call and back: what every address of the API does, whichever call it makes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from pydantic import BaseModel, create_model

from observations import access
from observations.api.problems import FieldError, Problem
from observations.calls import CALLS, Call, Right, receipts

MEDIA_TYPE: Final = "application/json"
KEY: Final = "Idempotency-Key"  # the header of a write that may be sent again
REPLAYED: Final = "Idempotent-Replayed"  # on an answer that an earlier request with the same key was given

_LONGEST_NAME: Final = 40


def answer(request: HttpRequest, name: str, asked: BaseModel, **path: object) -> HttpResponse:
    """Make the call of that name. `path` holds what the address says of it. Raises Problem, CallRefused."""
    call = CALLS[name]
    _check_parameters(request, allowed=set(call.takes.model_fields) - set(path) if request.method == "GET" else set())
    whole = call.takes.model_validate({**_given(asked), **path}) if path else asked
    bearer: access.Bearer = getattr(request, "auth")  # noqa: B009  django-ninja sets it, and no type knows
    key = request.headers.get(KEY)
    if key is None or call.right is Right.READ:
        given: BaseModel = call.run(caller=bearer.caller, asked=whole)
        return _json(given.model_dump(mode="json"))
    return _once(request, call=call, asked=whole, bearer=bearer, key=key)


def _once(request: HttpRequest, *, call: Call, asked: BaseModel, bearer: access.Bearer, key: str) -> HttpResponse:
    receipts.check_key(key)
    sent = receipts.Request(
        token_id=bearer.token_id,
        key=key,
        address=request.path,
        body=request.body,
        scope=str(getattr(asked, "scope", "")),
        reads=bearer.caller.may_read,
    )
    content, replayed = receipts.once(sent, act=lambda: call.run(caller=bearer.caller, asked=asked))
    if not replayed:
        return _json(content)
    response = _json(call.gives.model_validate(content).model_dump(mode="json"))  # in the order of the first answer
    response[REPLAYED] = "true"
    return response


def _json(content: Mapping[str, Any]) -> HttpResponse:
    return HttpResponse(json.dumps(content, separators=(",", ":")), content_type=MEDIA_TYPE)


def _given(asked: BaseModel) -> dict[str, object]:
    """The fields that were sent, as they were read; what was left out keeps its default."""
    return {name: getattr(asked, name) for name in asked.model_fields_set}


def _check_parameters(request: HttpRequest, *, allowed: set[str]) -> None:
    """Raises Problem (422) for a parameter that the address does not know, or that is given twice: either would be
    ignored.
    """
    errors = []
    for name, values in request.GET.lists():
        if name not in allowed:
            errors.append(FieldError(at=f"query.{name[:_LONGEST_NAME]}", says="This address knows no such parameter."))
        elif len(values) > 1:
            errors.append(FieldError(at=f"query.{name}", says="Give it once."))
    if errors:
        raise Problem(422, errors=errors)


def body_of(takes: type[BaseModel], *, but: str) -> type[BaseModel]:
    """What a call takes but for one field, which the address says."""
    fields: dict[str, Any] = {
        name: (field.annotation, field) for name, field in takes.model_fields.items() if name != but
    }
    return create_model(f"{takes.__name__}Body", __doc__=takes.__doc__, __config__=takes.model_config, **fields)
