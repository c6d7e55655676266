"""Calls that read: what the caller may see, and nothing else. A dead store is an empty, incomplete answer (R133)."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connection

from observations import answers, ingest, prompting, retrieval, spending
from observations.calls import schemas
from observations.calls.rights import CallRefused, Code, Right, check, find_scope, known_scope, refusals
from observations.ingest import background
from observations.models import Event, Evidence, Observation, Scope, Transition
from observations.records import Caller, MemoryKind, StatedBy, Status

log = logging.getLogger(__name__)

LONGEST_CHAIN: Final = 500  # rows of one history
_WROTE: Final = ("remembered", "corrected")  # events that say who wrote a row


def get_observation(*, caller: Caller, asked: schemas.OneObservation) -> schemas.Observation:
    """One current row with its evidence. What left the reads is found by its history."""
    check(caller=caller, right=Right.READ, scope=asked.scope)
    with refusals():
        scope = known_scope(asked.scope)
        row = Observation.objects.active().in_scope(scope).filter(pk=asked.id).first()
        if row is None:
            raise CallRefused(Code.NOT_FOUND, f"obs_{asked.id} is not current in this scope: ask for its history.")
        refs = list(Evidence.objects.filter(scope=scope, observation=row).order_by("pk"))
        sources = ingest.evidence_of(scope=scope, ids=[row.pk])
    evidence = [
        schemas.EvidenceOut(
            source_uri=ref.source_uri, root_source=ref.root_source, quote=ref.quote or "", episode=ref.episode_id
        )
        for ref in refs
    ]
    return _observation(row, sources).model_copy(update={"evidence": evidence})


def list_observations(*, caller: Caller, asked: schemas.ListObservations) -> schemas.Page:
    """Current rows, newest first, page by page; rows that are written meanwhile do not move the pages."""
    check(caller=caller, right=Right.READ, scope=asked.scope)
    before = after_cursor(asked.cursor, prefix="obs")
    try:
        scope = find_scope(asked.scope)
        if scope is None:
            return schemas.Page(observations=[])
        rows = Observation.objects.active().in_scope(scope).order_by("-pk")
        found = list((rows if before is None else rows.filter(pk__lt=before))[: asked.limit + 1])
        sources = ingest.evidence_of(scope=scope, ids=[row.pk for row in found])
    except (DatabaseError, InterfaceError) as error:
        dead("list_observations", error)
        return schemas.Page(observations=[], complete=False)
    shown = found[: asked.limit]
    more = f"obs_{shown[-1].pk}" if len(found) > asked.limit else ""
    return schemas.Page(observations=[_observation(row, sources) for row in shown], next=more)


def search(*, caller: Caller, asked: schemas.Search) -> schemas.Found:
    """Current rows by meaning and by words, best first; `as_of` and `include_history` ask for the past by name."""
    check(caller=caller, right=Right.READ, scope=asked.scope)
    narrowed = retrieval.Narrowed(
        subject=asked.subject,
        kind=asked.kind,
        stated_by=asked.stated_by,
        said_from=asked.said_from,
        said_before=asked.said_before,
        as_of=asked.as_of,
        include_history=asked.include_history,
    )
    return _found(asked.scope, asked.query, asked.k, "search", narrowed)


def known(*, caller: Caller, asked: schemas.Known) -> schemas.Found:
    """The two rows nearest to a query: is this known already, have we met this person (R23)?"""
    check(caller=caller, right=Right.READ, scope=asked.scope)
    return _found(asked.scope, asked.query, retrieval.CALL_SITES["is_known"], "is_known")


def _found(
    name: str, query: str, k: int, call_site: str, narrowed: retrieval.Narrowed = retrieval.EVERYTHING
) -> schemas.Found:
    try:
        scope = find_scope(name)
    except (DatabaseError, InterfaceError) as error:
        dead(call_site, error)
        return schemas.Found(hits=[], complete=False)
    if scope is None:
        return schemas.Found(hits=[], complete=True)
    answer = retrieval.search(scope=scope, query=query, k=k, call_site=call_site, narrowed=narrowed)
    hits = [
        schemas.HitOut(
            id=hit.id,
            text=hit.text,
            trust=str(hit.trust),
            why=str(hit.why),
            score=hit.score,
            external_id=hit.external_id,
            status=hit.status,
            place_by_words=hit.place_by_words,
            place_by_meaning=hit.place_by_meaning,
        )
        for hit in answer.hits
    ]
    return schemas.Found(hits=hits, complete=answer.complete, answer=str(answer.id))


def prompt(*, caller: Caller, asked: schemas.PromptFor) -> schemas.Prompt:
    """The memory block for a prompt: core memory, what is relevant, residue and the last turns, fenced and labelled.
    "" when there is nothing to say, and when the store is dead.
    """
    check(caller=caller, right=Right.READ, scope=asked.scope)
    try:
        scope = find_scope(asked.scope)
    except (DatabaseError, InterfaceError) as error:
        dead("prompt", error)
        return schemas.Prompt(text="", complete=False)
    if scope is None:
        return schemas.Prompt(text="")
    made = prompting.prompt(
        scope=scope,
        about=asked.about,
        session=asked.session,
        goals=asked.goals,
        k=asked.k,
        longest=asked.longest,
        max_tokens=asked.max_tokens,
        as_of=asked.as_of,
    )
    return _prompt(made)


def episodic_context(*, caller: Caller, asked: schemas.EpisodicContext) -> schemas.Prompt:
    """What was said and summarised before that has to do with a query, selected for the agent's goals, fenced and
    labelled. "" when nothing is relevant, and when the store is dead.
    """
    check(caller=caller, right=Right.READ, scope=asked.scope)
    try:
        scope = find_scope(asked.scope)
    except (DatabaseError, InterfaceError) as error:
        dead("episodic_context", error)
        return schemas.Prompt(text="", complete=False)
    if scope is None:
        return schemas.Prompt(text="")
    made = prompting.get_episodic_context(
        scope=scope,
        query=asked.query,
        goals=asked.goals,
        k=asked.k,
        longest=asked.longest,
        max_tokens=asked.max_tokens,
        as_of=asked.as_of,
    )
    return _prompt(made)


def _prompt(made: prompting.Prompt) -> schemas.Prompt:
    return schemas.Prompt(
        text=made.text,
        ids=list(made.observation_ids),
        left_out=list(made.left_out),
        complete=made.complete,
        answer=str(made.answer),
        episodes=list(made.episodes),
        episodes_left_out=list(made.episodes_left_out),
        residue_left_out=made.residue_left_out,
        outdated=[_prefixed(pk) for pk in made.outdated],
        failed=list(made.failed),
        chosen_by=made.chosen_by,
        tokens=made.tokens,
    )


def _prefixed(pk: int) -> str:
    """An id of an answer as it is shown: episodes are below zero there."""
    return f"obs_{pk}" if pk > 0 else f"ep_{-pk}"


def get_answer(*, caller: Caller, asked: schemas.GetAnswer) -> schemas.AnswerGiven:
    """What an agent was told by a prompt or a search of the last 90 days, its rows as they stand now: by the answer's
    id, or the last one that was given by a moment.
    """
    check(caller=caller, right=Right.READ, scope=asked.scope)
    if bool(asked.answer) == (asked.at is not None):
        raise CallRefused(Code.INVALID, "Give the id of an answer, or a moment: one of them.")
    with refusals():
        told = answers.told(scope=known_scope(asked.scope), answer=_answer_id(asked.answer), at=asked.at)
    if told is None:
        raise CallRefused(Code.NOT_FOUND, "No such answer is kept in this scope: answers are kept for 90 days.")
    rows = [_told(entry, caller) for entry in told.entries]
    row = told.row
    return schemas.AnswerGiven(
        answer=str(row.answer),
        at=row.at,
        call_site=row.call_site,
        chosen_by=row.chosen_by,
        failed=list(row.failed),
        rows=rows,
    )


def _answer_id(given: str) -> UUID | None:
    try:
        return UUID(given) if given else None
    except ValueError as error:
        raise CallRefused(Code.INVALID, "That is no id of an answer: give the one a prompt or a search had.") from error


def _told(entry: answers.Entry, caller: Caller) -> schemas.Told:
    held_back = entry.status == Status.QUARANTINED and not caller.person
    return schemas.Told(
        id=f"{'ep' if entry.episode else 'obs'}_{entry.id}",
        text=None if held_back else entry.text,
        status=entry.status,
        shown=entry.shown,
        outdated=entry.outdated,
    )


def intake_status(*, caller: Caller, asked: schemas.IntakeStatus) -> schemas.Intake:
    """Whether the turns of a scope are read in the background, how many wait, and how the last pass ended."""
    check(caller=caller, right=Right.READ, scope=asked.scope)
    try:
        scope = find_scope(asked.scope)
        state = background.intake_of(scope=scope) if scope else background.IntakeState()
    except (DatabaseError, InterfaceError) as error:
        dead("intake_status", error)
        return schemas.Intake(enabled=False, complete=False)
    last = None
    if run := state.last_run:
        gone = background.without_life(runs=[run]).get(run.pk)
        last = schemas.IntakeRunOut(
            state="stale" if gone else run.state,
            started_at=run.started_at,
            finished_at=run.finished_at,
            error=f"No sign of life since {gone:%Y-%m-%d %H:%M} UTC; the next run goes on." if gone else run.error,
        )
    return schemas.Intake(
        enabled=state.enabled,
        model=spending.configured(),
        every=state.every_turns,
        waiting=state.waiting,
        stuck=state.stuck,
        residue=state.residue,
        last_run=last,
    )


# --- history ---------------------------------------------------------------------------------------------------------


_CHAIN: Final = """
WITH RECURSIVE later AS (
  SELECT id, superseded_by_id FROM observations_observation WHERE scope_id = %(scope)s AND id = %(id)s
  UNION
  SELECT o.id, o.superseded_by_id FROM later JOIN observations_observation o
    ON o.scope_id = %(scope)s AND o.id = later.superseded_by_id
), earlier AS (
  SELECT id FROM later
  UNION
  SELECT o.id FROM earlier JOIN observations_observation o
    ON o.scope_id = %(scope)s AND o.superseded_by_id = earlier.id
)
SELECT id FROM earlier ORDER BY id LIMIT %(most)s
"""


def history_of_observation(*, caller: Caller, asked: schemas.OneObservation) -> schemas.History:
    """How a row came to be and what became of it, oldest first: what it replaced, what replaced it, who, when and why.
    What was erased is not in it.
    """
    check(caller=caller, right=Right.READ, scope=asked.scope)
    with refusals():
        scope = known_scope(asked.scope)
        rows = _chain(scope, asked.id)
        if asked.id not in rows:
            raise CallRefused(Code.NOT_FOUND, f"There is no obs_{asked.id} in this scope: list its observations.")
        moves, writers = _moves(scope, list(rows)), _writers(scope, list(rows))
    links = [_link(row, moves.get(pk, []), writers.get(pk, ""), caller) for pk, row in rows.items()]
    return schemas.History(links=links)


def _chain(scope: Scope, pk: int) -> dict[int, Observation]:
    with connection.cursor() as cursor:
        cursor.execute(_CHAIN, {"scope": scope.pk, "id": pk, "most": LONGEST_CHAIN})
        ids = [int(found) for (found,) in cursor.fetchall()]
    rows = Observation.objects.in_scope(scope).filter(pk__in=ids).exclude(status=Status.ERASED).order_by("pk")
    return {row.pk: row for row in rows}


def _moves(scope: Scope, ids: Sequence[int]) -> dict[int, list[schemas.Moved]]:
    moves: dict[int, list[schemas.Moved]] = {}
    for move in Transition.objects.filter(scope=scope, observation_id__in=ids).order_by("pk"):
        told = schemas.Moved(
            at=move.at,
            from_status=move.from_status,
            to_status=move.to_status,
            why=move.cause,
            successor=move.superseded_by_id,
        )
        moves.setdefault(move.observation_id or 0, []).append(told)
    return moves


def _writers(scope: Scope, ids: Sequence[int]) -> dict[int, str]:
    subjects = [f"obs_{pk}" for pk in ids]
    wrote = Event.objects.filter(scope=scope, subject__in=subjects, action__in=_WROTE).order_by("-pk")
    return {int(subject.removeprefix("obs_")): actor for subject, actor in wrote.values_list("subject", "actor")}


def _link(row: Observation, moves: list[schemas.Moved], by: str, caller: Caller) -> schemas.Link:
    never_read = row.status == Status.RETRACTED and row.derivation is None  # what a person discarded
    held_back = (row.status == Status.QUARANTINED or never_read) and not caller.person
    return schemas.Link(
        id=row.pk,
        text=None if held_back else row.text,
        status=Status(row.status),
        written_by=row.written_by,
        stated_by=StatedBy(row.stated_by),
        recorded_at=row.recorded_at,
        by=by,
        replaced_by=row.superseded_by_id,
        moves=moves,
    )


# --- translation -----------------------------------------------------------------------------------------------------


def after_cursor(cursor: str, *, prefix: str) -> int | None:
    """The id that a page begins after; None for the first. Raises CallRefused for anything that is no cursor."""
    match = re.fullmatch(rf"{prefix}_([0-9]{{1,18}})", cursor, re.ASCII)
    if match is None and cursor:
        raise CallRefused(Code.INVALID, "The cursor is none of this call: give `next` of the page before, or none.")
    return int(match[1]) if match else None


def dead(call: str, error: Exception) -> None:
    """Say in the log that a read is incomplete, without the error's words."""
    log.warning("%s: the store failed (%s); the answer is empty and incomplete", call, type(error).__name__)


def _observation(row: Observation, sources: Mapping[int, int]) -> schemas.Observation:
    return schemas.Observation(
        id=row.pk,
        text=row.text or "",
        subject=row.subject,
        predicate=row.predicate,
        object=row.object,
        kind=MemoryKind(row.kind),
        stated_by=StatedBy(row.stated_by),
        written_by=row.written_by,
        confidence=row.confidence,
        status=Status(row.status),
        version=row.version,
        created_at=row.created_at,
        recorded_at=row.recorded_at,
        valid_from=row.valid_from,
        valid_to=row.valid_to,
        external_id=row.external_id,
        cleaned=row.cleaned,
        sources=sources.get(row.pk, 0),
    )
