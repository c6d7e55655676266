"""The printed plan on a page: what `consolidate plan` prints, for the scopes a person may see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from consolidation.admin.plan_reading import failures
from consolidation.models import Operation, Plan
from consolidation.planner import printed
from consolidation.rendering import render
from observations.admin.base import Reach


def print_plan(row: Plan, *, reach: Reach, operations: Sequence[Operation], explain: bool = False) -> str:
    """The printed form of these operations of a plan, which a person may see. One query."""
    whole = printed(row, operations=operations)
    left_out = tuple(f"{scope}: {error}" for scope, error in failures(row, reach=reach))
    figures = whole.figures if reach.covers(row.pattern) else ""  # of every scope of the plan, hidden ones too
    return render(replace(whole, left_out=left_out, figures=figures), explain=explain)
