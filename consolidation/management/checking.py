"""What `manage.py consolidate samples` and `judge` print and do: checking what was applied without a decision."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Final

from consolidation import sampling
from consolidation.accuracy import Band, proven, spoken
from consolidation.calibration import percent
from consolidation.models import Operation, Sample
from consolidation.operations import visible
from observations.models import Scope

SHOWN: Final = 50  # samples listed


def judging(parser: ArgumentParser) -> None:
    """The words after `judge`."""
    parser.add_argument("what", metavar="OP", help="the operation, or the beginning of its id")
    word = parser.add_mutually_exclusive_group(required=True)
    word.add_argument("--right", action="store_true", help="it was right to do this without a person")
    word.add_argument("--wrong", action="store_true", help="it was not; `consolidate undo` takes it back")
    parser.add_argument("--correct", action="store_true", help="replace the word that somebody gave before")


def judge(*, operation: Operation, right: bool, correcting: bool, by: str) -> str:
    """Say whether a sample is right; a sentence comes back. Raises Refused."""
    sample = sampling.sample_of(operation=operation)
    judged = sampling.judge(sample=sample, right=right, by=by, correcting=correcting)
    undo = "" if right else f" `manage.py consolidate undo {operation.op_id}` takes it back."
    return f"{operation.op_id} is judged {judged.judged}, by {visible(by)}.{undo}"


def samples_document(scopes: Sequence[Scope]) -> dict[str, object]:
    """What waits to be checked and what is known of each band, for programs."""
    return {
        "waiting": [
            {"operation": row.operation.op_id, "scope": row.scope.name, "rule": row.rule, "band": row.band}
            for row in _waiting(scopes)
        ],
        "bands": [band_document(band) for band in sampling.bands(scopes=scopes)],
        "notices": list(sampling.notices(scopes=scopes)),
    }


def band_document(band: Band) -> dict[str, object]:
    """One band for programs: the labels, and the interval that follows from them; null where nothing is known."""
    names = ("kind", "rule", "band", "approved", "edited", "rejected", "reverted", "applied", "undone")
    return {
        **{name: getattr(band, name) for name in (*names, "judged_right", "judged_wrong", "waiting")},
        "automatic": band.automatic,
        "demoted_at": band.demoted_at.isoformat() if band.demoted_at else None,
        "of": "automatic operations" if band.unasked else "proposals to people",
        "error": band.error,
        "lower": band.lower if band.rate.of else None,
        "upper": band.upper if band.rate.of else None,
    }


def samples_text(scopes: Sequence[Scope]) -> str:
    """What waits to be checked, and what is known of each band, for people."""
    waiting, known = _waiting(scopes), sampling.bands(scopes=scopes)
    lines = [*notice_lines(), f"{len(waiting)} to check" if waiting else "nothing to check"]
    lines += [
        f"  {row.operation.op_id}  {spoken(rule=row.rule, band=row.band)}  {visible(row.scope.name)}"
        for row in waiting[:SHOWN]
    ]
    if len(waiting) > SHOWN:
        lines.append(f"  and {len(waiting) - SHOWN} more (--json lists them all)")
    if waiting:
        lines.append("`consolidate explain OP` shows one; `consolidate judge OP --right` or `--wrong` answers.")
    return "\n".join([*lines, *(["", "measured error", *map(_line, known)] if known else [])])


def notice_lines() -> list[str]:
    """What people have to know before they apply anything: the demoted bands. One query."""
    return [f"WARN  {fell.kind}: {fell.sentence}; a person decides." for fell in sampling.demoted().values()]


def _waiting(scopes: Sequence[Scope]) -> list[Sample]:
    return list(sampling.waiting_samples(scopes=scopes).select_related("operation", "scope").order_by("-pk"))


def _line(band: Band) -> str:
    status = "demoted" if band.demoted_at else "automatic" if band.unasked else "asks people"
    share = percent(band.rate) if band.rate.of else "-"
    known = f"{share} of {band.rate.of}, {proven(band.rate)}" if band.rate.of else "nothing known"
    return f"  {band.kind:<9}  {spoken(rule=band.rule, band=band.band):<32}  {status:<11}  {known}"
