"""How strong a claim still is: a half-life that was set at write, counted from the earliest time anyone said it (R73).

Strength changes rank, and by policy what is proposed for archiving; it removes nothing by itself. The rule stands here
twice, for one row and for all rows that a search ranks.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np

Numbers = np.ndarray[tuple[int], np.dtype[Any]]
_DAY: Final = timedelta(days=1)
_MOST_HALVINGS: Final = 1_000  # a power of a half that is no longer told from 0


def strength(*, created_at: datetime, half_life_days: int | None, now: datetime, floor: float) -> float:
    """1 when it was first said, half of it after each half-life, never below the floor; 1 for good without a half-life.

    A row from a clock that runs ahead is fresh, not stronger. Raises ValueError for a half-life under one day.
    """
    if half_life_days is None:
        return 1.0
    if half_life_days < 1:
        raise ValueError(f"A half-life is one day or more, not {half_life_days}.")
    passed = max(0.0, (now - created_at) / _DAY / half_life_days)
    return max(floor, math.pow(0.5, min(passed, _MOST_HALVINGS)))


def strengths(*, days: Numbers, half_lives: Numbers, floor: float) -> Numbers:
    """`strength` of many rows: days since each was first said, and its half-life in days, 0 where it has none."""
    passed = np.clip(days / np.maximum(half_lives, 1), 0, _MOST_HALVINGS)
    return np.where(half_lives > 0, np.maximum(floor, np.exp2(-passed)), 1.0)


def halvings(*, below: float) -> float:
    """Half-lives after which strength falls under a share: 3.32 for 0.1. Raises ValueError for a share of 0 or less."""
    if below <= 0:
        raise ValueError(f"No row ever gets weaker than {below}.")
    return math.log2(1 / below)


def falls_below_at(*, created_at: datetime, half_life_days: int, below: float) -> datetime:
    """The moment from which a row is weaker than a share. Raises ValueError as `halvings`, OverflowError past 9999."""
    return created_at + _DAY * (half_life_days * halvings(below=below))
