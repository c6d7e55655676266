"""How strong a claim still is: a half-life that was set at write, counted from the earliest time anyone said it (R73).

Strength changes rank, and by policy what is proposed for archiving; it removes nothing by itself. The same rule stands
here twice, for Python and for SQL, because searches rank inside the database.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Final

_DAY: Final = timedelta(days=1)
_MOST_HALVINGS: Final = 1_000  # PostgreSQL raises an underflow where Python says 0


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


def strength_sql(*, now: str, floor: str) -> str:
    """`strength` of a row of observations as an SQL expression. Both arguments are SQL: a function or a placeholder."""
    age = f"date_part('epoch', {now} - created_at) / 86400 / half_life_days"  # extract() is numeric: 3 times slower
    return (
        "CASE WHEN half_life_days IS NULL THEN 1"
        f" ELSE greatest({floor}, power(0.5::float8, least(greatest({age}, 0), {_MOST_HALVINGS}))) END"
    )


def halvings(*, below: float) -> float:
    """Half-lives after which strength falls under a share: 3.32 for 0.1. Raises ValueError for a share of 0 or less."""
    if below <= 0:
        raise ValueError(f"No row ever gets weaker than {below}.")
    return math.log2(1 / below)


def falls_below_at(*, created_at: datetime, half_life_days: int, below: float) -> datetime:
    """The moment from which a row is weaker than a share. Raises ValueError as `halvings`, OverflowError past 9999."""
    return created_at + _DAY * (half_life_days * halvings(below=below))
