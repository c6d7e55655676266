"""A newcomer with curl walks the whole API of a real server process: what is carried out, and what is refused."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from observations import ingest
from observations.calls import CALLS
from observations.models import Observation
from tests.brokers import ROOT, environment, own_broker, until
from tests.building import observe, scope
from tests.intaking import gave_way
from tests.programs import ADDRESSES, PREFIX, address, answered, program

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]


@contextlib.contextmanager
def server(folder: Path) -> Iterator[Path]:
    """The web server as production runs it, on the test database, behind a socket; ended with the block."""
    place, log = folder / "web.sock", folder / "web.log"
    words = ["memory_site.wsgi", "--bind", f"unix:{place}", "--worker-class", "gthread", "--threads", "4"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", *words, "--no-control-socket"],
            cwd=ROOT,
            env=environment(broker=own_broker()),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        until(place.exists, seconds=40, but=lambda: log.read_text(errors="replace"))
        yield place
    finally:
        process.terminate()
        process.wait(20)


@dataclass(frozen=True)
class Curl:
    """curl, talking to the server as one program."""

    socket: Path
    bearer: str

    def __call__(self, method: str, path: str, body: object = None, *more: str) -> tuple[int, dict[str, str], Any]:
        """Status, headers in lower case and JSON (None where there is none)."""
        words = ["curl", "-s", "-i", "--unix-socket", str(self.socket), "-X", method, "--max-time", "30"]
        words += ["-H", f"Authorization: Bearer {self.bearer}"] if self.bearer else []
        if body is not None:
            words += ["-H", "Content-Type: application/json", "--data-binary", "@-"]
        words += [*(["-I"] if method == "HEAD" else []), *more, f"http://localhost{PREFIX}{path}"]
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        done = subprocess.run(words, input=sent, capture_output=True, timeout=40, check=True)
        head, _, content = done.stdout.rpartition(b"\r\n\r\n") if method != "HEAD" else (done.stdout, b"", b"")
        lines = head.decode().replace("HTTP/1.1 100 Continue\r\n\r\n", "").splitlines()
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
        return int(lines[0].split()[1]), headers, json.loads(content) if content else None


@pytest.fixture
def curl() -> Iterator[Curl]:
    """curl with a token of every right; a socket's path must be short."""
    with tempfile.TemporaryDirectory(prefix="pal") as folder, server(Path(folder)) as place:
        yield Curl(place, program(speaks_for_user=True).bearer)


def test_curl_walks_the_whole_api(curl: Curl) -> None:
    every_call_is_carried_out(curl)
    what_is_wrong_is_refused_as_a_problem(curl)
    a_stranger_gets_nothing(Curl(curl.socket, ""))
    a_request_sent_twice_is_carried_out_once(curl)
    head_and_options_mean_what_they_mean(curl)


def every_call_is_carried_out(curl: Curl) -> None:
    """Each on a scope of its own, so that none meets what another did."""
    for name in ADDRESSES:
        within = scope(f"team/{name}")
        row = observe("Ana drinks oat milk", within=within)
        if name == "take_back":
            gave_way(row)
        answered(row)
        ingest.create_core(scope=within, label="human", value="", by="ana@command")
        ingest.rethink_core(scope=within, label="human", value="Ana", by="ana@command")
        method, path, body = address(name, scope=within.name, row=row.pk)
        status, headers, answer = curl(method, path, body)
        assert status == 200, (name, answer)
        assert headers["content-type"] == "application/json"
        assert headers["cache-control"] == "no-store"
        CALLS[name].gives.model_validate(answer)


REFUSED: list[tuple[int, str, str, object, tuple[str, ...]]] = [
    (400, "POST", "/observations", b"{", ()),
    (403, "POST", "/observations", {"scope": "elsewhere", "text": "x"}, ()),
    (404, "GET", "/nothing", None, ()),
    (404, "GET", "/observations/obs_999999?scope=team/remember", None, ()),
    (405, "DELETE", "/observations", None, ()),
    (409, "POST", "/core", {"scope": "team/remember", "label": "human"}, ()),
    (411, "POST", "/observations", {"scope": "team/a", "text": "x"}, ("-H", "Transfer-Encoding: chunked")),
    (413, "POST", "/observations", b"x" * (3 * 1024 * 1024), ()),
    (415, "POST", "/observations", b"x", ("-H", "Content-Type: text/plain")),
    (422, "POST", "/observations", {"scope": "team/a", "text": "x", "status": "archived"}, ()),
    (422, "GET", "/observations?scope=team/a&cursor=x", None, ()),
]


def what_is_wrong_is_refused_as_a_problem(curl: Curl) -> None:
    for wanted, method, path, body, more in REFUSED:
        if wanted == 415:
            status, headers, answer = curl(method, path, None, *more, "--data-binary", "x")
        else:
            status, headers, answer = curl(method, path, body, *more)
        assert (status, headers["content-type"]) == (wanted, "application/problem+json"), (path, answer)
        assert answer["status"] == wanted
        assert answer["type"].startswith("urn:palimpsest:problem:")
        assert answer["detail"]


def a_stranger_gets_nothing(curl: Curl) -> None:
    status, headers, answer = curl("GET", "/core?scope=team/remember")
    assert (status, headers["www-authenticate"]) == (401, 'Bearer realm="palimpsest"')
    assert answer["title"] == "Unauthorized"


def a_request_sent_twice_is_carried_out_once(curl: Curl) -> None:
    key = ("-H", "Idempotency-Key: 5f0c")
    body = {"scope": "team/core_append", "text": "once"}
    first, again = (curl("POST", "/core/human/append", body, *key) for _ in range(2))
    assert (first[0], first[2], again[1]["idempotent-replayed"]) == (200, again[2], "true")
    assert curl("POST", "/core/human/append", {**body, "text": "x"}, *key)[0] == 409
    assert curl("GET", "/core/human?scope=team/core_append")[2]["value"].count("once") == 1


def head_and_options_mean_what_they_mean(curl: Curl) -> None:
    status, headers, _ = curl("HEAD", "/core?scope=team/remember")
    assert (status, headers["content-type"]) == (200, "application/json")
    assert int(headers["content-length"]) > 100
    status, headers, answer = curl("OPTIONS", "/observations")
    assert (status, headers["allow"], answer) == (204, "GET, HEAD, OPTIONS, POST", None)


def test_the_server_answers_503_while_the_database_is_gone_and_recovers(curl: Curl) -> None:
    """R132, A4: cut connections are a problem at most, never an error page, and the next request is whole."""
    assert curl("GET", "/core?scope=team/a")[0] == 200
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()"
        )
    status, headers, _ = curl("POST", "/observations", {"scope": "team/a", "text": "x"})
    assert status == 200 or (status, headers["content-type"]) == (503, "application/problem+json")
    assert curl("POST", "/observations", {"scope": "team/a", "text": "x"})[0] == 200
    assert Observation.objects.filter(text="x").count() == 1
