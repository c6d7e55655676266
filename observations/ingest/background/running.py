"""Runs: the turns of a scope that nobody has read, batch after batch, each stored before the next is asked about.

A run has a row with its figures. Model and embedder are asked between transactions; a process that dies loses the batch
it was at and nothing else, and the next run says that it was interrupted.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from django.db import Error as DatabaseGone
from django.db import transaction

from observations import extraction, outbox, spending, store
from observations.embedding import Embedder
from observations.extraction import Extracted
from observations.ingest.background.observing import EXTRACT, KEY
from observations.ingest.background.parting import Part, in_parts
from observations.ingest.background.settings import count_unread, just_before, unread
from observations.ingest.background.storing import Batch, store_batch
from observations.ingest.background.weighing import Bad, weigh
from observations.llm import Answer, Completer, ModelFailed, NoMessage, Reply, Unusable
from observations.models import ClockTimestamp, Episode, Event, Extraction, Intake, IntakeRun, Scope, UnusableAnswer
from observations.records import EpisodeRecord
from observations.retrieval import current_embedder

log = logging.getLogger(__name__)

WINDOW: Final = 200  # turns whose texts are read at once
SECONDS: Final = 300.0  # after which a worker leaves the rest to its next job; a job has nine minutes
# Turns whose answer could not be used are asked about in smaller company, so that one cannot spoil the others for good.
_TOGETHER: Final = {0: extraction.MAX_TURNS, 1: 5, 2: 1}  # attempts -> turns of one question
# Failures that say something about these turns. After any other the model is not asked any more.
_OF_THE_TURNS: Final = frozenset({Answer.REFUSED, Answer.CUT_OFF, Answer.UNUSABLE})
_BLIND: Final = "The embedder failed: some claims were compared with what is stored by their words alone."
_MOST_MOVED: Final = 5  # batches in one run whose turns somebody else read meanwhile


class Ran(StrEnum):
    """How a run ended."""

    DONE = "done"
    FAILED = "failed"  # what was stored before stays; the rest waits
    NOTHING = "nothing to do"
    RUNNING = "already running"
    OFF = "off"
    TAKEN_OVER = "interrupted"  # another run took this one for dead and goes on


@dataclass(frozen=True, slots=True)
class RunReport:
    """What came of a run. claims = added + known + updated + replaced + refused + review + held; `flagged` are among
    them.
    """

    state: Ran
    run: int | None = None
    turns: int = 0  # read, whatever was found in them
    batches: int = 0
    passed: int = 0  # turns that were not sent: nothing to read in them
    unusable: int = 0  # turns whose answer could not be used; asked about again, up to three times in all
    claims: int = 0
    added: int = 0
    known: int = 0  # stored already; new evidence attached
    updated: int = 0  # took a row's place and its evidence
    replaced: int = 0  # took a row's place, evidence fresh
    refused: int = 0  # not believed
    held: int = 0  # doubted: stored where nothing reads them, until a person looks
    review: int = 0  # stored, and a person decides what becomes of the row it concerns
    flagged: int = 0  # stored without being reconciled; the planner looks at them
    left: int = 0  # turns that still wait
    not_run: str = ""  # why not all was done that should have been; one sentence
    failure: Answer | None = None  # the same as a word, where the model failed


def run_intake(
    *,
    scope: Scope,
    trigger: str = IntakeRun.Trigger.HAND,
    by: str,
    completer: Completer | None = None,
    embedder: Embedder | None = None,
    limit: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> RunReport:
    """Read the turns of a scope that wait, oldest first, and store what they say; one process at a time (C17).

    `completer` None is the configured model. `limit` bounds the turns; `progress` is told how many were handled. A
    model that fails is in the report; raises django.db.Error when the database does. Not to be called in a transaction.
    """
    payload = {"trigger": str(trigger)}
    with outbox.taken(task=EXTRACT, scope_id=scope.pk, key=KEY, payload=payload) as job:
        if job is None:
            return RunReport(Ran.RUNNING, not_run="Another process reads this scope's turns; wait until it has ended.")
        return run_taken(
            scope=scope,
            trigger=trigger,
            by=by,
            completer=completer,
            embedder=embedder,
            limit=limit,
            progress=progress,
        )


def run_taken(
    *,
    scope: Scope,
    trigger: str,
    by: str,
    completer: Completer | None = None,
    embedder: Embedder | None = None,
    limit: int | None = None,
    seconds: float | None = None,
    progress: Callable[[int], object] | None = None,
) -> RunReport:
    """The same for who holds the scope's outbox row already: a worker. After `seconds` no further batch is begun."""
    _close_dead(scope)
    intake = Intake.objects.filter(scope=scope, enabled=True).first()
    if intake is None:
        return RunReport(Ran.OFF, not_run="This scope's turns are not read in the background; enable that first.")
    if not count_unread(scope_id=scope.pk, since=intake.since):
        return RunReport(Ran.NOTHING)
    run = _Run(
        scope=scope,
        intake=intake,
        row=IntakeRun.objects.create(scope=scope, trigger=trigger, by=by[:150]),
        by=by,
        progress=progress or (lambda _count: None),
        most=limit,
        deadline=time.monotonic() + seconds if seconds is not None else None,
    )
    return run.go(completer, embedder)


def _close_dead(scope: Scope) -> None:
    """Say of runs that still seem to run that they do not: whoever is here holds the scope's outbox row, so their
    process died, or has lost the row and comes too late to store anything.
    """
    IntakeRun.objects.filter(scope=scope, state=IntakeRun.State.RUNNING).update(
        state=IntakeRun.State.INTERRUPTED,
        finished_at=ClockTimestamp(),
        error="Its process ended in the middle; what it had stored stays, and the next run goes on.",
    )


class _Stop(Exception):
    """The run ends here; the sentence says why."""


@dataclass(slots=True)
class _Run:
    """One run as it goes."""

    scope: Scope
    intake: Intake
    row: IntakeRun
    by: str
    progress: Callable[[int], object]
    most: int | None
    deadline: float | None
    figures: Counter[str] = field(default_factory=Counter)
    asked: set[int] = field(default_factory=set)  # each turn is asked about once a run
    attempts: dict[int, int] = field(default_factory=dict)  # how often the turns of the window were asked about before
    failure: Answer | None = None
    not_compared: str = ""  # why claims were stored without being reconciled
    moved: int = 0

    def go(self, completer: Completer | None, embedder: Embedder | None) -> RunReport:
        """Read until nothing waits, and say how it ended, in the row too."""
        try:
            self.read_all(completer or spending.door(scope_id=self.scope.pk), embedder or current_embedder())
        except (ModelFailed, _Stop) as failed:
            self.failure = failed.answer if isinstance(failed, ModelFailed) else None
            return self.end(Ran.FAILED, str(failed))
        except store.RunTakenOver:
            return self.report(Ran.TAKEN_OVER, "Another run took this one for dead and goes on.")
        except Exception as error:
            self.note_failure(error)
            raise
        return self.end(Ran.DONE, self.shortfall())

    def read_all(self, completer: Completer, embedder: Embedder) -> None:
        """Batch after batch. Raises ModelFailed, _Stop, store.RunTakenOver, and what a dead database raises."""
        while window := self.window():
            passed = [turn for turn in window if extraction.passed(turn)]
            if passed:
                self.store(Batch(_by_id(passed), dict.fromkeys(_by_id(passed), Extraction.State.PASSED)))
            for turns in self.batches(window):
                if not self.goes_on():
                    return
                if not self.read(turns, completer, embedder):
                    break  # look again at what is unread
            if not self.goes_on():
                return

    def goes_on(self) -> bool:
        """Whether another batch may be begun: time, the limit, and whether the scope is still read."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            return False
        if self.most is not None and len(self.asked) >= self.most:
            return False
        return Intake.objects.filter(pk=self.intake.pk, enabled=True).exists()

    def window(self) -> list[EpisodeRecord]:
        """The oldest turns that wait and were not asked about in this run, their attempts kept. Two queries."""
        most = WINDOW if self.most is None else min(WINDOW, self.most - len(self.asked))
        waiting = unread(scope_id=self.scope.pk, since=self.intake.since, most=max(most, 0) + len(self.asked))
        self.attempts = {pk: tried for pk, tried in waiting.items() if pk not in self.asked}
        ids = list(self.attempts)[: max(most, 0)]
        turns = Episode.objects.filter(scope=self.scope, pk__in=ids).exclude(text=None)
        records = _by_id([turn.record() for turn in turns])
        return [records[pk] for pk in ids if pk in records]

    def batches(self, window: Sequence[EpisodeRecord]) -> list[list[EpisodeRecord]]:
        """The window in the questions it is asked in, oldest first; what failed before in smaller company."""
        made: list[list[EpisodeRecord]] = []
        for attempts, size in _TOGETHER.items():
            alike = [turn for turn in window if self.attempts[turn.id] == attempts]
            for together in extraction.batches(alike):
                made += [together[start : start + size] for start in range(0, len(together), size)]
        return sorted(made, key=lambda batch: (batch[0].happened_at, batch[0].seq, batch[0].id))

    # --- one batch ---------------------------------------------------------------------------------------------------

    def read(self, turns: Sequence[EpisodeRecord], completer: Completer, embedder: Embedder) -> bool:
        """Ask about some turns and store what came of it; False when they were not all unread any more."""
        before = just_before(turn=turns[0], since=self.intake.since, most=extraction.BEFORE)
        request = extraction.request(turns=turns, scope_id=self.scope.pk, before=before)
        reply: Reply | None = None
        try:
            reply = completer.complete(request)
            extracted = extraction.read(reply=reply, turns=turns, before=before)
            if extracted.astray:
                raise Unusable(
                    "The model's answer cannot be used: nothing in it is about these turns; ask again later."
                )
        except ModelFailed as failed:
            if failed.answer not in _OF_THE_TURNS or isinstance(failed, NoMessage):
                raise
            bad = Bad.of(reply.text if reply else "", reason=str(failed), prompt_version=request.prompt_version)
            return self.store(_unusable(turns, bad, completer.model))
        parts = in_parts(turns=turns, extracted=extracted)
        return all(self.store(self.weighed(turns, part, completer, embedder)) for part in parts)

    def weighed(self, turns: Sequence[EpisodeRecord], part: Part, completer: Completer, embedder: Embedder) -> Batch:
        """What some of the turns came to: the second question of the batch, where there is anything to compare."""
        extracted = part.extracted
        order = {turn.id: place for place, turn in enumerate(turns)}  # an answer has its own
        claims = sorted((*extracted.claims, *extracted.held), key=lambda claim: order[claim.episode])
        weighing = weigh(scope=self.scope, claims=claims, completer=completer, embedder=embedder)
        if weighing.failed is not None:
            self.not_compared = f"Some claims were stored without being compared. {weighing.failed}"
        elif weighing.blind:
            self.not_compared = self.not_compared or _BLIND
        bad = weighing.bad
        return Batch(
            turns=_by_id(turns),
            states=dict(_states(part.turns, extracted)),
            weighed=weighing.weighed,
            disbelieved=extracted.refused,
            bad=(UnusableAnswer.Purpose.RECONCILE, bad, completer.model) if bad else None,
            profile=embedder.profile,
        )

    def store(self, batch: Batch) -> bool:
        """Store a batch, whole or not at all; False when some of its turns are not unread any more."""
        try:
            figures = store_batch(run=self.row, scope=self.scope, batch=batch)
        except store.TurnsMoved:
            self.moved += 1
            if self.moved > _MOST_MOVED:
                raise _Stop("The turns of this scope are read by somebody else at the same time; try later.") from None
            return False
        states = Counter(batch.states.values())
        self.asked |= set(batch.states)
        self.figures += figures
        self.figures["turns"] += len(batch.states)
        self.figures["batches"] += not states[Extraction.State.PASSED]
        self.figures["unusable"] += states[Extraction.State.UNUSABLE]
        self.figures["passed"] += states[Extraction.State.PASSED]
        self.progress(len(batch.states))
        return True

    # --- how it ended ------------------------------------------------------------------------------------------------

    def end(self, how: Ran, sentence: str) -> RunReport:
        """Close the run's row with its figures and one event, unless another run has taken over. Three queries."""
        report = self.report(how, sentence)
        state = IntakeRun.State.FAILED if how is Ran.FAILED else IntakeRun.State.DONE
        with transaction.atomic():
            closed = IntakeRun.objects.filter(pk=self.row.pk, state=IntakeRun.State.RUNNING).update(
                state=state, finished_at=ClockTimestamp(), error=sentence[:300], figures=dict(self.figures)
            )
            if closed:
                Event.objects.append(
                    scope_id=self.scope.pk,
                    action="intake_run",
                    actor=self.by[:150],
                    subject=str(self.scope.pk),
                    detail={"run": self.row.pk, "state": str(state), **self.figures},
                )
        return report

    def shortfall(self) -> str:
        """What a run that came to its end did not do, in one sentence or two; "" where it did all."""
        unread = self.figures["unusable"]
        what = f"The answers about {unread} turns could not be used; each turn is asked about three times in all."
        return " ".join(filter(None, [what if unread else "", self.not_compared]))

    def note_failure(self, error: Exception) -> None:
        """Show a run as failed that something of ours or the database ended; the error itself is raised on."""
        try:
            self.end(Ran.FAILED, f"The run failed and what it had stored stays. {outbox.sentence(error)}")
        except DatabaseGone as gone:
            log.warning("intake run %s could not be closed: %s", self.row.pk, type(gone).__name__)

    def report(self, how: Ran, sentence: str) -> RunReport:
        """The figures so far. One query."""
        count = self.figures
        kinds = ("added", "known", "updated", "replaced", "refused", "review", "held")
        return RunReport(
            state=how,
            run=self.row.pk,
            **{name: count[name] for name in ("turns", "batches", "passed", "unusable", "flagged", *kinds)},
            claims=sum(count[name] for name in kinds),
            left=count_unread(scope_id=self.scope.pk, since=self.intake.since),
            not_run=sentence,
            failure=self.failure,
        )


def _by_id(turns: Sequence[EpisodeRecord]) -> dict[int, EpisodeRecord]:
    return {turn.id: turn for turn in turns}


def _unusable(turns: Sequence[EpisodeRecord], bad: Bad, model: str) -> Batch:
    return Batch(
        turns=_by_id(turns),
        states=dict.fromkeys(_by_id(turns), Extraction.State.UNUSABLE),
        bad=(UnusableAnswer.Purpose.EXTRACT, bad, model),
    )


def _states(turns: Sequence[EpisodeRecord], extracted: Extracted) -> Iterator[tuple[int, Extraction.State]]:
    """For each turn whether anything was found in it, believed or not."""
    found = {quoted.episode for claim in (*extracted.claims, *extracted.held) for quoted in claim.evidence}
    found |= {refused.episode for refused in extracted.refused if refused.episode is not None}
    for turn in turns:
        yield turn.id, Extraction.State.CLAIMS if turn.id in found else Extraction.State.NOTHING
