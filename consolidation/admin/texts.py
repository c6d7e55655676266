"""Memory text on a page. It is hostile: it arrives raw and leaves with nothing invisible in it; templates escape it.

No page is given a model: a page is given values whose texts went through this module (F5, O2).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import SequenceMatcher
from typing import Final

from django.template import Library
from django.utils.html import format_html

from consolidation.operations import visible

SNIPPET: Final = 180  # characters of a text in a list
WHOLE: Final = 20_000  # characters of a text on a page that nobody decides by; the rest is counted, not shown
LONG: Final = 3_000  # characters from which on a text scrolls in a region of its own
COMPARED: Final = 1_500  # words of each text that are compared word by word
AROUND: Final = 240  # characters of context on each side of marked words
ERASED: Final = "text erased"
_LAID_OUT: Final = re.compile(r"([\n\t]+)")  # between tags, as templates are written
register: Final = Library()  # {% load texts %}: see TEMPLATES
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

    @property
    def long(self) -> bool:
        """It is shown in a region that scrolls."""
        return sum(len(run.text) for run in self.words) > LONG


def snippet(text: str | None, *, limit: int = SNIPPET) -> str:
    """The beginning of a text on one line."""
    if text is None:
        return ERASED
    return visible(text) if len(text) <= limit else f"{visible(text[:limit])}…"


def whole(text: str | None, *, lines: bool = True, most: int | None = WHOLE) -> Text:
    """A text on its own page, up to `most` characters of it; None: all. With `lines`, its own line breaks stay line
    breaks; nothing else is left unseen.
    """
    if text is None:
        return Text(words=(Words(text=ERASED, own=False),), erased=True)
    kept = text[:most]
    shown = _shown(kept) if lines else visible(kept)
    return Text(words=(Words(text=shown, own=False),), left_out=len(text) - len(kept))


def marked(
    text: str | None, spans: Iterable[tuple[int, int]], *, around: int | None = None, most: int | None = WHOLE
) -> Text:
    """A text on its own page, up to `most` characters of it, with places of it marked: each a start and an end in code
    points.

    Marks grow to whole words, so that nothing is shown otherwise than in the whole text, and places that are not in it
    mark nothing. `around`: only the marked part, or the beginning, with that many characters on each side; the rest is
    counted.
    """
    if text is None:
        return whole(None)
    kept = text[:most]
    places = _places(kept, spans)
    first, last = 0, len(kept)
    if around is not None:
        marks = places or [(0, 0)]
        first = _outward(kept, max(0, marks[0][0] - around), -1)
        last = _outward(kept, min(len(kept), marks[-1][1] + around), 1)
    runs = [Words(text="… ", own=False)] if first else []
    at = first
    for start, end in places:
        runs += [Words(text=_shown(kept[at:start]), own=False), Words(text=_shown(kept[start:end]), own=True)]
        at = end
    runs += [Words(text=_shown(kept[at:last]), own=False), Words(text=" …" if last < len(text) else "", own=False)]
    return Text(words=tuple(run for run in runs if run.text), left_out=len(text) - (last - first))


def _shown(text: str) -> str:
    return "\n".join(visible(line) for line in text.split("\n"))


def _places(text: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The places in order, whole words each, those that touch as one."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if not 0 <= start < end or start >= len(text):
            continue
        wide = _outward(text, start, -1), _outward(text, min(end, len(text)), 1)
        if found and wide[0] <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], wide[1])
        else:
            found.append(wide)
    return found


def _outward(text: str, at: int, step: int) -> int:
    """The nearest place from `at` on, in the direction of the step, that splits no word and no pile of marks."""
    while 0 < at < len(text) and _joined_up(text[at - 1], text[at]):
        at += step
    return at


def _joined_up(before: str, after: str) -> bool:
    return unicodedata.category(after) in ("Mn", "Me") or (_is_word(before) and _is_word(after))


def _is_word(character: str) -> bool:
    return character == "_" or character.isalnum()


def compared(text: str | None, *, to: str | None, most: int | None = WHOLE) -> Text:
    """A text, up to `most` characters of it, marked where another differs from it. Put together, the runs are the
    text, exactly.
    """
    plain = whole(text, lines=False, most=most)
    if text is None or to is None:
        return plain
    mine, others = _WORDS.findall(plain.plain), _WORDS.findall(whole(to, lines=False, most=most).plain)
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


@dataclass(frozen=True, slots=True)
class Change:
    """A run of a text as an edit left it: "same", "added" or "removed"."""

    text: str
    sort: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A text before and after an edit, as one; or only after it, where that cannot be compared word by word."""

    runs: tuple[Change, ...]
    compared: bool = True
    blank: bool = False  # only spaces and line ends differ
    left_out: int = 0  # characters that are not shown

    @property
    def changed(self) -> bool:
        """Whether anything differs."""
        return any(run.sort != "same" for run in self.runs)

    @property
    def long(self) -> bool:
        """It is shown in a region that scrolls."""
        return sum(len(run.text) for run in self.runs) > LONG


def edited(before: str | None, after: str | None, *, most: int | None = WHOLE) -> Edit:
    """An edit word by word, of up to `most` characters of each text; spaces and line ends count, because an edit is
    exact. What is too long, or erased on one side, is shown as it is after the edit.
    """
    if before is None or after is None:
        return Edit(runs=(Change(whole(after).plain, "same"),), compared=False)
    old, new = (_WORDS.findall(_shown(text[:most])) for text in (before, after))
    start, end = _shared(old, new)
    middles = old[start : len(old) - end], new[start : len(new) - end]
    if max(map(len, middles)) > COMPARED:
        kept = _shown(after[:WHOLE])
        return Edit(runs=(Change(kept, "same"),), compared=False, left_out=max(0, len(after) - WHOLE))
    left_out = max(0, len(after) - most) if most is not None else 0
    runs = [("".join(new[:start]), "same"), *_changes(*middles), ("".join(new[len(new) - end :]), "same")]
    changes = tuple(Change(text, sort) for text, sort in runs if text)
    return Edit(runs=changes, blank=all(one.sort == "same" or one.text.isspace() for one in changes), left_out=left_out)


def _shared(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many words two texts share at their beginning, and then at their end."""
    most = min(len(old), len(new))
    start = next((at for at in range(most) if old[at] != new[at]), most)
    end = next((at for at in range(most - start) if old[-1 - at] != new[-1 - at]), most - start)
    return start, end


def _changes(old: Sequence[str], new: Sequence[str]) -> list[tuple[str, str]]:
    found = []
    for tag, i, j, k, m in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        left, come = "".join(old[i:j]), "".join(new[k:m])
        found += [(come, "same")] if tag == "equal" else [(left, "removed"), (come, "added")]
    return found


def _folded(word: str) -> str:
    return " " if word.isspace() else word


@register.filter(is_safe=True)
def unhidden(markup: str) -> str:
    """Markup that Django draws by itself, with nothing in its texts that a reader could not see (F5)."""
    return "".join(part if _LAID_OUT.fullmatch(part) else visible(part) for part in _LAID_OUT.split(markup))


class Told(str):
    """A text that holds times: plain wherever it is text, and on a page with each of them as a `<time>`, which the
    page's script turns into the reader's zone (times.js).
    """

    __slots__ = ("_html",)
    _html: str

    def __html__(self) -> str:
        """The text as a template writes it, escaped."""
        return self._html


def told(words: str, *parts: str) -> Told:
    """Words with parts of it, some of them times, in the places marked {}; every part is escaped on a page."""
    text = Told(words.format(*parts))
    text._html = format_html(words, *parts)
    return text


def when(moment: datetime | None) -> str:
    """A time as every page shows it: UTC, to the minute, until the reader's browser knows better."""
    if not moment:
        return ""
    utc = moment.astimezone(UTC)
    text = Told(f"{utc.day} {utc:%b %Y, %H:%M}")
    text._html = format_html('<time datetime="{}">{}</time>', utc.isoformat(), str(text))
    return text


def signed(who: str, moment: datetime | None) -> str:
    """Who did something, and when; empty if nobody did yet."""
    return told("{}, {}", visible(who), when(moment)) if moment else ""


def spoken(who: str, moment: datetime | None) -> str:
    """Who said something and when, as far as either is known."""
    return signed(who, moment) if who and moment else visible(who) or when(moment)


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
