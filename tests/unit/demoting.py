"""How often a rule of demotion takes a band's automatic status: exactly, and in simulated runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from consolidation.accuracy import exceeds
from consolidation.calibration import Rate

LIMIT = 0.005
Rule = Callable[[int, int], bool]  # wrong, of -> whether the band falls


@cache
def ours(wrong: int, of: int) -> bool:
    """The rule of the product."""
    return exceeds(Rate(wrong, of), limit=LIMIT)


def any_error(wrong: int, _of: int) -> bool:
    """Naive: nobody may ever be wrong."""
    return wrong > 0


def share_over_the_limit(wrong: int, of: int) -> bool:
    """Naive: the share itself, without an interval."""
    return wrong > LIMIT * of


def three_wrong(wrong: int, of: int) -> bool:
    """Ours, and never fewer than three: what one would take to be careful."""
    return wrong >= 3 and ours(wrong, of)


def chance(rule: Rule, *, error: float, labels: int) -> float:
    """The chance that a band with this error falls within so many labels, asked at each: exact, by the binomial."""
    standing, fallen = {0: 1.0}, 0.0  # wrong so far -> chance of having got there without falling
    for of in range(1, labels + 1):
        after: dict[int, float] = {}
        for wrong, likely in standing.items():
            for then, part in ((wrong, likely * (1 - error)), (wrong + 1, likely * error)):
                if part < 1e-15:
                    continue
                if rule(then, of):
                    fallen += part
                else:
                    after[then] = after.get(then, 0.0) + part
        standing = after
    return fallen


def simulated(rule: Rule, *, error: float, labels: int, runs: int, seed: int) -> float:
    """The share of runs in which the band falls within so many labels."""
    verdicts = np.random.default_rng(seed).random((runs, labels)) < error
    wrong = np.cumsum(verdicts, axis=1)
    fell = [
        any(rule(int(row[at]), at + 1) for at in np.flatnonzero(label).tolist())
        for row, label in zip(wrong, verdicts, strict=True)
    ]
    return sum(fell) / runs
