"""Demo memory: two years in the life of four scopes, written for this project, told relative to whatever `now` is.

The rows lie beside this module, one JSONL file per scope, oldest first, in the import format with `days_ago`,
`valid_from_days_ago` and `valid_to_days_ago` where the format has points in time. They count days (with fractions) back
from the last UTC midnight, so that people talk at the hours people talk at, and a second load on one day adds nothing.
Nothing here touches a database: whoever loads the demo imports `lines`, supersedes what a line's `supersedes` names,
and lets EARLIER_MERGES and RETENTION set the scene.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Final

SCOPES: Final = ("team/relay-platform", "support/harbor-desk", "people/maya-okafor", "research/tidewater-lab")


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """What the demo's only retention rule says: rows of one origin that may be proposed for pruning by age."""

    scope_pattern: str  # a scope, or a prefix ending in /*
    stated_by: str  # never user (R47)
    days: int  # since created_at


@dataclass(frozen=True, slots=True)
class EarlierMerge:
    """A merge that the demo applies before anyone looks, so that archived sources and their derived row exist."""

    scope: str
    sources: tuple[str, ...]  # external ids, two or more, all active in `lines`
    query: str  # a search that finds the derived row: its first use (R51)


# Outage and queue notes of the status tools: worth nothing two seasons later, and nobody's own words.
RETENTION: Final = RetentionRule(scope_pattern="support/harbor-desk", stated_by="tool", days=540)

# All but the first rest on agents' rows only, so once the derived row was used their sources may be proposed for
# pruning (R51); the first holds what users said, which must never be proposed (R47).
EARLIER_MERGES: Final = (
    EarlierMerge(
        scope="team/relay-platform",
        sources=("relay-o059", "relay-o060", "relay-o061"),
        query="which time zone do we use in notes and log quotes?",
    ),
    EarlierMerge(
        scope="support/harbor-desk",
        sources=("harbor-o009", "harbor-o010", "harbor-o011"),
        query="when does the office screen hold a berth?",
    ),
    EarlierMerge(
        scope="support/harbor-desk",
        sources=("harbor-o050", "harbor-o051"),
        query="a member sees a second authorisation on his card",
    ),
    EarlierMerge(
        scope="people/maya-okafor",
        sources=("maya-o025", "maya-o026"),
        query="which of Zadie's friends cannot have egg?",
    ),
)

# The only texts that stand twice in a scope on purpose: the same line from two sources, which merges without a key.
REPEATED_TEXTS: Final = frozenset(
    {
        (
            "research/tidewater-lab",
            "Job 88213 finished with 4 chains of 2,000 draws and a maximum R-hat of 1.01.",
        ),
    }
)

_TIMES: Final = {
    "days_ago": "created_at",
    "valid_from_days_ago": "valid_from",
    "valid_to_days_ago": "valid_to",
}


def lines(*, now: datetime) -> Iterator[dict[str, object]]:
    """The demo's rows in the import format, one scope after the other, oldest first within a scope.

    Pure: the same UTC day gives the same rows, none later than `now`. An observation that corrects another names it in
    `supersedes` (external id, same scope, always an earlier line). Raises ValueError when `now` has no zone.
    """
    if now.tzinfo is None:
        raise ValueError("now needs a time zone: pass an aware datetime.")
    for scope in SCOPES:
        for row in _rows(scope):
            yield {_TIMES.get(name, name): _told(name, value, now=now) for name, value in row.items()}


def _rows(scope: str) -> Iterator[dict[str, object]]:
    with files(__name__).joinpath(f"{scope.rpartition('/')[2]}.jsonl").open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def _told(name: str, value: object, *, now: datetime) -> object:
    """A field as the import reads it: days ago become a point in time, ISO 8601 in UTC, to the second."""
    if name not in _TIMES:
        return value
    if not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number of days, not {value!r}.")
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return (midnight - timedelta(days=value)).isoformat(timespec="seconds")
