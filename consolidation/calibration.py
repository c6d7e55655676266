"""What an embedder's cosines mean, measured on labelled pairs: what merging from a cosine on would find and get wrong.

Two rates, both over the pairs that differ in more than spelling and have a cosine of at least FLOOR. The false-merge
rate is the share of the *different* pairs that would merge, the recall that of the *duplicates*. So neither depends on
how many pairs of each label somebody collected, and both fall as the threshold rises. With guards, a pair to which a
guard objects does not merge (DESIGN 5); without, the cosine alone decides. Nothing here keeps a text.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from hashlib import blake2b
from typing import Final

from consolidation.operations import Json

FLOOR: Final = 0.80  # cosines below it are counted, not looked at
EDGES: Final = tuple(hundredth / 100 for hundredth in range(80, 100))  # the lower ends of the bands
LIMIT: Final = 0.005  # different pairs that may merge: 5 of 1,000, at the upper end of the interval
KEPT: Final = 0.95  # duplicates from FLOOR on that a plan has to look at; the rest hides among too many other pairs
LOWEST_MERGE: Final = 0.95  # no measurement lowers the threshold of merging further (R42)
NEVER: Final = 1.0  # as t_merge: nothing merges by key
_Z: Final = 1.959964  # of a two-sided 95% interval
# Different pairs, without a single mistake among them, from which Wilson's upper end z^2 / (n + z^2) is under LIMIT.
FEWEST: Final = math.floor(_Z * _Z * (1 - LIMIT) / LIMIT) + 1

# As data sets name them; whoever refines a claim or tells of another event does not say the same (data's own readme).
LABELS: Final[Mapping[str, bool]] = {
    "duplicate": True,
    "different": False,
    "contradiction": False,
    "refinement": False,
    "related_distinct": False,
    "changed_or_other_event": False,
}


# --- reading pairs ----------------------------------------------------------------------------------------------------


class BadLine(ValueError):
    """A line of a pairs file cannot be used; the message says what is missing and quotes nothing of it."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """Two texts, and whether a person says that they are one claim."""

    a: str
    b: str
    duplicate: bool

    @property
    def digest(self) -> bytes:
        """16 bytes, the same whichever text stands first: who gives a pair twice does not know more for it."""
        parts = (text.encode("utf-8", "surrogatepass") for text in sorted((self.a, self.b)))
        return blake2b(b"".join(len(part).to_bytes(8, "big") + part for part in parts), digest_size=16).digest()


def labelled(*, line: bytes) -> Labelled:
    """The pair of one JSON line with `a`, `b` and `label`; other fields are left alone. Raises BadLine."""
    try:
        found = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise BadLine("it is not UTF-8") from None
    except (ValueError, RecursionError):
        raise BadLine("it is not JSON") from None
    if not isinstance(found, Mapping):
        raise BadLine("it is not an object with a, b and label")
    for side in ("a", "b"):
        if not isinstance(found.get(side), str) or not found[side].strip():
            raise BadLine(f"its field {side} is not a text")
    label = found.get("label")
    if not isinstance(label, str) or label not in LABELS:
        raise BadLine(f"its label is none of {', '.join(LABELS)}")
    return Labelled(found["a"], found["b"], LABELS[label])


# --- measuring --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rate:
    """So many of so many."""

    hits: int
    of: int

    @property
    def share(self) -> float:
        """0 to 1; 0 of none."""
        return self.hits / self.of if self.of else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95% interval of the share; all of 0 to 1 when nothing was seen."""
        if not self.of:
            return 0.0, 1.0
        spread = _Z * _Z / self.of
        middle = self.share + spread / 2
        half = _Z * math.sqrt(self.share * (1 - self.share) / self.of + spread / (4 * self.of))
        return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))

    @property
    def bound(self) -> float:
        """The upper end of the interval: what the share is at most, as far as this many pairs can say."""
        return self.interval[1]


@dataclass(frozen=True, slots=True)
class Band:
    """The pairs of one hundredth of cosine, from `low` on; `passed` are those that no guard objects to."""

    low: float
    duplicates: int = 0
    different: int = 0
    passed_duplicates: int = 0
    passed_different: int = 0


@dataclass(frozen=True, slots=True)
class At:
    """What a threshold means: with the guards, and without them."""

    threshold: float
    false_merges: Rate
    unguarded_false_merges: Rate
    recall: Rate
    unguarded_recall: Rate


@dataclass(frozen=True, slots=True)
class Measured:
    """All that was counted; numbers only. Texts equal but for spelling merge at any cosine and are in no band."""

    bands: tuple[Band, ...]
    identical_duplicates: int = 0
    identical_different: int = 0
    below_duplicates: int = 0
    below_different: int = 0

    @property
    def pairs(self) -> int:
        """All pairs, of every band and of none."""
        counted = sum(band.duplicates + band.different for band in self.bands)
        beside = (self.identical_duplicates, self.identical_different, self.below_duplicates, self.below_different)
        return counted + sum(beside)

    def at(self, *, threshold: float) -> At:
        """The rates of merging from a threshold on, which is the lower end of a band or 1 (nothing merges)."""
        over = [band for band in self.bands if band.low >= threshold]
        different = sum(band.different for band in self.bands)
        duplicates = sum(band.duplicates for band in self.bands)
        return At(
            threshold,
            false_merges=Rate(sum(band.passed_different for band in over), different),
            unguarded_false_merges=Rate(sum(band.different for band in over), different),
            recall=Rate(sum(band.passed_duplicates for band in over), duplicates),
            unguarded_recall=Rate(sum(band.duplicates for band in over), duplicates),
        )

    @property
    def tells(self) -> bool:
        """Whether these pairs can say anything of false merges: that LIMIT is kept, as there are FEWEST of them, or for
        sure that it is not, at the lowest threshold there is. From others no threshold follows, not even NEVER.
        """
        rate = self.at(threshold=LOWEST_MERGE).false_merges
        return rate.of >= FEWEST or rate.interval[0] > LIMIT

    def to_dict(self) -> dict[str, Json]:
        """As JSON; `from_dict` reads it back."""
        bands: list[Json] = [list(astuple(band)) for band in self.bands]
        return {"bands": bands, **{name: getattr(self, name) for name in _BESIDE}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Json]) -> Measured:
        """Raises ValueError, KeyError or TypeError when it is not what `to_dict` wrote."""
        stored = values["bands"]
        if not isinstance(stored, list):
            raise ValueError("The bands of a calibration are not a list.")
        bands = tuple(Band(*row) for row in stored if isinstance(row, list))
        return cls(bands, *(int(str(values[name])) for name in _BESIDE))


_BESIDE: Final = tuple(item.name for item in fields(Measured) if item.name != "bands")


def measure(
    *, duplicates: Sequence[bool], cosines: Sequence[float], objected: Sequence[bool], identical: Sequence[bool]
) -> Measured:
    """Count labelled pairs, one value per pair in each sequence; their order does not matter.

    `duplicates`: the label. `objected`: a guard objects. `identical`: equal but for spelling. Raises ValueError when
    the lengths differ.
    """
    counts = [[0, 0, 0, 0] for _ in EDGES]
    beside = {(where, label): 0 for where in ("identical", "below") for label in (True, False)}
    for duplicate, cosine, against, same in zip(duplicates, cosines, objected, identical, strict=True):
        if same or not cosine >= FLOOR:  # not a number is below
            beside["identical" if same else "below", duplicate] += 1
            continue
        count = counts[bisect_right(EDGES, cosine) - 1]
        count[0 if duplicate else 1] += 1
        if not against:
            count[2 if duplicate else 3] += 1
    return Measured(
        bands=tuple(Band(low, *count) for low, count in zip(EDGES, counts, strict=True)),
        identical_duplicates=beside["identical", True],
        identical_different=beside["identical", False],
        below_duplicates=beside["below", True],
        below_different=beside["below", False],
    )


# --- proposing --------------------------------------------------------------------------------------------------------


def propose(*, measured: Measured) -> tuple[float, float]:
    """(t_candidate, t_merge) for an embedder that was measured.

    t_merge: the lowest threshold, at least LOWEST_MERGE, at which the upper bound of the false-merge rate with guards
    stays under LIMIT; NEVER when none does, or too few different pairs were seen to tell (whether such a measurement
    holds at all, `Measured.tells` says). t_candidate: the highest threshold, at most t_merge, that keeps KEPT of the
    duplicates.
    """
    merge = next(
        (edge for edge in EDGES if edge >= LOWEST_MERGE and measured.at(threshold=edge).false_merges.bound < LIMIT),
        NEVER,
    )
    enough = [edge for edge in EDGES if edge <= merge and _keeps(measured, edge)]
    return max(enough, default=FLOOR), merge


def _keeps(measured: Measured, edge: float) -> bool:
    recall = measured.at(threshold=edge).unguarded_recall
    return recall.of > 0 and recall.share >= KEPT


# --- in words ---------------------------------------------------------------------------------------------------------

TOO_FEW: Final = "too few pairs to set thresholds"


def percent(rate: Rate) -> str:
    """A share with its 95% interval: "46.9% (45.4-48.5)"."""
    low, high = rate.interval
    return f"{100 * rate.share:.1f}% ({100 * low:.1f}-{100 * high:.1f})"


def reasons(*, t_candidate: float, t_merge: float, measured: Measured) -> tuple[str, str]:
    """Why these two thresholds: a sentence with the figures for each; or why none follows."""
    if not measured.tells:
        return f"not set: {TOO_FEW}.", f"not set: {_too_few(measured)}"
    kept = measured.at(threshold=t_candidate).unguarded_recall
    candidate = f"keeps {percent(kept)} of the duplicates from {FLOOR:g} on; at least {100 * KEPT:g}% is asked for."
    if not kept.of or kept.share < KEPT:
        candidate = "too few duplicates were seen to set it higher."
    limit = f"the limit is {1000 * LIMIT:g}."
    if t_merge < NEVER:
        merge = f"{_of_a_thousand(measured, t_merge)} different pairs would merge; {limit}"
        return f"{t_candidate:g}: {candidate}", f"{t_merge:g}: {merge}"
    still = f"from {EDGES[-1]:g} on still {_of_a_thousand(measured, EDGES[-1])} different pairs could merge"
    return f"{t_candidate:g}: {candidate}", f"never by key: {still}; {limit}"


def _too_few(measured: Measured) -> str:
    seen = measured.at(threshold=FLOOR).false_merges.of
    return (
        f"{TOO_FEW}: {seen:,} different pairs from {FLOOR:g} on were seen, and {FEWEST:,} are needed to say anything."
    )


def _of_a_thousand(measured: Measured, threshold: float) -> str:
    rate = measured.at(threshold=threshold).false_merges
    return f"{rate.hits} of {rate.of:,}, so at most {1000 * rate.bound:.1f} of 1,000"
