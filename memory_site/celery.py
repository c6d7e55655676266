"""The Celery application. Settings and their reasons are in settings.py."""

from __future__ import annotations

import logging
import os
from typing import Any

from celery import Celery
from celery.signals import worker_process_init, worker_ready

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_site.settings")

log = logging.getLogger(__name__)

# What a request may lose to a broker that accepts connections and never answers. Workers read with the patience of the
# settings.
WRITE_TIMEOUT = 0.3
NICENESS = 10  # of the processes that work in the background: 0 is a program's own, 19 the most that can be given up


class PalimpsestCelery(Celery):
    """Celery whose senders give up on a silent broker at once: the work is a row, and the sweeper finds it."""

    def connection_for_write(self, url: str | None = None, **kwargs: Any) -> Any:  # Celery's own signature
        """A connection to send with. One time-out bounds each answer; there is no second try."""
        quick = {"socket_timeout": WRITE_TIMEOUT, "socket_connect_timeout": WRITE_TIMEOUT}
        kwargs["transport_options"] = {**quick, **(kwargs.get("transport_options") or {})}
        return super().connection_for_write(url, **kwargs)


app = PalimpsestCelery("palimpsest")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_process_init.connect
def give_way(**_: Any) -> None:
    """A process that plans and embeds leaves the processor to one that answers somebody, where both want it."""
    os.nice(NICENESS)


@worker_ready.connect
def sweep_at_start(**_: Any) -> None:
    """A worker that comes up takes what piled up without it, and tries once more what had stopped: a fix may be in."""
    from django.db import DatabaseError, connection

    from observations import outbox

    try:
        outbox.revive()
    except DatabaseError as error:
        log.warning("stopped outbox rows were not revived (%s)", type(error).__name__)
    finally:
        connection.close()  # the pool's children must not inherit it
    outbox.wake()
