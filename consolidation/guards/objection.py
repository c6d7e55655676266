"""What a guard says, and what a guard is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from consolidation.guards.reading import Pair


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a person must look: which guard, in a sentence, and whether the two texts may contradict each other."""

    guard: str
    reason: str
    possible_contradiction: bool

    def __str__(self) -> str:
        return f"{self.guard}: {self.reason}" + (" (possible contradiction)" if self.possible_contradiction else "")


Guard: TypeAlias = Callable[[Pair], Objection | None]
