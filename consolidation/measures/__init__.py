"""Figures of the store for people: its size over time, how much of it says the same, what was done about it, how fast
people decide, how well it is read, and what that took (R26, R86).

`board` is what the admin's first page draws; `stats` is that and the rest, as the command prints it. Both count the
same things the same way, so every figure of the page is in the command's document under the name that docs/measuring.md
gives it.
"""

from consolidation.measures.counting import stats
from consolidation.measures.gathering import board
from consolidation.measures.journal import size_over_time
from consolidation.measures.printing import stats_text
from consolidation.measures.telling import stats_json
from consolidation.measures.values import (
    MODEL_DAYS,
    RISKS,
    Asked,
    Board,
    Duplicates,
    Month,
    Planned,
    Queue,
    Run,
    Size,
    Spent,
    Stats,
    Step,
    Suite,
)

__all__ = [
    "MODEL_DAYS",
    "RISKS",
    "Asked",
    "Board",
    "Duplicates",
    "Month",
    "Planned",
    "Queue",
    "Run",
    "Size",
    "Spent",
    "Stats",
    "Step",
    "Suite",
    "board",
    "size_over_time",
    "stats",
    "stats_json",
    "stats_text",
]
