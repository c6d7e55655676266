"""What the background made of turns, as values: runs, what became of each claim, answers that could not be used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Count
from django.db.models.functions import Left

from consolidation.admin.reading import Chip
from consolidation.admin.telling import status_chip
from consolidation.admin.texts import AROUND, SNIPPET, Text, marked, snippet, spoken, told, when, whole
from consolidation.models import Operation
from consolidation.operations import ep, obs, visible
from observations import ingest
from observations.models import Extraction, IntakeItem, IntakeRun, Observation, UnusableAnswer
from observations.records import PIPELINE, Status

ANSWERS: Final = 20  # unusable answers that a run's page shows
TURNS: Final = 50  # turns of them
_STATES: Final = {
    IntakeRun.State.RUNNING: Chip("running", "auto"),
    IntakeRun.State.DONE: Chip("done", "done"),
    IntakeRun.State.FAILED: Chip("failed", "bad"),
    IntakeRun.State.INTERRUPTED: Chip("interrupted", "warn"),
}
_STALE: Final = Chip("stale", "warn")  # open, and nobody works on it
_TRIGGERS: Final = {
    IntakeRun.Trigger.TURNS: "enough turns had come",
    IntakeRun.Trigger.SCHEDULE: "by schedule",
    IntakeRun.Trigger.HAND: "by hand",
}
VERDICTS: Final = {
    IntakeItem.Verdict.ADD: Chip("added", "done"),
    IntakeItem.Verdict.UPDATE: Chip("updated", "go"),
    IntakeItem.Verdict.DELETE: Chip("replaced", "go"),
    IntakeItem.Verdict.NOOP: Chip("known", "quiet"),
    IntakeItem.Verdict.REFUSED: Chip("refused", "no"),
    IntakeItem.Verdict.REVIEW: Chip("for review", "wait"),
    IntakeItem.Verdict.HELD: Chip("held back", "warn"),
}
# What a claim whose verdict was not believed came to: it is kept, and compared again by the planner.
_ADDED_ALL_THE_SAME: Final = Chip("added, verdict refused", "warn")
FOUND: Final = {
    Extraction.State.CLAIMS: "with claims",
    Extraction.State.NOTHING: "nothing to remember",
    Extraction.State.UNUSABLE: "answer unusable",
    Extraction.State.PASSED: "not sent to the model",
}


# --- runs -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """One run in a list. Its figures are written at its end, so a run that was interrupted has none."""

    pk: int
    scope: str
    scope_id: int
    trigger: str
    state: Chip
    error: str  # why not all was done that should have been; empty: all was
    failed: bool
    started: str
    finished: str
    by: str  # the person who asked for it; empty: nobody did
    counted: bool
    turns: int
    claims: int
    added: int
    updated: int
    known: int
    refused: int
    review: int
    held: int
    unusable: int


def read_runs(rows: Sequence[IntakeRun]) -> list[Run]:
    """Runs whose scopes were selected with them. No query, two where one of them is open."""
    gone = ingest.without_life(runs=rows)
    return [_run(row, gone.get(row.pk)) for row in rows]


def _run(row: IntakeRun, gone: datetime | None) -> Run:
    figures = {name: value for name, value in row.figures.items() if isinstance(value, int)}

    def figure(*names: str) -> int:
        return sum(figures.get(name, 0) for name in names)

    return Run(
        pk=row.pk,
        scope=visible(row.scope.name),
        scope_id=row.scope_id,
        trigger=_TRIGGERS.get(IntakeRun.Trigger(row.trigger), visible(row.trigger)),
        state=_STALE if gone else state_of(row),
        error=told("no sign of life since {}; the next run goes on", when(gone)) if gone else visible(row.error),
        failed=row.state == IntakeRun.State.FAILED,
        started=when(row.started_at),
        finished=when(row.finished_at),
        by="" if row.by == PIPELINE else visible(row.by),
        counted=row.state in (IntakeRun.State.DONE, IntakeRun.State.FAILED),
        turns=figure("turns"),
        claims=figure("added", "known", "updated", "replaced", "refused", "review", "held"),
        added=figure("added"),
        updated=figure("updated", "replaced"),
        known=figure("known"),
        refused=figure("refused"),
        review=figure("review"),
        held=figure("held"),
        unusable=figure("unusable"),
    )


def state_of(row: IntakeRun) -> Chip:
    """How a run stands or ended. No query."""
    return _STATES.get(IntakeRun.State(row.state)) or Chip(visible(row.state), "quiet")


# --- claims ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Beside:
    """A row that a claim was compared with, concerns or is kept in."""

    pk: int
    name: str
    text: str
    status: Chip


@dataclass(frozen=True, slots=True)
class Considered:
    """One claim and what became of it."""

    pk: int
    run: int
    verdict: Chip
    text: Text | None  # None: it held a secret and is not kept
    erased: bool  # with the turn it was read in
    episode: int | None
    episode_name: str
    told: str  # who said it, and when
    quote: Text | None  # the words of the turn it rests on, marked
    reason: str  # ours
    said: Text | None  # the model's own reason
    target: Beside | None
    result: Beside | None
    offered: tuple[Beside, ...]
    operation: int | None  # the question that a person decides
    at: str
    takeable: int | None  # the current row that took another's place, which a person may take back


def read_items(items: Sequence[IntakeItem]) -> tuple[Considered, ...]:
    """Claims of one scope, whose episodes were selected with them. Two queries."""
    rows = _rows(items)
    asked = _asked(items)
    return tuple(_considered(item, rows, asked.get(item.pk)) for item in items)


def _rows(items: Sequence[IntakeItem]) -> Mapping[int, Beside]:
    """Every row that the claims name, without whole texts. One query."""
    ids = {pk for item in items for pk in (item.target_id, item.observation_id, *item.offered) if pk}
    found = Observation.objects.filter(scope_id__in={item.scope_id for item in items}, pk__in=ids)
    values = found.annotate(start=Left("text", SNIPPET + 1)).values_list("pk", "start", "status")
    return {pk: Beside(pk, obs(pk), snippet(start), status_chip(status)) for pk, start, status in values}


def _asked(items: Sequence[IntakeItem]) -> Mapping[int, int]:
    """The questions that claims put to a person, by the claim. One query."""
    waits = {f"asked intake {item.pk}": item.pk for item in items if item.verdict == IntakeItem.Verdict.REVIEW}
    targets = {item.target_id for item in items if item.verdict == IntakeItem.Verdict.REVIEW}
    found = Operation.objects.filter(
        scope_id__in={item.scope_id for item in items},
        sources__observation__in=targets,
        product__discriminator__in=list(waits),
    ).values_list("pk", "product__discriminator")
    return {waits[discriminator]: pk for pk, discriminator in found if discriminator in waits}


def _considered(item: IntakeItem, rows: Mapping[int, Beside], operation: int | None) -> Considered:
    turn = item.episode
    quoted = turn is not None and item.quote_start is not None and item.quote_end is not None
    erased = turn is not None and turn.status == Status.ERASED
    return Considered(
        pk=item.pk,
        run=item.run_id,
        verdict=verdict_of(item),
        text=whole(item.text) if item.text else None,
        erased=erased,
        episode=item.episode_id,
        episode_name=ep(item.episode_id) if item.episode_id else "",
        told=spoken(turn.speaker or turn.role, turn.happened_at) if turn else "",
        quote=marked(turn.text, [(item.quote_start or 0, item.quote_end or 0)], around=AROUND)
        if turn and quoted
        else None,
        reason=visible(item.reason),
        said=whole(item.said) if item.said else None,
        target=rows.get(item.target_id or 0),
        result=rows.get(item.observation_id or 0),
        offered=tuple(rows[pk] for pk in item.offered if pk in rows),
        operation=operation,
        at=when(item.at),
        takeable=item.observation_id if _is_takeable(item, rows) else None,
    )


def _is_takeable(item: IntakeItem, rows: Mapping[int, Beside]) -> bool:
    """Whether a claim stands where another row stood."""
    result = rows.get(item.observation_id or 0)
    replaced = item.verdict in (IntakeItem.Verdict.UPDATE, IntakeItem.Verdict.DELETE) and item.target_id is not None
    return replaced and result is not None and result.status.word == Status.ACTIVE


def verdict_of(item: IntakeItem) -> Chip:
    """What became of a claim, in a word. No query."""
    if item.verdict == IntakeItem.Verdict.REFUSED and item.observation_id:
        return _ADDED_ALL_THE_SAME
    return VERDICTS.get(IntakeItem.Verdict(item.verdict)) or Chip(visible(item.verdict), "quiet")


# --- answers that could not be used ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a model, as it came."""

    purpose: str
    reason: str  # ours
    reply: Text | None  # None: none came, or it went with a turn that was erased
    episodes: tuple[tuple[int, str], ...]
    more: int  # turns that are not named
    asked: str  # model, prompt and time


@dataclass(frozen=True, slots=True)
class Unread:
    """One turn whose answer could not be used."""

    pk: int
    name: str
    text: str
    attempts: int
    given_up: bool


def answers_of(run: IntakeRun) -> tuple[Answer, ...]:
    """The unusable answers of a run, the newest first, ANSWERS at most. One query."""
    rows = UnusableAnswer.objects.filter(scope_id=run.scope_id, run=run).order_by("-pk")[:ANSWERS]
    return tuple(_answer(row) for row in rows)


def _answer(row: UnusableAnswer) -> Answer:
    return Answer(
        purpose="reading turns" if row.purpose == UnusableAnswer.Purpose.EXTRACT else "comparing claims",
        reason=visible(row.reason),
        reply=whole(row.reply) if row.reply else None,
        episodes=tuple((pk, ep(pk)) for pk in row.episode_ids[:TURNS]),
        more=max(0, len(row.episode_ids) - TURNS),
        asked=told("{}, prompt {}, {}", visible(row.model), visible(row.prompt_version), when(row.at)),
    )


def unread_of(extractions: Iterable[Extraction]) -> tuple[Unread, ...]:
    """Turns whose answer could not be used; `start`, the beginning of each text, was read with them. No query."""
    return tuple(
        Unread(
            pk=row.episode_id,
            name=ep(row.episode_id),
            text=snippet(getattr(row, "start", None)),
            attempts=row.attempts,
            given_up=ingest.given_up(row.attempts),
        )
        for row in extractions
    )


def unusable_turns(*, scope_id: int, run: IntakeRun | None = None) -> tuple[Unread, ...]:
    """The turns of a scope, or of one run, whose last answer could not be used, TURNS at most. One query."""
    found = Extraction.objects.filter(scope_id=scope_id, state=Extraction.State.UNUSABLE)
    found = found.filter(run=run) if run is not None else found
    return unread_of(found.annotate(start=Left("episode__text", SNIPPET + 1)).order_by("-attempts", "pk")[:TURNS])


def turns_of(run: IntakeRun) -> tuple[tuple[str, int], ...]:
    """What reading brought, in words, and of how many turns; those that a later run read again count there. One
    query.
    """
    rows = Extraction.objects.filter(scope_id=run.scope_id, run=run).values_list("state").annotate(n=Count("pk"))
    counted = dict(rows.order_by())
    return tuple((words, counted[state]) for state, words in FOUND.items() if state in counted)
