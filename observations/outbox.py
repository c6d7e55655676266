"""Work to be done, as rows. A Celery message is only a wake-up: a dead or emptied broker loses nothing and delays nobody."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from datetime import datetime

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from observations.models import Outbox

log = logging.getLogger(__name__)

SWEEP = "observations.tasks.sweep"
QUIET_SECONDS = 30.0  # after a broker refused a wake-up, how long none is tried; the sweeper runs this often anyway
_quiet_until = 0.0


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
    row = Outbox(task=task, scope_id=scope_id, key=key, payload=dict(payload))
    if due_at is not None:
        row.due_at = due_at
    Outbox.objects.bulk_create([row], ignore_conflicts=True)
    if due_at is None:
        transaction.on_commit(wake, robust=True)


def wake() -> bool:
    """Ask a worker to sweep now. Never raises and never waits long: False when the broker cannot be reached."""
    global _quiet_until
    if time.monotonic() < _quiet_until:
        return False
    try:
        current_app.send_task(SWEEP, ignore_result=True, retry=False)
    except (OperationalError, OSError) as error:
        _quiet_until = time.monotonic() + QUIET_SECONDS
        log.warning("the broker cannot be reached (%s); the sweeper will find the work", type(error).__name__)
        return False
    return True
