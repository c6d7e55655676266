"""What tests of the API stand on: a program with a token, and calls put in the place of real ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.test import Client
from pydantic import BaseModel

from observations import access
from observations.api import answering
from observations.calls import CALLS
from observations.models import GivenAnswer, Observation

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


# call -> method, path and body; {scope} and {row} are put in
ADDRESSES: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "observe": ("POST", "/episodes", {"turns": [{"text": "I drink tea", "speaker": "Ana", "role": "user"}]}),
    "remember": ("POST", "/observations", {"text": "Ana drinks tea"}),
    "store_facts": (
        "POST",
        "/facts",
        {"about": "Ana", "author": {"name": "Ana", "role": "user"}, "facts": [{"text": "I drink tea"}]},
    ),
    "correct": ("POST", "/observations/obs_{row}/correct", {"text": "Ana drinks tea"}),
    "retire": ("POST", "/observations/obs_{row}/retire", {"why": "outdated"}),
    "restore": ("POST", "/observations/obs_{row}/restore", {}),
    "take_back": ("POST", "/observations/obs_{row}/take-back", {}),
    "forget": ("POST", "/forget", {"ids": ["obs_{row}"]}),
    "propose": ("POST", "/proposals", {"kind": "retire", "ids": ["obs_{row}"], "why": "wrong"}),
    "residue_hold": ("POST", "/residue", {"items": ["Ana was tired"]}),
    "get_observation": ("GET", "/observations/obs_{row}?scope={scope}", None),
    "history_of_observation": ("GET", "/observations/obs_{row}/history?scope={scope}", None),
    "list_observations": ("GET", "/observations?scope={scope}&limit=2", None),
    "search": ("POST", "/search", {"query": "what does Ana drink"}),
    "known": ("POST", "/known", {"query": "Ana drinks oat milk"}),
    "prompt": ("POST", "/prompt", {"about": "breakfast"}),
    "episodic_context": ("POST", "/episodic-context", {"query": "breakfast"}),
    "get_answer": ("GET", "/answers?scope={scope}&at=9999-01-01T00:00:00Z", None),
    "intake_status": ("GET", "/intake?scope={scope}", None),
    "core_list": ("GET", "/core?scope={scope}", None),
    "core_get": ("GET", "/core/human?scope={scope}", None),
    "core_create": ("POST", "/core", {"label": "style", "value": "be brief", "description": "how to answer"}),
    "core_append": ("POST", "/core/human/append", {"text": "drinks tea"}),
    "core_replace": ("POST", "/core/human/replace", {"old": "Ana", "new": "Ana Lima"}),
    "core_rethink": ("POST", "/core/human/rethink", {"value": "Ana Lima", "revision": 2}),
    "core_undo": ("POST", "/core/human/undo", {"revision": 2}),
    "core_revisions": ("GET", "/core/human/revisions?scope={scope}&limit=1", None),
}


def answered(row: Observation) -> None:
    """An answer in which an agent was shown that row, as every read for a prompt keeps one."""
    GivenAnswer.objects.create(scope=row.scope, answer=uuid4(), call_site="prompt", shown=[row.pk])


def address(name: str, *, scope: str, row: int) -> tuple[str, str, dict[str, Any] | None]:
    """A request that makes a call, for a scope and a row of it."""
    method, path, body = ADDRESSES[name]
    path = path.replace("{scope}", quote(scope, safe="/")).replace("{row}", str(row))
    if body is None:
        return method, path, None
    return method, path, {"scope": scope, **json.loads(json.dumps(body).replace("{row}", str(row)))}
