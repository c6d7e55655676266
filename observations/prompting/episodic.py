"""Episodic context: what was said and summarised before that has to do with a query, selected before it is shown (R3).

Turns contradict each other and nothing marks which still holds, so none is handed out as it was found. A small model
selects, or the rule does; either way what is shown are the store's own words, each claim once, and the marks of the
rule stand whatever the model says (R2, R4-R7).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from django.conf import settings

from observations import answers, selecting
from observations.choosing import Offered, Picked
from observations.embedding import Embedder
from observations.fencing import plain
from observations.models import Episode, Observation, Scope, database_now
from observations.normalise import key64, normalised
from observations.prompting import observed, recalling
from observations.prompting.asking import pick
from observations.prompting.labels import OUTDATED, label, span
from observations.prompting.recalling import Store
from observations.prompting.sections import Line, turn_text
from observations.records import StatedBy
from observations.retrieval import CALL_SITES, Trust
from observations.selecting import Candidate

_TOOL: Final = "tool"  # the role of turns that outdate nothing that somebody said


@dataclass(frozen=True, slots=True)
class Asked:
    """What episodes are looked for, and for whom."""

    scope: Scope
    query: str
    goals: str = ""
    k: int = CALL_SITES["context"]
    as_of: datetime | None = None
    embedder: Embedder | None = None
    hidden: Collection[int] = ()  # turns that the prompt shows already, by their own ids
    started: float = field(default_factory=time.monotonic)  # when whoever waits began to wait

    @property
    def ends(self) -> float:
        """Until when a model may take."""
        return self.started + float(settings.PALIMPSEST_SELECT_SECONDS)


@dataclass(frozen=True, slots=True)
class Episodic:
    """What is shown; ids as in answers. Not `complete` when a part of the search failed."""

    lines: tuple[Line, ...] = ()
    left_out: tuple[int, ...] = ()
    chosen_by: str = ""  # the model; "": the rule
    complete: bool = True


def select(asked: Asked) -> Episodic:
    """The turns and summaries that are shown, newest of what says the same, what is outdated last and marked. Nothing
    where nothing is relevant (R7), and then no model is asked. Raises django.db.Error. About fourteen queries.
    """
    store = Store(asked.scope, asked.as_of)
    query = asked.query.strip() or asked.goals
    hits, complete = recalling.recall(store=store, query=query, k=asked.k + len(asked.hidden), embedder=asked.embedder)
    hits = [hit for hit in hits if hit.id >= 0 or -hit.id not in asked.hidden][: asked.k]
    relevant = [hit.id for hit in hits if hit.relevant]
    if not relevant:
        return Episodic(left_out=tuple(hit.id for hit in hits), complete=complete)
    now = asked.as_of or database_now()
    entries = _entries(store, relevant)
    by_model = None if asked.as_of else _picked(asked, [entries[pk] for pk in relevant if pk in entries])
    picked, chosen_by = by_model or (Picked(tuple(pk for pk in relevant if pk in entries), frozenset()), "")
    lines = _lines(store, entries, picked, now=now)[: asked.k]
    shown = {line.id for line in lines}
    return Episodic(tuple(lines), tuple(hit.id for hit in hits if hit.id not in shown), chosen_by, complete)


# --- what was found --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Entry:
    """A turn or a summary."""

    id: int  # as in answers
    row: Episode | Observation

    @property
    def said_at(self) -> datetime:
        return self.row.happened_at if isinstance(self.row, Episode) else self.row.created_at

    @property
    def text(self) -> str:
        return turn_text(self.row) if isinstance(self.row, Episode) else plain(self.row.text or "")

    def offered(self) -> Offered:
        row = self.row
        if isinstance(row, Episode):
            return Offered(self.id, row.text or "", row.happened_at, speaker=row.speaker or row.role)
        return Offered(self.id, row.text or "", row.created_at, summary=True)

    def candidate(self, *, relevant: bool) -> Candidate:
        """As the rule sees it: talk that nobody compared. What a tool put out makes nothing old that somebody said."""
        row = self.row
        rank = StatedBy.TOOL if isinstance(row, Episode) and row.role == _TOOL else StatedBy.AGENT
        return Candidate(
            id=self.id,
            text=row.text or "",
            said_at=self.said_at,
            text_key=key64(normalised(row.text or "")),
            rank=rank.rank,
            relevant=relevant,
        )

    def line(self, *, outdated: bool, now: datetime) -> Line:
        mark, passed = f", {OUTDATED}" if outdated else "", span(now - self.said_at)
        trust = label(Trust.HIGH if isinstance(self.row, Episode) else Trust.LOW)
        return Line(self.id, f"- [{trust}, said {passed} ago{mark}] {self.text}", outdated)


def _entries(store: Store, ids: Sequence[int]) -> dict[int, _Entry]:
    """Those of these ids that may be read and say something, in their order. Two queries."""
    turns = store.turns().in_bulk([-pk for pk in ids if pk < 0])
    rows: dict[int, Episode | Observation] = {answers.of_episode(pk): row for pk, row in turns.items()}
    rows |= store.summaries().in_bulk([pk for pk in ids if pk > 0])
    found = {pk: _Entry(pk, rows[pk]) for pk in ids if pk in rows}
    return {pk: entry for pk, entry in found.items() if entry.text}


def _picked(asked: Asked, entries: Sequence[_Entry]) -> tuple[Picked, str] | None:
    return pick(
        goals=asked.goals,
        query=asked.query,
        offered=[entry.offered() for entry in entries],
        scope_id=asked.scope.pk,
        ends=asked.ends,
    )


# --- what is shown ---------------------------------------------------------------------------------------------------


def _lines(store: Store, entries: dict[int, _Entry], picked: Picked, *, now: datetime) -> list[Line]:
    """What was picked, through the rule: said twice is shown once, and what anything newer in the store outdates is
    marked, though whoever picked did not say so.
    """
    order = [*picked.relevant, *(pk for pk in entries if pk not in picked.relevant)]
    candidates = [entries[pk].candidate(relevant=pk in picked.relevant) for pk in order]
    doubts = [selecting.doubtful(each, now=now) for each in candidates if each.relevant]
    others = _entries(store, recalling.beside(store=store, texts=sorted(set(doubts) - {""})))
    beside = [entry.candidate(relevant=False) for pk, entry in others.items() if pk not in entries]
    claims = {} if store.as_of else Observation.objects.active().in_bulk(observed.news(store.scope, doubts))
    known, told = {**others, **entries}, {each.text_key for each in candidates}
    news = [
        replace(observed.candidate(row, False), id=_NO_ENTRY + row.pk, compared=False)  # with claims, never with talk
        for row in claims.values()
        if row.text_key not in told
    ]
    chosen = selecting.chosen([*candidates, *beside, *news], now=now)
    shown = [(known[each.id], each.outdated or each.id in picked.outdated) for each in chosen if each.id in known]
    return [entry.line(outdated=old, now=now) for entry, old in sorted(shown, key=lambda each: each[1])]


_NO_ENTRY: Final = 1 << 62  # above every id: an observation that only tells what is outdated
