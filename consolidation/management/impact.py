"""`manage.py consolidate impact`: what applying a plan would do to reading, without applying it (R112)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from consolidation.models import Projection
from consolidation.operations import counted, visible
from consolidation.probes import K

Document = dict[str, object]


def text(projections: Sequence[Projection]) -> str:
    """A fall first, then the three numbers of each scope, now and then."""
    if not projections:
        return "Nothing of the plan would be applied: there is nothing to measure."
    falls = [f"RECALL WOULD FALL  {_fall(row)}" for row in projections if row.fell]
    advice = ["ADVICE  Read what would be lost before you apply it; no schedule does until somebody signs it off."]
    blocks = [line for row in projections for line in ("", *_lines(row))]
    return "\n".join([*falls, *(advice if falls else []), *blocks]).strip()


def _fall(row: Projection) -> str:
    lost = f" (lost: probe {', '.join(map(str, row.lost))})" if row.lost else ""
    went = f"{_told(row.before, 'recall')} → {_told(row.after, 'recall')}"
    return f"recall@{K} of {visible(row.scope.name)}: {went}{lost}"


def _lines(row: Projection) -> list[str]:
    lines = [f"{visible(row.scope.name)}  {counted(row.operations, 'operation')}"]
    if row.before.get("measures"):
        names = (("recall", f"recall@{K}"), ("distinct", f"distinct@{K}"))
        lines += [f"  {label:<12}{_told(row.before, name)} → {_told(row.after, name)}" for name, label in names]
    if row.why_not:
        lines.append(f"  recall: not measured, it {row.why_not}")
    if row.lost:
        lines.append(f"  {'lost':<12}probe {', '.join(map(str, row.lost))}")
    return [*lines, f"  {'records':<12}{row.records_before:,} → {row.records_after:,}"]


def _told(figures: dict[str, Any], name: str) -> str:
    value = figures.get("measures", {}).get(name)
    return "not measured" if value is None else f"{value:.{4 if name == 'recall' else 2}f}"


def document(projections: Sequence[Projection]) -> Document:
    """The same as JSON; null where recall is not known."""
    return {"fell": any(row.fell for row in projections), "scopes": [_scope(row) for row in projections]}


def _scope(row: Projection) -> Document:
    return {
        "scope": row.scope.name,
        "plan": str(row.plan),
        "operations": row.operations,
        "recall_at_5": _pair(row, "recall"),
        "distinct_at_5": _pair(row, "distinct"),
        "records": {"before": row.records_before, "after": row.records_after},
        "fell": row.fell,
        "lost": row.lost,
        "not_measured": row.why_not,
    }


def _pair(row: Projection, name: str) -> Document | None:
    before, after = (each.get("measures", {}).get(name) for each in (row.before, row.after))
    return None if before is None else {"before": before, "after": after}
