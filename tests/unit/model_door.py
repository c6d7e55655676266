"""What tests of the model door share: a budget of a fixed sum, a list of calls, and the door to a stub."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from observations.llm import AnthropicCompleter, BudgetSpent, Call, Cost, Request
from tests.messages_stub import Stub

MODEL = "claude-haiku-5-5"
KEY = "sk-test-0123456789"
SECRET = "the patient said she moved to Lyon"  # stands for memory text
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0}}, "required": ["a"]}


@dataclass
class Purse:
    """A budget of a fixed sum for all scopes together. Implements `Budget`."""

    microdollars: int = 1_000_000
    checked: list[Cost] = field(default_factory=list)
    holds: list[PurseHold] = field(default_factory=list)

    def check(self, *, cost: Cost) -> None:
        """As the protocol says; what is checked is taken."""
        self.checked.append(cost)
        if cost.microdollars > self.microdollars:
            raise BudgetSpent("The purse is empty; fill it.")
        self.microdollars -= cost.microdollars

    def hold(self, *, costs: Sequence[Cost]) -> PurseHold:
        """As the protocol says."""
        hold = PurseHold(purse=self)
        for cost in costs:
            allowed = cost.microdollars <= self.microdollars
            self.microdollars -= cost.microdollars if allowed else 0
            hold.taken += cost.microdollars if allowed else 0
            hold.refused.append(None if allowed else BudgetSpent("The purse is empty; fill it."))
        self.holds.append(hold)
        return hold


@dataclass
class PurseHold:
    """What is held of a purse. Implements `Hold`."""

    purse: Purse = field(repr=False)
    refused: list[BudgetSpent | None] = field(default_factory=list)
    taken: int = 0
    released: bool = False

    def release(self) -> None:
        """As the protocol says."""
        self.purse.microdollars += self.taken
        self.released = True


def question(text: str = "Where does Sam live?", **changes: Any) -> Request:
    """A request; any field can be changed."""
    fields: dict[str, Any] = {
        "purpose": "promote",
        "prompt_version": "p1",
        "system": "Answer in JSON.",
        "schema": SCHEMA,
    }
    return Request(text=text, **{**fields, **changes})


def door(stub: Stub | str, calls: list[Call], **changes: Any) -> AnthropicCompleter:
    """The real adapter before the stub (or an address), with short waits; any argument can be changed."""
    arguments: dict[str, Any] = {
        "model": MODEL,
        "api_key": KEY,
        "base_url": stub if isinstance(stub, str) else stub.url,
        "timeout_seconds": 5.0,
        "max_retries": 1,
        "recorder": calls.append,
        "budget": Purse(),
        "batch_seconds": 5.0,
        "first_pause": 0.01,
    }
    return AnthropicCompleter(**{**arguments, **changes})
