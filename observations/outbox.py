"""Work to be done, as rows. A Celery message is only a wake-up: a dead or emptied broker loses nothing and delays
nobody.

A row is leased before its work begins and marked done after it. The lease is short and renewed while the work runs, so
a killed worker's row is free again within LEASE_SECONDS and a long piece of work is not begun twice. All work is safe
to do twice anyway.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from celery import current_app
from django.db import DatabaseError, connection, transaction

from observations.models import Outbox

log = logging.getLogger(__name__)

SWEEP: Final = "observations.tasks.sweep"
QUIET_SECONDS: Final = 30.0  # after a broker refused a wake-up, for how long none is tried; beat has it swept as often
WAKE_EVERY: Final = 0.5  # seconds between two wake-ups of a process: sending one costs as much as a small write
WAKE_EXPIRES: Final = 120  # a wake-up nobody took by then is dropped, so that none pile up while no worker runs
LEASE_SECONDS: Final = 30.0
RENEW_SECONDS: Final = 10.0
MAX_ATTEMPTS: Final = 5  # then the row stops, and /healthz says so
WAIT_SECONDS: Final = 3600.0  # until work that had to wait is looked at again
RETRY_SECONDS: Final = 30.0  # after the first failure; four times as long after each further one
KEPT_DAYS: Final = 30  # how long a finished row can still be read

ALREADY_RUNNING: Final = "already running"
ALREADY_DONE: Final = "already done"
MORE: Final = "more is left"
FAILED: Final = "failed"
REFUSED: Final = "refused"
WAITING: Final = "waiting"

_PROJECT = Path(__file__).resolve().parent.parent
_LAST = "last"  # key of the one row that says when a housekeeping task last ran
_quiet_until = 0.0
_sent_at = -WAKE_EVERY
_asked = threading.Event()  # somebody wants a wake-up sent
_sending = threading.Lock()  # held by the one thread that sends


class Hopeless(Exception):
    """The work cannot succeed however often it is tried; the message is one sentence without memory text."""


class NotYet(Exception):
    """The work has to wait for a person, a hold or a pause: it is asked for again in an hour, and no attempt is used
    up.
    """


class Again(Exception):
    """Done so far, and more of the same is left: the row is due again at once, and no attempt is used up."""


@dataclass(frozen=True, slots=True)
class Job:
    """A leased row. `attempts` counts this attempt too, and marks the lease: an older lease cannot finish the row."""

    id: int
    task: str
    scope_id: int | None
    key: str
    payload: Mapping[str, object]
    attempts: int

    def number(self, name: str) -> int:
        """An id or figure of the payload. Raises Hopeless when it is not there."""
        value = self.payload.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise Hopeless(f"the row names no {name}")
        return value

    def numbers(self, name: str) -> list[int]:
        """A list of ids of the payload. Raises Hopeless when it is not there."""
        values = self.payload.get(name)
        if not isinstance(values, list) or any(
            isinstance(value, bool) or not isinstance(value, int) for value in values
        ):
            raise Hopeless(f"the row names no {name}")
        return values

    def word(self, name: str) -> str:
        """A word of the payload; empty when it is not there."""
        return str(self.payload.get(name, ""))

    @property
    def scope(self) -> int:
        """The scope the work is in. Raises Hopeless for a row without one."""
        if self.scope_id is None:
            raise Hopeless("the row names no scope")
        return self.scope_id


Handler = Callable[[Job], str]
_handlers: dict[str, Handler] = {}


def handles(task: str) -> Callable[[Handler], Handler]:
    """Declare the function that does an outbox task; it returns what came of it, in a few words without memory text.

    Filled when the `tasks` module of each app is imported, which a Celery worker does at its start. A process without a
    handler leaves such rows alone.
    """

    def register(handler: Handler) -> Handler:
        _handlers[task] = handler
        return handler

    return register


# --- writing rows ---------------------------------------------------------------------------------------------------

# An open row of the same work is kept; one that had stopped is given its attempts back, because somebody asks again.
_INSERT = f"""
INSERT INTO observations_outbox (scope_id, task, key, payload, created_at, due_at, attempts, last_error)
SELECT scope_id, %s, %s, %s::jsonb, clock_timestamp(), coalesce(%s, clock_timestamp()), 0, ''
FROM unnest(%s::bigint[]) AS scope_id
ON CONFLICT (scope_id, task, key) WHERE done_at IS NULL DO UPDATE
SET attempts = 0, due_at = excluded.due_at, payload = excluded.payload
WHERE observations_outbox.attempts >= {MAX_ATTEMPTS} AND observations_outbox.due_at <= clock_timestamp()
"""  # noqa: S608  the only figure put in is a constant of this module


def enqueue(
    *,
    task: str,
    scope_id: int | None,
    key: str,
    payload: Mapping[str, int | str | Sequence[int]],
    due_at: datetime | None = None,
) -> None:
    """Write one piece of work in the caller's transaction; an open row of the same (scope, task, key) is kept.

    `payload` holds ids only. Wakes a worker after the commit unless the work is due later. One query.
    """
    _insert(task=task, scope_ids=[scope_id], key=key, payload=payload, due_at=due_at)
    if due_at is None:
        transaction.on_commit(wake, robust=True)


def enqueue_in_scopes(
    *, task: str, scope_ids: Sequence[int], key: str, payload: Mapping[str, int | str | Sequence[int]]
) -> None:
    """The same piece of work in many scopes: one query and one wake-up."""
    if scope_ids:
        _insert(task=task, scope_ids=scope_ids, key=key, payload=payload, due_at=None)
        transaction.on_commit(wake, robust=True)


def _insert(
    *, task: str, scope_ids: Sequence[int | None], key: str, payload: Mapping[str, Any], due_at: datetime | None
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, [task, key, json.dumps(dict(payload)), due_at, list(scope_ids)])


def wake() -> None:
    """Ask a worker to sweep, from a thread: the caller never waits for a broker. The first is sent at once; however
    often it is asked after that, one message is sent in WAKE_EVERY seconds, the last after the last asking.
    """
    if time.monotonic() < _quiet_until:
        return
    _asked.set()
    if _sending.acquire(blocking=False):
        try:  # not a daemon: a command that ends now still sends, for the third of a second that may take
            threading.Thread(target=_send_all, name="wake").start()
        except RuntimeError:  # the system has no thread to give: the next asking tries again
            _sending.release()
            log.warning("no thread can be started to wake a worker; the sweeper will find the work")


def _send_all() -> None:
    global _sent_at
    try:
        while _asked.is_set():
            _pause()
            _asked.clear()
            _sent_at = time.monotonic()
            send_wake()
    finally:
        _sending.release()
    if _asked.is_set():  # asked between the last look and the release
        wake()


def _pause() -> None:
    """Until the next wake-up may be sent, or the process ends."""
    while (left := _sent_at + WAKE_EVERY - time.monotonic()) > 0 and threading.main_thread().is_alive():
        time.sleep(min(left, 0.05))


def send_wake() -> bool:
    """Send one wake-up now. Never raises: False when the broker cannot be reached, and then none is tried for
    QUIET_SECONDS.
    """
    global _quiet_until
    try:
        current_app.send_task(SWEEP, ignore_result=True, retry=False, expires=WAKE_EXPIRES)
    except Exception as error:  # whatever a broker answers, the row is there and the sweeper finds it
        _quiet_until = time.monotonic() + QUIET_SECONDS
        log.warning("the broker cannot be reached (%s); the sweeper will find the work", type(error).__name__)
        return False
    return True


def _forget_threads() -> None:
    """A forked child has none of its parent's threads, so nobody would release what one of them held."""
    global _asked, _sending
    _sending = threading.Lock()
    _asked = threading.Event()  # a new one: a thread may have held the old one's own lock


os.register_at_fork(after_in_child=_forget_threads)


def broker_answers(*, seconds: float = 0.15) -> bool:
    """Whether the broker answers a ping now, on a connection of its own that waits no longer than that."""
    options = {"socket_timeout": seconds, "socket_connect_timeout": seconds}
    try:
        with current_app.connection_for_write(transport_options=options) as broker:
            return bool(broker.default_channel.client.ping())  # type: ignore[attr-defined]  # Redis's channel has one
    except Exception as error:  # any fault of a broker is the answer to the question
        log.info("the broker does not answer (%s)", type(error).__name__)
        return False


# --- doing the work -------------------------------------------------------------------------------------------------

# SKIP LOCKED: two sweepers never wait for each other. The row stays as it is when this process dies, but for its
# attempts.
_LEASE = f"""
UPDATE observations_outbox
SET attempts = attempts + 1, due_at = clock_timestamp() + %(lease)s * interval '1 second', last_error = ''
WHERE id = (
  SELECT id FROM observations_outbox
  WHERE done_at IS NULL AND due_at <= clock_timestamp() AND attempts < {MAX_ATTEMPTS} AND task = ANY (%(tasks)s)
    AND (%(key)s::text IS NULL OR (key = %(key)s AND scope_id IS NOT DISTINCT FROM %(scope)s::bigint))
  ORDER BY due_at, id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING id, task, scope_id, key, payload, attempts
"""  # noqa: S608  the only figure put in is a constant of this module


def work(*, seconds: float = 120.0) -> int:
    """Do due rows one after another until none is left or the time is up; returns how many were taken.

    A row's failure is kept on the row and never raised. Raises django.db.DatabaseError when the database itself is
    gone.
    """
    note_run(task=SWEEP)
    deadline, taken = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        job = _lease(tasks=list(_handlers))
        if job is None:
            return taken
        if taken == 0 and _more_due():
            wake()  # one more worker; it asks for the next when there is still more
        taken += 1
        _run(job)
    wake()
    return taken


def perform(*, task: str, scope_id: int | None, key: str, payload: Mapping[str, int | str | Sequence[int]]) -> str:
    """Do one piece of work now, through its row, so that a second delivery of the same message does nothing (C17).

    Returns what the handler says; ALREADY_RUNNING when another worker holds the row; FAILED, REFUSED or WAITING as the
    row then says.
    """
    _insert(task=task, scope_ids=[scope_id], key=key, payload=payload, due_at=None)
    job = _lease(tasks=[task], key=key, scope_id=scope_id)
    return ALREADY_RUNNING if job is None else _run(job)


@contextmanager
def taken(
    *, task: str, scope_id: int | None, key: str, payload: Mapping[str, int | str | Sequence[int]]
) -> Iterator[Job | None]:
    """Do one piece of work in the block, through its row; None while another process holds it.

    Work that waits for a later time, or for another attempt, is taken at once. When the block raises, or its process
    dies, the row stays and a worker tries it again.
    """
    _insert(task=task, scope_ids=[scope_id], key=key, payload=payload, due_at=None)
    with connection.cursor() as cursor:  # due later than a lease lasts, or put off with an error: nobody holds it
        cursor.execute(
            "UPDATE observations_outbox SET due_at = clock_timestamp(), attempts = least(attempts, %s)"
            " WHERE scope_id IS NOT DISTINCT FROM %s AND task = %s AND key = %s AND done_at IS NULL"
            " AND (due_at > clock_timestamp() + %s * interval '1 second' OR last_error <> '')",
            [MAX_ATTEMPTS - 1, scope_id, task, key, LEASE_SECONDS],
        )
    job = _lease(tasks=[task], key=key, scope_id=scope_id)
    if job is None:
        yield None
        return
    try:
        with _renewed(job):
            yield job
    except BaseException as error:
        _postpone(job, error)
        raise
    _finish(job)


def _lease(*, tasks: Sequence[str], key: str | None = None, scope_id: int | None = None) -> Job | None:
    with connection.cursor() as cursor:
        cursor.execute(_LEASE, {"lease": LEASE_SECONDS, "tasks": list(tasks), "key": key, "scope": scope_id})
        row = cursor.fetchone()
    if row is None:
        return None
    pk, task, scope, name, payload, attempts = row
    return Job(pk, task, scope, name, json.loads(payload) if isinstance(payload, str) else payload, attempts)


def _more_due() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM observations_outbox WHERE done_at IS NULL AND due_at <= clock_timestamp()"
            " AND attempts < %s AND task = ANY (%s))",
            [MAX_ATTEMPTS, list(_handlers)],
        )
        row = cursor.fetchone()
    return bool(row and row[0])


def _run(job: Job) -> str:
    try:
        with _renewed(job):
            said = _handlers[job.task](job)
    except Hopeless as refusal:
        _finish(job, error=f"refused: {refusal}")
        return REFUSED
    except NotYet as wait:
        _update(
            job,
            "attempts = attempts - 1, due_at = clock_timestamp() + %s * interval '1 second', last_error = %s",
            *(WAIT_SECONDS, f"waits: {wait}"[:200]),
        )
        return WAITING
    except Again:
        _update(job, "attempts = attempts - 1, due_at = clock_timestamp(), last_error = ''")
        return MORE
    except Exception as error:  # the row says what happened, and is tried again
        log.warning("outbox row %s (%s) failed: %s at %s", job.id, job.task, type(error).__name__, _where(error))
        _postpone(job, error)
        return FAILED
    _finish(job)
    log.info("outbox row %s (%s): %s", job.id, job.task, said)
    return said


@contextmanager
def _renewed(job: Job) -> Iterator[None]:
    """Keep the lease while the work runs, from a thread with a database connection of its own."""
    stop = threading.Event()
    thread = threading.Thread(target=_renew, args=(job, stop), name=f"lease-{job.id}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _renew(job: Job, stop: threading.Event) -> None:
    try:
        while not stop.wait(RENEW_SECONDS):
            _update(job, f"due_at = clock_timestamp() + {LEASE_SECONDS} * interval '1 second'")
            note_run(task=SWEEP)
    except DatabaseError as error:
        log.warning("the lease of outbox row %s could not be renewed (%s)", job.id, type(error).__name__)
    finally:
        connection.close()


def _finish(job: Job, *, error: str = "") -> None:
    _update(job, "done_at = clock_timestamp(), last_error = %s", error[:200])


def _postpone(job: Job, error: BaseException) -> None:
    left = job.attempts < MAX_ATTEMPTS
    delay = RETRY_SECONDS * 4 ** (job.attempts - 1) if left else 0.0
    _update(job, "due_at = clock_timestamp() + %s * interval '1 second', last_error = %s", delay, sentence(error))


def _update(job: Job, change: str, *values: str | float) -> None:
    """Change the row this lease holds; nothing happens when a later lease has taken it over."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE observations_outbox SET {change} WHERE id = %s AND attempts = %s AND done_at IS NULL",  # noqa: S608
            [*values, job.id, job.attempts],
        )


def sentence(error: BaseException) -> str:
    """What went wrong without a word of memory: the error's class and the first line of what that class says about
    itself.

    Never the error's message: a database's holds the failing row.
    """
    kind = type(error)
    lines = (kind.__doc__ or "").strip().splitlines()
    return f"{kind.__name__}: {lines[0] if lines else 'the work failed'}"[:200]


def _where(error: BaseException) -> str:
    """File and line of ours nearest to the fault, for the log."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _PROJECT in Path(f.filename).parents]
    ours = [f for f in frames if "site-packages" not in f.filename]
    return f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "an unknown place"


# --- housekeeping ---------------------------------------------------------------------------------------------------


def note_run(*, task: str, error: str = "") -> None:
    """Remember that a housekeeping task has just run, and what it found: one row per task, read by /healthz."""
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH noted AS (UPDATE observations_outbox SET done_at = clock_timestamp(), last_error = %(error)s"
            "  WHERE scope_id IS NULL AND task = %(task)s AND key = %(key)s AND done_at IS NOT NULL RETURNING 1)"
            " INSERT INTO observations_outbox (task, key, payload, created_at, due_at, done_at, attempts, last_error)"
            " SELECT %(task)s, %(key)s, '{}', clock_timestamp(), clock_timestamp(), clock_timestamp(), 0, %(error)s"
            " WHERE NOT EXISTS (SELECT 1 FROM noted)",
            {"task": task, "key": _LAST, "error": error[:200]},
        )


def last_run(*, task: str) -> tuple[datetime, str] | None:
    """When a housekeeping task last ran and what it found; None when it never did."""
    rows = Outbox.objects.filter(scope=None, task=task, key=_LAST, done_at__isnull=False)
    return rows.order_by("-done_at").values_list("done_at", "last_error").first()  # type: ignore[return-value]


def age() -> int:
    """Delete rows finished more than KEPT_DAYS ago; returns how many. Open rows stay, however old."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM observations_outbox WHERE done_at < clock_timestamp() - %s * interval '1 day'", [KEPT_DAYS]
        )
        return int(cursor.rowcount)


def revive() -> int:
    """Give every row that had stopped one more attempt; returns how many. A worker does it at its start: a fix may be
    in.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE observations_outbox SET attempts = %s WHERE done_at IS NULL AND attempts >= %s"
            " AND due_at <= clock_timestamp()",
            [MAX_ATTEMPTS - 1, MAX_ATTEMPTS],
        )
        return int(cursor.rowcount)


@dataclass(frozen=True, slots=True)
class Backlog:
    """How the queue stands, by the database's clock."""

    waiting: int  # rows due and not taken
    waiting_seconds: float  # how long the first of them has been due
    stopped: int  # rows given up after MAX_ATTEMPTS


def backlog() -> Backlog:
    """How the queue stands now. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FILTER (WHERE attempts < %(max)s), count(*) FILTER (WHERE attempts >= %(max)s),"
            " coalesce(extract(epoch FROM clock_timestamp() - min(due_at) FILTER (WHERE attempts < %(max)s)), 0)"
            " FROM observations_outbox WHERE done_at IS NULL AND due_at <= clock_timestamp()",
            {"max": MAX_ATTEMPTS},
        )
        row = cursor.fetchone()
    assert row is not None
    return Backlog(waiting=row[0], waiting_seconds=float(row[2]), stopped=row[1])
