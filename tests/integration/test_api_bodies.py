"""What a body may be: JSON with each name once, read within its time however slowly it comes (INTEGRITY part 4)."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from io import BytesIO
from typing import BinaryIO, cast

import pytest
from django.http import HttpRequest
from django.test import RequestFactory

from observations.api import bearer
from observations.api.problems import Problem
from observations.models import Observation
from tests.programs import program


@pytest.mark.django_db
@pytest.mark.parametrize(
    "body",
    [
        b'{"scope": "team/a", "scope": "team/b", "text": "x"}',
        b'{"scope": "team/a", "text": "x", "te\\u0078t": "y"}',
        b'{"scope": "team/a", "text": "x", "evidence": [{"quote": "a", "quote": "b"}]}',
        b'{"scope": "team/a", "text": "x", "half_life_days": ' + b"9" * 5_000 + b"}",
    ],
    ids=["a field", "a field spelt otherwise", "a field of an item", "a number of 5,000 digits"],
)
def test_what_a_reader_of_json_would_drop_or_choke_on_is_malformed(body: bytes) -> None:
    """Python keeps the last of two values: the first would be lost without a word."""
    answer = program().post("/observations", body)
    assert (answer.status, answer.problem) == (400, "malformed")
    assert not Observation.objects.exists()


class Dripping:
    """A body as a web server hands it over: read from a socket up to its length, a byte now and then."""

    def __init__(self, listening: socket.socket, length: int) -> None:
        self._listening, self._left = listening, length

    def read(self, size: int = -1) -> bytes:
        got = BytesIO()
        while self._left and got.tell() < size and (byte := self._listening.recv(1)):
            self._left -= got.write(byte)
        return got.getvalue()

    def close(self) -> None:
        """As a stream has it."""


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpRequest]:
    """A request of 1,000 bytes, of which one comes every 20 milliseconds: 20 seconds in all."""
    monkeypatch.setattr(bearer, "BODY_SECONDS", 0.3)
    ours, theirs = socket.socketpair()
    done = threading.Event()

    def drip() -> None:
        with contextlib.suppress(BrokenPipeError):  # the reader has given up
            while not done.wait(0.02):
                theirs.send(b" ")

    sending = threading.Thread(target=drip)
    sending.start()
    request = RequestFactory().post("/api/v1/observations", content_type="application/json")
    yield _with_body(request, ours, length=1_000)
    done.set()
    sending.join()
    ours.close()
    theirs.close()


def _with_body(request: HttpRequest, listening: socket.socket, *, length: int) -> HttpRequest:
    request.META |= {"CONTENT_LENGTH": str(length), "gunicorn.socket": listening}
    request._stream = cast("BinaryIO", Dripping(listening, length))
    return request


def test_a_body_that_never_pauses_and_never_ends_is_waited_for_only_so_long(slow: HttpRequest) -> None:
    """A byte every nine seconds keeps within the time that a body may pause, and would hold a thread for hours."""
    began = time.monotonic()
    with pytest.raises(Problem, match="ended too early, or took too long"):
        bearer._check_body(slow)
    assert 0.2 < time.monotonic() - began < 5


def test_without_an_end_to_it_the_same_body_would_still_be_read(slow: HttpRequest) -> None:
    """The naive control: a limit for each pause alone."""
    reading = threading.Thread(target=lambda: slow.body, daemon=True)
    slow.META["gunicorn.socket"].settimeout(bearer.STALL_SECONDS)
    reading.start()
    reading.join(1)
    assert reading.is_alive()
    slow.META["gunicorn.socket"].shutdown(socket.SHUT_RD)
    reading.join(5)


def test_a_body_that_comes_in_time_is_read_and_the_connection_stays_usable() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b'{"scope": "team/a"}next')
        request = _with_body(RequestFactory().post("/", content_type="application/json"), ours, length=19)
        bearer._check_body(request)
        assert (request.body, ours.recv(4)) == (b'{"scope": "team/a"}', b"next")
