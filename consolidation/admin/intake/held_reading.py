"""What is held back, as values: the claim, the turn with the quoted words marked, why it is doubted, since when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from consolidation.admin.texts import AROUND, Text, marked, snippet, spoken, when, whole
from consolidation.operations import ep, obs, visible
from observations.extraction import HOLDABLE
from observations.models import Evidence, IntakeItem, Observation

REASONS: Final = {refusal.name.lower(): refusal.value for refusal in HOLDABLE}  # a filter's value -> our sentence
IMPORTED: Final = "from_an_import"
_NO_RUN: Final = "no run of this store doubted it: it was held back when it was imported"


@dataclass(frozen=True, slots=True)
class Turn:
    """The words it rests on."""

    episode: int | None  # None: the source is no episode of this store
    name: str
    told: str  # who said it, and when
    words: Text | None
    more: int  # further pieces of evidence


@dataclass(frozen=True, slots=True)
class Row:
    """One claim that is held back."""

    pk: int
    name: str
    scope: str
    text: Text
    why: str
    run: int | None
    turn: Turn | None
    since: str
    age: str
    stated_by: str
    current: int | None  # a row in the reads that says the same by now


def read_held(rows: Sequence[Observation], *, now: datetime) -> list[Row]:
    """Rows of `held.waiting` whose scopes were selected with them. Three queries, however many."""
    ids = [row.pk for row in rows]
    evidence: dict[int, list[Evidence]] = {}
    for one in Evidence.objects.filter(observation__in=ids).select_related("episode").order_by("pk"):
        evidence.setdefault(one.observation_id, []).append(one)
    items = IntakeItem.objects.filter(observation__in=ids, verdict=IntakeItem.Verdict.HELD).order_by("pk")
    runs = {pk: run for pk, run in items.values_list("observation_id", "run_id") if pk is not None}
    same = _current(rows)
    return [_row(row, evidence.get(row.pk, []), runs, same, now) for row in rows]


def _current(rows: Sequence[Observation]) -> Mapping[tuple[int, int], int]:
    """Rows in the reads with the words of one that is held back, by scope and text. One query."""
    found = Observation.objects.active().filter(
        scope__in={row.scope_id for row in rows}, text_key__in=[row.text_key for row in rows]
    )
    return {(scope, key): pk for scope, key, pk in found.values_list("scope_id", "text_key", "pk")}


def _row(
    row: Observation,
    evidence: Sequence[Evidence],
    runs: Mapping[int, int],
    same: Mapping[tuple[int, int], int],
    now: datetime,
) -> Row:
    doubt: str | None = getattr(row, "doubt", None)
    return Row(
        pk=row.pk,
        name=obs(row.pk),
        scope=visible(row.scope.name),
        text=whole(row.text),
        why=visible(doubt) if doubt else _NO_RUN,
        run=runs.get(row.pk),
        turn=_turn(evidence[0], more=len(evidence) - 1) if evidence else None,
        since=when(row.recorded_at),
        age=_age(now, row.recorded_at),
        stated_by=visible(row.stated_by),
        current=same.get((row.scope_id, row.text_key)),
    )


def _turn(one: Evidence, *, more: int) -> Turn:
    turn = one.episode
    if turn is None:
        return Turn(None, snippet(one.source_uri), "", whole(one.quote) if one.quote else None, more)
    start = one.quote_start or 0
    spans = [(start, start + len(one.quote))] if one.quote else []
    told = spoken(turn.speaker or turn.role, turn.happened_at)
    return Turn(turn.pk, ep(turn.pk), told, marked(turn.text, spans, around=AROUND), more)


def _age(now: datetime, since: datetime) -> str:
    days = (now - since).days
    return "today" if days < 1 else f"{days} day{'s' if days > 1 else ''}"
