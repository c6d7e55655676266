"""Who reads, how many rows each gets, and what fading costs a row there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.conf import settings

# A read whose rows reach somebody names one of these in its Use rows.
CALL_SITES: Final[Mapping[str, int]] = {
    "is_known": 2,  # is this claim in the store already
    "nearest": 3,  # what a new claim is reconciled with
    "context": 10,  # what a prompt is given
    "search": 5,  # somebody looks: the command, a tool
    "probe": 5,  # how well reading works is measured
}
LONGEST_QUERY: Final = 4_000  # characters; the rest of a longer one is not read
MOST: Final = 1_000  # rows of one answer
# Rows that a claim is compared with, or that are counted, reach nobody: such a read is no use, and never makes a source
# prunable (R51, I13).
COMPARING: Final = frozenset({"is_known", "nearest", "probe"})
# Reads whose answer is kept for 90 days: somebody was told. What a prompt was given is kept by the prompt itself.
ANSWERED: Final = frozenset({"is_known", "search"})
# What a row loses of its score as its strength goes from 1 to 0, where somebody reads. A claim that is compared with
# stored ones is compared by relevance alone: what it repeats or replaces is mostly old. Measured in decision 0010.
FADING: Final = frozenset({"context", "search", "probe"})
FLOOR: Final = 0.05  # strength never counts less: a faded row is ranked lower, never lost


def fades(call_site: str) -> float:
    """The share of its score that the weakest row loses there, by the settings. Raises ValueError, one sentence, for
    one that is not between 0 and 1.
    """
    share: float = settings.PALIMPSEST_SEARCH_FADING
    if not 0 <= share <= 1:  # a nan is refused too
        raise ValueError(f"PALIMPSEST_SEARCH_FADING is {share}: give it a number from 0 to 1.")
    return share if call_site in FADING else 0.0
