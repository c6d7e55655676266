"""What the holder of a data folder's lock says about itself, so that others can join it, stop it, or clear up after
it.
"""

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from memory_site.embedded import folder, processes
from memory_site.embedded.errors import explain
from memory_site.embedded.folder import DataFolder
from memory_site.embedded.stack import Urls

RUN, KEEP = "run", "keep"
MARK = "PALIMPSEST_RUN"  # in the environment of the web, the worker and beat: finds what a killed supervisor left
_LEFTOVERS_GRACE = 3.0


@dataclass(frozen=True)
class Holder:
    """The process that owns the servers: `kind` is RUN or KEEP, `urls` is None until others may use them."""

    kind: str
    pid: int
    urls: Urls | None


def publish(*, data: DataFolder, kind: str, mark: str, runtime: Path | None = None, urls: Urls | None = None) -> None:
    """Say who holds the folder; with `urls`, that others may use the servers."""
    record = {"kind": kind, "mark": mark, "pid": str(os.getpid()), "birth": processes.birth(pid=os.getpid()) or ""}
    if runtime is not None:
        record["runtime"] = str(runtime)
    if urls is not None:
        record |= {name: value for name, value in vars(urls).items() if value is not None}
    folder.write_record(path=data.state, record=record, durable=False)  # after a power cut nobody runs


def holder(*, data: DataFolder) -> Holder | None:
    """Who holds the folder now; None when nobody does, or its holder has not yet said so.

    The lock says that somebody lives; number and birth say that the record is his and not that of a killed predecessor.
    """
    try:
        if not folder.is_held(data.lock):
            return None
        record = folder.read_record(data.state)
    except OSError as error:
        raise explain(error=error, place=data.path) from error
    pid = int(record.get("pid", "0"))
    if pid == 0 or processes.birth(pid=pid) != record.get("birth"):
        return None
    return Holder(kind=record.get("kind", ""), pid=pid, urls=_urls(record))


def _urls(record: dict[str, str]) -> Urls | None:
    if "database_url" not in record or "redis_url" not in record:
        return None
    return Urls(
        database_url=record["database_url"],
        migrate_database_url=record.get("migrate_database_url", record["database_url"]),
        redis_url=record["redis_url"],
        superuser_url=record.get("superuser_url"),
        web_url=record.get("web_url"),
    )


def recover(*, data: DataFolder) -> None:
    """Clear up after a holder that was killed: its web, worker and beat, and the folder of its sockets. The caller
    holds the lock.

    The kernel has sent them their signal already; they get a moment to heed it. The servers are awaited where they are
    started.
    """
    record = folder.read_record(data.state)
    if mark := record.get("mark"):
        _end_leftovers(f"{MARK}={mark}")
    if runtime := record.get("runtime"):
        folder.remove_runtime(Path(runtime))
    data.state.unlink(missing_ok=True)


def _end_leftovers(mark: str) -> None:
    deadline = time.monotonic() + _LEFTOVERS_GRACE
    while (left := processes.marked(mark=mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
