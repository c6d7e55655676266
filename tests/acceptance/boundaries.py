"""Statement boundaries, counted below Django's cursor: every exchange of a psycopg connection with its server, COMMIT
included.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import psycopg
from django.db import connection, connections

from tests.conftest import emptier

Side = Literal["before", "after"]
Hook = Callable[[str, Side], None]


@contextlib.contextmanager
def watched(hook: Hook) -> Iterator[None]:
    """Call `hook(statement, side)` before and after every exchange of every connection of this process."""
    original = psycopg.Connection.wait

    def wait(self: psycopg.Connection[Any], gen: Generator[Any, Any, Any], *args: Any, **kwargs: Any) -> Any:
        statement = _named(gen)
        hook(statement, "before")
        value = original(self, gen, *args, **kwargs)
        hook(statement, "after")
        return value

    psycopg.Connection.wait = wait  # type: ignore[method-assign]
    try:
        yield
    finally:
        psycopg.Connection.wait = original  # type: ignore[method-assign]


_SAVEPOINT: Final = re.compile(r'"s\d+_x\d+"')  # Django counts them up from process to process


def _named(gen: Generator[Any, Any, Any]) -> str:
    """The first words of the statement an exchange carries, or what it is: a commit has no text of its own."""
    query = inspect.getgeneratorlocals(gen).get("query") if inspect.isgenerator(gen) else None
    if query is None:
        return str(getattr(gen, "__name__", gen)).strip("_").removesuffix("_gen").upper()
    words = " ".join(str(query).split())
    return _SAVEPOINT.sub("s", words)[:60]


@dataclass(frozen=True)
class Death:
    """How a child ended, and where it had come to."""

    code: int  # the exit status as a shell's negative signal number: -9 when it was killed
    boundaries: tuple[tuple[str, Side], ...]


def run_in_child(action: Callable[[], object], *, kill_at: int | None = None) -> Death:
    """Fork, run an action on a connection of its own, and kill the child with SIGKILL at its n-th boundary (from 0).

    Returns when the child is dead and PostgreSQL has ended its backend, so that no lock or transaction of it is left.
    """
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        _be_the_child(action, kill_at, send)
    os.close(send)
    with os.fdopen(receive) as pipe:
        lines = pipe.read().splitlines()
    _, status = os.waitpid(child, 0)
    backend = next((int(line[1:]) for line in lines if line.startswith("#")), None)
    assert backend is not None, "the child never reached its database"
    assert backend != _backend_pid(), "the child must not share its parent's backend"
    _wait_for_end_of(backend)
    seen = tuple((line[1:], "before" if line[0] == "<" else "after") for line in lines if line[0] in "<>")
    return Death(os.waitstatus_to_exitcode(status), seen)  # type: ignore[arg-type]


def _be_the_child(action: Callable[[], object], kill_at: int | None, send: int) -> None:
    """Never returns. The parent's connection is left alone: closing it here would end the parent's session."""
    inherited = connection.connection
    connections["default"].connection = None
    code = 1
    try:
        connection.ensure_connection()
        os.write(send, f"#{_backend_pid()}\n".encode())
        position = -1

        def hook(statement: str, side: Side) -> None:
            nonlocal position
            position += 1
            os.write(send, f"{'<' if side == 'before' else '>'}{statement}\n".encode())
            if position == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

        with watched(hook):
            action()
        code = 0
    except BaseException as error:
        sys.stderr.write(f"child: {type(error).__name__}: {error}\n")
    finally:
        del inherited
        os._exit(code)


def _backend_pid() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        row = cursor.fetchone()
    assert row is not None
    return int(row[0])


def _wait_for_end_of(backend: int) -> None:
    """Until the dead child's backend is gone: it may still be rolling back."""
    admin = emptier()
    for _ in range(2000):
        if admin.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (backend,)).fetchone() is None:
            return
        admin.execute("SELECT pg_sleep(0.005)")
    raise AssertionError(f"backend {backend} outlived its client")
