"""What is asked, what came back, and what was counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

K: Final = 5  # places of an answer that are counted unless said otherwise: recall@5, distinct@5 (R112, R113)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One question about one scope. Records are named by their ids."""

    number: int  # within its suite, from 1
    query: str
    expected: frozenset[int] = frozenset()  # every one should come; of a negative probe, what it may be mistaken for
    forbidden: frozenset[int] = frozenset()  # none may come, ever: a gate
    outdated: frozenset[int] = frozenset()  # earlier values of what is asked: each that comes is stale
    negative: bool = False  # it wants no answer, and is left out of recall


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one read answered."""

    ids: tuple[int, ...]  # best first, at most k
    milliseconds: float
    complete: bool = True  # False: a part of the search failed, which is not the same as finding nothing
    cosine: float | None = None  # the highest of its hits to the query


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """What is known of the scope that was asked.

    `carried` names, for a row that merges made, every record whose claim it says; a row that is not in it carries
    itself. `units` says which rows say the same, by a label or by the claim key; a row that is not in it stands for
    itself.
    """

    rows: tuple[int, ...]  # ids of its active rows
    past: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # the rows of a probe about then, by its number
    carried: Mapping[int, frozenset[int]] = field(default_factory=dict)
    units: Mapping[int, str] = field(default_factory=dict)
    strangers: frozenset[int] = frozenset()  # answered ids that are no row of the scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The same probes counted on answers that cannot be right: their recall is low, or the measure is worthless."""

    name: str  # empty, random, shuffled
    recall: float
    failed: bool  # as it must


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One run of one suite."""

    k: int
    probes: int  # that want an answer
    negatives: int
    left_out: int  # of the suite, not asked: erased
    records: int  # active rows of the scope
    controls: tuple[Control, ...]
    recall: float = 0.0  # mean share of the expected records that came
    hit: float = 0.0  # share of probes of which at least one came
    mrr: float = 0.0  # mean of one over the place of the first that came; 0 where none did
    distinct: float = 0.0  # mean number of different claims among the k places
    unmarked: float = 0.0  # share of the hits with neither a label nor a claim key, which count as different
    stale: float | None = None  # share of the probes that name outdated records and got one
    mistaken: float | None = None  # share of negative probes that got the record they may be mistaken for
    separation: float | None = None  # chance that a probe's best cosine is above a negative one's; 0.5: no difference
    p50: float = 0.0  # milliseconds per read
    p95: float = 0.0
    missing: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # by probe, the expected records not come
    leaked: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # by probe, the rows that must not come
    staled: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # by probe, the outdated rows that came
    confused: tuple[int, ...] = ()  # numbers of the negative probes that got what they may be mistaken for
    cut_short: tuple[int, ...] = ()  # numbers of the probes whose answer was not complete

    @property
    def missed(self) -> tuple[int, ...]:
        """Numbers of the probes of which at least one expected record did not come."""
        return tuple(sorted(self.missing))

    @property
    def leaks(self) -> int:
        """How many rows came that must not."""
        return sum(map(len, self.leaked.values()))

    @property
    def incomplete(self) -> int:
        """How many answers were not complete: no number of the run is shown then, so none of them counts as a miss."""
        return len(self.cut_short)

    @property
    def why_not(self) -> str:
        """Why no number of this run may be shown; empty when they may."""
        if not self.probes:
            return "it has no probe that wants an answer"
        if self.incomplete:
            return f"{self.incomplete} of {self.probes + self.negatives} answers were not complete"
        passed = [control.name for control in self.controls if not control.failed]
        if passed:
            names = " and ".join(passed)
            return (
                f"the control that must fail did not ({names}): {self.records} records are too few to tell at {self.k}"
            )
        return ""

    @property
    def gates(self) -> tuple[str, ...]:
        """What is not allowed and happened, a sentence each; empty when the run passed."""
        broken = [f"no number is shown: {self.why_not}"] if self.why_not else []
        leaked = f"{self.leaks} forbidden records came back" if self.leaks > 1 else "a forbidden record came back"
        return (*broken, *([leaked] if self.leaks else []))


def figures_json(figures: Figures) -> dict[str, object]:
    """A run as JSON: numbers only. Without `measures` where the controls did not fail."""
    document: dict[str, object] = {
        "k": figures.k,
        "probes": figures.probes,
        "negative_probes": figures.negatives,
        "left_out": figures.left_out,
        "records": figures.records,
        "controls": {control.name: _round(control.recall) for control in figures.controls},
        "not_measured": figures.why_not,
        "gates": list(figures.gates),
        "leaks": figures.leaks,
        "leaked": _by_probe(figures.leaked),
        "incomplete": list(figures.cut_short),
    }
    return document if figures.why_not else {**document, "measures": _measures(figures)}


def _measures(figures: Figures) -> dict[str, object]:
    return {
        "recall": figures.recall,
        "hit": _round(figures.hit),
        "mrr": _round(figures.mrr),
        "distinct": figures.distinct,
        "unmarked": _round(figures.unmarked),
        "stale": _round(figures.stale),
        "mistaken": _round(figures.mistaken),
        "separation": _round(figures.separation),
        "p50_ms": round(figures.p50, 1),
        "p95_ms": round(figures.p95, 1),
        "missed": list(figures.missed),
        "missing": _by_probe(figures.missing),
        "staled": _by_probe(figures.staled),
        "confused": list(figures.confused),
    }


def _by_probe(rows: Mapping[int, tuple[int, ...]]) -> dict[str, list[int]]:
    return {str(number): list(ids) for number, ids in rows.items()}


def _round(number: float | None) -> float | None:
    return None if number is None else round(number, 4)
