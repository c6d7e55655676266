"""The whole of what a prompt is given: its sections, read one by one, fitted, fenced, and kept by ids as an answer."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, TypeVar

from django.db import transaction

from observations import answers, failures, fencing, retrieval
from observations.answers import Given, of_episode
from observations.embedding import Embedder
from observations.models import Scope
from observations.normalise import clean
from observations.prompting import episodic, observed, sections
from observations.prompting.fitting import LONGEST, Fitted, Room, fit, tokens
from observations.prompting.sections import Line, Section
from observations.retrieval import CALL_SITES, EVERYTHING, Narrowed

log = logging.getLogger(__name__)

SEARCH: Final = "search"  # the part that failed when the embedder did, or the store of vectors
SITE: Final = "context"


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a prompt is given: one fenced block, or "" where there is nothing to say (R7).

    Not `complete` when a section failed, which is not the same as an empty one. `answer` is kept 90 days.
    """

    text: str
    observation_ids: tuple[int, ...] = ()  # observations and summaries that are shown, in their order
    left_out: tuple[int, ...] = ()  # relevant, and left out for want of room
    complete: bool = True
    answer: uuid.UUID = field(default_factory=uuid.uuid4)
    episodes: tuple[int, ...] = ()  # turns that are shown, in their order
    episodes_left_out: tuple[int, ...] = ()
    residue_left_out: int = 0
    outdated: tuple[int, ...] = ()  # of all that is shown: marked so; episodes below zero
    failed: tuple[str, ...] = ()  # sections that could not be read
    chosen_by: str = ""  # the model that selected among the episodes; "": the rule

    @property
    def tokens(self) -> int:
        """About how many tokens the text is, rather more than less."""
        return tokens(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a prompt is asked for."""

    scope: Scope
    about: str = ""
    session: str = ""
    goals: str = ""  # what the agent is for: with goals, episodes and summaries are in the prompt
    k: int = CALL_SITES[SITE]
    longest: int = LONGEST
    max_tokens: int | None = None
    as_of: datetime | None = None
    embedder: Embedder | None = None
    started: float = field(default_factory=time.monotonic)

    @property
    def narrowed(self) -> Narrowed:
        """The rows that are believed, or were."""
        return Narrowed(as_of=self.as_of) if self.as_of else EVERYTHING


def prompt(
    *,
    scope: Scope,
    about: str = "",
    session: str = "",
    goals: str = "",
    k: int = CALL_SITES[SITE],
    longest: int = LONGEST,
    max_tokens: int | None = None,
    as_of: datetime | None = None,
    embedder: Embedder | None = None,
) -> Prompt:
    """Core memory, observations about something, residue, and the last turns of a session, in one fence; with `goals`
    also what was said and summarised before (R3). Never raises for a dead store, embedder or model (R133).

    Over `longest` characters or about `max_tokens` tokens whole entries are left out: see `fitting`. `as_of` is what
    would have been told at a moment, by the rule alone; it says so. The uses of what is shown are counted, but not of
    the past, and the answer is kept, both after it was made.
    """
    wanted = Wanted(
        scope=scope,
        about=clean(about)[0],  # as texts are stored: what no database can hold is in none of them
        session=session,
        goals=clean(goals)[0],
        k=k,
        longest=longest,
        max_tokens=max_tokens,
        as_of=as_of,
        embedder=embedder,
    )
    read = _Reading(wanted)
    read.everything()
    return _handed_out(wanted, read)


def get_episodic_context(
    *,
    scope: Scope,
    query: str,
    goals: str = "",
    k: int = CALL_SITES[SITE],
    embedder: Embedder | None = None,
    longest: int = LONGEST,
    max_tokens: int | None = None,
    as_of: datetime | None = None,
) -> Prompt:
    """What was said and summarised before that has to do with a query, in a fence of its own (R3); "" where nothing is
    relevant (R7) and on any failure (R133). Kept and counted as `prompt` is.
    """
    wanted = Wanted(
        scope=scope,
        about=clean(query)[0],
        goals=clean(goals)[0],
        k=k,
        longest=longest,
        max_tokens=max_tokens,
        as_of=as_of,
        embedder=embedder,
    )
    read = _Reading(wanted)
    read.episodes(hidden=())
    return _handed_out(wanted, read)


# --- reading ---------------------------------------------------------------------------------------------------------

Read = TypeVar("Read")


class _Reading:
    """The sections of one prompt as they are read. One that fails is left out, counted and named (R133)."""

    def __init__(self, wanted: Wanted) -> None:
        self.lines: dict[Section, Sequence[Line]] = {}
        self.failed: list[str] = []
        self.passed_over: list[int] = []  # found, and not among what is shown: irrelevant, or said twice
        self.chosen_by = ""
        self._wanted = wanted

    def everything(self) -> None:
        """Every section that is asked for."""
        wanted = self._wanted
        scope, as_of = wanted.scope, wanted.as_of
        self._attempt(Section.CORE, lambda: sections.core_lines(scope=scope, as_of=as_of))
        if wanted.about:
            self._observations()
        self._attempt(Section.RESIDUE, lambda: sections.residue_lines(scope=scope, as_of=as_of))
        turns = lambda: sections.verbatim_lines(scope=scope, session=wanted.session, as_of=as_of)  # noqa: E731
        self._attempt(Section.VERBATIM, turns)
        if wanted.goals:
            self.episodes(hidden=[line.id for line in self.lines.get(Section.VERBATIM, ())])

    def _observations(self) -> None:
        wanted = self._wanted
        answer = observed.found(
            scope=wanted.scope, about=wanted.about, k=wanted.k, embedder=wanted.embedder, narrowed=wanted.narrowed
        )
        if not answer.complete:
            self.failed.append(SEARCH)
        lines = self._attempt(
            Section.OBSERVATIONS,
            lambda: observed.observation_lines(
                scope=wanted.scope, hits=answer.hits, about=wanted.about, k=wanted.k, narrowed=wanted.narrowed
            ),
        )
        shown = {line.id for line in lines or ()}
        self.passed_over += [hit.id for hit in answer.hits if hit.id not in shown]

    def episodes(self, *, hidden: Sequence[int]) -> None:
        """What was said and summarised before; `hidden` are turns that are shown already."""
        wanted = self._wanted
        asked = episodic.Asked(
            scope=wanted.scope,
            query=wanted.about,
            goals=wanted.goals,
            k=wanted.k,
            as_of=wanted.as_of,
            embedder=wanted.embedder,
            hidden=hidden,
            started=wanted.started,
        )
        found = self._kept(Section.EPISODES, lambda: episodic.select(asked))
        if found is None:
            return
        self.lines[Section.EPISODES] = found.lines
        self.chosen_by = found.chosen_by
        self.passed_over += found.left_out
        if not found.complete and SEARCH not in self.failed:
            self.failed.append(SEARCH)

    def _attempt(self, name: Section, read: Callable[[], list[Line]]) -> list[Line] | None:
        lines = self._kept(name, read)
        self.lines[name] = lines or ()
        return lines

    def _kept(self, name: Section, read: Callable[[], Read]) -> Read | None:
        """What was read, or None when reading it failed."""
        try:
            with transaction.atomic():  # a savepoint within somebody's transaction, which a failure must not spoil
                return read()
        except Exception as error:  # R133: whatever a driver raises, the agent that asked goes on
            failures.count(f"prompt: {name}")
            log.warning("prompt: the section %s failed (%s); it is left out", name, type(error).__name__)
            self.failed.append(name)
            return None


# --- handing out -----------------------------------------------------------------------------------------------------


def _handed_out(wanted: Wanted, read: _Reading) -> Prompt:
    """The text and its ids; then what was handed out is counted and kept."""
    head = _past(wanted.as_of) if wanted.as_of else ""
    room = Room.of(longest=wanted.longest, max_tokens=wanted.max_tokens)
    fitted = fit(lines=read.lines, room=room.less(head) if head else room)
    made = _made(fitted, read, head)
    if not wanted.as_of:
        answer = retrieval.Answer(made.answer, (), complete=True)
        retrieval.note_uses(scope=wanted.scope, answer=answer, call_site=SITE, ids=made.observation_ids)
    answers.note(scope=wanted.scope, given=_given(made, read))
    return made


def _past(moment: datetime) -> str:
    return f"As of {moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC, not now:"


def _made(fitted: Fitted, read: _Reading, head: str) -> Prompt:
    claims, turns = _ids(fitted.shown)
    unfit_claims, unfit_turns = _ids(fitted.left_out)
    outdated = [line.id for each in fitted.shown.values() for line in each if line.outdated]
    return Prompt(
        text=fencing.fenced([head, *fitted.lines]) if head and fitted.lines else fencing.fenced(list(fitted.lines)),
        observation_ids=claims,
        left_out=unfit_claims,
        complete=not read.failed,
        episodes=turns,
        episodes_left_out=unfit_turns,
        residue_left_out=len(fitted.left_out.get(Section.RESIDUE, ())),
        outdated=tuple(outdated),
        failed=tuple(read.failed),
        chosen_by=read.chosen_by,
    )


def _ids(lines: Mapping[Section, Sequence[Line]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The observations and summaries among some lines, and the turns."""
    claims = [line.id for line in lines.get(Section.OBSERVATIONS, ())]
    before = [line.id for line in lines.get(Section.EPISODES, ())]
    turns = [line.id for line in lines.get(Section.VERBATIM, ())]
    claims += [pk for pk in before if pk > 0 and pk not in claims]
    return tuple(claims), tuple(dict.fromkeys([*(-pk for pk in before if pk < 0), *turns]))


def _given(made: Prompt, read: _Reading) -> Given:
    shown = [*made.observation_ids, *map(of_episode, made.episodes)]
    unfit = [*made.left_out, *map(of_episode, made.episodes_left_out)]
    return Given(
        answer=made.answer,
        call_site=SITE,
        shown=shown,
        left_out=[pk for pk in dict.fromkeys([*unfit, *read.passed_over]) if pk not in set(shown)],
        outdated=made.outdated,
        failed=made.failed,
        chosen_by=made.chosen_by,
    )
