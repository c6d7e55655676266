"""Numbers to pictures: lines, bars and stacked areas as SVG that reads without colour.

A `Chart` is what is to be drawn, a `Drawing` where everything lies: shapes with their attributes, for a template that
escapes them or for a file of its own. Series differ by marker, dash or pattern before they differ by colour; every line
ends in its name; and the same numbers come as a table. Colours are classes (`s1`, `s2`, ...), so that the page's
stylesheet decides about light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final
from xml.etree import ElementTree

WIDTH: Final = 460.0
HEIGHT: Final = 240.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 104.0, 26.0, 34.0
_MARGIN: Final = 12.0
_WIDEST: Final = 44.0  # of a bar
_LINE: Final = 14.0  # between two names at the ends of lines
_LABELS: Final = 4  # along the bottom
_TICKS: Final = 4  # up the side, about
_CHARACTER: Final = 6.2  # how wide one is, about, at the size of names
_WIDE_CHARACTER: Final = 7.7  # and at the size that a phone shows
_MARKERS: Final = ("circle", "square", "triangle", "diamond")


class Form(StrEnum):
    """How the numbers are drawn."""

    LINES = "lines"
    BARS = "bars"  # stacked where there are several series
    AREAS = "areas"  # stacked, the first at the bottom


@dataclass(frozen=True, slots=True)
class Series:
    """One row of numbers, a value per place along the bottom; None where there is none."""

    name: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """What is to be drawn."""

    key: str  # a word that no other chart of the page has
    title: str
    about: str  # a sentence for who cannot see it: what it shows and how it ends
    form: Form
    unit: str  # of the numbers: "rows", "$"
    along: str  # what lies along the bottom: "day (UTC)"
    labels: tuple[str, ...]  # of the places along the bottom
    series: tuple[Series, ...]
    places: tuple[float, ...] = ()  # where they lie; evenly spaced when empty
    top: float | None = None  # of the scale; the largest number when None
    say: Callable[[float], str] = field(default=lambda number: f"{number:,.0f}")


@dataclass(frozen=True, slots=True)
class Shape:
    """One element with its attributes and its words."""

    tag: str
    attributes: tuple[tuple[str, str], ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart, laid out."""

    key: str
    title: str
    about: str
    width: float
    height: float
    filled: bool  # whether series are filled, and not lines
    patterns: tuple[int, ...]  # numbers of the series that are filled with one
    shapes: tuple[Shape, ...]
    heads: tuple[str, ...]  # of the table of the same numbers
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where numbers lie."""

    chart: Chart
    ticks: tuple[float, ...]

    @property
    def right(self) -> float:
        """Where the axis ends: before the names, where there are any."""
        return WIDTH - (_RIGHT if len(self.chart.series) > 1 or self.chart.form is not Form.BARS else _MARGIN)

    def x(self, place: int) -> float:
        """How far right the n-th place lies."""
        places = self.chart.places or tuple(map(float, range(len(self.chart.labels))))
        first, last = places[0], places[-1]
        inner = self.right - _LEFT
        if self.chart.form is Form.BARS:
            return _LEFT + inner * (place + 0.5) / len(self.chart.labels)
        return _LEFT + inner * ((places[place] - first) / (last - first) if last > first else 0.5)

    def y(self, number: float) -> float:
        """How far down a number lies."""
        return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * number / self.ticks[-1]


def draw(chart: Chart) -> Drawing:
    """Lay a chart out. Raises ValueError for a series that has not a value per label, or for a chart without labels."""
    if not chart.labels or any(len(series.values) != len(chart.labels) for series in chart.series):
        raise ValueError(f"{chart.key}: every series needs one value for each of at least one label.")
    frame = _Frame(chart, _ticks(chart.top or _highest(chart)))
    body = {Form.LINES: _lines, Form.BARS: _bars, Form.AREAS: _areas}[chart.form]
    filled = chart.form is not Form.LINES
    return Drawing(
        key=chart.key,
        title=chart.title,
        about=chart.about,
        width=WIDTH,
        height=HEIGHT,
        filled=filled,
        patterns=tuple(range(2, len(chart.series) + 1)) if filled else (),
        shapes=(*_axes(frame), *body(frame)),
        heads=(chart.along, *(series.name for series in chart.series)),
        rows=tuple(_row(chart, place) for place in range(len(chart.labels))),
    )


def _row(chart: Chart, place: int) -> tuple[str, ...]:
    numbers = (series.values[place] for series in chart.series)
    return (chart.labels[place], *("" if number is None else chart.say(number) for number in numbers))


# --- axes -------------------------------------------------------------------------------------------------------------


def _highest(chart: Chart) -> float:
    """The largest number that has to fit."""
    columns = zip(*(series.values for series in chart.series), strict=True)
    stacked = chart.form is not Form.LINES
    heights = [(sum if stacked else max)(number or 0 for number in column) for column in columns]
    return float(max(heights, default=0)) or 1.0


def _ticks(top: float) -> tuple[float, ...]:
    """Round numbers from 0 to at least the top."""
    rough = top / _TICKS
    power = 10 ** math.floor(math.log10(rough))
    step = next(part * power for part in (1, 2, 2.5, 5, 10) if part * power >= rough * (1 - 1e-9))
    return tuple(round(step * number, 10) for number in range(math.ceil(top / step - 1e-9) + 1))


def _axes(frame: _Frame) -> Iterator[Shape]:
    right, bottom = frame.right, HEIGHT - _BOTTOM
    yield _shape("text", "unit", text=frame.chart.unit, x=2, y=_TOP - 11)
    for tick in frame.ticks:
        y = frame.y(tick)
        yield _shape("line", "axis" if tick == 0 else "gridline", x1=_LEFT, x2=right, y1=y, y2=y)
        said = frame.chart.say(tick)
        yield _shape("text", "tick", text=said, x=_LEFT - 6, y=y + 4, **{"text-anchor": "end"})
    labels = frame.chart.labels
    for place in _spread(len(labels), frame):
        anchor = "middle"
        if frame.chart.form is not Form.BARS and len(labels) > 1:
            anchor = {0: "start", len(labels) - 1: "end"}.get(place, "middle")
        yield _shape("text", "tick", text=labels[place], x=frame.x(place), y=bottom + 16, **{"text-anchor": anchor})
    yield _shape("text", "along", text=frame.chart.along, x=right, y=bottom + 30, **{"text-anchor": "end"})


def _spread(count: int, frame: _Frame) -> list[int]:
    """Which labels there is room for: the first, the last, and some between them that do not touch."""
    last = count - 1
    if count <= 2:
        return list(range(count))
    kept = [0]
    for part in range(1, _LABELS - 1):
        wanted = frame.x(0) + (frame.x(last) - frame.x(0)) * part / (_LABELS - 1)
        place = min(range(1, last), key=lambda at: abs(frame.x(at) - wanted))
        room = _WIDE_CHARACTER * (len(frame.chart.labels[place]) * 1.5 + 1)
        if frame.x(place) - frame.x(kept[-1]) > room and frame.x(last) - frame.x(place) > room:
            kept.append(place)
    return [*kept, last]


# --- lines ------------------------------------------------------------------------------------------------------------


def _lines(frame: _Frame) -> Iterator[Shape]:
    ends: list[tuple[float, int, str]] = []
    early: list[tuple[float, float, int, str]] = []
    for number, series in enumerate(frame.chart.series, 1):
        points = [(frame.x(place), frame.y(value)) for place, value in enumerate(series.values) if value is not None]
        if not points:
            continue
        path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        yield _shape("path", f"curve s{number}", d=path)
        for x, y in _marked(points):
            yield _shape("path", f"point s{number}", d=_marker(number, x, y))
        x, y = points[-1]
        if x < frame.right - _LINE:  # it ends before the others: its name stands under its last point
            early.append((x, y, number, series.name))
        else:
            ends.append((y, number, series.name))
    yield from _under(frame, early)
    yield from _names(frame, ends)


def _under(frame: _Frame, early: Sequence[tuple[float, float, int, str]]) -> Iterator[Shape]:
    """Names under the last points of lines that end before the others; one that would touch another moves down, or
    where there is no room below, up.
    """
    placed: list[tuple[float, float, float]] = []  # left, right, height
    for x, y, number, name in sorted(early):
        wide = len(name) * _CHARACTER
        left, height = max(_LEFT, min(x + 2, frame.right - wide)), y + 32
        levels = [height + _LINE * step for step in (*range(len(early)), *range(-3, -3 - len(early), -1))]
        free = (
            level
            for level in levels
            if _TOP < level < HEIGHT - _BOTTOM
            and all(left > end or left + wide < start or abs(level - at) >= _LINE for start, end, at in placed)
        )
        height = next(free, height)
        placed.append((left, left + wide, height))
        yield _shape("text", f"name s{number}", text=name, x=left, y=height)


def _marked(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that carry a marker: all of a few, else some, and always the last."""
    every = max(1, math.ceil(len(points) / 12))
    return [point for at, point in enumerate(reversed(points)) if at % every == 0]


def _marker(number: int, x: float, y: float) -> str:
    size = 3.6
    match _MARKERS[(number - 1) % len(_MARKERS)]:
        case "circle":
            return f"M{x - size:.1f} {y:.1f} a{size} {size} 0 1 0 {2 * size} 0 a{size} {size} 0 1 0 {-2 * size} 0 Z"
        case "square":
            return f"M{x - size:.1f} {y - size:.1f} h{2 * size} v{2 * size} h{-2 * size} Z"
        case "triangle":
            return (
                f"M{x:.1f} {y - size - 1:.1f} L{x + size + 1:.1f} {y + size:.1f} L{x - size - 1:.1f} {y + size:.1f} Z"
            )
        case _:
            high = size + 1.4
            return f"M{x:.1f} {y - high:.1f} L{x + high:.1f} {y:.1f} L{x:.1f} {y + high:.1f} L{x - high:.1f} {y:.1f} Z"


def _names(frame: _Frame, ends: Sequence[tuple[float, int, str]]) -> Iterator[Shape]:
    """Each series' name beside its end, moved apart where ends meet."""
    x = WIDTH - _RIGHT + 8
    for (wanted, number, name), y in zip(sorted(ends), _apart([end[0] for end in sorted(ends)]), strict=True):
        if abs(y - wanted) > 3:
            yield _shape("line", "leader", x1=WIDTH - _RIGHT + 2, y1=wanted, x2=x - 1, y2=y)
        short = name if len(name) * _CHARACTER <= _RIGHT - 8 else name[: int((_RIGHT - 8) / _CHARACTER) - 1] + "…"
        yield _shape("text", f"name s{number}", text=short, x=x, y=y + 4)


def _apart(wanted: Sequence[float]) -> list[float]:
    """Heights in the same order with room for a line of text between them, as near as that allows."""
    placed: list[float] = []
    for y in wanted:
        placed.append(max(y, placed[-1] + _LINE) if placed else y)
    over = max(0.0, placed[-1] - (HEIGHT - _BOTTOM)) if placed else 0.0
    for at in reversed(range(len(placed))):
        limit = placed[at + 1] - _LINE if at + 1 < len(placed) else HEIGHT - _BOTTOM
        placed[at] = min(placed[at], limit) if over else placed[at]
    return placed


# --- filled ones ------------------------------------------------------------------------------------------------------


def _stacks(frame: _Frame) -> Iterator[tuple[int, Series, list[tuple[float, float]]]]:
    """Each series with the lower and the upper height of every place."""
    below = [0.0] * len(frame.chart.labels)
    for number, series in enumerate(frame.chart.series, 1):
        above = [base + (value or 0) for base, value in zip(below, series.values, strict=True)]
        yield number, series, list(zip(below, above, strict=True))
        below = above


def _areas(frame: _Frame) -> Iterator[Shape]:
    ends: list[tuple[float, int, str]] = []
    for number, series, heights in _stacks(frame):
        xs = [frame.x(place) for place in range(len(heights))]
        if len(xs) == 1:  # one point is drawn as wide as the page, so that it can be seen
            xs, heights = [_LEFT, WIDTH - _RIGHT], heights * 2
        upper = [f"{x:.1f} {frame.y(high):.1f}" for x, (_, high) in zip(xs, heights, strict=True)]
        lower = [f"{x:.1f} {frame.y(low):.1f}" for x, (low, _) in zip(xs, heights, strict=True)]
        path = f"M{' L'.join([*upper, *reversed(lower)])} Z"
        yield from _filled("path", frame, number, d=path)
        yield _shape("path", f"edge s{number}", d=f"M{' L'.join(upper)}")
        low, high = heights[-1]
        if high > low:
            ends.append((frame.y((low + high) / 2), number, series.name))
    yield from _names(frame, ends)


def _bars(frame: _Frame) -> Iterator[Shape]:
    wide = min(_WIDEST, (frame.right - _LEFT) / len(frame.chart.labels))
    gap = min(3.0, wide * 0.2)
    ends: list[tuple[float, int, str]] = []
    for number, series, heights in _stacks(frame):
        for place, (low, high) in enumerate(heights):
            if high > low:
                left, top = frame.x(place) - wide / 2 + gap / 2, frame.y(high)
                yield from _filled(
                    "rect", frame, number, x=left, y=top, width=wide - gap, height=max(0.8, frame.y(low) - top)
                )
        if any(series.values) and len(frame.chart.series) > 1:
            ends.append((frame.y(sum(heights[-1]) / 2), number, series.name))
    yield from _names(frame, ends)


def _filled(tag: str, frame: _Frame, number: int, **place: Any) -> Iterator[Shape]:
    """A shape in the series' colour, and over it the series' pattern; the first has none."""
    yield _shape(tag, f"fill s{number}", **place)
    if number > 1:
        yield _shape(tag, "pattern", fill=f"url(#{frame.chart.key}-{number})", **place)


def _shape(tag: str, kind: str, *, text: str = "", **attributes: Any) -> Shape:
    written = ((name, value if isinstance(value, str) else f"{value:.1f}") for name, value in attributes.items())
    return Shape(tag, (("class", kind), *written), text)


# --- a file of its own ------------------------------------------------------------------------------------------------

# As the page's stylesheet has it, for readers that bring none.
STYLE: Final = """
svg { font: 12px ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif;
  color-scheme: light dark; --sheet: #fff; --ink: #1e1b16; --quiet: #6b6455; --line: #e2ddd1;
  --s1: #1f4687; --s2: #9a4a00; --s3: #17592f; --s4: #4d3592; }
@media (prefers-color-scheme: dark) { svg { --sheet: #1d1b18; --ink: #ece7dd; --quiet: #a39b8c; --line: #34302a;
  --s1: #aac6fd; --s2: #f8bb8c; --s3: #93dcab; --s4: #c9b9fb; } }
.sheet { fill: var(--sheet); } text { fill: var(--ink); }
.title { font-size: 14px; font-weight: 600; } .tick, .unit, .along, .foot { fill: var(--quiet); }
.gridline { stroke: var(--line); } .axis { stroke: var(--quiet); } .leader { stroke: var(--quiet); stroke-width: 0.7; }
.curve, .edge { fill: none; stroke-width: 2; stroke-linejoin: round; } .point { stroke: var(--sheet); stroke-width: 1; }
.curve.s2 { stroke-dasharray: 6 4; } .curve.s3 { stroke-dasharray: 2 3; } .curve.s4 { stroke-dasharray: 9 3 2 3; }
.curve.s1, .edge.s1 { stroke: var(--s1); } .curve.s2, .edge.s2 { stroke: var(--s2); }
.curve.s3, .edge.s3 { stroke: var(--s3); } .curve.s4, .edge.s4 { stroke: var(--s4); }
.point.s1, .name.s1, .fill.s1 { fill: var(--s1); } .point.s2, .name.s2, .fill.s2 { fill: var(--s2); }
.point.s3, .name.s3, .fill.s3 { fill: var(--s3); } .point.s4, .name.s4, .fill.s4 { fill: var(--s4); }
.name { font-weight: 600; }
"""


def svg_file(*, title: str, about: str, drawings: Sequence[Drawing], foot: str = "") -> str:
    """Drawings of lines side by side as one SVG file, the first on the left. Raises ValueError for filled ones."""
    if any(drawing.filled for drawing in drawings):
        raise ValueError("A file of its own holds lines only.")
    wide, high = WIDTH * len(drawings), HEIGHT + 70
    root = ElementTree.Element(
        "svg",
        {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {wide:.0f} {high:.0f}", "role": "img"}
        | {"aria-labelledby": "title about"},
    )
    ElementTree.SubElement(root, "title", {"id": "title"}).text = title
    ElementTree.SubElement(root, "desc", {"id": "about"}).text = about
    ElementTree.SubElement(root, "style").text = STYLE
    ElementTree.SubElement(root, "rect", {"class": "sheet", "width": f"{wide:.0f}", "height": f"{high:.0f}"})
    for at, drawing in enumerate(drawings):
        group = ElementTree.SubElement(root, "g", {"transform": f"translate({at * WIDTH:.0f} 34)"})
        ElementTree.SubElement(group, "text", {"class": "title", "x": "14", "y": "-10"}).text = drawing.title
        for shape in drawing.shapes:
            ElementTree.SubElement(group, shape.tag, dict(shape.attributes)).text = shape.text or None
    ElementTree.SubElement(root, "text", {"class": "foot", "x": "14", "y": f"{high - 12:.0f}"}).text = foot
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"
