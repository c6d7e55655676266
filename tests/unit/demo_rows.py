"""The demo's rows as its tests look at them: pure, read once."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, TypeVar

from consolidation.policy import Policy
from memory_site.demo import POLICIES, Deed, lines
from observations.normalise import tokens

NOW: Final = datetime(2031, 3, 9, 14, 30, tzinfo=UTC)
Row = dict[str, object]
Value = TypeVar("Value")


@lru_cache(maxsize=1)
def rows() -> tuple[Row, ...]:
    return tuple(lines(now=NOW))


def of_kind(kind: str) -> list[Row]:
    return [row for row in rows() if row["kind"] == kind]


def taken(row: Row, name: str, kind: type[Value]) -> Value:
    """A field of one row, which must be of one type."""
    value = row[name]
    assert isinstance(value, kind), f"{row['id']}: {name} is {value!r}"
    return value


def moment(row: Row, name: str = "created_at") -> datetime:
    return datetime.fromisoformat(taken(row, name, str))


def place(row: Row, external_id: str | None = None) -> tuple[str, str]:
    return taken(row, "scope", str), external_id or taken(row, "id", str)


def by_place() -> dict[tuple[str, str], Row]:
    return {place(row): row for row in rows()}


def active() -> list[Row]:
    """Observations that no line supersedes."""
    gone = {place(row, taken(row, "supersedes", str)) for row in rows() if "supersedes" in row}
    return [row for row in of_kind("observation") if place(row) not in gone]


def plain(row: Row, name: str) -> str:
    return " ".join(tokens(taken(row, name, str)))


def claims_by_key() -> dict[tuple[str, str, str], dict[str, list[Row]]]:
    """Active keyed observations: (scope, subject, predicate) to object to rows, all compared as the planner does."""
    found: dict[tuple[str, str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in active():
        if "subject" in row:
            key = (taken(row, "scope", str), plain(row, "subject"), plain(row, "predicate"))
            found[key][plain(row, "object")].append(row)
    return found


def policy_of(scope: str) -> Policy:
    """The policy of the demo for a scope; the defaults where it has none."""
    bodies = {one.pattern: one.body for one in POLICIES}
    return Policy.from_dict(bodies.get(scope, {}))


def deed_rows(deed: Deed) -> list[Row]:
    found = {place(row): row for row in active()}
    return [found[deed.scope, source] for source in deed.sources]
