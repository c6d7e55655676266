"""What is counted, as values. Shares are 0 to 1, days are those of UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Final

from consolidation.calibration import Rate
from consolidation.operations import Kind
from observations.records import Status

MODEL_DAYS: Final = 30  # days of UTC, today among them, over which calls of the model are counted
DECIDING_DAYS: Final = 30  # days over which the seconds per decision are taken

# What a wrong decision would cost, the worst first.
RISKS: Final[Mapping[str, tuple[Kind, ...]]] = {
    "erases": (Kind.PRUNE, Kind.FORGET),  # the words are gone after the grace period, or at once
    "replaces": (Kind.SUPERSEDE, Kind.ALIAS),  # agents read another value, or another subject
    "combines": (Kind.MERGE, Kind.COMPACT, Kind.PROMOTE, Kind.ARCHIVE),  # can be undone
}


class Step(StrEnum):
    """How far apart the points of the size over time are."""

    DAY = "day"
    WEEK = "week"  # from Monday
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class Size:
    """How many rows stood how at the end of one step; the last step is not over and counts until now."""

    day: date  # the step's first
    active: int
    superseded: int
    archived: int
    other: int  # retracted or held back; erased rows are left out

    @property
    def rows(self) -> int:
        """All that have words."""
        return self.active + self.superseded + self.archived + self.other


@dataclass(frozen=True, slots=True)
class Duplicates:
    """How much of what reads return says what another row says."""

    same_text: int  # active rows whose text another active row of their scope has too
    about: bool  # that number is an estimate from a sixteenth of the texts
    waiting_merges: int  # rows that waiting merges would take out of the reads


@dataclass(frozen=True, slots=True)
class Queue:
    """What waits for a person, and how fast people decide."""

    waiting: Mapping[str, int]  # by risk: a key of RISKS
    oldest: datetime | None  # when the one that waits longest was proposed
    oldest_by_risk: Mapping[str, datetime | None]  # the same by a key of RISKS
    overdue: int  # waiting longer than the policy of their scope allows
    decided_today: int
    decided: int  # in the last DECIDING_DAYS
    timed: int  # of those: opened on a page before the decision, so that its seconds are known
    median_seconds: float | None  # from the first opening to the decision; None: unknown, nothing was timed
    drills: Rate  # planted questions that reviewers caught, of those they answered yes or no


@dataclass(frozen=True, slots=True)
class Planned:
    """One plan that covers any of the scopes, and how much of it is not new."""

    plan: int
    at: datetime
    operations: int  # its items of these scopes
    before: int  # of those, what an earlier plan proposed too
    held_back: int  # questions of the whole plan that its review budget left for another day

    @property
    def churn(self) -> float:
        """The share of the plan that people were shown before: what nobody decides comes back."""
        return self.before / self.operations if self.operations else 0.0


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a probe suite; None where no number of it may be shown."""

    at: datetime
    cause: str
    records: int  # active rows of its scope
    recall: float | None
    distinct: float | None


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite's newest runs, oldest first."""

    suite: int
    name: str
    scope: str
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Spent:
    """What language models were asked on one day."""

    day: date
    calls: int
    microdollars: int


@dataclass(frozen=True, slots=True)
class Asked:
    """What language models were asked for these scopes in the last MODEL_DAYS."""

    calls: int = 0
    failed: int = 0  # those the budget did not allow among them
    microdollars: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """What the admin's first page draws of some scopes."""

    step: Step
    size: tuple[Size, ...]  # oldest first; empty while nothing was written
    by_status: Mapping[str, int]
    oldest: datetime | None  # when the earliest claim was first said
    duplicates: Duplicates
    applied: Mapping[str, int]  # operations applied and not undone, by kind
    chains: Mapping[int, int]  # merges after one another behind an active row -> such rows
    queue: Queue
    plans: tuple[Planned, ...]  # the newest, oldest first
    suites: tuple[Suite, ...]
    spent: tuple[Spent, ...]  # one per day of MODEL_DAYS, oldest first
    asked: Asked
    notices: tuple[str, ...]  # what measured error says that people must hear, a sentence each

    @property
    def active(self) -> int:
        """Rows that reads return."""
        return self.by_status.get(Status.ACTIVE, 0)

    @property
    def supersession(self) -> float:
        """The share of the rows that are or were current which a newer value replaced."""
        replaced = self.by_status.get(Status.SUPERSEDED, 0)
        once = self.active + replaced + self.by_status.get(Status.ARCHIVED, 0)
        return replaced / once if once else 0.0

    @property
    def duplicate_share(self) -> float:
        """The share of active rows that say what another says: equal texts, or what waits to be merged when that is
        more.
        """
        most = max(self.duplicates.same_text, self.duplicates.waiting_merges)
        return min(1.0, most / self.active) if self.active else 0.0

    @property
    def promotions(self) -> int:
        """Facts promoted from episodes, applied and not undone."""
        return self.applied.get(Kind.PROMOTE, 0)

    @property
    def compactions(self) -> int:
        """Summaries made of episodes, applied and not undone."""
        return self.applied.get(Kind.COMPACT, 0)

    @property
    def newest(self) -> Planned | None:
        """The newest plan; None before the first."""
        return self.plans[-1] if self.plans else None

    @property
    def longest_chain(self) -> int:
        """Merges after one another behind one active row."""
        return max(self.chains, default=0)

    @property
    def waiting(self) -> int:
        """Operations that wait for a person."""
        return sum(self.queue.waiting.values())


@dataclass(frozen=True, slots=True)
class Month:
    """The rows first said in one month, and the running totals up to its end."""

    month: str  # 2025-03
    said: int  # rows that somebody wrote, not derived ones
    said_total: int
    active_total: int  # rows of this or an earlier month that reads return now


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """The store of some scopes, now: the board, and what only the command prints."""

    board: Board
    scopes: int
    episodes: int
    archived_by_decay: int  # rows
    aliases: int  # that hold
    given_keys: Mapping[str, int]  # active rows by what a model said about their key
    months: tuple[Month, ...]
