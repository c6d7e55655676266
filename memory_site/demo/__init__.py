"""Demo memory: two years in the life of four scopes, written for this project, told relative to whatever `now` is.

The rows lie beside this module, one JSONL file per scope, oldest first, in the import format with `days_ago`,
`valid_from_days_ago` and `valid_to_days_ago` where the format has points in time. They count days (with fractions) back
from the last UTC midnight, so that people talk at the hours people talk at, and a second load on one day adds nothing.
Nothing here touches a database: whoever loads the demo imports `lines`, supersedes what a line's `supersedes` names,
stores the policies, and lets what people did in an earlier week set the scene.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Final

from consolidation.operations import Json

SCOPES: Final = ("team/relay-platform", "support/harbor-desk", "people/maya-okafor", "research/tidewater-lab")


@dataclass(frozen=True, slots=True)
class SetPolicy:
    """What the steward of the demo set for one scope; what the body leaves out keeps its default."""

    pattern: str
    body: Mapping[str, Json]
    why: str  # as it is printed


@dataclass(frozen=True, slots=True)
class EarlierMerge:
    """A merge that the demo applies before anyone looks, so that archived sources and their derived row exist."""

    scope: str
    sources: tuple[str, ...]  # external ids, two or more, all active in `lines`
    query: str  # a search that finds the derived row: its first use (R51)


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing that people of the demo decided, or asked, in an earlier week."""

    scope: str
    sources: tuple[str, ...]  # external ids of what the operation is about
    reason: str


POLICIES: Final = (
    SetPolicy(
        pattern="team/relay-platform",
        body={"archive": True, "review_budget": 10, "trigger": "schedule"},
        why="remarks for the next days fade and are archived; at most 10 new questions a day for its reviewers",
    ),
    SetPolicy(
        pattern="support/harbor-desk",
        body={"prune": True, "retention": [{"stated_by": "tool", "older_than_days": 540}]},
        why="tools' notes on outages may go after 540 days, and so may the sources of a merged row that is in use",
    ),
    # The four questions, answered. Nobody answered them for research/tidewater-lab.
    SetPolicy(
        pattern="people/maya-okafor",
        body={
            "mergeable": ["fact", "state", "episode", "note"],
            "untouchable": ["identity"],
            "keep_days": 365,
            "trigger": "records",
            "every_records": 50,
        },
        why="a person is asked before preferences merge, who somebody is stays untouched, a year is kept as it is",
    ),
)

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

# What an agent was told in the earlier week: questions about what many reads meet come first when a day's review budget
# is spent.
READS: Final = (
    ("team/relay-platform", "after how many attempts is a delivery parked?"),
    ("team/relay-platform", "is the relay fix out yet?"),
)

# "All are true at once" taught that `plays` holds several values in its scope: it is not asked about again.
LESSON: Final = Deed(
    scope="people/maya-okafor",
    sources=("maya-o101", "maya-o102", "maya-o103"),
    reason="she does all three; none replaces another",
)

# Applied, and in its grace period: it can still be undone from the trash.
PRUNED: Final = Deed(
    scope="support/harbor-desk",
    sources=("harbor-o018",),
    reason="a queue that drained long ago tells nobody anything",
)

# The scope whose reading is measured: by the questions and labels of relay-probes.jsonl.
PROBED: Final = "team/relay-platform"

# Asked, and waiting for a decision: two subjects that may be one customer.
ALIAS: Final = ("team/relay-platform", "Calder", "Calder Foods")

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


def probe_lines() -> list[str]:
    """The probes of PROBED's suite, as a file of JSON lines."""
    return files(__name__).joinpath("relay-probes.jsonl").read_text(encoding="utf-8").splitlines()


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
