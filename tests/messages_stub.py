"""A local server that speaks the Messages API, with scripted replies: what tests of the model door talk to.

    with messages_stub([limited(retry_after=0.01), ok('{"a": 1}')]) as stub:
        ...  # base_url=stub.url
    assert stub.requests[1].text == "the question"

The script is a sequence (its last reply answers everything that follows) or a function of the request. Questions of a
batch are answered by the same script, one reply each.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Scripted:
    """One reply. Built by the functions below."""

    status: int = 200
    text: str = "{}"
    stop_reason: str | None = "end_turn"
    usage: Mapping[str, Any] | None = field(default_factory=lambda: {"input_tokens": 100, "output_tokens": 20})
    headers: Mapping[str, str] = field(default_factory=dict)
    error: str = ""  # the kind of an error
    seconds: float = 0.0  # before it is sent
    body: bytes | None = None  # instead of a message
    content_type: str = "application/json"
    cut: bool = False  # the connection ends in the middle of the body
    result: str = ""  # in a batch: expired, canceled, or "missing"
    blocks: Sequence[Mapping[str, Any]] | None = None  # instead of one block of text


def ok(text: str = "{}", **usage: int) -> Scripted:
    """An answer that ended by itself; usage by the provider's names (input_tokens, cache_read_input_tokens, ...)."""
    return Scripted(text=text, usage={"input_tokens": 100, "output_tokens": 20, **usage})


def slow(seconds: float, text: str = "{}") -> Scripted:
    """An answer that takes its time."""
    return Scripted(text=text, seconds=seconds)


def limited(retry_after: float | str = 0.01) -> Scripted:
    """429, to be tried again after that many seconds."""
    return Scripted(status=429, error="rate_limit_error", headers={"retry-after": str(retry_after)})


def overloaded(retry_after: float = 0.01) -> Scripted:
    """529."""
    return Scripted(status=529, error="overloaded_error", headers={"retry-after": str(retry_after)})


def failing(status: int = 500, error: str = "api_error") -> Scripted:
    """Any error status, to be tried again at once where it is tried again."""
    return Scripted(status=status, error=error, headers={"retry-after": "0.01"})


def refusal(text: str = "") -> Scripted:
    """The model declines."""
    return Scripted(text=text, stop_reason="refusal")


def cut_off(text: str = '{"claims": [{"text": "Sam li') -> Scripted:
    """The answer ends at max_tokens."""
    return Scripted(text=text, stop_reason="max_tokens")


def malformed(body: bytes = b'{"id": "msg_', content_type: str = "application/json") -> Scripted:
    """200, and a body that is no message."""
    return Scripted(body=body, content_type=content_type)


def hung_up() -> Scripted:
    """The connection ends in the middle of the answer."""
    return Scripted(cut=True)


def expired() -> Scripted:
    """In a batch: the question was not reached in time."""
    return Scripted(result="expired")


def missing() -> Scripted:
    """In a batch: the results do not name the question."""
    return Scripted(result="missing")


@dataclass(frozen=True)
class Received:
    """One HTTP request, as it came."""

    method: str
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: Mapping[str, Any]

    @property
    def system(self) -> str:
        """The system prompt's text."""
        return "".join(block["text"] for block in self.body.get("system", []))

    @property
    def text(self) -> str:
        """The question's text."""
        return "".join(message["content"] for message in self.body.get("messages", []))


Script: TypeAlias = "Sequence[Scripted] | Callable[[Received], Scripted]"


@dataclass
class BatchScript:
    """How batches go."""

    looks: int = 1  # how often it is looked at before it has ended
    ends: bool = True  # False: only after it was stopped
    ends_when_stopped: bool = True
    create: Scripted | None = None  # an error instead of a batch
    look: Sequence[Scripted] = ()  # errors instead of the first looks
    cut_results_after: int | None = None  # the results end early


@dataclass
class _Batch:
    """A batch that was started, and its replies by the questions' names."""

    id: str
    asked: list[Received]
    replies: list[tuple[str, Scripted]]
    looks: int = 0
    stopped: bool = False


class Stub:
    """The running server. `requests` are the messages asked for one by one, `everything` every HTTP request."""

    def __init__(self, script: Script, batch: BatchScript) -> None:
        self.url = ""
        self.everything: list[Received] = []
        self.closing = threading.Event()
        self._script = script
        self._batch = batch
        self._lock = threading.Lock()
        self._answered = 0
        self._batches: dict[str, _Batch] = {}

    @property
    def requests(self) -> list[Received]:
        """The single questions, retries among them, in order."""
        return [each for each in self.everything if (each.method, each.path) == ("POST", "/v1/messages")]

    @property
    def batched(self) -> list[list[Received]]:
        """The questions of every batch that was started."""
        return [batch.asked for batch in self._batches.values()]

    @property
    def stopped(self) -> int:
        """How many batches were stopped."""
        return sum(each.path.endswith("/cancel") for each in self.everything)

    def answer(self, received: Received) -> Scripted:
        """What the server does for one HTTP request."""
        with self._lock:
            self.everything.append(received)
        parts = received.path.strip("/").split("/")
        if parts[:2] != ["v1", "messages"]:
            return failing(404, "not_found_error")
        if len(parts) == 2:
            return self._next(received)
        if len(parts) == 3:
            return self._start(received)
        batch = self._batches[parts[3]]
        if parts[4:] == ["results"]:
            return self._results(batch)
        if parts[4:] == ["cancel"]:
            batch.stopped = True
            return self._state(batch)
        return self._look(batch)

    def _next(self, received: Received) -> Scripted:
        if callable(self._script):
            return self._script(received)
        with self._lock:
            self._answered += 1
            return self._script[min(self._answered, len(self._script)) - 1]

    def _start(self, received: Received) -> Scripted:
        if self._batch.create is not None:
            return self._batch.create
        asked = [replace(received, body=each["params"]) for each in received.body["requests"]]
        replies = [
            (each["custom_id"], self._next(question))
            for each, question in zip(received.body["requests"], asked, strict=True)
        ]
        batch_id = f"msgbatch_{len(self._batches) + 1}"
        batch = _Batch(batch_id, asked, replies)
        self._batches[batch_id] = batch
        return self._state(batch)

    def _look(self, batch: _Batch) -> Scripted:
        batch.looks += 1
        if batch.looks <= len(self._batch.look):
            return self._batch.look[batch.looks - 1]
        return self._state(batch)

    def _ended(self, batch: _Batch) -> bool:
        if batch.stopped:
            return self._batch.ends_when_stopped
        return self._batch.ends and batch.looks >= self._batch.looks

    def _state(self, batch: _Batch) -> Scripted:
        ended = self._ended(batch)
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        state = {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": counts,
            "created_at": "2026-01-01T00:00:00Z",
            "expires_at": "2026-01-02T00:00:00Z",
            "results_url": f"{self.url}/v1/messages/batches/{batch.id}/results" if ended else None,
        }
        return Scripted(body=json.dumps(state).encode())

    def _results(self, batch: _Batch) -> Scripted:
        """The results as JSON lines, in another order than the questions."""
        lines = [
            json.dumps({"custom_id": name, "result": _result(reply)})
            for name, reply in reversed(batch.replies)
            if reply.result != "missing"
        ]
        body = "".join(f"{line}\n" for line in lines).encode()
        if self._batch.cut_results_after is not None:
            whole = "".join(f"{line}\n" for line in lines[: self._batch.cut_results_after])
            body = whole.encode() + b'{"custom_id": "q\n'
        return Scripted(body=body, content_type="application/x-jsonl")


def _result(reply: Scripted) -> dict[str, Any]:
    if reply.result:
        return {"type": reply.result}
    if reply.status >= 400:
        return {"type": "errored", "error": _error(reply)}
    return {"type": "succeeded", "message": _message(reply)}


def _error(reply: Scripted) -> dict[str, Any]:
    return {"type": "error", "error": {"type": reply.error, "message": "scripted"}}


def _message(reply: Scripted) -> dict[str, Any]:
    blocks = reply.blocks if reply.blocks is not None else [{"type": "text", "text": reply.text}]
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "stub",
        "content": list(blocks),
        "stop_reason": reply.stop_reason,
        "stop_sequence": None,
    }
    return message if reply.usage is None else {**message, "usage": dict(reply.usage)}


def _body(reply: Scripted) -> bytes:
    if reply.body is not None:
        return reply.body
    return json.dumps(_error(reply) if reply.status >= 300 else _message(reply)).encode()


class _Handler(BaseHTTPRequestHandler):
    stub: Stub

    def do_POST(self) -> None:
        self._serve()

    def do_GET(self) -> None:
        self._serve()

    def _serve(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(size)) if size else {}
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.stub.answer(Received(self.command, self.path.split("?")[0], headers, body))
        if reply.seconds:
            self.stub.closing.wait(reply.seconds)
        self._send(reply, _body(reply))

    def _send(self, reply: Scripted, body: bytes) -> None:
        try:
            self.send_response(reply.status)
            self.send_header("content-type", reply.content_type)
            self.send_header("content-length", str(len(body)))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if reply.cut else body)
        except OSError:  # whoever asked has gone
            self.close_connection = True
        if reply.cut:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the requests are kept instead."""


@contextmanager
def messages_stub(script: Script, *, batch: BatchScript | None = None) -> Iterator[Stub]:
    """A server on a free port of this machine, until the block ends."""
    stub = Stub(script, batch or BatchScript())
    handler = type("Handler", (_Handler,), {"stub": stub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.block_on_close = False
    stub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        stub.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
