"""Servers for the length of one command: those of the running stack, or a pair started for the occasion.

A pair is owned by a keeper, a process of its own, not by the command that asked first: so a command that ends, or is
killed, takes no server from under another. Every borrower holds the folder's `borrowers` lock shared; the keeper stops
the servers when it can have that lock for itself, that is, when the last borrower is gone. A borrower that comes while
a keeper or a `run` is starting waits until it is ready; one that comes while it is stopping waits until it is gone and
starts the next.
"""

import contextlib
import fcntl
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from memory_site.embedded import folder, postgres, state
from memory_site.embedded.errors import EmbeddedError, Interrupted, explain
from memory_site.embedded.folder import PROJECT, DataFolder
from memory_site.embedded.stack import Servers, Urls, Wishes, nothing_to_start, overlay, start_servers

LOCKED = 75  # a keeper's exit status when another holds the folder
_PATIENCE = 90.0  # seconds until a holder that is starting or stopping is given up
_POLL = 0.02


def running(data_dir: Path | None = None) -> Urls | None:
    """The addresses of the stack that runs for this data folder, alive by its lock; None when there is none or it is
    still starting.
    """
    found = state.holder(data=folder.find(data_dir))
    return found.urls if found else None


@contextlib.contextmanager
def borrow(data_dir: Path | None = None) -> Iterator[Urls]:
    """Servers for the duration of the block: the running stack's, or a pair started and stopped for it.

    DATABASE_URL and REDIS_URL in the environment win, each for itself; with both, no folder is touched. The database
    may be empty: the caller migrates, within `migration_lock`, as another borrower may have the same thought. Raises
    EmbeddedError.
    """
    environ = dict(os.environ)
    if nothing_to_start(environ=environ):
        yield overlay(urls=Urls("", "", ""), environ=environ)
        return
    data = folder.find(data_dir)
    try:
        postgres.check_version(folder.cluster_of(data))
        folder.make(data)
    except OSError as error:
        raise explain(error=error, place=data.path) from error
    keeper: subprocess.Popen[str] | None = None
    claim = _claim(data)
    try:
        urls, keeper = _join(data)
        yield overlay(urls=urls, environ=environ)
    finally:
        alone = _is_last(claim)
        os.close(claim)
        if alone:
            _await_keeper(data, keeper)


@contextlib.contextmanager
def migration_lock(data_dir: Path | None = None) -> Iterator[None]:
    """One migration at a time on the embedded database; nothing when both servers are the user's own."""
    data = folder.find(data_dir)
    with contextlib.nullcontext() if nothing_to_start(environ=os.environ) else folder.holding(data.migrating):
        yield


def _claim(data: DataFolder) -> int:
    """Be counted as a borrower. Waits while a keeper is stopping. The kernel takes the claim back when this process
    dies.
    """
    try:
        descriptor = os.open(data.borrowers, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    except OSError as error:
        raise explain(error=error, place=data.path) from error
    return descriptor


def _is_last(claim: int) -> bool:
    """Whether nobody else borrows; a stopping keeper counts as somebody."""
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _join(data: DataFolder) -> tuple[Urls, subprocess.Popen[str] | None]:
    """Wait for a usable stack, starting a keeper whenever nobody holds the folder."""
    keeper: subprocess.Popen[str] | None = None
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        found = state.holder(data=data)
        if found is not None and found.urls is not None:
            return found.urls, _if_own(keeper, found.pid)
        if keeper is not None and (status := keeper.poll()) is not None:
            said = keeper.stdout.read().strip() if keeper.stdout else ""
            if status != LOCKED:
                raise EmbeddedError(said or f"The servers could not be started (exit {status}); see {data.logs}.")
            keeper = None
        if keeper is None and not folder.is_held(data.lock):
            keeper = _start_keeper(data)
        time.sleep(_POLL)
    raise EmbeddedError(f"The servers of {data.path} were not ready within {_PATIENCE:.0f} s; see {data.logs}.")


def _if_own(keeper: subprocess.Popen[str] | None, pid: int) -> subprocess.Popen[str] | None:
    """The keeper we started, when it is the one that holds the folder; one that came too late is waited for."""
    if keeper is not None and keeper.pid != pid:
        keeper.communicate()
        return None
    return keeper


def _start_keeper(data: DataFolder) -> subprocess.Popen[str]:
    path = os.pathsep.join(filter(None, (str(PROJECT), os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-m", "memory_site.embedded", "keep", "--data-dir", str(data.path)],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )


def _await_keeper(data: DataFolder, keeper: subprocess.Popen[str] | None) -> None:
    """The last borrower ends after the servers, so that nothing of a command is left when it returns."""
    deadline = time.monotonic() + 30.0
    while time.monotonic() < deadline:
        found = state.holder(data=data)
        if found is None or found.kind != state.KEEP:
            break
        time.sleep(_POLL)
    if keeper is not None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            keeper.communicate(timeout=max(0.1, deadline - time.monotonic()))


def keep(*, data: DataFolder) -> int:
    """The keeper: own the servers while anybody borrows them; returns an exit status.

    Whoever started it reads its output until the servers are ready; after that it has a log of its own.
    """
    lock = folder.take_lock(data.lock, patience=0.2)
    if lock is None:
        return LOCKED
    ordered: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: ordered.append(received))
    mark = secrets.token_hex(8)
    state.recover(data=data)
    state.publish(data=data, kind=state.KEEP, mark=mark)
    servers = start_servers(
        data=data,
        wishes=Wishes(
            environ=dict(os.environ),
            interrupted=lambda: _give_up(ordered),
            announce=lambda runtime: state.publish(data=data, kind=state.KEEP, mark=mark, runtime=runtime),
        ),
    )
    try:
        _turn_to_log(data)
        state.publish(data=data, kind=state.KEEP, mark=mark, runtime=servers.runtime, urls=servers.urls)
        return _watch(data, servers, ordered)
    finally:
        servers.stop()
        data.state.unlink(missing_ok=True)


def _give_up(ordered: list[int]) -> None:
    if ordered:
        raise Interrupted("Stopped before the servers were ready.")


def _turn_to_log(data: DataFolder) -> None:
    descriptor = os.open(data.logs / "keeper.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


def _watch(data: DataFolder, servers: Servers, ordered: list[int]) -> int:
    """Until the last borrower is gone (0), we are told to stop (0), or a server ends by itself (1)."""
    while not ordered:
        for child in servers.children:
            if (status := child.ended()) is not None:
                sys.stdout.write(f"{child.name} ended by itself (exit {status}); see {child.log}.\n")
                return 1
        # Kept open until this process ends: a borrower that comes now waits until the servers are gone, then starts the
        # next pair.
        if folder.try_lock(data.borrowers) is not None:
            return 0
        time.sleep(0.05)
    return 0
