"""Rows that several pages tell of, as values: a status, a key, a piece of evidence, an event."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from consolidation.admin.reading import STATE_WORDS, Chip
from consolidation.admin.texts import flat, snippet, when
from consolidation.operations import visible
from observations.models import Event, Evidence, GivenKey, Observation


@dataclass(frozen=True, slots=True)
class Witness:
    """One piece of evidence."""

    uri: str
    root: str  # empty: the source is its own root
    quote: str
    episode: int | None  # the episode it is, where that is one of ours


@dataclass(frozen=True, slots=True)
class Happened:
    """One event of the operation's history."""

    at: str
    iso: str
    what: str
    who: str
    detail: tuple[tuple[str, str], ...]
    tone: str


def status_chip(status: str) -> Chip:
    """A row's status with its colour."""
    tones = {"active": "done", "superseded": "back", "archived": "quiet", "retracted": "no", "quarantined": "warn"}
    return Chip(word=status, tone=tones.get(status, "bad"))


def key_words(row: Observation, given: GivenKey | None = None) -> str:
    """Subject, predicate and object on one line, with the parts that a model gave where the writer gave none."""
    return key_line(row.key_with(given))


def key_line(parts: tuple[str, str, str]) -> str:
    """A key on one line; empty where it has no part."""
    return " · ".join(visible(part) or "—" for part in parts) if any(parts) else ""


def witness(row: Evidence) -> Witness:
    """One piece of evidence; its source is shown as text, never as a link."""
    root = "" if row.root_source == row.source_uri else snippet(row.root_source)
    quote = snippet(row.quote) if row.quote else ""
    return Witness(uri=snippet(row.source_uri), root=root, quote=quote, episode=row.episode_id)


_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00")
_EVENT_TONES = {
    "approved": "go",
    "applied": "done",
    "undone": "back",
    "rejected": "no",
    "distinct": "no",
    "stale": "warn",
}


def happened(event: Event) -> Happened:
    """One event, to be read."""
    return Happened(
        at=when(event.at),
        iso=event.at.isoformat(),
        what=visible(event.action.replace("_", " ")),
        who=visible(event.actor),
        detail=tuple(_noted(name, value) for name, value in flat(event.detail) if _says_something(name, value)),
        tone=_EVENT_TONES.get(event.action, "quiet"),
    )


def _says_something(name: str, value: str) -> bool:
    return name != "digest" and value not in ("", "none")


def _noted(name: str, value: str) -> tuple[str, str]:
    """One line of an event's detail: a state in words, a moment as a moment."""
    words = value
    if name == "from":
        words = STATE_WORDS.get(value, value)
    elif _MOMENT.fullmatch(value):
        words = when(datetime.fromisoformat(value))
    return name.replace("_", " "), words
