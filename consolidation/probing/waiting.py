"""Runs of suites that a worker does: asked for through the outbox, and how far they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.contrib.auth.models import User

from consolidation.models import ProbeRun, Suite
from consolidation.probes import K
from consolidation.probing.running import Ran, run_suite
from observations import outbox
from observations.models import Outbox

RUN_SUITE: Final = "run_suite"
_SAID_EVERY: Final = 20  # probes


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A run that was asked for and has not ended."""

    k: int
    asked: int  # probes asked so far
    begun: bool  # a worker took it up
    stopped: bool  # it failed as often as it is tried
    error: str  # of the last attempt


def run_later(*, suite: Suite, by: str, k: int = K, cause: str = ProbeRun.Cause.BUTTON) -> None:
    """Have a worker run a suite. An open request for the same suite and k is kept. One query."""
    payload: dict[str, int | str] = {"suite": suite.pk, "k": k, "by": by[:150], "cause": cause}
    outbox.enqueue(task=RUN_SUITE, scope_id=suite.scope_id, key=_key(suite, k), payload=payload)


def run_asked(*, job: outbox.Job) -> Ran:
    """Do what `run_later` asked for, and say on its row how far it is. Raises outbox.Hopeless."""
    suite = Suite.objects.filter(pk=job.number("suite"), scope_id=job.scope).select_related("scope").first()
    if suite is None:
        raise outbox.Hopeless("there is no such suite in the scope")
    if User.objects.filter(username=job.word("by"), is_active=False).exists():
        raise outbox.Hopeless("the person who asked may not run suites any more")
    cause = ProbeRun.Cause.BUTTON if job.word("cause") == ProbeRun.Cause.BUTTON else ProbeRun.Cause.TASK
    said = _Said(job)
    return run_suite(suite=suite, by=job.word("by"), k=job.number("k"), cause=cause, progress=said)


class _Said:
    """Counts probes on the row of their job, now and then."""

    def __init__(self, job: outbox.Job) -> None:
        self._job, self._asked = job, 0

    def __call__(self) -> None:
        self._asked += 1
        if self._asked % _SAID_EVERY == 0:
            payload = {**self._job.payload, "asked": self._asked}
            Outbox.objects.filter(pk=self._job.id, done_at=None).update(payload=payload)


def waiting(*, suite: Suite) -> list[Waiting]:
    """Runs of a suite that were asked for and have not ended. One query."""
    rows = Outbox.objects.filter(scope_id=suite.scope_id, task=RUN_SUITE, done_at=None, payload__suite=suite.pk)
    return [
        Waiting(
            k=int(row.payload.get("k", K)),
            asked=int(row.payload.get("asked", 0)),
            begun=row.attempts > 0 and not row.last_error,
            stopped=row.attempts >= outbox.MAX_ATTEMPTS and bool(row.last_error),
            error=row.last_error,
        )
        for row in rows.order_by("pk")
    ]


def _key(suite: Suite, k: int) -> str:
    return f"suite {suite.pk} k {k}"
