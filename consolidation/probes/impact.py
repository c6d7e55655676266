"""The three numbers before and after a plan was applied: recall@5, distinct@5 and the size of the store (R115)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from consolidation.operations import visible
from consolidation.probes.values import Figures, K

_LISTED: Final = 5  # scopes, or lost probes, that one line names
_NOISE: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """One scope at one moment."""

    scope: str
    records: int  # active rows
    figures: Figures | None = None  # None: no suite, or no number may be shown
    why_not: str = ""  # then: why, a clause


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """What a plan's application did. `before` and `after` are of the same scopes in the same order."""

    before: tuple[Numbers, ...]
    after: tuple[Numbers, ...]

    @property
    def fell(self) -> tuple[str, ...]:
        """A sentence per scope whose recall is lower than before, or cannot be measured any more (R112, R118)."""
        return tuple(filter(None, map(_fall, self.before, self.after)))

    @property
    def lost(self) -> tuple[str, ...]:
        """A clause per scope with the probes that lost a record, though others may have gained one."""
        return tuple(filter(None, map(_losses, self.before, self.after)))

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """A clause per scope whose recall is not known before and after."""
        return tuple(f"{visible(now.scope)} {now.why_not}" for now in self.after if now.figures is None)

    def pair(self, read: Callable[[Figures], float]) -> tuple[float, float] | None:
        """One measure before and after, over all probes of the scopes measured both times; None without any."""
        both = [(a.figures, b.figures) for a, b in zip(self.before, self.after, strict=True) if a.figures and b.figures]
        if not both:
            return None
        first, second = (list(column) for column in zip(*both, strict=True))
        return _weighed(first, read), _weighed(second, read)

    @property
    def records(self) -> tuple[int, int]:
        """Active rows of all its scopes, before and after."""
        return sum(each.records for each in self.before), sum(each.records for each in self.after)


def _weighed(figures: Sequence[Figures], read: Callable[[Figures], float]) -> float:
    return fmean([read(each) for each in figures], weights=[each.probes for each in figures])


def _fall(before: Numbers, after: Numbers) -> str:
    scope = visible(after.scope)
    if before.figures is None:
        return ""
    if after.figures is None:
        return f"recall@{K} of {scope} was {before.figures.recall:.4f} and cannot be measured any more: {after.why_not}"
    if after.figures.recall >= before.figures.recall - _NOISE:
        return ""
    lost = f" (lost: {losses})" if (losses := _losses(before, after)) else ""
    return f"recall@{K} of {scope} went from {before.figures.recall:.4f} to {after.figures.recall:.4f}{lost}"


def _losses(before: Numbers, after: Numbers) -> str:
    if before.figures is None or after.figures is None:
        return ""
    lost = sorted({*after.figures.missed} - {*before.figures.missed})
    more = f" and {len(lost) - _LISTED} more" if len(lost) > _LISTED else ""
    return f"probe {', '.join(map(str, lost[:_LISTED]))}{more} of {visible(after.scope)}" if lost else ""


ADVICE: Final = "Undo it, and do not schedule: nothing is applied unattended there until recall is back."


def falling_lines(impact: Impact) -> list[str]:
    """A drop, said first (R118); empty without one."""
    if not impact.fell:
        return []
    return [*(f"RECALL FELL  {sentence}" for sentence in impact.fell), f"ADVICE  {ADVICE}"]


def impact_lines(impact: Impact) -> list[str]:
    """The three numbers, a line each (R115); "not measured" where there is no suite."""
    lines = [_line(f"recall@{K}", impact.pair(lambda f: f.recall), 4)]
    lines += [_line(f"distinct@{K}", impact.pair(lambda f: f.distinct), 2)]
    if missing := impact.unmeasured:
        more = f"; and {len(missing) - _LISTED} more scopes" if len(missing) > _LISTED else ""
        lines.append(f"recall: not measured  {'; '.join(missing[:_LISTED])}{more}")
    if impact.lost:
        lines.append(f"lost        {'; '.join(impact.lost[:_LISTED])}")
    before, after = impact.records
    return [line for line in [*lines, f"{'records':<12}{before:,} → {after:,}"] if line]


def _line(name: str, pair: tuple[float, float] | None, digits: int) -> str:
    return f"{name:<12}{pair[0]:.{digits}f} → {pair[1]:.{digits}f}" if pair else ""


def impact_json(impact: Impact) -> dict[str, object]:
    """The three numbers as JSON; null where they were not measured."""
    before, after = impact.records
    return {
        "recall_fell": list(impact.fell),
        "advice": ADVICE if impact.fell else "",
        "probes_lost": list(impact.lost),
        "recall_at_5": _pair(impact.pair(lambda f: f.recall)),
        "distinct_at_5": _pair(impact.pair(lambda f: f.distinct)),
        "records": {"before": before, "after": after},
        "not_measured": list(impact.unmeasured),
    }


def _pair(pair: tuple[float, float] | None) -> dict[str, float] | None:
    return {"before": round(pair[0], 6), "after": round(pair[1], 6)} if pair else None
