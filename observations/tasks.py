"""What a worker does for the store. A message carries ids at most and keeps no result; the outbox rows say what there
is to do.
"""

from __future__ import annotations

from celery import shared_task

from observations import ingest, outbox

EMBED = "embed"


@shared_task(ignore_result=True)
def sweep() -> str:
    """Do what the outbox holds. Sent as a wake-up after every commit that wrote a row, and every 30 seconds by beat."""
    return f"{outbox.work()} rows"


@shared_task(ignore_result=True)
def age_outbox() -> str:
    """Forget rows finished a month ago; open rows stay."""
    return f"{outbox.age()} rows"


@shared_task(ignore_result=True)
def embed(scope_id: int, first: int, last: int) -> str:
    """Compute the missing vectors of a scope's observations from id `first` to `last`; a second delivery finds none
    missing.
    """
    return outbox.perform(task=EMBED, scope_id=scope_id, key=f"{first}-{last}", payload={"first": first, "last": last})


@outbox.handles(EMBED)
def _embed(job: outbox.Job) -> str:
    done = ingest.embed_missing(scope_id=job.scope, first=job.number("first"), last=job.number("last"))
    return f"{done} vectors" if done else outbox.ALREADY_DONE
