"""The printed plan on a page: what `consolidate plan` prints, for the scopes a person may see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from consolidation.admin.plan.reading import held_back, unreconciled, untouchable, visible_failures
from consolidation.models import Operation, Plan
from consolidation.planner import notes, printed
from consolidation.rendering import render
from observations.admin.base import Reach


def print_plan(
    row: Plan, *, reach: Reach, operations: Sequence[Operation], explain: bool = False, skipped: int = 0
) -> str:
    """The printed form of these operations of a plan, which a person may see. Three queries at most.

    `skipped`: how many the plan skips, these and others.
    """
    whole = printed(row, operations=operations)
    waiting, covered = unreconciled(row, reach=reach)
    failures = visible_failures(row, reach=reach)
    return render(
        replace(
            whole,
            left_out=tuple(f"{item.get('scope')}: {item.get('error')}" for item in failures),
            notes=notes(Plan(failures=failures, figures=row.figures, snapshots=row.snapshots)),
            figures=whole.figures if reach.covers(row.pattern) else "",  # of every scope of the plan, hidden ones too
            held_back=held_back(row, reach=reach),
            untouchable=untouchable(row, reach=reach),
            unreconciled=waiting,
            covered=covered,
            more_skipped=bool(skipped),
        ),
        explain=explain,
    )
