"""What the background pipeline keeps of its own work: which turns it read, what became of each claim, bad answers.

The cursor is a row per turn that was read, written in the transaction that stores what came of it: a turn without a row
has not been read, whatever crashed or committed late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import connection

from observations.models import Extraction, IntakeItem, IntakeRun, UnusableAnswer
from observations.normalise import clean

MAX_READINGS: Final = 3  # answers that could not be used, after which a turn is not asked about any more
_LONGEST_REPLY: Final = 100_000  # characters of an unusable answer that are kept


class TurnsMoved(Exception):
    """Some of the turns were read by another run meanwhile, or are not current any more: nothing was stored."""


class RunTakenOver(Exception):
    """Another run has taken over from this one, which was taken for dead: nothing was stored."""


def hold_run(*, run: IntakeRun) -> None:
    """Keep the next run from starting until this transaction ends. Raises RunTakenOver when it has started. One query.

    A worker that lost its lease while a model answered comes here late: whoever took the work over has said so in its
    row, and nothing is stored twice.
    """
    states = IntakeRun.objects.select_for_update().filter(pk=run.pk).values_list("state", flat=True)
    if list(states) != [IntakeRun.State.RUNNING]:
        raise RunTakenOver


# A turn that was settled before is not opened again, and one that was erased or archived meanwhile is not read.
_TAKE = f"""
INSERT INTO observations_extraction AS x (scope_id, episode_id, run_id, state, attempts, at)
SELECT e.scope_id, e.id, %(run)s, n.state, 1, clock_timestamp()
FROM unnest(%(ids)s::bigint[], %(states)s::text[]) AS n (id, state)
JOIN observations_episode e ON e.id = n.id AND e.scope_id = %(scope)s AND e.status = 'active'
ORDER BY e.id
ON CONFLICT (scope_id, episode_id) DO UPDATE
SET run_id = excluded.run_id, state = excluded.state, attempts = x.attempts + 1, at = excluded.at
WHERE x.state = 'unusable' AND x.attempts < {MAX_READINGS}
RETURNING x.episode_id
"""  # noqa: S608  the only figure put in is a constant of this module


def take_turns(*, run: IntakeRun, states: Mapping[int, Extraction.State]) -> None:
    """Note what reading turns brought, by episode id; the same turn is never settled twice. One query.

    Raises TurnsMoved unless all of them were still unread, so that the caller's transaction stores all or nothing.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _TAKE,
            {
                "run": run.pk,
                "scope": run.scope_id,
                "ids": list(states),
                "states": [str(state) for state in states.values()],
            },
        )
        taken = cursor.fetchall()
    if len(taken) != len(states):
        raise TurnsMoved


_OPEN_AGAIN: Final = f"""
UPDATE observations_extraction x SET attempts = 0
FROM observations_episode e, observations_intake i
WHERE x.scope_id = %s AND x.state = 'unusable' AND x.attempts >= {MAX_READINGS}
  AND e.scope_id = x.scope_id AND e.id = x.episode_id AND e.status = 'active'
  AND i.scope_id = x.scope_id AND e.recorded_at >= i.since
"""  # noqa: S608  the only figure put in is a constant of this module


def open_again(*, scope_id: int) -> int:
    """Have the turns wait again that were given up for want of a usable answer; how many. One query.

    What was read stays read, and so does what is out of the reads or from before the scope was enabled.
    """
    with connection.cursor() as cursor:
        cursor.execute(_OPEN_AGAIN, [scope_id])
        opened: int = cursor.rowcount
        return opened


@dataclass(frozen=True, slots=True)
class Considered:
    """What became of one claim."""

    verdict: IntakeItem.Verdict
    episode: int | None
    text: str = ""  # "" where it holds a secret
    quote: tuple[int, int] | None = None
    reason: str = ""  # ours, with ids and labels
    said: str = ""  # the model's own reason
    offered: tuple[int, ...] = ()
    target: int | None = None
    observation: int | None = None


def add_items(*, run: IntakeRun, considered: Sequence[Considered]) -> list[int]:
    """Keep what became of some claims; returns their ids in order. One query."""
    rows = [
        IntakeItem(
            scope_id=run.scope_id,
            run=run,
            episode_id=each.episode,
            text=clean(each.text)[0],
            quote_start=each.quote[0] if each.quote else None,
            quote_end=each.quote[1] if each.quote else None,
            verdict=each.verdict,
            reason=each.reason[:200],
            said=clean(each.said)[0],
            offered=list(each.offered),
            target_id=each.target,
            observation_id=each.observation,
        )
        for each in considered
    ]
    return [row.pk for row in IntakeItem.objects.bulk_create(rows)]


def add_unusable(
    *,
    run: IntakeRun,
    purpose: UnusableAnswer.Purpose,
    episodes: Sequence[int],
    reply: str,
    reason: str,
    model: str,
    prompt_version: str,
) -> None:
    """Keep an answer that could not be used, as it came, for whoever wants to know why. One query."""
    UnusableAnswer.objects.create(
        scope_id=run.scope_id,
        run=run,
        purpose=purpose,
        episode_ids=list(episodes),
        reply=clean(reply)[0][:_LONGEST_REPLY],
        reason=reason[:200],
        model=model[:80],
        prompt_version=prompt_version[:20],
    )
