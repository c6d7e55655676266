"""Races: many schedules of a few actors, each schedule in a scope of its own, several at once on backends of their own.

A schedule's actors start together and dawdle at every statement, as drawn from its seed; other schedules beside it only
add to the disorder, because nothing crosses a scope.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from django.db import connection, connections, transaction

from consolidation import review, runner
from consolidation.models import Operation
from consolidation.operations import Approval, Json, Kind
from observations import store
from observations.models import Episode, Observation, Scope
from observations.records import Claim, EvidenceRef, Turn, WrittenBy
from tests.acceptance import world
from tests.acceptance.actors import PAUSES
from tests.acceptance.boundaries import Side, watched
from tests.building import LONG_AGO, embed, propose, scope, seconded

Action = Callable[[], object]
LANES = 4  # schedules that run at once


def race(schedules: Sequence[Sequence[Action]]) -> list[list[object]]:
    """Run every schedule, its actions at once, and return their results in order; what an action raised is its result.

    The number of a schedule is its seed. Every actor has a backend of its own, which is asserted.
    """
    actors = len(schedules[0])
    results: list[list[object]] = [[None] * actors for _ in schedules]
    starts = [threading.Barrier(actors) for _ in range(LANES)]
    draws: dict[threading.Thread, random.Random] = {}
    backends: list[int] = []

    def dawdle(statement: str, side: Side) -> None:
        mine = draws.get(threading.current_thread())
        if mine is not None and side == "before":  # nothing happens between after one statement and before the next
            time.sleep(mine.choice(PAUSES))

    def act(lane: int, number: int) -> None:
        try:
            backends.append(_backend())
            for seed in range(lane, len(schedules), LANES):
                starts[lane].wait(timeout=60)
                draws[threading.current_thread()] = random.Random(f"{seed}/{number}")
                results[seed][number] = _outcome(schedules[seed][number])
                del draws[threading.current_thread()]
        finally:
            connections["default"].close()

    threads = [threading.Thread(target=act, args=(lane, actor)) for lane in range(LANES) for actor in range(actors)]
    with watched(dawdle):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=120)
    assert len(set(backends)) == len(threads), "each actor needs a backend of its own"
    return results


def _outcome(action: Action) -> object:
    try:
        return action()
    except Exception as error:
        return error


def _backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        row = cursor.fetchone()
    assert row is not None
    return int(row[0])


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an actor that is no applier came to, in words."""

    outcome: str


def said(result: object) -> str:
    """The outcome of an attempt, or what it raised, as a word."""
    return str(result.outcome) if isinstance(result, runner.Result | Outcome) else repr(result)


# --- worlds, each in a scope of its own -----------------------------------------------------------------------------

KEY = ("relay", "sits in", "rack 4")
TEXTS = (
    "The relay sits in rack 4",
    "the relay sits in rack four",
    "The relay sits in rack 4.",
    "Relay: sits in rack 4",
)


def arena(seed: int) -> Scope:
    """The scope of one schedule."""
    return scope(f"race/{seed}")


def rows(within: Scope, *said_of: tuple[str, tuple[str, str, str]]) -> list[Observation]:
    """These texts with their keys as current rows with vectors; without any, three that say the same."""
    wanted = said_of or [(text, KEY) for text in TEXTS[:3]]
    claims = [
        Claim(
            text=text,
            external_id=f"r{number}",
            subject=key[0],
            predicate=key[1],
            object=key[2],
            created_at=LONG_AGO + timedelta(days=number),
            evidence=(EvidenceRef(f"s://{number}"),),
        )
        for number, (text, key) in enumerate(wanted)
    ]
    with transaction.atomic():
        written = store.add_observations(scope=within, claims=claims, written_by=WrittenBy.BACKGROUND)
    ids = [one.id for one in written if one.id is not None]
    embed(ids, within=within)
    return list(Observation.objects.filter(pk__in=ids).order_by("pk"))


def turns(within: Scope, count: int = 3) -> list[Episode]:
    """Episodes of different sources that say nearly the same."""
    with transaction.atomic():
        store.add_episodes(
            scope=within,
            turns=[
                Turn(
                    text=f"Day {number}: the relay in rack 4 was restarted",
                    external_id=f"e{number}",
                    seq=number,
                    happened_at=LONG_AGO + timedelta(days=number),
                    source_uri=f"t://{number}",
                )
                for number in range(count)
            ],
        )
    return list(Episode.objects.filter(scope=within).order_by("pk"))


def promotion(episodes: Sequence[Episode], name: str = "d.0") -> Operation:
    """A fact that some episodes agree on; another name, another fact."""
    support: list[Json] = [[turn.pk, 7, 26] for turn in episodes]
    product: dict[str, Json] = {"discriminator": name, "support": support, "confidence": 0.6}
    return propose(Kind.PROMOTE, list(episodes), product=product, text=f"The relay is restarted ({name})", key=KEY)


def compaction(episodes: Sequence[Episode]) -> Operation:
    """A summary of some episodes."""
    return propose(Kind.COMPACT, list(episodes), text="The relay in rack 4 was restarted again and again.")


def approved(operation: Operation, decision: review.Decision | None = None) -> Operation:
    """The same, decided by a person."""
    return seconded(review.approve(operation=operation, by="reviewer", decision=decision, reason="looked"))


def alias(within: Scope, subject: str, name: str) -> Operation:
    """An approved alias of two subjects that the scope has rows about."""
    about = list(Observation.objects.filter(scope=within, subject__in=(subject, name)).order_by("pk"))
    product: dict[str, Json] = {"discriminator": f"{subject}>{name}"}
    key = (subject, "is", name)
    return approved(propose(Kind.ALIAS, about, approval=Approval.NEEDS_HUMAN, key=key, product=product))


def applied(operation: Operation) -> Operation:
    """The same, carried out."""
    assert said(world.apply(operation.pk)) == "applied"
    operation.refresh_from_db()
    return operation


def applying(operation: Operation) -> Action:
    """To apply it, as a worker does."""
    return partial(world.apply, operation.pk)


def undoing(operation: Operation) -> Action:
    """To undo it, as an operator does."""
    return partial(world.undo, operation.pk)
