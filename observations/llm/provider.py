"""The provider's SDK, and nothing else imports it: how it is set up, and what its errors mean.

It takes 2.7 seconds and 80 MB to import, so it is imported when the first question is asked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from json import JSONDecodeError
from typing import Any, Final

from observations.llm.asking import Denied, ModelFailed, NoMessage, Unreachable

DEFAULT_URL: Final = "https://api.anthropic.com"  # passed on: the environment of the process must not choose another
LONGEST_WAIT_SECONDS: Final = 20.0  # an endpoint that wants more before a retry counts as unreachable
INTERRUPTS: Final = frozenset({"SoftTimeLimitExceeded"})  # Celery's: the task has to end, the question is not to blame
NO_JSON: Final = (JSONDecodeError, UnicodeDecodeError, RecursionError)  # an answer came, and it cannot be read
NO_BATCHES: Final = frozenset({404, 405, 501})  # how an endpoint says that it has no Message Batches
_STATUS_OF: Final = {  # of the kinds of errors in the results of a batch
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
}


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One place that speaks the Messages API. Its methods raise what the SDK raises: see `failure`."""

    api_key: str = field(repr=False)
    base_url: str | None
    timeout_seconds: float  # of one attempt
    max_retries: int  # after refused connections, timeouts, 408, 409, 429 and 5xx, with growing pauses

    def ask(self, params: Mapping[str, Any]) -> Any:
        """The SDK's message for the parameters of one request."""
        return self._client.messages.create(**params)

    def start_batch(self, requests: Iterable[Mapping[str, Any]]) -> Any:
        """The SDK's batch, started."""
        return self._client.messages.batches.create(requests=list(requests))

    def batch(self, batch_id: str) -> Any:
        """The SDK's batch as it stands."""
        return self._client.messages.batches.retrieve(batch_id)

    def stop_batch(self, batch_id: str) -> Any:
        """Start no more requests of the batch; those under way still end."""
        return self._client.messages.batches.cancel(batch_id)

    def results(self, batch_id: str) -> Iterable[Any]:
        """The SDK's results of an ended batch, in any order, as they are read."""
        results: Iterable[Any] = self._client.messages.batches.results(batch_id)
        return results

    def schema(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """The schema in the part of JSON schema that the API takes; the rest of it goes into descriptions."""
        import anthropic

        return anthropic.transform_schema(dict(schema))

    @cached_property
    def _client(self) -> Any:
        import anthropic

        for name in ("anthropic", "httpx2", "httpcore2"):  # at DEBUG they log whole questions, which are memory text
            logging.getLogger(name).setLevel(logging.WARNING)
        # A redirect would carry the key and the question to another host.
        transport = anthropic.DefaultHttpxClient(follow_redirects=False, timeout=self.timeout_seconds)
        return anthropic.Anthropic(
            api_key=self.api_key,
            base_url=self.base_url or DEFAULT_URL,
            timeout=self.timeout_seconds,
            max_retries=self.max_retries,
            http_client=transport,
            middleware=[_attempt],
            open_telemetry=False,  # its spans can hold the content of requests
        )


def _attempt(request: Any, go_on: Callable[[Any], Any]) -> Any:
    """One attempt at one request. The SDK waits as long as it is told to, and retries whatever happened while it sent.

    So a long wait becomes an answer that is not retried, and an error that is not the network's leaves as it is.
    """
    import anthropic
    import httpx2

    try:
        response = go_on(request)
    except anthropic.APIConnectionError as error:
        if error.__cause__ is not None and not isinstance(error.__cause__, httpx2.HTTPError | OSError):
            raise error.__cause__ from None
        raise
    headers = response.http_response.headers
    if "retry-after" in headers and not _soon(headers["retry-after"]):
        headers["x-should-retry"] = "false"
    return response


def _soon(retry_after: str) -> bool:
    try:
        return float(retry_after) <= LONGEST_WAIT_SECONDS
    except ValueError:
        return False  # a date


def interrupts(error: BaseException) -> bool:
    """Whether the error asks the whole task to end and is no failure of the model."""
    return type(error).__name__ in INTERRUPTS


def has_no_batches(error: Exception) -> bool:
    """Whether the endpoint speaks the Messages API without batches."""
    return getattr(error, "status_code", None) in NO_BATCHES


def unseen(error: Exception, *, attempts: int) -> int:
    """How many answers may have been made, and billed, without being read.

    An attempt that is not waited for goes on at the other end; one that broke off while it was read was made.
    """
    if isinstance(error, NO_JSON):
        return 1
    kind, text = type(error.__cause__).__name__, str(error.__cause__)
    return attempts if kind == "ReadTimeout" or "complete message body" in text else 0


def failure(error: Exception, *, model: str) -> ModelFailed:
    """What an error of the SDK means, in one sentence without memory text, key or address."""
    import anthropic

    if isinstance(error, anthropic.APIStatusError):
        return by_status(error.status_code, model=model)
    if isinstance(error, anthropic.APITimeoutError):
        return Unreachable(
            "The model did not answer in time; run this again later, or raise PALIMPSEST_MODEL_TIMEOUT_SECONDS."
        )
    if isinstance(error, anthropic.APIConnectionError):
        return Unreachable("There is no connection to the model; check the network and ANTHROPIC_BASE_URL.")
    if isinstance(error, (*NO_JSON, anthropic.APIResponseValidationError)):
        return NoMessage("What the endpoint sent is no message; check that ANTHROPIC_BASE_URL is a Messages API.")
    return Unreachable(f"The model could not be asked ({type(error).__name__}); run this again later.")


def by_kind(kind: object, *, model: str) -> ModelFailed:
    """What the kind of an error in the results of a batch means."""
    return by_status(_STATUS_OF.get(str(kind), 500), model=model)


def by_status(status: int, *, model: str) -> ModelFailed:
    """What an HTTP status means, after every retry."""
    if status in (408, 409, 429) or status >= 500:
        return Unreachable(f"The model is overloaded, limited or down ({status}); run this again later.")
    if status == 401:
        return Denied("The endpoint refuses the key; check ANTHROPIC_API_KEY.")
    if status == 402:
        return Denied("The account of the key has no credit left; top it up.")
    if status == 403:
        return Denied(f"The key may not use the model {model}; check ANTHROPIC_API_KEY and PALIMPSEST_MODEL.")
    if status == 404:
        return Denied(f"The endpoint does not know the model {model}; check PALIMPSEST_MODEL and ANTHROPIC_BASE_URL.")
    if status < 400:
        return Denied(f"The endpoint points elsewhere ({status}); set ANTHROPIC_BASE_URL to where it points.")
    return Denied(f"The endpoint refuses the request ({status}); check that PALIMPSEST_MODEL gives structured answers.")
