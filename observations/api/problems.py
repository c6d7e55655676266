"""Every answer that is not the one asked for, as application/problem+json (RFC 9457): what is wrong and what to do.

A problem holds no memory text, no traceback and no query. `type` names the kind of problem for programs, `detail` is a
sentence for people, `errors` says which field of a request is wrong.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final

from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpResponse
from django.http.request import UnreadablePostError
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError
from pydantic import BaseModel, ConfigDict
from structlog.contextvars import get_contextvars

from observations.calls import CallRefused, Code

log = logging.getLogger(__name__)

MEDIA_TYPE: Final = "application/problem+json"
TYPE: Final = "urn:palimpsest:problem:"
RETRY_SECONDS: Final = 5  # after which an answer may be there that is not there now

_MOST_ERRORS: Final = 20  # of one request; the rest is counted
_LONGEST: Final = 300

# status -> the kind of problem and what to do, where whoever found it did not say more
KINDS: Final[Mapping[int, tuple[str, str]]] = {
    400: ("malformed", "The request cannot be read: send JSON in UTF-8, each field of an object once."),
    401: ("unauthorized", "Send a valid token: Authorization: Bearer pal_..."),
    403: ("forbidden", "This token may not do that."),
    404: ("not_found", "There is nothing at this address."),
    405: ("method_not_allowed", "This address knows other methods: Allow lists them."),
    409: ("conflict", "Somebody else was faster: read again, then decide."),
    411: ("length_required", "Send the body with a Content-Length."),
    413: ("too_large", "The request is too large: send it in parts."),
    415: ("unsupported_media_type", "Send the body as application/json, not compressed."),
    422: ("invalid", "Something in the request is not as it should be."),
    429: ("too_many_requests", "Wait for as many seconds as Retry-After says."),
    500: ("internal", "Something failed here: send a write again with its key. The log has the request by its id."),
    503: ("unavailable", "The store cannot be used just now: send it again, a write with its Idempotency-Key."),
}
_STATUS: Final[Mapping[Code, int]] = {
    Code.NOT_FOUND: 404,
    Code.FORBIDDEN: 403,
    Code.INVALID: 422,
    Code.CONFLICT: 409,
    Code.KEY_USED: 409,
    Code.IN_PROGRESS: 409,
    Code.TOO_LARGE: 413,
    Code.NO_MODEL: 503,
    Code.UNAVAILABLE: 503,
}


class FieldError(BaseModel):
    """One field of a request that is not as it should be."""

    at: str  # where it stands: body.facts.3.text, query.limit
    says: str


class ProblemOut(BaseModel):
    """What is wrong and what to do about it."""

    model_config = ConfigDict(title="Problem")

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldError] = []
    extra: dict[str, int | str] = {}  # figures and ids that belong to the problem
    request_id: str = ""  # how the log names the request, where something failed here


class Problem(Exception):
    """A request that is not answered as asked, by its status; the rest has defaults that say what to do."""

    def __init__(
        self,
        status: int,
        detail: str = "",
        *,
        kind: str = "",
        errors: Sequence[FieldError] = (),
        extra: Mapping[str, int | str] | None = None,
        headers: Mapping[str, str] | None = None,
        request_id: str = "",
    ) -> None:
        super().__init__(detail)
        self.headers = dict(headers or {})
        usual, advice = KINDS.get(status, ("failed", "The request cannot be answered."))
        self.body = ProblemOut(
            type=f"{TYPE}{kind or usual}",
            title=HTTPStatus(status).phrase,
            status=status,
            detail=detail or advice,
            errors=list(errors),
            extra=dict(extra or {}),
            request_id=request_id,
        )

    def response(self) -> HttpResponse:
        """The answer, without the empty extensions."""
        content = self.body.model_dump(exclude_defaults=True)
        answer = HttpResponse(json.dumps(content), status=self.body.status, content_type=MEDIA_TYPE)
        if self.body.status == HTTPStatus.SERVICE_UNAVAILABLE:
            answer["Retry-After"] = str(RETRY_SECONDS)
        for name, value in self.headers.items():
            answer[name] = value
        return answer


def refused(refusal: CallRefused) -> Problem:
    """A refused call as a problem: its code is the kind, its sentence the detail."""
    headers = {"Retry-After": "1"} if refusal.code is Code.IN_PROGRESS else {}
    return Problem(
        _STATUS[refusal.code], refusal.sentence, kind=refusal.code.value, extra=refusal.extra, headers=headers
    )


def handle(api: NinjaAPI) -> None:
    """Have an API answer every exception with a problem; those named here have handlers of django-ninja's otherwise."""
    for kind in (Exception, Http404, HttpError, ValidationError):
        api.add_exception_handler(kind, lambda _, error: problem_of(error).response())


def problem_of(error: object) -> Problem:
    """What an exception is to whoever asked; what went wrong here is logged without its message."""
    match error:
        case Problem():
            return error
        case CallRefused():
            return refused(error)
        case ValidationError():
            return _invalid(error)
        case HttpError():
            return Problem(error.status_code)
        case Http404():
            return Problem(404)
        case RequestDataTooBig():
            return Problem(413)
        case UnreadablePostError():
            return Problem(400, "The body ended too early.")
        case OperationalError() | InterfaceError():
            log.warning("a request was not answered: %s", type(error).__name__)
            return Problem(503, request_id=_request_id())
    return _failed(error)


def _invalid(error: ValidationError) -> Problem:
    found = [FieldError(at=_place(each["loc"]), says=str(each["msg"])[:_LONGEST]) for each in error.errors]
    more = len(found) - _MOST_ERRORS
    return Problem(422, errors=found[:_MOST_ERRORS], extra={"more_errors": more} if more > 0 else {})


def _place(location: Sequence[object]) -> str:
    """A field's place; the parameter that a body is called by here says nothing to whoever sent it."""
    parts = [str(part) for part in location if part != "asked"]
    return ".".join(parts)[:_LONGEST]


def _failed(error: object) -> Problem:
    """The log gets the kind of error and the lines of code it passed: never its message, which may hold memory text."""
    code = getattr(getattr(error, "__cause__", None), "sqlstate", None) or ""
    where = "".join(traceback.format_tb(getattr(error, "__traceback__", None)))
    log.error("a request failed: %s %s\n%s", type(error).__name__, code, where)
    return Problem(500, request_id=_request_id())


def _request_id() -> str:
    return str(get_contextvars().get("request_id", ""))
