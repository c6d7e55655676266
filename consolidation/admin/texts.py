"""Memory text on a page. It is hostile: it arrives raw and leaves with nothing invisible in it; templates escape it.

No page is given a model: a page is given values whose texts went through this module (F5, O2).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from typing import Final

from consolidation.operations import visible

SNIPPET: Final = 180  # characters of a text in a list
WHOLE: Final = 20_000  # characters of a text on its own page; the rest is counted, not shown
COMPARED: Final = 1_500  # words of each text that are compared word by word
ERASED: Final = "text erased"
_WORDS: Final = re.compile(r"\s+|\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Words:
    """A run of a text that two texts share, or that only this one has."""

    text: str
    own: bool


@dataclass(frozen=True, slots=True)
class Text:
    """One memory text, ready to be shown."""

    words: tuple[Words, ...]
    erased: bool = False
    left_out: int = 0  # characters that are not shown

    @property
    def plain(self) -> str:
        """The text without marks."""
        return "".join(run.text for run in self.words)


def snippet(text: str | None, *, limit: int = SNIPPET) -> str:
    """The beginning of a text on one line."""
    if text is None:
        return ERASED
    return visible(text) if len(text) <= limit else f"{visible(text[:limit])}…"


def whole(text: str | None, *, lines: bool = True) -> Text:
    """A text on its own page. With `lines`, its own line breaks stay line breaks; nothing else is left unseen."""
    if text is None:
        return Text(words=(Words(text=ERASED, own=False),), erased=True)
    kept = text[:WHOLE]
    shown = "\n".join(visible(line) for line in kept.split("\n")) if lines else visible(kept)
    return Text(words=(Words(text=shown, own=False),), left_out=len(text) - len(kept))


def compared(text: str | None, *, to: str | None) -> Text:
    """A text, marked where another differs from it. Put together, the runs are the text, exactly."""
    plain = whole(text, lines=False)
    if text is None or to is None:
        return plain
    mine, others = _WORDS.findall(plain.plain), _WORDS.findall(whole(to, lines=False).plain)
    if max(len(mine), len(others)) > COMPARED:
        return plain
    return Text(words=tuple(_runs(mine, others)), left_out=plain.left_out)


def _runs(mine: Sequence[str], others: Sequence[str]) -> list[Words]:
    matched = SequenceMatcher(a=[_folded(word) for word in others], b=[_folded(word) for word in mine], autojunk=False)
    runs: list[Words] = []
    for tag, _, _, start, end in matched.get_opcodes():
        if start == end:
            continue
        own = tag != "equal" and not "".join(mine[start:end]).isspace()
        runs.append(Words(text="".join(mine[start:end]), own=own))
    return _joined(runs)


def _joined(runs: Sequence[Words]) -> list[Words]:
    """Marked words with only a space between them as one mark, which neither begins nor ends with a space."""
    joined: list[Words] = []
    for position, run in enumerate(runs):
        between = run.text.isspace() and 0 < position < len(runs) - 1
        own = run.own or (between and runs[position - 1].own and runs[position + 1].own)
        if joined and joined[-1].own == own:
            joined[-1] = Words(text=joined[-1].text + run.text, own=own)
        else:
            joined.append(Words(text=run.text, own=own))
    return [part for run in joined for part in _trimmed(run)]


def _trimmed(run: Words) -> list[Words]:
    core = run.text.strip()
    if not run.own or not core:
        return [run]
    before, _, after = run.text.partition(core)
    parts = (Words(text=before, own=False), Words(text=core, own=True), Words(text=after, own=False))
    return [part for part in parts if part.text]


def _folded(word: str) -> str:
    return " " if word.isspace() else word


def when(moment: datetime | None) -> str:
    """A time as every page shows it: UTC, to the minute."""
    return f"{moment.day} {moment:%b %Y, %H:%M}" if moment else ""


def day(moment: datetime | None) -> str:
    """A day as every page shows it."""
    return f"{moment.day} {moment:%b %Y}" if moment else ""


def period(start: datetime | None, end: datetime | None) -> str:
    """A validity period in words; empty when it is open on both sides."""
    if start and end:
        return f"{day(start)} to {day(end)}"
    if start:
        return f"from {day(start)}"
    return f"until {day(end)}" if end else ""


def flat(value: object, *, name: str = "") -> list[tuple[str, str]]:
    """A JSON value as (path, value) lines, for figures whose shape belongs to a rule; every string made visible."""
    if isinstance(value, Mapping):
        return [line for key, item in value.items() for line in flat(item, name=f"{name} {key}".strip())]
    if isinstance(value, list | tuple):
        if all(not isinstance(item, Mapping | list | tuple) for item in value):
            return [(visible(name), ", ".join(_scalar(item) for item in value))] if value else []
        return [line for number, item in enumerate(value, 1) for line in flat(item, name=f"{name} {number}".strip())]
    return [(visible(name), _scalar(value))]


def _scalar(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    return (
        {True: "yes", False: "no", None: "none"}[value]
        if value is None or isinstance(value, bool)
        else visible(str(value))
    )
