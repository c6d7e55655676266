"""/healthz: whether this process can serve, and what needs looking at. No login, no names, no secrets.

200 while reads and writes work: "ok", or "degraded" with reasons when something beside them does not (a dead broker, a
stopped row). 503 and "unavailable" when they do not, or when the database would not keep its promises for the role this
process has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from django.db import DatabaseError, connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from consolidation.models import Pause
from observations import failures, outbox
from observations.checks import powers
from observations.models import database_now

OVERDUE_SECONDS = 300.0  # a due row nobody took for this long (I23)
UNSEEN_SECONDS = 120.0  # beat has the outbox swept every 30 seconds, and a worker at work says so every 10
STALE_SECONDS = 3 * 3600.0  # the invariants are looked at every hour
PATIENCE_MS = 1_000  # a table locked for longer than this cannot be served from


@dataclass
class _Report:
    """What was found so far. `faults` mean that this process cannot serve, `worries` that something beside it does not
    work.
    """

    found: dict[str, object] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    worries: list[str] = field(default_factory=list)

    @property
    def status(self) -> str:
        return "unavailable" if self.faults else "degraded" if self.worries else "ok"


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """The report as JSON. Six short queries, and one ping that waits 0.15 s at most."""
    report = _Report()
    try:
        with transaction.atomic():
            _be_patient()
            _database(report)
            _queue(report)
            _housekeeping(report)
            report.found["paused"] = Pause.standing() is not None
    except DatabaseError as error:
        report.found["database"] = "unreachable"
        report.faults.append(f"the database does not answer ({type(error).__name__})")
    _broker(report)
    report.found["failed_reads"] = failures.counted()
    body = {"status": report.status, "reasons": [*report.faults, *report.worries], **report.found}
    return JsonResponse(body, status=503 if report.faults else 200)


def _be_patient() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(PATIENCE_MS)])


def _database(report: _Report) -> None:
    found = powers()
    report.found["database"] = "readable"
    if found:
        report.faults.append(f"the database role {found}, so the guards of memory could be passed by")
    missing = _shipped() - _applied()
    report.found["migrations"] = "pending" if missing else "applied"
    if missing:
        report.faults.append(f"{len(missing)} migrations are not applied: run manage.py migrate")


def _queue(report: _Report) -> None:
    queue = outbox.backlog()
    report.found["queue"] = {
        "waiting": queue.waiting,
        "waiting_seconds": round(queue.waiting_seconds),
        "stopped": queue.stopped,
    }
    if queue.waiting_seconds > OVERDUE_SECONDS:
        report.worries.append(f"work has been waiting for {queue.waiting_seconds:.0f} s: is a worker running?")
    if queue.stopped:
        report.worries.append(
            f"{queue.stopped} pieces of work stopped after {outbox.MAX_ATTEMPTS} attempts: the outbox says why"
        )


def _housekeeping(report: _Report) -> None:
    swept, _ = _since(outbox.SWEEP)
    report.found["worker"] = {"seen_seconds": swept}
    if swept is None or swept > UNSEEN_SECONDS:
        report.worries.append("no worker has been seen for two minutes, or beat is not running")
    verified, broken = _since("consolidation.tasks.verify")
    report.found["verified"] = {"seen_seconds": verified, "broken": broken}
    if broken:
        report.worries.append(f"invariants do not hold: {broken}; run manage.py memory verify")
    elif verified is not None and verified > STALE_SECONDS:
        report.worries.append("the invariants have not been looked at for three hours")


def _since(task: str) -> tuple[int | None, str]:
    """Seconds since a housekeeping task last ran, by the database's clock, and what it found."""
    last = outbox.last_run(task=task)
    if last is None:
        return None, ""
    return max(0, round((database_now() - last[0]).total_seconds())), last[1]


def _broker(report: _Report) -> None:
    answers = outbox.broker_answers()
    report.found["broker"] = "reachable" if answers else "unreachable"
    if not answers:
        report.worries.append("the broker does not answer: work waits in the outbox until it does")


@cache
def _shipped() -> frozenset[tuple[str, str]]:
    """The migrations of this code, read from disk once per process."""
    return frozenset(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)


def _applied() -> set[tuple[str, str]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT app, name FROM django_migrations")
        return {(app, name) for app, name in cursor.fetchall()}
