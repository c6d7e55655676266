"""What the door tells its owner about every call, and whom it asks for money before it. Standard library only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from observations.llm.asking import Answer, BudgetSpent, Usage


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it ended, also a failed one and one that was not sent."""

    purpose: str
    model: str
    prompt_version: str
    scope_id: int | None
    answer: Answer
    usage: Usage
    cost_microdollars: int  # for an answer that was not waited for: what it can have cost
    latency_ms: int  # of a batch: of the whole batch
    batch: bool = False
    question: str = field(default="", repr=False)  # memory text: for a log that was asked for, and nowhere else
    reply: str = field(default="", repr=False)  # the same


Recorder: TypeAlias = Callable[[Call], None]


@dataclass(frozen=True, slots=True)
class Cost:
    """What a request can cost, and whose budget it is."""

    scope_id: int | None
    microdollars: int


class Hold(Protocol):
    """Money put aside for a batch while it is under way."""

    @property
    def refused(self) -> Sequence[BudgetSpent | None]:
        """For each cost that was asked for: None, or why the budget does not allow it."""
        ...

    def release(self) -> None:
        """Count what was put aside no longer: what the batch did cost is recorded. Never raises."""
        ...


class Budget(Protocol):
    """Who knows what is left of today's budget."""

    def check(self, *, cost: Cost) -> None:
        """Raise BudgetSpent, with one sentence, when today's budget does not allow the cost any more."""
        ...

    def hold(self, *, costs: Sequence[Cost]) -> Hold:
        """Put aside as much of the costs, in order, as the budget allows."""
        ...
