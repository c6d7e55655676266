"""What tests of the API stand on: a program with a token, and calls put in the place of real ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from django.test import Client
from pydantic import BaseModel

from observations import access
from observations.api import answering
from observations.calls import CALLS

PREFIX = "/api/v1"
JSON = "application/json"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def body(self) -> Any:
        """The JSON."""
        return json.loads(self.content)

    @property
    def problem(self) -> str:
        """The kind of a problem; fails when the answer is none, or not a whole one."""
        assert self.headers["Content-Type"] == "application/problem+json", self.content[:300]
        body = self.body
        assert {"type", "title", "status", "detail"} <= body.keys()
        assert body["status"] == self.status
        assert body["detail"].endswith((".", "..."))
        return str(body["type"]).removeprefix("urn:palimpsest:problem:")


@dataclass
class Program:
    """A program that calls the API in process, with a token of its own."""

    bearer: str
    key_id: str = ""
    client: Client = field(default_factory=lambda: Client(raise_request_exception=False))

    def ask(self, method: str, path: str, body: object = None, /, **headers: str) -> Answer:
        """One request; `headers` as Idempotency_Key="x". A body of bytes is sent as it is."""
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.bearer:
            named.setdefault("Authorization", f"Bearer {self.bearer}")
        kind = named.pop("Content-Type", JSON)
        got = self.client.generic(method, f"{PREFIX}{path}", raw, content_type=kind, headers=named)
        return Answer(got.status_code, dict(got.headers), b"".join([got.content]))

    def get(self, path: str, **headers: str) -> Answer:
        """A GET."""
        return self.ask("GET", path, None, **headers)

    def post(self, path: str, body: object, **headers: str) -> Answer:
        """A POST."""
        return self.ask("POST", path, body, **headers)


def program(
    pattern: str = "team/*",
    *,
    may_read: bool = True,
    may_write: bool = True,
    may_propose: bool = True,
    speaks_for_user: bool = False,
) -> Program:
    """A program with a new token."""
    new = access.create_token(
        name="a program",
        scope_pattern=pattern,
        by="ana",
        may_read=may_read,
        may_write=may_write,
        may_propose=may_propose,
        speaks_for_user=speaks_for_user,
    )
    return Program(bearer=new.bearer, key_id=new.token.key_id)


def stranger() -> Program:
    """A program without a token."""
    return Program(bearer="")


@contextmanager
def in_place_of(name: str, run: Callable[..., BaseModel]) -> Iterator[None]:
    """Have the address of a call do something else, as long as the block lasts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answering, "CALLS", {**CALLS, name: replace(CALLS[name], run=run)})
        yield
