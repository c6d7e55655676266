"""The command: `python -m memory_site.embedded run | stop | status | env`."""

import argparse
import contextlib
import os
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from memory_site.embedded import borrowing, folder, state
from memory_site.embedded.dotenv import read_dotenv
from memory_site.embedded.errors import EmbeddedError, explain
from memory_site.embedded.folder import DataFolder
from memory_site.embedded.supervisor import Order, Supervisor, environment

_STOP_SECONDS = 120.0


def parser() -> argparse.ArgumentParser:
    """The command line; every command takes --data-dir."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="the data folder (default: .palimpsest in the project)"
    )
    top = argparse.ArgumentParser(
        prog="python -m memory_site.embedded",
        description="Palimpsest on one machine: PostgreSQL, Valkey, web, worker and beat under one supervisor. "
        "DATABASE_URL and REDIS_URL in the environment or in .env stand for servers of your own.",
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", parents=[shared], help="start everything and stay until Ctrl-C")
    run.add_argument(
        "--port", type=int, help="the web's port; when taken it is an error (default: 8000 or the next free one)"
    )
    run.add_argument(
        "--prepare",
        action="append",
        default=[],
        metavar="'COMMAND ...'",
        help="a manage.py command to run after migrate and before the web starts; may be given again",
    )
    commands.add_parser("stop", parents=[shared], help="stop what runs from the data folder, and wait until it is gone")
    commands.add_parser(
        "status", parents=[shared], help="say what runs; the exit status is 0 when something does, else 1"
    )
    commands.add_parser(
        "env", parents=[shared], help='print the running stack\'s settings for a shell: eval "$(... env)"'
    )
    commands.add_parser("keep", parents=[shared])  # for borrow() only
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status. What goes wrong is one sentence on standard error."""
    arguments = parser().parse_args(argv)
    data = folder.find(arguments.data_dir)
    try:
        match arguments.command:
            case "run":
                return _run(data, arguments.port, arguments.prepare)
            case "keep":
                return borrowing.keep(data=data)
            case "stop":
                return _stop(data)
            case "status":
                return _status(data)
            case _:
                return _env(data)
    except EmbeddedError as error:
        return _fail(error)
    except OSError as error:
        return _fail(explain(error=error, place=data.path))


def _fail(error: EmbeddedError) -> int:
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
    return 1


def _run(data: DataFolder, port: int | None, prepare: Sequence[str]) -> int:
    read_dotenv()
    words = [shlex.split(command) for command in prepare]
    order = Order(
        data=data, environ=dict(os.environ), port=port, prepare=[command for command in words if command], say=_say
    )
    return Supervisor(order=order).run()


def _say(text: str) -> None:
    """A closed terminal or pipe must not keep the supervisor from stopping what it started."""
    with contextlib.suppress(OSError):
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def _stop(data: DataFolder) -> int:
    found = state.holder(data=data)
    if found is None:
        _say(f"Nothing runs from {data.path}.")
        return 0
    with contextlib.suppress(ProcessLookupError):
        os.kill(found.pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS
    while folder.is_held(data.lock):
        if time.monotonic() > deadline:
            raise EmbeddedError(f"Process {found.pid} has not stopped within {_STOP_SECONDS:.0f} s; see {data.logs}.")
        time.sleep(0.05)
    _say("Stopped.")
    return 0


def _status(data: DataFolder) -> int:
    found = state.holder(data=data)
    if found is None:
        _say(f"Nothing runs from {data.path}.")
        return 1
    if found.urls is None:
        _say(f"Starting (process {found.pid}).")
    elif found.urls.web_url:
        _say(f"Running at {found.urls.web_url} (process {found.pid}).")
    else:
        _say(f"The servers run without the web (process {found.pid}).")
    _say(f"Data: {folder.cluster_of(data).parent.parent}\nLogs: {data.logs}")
    return 0


def _env(data: DataFolder) -> int:
    urls = borrowing.running(data.path)
    if urls is None:
        raise EmbeddedError(f"Nothing runs from {data.path}: start it with `run`.")
    for name, value in environment(data=data, urls=urls, environ=os.environ, owner=True).items():
        _say(f"export {name}={shlex.quote(value)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
