"""Calibrations as a command prints them: a table for people, a document for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from consolidation import calibrating
from consolidation.calibrating import Counted
from consolidation.calibration import FLOOR, NEVER, TOO_FEW, At, Measured, Rate, percent, reasons
from consolidation.models import Calibration
from consolidation.operations import visible
from observations.embedding import Profile

NAMED: Final = 20  # unusable lines that the text lists; the document has them all
_HEAD: Final = (
    f"{'cosine':<8}{'pairs':>7}{'dupl.':>7}{'diff.':>7}   "
    f"{'false merges from here on':<39}   {'duplicates found from here on':<39}"
)
_HEAD_TOO: Final = (
    f"{'from':<8}{'':>21}   {'without guards':<20}{'with guards':<19}   {'without':<20}{'with guards':<19}"
)


def table(measured: Measured) -> list[str]:
    """A line per band: its pairs, and what merging from its lower end on would get wrong and find."""
    lines = [_HEAD.rstrip(), _HEAD_TOO.rstrip(), "-" * len(_HEAD)]
    for band in measured.bands:
        at = measured.at(threshold=band.low)
        rates = (at.unguarded_false_merges, at.false_merges, at.unguarded_recall, at.recall)
        first, second, third, fourth = map(percent, rates)
        counts = f"{band.duplicates + band.different:>7}{band.duplicates:>7}{band.different:>7}"
        lines.append(f"{band.low:<8.2f}{counts}   {first:<20}{second:<19}   {third:<20}{fourth:<19}".rstrip())
    return lines


def report(row: Calibration, measured: Measured, counted: Counted, *, in_force: Profile) -> str:
    """All that one run found, proposed and stored."""
    same = measured.identical_duplicates + measured.identical_different
    below = measured.below_duplicates + measured.below_different
    candidate, merge = reasons(t_candidate=row.t_candidate, t_merge=row.t_merge, measured=measured)
    lines = [
        f"{visible(row.profile)}, measured on {measured.pairs:,} labelled pairs. All rates are with 95% intervals.",
        "",
        *table(measured),
        "",
        f"{same:,} pairs are equal but for spelling and merge at any cosine; {measured.identical_different:,} of them "
        "are labelled different.",
        f"{below:,} pairs have a cosine under {FLOOR:g}; {measured.below_duplicates:,} of them are duplicates.",
        *_read(counted),
        "",
        f"t_candidate  {candidate}",
        f"t_merge      {merge}",
        _standing(row, in_force) if measured.tells else _kept(row, in_force),
    ]
    return "\n".join(lines)


def _read(counted: Counted) -> list[str]:
    lines = [f"{counted.repeated:,} lines give a pair again and count once."] if counted.repeated else []
    if counted.unusable:
        lines += [
            f"{len(counted.unusable):,} lines could not be used:",
            *(f"  {bad}" for bad in counted.unusable[:NAMED]),
        ]
        more = len(counted.unusable) - NAMED
        lines += [f"  and {more:,} more (--json lists them)"] if more > 0 else []
    return lines


def _standing(row: Calibration, in_force: Profile) -> str:
    stored = f"Stored as calibration {row.pk}, in force from the next plan on."
    if in_force.automatic:
        return f"{stored} {visible(row.profile)} merges by key without a person, from {in_force.t_merge:g} on."
    if row.t_merge >= NEVER:
        return f"{stored} Nothing merges by key without a person; identical texts with one key still do."
    how = f"`manage.py calibrate --enable '{visible(row.profile)}'`"
    return f"{stored} Merging by key without a person stays off until it is enabled: {how}."


def _kept(row: Calibration, in_force: Profile) -> str:
    """That a calibration sets nothing, and what holds all the same."""
    stored = f"Stored as calibration {row.pk}, not in force: {TOO_FEW}. As before,"
    if in_force.automatic:
        return f"{stored} {visible(row.profile)} merges by key without a person from {in_force.t_merge:g} on."
    return f"{stored} nothing merges by key without a person; identical texts with one key still do."


def enabled(row: Calibration) -> str:
    """That one calibration is enabled, by whom."""
    name = visible(row.profile)
    at = f"{row.enabled_at:%Y-%m-%d %H:%M} UTC" if row.enabled_at else "now"
    return f"Calibration {row.pk}: {name} merges by key from {row.t_merge:g} on ({visible(row.enabled_by)}, {at})."


def listing(rows: Sequence[Calibration]) -> str:
    """A line per calibration, the newest first, and which of them hold."""
    if not rows:
        return "Nothing was calibrated yet."
    lines, holding = [], calibrating.holding(newest_first=rows)
    for row in rows:
        tells = calibrating.tells(calibration=row)
        holds = "  in force" if row.pk in holding else "" if tells else f"  {TOO_FEW}"
        merge = "not set" if not tells else "never" if row.t_merge >= NEVER else f"{row.t_merge:g}"
        state = f"enabled by {visible(row.enabled_by)}" if row.enabled_at else "not enabled"
        lines.append(
            f"{row.pk:>4}  {row.at:%Y-%m-%d %H:%M}  {visible(row.profile):<12}  candidates {row.t_candidate:g}  "
            f"merges {merge}  by {visible(row.by)}  {state}{holds}"
        )
    return "\n".join(lines)


# --- documents --------------------------------------------------------------------------------------------------------


def document(row: Calibration) -> dict[str, object]:
    """One calibration with its figures."""
    measured = Measured.from_dict(row.figures)
    return {
        "id": row.pk,
        "profile": row.profile,
        "at": row.at.isoformat(),
        "by": row.by,
        "pairs": measured.pairs,
        "enough_pairs": measured.tells,
        "t_candidate": row.t_candidate,
        "t_merge": row.t_merge,
        "enabled_at": row.enabled_at.isoformat() if row.enabled_at else None,
        "enabled_by": row.enabled_by,
        "bands": [
            _band(measured.at(threshold=band.low)) | {"pairs": band.duplicates + band.different}
            for band in measured.bands
        ],
        "identical": {"duplicates": measured.identical_duplicates, "different": measured.identical_different},
        "below": {"duplicates": measured.below_duplicates, "different": measured.below_different},
    }


def _band(at: At) -> dict[str, object]:
    named = {
        "false_merges": at.false_merges,
        "false_merges_without_guards": at.unguarded_false_merges,
        "recall": at.recall,
        "recall_without_guards": at.unguarded_recall,
    }
    return {"from": at.threshold, **{name: _rate(rate) for name, rate in named.items()}}


def _rate(rate: Rate) -> dict[str, object]:
    low, high = rate.interval
    return {
        "hits": rate.hits,
        "of": rate.of,
        "share": round(rate.share, 6),
        "low": round(low, 6),
        "high": round(high, 6),
    }


def lines(counted: Counted) -> dict[str, object]:
    """What became of the lines: every one that could not be used, by file and number."""
    bad = [{"file": one.file, "line": one.line, "reason": one.reason} for one in counted.unusable]
    return {"repeated": counted.repeated, "unusable": bad}
