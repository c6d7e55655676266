"""What a person chooses between where live values contradict: a suggestion, the choices, the periods drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from consolidation.admin.item.sources import Records, Source, in_order
from consolidation.admin.texts import day, period
from consolidation.models import Operation
from consolidation.operations import Kind, obs, visible
from observations.models import Observation

QUOTED: Final = 90  # characters of a value in its choice
EDGE: Final = 6.0  # of a hundred parts of the picture's width: room for what has no beginning or no end
_DAY: Final = timedelta(days=1)
_SUGGESTED: Final = {
    "newest": "Keep the newest, {keep}",
    "periods": "All are true, each in its period",
    "many": "All are true: it holds several values",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to settle it."""

    value: str
    title: str
    quote: str = ""
    hint: str = ""
    under: str = ""  # what is asked for with it: "periods" or "text"
    key: str = ""  # the key that chooses it; empty: none does


@dataclass(frozen=True, slots=True)
class Bar:
    """When one value is true, as parts of a hundred of the picture's width."""

    name: str
    words: str
    start: str
    width: str  # of what is known; empty: nothing is
    open: tuple[tuple[str, str], ...]  # from where to where its beginning or end is not known
    said: str  # where the mark of when it was first said stands
    said_on: str
    quote: str = ""
    by: str = ""  # whose word it is
    evidence: int = 0  # pieces
    suggested: bool = False


@dataclass(frozen=True, slots=True)
class Timeline:
    """The periods of the values under each other, in the page's order."""

    bars: tuple[Bar, ...]
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Values:
    """The values of one subject and predicate, and how to settle them."""

    predicate: str
    suggested: str  # in words; empty: nothing is suggested
    why: str
    choices: tuple[Choice, ...]
    timeline: Timeline


def values(operation: Operation, records: Records, shown: Sequence[Source], *, now: datetime) -> Values | None:
    """What the page of a contradiction adds; None for other kinds. `shown` are its cards, in their order. No query."""
    if operation.kind != Kind.SUPERSEDE or not shown:
        return None
    rows = in_order(operation, records)
    product = operation.product
    keep = product.get("suggested_keep") or operation.keeper_id
    words = _SUGGESTED.get(str(product.get("suggested") or ("newest" if keep else "")), "")
    newest = max(rows, key=lambda row: (row.created_at, row.pk))
    predicate = visible(newest.key_with(records.given.get(newest.pk))[1])
    return Values(
        predicate=predicate,
        suggested=words.format(keep=obs(keep) if isinstance(keep, int) else ""),
        why=visible(str(product.get("why") or "newer is suggested, never assumed")) if words else "",
        choices=_choices(shown, predicate),
        timeline=_told(timeline(rows, now=now), shown, keep),
    )


def _choices(shown: Sequence[Source], predicate: str) -> tuple[Choice, ...]:
    every = "Both are" if len(shown) == 2 else "All are"
    many = Choice(
        value="many",
        title=f"{every} true: it holds several values",
        hint=f"Remembered: in this scope, “{predicate}” may hold several values from now on.",
    )
    kept = tuple(
        Choice(f"keep:{source.id}", f"Keep {source.name}", _quote(source), key=str(place) if place < 10 else "")
        for place, source in enumerate(shown, 1)
    )
    return (
        *kept,
        Choice(value="both", title=f"{every} true, each in its period", under="periods", key="b"),
        *([many] if predicate else []),  # without one there is nothing to remember, and the review refuses it
        Choice(value="text", title="None of them", hint="Write the right claim.", under="text"),
    )


def _quote(source: Source) -> str:
    plain = source.text.plain
    return plain if len(plain) <= QUOTED else f"{plain[:QUOTED]}…"


def periods(shown: Sequence[Source], given: Mapping[str, str]) -> list[tuple[int, str, str, str]]:
    """Id, name, first and last day of every value for the form: the row's own, or what was entered before. No query."""
    return [
        (
            source.id,
            source.name,
            visible(given.get(f"from_{source.id}", source.valid_from)),
            visible(given.get(f"to_{source.id}", source.valid_to)),
        )
        for source in shown
    ]


# --- the picture ----------------------------------------------------------------------------------------------------


def timeline(rows: Sequence[Observation], *, now: datetime) -> Timeline:
    """When each value is true. What has no known beginning or end runs to the picture's edge, in dashes."""
    moments = [moment for row in rows for moment in (row.valid_from, row.valid_to, row.created_at) if moment]
    going_on = any(row.valid_from and not row.valid_to for row in rows)
    first, last = min(moments), max([*moments, now] if going_on else moments)
    return Timeline(
        bars=tuple(_bar(row, first, last) for row in rows),
        first=day(first),
        last="today" if last == now else day(last) if last - first >= _DAY else "",
    )


def _told(drawn: Timeline, shown: Sequence[Source], keep: object) -> Timeline:
    """The picture with whose word each value is, what stands behind it, and which is suggested. Same order."""
    bars = tuple(
        replace(bar, quote=_quote(source), by=source.by, evidence=source.evidence, suggested=source.id == keep)
        for bar, source in zip(drawn.bars, shown, strict=True)
    )
    return replace(drawn, bars=bars)


def _bar(row: Observation, first: datetime, last: datetime) -> Bar:
    start = _across(row.valid_from, first, last) if row.valid_from else None
    end = _across(row.valid_to, first, last) if row.valid_to else None
    known = start is not None
    stop = end if end is not None else 100 - EDGE
    gaps = [] if known else [(0.0, stop if end is not None else 100.0)]
    gaps += [(stop, 100.0)] if known and end is None else []
    return Bar(
        name=obs(row.pk),
        words=period(row.valid_from, row.valid_to) or "no period given",
        start=f"{start or 0:.1f}",
        width=f"{max(1.0, stop - start):.1f}" if start is not None else "",
        open=tuple((f"{left:.1f}", f"{right:.1f}") for left, right in gaps),
        said=f"{_across(row.created_at, first, last):.1f}",
        said_on=day(row.created_at),
    )


def _across(moment: datetime, first: datetime, last: datetime) -> float:
    share = (moment - first) / (last - first) if last > first else 0.5
    return EDGE + share * (100 - 2 * EDGE)
