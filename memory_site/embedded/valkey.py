"""Valkey, the Redis-compatible broker: the wheel's server with arguments of our own, behind a socket only.

Every write is in its append-only file, so a message survives a restart; memory is never freed by dropping messages.
"""

import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memory_site.embedded import processes
from memory_site.embedded.accounts import Account
from memory_site.embedded.binaries import Binaries
from memory_site.embedded.errors import failure

READY_SECONDS = 30.0


@dataclass(frozen=True)
class Broker:
    """One server: its data, its socket, its programs, its account and its log."""

    data: Path
    socket: Path
    binaries: Binaries
    account: Account | None
    log: Path
    fsync: bool = True


def start(*, broker: Broker) -> processes.Child:
    """Start the server in the foreground as our child, after any predecessor has left the folder."""
    processes.await_departure(folder=broker.data, program="valkey-server", stop_signal=signal.SIGTERM)
    broker.socket.unlink(missing_ok=True)
    settings = {
        "--port": "0",
        "--unixsocket": str(broker.socket),
        "--unixsocketperm": "700",
        "--appendonly": "yes" if broker.fsync else "no",
        "--save": "",
        "--maxmemory-policy": "noeviction",
        "--daemonize": "no",
        "--logfile": "",
    }
    words = [word for pair in settings.items() for word in pair]
    return processes.start(
        name="valkey",
        argv=[broker.binaries.valkey, *words],
        log=broker.log,
        cwd=broker.data,
        env={"LC_ALL": "C", "TZ": "UTC"},
        account=broker.account,
        stop_signal=signal.SIGTERM,
        grace=15.0,
    )


def await_ready(
    *, broker: Broker, child: processes.Child, interrupted: Callable[[], None], seconds: float = READY_SECONDS
) -> None:
    """Wait until the server answers PING; while it loads its file it answers -LOADING. Raises EmbeddedError."""
    deadline = time.monotonic() + seconds
    while _ping(broker.socket) != b"+PONG":
        interrupted()
        if (status := child.ended()) is not None:
            raise failure(what=f"Valkey ended while starting (exit {status})", log=broker.log, place=broker.data)
        if time.monotonic() > deadline:
            raise failure(what=f"Valkey was not ready within {seconds:.0f} s", log=broker.log, place=broker.data)
        time.sleep(0.01)


def _ping(path: Path) -> bytes:
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1.0)
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            return connection.recv(64).split(b"\r\n")[0]
    except OSError:
        return b""


def url(*, broker: Broker) -> str:
    """The address in the form Celery reads."""
    return f"redis+socket://{broker.socket}?virtual_host=0"
