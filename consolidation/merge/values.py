"""The values of one subject and predicate: whether somebody judged them already, their order in time, what to suggest.

A predicate holds one value at a time until the policy or a reviewer says that it holds many: two birthdays are a
contradiction, two hobbies are none. Nobody has to know it in advance; the first question teaches it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Final, TypeAlias

from consolidation.merge.judging import Pair, contradicts
from consolidation.operations import Json
from consolidation.policy import Policy
from observations.records import Record

Key: TypeAlias = tuple[str, str]  # subject and predicate, normalised

# Measured on the 259 keys of facts_timeline.jsonl that have several values: two at one moment in 10 keys, mostly loose
# dates of what has one value at a time (residence, spouse, citizenship); four and five in 2 keys, which have many.
_AT_ONCE: Final = 3
# How many values there are says little: the longest series there, 8 values, is one value at a time in every key.
_UNDATED: Final = 12


def holds(predicate: str, *, policy: Policy, cardinality: Mapping[str, str]) -> str:
    """How many values a normalised predicate has at a time: "one", "many", or "" while nobody said. The policy wins."""
    return policy.value_count(predicate) or cardinality.get(predicate, "")


def several(records: Iterable[Record]) -> dict[Key, list[Record]]:
    """The rows of every key that has two objects or more, by id; keys in order."""
    rows: defaultdict[Key, list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda record: record.id):
        if record.has_key:
            rows[record.key[:2]].append(record)
    return {key: rows[key] for key in sorted(rows) if len({row.key[2] for row in rows[key]}) > 1}


# --- what was judged already -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the values of one key stand after what people decided."""

    asked: bool  # two values that nobody has judged: a person decides between all
    first: bool = False  # before any merge: one would carry a verdict to a row that it was not given for


def beside(records: Mapping[int, Record], settled: Iterable[Pair]) -> dict[int, set[int]]:
    """Per row, the rows with another value of its key that it was judged beside."""
    found: defaultdict[int, set[int]] = defaultdict(set)
    for a, b in settled:
        if a in records and b in records and contradicts(records[a], records[b]):
            found[a].add(b)
            found[b].add(a)
    return found


def standing(rows: Sequence[Record], judged: Mapping[int, set[int]]) -> Standing:
    """Where the rows of one key stand; `judged` is what `beside` found.

    A row that says again, within its period, what a judged one says is judged as that one is. A row that says it for
    another time may be a change back, so it is asked about, and not merged into the judged row before.
    """
    if not any(judged.get(row.id) for row in rows):
        return Standing(asked=True)
    apart = _apart(rows, judged)
    of_object = Counter(row.key[2] for row in rows)
    ways: defaultdict[str, set[frozenset[int]]] = defaultdict(set)
    for row in rows:
        ways[row.key[2]].add(apart[row.id])
    return Standing(
        asked=any(len(apart[row.id]) < len(rows) - of_object[row.key[2]] for row in rows),
        first=any(len(ways_of_one) > 1 for ways_of_one in ways.values()),
    )


def _apart(rows: Sequence[Record], judged: Mapping[int, set[int]]) -> dict[int, frozenset[int]]:
    """Per row, the rows it counts as judged beside, repetitions included."""
    told: defaultdict[str, list[Record]] = defaultdict(list)
    for row in rows:
        if judged.get(row.id):
            told[row.key[2]].append(row)
    repeats = {row.id: [one.id for one in told[row.key[2]] if _within(row, one)] for row in rows}
    repeated_by: defaultdict[int, list[int]] = defaultdict(list)
    for again, ones in repeats.items():
        for one in ones:
            repeated_by[one].append(again)
    return {
        row.id: frozenset(
            again for one in repeats[row.id] for other in judged[one] for again in repeated_by.get(other, ())
        )
        for row in rows
    }


def _within(a: Record, b: Record) -> bool:
    """Whether the period of a lies in that of b; None is open."""
    starts = b.valid_from is None or (a.valid_from is not None and a.valid_from >= b.valid_from)
    return starts and (b.valid_to is None or (a.valid_to is not None and a.valid_to <= b.valid_to))


# --- what to suggest -------------------------------------------------------------------------------------------------


def in_order(rows: Sequence[Record]) -> list[Record]:
    """The rows in order of time, the newest last: by the start of their periods where every row has one, else by when
    they were first said.
    """
    dated = all(row.valid_from is not None for row in rows)
    return sorted(rows, key=lambda row: ((row.valid_from if dated else None) or row.created_at, row.created_at, row.id))


def at_once(rows: Iterable[Record]) -> int:
    """The most values whose closed periods share a moment. An open end is no word that a value still holds."""
    closed = sorted(
        (row.valid_from, row.valid_to, row.key[2])
        for row in rows
        if row.valid_from is not None and row.valid_to is not None
    )
    most = 0
    held: list[tuple[datetime, datetime, str]] = []
    for start, begun in groupby(closed, key=lambda period: period[0]):
        held = [period for period in held if period[1] > start] + list(begun)
        most = max(most, len({value for _, _, value in held}))
    return most


def suggestion(rows: Sequence[Record], *, known: str) -> dict[str, Json]:
    """What a SUPERSEDE suggests, never assumes: every value in its period, the newest, or that the predicate has many.

    `known` is what `holds` said. `order` lists the rows in order of time; `suggested_keep` is there for the newest
    only.
    """
    ordered = in_order(rows)
    order: list[Json] = [row.id for row in ordered]
    values, together = len({row.key[2] for row in rows}), at_once(rows)
    if together == 1 and all(row.valid_from is not None and row.valid_to is not None for row in rows):
        return {"suggested": "periods", "why": "every value has a period of its own, and none overlap", "order": order}
    if known != "one" and (together >= _AT_ONCE or values > _UNDATED):
        why = f"{together} of them at one moment" if together >= _AT_ONCE else "not all in periods of their own"
        return {"suggested": "many", "why": f"{values} values, {why}: it looks many-valued", "order": order}
    newest = ordered[-1].id
    return {
        "suggested": "newest",
        "suggested_keep": newest,
        "why": "newer is suggested, never assumed",
        "order": order,
    }
