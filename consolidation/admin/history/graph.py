"""Where the boxes and lines of a lineage lie: layers from what was said first down to what came of it.

Plain numbers: no store, no text, the same picture for the same rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

BOX_WIDE: Final = 126  # of one box, in units of the drawing
BOX_HIGH: Final = 54
APART: Final = 12  # between two boxes of a row
BETWEEN: Final = 46  # between two rows
EDGE: Final = 8  # around everything, for a focus ring
WIDE: Final = 4  # boxes in a row; a layer of more takes several rows


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """What one box gave to another: the upper one came first."""

    upper: str
    lower: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where one box lies: its upper left corner, in units of the drawing."""

    key: str
    row: int
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Line:
    """One line from the lower side of a box to the upper side of another, as an SVG path."""

    edge: Edge
    path: str


@dataclass(frozen=True, slots=True)
class Layout:
    """The whole drawing. `places` are in the order in which they are read: row by row, from the left."""

    places: tuple[Place, ...]
    lines: tuple[Line, ...]
    width: int
    height: int


def lay_out(
    *, keys: Iterable[str], edges: Iterable[Edge], first: Sequence[str] = (), last: Sequence[str] = ()
) -> Layout:
    """Boxes in rows, every line downwards, no two boxes over each other. `first` and `last` get rows of their own.

    Lines of boxes that are not there are left out, and so is one line of each ring.
    """
    known = sorted(set(keys))
    drawn = sorted({edge for edge in edges if {edge.upper, edge.lower} <= set(known) and edge.upper != edge.lower})
    layers = _layers(known, drawn)
    rows = [list(first)] if first else []
    for layer in _ordered(layers, drawn):
        rows += [layer[at : at + WIDE] for at in range(0, len(layer), WIDE)]
    rows += [list(last)] if last else []
    width = max((_wide(len(row)) for row in rows), default=0) + 2 * EDGE
    places = tuple(place for number, row in enumerate(rows) for place in _row(row, number, width))
    found = {place.key: place for place in places}
    standing = [[found[key] for key in row] for row in rows]
    lines = tuple(
        Line(edge, _path(found[edge.upper], found[edge.lower], standing)) for edge in drawn if _falls(edge, found)
    )
    return Layout(places, lines, width, len(rows) * (BOX_HIGH + BETWEEN) - BETWEEN + 2 * EDGE if rows else 0)


def _layers(keys: Sequence[str], edges: Sequence[Edge]) -> dict[str, int]:
    """Each box one below the lowest of those above it; one that has none above it close to the first below it."""
    above: defaultdict[str, set[str]] = defaultdict(set)
    below: defaultdict[str, set[str]] = defaultdict(set)
    for edge in edges:
        above[edge.lower].add(edge.upper)
    left, layer = list(keys), dict.fromkeys(keys, 0)
    while left:
        # Where all that is left waits for each other, rows name each other in a ring: the first one goes first.
        ready = [key for key in left if not above[key] & set(left)] or left[:1]
        for key in ready:
            layer[key] = max((layer[each] + 1 for each in above[key] if each not in left), default=0)
        left = [key for key in left if key not in ready]
    for edge in edges:
        if layer[edge.lower] > layer[edge.upper]:
            below[edge.upper].add(edge.lower)
    for key in keys:
        if not above[key] and below[key]:
            layer[key] = min(layer[each] for each in below[key]) - 1
    return layer


def _ordered(layer: Mapping[str, int], edges: Sequence[Edge]) -> list[list[str]]:
    """The boxes of each layer, under what they came from where that can be."""
    above: defaultdict[str, list[str]] = defaultdict(list)
    for edge in edges:
        above[edge.lower].append(edge.upper)
    at: dict[str, float] = {}
    rows: list[list[str]] = []
    for number in sorted(set(layer.values())):
        mine = [key for key in layer if layer[key] == number]
        mine.sort(key=lambda key: (_middle([at[each] for each in above[key] if each in at]), key))
        at |= {key: (place + 0.5) / len(mine) for place, key in enumerate(mine)}
        rows.append(mine)
    return rows


def _middle(places: Sequence[float]) -> float:
    return sum(places) / len(places) if places else 0.5


def _wide(boxes: int) -> int:
    return boxes * (BOX_WIDE + APART) - APART


def _row(keys: Sequence[str], number: int, width: int) -> list[Place]:
    left = (width - _wide(len(keys))) // 2
    y = EDGE + number * (BOX_HIGH + BETWEEN)
    return [Place(key, number, left + at * (BOX_WIDE + APART), y) for at, key in enumerate(keys)]


def _falls(edge: Edge, places: Mapping[str, Place]) -> bool:
    return places[edge.upper].row < places[edge.lower].row


def _path(upper: Place, lower: Place, rows: Sequence[Sequence[Place]]) -> str:
    """A curve that leaves straight down and arrives straight down, and passes between the boxes of the rows between, so
    that it never seems to end at one of them.
    """
    x, y = upper.x + BOX_WIDE // 2, upper.y + BOX_HIGH
    to_x = lower.x + BOX_WIDE // 2
    path = f"M{x} {y}"
    for row in rows[upper.row + 1 : lower.row]:
        top = row[0].y
        gap = _gap(row, x + (to_x - x) * (top - y) // (lower.y - y))
        path += f"{_curve(x, y, gap, top)}L{gap} {top + BOX_HIGH}"
        x, y = gap, top + BOX_HIGH
    return path + _curve(x, y, to_x, lower.y)


def _gap(row: Sequence[Place], wanted: int) -> int:
    """Where a line may pass a row, as near as can be to where it wants to."""
    gaps = [row[0].x - APART // 2, *(place.x + BOX_WIDE + APART // 2 for place in row)]
    if not gaps[0] < wanted < gaps[-1]:
        return wanted
    return min(gaps, key=lambda gap: (abs(gap - wanted), gap))


def _curve(x: int, y: int, to_x: int, to_y: int) -> str:
    bend = min(40, (to_y - y) // 2)
    return f"C{x} {y + bend} {to_x} {to_y - bend} {to_x} {to_y}"
