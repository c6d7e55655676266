"""How fast memory is written through the API: in bulk, and one claim at a time while a planner runs.

    python -m benchmarks.writing [--facts 10000] [--rows 20000] [--writes 300] [--report-only]

Requests go through the whole application in this process (its WSGI entry: middleware, token, JSON, call, answer), one
after another from one thread, to a durable PostgreSQL; vectors are computed later. The peers write the same rows in
the same run: one request per row, and plain INSERTs into the one table, one statement per row, 500 in a transaction,
with no key, evidence, event, duplicate check or lock.

Exit status 1: fewer than 500 observations a second in bulk, or a p95 of 50 ms or more for one write while a planner
runs; or no data.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bars import Bar, status, take_option
from benchmarks.stage import DATA, stage, table

AT_ONCE = 500
SINGLE = 500  # rows of the peer that sends one request per row
PLANNED = "bench/planned"
MOST_P95_MS, LEAST_PER_SECOND = 50.0, 500.0


@dataclass(frozen=True)
class Api:
    """The application in this process, asked by a program that may write."""

    bearer: str

    def post(self, path: str, body: Mapping[str, object]) -> Any:
        """One request; fails unless it is answered with 200."""
        from memory_site.wsgi import application

        content = json.dumps(body).encode()
        environ = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": f"/api/v1{path}",
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(content)),
            "HTTP_AUTHORIZATION": f"Bearer {self.bearer}",
            "HTTP_HOST": "localhost",
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "REMOTE_ADDR": "127.0.0.1",
            "wsgi.input": io.BytesIO(content),
            "wsgi.url_scheme": "http",
            "wsgi.errors": sys.stderr,
        }
        status: list[str] = []

        def start(line: str, headers: object, failure: object = None, /) -> Callable[[bytes], object]:
            status.append(line)
            return bytes

        answer = b"".join(application(environ, start))
        assert status[0].startswith("200"), (status, answer[:300])
        return json.loads(answer)


def texts() -> list[str]:
    """Real claims, each made different by a number."""
    with (DATA / "persona_observations.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line)["text"] for line in file]


def claims(count: int, *, seed: str) -> list[str]:
    """So many claims of which no two are the same."""
    known = texts()
    return [f"{known[number % len(known)]} ({seed} {number})" for number in range(count)]


# --- in bulk ---------------------------------------------------------------------------------------------------------


def in_bulk(api: Api, count: int) -> tuple[list[list[str]], list[Bar]]:
    """Rows a second of the three ways, and the bar of the first."""
    from observations.models import Observation

    cold = _facts(api, claims(AT_ONCE, seed="cold"))
    warm = _facts(api, claims(count, seed="bulk"))
    single = _one_by_one(api, claims(SINGLE, seed="single"))
    raw = _inserted(claims(count, seed="raw"))
    print(f"{Observation.objects.count():,} rows after it; scopes of {count + AT_ONCE:,}, {SINGLE:,} and {count:,}")
    bars = [Bar("bulk writes", warm, LEAST_PER_SECOND, "observations a second", least=True)]
    return [
        [f"POST /facts, {AT_ONCE} a request, cold (the first)", f"{cold:,.0f}/s", ""],
        [f"POST /facts, {AT_ONCE} a request, {count:,} rows", f"{warm:,.0f}/s", "1.00"],
        [f"POST /observations, one a request, {SINGLE:,} rows", f"{single:,.0f}/s", f"{single / warm:.2f}"],
        [f"plain INSERT, {AT_ONCE} a transaction, {count:,} rows", f"{raw:,.0f}/s", f"{raw / warm:.2f}"],
    ], bars


def _facts(api: Api, given: Sequence[str]) -> float:
    author = {"name": "Ana", "role": "user"}
    began = time.perf_counter()
    for start in range(0, len(given), AT_ONCE):
        facts = [{"text": text} for text in given[start : start + AT_ONCE]]
        stored = api.post("/facts", {"scope": "bench/bulk", "about": "Ana", "author": author, "facts": facts})
        assert stored["stored"] == len(facts), stored
    return len(given) / (time.perf_counter() - began)


def _one_by_one(api: Api, given: Sequence[str]) -> float:
    began = time.perf_counter()
    for text in given:
        api.post("/observations", {"scope": "bench/single", "text": text})
    return len(given) / (time.perf_counter() - began)


def _inserted(given: Sequence[str]) -> float:
    from django.db import connection, transaction

    from observations import store

    scope = store.open_scope(name="bench/raw")
    began = time.perf_counter()
    for start in range(0, len(given), AT_ONCE):
        with transaction.atomic(), connection.cursor() as cursor:
            for number, text in enumerate(given[start : start + AT_ONCE], start):
                cursor.execute(
                    "INSERT INTO observations_observation (scope_id, external_id, text, content_hash, cleaned, subject,"
                    " predicate, object, text_key, subject_key, sp_key, spo_key, confidence, kind, stated_by,"
                    " written_by, created_at, recorded_at, chain, uses_inherited, status, version)"
                    " VALUES (%s, %s, %s, encode(sha256(convert_to(%s, 'UTF8')), 'hex'), false, '', '', '', %s, 0, 0,"
                    " 0, 0.5, 'fact', 'agent', 'deliberate', clock_timestamp(), clock_timestamp(), 0, 0, 'active', 1)",
                    [scope.pk, f"raw {number}", text, text, number + 1],
                )
    return len(given) / (time.perf_counter() - began)


# --- one at a time, while a planner runs -----------------------------------------------------------------------------


def while_planning(api: Api, *, rows: int, writes: int) -> tuple[list[list[str]], list[Bar]]:
    """Milliseconds of one write: into the scope that is planned, into another, and without a planner; and the bars of
    those with one.
    """
    _fill(rows)
    given = iter(claims(4 * writes, seed="deliberate"))
    alone = _latencies(api, PLANNED, given, writes)
    with _planner() as report:
        meanwhile = _latencies(api, PLANNED, given, writes)
        beside = _latencies(api, "bench/other", given, writes)
        plans = report()
    print(f"{rows:,} rows with vectors in the scope that is planned; meanwhile: {plans}")
    measured = {"planned scope, no planner": alone, "planned scope, planner at work": meanwhile}
    measured["another scope, planner at work"] = beside
    bars = [
        Bar(f"p95 of one write, {name}", float(np.percentile(each[1:], 95)), MOST_P95_MS, "ms")
        for name, each in measured.items()
        if "planner at work" in name
    ]
    return [
        [name, f"{each[0]:.1f}", *(f"{np.percentile(each[1:], share):.1f}" for share in (50, 95, 100)), str(len(each))]
        for name, each in measured.items()
    ], bars


def _latencies(api: Api, scope: str, given: Iterator[str], writes: int) -> list[float]:
    spent = []
    for _ in range(writes):
        body = {"scope": scope, "text": next(given)}
        began = time.perf_counter()
        api.post("/observations", body)
        spent.append((time.perf_counter() - began) * 1000)
    return spent


def _fill(rows: int) -> None:
    """Real texts with made-up vectors: near enough to each other for the planner to have work."""
    from django.db import transaction

    from observations import retrieval, store
    from observations.minhash import stored_bands
    from observations.normalise import normalised
    from observations.records import Claim, WrittenBy

    profile = retrieval.current_embedder().profile
    scope, random = store.open_scope(name=PLANNED), np.random.default_rng(7)
    known = claims(rows, seed="planned")
    for start in range(0, rows, 1_000):
        batch = [Claim(text=text) for text in known[start : start + 1_000]]
        with transaction.atomic():
            written = store.add_observations(scope=scope, claims=batch, written_by=WrittenBy.IMPORT)
            vectors = random.standard_normal((len(batch), profile.dimensions), dtype=np.float32)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            ids = [(scope.pk, row.id or 0) for row in written]
            bands = stored_bands([normalised(claim.text) for claim in batch])
            store.put_embeddings(profile=profile, rows=ids, vectors=vectors, bands=bands)


@contextmanager
def _planner() -> Iterator[Any]:
    """Another process that plans the scope again and again; yields what tells how often it did."""
    words = [sys.executable, "-m", "benchmarks.writing", "--plan"]
    folder = Path(__file__).resolve().parent.parent
    process = subprocess.Popen(words, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    told = process.stdout
    assert told
    assert told.readline().strip() == "planning"
    try:
        yield lambda: process.communicate()[0].strip()
    finally:
        process.kill()
        process.wait()


def plan_until_told() -> int:
    """What the other process does: plan, until its standard input is closed. It gives way as a worker's does."""
    import threading

    import django

    django.setup()
    from consolidation import planner
    from memory_site.celery import give_way
    from observations.models import Scope

    give_way()
    stop = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=wait, daemon=True).start()
    scope, seconds = Scope.objects.get(name=PLANNED), list[float]()
    print("planning", flush=True)
    while not stop.is_set() or not seconds:
        began = time.perf_counter()
        planner.plan(scopes=[scope], pattern=scope.name, by="bench", trigger="manual")
        seconds.append(time.perf_counter() - began)
    print(f"{len(seconds)} plans of {min(seconds):.1f} to {max(seconds):.1f} s each", flush=True)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Print both tables; the exit status is the module's."""
    parser = argparse.ArgumentParser(description="Writes a second, and milliseconds of one write.")
    parser.add_argument("--facts", type=int, default=10_000, help="rows of the bulk write (default 10000)")
    parser.add_argument("--rows", type=int, default=20_000, help="rows of the scope that is planned (default 20000)")
    parser.add_argument("--writes", type=int, default=300, help="single writes of each kind (default 300)")
    take_option(parser)
    parser.add_argument("--plan", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.plan:
        return plan_until_told()
    if not (DATA / "persona_observations.jsonl").is_file():
        sys.stderr.write("The data files are not there: set PALIMPSEST_DATA to their folder.\n")
        return 1
    os.environ["PALIMPSEST_API_REQUESTS_PER_MINUTE"] = "0"
    with stage(durable=True):
        from observations import access

        new = access.create_token(name="bench", scope_pattern="bench/*", by="bench", may_write=True)
        api = Api(new.bearer)
        busy = os.getloadavg()[0]
        print(f"{os.cpu_count()} cores (load {busy:.1f}), one thread, in-process WSGI, fsync on, vectors later\n")
        bulk, first = in_bulk(api, arguments.facts)
        print(table(["in bulk", "rows a second", "of /facts"], bulk), "\n")
        single, second = while_planning(api, rows=arguments.rows, writes=arguments.writes)
        print(table(["one write, ms", "cold", "p50", "p95", "most", "writes"], single))
    return status([*first, *second], report_only=arguments.report_only)


if __name__ == "__main__":
    raise SystemExit(main())
