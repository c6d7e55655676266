"""The client that agents import (R132, R133): reads give nothing rather than an error, writes say what became of it."""

from __future__ import annotations

import ast
import json
import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from observations import client
from observations.client import Client, NotWritten

TOKEN = "pal_abc_secret"
SOURCE = Path(client.__file__)
DEADLINE = 0.3  # seconds; the default is asserted, not waited for


class Store:
    """A local server that answers as it is told."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.act: Callable[[BaseHTTPRequestHandler], None] = lambda handler: reply(handler, 200, {})
        store = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(length)) if length else None
                store.requests.append({"path": self.path, "body": body, "headers": dict(self.headers)})
                store.act(self)

            do_GET = do_POST = handle_any

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def reply(handler: BaseHTTPRequestHandler, status: int, answer: object, *, raw: bytes | None = None) -> None:
    content = raw if raw is not None else json.dumps(answer).encode()
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(content)))
    handler.send_header("Location", "http://127.0.0.1:1/elsewhere")
    handler.end_headers()
    handler.wfile.write(content)


def never(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(3)


def drip(handler: BaseHTTPRequestHandler) -> None:
    """A byte now and then: every single read is quick, the answer never ends."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(60):
        try:
            handler.wfile.write(b" ")
        except OSError:
            return
        time.sleep(0.05)


@pytest.fixture
def store() -> Iterator[Store]:
    server = Store()
    yield server
    server.close()


def of(url: str, **more: Any) -> Client:
    return Client(url=url, token=TOKEN, scope="team/a", **{"deadline": DEADLINE, **more})


READS: list[tuple[Callable[[Client], object], object]] = [
    (lambda c: c.prompt(about="tea"), ""),
    (lambda c: c.search("tea"), []),
    (lambda c: c.search("tea", subject="Ana", include_history=True), []),
    (lambda c: c.known("tea"), []),
    (lambda c: c.list_observations(), ([], "")),
    (lambda c: c.get_observation("obs_1"), {}),
    (lambda c: c.history_of_observation("obs_1"), []),
    (lambda c: c.intake_status(), {}),
    (lambda c: c.core_list(), []),
    (lambda c: c.core_get("persona"), {}),
    (lambda c: c.core_revisions("persona"), ([], "")),
]
BROKEN: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {
    "it never answers": never,
    "it answers a byte at a time": drip,
    "500": lambda handler: reply(handler, 500, {"detail": "no"}),
    "401": lambda handler: reply(handler, 401, {"detail": "no"}),
    "503": lambda handler: reply(handler, 503, {}),
    "a redirect": lambda handler: reply(handler, 302, {}),
    "no JSON": lambda handler: reply(handler, 200, None, raw=b"<html>"),
    "a list": lambda handler: reply(handler, 200, [1]),
    "cut off": lambda handler: reply(handler, 200, None, raw=b'{"text": "a'),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_read_of_a_broken_store_gives_nothing_within_the_deadline_and_warns(
    store: Store, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    """R132, R133: "" or an empty list, one warning, no token and no memory text in it, never an error."""
    store.act = BROKEN[what]
    for read, nothing in READS if what != "it never answers" else READS[:2]:
        caplog.clear()
        began = time.monotonic()
        with caplog.at_level(logging.WARNING, logger="palimpsest.client"):
            assert read(of(store.url)) == nothing
        assert time.monotonic() - began < DEADLINE + 0.5
        [record] = caplog.records
        assert "going on without it" in record.message
        assert TOKEN not in record.message
        assert "tea" not in record.message


def test_a_store_that_is_not_there_gives_nothing() -> None:
    """R133: a refused connection, and a name nobody knows."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert of(f"http://127.0.0.1:{port}").prompt(about="tea") == ""
    assert of("https://store.invalid").search("tea") == []


def test_the_deadline_is_one_second_by_default() -> None:
    """R132: the agent that asks goes on after a second."""
    assert client.DEADLINE == 1.0
    assert Client(url="http://localhost", token=TOKEN, scope="a")._deadline == 1.0


def test_what_is_incomplete_is_returned_and_said(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """Incomplete is not the same as empty."""
    store.act = lambda handler: reply(handler, 200, {"text": "<memory>", "complete": False})
    with caplog.at_level(logging.WARNING, logger="palimpsest.client"):
        assert of(store.url).prompt(about="tea") == "<memory>"
    assert "incomplete" in caplog.text


def test_every_call_names_its_scope_and_carries_the_token_and_writes_carry_a_key(store: Store) -> None:
    """As the API wants it."""
    memory = of(store.url)
    memory.prompt(about="tea", session="s1")
    memory.core_get("persona")
    memory.remember("Ana likes tea.", stated_by="agent", key="k1")
    memory.store_facts([{"text": "x"}], about="Ana", author={"name": "Ana", "role": "user"})
    memory.observe([{"text": "Hi", "role": "user"}])
    memory.correct("obs_1", "Ana likes coffee.")
    memory.retire("obs_1", why="wrong")
    memory.restore("obs_1")
    memory.take_back("obs_1")
    memory.forget(ids=["obs_1"])
    memory.propose("retire", ["obs_1"])
    memory.residue_hold(["The relay team answers slowly."], session="s1")
    memory.core_create("persona", "Patient.", limit=90)
    memory.core_append("persona", "Brief.", revision=3)
    memory.core_replace("persona", "Brief", "Short", revision=4)
    memory.core_rethink("persona", "Kind.", revision=5)
    memory.core_undo("persona", revision=6)
    paths = [request["path"] for request in store.requests]
    assert paths == [
        "/api/v1/prompt",
        "/api/v1/core/persona?scope=team%2Fa",
        "/api/v1/observations",
        "/api/v1/facts",
        "/api/v1/episodes",
        "/api/v1/observations/obs_1/correct",
        "/api/v1/observations/obs_1/retire",
        "/api/v1/observations/obs_1/restore",
        "/api/v1/observations/obs_1/take-back",
        "/api/v1/forget",
        "/api/v1/proposals",
        "/api/v1/residue",
        "/api/v1/core",
        "/api/v1/core/persona/append",
        "/api/v1/core/persona/replace",
        "/api/v1/core/persona/rethink",
        "/api/v1/core/persona/undo",
    ]
    assert all(request["headers"]["Authorization"] == f"Bearer {TOKEN}" for request in store.requests)
    assert all(request["body"]["scope"] == "team/a" for request in store.requests if request["body"])
    assert store.requests[2]["headers"]["Idempotency-Key"] == "k1"
    keys = [request["headers"].get("Idempotency-Key") for request in store.requests[2:]]
    assert len(set(keys)) == len(keys), "each write has a key of its own"


def test_a_write_that_is_refused_says_why(store: Store) -> None:
    """Nothing is queued: the caller learns it now."""
    problem = {
        "type": "urn:palimpsest:problem:conflict",
        "detail": "Somebody else was faster.",
        "extra": {"current": 4},
    }
    store.act = lambda handler: reply(handler, 409, problem)
    with pytest.raises(NotWritten, match="Somebody else was faster") as caught:
        of(store.url).core_append("persona", "x", revision=3)
    assert (caught.value.status, caught.value.problem["extra"]) == (409, {"current": 4})


@pytest.mark.parametrize("what", ["it never answers", "it answers a byte at a time", "cut off", "no JSON"])
def test_a_write_that_nobody_answered_may_be_sent_again_under_its_key(store: Store, what: str) -> None:
    """It may have been done; the key makes doing it again harmless."""
    store.act = BROKEN[what]
    with pytest.raises(NotWritten) as caught:
        of(store.url).remember("Ana likes tea.", key="k7")
    assert (caught.value.status, caught.value.key) == (0, "k7")
    assert "tea" not in str(caught.value)


def test_nothing_is_sent_again_by_itself(store: Store) -> None:
    """One request per call, also when it fails."""
    store.act = BROKEN["503"]
    with pytest.raises(NotWritten):
        of(store.url).remember("Ana likes tea.")
    of(store.url).prompt(about="x")
    assert len(store.requests) == 2


@pytest.mark.parametrize(
    "url", ["http://memory.example", "ftp://localhost", "localhost:8000", "https://", "http://localhost?x=1"]
)
def test_an_address_that_is_none_or_would_leak_the_token_is_refused(url: str) -> None:
    """The token never travels unencrypted to another machine."""
    with pytest.raises(ValueError, match=r"address|another machine"):
        of(url)


def test_a_client_does_not_show_its_token() -> None:
    """Secrets stay out of logs."""
    assert TOKEN not in repr(of("http://localhost"))


def test_the_environment_describes_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """PALIMPSEST_URL, PALIMPSEST_TOKEN and PALIMPSEST_SCOPE; what is missing is said."""
    monkeypatch.delenv("PALIMPSEST_SCOPE", raising=False)
    monkeypatch.setenv("PALIMPSEST_URL", "http://localhost:8000/base/")
    monkeypatch.setenv("PALIMPSEST_TOKEN", TOKEN)
    assert Client.from_environment(scope="team/b").scope == "team/b"
    with pytest.raises(ValueError, match="PALIMPSEST_SCOPE"):
        Client.from_environment()


def test_the_file_needs_nothing_but_python(tmp_path: Path) -> None:
    """It may be copied: standard library only, run in an interpreter that sees no installed package."""
    names = {
        (node.module or "").split(".")[0] if isinstance(node, ast.ImportFrom) else alias.name.split(".")[0]
        for node in ast.walk(ast.parse(SOURCE.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert names <= set(sys.stdlib_module_names)
    (tmp_path / "client.py").write_bytes(SOURCE.read_bytes())
    code = "import client; print(client.Client(url='http://localhost', token='t', scope='s').scope)"
    ran = subprocess.run(
        [sys.executable, "-S", "-E", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "s"
