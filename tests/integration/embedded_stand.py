"""A place for real embedded servers, and a real supervisor with small programs for the web, the worker and beat."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from memory_site.embedded import processes, state
from memory_site.embedded.folder import PROJECT, DataFolder

SERVERS_OF_THE_SUITE = ("DATABASE_URL", "MIGRATE_DATABASE_URL", "REDIS_URL", "SUPERUSER_DATABASE_URL")
SET_BY_THE_SUITE = (*SERVERS_OF_THE_SUITE, "PALIMPSEST_HOME", "SECRET_KEY")

DRIVER = '''
import os, sys
from pathlib import Path
from memory_site.embedded import folder
from memory_site.embedded.errors import EmbeddedError
from memory_site.embedded.supervisor import Order, Programs, Supervisor

WEB = """
import http.server, socket, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *words):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Page, bind_and_activate=False)
server.socket = socket.socket(fileno=int(sys.argv[-1].removeprefix("fd://")))
server.serve_forever()
"""
# Each writes its name when it is asked to end: the order of stopping can be read from the file.
QUIET = "trap 'echo {0} >> \\"$PALIMPSEST_HOME/stopped\\"; exit 0' TERM; "
QUIET += "echo ' ready. beat: Starting'; while :; do sleep 0.2; done"
programs = Programs(
    manage=("/bin/sh", "-c", os.environ.get("MANAGE", 'echo "managed $*"'), "manage"),
    worker=("/bin/sh", "-c", os.environ.get("WORKER", QUIET.format("worker"))),
    beat=("/bin/sh", "-c", QUIET.format("beat")),
    web=(sys.executable, "-c", WEB),
)
port = int(sys.argv[2]) if len(sys.argv) > 2 else None
try:
    data = folder.find(Path(sys.argv[1]))
    order = Order(data=data, environ=dict(os.environ), port=port, prepare=[["seed"]], programs=programs)
    sys.exit(Supervisor(order=order).run())
except EmbeddedError as error:
    sys.exit(str(error))
'''


def environment(**more: str) -> dict[str, str]:
    """This process's environment without the suite's own servers."""
    kept = {name: value for name, value in os.environ.items() if name not in SET_BY_THE_SUITE}
    return {**kept, "PYTHONPATH": str(PROJECT), "PYTHONUNBUFFERED": "1", **more}


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A fresh folder with a short path that every account can pass through; nothing may work in it afterwards."""
    for name in SET_BY_THE_SUITE:
        monkeypatch.delenv(name, raising=False)
    path = Path(tempfile.mkdtemp(prefix="plm-stand-", dir=_memory_disk())).resolve()
    path.chmod(0o711)
    Run.started.clear()
    yield path
    for run in Run.started:
        if run.process.poll() is None:  # only when the test has failed
            run.send(signal.SIGTERM)
    left = servers_under(path)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    for record in path.rglob("state.json"):  # of a killed holder, with no start after it
        state.recover(data=DataFolder(record.parent))
    shutil.rmtree(path)
    assert not left


def _memory_disk() -> str | None:
    """A disk in memory, where a first start needs half the time; None where programs may not run from one."""
    usable = os.access("/dev/shm", os.W_OK) and not os.statvfs("/dev/shm").f_flag & os.ST_NOEXEC
    return "/dev/shm" if usable else None


def servers_under(path: Path) -> list[int]:
    """Live processes that work below a folder (both servers change into their data)."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            here = (entry / "cwd").readlink()
        except OSError:
            continue
        if path in here.parents and processes.birth(pid=int(entry.name)) is not None:
            found.append(int(entry.name))
    return found


def wait_for(condition: Callable[[], object], what: str, seconds: float = 20.0) -> None:
    """Wait until something holds, or fail with its name."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.02)


class Run:
    """A supervisor in a process of its own."""

    started: ClassVar[list[Run]] = []

    def __init__(self, data: Path, *, port: int | None = None, **env: str) -> None:
        self.data = data
        self.output = tempfile.TemporaryFile()  # noqa: SIM115 - read until the process has ended
        script = [sys.executable, "-c", DRIVER, str(data), *([str(port)] if port else [])]
        self.process = subprocess.Popen(
            script,
            env=environment(**env),
            cwd=PROJECT,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.started.append(self)

    @property
    def said(self) -> str:
        self.output.seek(0)
        return self.output.read().decode()

    def ready(self) -> Run:
        wait_for(lambda: "Ready: " in self.said or self.process.poll() is not None, "the run is ready")
        assert self.process.poll() is None, self.said
        return self

    def send(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        return self.process.wait(timeout=30)


def command(*words: str, data: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """`python -m memory_site.embedded ...` to its end."""
    argv = [sys.executable, "-m", "memory_site.embedded", *words, "--data-dir", str(data)]
    return subprocess.run(
        argv, env=environment(**env), cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False
    )


def python(code: str, *words: str, **env: str) -> subprocess.Popen[str]:
    """A Python process of its own, its output readable."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *words],
        env=environment(**env),
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def permissions(paths: Sequence[Path]) -> list[tuple[str, int, int, int]]:
    """Mode and owner of each path and everything above it."""
    every = {above for path in paths for above in (path, *path.parents)}
    return [(str(path), (found := path.stat()).st_mode, found.st_uid, found.st_gid) for path in sorted(every)]
