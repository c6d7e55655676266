"""The simulation in words and as a document."""

from __future__ import annotations

from consolidation.simulation.running import Point, Simulated

_HEAD = f"{'sessions':>8}  {'left alone':^34}  {'consolidated':^45}"
_HEAD_TOO = f"{'':>8}  {'rows':>6}{'recall@5':>10}{'distinct@5':>11}{'p95 ms':>7}  " + (
    f"{'rows':>6}{'recall@5':>10}{'distinct@5':>11}{'p95 ms':>7}{'decisions':>11}"
)


def table(simulated: Simulated) -> str:
    """A line per point, and what it comes to."""
    lines = [_HEAD.rstrip(), _HEAD_TOO]
    for at, left, kept in zip(simulated.sessions, simulated.without, simulated.consolidated, strict=True):
        lines.append(f"{at:>8}  {_cells(left)}  {_cells(kept)}{kept.decisions:>11}")
    return "\n".join([*lines, "", verdict(simulated)])


def verdict(simulated: Simulated) -> str:
    """Whether recall was lost, and whether growth flattens."""
    growth = f"The last {_pass(simulated)} sessions added {_added(simulated.without)} rows to the store that was left"
    growth += f" alone and {_added(simulated.consolidated)} to the consolidated one."
    if not simulated.lost:
        return f"Consolidation lost no recall. {growth}"
    at = ", ".join(map(str, simulated.lost))
    return f"Consolidation lost recall: less was found with it than without after {at} sessions. {growth}"


def document(simulated: Simulated) -> dict[str, object]:
    """All of it as JSON. `points` are the same for the same seed and embedder; `timings` are not."""
    rows = list(zip(simulated.sessions, simulated.without, simulated.consolidated, strict=True))
    return {
        "seed": simulated.seed,
        "embedder": simulated.embedder,
        "lost_recall_after": list(simulated.lost),
        "last_pass": {
            "sessions": _pass(simulated),
            "added_without": _added(simulated.without),
            "added_with": _added(simulated.consolidated),
        },
        "points": [{"sessions": at, "without": _figures(left), "with": _figures(kept)} for at, left, kept in rows],
        "timings": [
            {"sessions": at, "without_p95_ms": round(left.p95_ms, 1), "with_p95_ms": round(kept.p95_ms, 1)}
            for at, left, kept in rows
        ],
    }


def _figures(point: Point) -> dict[str, object]:
    return {
        "size": point.size,
        "recall": _rounded(point.recall),
        "distinct": _rounded(point.distinct),
        "stale": _rounded(point.stale),
        "decisions": point.decisions,
        "not_measured": point.why_not or None,
    }


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 4)


def _cells(point: Point) -> str:
    recall = "-" if point.recall is None else f"{point.recall:.3f}"
    distinct = "-" if point.distinct is None else f"{point.distinct:.2f}"
    return f"{point.size:>6}{recall:>10}{distinct:>11}{point.p95_ms:>7.1f}"


def _pass(simulated: Simulated) -> int:
    return simulated.sessions[-1] - (simulated.sessions[-2] if len(simulated.sessions) > 1 else 0)


def _added(points: tuple[Point, ...]) -> int:
    return points[-1].size - (points[-2].size if len(points) > 1 else 0)
