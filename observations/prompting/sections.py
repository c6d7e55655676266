"""The sections of a prompt, when each is cleaned, and those that show what is stored as it stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from observations.fencing import plain, without_own
from observations.models import CoreMemory, CoreRevision, Episode, Intake, Residue, Scope, database_now
from observations.normalise import clean
from observations.prompting.labels import label, span
from observations.records import Status
from observations.retrieval import Trust

RESIDUE_DAYS: Final = 3  # after it was first held a residue is in no prompt any more
LAST_TURNS: Final = 6  # of a session, word for word


class Clean(StrEnum):
    """When what a section shows was made fit to be read (R10): one of both must have happened."""

    ON_WRITE = "on write"  # what is stored was reconciled, or written by whoever may
    ON_READ = "on read"  # what is shown was selected from what is stored


class Section(StrEnum):
    """The sections of a prompt, in their order."""

    CORE = "Core memory"
    OBSERVATIONS = "Observations"
    EPISODES = "Episodes and summaries"
    RESIDUE = "Residue of the last runs"
    VERBATIM = "Said last"


class Undeclared(Exception):
    """A section does not say when it is cleaned: add it to CLEAN, on write or on read (R10)."""


def declared(sections: Iterable[str], clean: Mapping[Section, Clean]) -> Mapping[Section, Clean]:
    """What was given, once every section is in it. Raises Undeclared naming those that are not (R10)."""
    if missing := sorted(set(sections) - set(clean)):
        raise Undeclared(f"{', '.join(missing)}: say in prompting.CLEAN when it is cleaned, on write or on read.")
    return clean


CLEAN: Final = declared(
    Section,
    {
        Section.CORE: Clean.ON_WRITE,
        Section.OBSERVATIONS: Clean.ON_WRITE,  # and `selecting` looks again, at what came in past the reconciler
        Section.EPISODES: Clean.ON_READ,
        Section.RESIDUE: Clean.ON_READ,
        Section.VERBATIM: Clean.ON_WRITE,
    },
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a section, as it stands in the prompt; `id` is the row's it shows."""

    id: int
    text: str
    outdated: bool = False  # marked so


# --- what is shown as it is stored -----------------------------------------------------------------------------------


def core_lines(*, scope: Scope, as_of: datetime | None = None) -> list[Line]:
    """Every core memory that says something, or said something at a moment, by label; what it is for stands behind the
    label. One query, two for the past.
    """
    memories = list(CoreMemory.objects.filter(scope=scope).order_by("label"))
    said = _said_then(scope, as_of) if as_of else {core.pk: core.value for core in memories}
    lines: list[Line] = []
    for core in memories:
        if value := said.get(core.pk):
            aim = f" ({plain(core.description)})" if core.description else ""
            texts = [f"- {plain(core.label)}{aim}:", *(f"    {plain(line)}" for line in value.splitlines())]
            lines += [Line(core.pk, text) for text in texts]
    return lines


def _said_then(scope: Scope, moment: datetime) -> dict[int, str]:
    """What each core memory said at a moment, by its revisions; what was erased since is not known any more."""
    revisions = CoreRevision.objects.filter(scope=scope, at__lte=moment).order_by("core_id", "-number")
    return {core: value or "" for core, value in revisions.distinct("core_id").values_list("core_id", "value")}


def residue_lines(*, scope: Scope, as_of: datetime | None = None) -> list[Line]:
    """What agents handed in at the end of their runs and first held less than three days ago, oldest first, where the
    scope keeps residue. Three queries. Of a moment longer ago nothing is left: residue is not kept.
    """
    if not Intake.objects.filter(scope=scope, residue=True).exists():
        return []
    now = as_of or database_now()
    held = Residue.objects.filter(
        scope=scope, first_held_at__gt=now - timedelta(days=RESIDUE_DAYS), first_held_at__lte=now
    )
    return [
        Line(row.pk, f"- [{label(Trust.LOW)}, held {span(now - row.first_held_at)} ago] {plain(row.text)}")
        for row in held.order_by("pk")
    ]


def verbatim_lines(*, scope: Scope, session: str, as_of: datetime | None = None) -> list[Line]:
    """The last turns of a session, oldest first, word for word but for what our own fence held (R19). One query."""
    if not session:
        return []
    session = clean(session)[0]  # as it was stored
    turns = Episode.objects.filter(scope=scope, session=session, status=Status.ACTIVE)
    if as_of:
        turns = turns.filter(happened_at__lte=as_of)
    last = turns.order_by("-happened_at", "-seq", "-pk")[:LAST_TURNS]
    said = ((turn, turn_text(turn)) for turn in reversed(last))
    return [Line(turn.pk, f"- [{label(Trust.HIGH)}] {text}") for turn, text in said if text]


def turn_text(turn: Episode) -> str:
    """Who said what, as one line; "" for a turn that says nothing but our own block."""
    text = plain(without_own(turn.text or ""))
    return f"{plain(turn.speaker or turn.role) or '?'}: {text}" if text else ""
