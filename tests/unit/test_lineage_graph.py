"""The drawing of a lineage: boxes never lie over each other, lines go down, and the same rows give the same picture."""

from __future__ import annotations

import random
import re
from itertools import combinations

import pytest

from consolidation.admin.history.graph import APART, BOX_HIGH, BOX_WIDE, WIDE, Edge, Layout, lay_out

SHAPES = {
    "chain": ["ab", "bc", "cd"],
    "merge": ["ae", "be", "ce", "de"],
    "diamond": ["ab", "ac", "bd", "cd"],
    "two layers at once": ["ab", "bc", "ac"],
    "apart": ["ab", "cd"],
}


def edges_of(words: list[str]) -> list[Edge]:
    return [Edge(word[0], word[1]) for word in words]


def drawn(words: list[str]) -> Layout:
    return lay_out(keys=sorted({letter for word in words for letter in word}), edges=edges_of(words))


def overlap(layout: Layout) -> bool:
    """Whether two boxes touch."""
    return any(
        abs(one.x - other.x) < BOX_WIDE + APART and abs(one.y - other.y) < BOX_HIGH
        for one, other in combinations(layout.places, 2)
    )


def some(seed: int) -> list[Edge]:
    """Forty rows, each after the first on up to four of those before it."""
    dice = random.Random(seed)
    names = [f"{number:02}" for number in range(40)]
    return [
        Edge(names[before], names[number])
        for number in range(1, 40)
        for before in dice.sample(range(number), min(number, dice.randint(0, 4)))
    ]


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_every_line_goes_down_and_no_two_boxes_touch(shape: str) -> None:
    """E.8: the lineage reads from what was said first down to what came of it."""
    layout = drawn(SHAPES[shape])
    assert not overlap(layout)
    rows = {place.key: place.row for place in layout.places}
    assert all(rows[line.edge.upper] < rows[line.edge.lower] for line in layout.lines)
    assert [line.edge for line in layout.lines] == sorted(edges_of(SHAPES[shape]))


@pytest.mark.parametrize("seed", range(5))
def test_forty_rows_of_any_lineage_lie_apart_within_the_drawing(seed: int) -> None:
    """No overlap, nothing outside, at most four boxes in a row."""
    layout = lay_out(keys=[f"{number:02}" for number in range(40)], edges=some(seed))
    assert not overlap(layout)
    assert len(layout.lines) == len(set(some(seed)))
    for place in layout.places:
        assert 0 <= place.x <= layout.width - BOX_WIDE
        assert 0 <= place.y <= layout.height - BOX_HIGH
    rows = [place.row for place in layout.places]
    assert max(rows.count(row) for row in rows) <= WIDE


def test_paths_end_lower_than_they_begin() -> None:
    """What is drawn, not only what was meant."""
    for line in lay_out(keys=[f"{number:02}" for number in range(40)], edges=some(7)).lines:
        numbers = [int(number) for number in re.findall(r"-?\d+", line.path)]
        assert numbers[1] < numbers[-1]


@pytest.mark.parametrize("seed", range(5))
def test_a_long_line_passes_between_the_boxes_of_other_rows(seed: int) -> None:
    """A line behind a box would seem to end there: it says that a row came from what it did not come from."""
    layout = lay_out(keys=[f"{number:02}" for number in range(40)], edges=some(seed))
    rows = {place.key: place.row for place in layout.places}
    long = 0
    for line in layout.lines:
        passes = [int(x) for x in re.findall(r"L(-?\d+) ", line.path)]
        between = range(rows[line.edge.upper] + 1, rows[line.edge.lower])
        assert len(passes) == len(between)
        for x, row in zip(passes, between, strict=True):
            long += 1
            assert not any(place.row == row and place.x < x < place.x + BOX_WIDE for place in layout.places)
            assert 0 <= x <= layout.width
    assert long


def test_the_order_of_rows_and_lines_does_not_matter() -> None:
    """The same lineage is the same picture, whatever order the database gave it in."""
    keys, edges = [f"{number:02}" for number in range(40)], some(3)
    assert lay_out(keys=keys, edges=edges) == lay_out(keys=reversed(keys), edges=[*reversed(edges), edges[0]])


def test_boxes_are_read_row_by_row_from_the_left() -> None:
    """Tab goes the way the eye goes."""
    places = lay_out(keys=[f"{number:02}" for number in range(40)], edges=some(1)).places
    assert [(place.y, place.x) for place in places] == sorted((place.y, place.x) for place in places)


def test_a_late_witness_stands_just_above_what_rests_on_it() -> None:
    """An episode that only the last row rests on is not drawn at the top of a long chain."""
    rows = {place.key: place.row for place in drawn(["ab", "bc", "cd", "ed"]).places}
    assert rows["e"] == rows["c"]


def test_what_is_left_out_has_rows_of_its_own() -> None:
    """The boxes that say "and n more"."""
    layout = lay_out(keys=["a", "b"], edges=[Edge("a", "b")], first=["up"], last=["down"])
    assert [place.key for place in layout.places] == ["up", "a", "b", "down"]
    assert not overlap(layout)


def test_a_ring_and_strange_lines_are_drawn_without_the_line_that_cannot_be() -> None:
    """No row can derive from itself in the store; a picture of one that did must end all the same."""
    layout = lay_out(keys=["a", "b"], edges=edges_of(["ab", "ba", "aa", "ax"]))
    assert [line.edge for line in layout.lines] == [Edge("a", "b")]
    assert lay_out(keys=[], edges=[]).places == ()
