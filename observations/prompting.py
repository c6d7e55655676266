"""PROMPT: what an agent's prompt is given of a scope, in one fence, each line labelled with how far it can be trusted.

A section is empty when it fails (R133): a dead store is a thinner prompt, never a crash. A label comes from the kind of
record and is written before its text, which is one line of plain data, so that no text can claim one (C15).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Count

from observations import fencing, retrieval, selecting
from observations.embedding import Embedder
from observations.fencing import plain, without_own
from observations.models import CoreMemory, Episode, Evidence, Intake, Observation, Residue, Scope, database_now
from observations.normalise import clean
from observations.records import StatedBy, Status
from observations.retrieval import CALL_SITES, Hit, Trust, trust_of
from observations.selecting import Candidate

log = logging.getLogger(__name__)

RESIDUE_DAYS: Final = 3  # after it was first held a residue is in no prompt any more
LAST_TURNS: Final = 6  # of a session, word for word
OUTDATED: Final = "outdated"  # the mark of a claim that a newer one replaces, or whose period is over
MOST_RIVALS: Final = 200  # other values of the keys that were found
LONGEST: Final = 12_000  # characters of a prompt's text; what ranks last is left out, core memory never


class Clean(StrEnum):
    """When what a section shows was made fit to be read (R10): one of both must have happened."""

    ON_WRITE = "on write"  # what is stored was reconciled, or written by whoever may
    ON_READ = "on read"  # what is shown was selected from what is stored


class Section(StrEnum):
    """The sections of a prompt, in their order."""

    CORE = "Core memory"
    OBSERVATIONS = "Observations"
    RESIDUE = "Residue of the last runs"
    VERBATIM = "Said last"


CLEAN: Final[Mapping[Section, Clean]] = {
    Section.CORE: Clean.ON_WRITE,
    Section.OBSERVATIONS: Clean.ON_WRITE,  # and `selecting` looks again, at what came in past the reconciler
    Section.RESIDUE: Clean.ON_READ,
    Section.VERBATIM: Clean.ON_WRITE,
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a section, as it stands in the prompt; `id` is the row's it shows."""

    id: int
    text: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a prompt is given: one fenced block, or "" where there is nothing to say (R7).

    Not `complete` when a section failed, which is not the same as an empty one.
    """

    text: str
    observation_ids: tuple[int, ...]  # those shown, in their order
    left_out: tuple[int, ...]  # found, and over the length
    complete: bool
    answer: UUID | None = None  # under which the uses were counted; None where nothing was searched


def prompt(
    *,
    scope: Scope,
    about: str = "",
    session: str = "",
    k: int = CALL_SITES["context"],
    embedder: Embedder | None = None,
    longest: int = LONGEST,
) -> Prompt:
    """Core memory, observations about something, residue, and the last turns of a session, in one fence. Where that
    would be over `longest` characters, the observations that rank last are left out, but for a quarter of `longest`
    that is theirs however much else there is: core memory is always whole. The uses of those shown are counted. Never
    raises for a dead store or embedder.
    """
    answer = _found(scope, about, k, embedder) if about else None
    hits = answer.hits if answer else ()
    read = {
        Section.CORE: _attempt(Section.CORE, lambda: core_lines(scope=scope)),
        Section.OBSERVATIONS: _attempt(
            Section.OBSERVATIONS, lambda: observation_lines(scope=scope, hits=hits, about=about, k=k)
        ),
        Section.RESIDUE: _attempt(Section.RESIDUE, lambda: residue_lines(scope=scope)),
        Section.VERBATIM: _attempt(Section.VERBATIM, lambda: verbatim_lines(scope=scope, session=session)),
    }
    whole = {name: [line.text for line in lines or ()] for name, lines in read.items()}
    told = read[Section.OBSERVATIONS] or ()
    others = sum(len(text) + 1 for name, texts in whole.items() if name != Section.OBSERVATIONS for text in texts)
    shown = _fitting(whole[Section.OBSERVATIONS], max(longest - others - _MARKS, longest // 4))
    whole[Section.OBSERVATIONS] = whole[Section.OBSERVATIONS][:shown]
    if answer:
        handed = [line.id for line in told[:shown]]
        retrieval.note_uses(scope=scope, answer=answer, call_site="context", ids=handed)
    return Prompt(
        text=fencing.fenced([line for name in Section for line in _headed(name, whole[name])]),
        observation_ids=tuple(line.id for line in told[:shown]),
        left_out=tuple(line.id for line in told[shown:]),
        complete=None not in read.values() and (answer is None or answer.complete),
        answer=answer.id if answer else None,
    )


# So many times as many rows are found as are shown: what outdates a row may be less near to the query than the row.
_WIDER: Final = 3


def _found(scope: Scope, about: str, k: int, embedder: Embedder | None) -> retrieval.Answer:
    return retrieval.look(scope=scope, query=about, k=_WIDER * k, call_site="context", embedder=embedder)


_MARKS: Final = 250  # the fence and the headings, in characters


def _fitting(lines: Sequence[str], room: int) -> int:
    """How many of the lines, from the first, fit into so many characters."""
    for shown, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return shown
    return len(lines)


def _headed(name: Section, lines: Sequence[str]) -> list[str]:
    """A heading and its lines; nothing for a section that is empty or failed."""
    return [f"{name}:", *lines] if lines else []


def _attempt(name: Section, read: Callable[[], list[Line]]) -> list[Line] | None:
    """A section's lines, or None when reading them failed."""
    try:
        with transaction.atomic():  # a savepoint within somebody's transaction, which a failure must not spoil
            return read()
    except Exception as error:  # R133: whatever a driver raises, the agent that asked goes on
        log.warning("prompt: the section %s failed (%s); it is left out", name, type(error).__name__)
        return None


# --- sections --------------------------------------------------------------------------------------------------------


def core_lines(*, scope: Scope) -> list[Line]:
    """Every core memory that says something, by label; what it is for stands behind the label. One query."""
    lines: list[Line] = []
    for core in CoreMemory.objects.filter(scope=scope).exclude(value="").order_by("label"):
        aim = f" ({plain(core.description)})" if core.description else ""
        texts = [f"- {core.label}{aim}:", *(f"    {plain(line)}" for line in core.value.splitlines())]
        lines += [Line(core.pk, text) for text in texts]
    return lines


def observation_lines(
    *,
    scope: Scope,
    hits: Sequence[Hit],
    about: str = "",
    k: int = CALL_SITES["context"],
    now: datetime | None = None,
) -> list[Line]:
    """At most k lines, one per claim that is current and relevant: its label, then its words (R18). What is outdated
    comes last and says so (R5, R6). Six queries, one more per old row that nobody compared, or none.

    A row is relevant by the floor of the embedder's profile, or where `about` names its whole subject. `now` is the
    moment that periods and ages are told from, by default the database's clock.
    """
    subjects = dict(
        Observation.objects.in_scope(scope).filter(pk__in=[hit.id for hit in hits]).values_list("pk", "subject")
    )
    named = {pk for pk, subject in subjects.items() if selecting.names(query=about, subject=subject)}
    relevant = [hit.id for hit in hits if hit.relevant or hit.id in named]
    if not relevant:
        return []
    now = now or database_now()
    rows = _with_rivals(scope, [hit.id for hit in hits], shown=relevant[:k], now=now)
    picked = selecting.chosen([_candidate(row, row.pk in relevant) for row in rows.values()], now=now)[:k]
    cited = Evidence.objects.filter(scope=scope, observation__in=[each.id for each in picked])
    roots = dict(cited.values_list("observation_id").annotate(Count("root_source", distinct=True)))
    return [
        Line(each.id, _observed(rows[each.id], sources=roots.get(each.id, 0), outdated=each.outdated, now=now))
        for each in picked
    ]


def _with_rivals(scope: Scope, ids: Sequence[int], *, shown: Sequence[int], now: datetime) -> dict[int, Observation]:
    """The rows that are still current, in their order, then rows beside them, found or not, one of which may be what
    counts: the newest other values of their keys, and what shares its words with old rows that nobody compared.
    """
    current = Observation.objects.active().in_scope(scope)
    found = current.in_bulk(ids)
    doubts = {selecting.doubtful(_candidate(found[pk], True), now=now) for pk in shown if pk in found} - {""}
    beside = {pk for words in doubts for pk in retrieval.sharing(scope=scope, words=words)}
    keys = {row.sp_key for row in found.values()} - {0}
    rivals = current.filter(sp_key__in=keys).exclude(pk__in=ids).order_by("-created_at")[:MOST_RIVALS]
    others = [*rivals, *current.filter(pk__in=beside.difference(ids)).order_by("-created_at")]
    return {pk: found[pk] for pk in ids if pk in found} | {row.pk: row for row in others}


def _candidate(row: Observation, relevant: bool) -> Candidate:
    return Candidate(
        id=row.pk,
        text=row.text or "",
        said_at=row.created_at,
        text_key=row.text_key,
        subject_key=row.subject_key,
        sp_key=row.sp_key,
        spo_key=row.spo_key,
        valid_from=row.valid_from,
        valid_to=row.valid_to,
        rank=StatedBy(row.stated_by).rank,
        compared=row.reconciled_at is not None or row.derivation is not None,  # a summary is no news
        fades=row.half_life_days is not None,
        relevant=relevant,
    )


def _observed(row: Observation, *, sources: int, outdated: bool, now: datetime) -> str:
    mark = f", {OUTDATED}" if outdated else ""
    return f"- [{label(trust_of(row), sources=sources, age=now - row.created_at)}{mark}] {plain(row.text or '')}"


def residue_lines(*, scope: Scope) -> list[Line]:
    """What agents handed in at the end of their runs and first held less than three days ago, oldest first, where the
    scope keeps residue. Three queries.
    """
    if not Intake.objects.filter(scope=scope, residue=True).exists():
        return []
    now = database_now()
    held = Residue.objects.filter(scope=scope, first_held_at__gt=now - timedelta(days=RESIDUE_DAYS)).order_by("pk")
    return [
        Line(row.pk, f"- [{label(Trust.LOW)}, held {span(now - row.first_held_at)} ago] {plain(row.text)}")
        for row in held
    ]


def verbatim_lines(*, scope: Scope, session: str) -> list[Line]:
    """The last turns of a session, oldest first, word for word but for what our own fence held (R19). One query."""
    if not session:
        return []
    session = clean(session)[0]  # as it was stored
    turns = Episode.objects.filter(scope=scope, session=session, status=Status.ACTIVE).order_by(
        "-happened_at", "-seq", "-pk"
    )[:LAST_TURNS]
    said = ((turn, plain(without_own(turn.text or ""))) for turn in reversed(turns))
    return [
        Line(turn.pk, f"- [{label(Trust.HIGH)}] {plain(turn.speaker or turn.role or '?')}: {text}")
        for turn, text in said
        if text
    ]


# --- labels ----------------------------------------------------------------------------------------------------------


_LABELS: Final[Mapping[Trust, str]] = {
    Trust.HIGH: "trust: high",
    Trust.MEDIUM: "trust: medium",
    Trust.LOW: "trust: low, may contain hallucinations",
}


def label(trust: Trust, *, sources: int | None = None, age: timedelta = timedelta()) -> str:
    """How far a record can be trusted (R17-R19, R130), a claim with its citation: `trust: medium (3 sources, 2w ago)`.
    A model's words and verbatim ones are cited by their label alone.
    """
    cited = trust is Trust.MEDIUM and sources is not None
    return f"{_LABELS[trust]} ({citation(sources=sources or 0, age=age)})" if cited else _LABELS[trust]


def citation(*, sources: int, age: timedelta) -> str:
    """The tail of an entry: its distinct root sources, and how long ago it was first said."""
    counted = {0: "no source", 1: "1 source"}.get(sources, f"{sources} sources")
    return f"{counted}, {span(age)} ago"


_UNITS: Final = (("y", 365 * 86_400), ("mo", 30 * 86_400), ("w", 7 * 86_400), ("d", 86_400), ("h", 3_600), ("m", 60))


def span(passed: timedelta) -> str:
    """A span in its largest unit, whole ones only: s, m, h, d, w (7 days), mo (30 days), y (365 days)."""
    seconds = max(0, int(passed.total_seconds()))
    for unit, length in _UNITS:
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
