"""Rows of a probe file: our own, questions about dialogue, and dated facts, each as its file stands.

- Our own: `query`, `expected` (external ids) or `expected_texts`, `forbidden`, `outdated`, `category`, `negative`,
  `as_of`; and `{"unit": name, "ids": [...]}`: records that say the same.
- Questions: `query`, `expected_observation_ids`, `category`; those of the category adversarial are negative.
- Dated facts: `probe`, `subject`, `predicate` (or `predicate_id`), `object`, `valid_from`, `id`. The newest value of a
  key is expected and the others are outdated; a key whose newest values tie, or with one value only, asks nothing.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

LONGEST_QUERY: Final = 4_000  # characters
_MOST_NAMED: Final = 1_000  # records one line may name
_ADVERSARIAL: Final = "adversarial"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One probe as a file gives it: records by the writer's ids, or by their texts."""

    query: str
    expected: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()
    category: str = ""
    negative: bool = False
    as_of: datetime | None = None  # asked of what was believed then


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What a file holds."""

    lines: tuple[Line, ...]
    units: Mapping[str, int]  # external id -> number of its unit
    expect_nothing: int  # lines that ask and name no record
    unusable: tuple[str, ...]  # "line 7: ...", never with words of the file


class _Unusable(ValueError):
    """One line cannot be read; the text says why."""


def read(lines: Iterable[str]) -> Sheet:
    """All probes of a file of JSON lines. Raises nothing: what cannot be used is listed."""
    return read_rows((f"line {number}", text) for number, text in enumerate(lines, 1) if text.strip())


def read_rows(rows: Iterable[tuple[str, object]]) -> Sheet:
    """All probes of a file's rows, each with the words for where it stands; a text is JSON. Raises nothing."""
    probes: list[Line] = []
    facts: defaultdict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    units: dict[str, int] = {}
    unusable, empty, groups = [], 0, 0
    for where, found in rows:
        try:
            row = _row(found)
            if "unit" in row:
                groups += 1
                units |= dict.fromkeys(_names(row, "ids"), groups)
            elif "probe" in row:
                facts[_key(row)].append(row)
            elif (line := _line(row)).expected or line.texts or line.forbidden or line.negative:
                probes.append(line)
            else:
                empty += 1
        except _Unusable as why:
            unusable.append(f"{where}: {why}")
    dated = [fact for values in facts.values() if (fact := _dated(values))]
    quiet = empty + len(facts) - len(dated)
    return Sheet(lines=(*probes, *dated), units=units, expect_nothing=quiet, unusable=tuple(unusable))


def _row(found: object) -> Mapping[str, Any]:
    row = found
    if isinstance(found, str):
        try:
            row = json.loads(found)
        except (ValueError, RecursionError) as error:
            raise _Unusable("it is not JSON") from error
    if not isinstance(row, dict):
        raise _Unusable("it is not an object")
    return row


def _line(row: Mapping[str, Any]) -> Line:
    category = row.get("category", "")
    category = category[:40] if isinstance(category, str) else ""
    return Line(
        query=_query(row.get("query")),
        expected=_names(row, "expected", "expected_observation_ids"),
        texts=_names(row, "expected_texts"),
        forbidden=_names(row, "forbidden"),
        outdated=_names(row, "outdated"),
        category=category,
        negative=row.get("negative") is True or category == _ADVERSARIAL,
        as_of=_date(row.get("as_of")),
    )


def _query(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _Unusable("it asks nothing: give it a query")
    if len(value) > LONGEST_QUERY:
        raise _Unusable(f"its query is longer than {LONGEST_QUERY:,} characters")
    return value.replace("\0", "").strip()


def _names(row: Mapping[str, Any], *fields: str) -> tuple[str, ...]:
    found: object = next((row[field] for field in fields if field in row), [])
    if not isinstance(found, list) or not all(isinstance(name, str) and name for name in found):
        raise _Unusable(f"{fields[0]} is not a list of strings")
    if len(found) > _MOST_NAMED:
        raise _Unusable(f"{fields[0]} names more than {_MOST_NAMED:,} records")
    return tuple(dict.fromkeys(name.replace("\0", "") for name in found))


def _date(value: object) -> datetime | None:
    if value is None:
        return None
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError as error:
        raise _Unusable("as_of is not a date such as 2025-01-31") from error
    return found.replace(tzinfo=found.tzinfo or UTC)


# --- dated facts ------------------------------------------------------------------------------------------------------


def _key(row: Mapping[str, Any]) -> tuple[str, str]:
    _query(row["probe"])
    if not isinstance(row.get("id"), str) or not isinstance(row.get("valid_from"), str):
        raise _Unusable("a dated fact needs an id and valid_from")
    return str(row.get("subject", "")), str(row.get("predicate_id") or row.get("predicate", ""))


def _dated(values: list[Mapping[str, Any]]) -> Line | None:
    ordered = sorted(values, key=lambda row: row["valid_from"])
    if len(ordered) < 2 or ordered[-1]["valid_from"] == ordered[-2]["valid_from"]:
        return None
    newest = ordered[-1]
    earlier = tuple(row["id"] for row in ordered[:-1] if row.get("object") != newest.get("object"))
    return Line(query=_query(newest["probe"]), expected=(newest["id"],), outdated=earlier, category="dated fact")
