"""The simulation as a picture: recall against size, size against sessions, and time against size."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from consolidation.charts import Chart, Form, Series, draw, svg_file
from consolidation.simulation.running import Point, Simulated

WITHOUT, WITH = "left alone", "consolidated"


def picture(simulated: Simulated) -> str:
    """Three panels as one SVG file; both lines differ by marker and dash, and end in their names."""
    panels = (
        _against_size(simulated, "recall", "Recall@5 against size", "share", lambda point: point.recall, 2, 1.0),
        _size(simulated),
        _against_size(simulated, "p95", "p95 of search against size", "ms", lambda point: point.p95_ms, 0, None),
    )
    return svg_file(
        title="What consolidation does to a growing store",
        about=about(simulated),
        drawings=[draw(chart) for chart in panels],
        foot=f"{simulated.sessions[-1]} sessions, seed {simulated.seed}, {simulated.embedder};"
        f" manage.py simulate --sessions {simulated.sessions[-1]} --seed {simulated.seed}",
    )


def about(simulated: Simulated) -> str:
    """The end of both stores in a sentence."""
    left, kept = simulated.without[-1], simulated.consolidated[-1]
    return (
        f"After {simulated.sessions[-1]} sessions the store that was left alone holds {left.size:,} rows and finds"
        f" {_share(left.recall)} of what is asked for among five places; the consolidated one holds {kept.size:,} and"
        f" finds {_share(kept.recall)}."
    )


def _share(recall: float | None) -> str:
    return "a share that is not measured" if recall is None else f"{recall:.3f}"


def _size(simulated: Simulated) -> Chart:
    return Chart(
        key="size",
        title="Size against sessions",
        about="Active rows after each few sessions.",
        form=Form.LINES,
        unit="rows",
        along="sessions",
        labels=tuple(map(str, simulated.sessions)),
        places=tuple(map(float, simulated.sessions)),
        series=(
            Series(WITHOUT, tuple(point.size for point in simulated.without)),
            Series(WITH, tuple(point.size for point in simulated.consolidated)),
        ),
    )


def _against_size(
    simulated: Simulated,
    key: str,
    title: str,
    unit: str,
    of: Callable[[Point], float | None],
    digits: int,
    top: float | None,
) -> Chart:
    """Each store's points at its own sizes."""
    sizes = sorted({point.size for point in (*simulated.without, *simulated.consolidated)})

    def at_sizes(points: Sequence[Point]) -> tuple[float | None, ...]:
        by_size = {point.size: of(point) for point in points}  # where a size came twice, the later one
        return tuple(by_size.get(size) for size in sizes)

    return Chart(
        key=key,
        title=title,
        about=f"{title}, a point after each few sessions.",
        form=Form.LINES,
        unit=unit,
        along="active rows",
        labels=tuple(f"{size:,}" for size in sizes),
        places=tuple(map(float, sizes)),
        series=(Series(WITHOUT, at_sizes(simulated.without)), Series(WITH, at_sizes(simulated.consolidated))),
        top=top,
        say=lambda number: f"{number:,.{digits}f}",
    )
