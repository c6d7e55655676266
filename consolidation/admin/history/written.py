"""How a row came to be written, and how it gave way: the call or the turns behind it, the cause, who, when, on what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Q

from consolidation.admin.intake.reading import Considered, read_items
from consolidation.admin.texts import snippet, when
from consolidation.operations import ep, visible
from observations.models import Event, IntakeItem, Observation, Transition
from observations.records import WrittenBy

CALLS: Final = 20  # deliberate calls shown
ITEMS: Final = 10  # claims of turns shown
_VIA: Final = {
    WrittenBy.BACKGROUND: "read from turns in the background",
    WrittenBy.DELIBERATE: "by a deliberate call",
    WrittenBy.IMPORT: "by an import",
    WrittenBy.CONSOLIDATION: "by an operation that was applied",
}
_CALLS: Final = {
    "remembered": "wrote it",
    "corrected": "wrote it in another row’s place",
    "supported": "said it again, with evidence",
}
_EVIDENCE: Final = {
    IntakeItem.Verdict.UPDATE: "the new row took over its evidence",
    IntakeItem.Verdict.DELETE: "the new row’s evidence starts fresh",
}


@dataclass(frozen=True, slots=True)
class Call:
    """One deliberate call that wrote or supported a row."""

    what: str
    who: str
    at: str


@dataclass(frozen=True, slots=True)
class Written:
    """How a row was written."""

    via: str
    calls: tuple[Call, ...]
    claims: tuple[Considered, ...]


def how_written(row: Observation) -> Written:
    """Four queries, whatever its past."""
    said = Event.objects.filter(scope_id=row.scope_id, subject=f"obs_{row.pk}", action__in=list(_CALLS))
    items = IntakeItem.objects.filter(scope_id=row.scope_id, observation=row).select_related("episode")
    return Written(
        via=_VIA.get(WrittenBy(row.written_by), visible(row.written_by)),
        calls=tuple(Call(_CALLS[one.action], visible(one.actor), when(one.at)) for one in said.order_by("pk")[:CALLS]),
        claims=read_items(list(items.order_by("pk")[:ITEMS])),
    )


@dataclass(frozen=True, slots=True)
class GaveWay:
    """How one version gave way to the next."""

    at: str
    iso: str
    cause: str  # of the database's own journal
    operation: str  # which it names; empty: none
    run: int | None  # the run of the background that did it
    episode: int | None
    episode_name: str
    quote: str  # the words of the turn it rests on
    evidence: str


def gave_way(*, scope_id: int, steps: Mapping[int, int]) -> dict[int, GaveWay]:
    """How each row of a chain gave way to its successor, by the older row. Two queries."""
    moved = _moved(scope_id, steps)
    items = _items(scope_id, steps)
    return {pk: _gave_way(move, items.get(pk)) for pk, move in moved.items()}


def _moved(scope_id: int, steps: Mapping[int, int]) -> dict[int, Transition]:
    found = Transition.objects.filter(scope_id=scope_id, observation__in=list(steps)).order_by("pk")
    wanted = {(pk, successor) for pk, successor in steps.items()}
    return {
        move.observation_id: move
        for move in found.filter(superseded_by_id__in=list(steps.values()))
        if move.observation_id is not None and (move.observation_id, move.superseded_by_id) in wanted
    }


def _items(scope_id: int, steps: Mapping[int, int]) -> dict[int, IntakeItem]:
    found = IntakeItem.objects.filter(scope_id=scope_id, verdict__in=list(_EVIDENCE), target__in=list(steps))
    rows: Sequence[IntakeItem] = list(found.filter(~Q(observation=None)).select_related("episode").order_by("pk"))
    return {row.target_id: row for row in rows if row.target_id and steps.get(row.target_id) == row.observation_id}


def _gave_way(move: Transition, item: IntakeItem | None) -> GaveWay:
    last = move.cause.rpartition(" ")[2]
    turn = item.episode if item else None
    quoted = turn and turn.text and item and item.quote_start is not None
    text = turn.text[item.quote_start : item.quote_end] if quoted and turn and turn.text and item else None
    return GaveWay(
        at=when(move.at),
        iso=move.at.isoformat(),
        cause=visible(move.cause),
        operation=visible(last) if last.startswith("op_") else "",
        run=item.run_id if item else None,
        episode=item.episode_id if item else None,
        episode_name=ep(item.episode_id) if item and item.episode_id else "",
        quote=snippet(text) if turn else "",
        evidence=_EVIDENCE.get(IntakeItem.Verdict(item.verdict), "") if item else "",
    )
