"""What is known of one band of a rule, and when it is known to be wrong too often.

The error of what was applied without a person is counted from a sample that people were asked about, and from what was
taken back of all; how good the proposals are that wait for people, from their decisions. The two are never added: what
waits for a person is there because it is doubtful.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from consolidation.calibration import Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The labels of one band of a rule, and what follows from them. Each operation is one label at most."""

    kind: str
    rule: str  # empty: operations from before rules were named
    band: str
    # Decided by people before anything was applied
    approved: int = 0  # and not undone
    edited: int = 0  # of the approved: with another text, value or period than was proposed
    rejected: int = 0  # told apart among them
    reverted: int = 0  # approved, applied, and undone: wrong, once
    # Applied without a decision, since the band may decide alone
    applied: int = 0  # those undone among them
    undone: int = 0
    judged_right: int = 0  # of the sample that people are asked about
    judged_wrong: int = 0  # those undone among them
    waiting: int = 0  # of the sample, not judged yet
    demoted_at: datetime | None = None  # None: it may decide alone

    @property
    def unasked(self) -> bool:
        """Whether anything of it was ever applied without a decision, or would be but for its demotion."""
        return bool(self.applied or self.waiting or self.demoted_at or self.judged_right or self.judged_wrong)

    @property
    def automatic(self) -> bool:
        """Whether it is applied without a decision now."""
        return self.unasked and self.demoted_at is None

    @property
    def sampled(self) -> Rate:
        """How often what was applied without a decision was wrong, of those that people were asked about."""
        return Rate(self.judged_wrong, self.judged_right + self.judged_wrong)

    @property
    def taken_back(self) -> Rate:
        """How much of all that was applied without a decision was undone: its error is at least that."""
        return Rate(self.undone, self.applied)

    @property
    def refused(self) -> Rate:
        """How often people said no to what was proposed to them, or took it back: the quality of what waits."""
        wrong = self.rejected + self.reverted
        return Rate(wrong, self.approved + wrong)

    @property
    def rate(self) -> Rate:
        """What its interval is drawn from: the sample where it decides alone, people's decisions where it asks."""
        return self.sampled if self.unasked else self.refused

    @property
    def error(self) -> float | None:
        """0 to 1; None while nothing is known."""
        return self.rate.share if self.rate.of else None

    @property
    def lower(self) -> float:
        """Of the error's 95% interval; 0 while nothing is known."""
        return self.rate.interval[0]

    @property
    def upper(self) -> float:
        """Of the error's 95% interval: what is proven is that the error lies below; 1 while nothing is known."""
        return self.rate.interval[1]


@dataclass(frozen=True, slots=True)
class Demoted:
    """A band that was wrong too often, with the figures it fell by."""

    kind: str
    rule: str
    band: str
    judged: int
    wrong: int
    lower: float
    limit: float

    @property
    def sentence(self) -> str:
        """Why a person decides: one clause."""
        return (
            f"{spoken(rule=self.rule, band=self.band)} was wrong in {self.wrong} of {self.judged}, at least"
            f" {100 * self.lower:.1f}% where {100 * self.limit:g}% are allowed"
        )


def spoken(*, rule: str, band: str) -> str:
    """A band in words: "same key, 0.98-0.99"; "unknown rule" for operations from before rules were named."""
    if not rule:
        return "unknown rule"
    return rule if band in ("", "all", rule) else f"{rule}, {band}"


def proven(rate: Rate) -> str:
    """What is proven: "below 1.9%"; "nothing known" of none."""
    return f"below {100 * rate.bound:.3g}%" if rate.of else "nothing known"


def exceeds(rate: Rate, *, limit: float) -> bool:
    """Whether a share is known to be over the limit: the lower end of its 95% interval is. Asked at every label.

    docs/decisions/0021 has what looking that often costs: a band with 5% errors is found within 100 labels in 97.4% of
    cases, and one with 0.1% is demoted by mistake in 3.7%, however long it is looked at.
    """
    return rate.hits > 0 and rate.interval[0] > limit


def worst(band: Band, *, limit: float) -> Rate | None:
    """What a band falls by: the sample, or what was taken back of all; None while neither is known to be over it."""
    looks: Sequence[Rate] = [rate for rate in (band.sampled, band.taken_back) if exceeds(rate, limit=limit)]
    return max(looks, key=lambda rate: rate.interval[0], default=None)
