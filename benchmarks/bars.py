"""What a figure has to reach: the bars that benchmarks state, and what a missed one does to the exit status.

A benchmark that states a bar ends with 1 when a figure misses it, so that whatever runs it sees that; with
`--report-only` the figures are printed and the status is 0.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

REPORT_ONLY: Final = "--report-only"


@dataclass(frozen=True)
class Bar:
    """One figure beside its bar. With `least` it may not be under it, otherwise it has to be under it."""

    what: str
    figure: float
    bar: float
    unit: str
    least: bool = False

    @property
    def held(self) -> bool:
        """Whether the figure holds; one that is no number does not."""
        return self.figure >= self.bar if self.least else self.figure < self.bar

    def __str__(self) -> str:
        side, needed = ("Below", "at least") if self.least else ("Above", "under")
        return f"{side} the bar: {self.what}, {self.figure:,.1f} {self.unit}; it has to be {needed} {self.bar:,.0f}."


def take_option(parser: argparse.ArgumentParser) -> None:
    """Give a benchmark's command the option that leaves its bars out of its exit status."""
    parser.add_argument(REPORT_ONLY, action="store_true", help="print the figures; a missed bar is no failure")


def status(bars: Sequence[Bar], *, report_only: bool) -> int:
    """The exit status: 1 when a bar is missed, each of which is said on standard error whatever the status."""
    missed = [bar for bar in bars if not bar.held]
    for bar in missed:
        sys.stderr.write(f"{bar}\n")
    return int(bool(missed) and not report_only)
