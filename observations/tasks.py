"""What a worker does for the store. A message carries ids at most and keeps no result; the outbox rows say what there
is to do.
"""

from __future__ import annotations

from celery import shared_task

from observations import access, answers, ingest, outbox
from observations.llm import Answer
from observations.models import IntakeRun, Scope

EMBED = "embed"
WAITED_SECONDS = 300.0  # a turn that has waited so long is read, however few came with it


@shared_task(ignore_result=True)
def sweep() -> str:
    """Do what the outbox holds. Sent as a wake-up after every commit that wrote a row, and every 30 seconds by beat."""
    return f"{outbox.work()} rows"


@shared_task(ignore_result=True)
def age_outbox() -> str:
    """Forget rows finished a month ago, receipts of requests made a day ago, answers given 90 days ago, and residue
    first held three days ago; open rows stay.
    """
    gone = f"{outbox.age()} rows, {access.age_receipts()} receipts, {answers.age()} answers"
    return f"{gone}, {ingest.drop_residue()} residue"


@shared_task(ignore_result=True)
def embed(scope_id: int, first: int, last: int) -> str:
    """Compute the missing vectors of a scope's observations from id `first` to `last`; a second delivery finds none
    missing. Episodes are asked for by rows of the outbox only.
    """
    return outbox.perform(task=EMBED, scope_id=scope_id, key=f"{first}-{last}", payload={"first": first, "last": last})


@outbox.handles(EMBED)
def _embed(job: outbox.Job) -> str:
    done = ingest.embed_missing(
        scope_id=job.scope,
        first=job.number("first"),
        last=job.number("last"),
        episodes=job.word("of") == ingest.EPISODES,
    )
    return f"{done} vectors" if done else outbox.ALREADY_DONE


@shared_task(ignore_result=True)
def give_keys(scope_id: int) -> str:
    """Ask a model for the keys that one scope's observations lack. Nothing sends it by itself: a person does."""
    return outbox.perform(task=ingest.GIVE_KEYS, scope_id=scope_id, key="after 0", payload={"after": 0})


@outbox.handles(ingest.GIVE_KEYS)
def _give_keys(job: outbox.Job) -> str:
    """One group of observations; the next is asked for when there are more, because a job has nine minutes."""
    scope = Scope.objects.get(pk=job.scope)
    report = ingest.give_keys(scope=scope, limit=ingest.AT_ONCE, after=job.number("after"))
    if report.failure in (Answer.NO_MODEL, Answer.DENIED):
        raise outbox.Hopeless(report.not_run)
    if report.failure is not None:  # the budget of the day, an outage: what was given stays
        raise outbox.NotYet(report.not_run)
    if report.left:
        ingest.keys_later(scope=scope, after=report.last)
    return f"{report.given} keys for {report.asked} observations" if report.asked else outbox.ALREADY_DONE


# --- reading turns --------------------------------------------------------------------------------------------------


class TurnsUnread(Exception):
    """The turns of a scope could not be read to the end; what was stored stays, and the rest is tried again."""


@shared_task(ignore_result=True)
def observe_due() -> str:
    """Ask a worker to read the scopes that are read in the background and in which a turn has waited some minutes.

    Writes no memory and asks no model. Turns that came in fewer than a scope waits for are read by this.
    """
    asked = ingest.queue_due(older_than_seconds=WAITED_SECONDS)
    return f"{asked} scopes" if asked is not None else "no model"


@outbox.handles(ingest.EXTRACT)
def _extract(job: outbox.Job) -> str:
    """Some minutes of reading; the row is due again at once while turns are left, because a job has nine minutes."""
    report = ingest.run_taken(
        scope=Scope.objects.get(pk=job.scope),
        trigger=job.word("trigger") or IntakeRun.Trigger.TURNS,
        by=job.word("by") or "intake",
        seconds=ingest.SECONDS,
    )
    if report.failure is Answer.NO_MODEL:
        raise outbox.Hopeless(report.not_run)
    if report.failure is not None:  # the budget of the day, an outage: nothing was lost, the turns wait
        raise outbox.NotYet(report.not_run)
    if report.state in (ingest.Ran.FAILED, ingest.Ran.TAKEN_OVER):
        raise TurnsUnread
    if report.left:
        raise outbox.Again
    return f"{report.added} claims added of {report.turns} turns" if report.turns else outbox.ALREADY_DONE
