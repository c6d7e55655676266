"""Pictures of numbers: where things lie, what they are called, and that they read without colour."""

from __future__ import annotations

import itertools
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from consolidation.charts import Chart, Drawing, Form, Series, Shape, draw, svg_file

CHART = Chart(
    key="size",
    title="Size over time",
    about="Two rows at first, six at the end.",
    form=Form.AREAS,
    unit="rows",
    along="day",
    labels=("2026-01-01", "2026-01-02", "2026-01-03"),
    series=(Series("active", (2, 3, 4)), Series("archived", (0, 1, 2))),
)


def of(drawing: Drawing, kind: str) -> list[Shape]:
    """The shapes of one class."""
    return [shape for shape in drawing.shapes if dict(shape.attributes)["class"].split()[0] == kind]


def at(shape: Shape, name: str) -> float:
    """One attribute as a number."""
    return float(dict(shape.attributes)[name])


def test_the_axis_is_named_has_round_numbers_from_nought_and_a_unit() -> None:
    """Axes with units."""
    drawing = draw(CHART)
    assert [shape.text for shape in of(drawing, "tick")][:4] == ["0", "2", "4", "6"]
    assert [shape.text for shape in of(drawing, "unit")] == ["rows"]
    assert [shape.text for shape in of(drawing, "along")] == ["day"]
    assert [shape.text for shape in of(drawing, "tick")][-3::2] == ["2026-01-01", "2026-01-03"]


def test_stacked_areas_end_in_their_names_and_all_but_the_lowest_carry_a_pattern() -> None:
    """Readable without colour."""
    drawing = draw(CHART)
    assert sorted(shape.text for shape in of(drawing, "name")) == ["active", "archived"]
    assert [dict(shape.attributes)["fill"] for shape in of(drawing, "pattern")] == ["url(#size-2)"]
    assert drawing.patterns == (2,)


def test_a_stack_is_as_high_as_its_numbers_together() -> None:
    drawing = draw(CHART)
    ticks = {float(s.text): at(s, "y") for s in of(drawing, "tick") if s.text in {"0", "6"}}
    edge = dict(of(drawing, "edge")[1].attributes)["d"]
    assert float(edge.split()[-1]) == pytest.approx(ticks[6.0] - 4, abs=0.1)


def test_lines_differ_by_marker_and_leave_out_what_is_not_known() -> None:
    lines = replace(
        CHART, form=Form.LINES, series=(Series("one", (1, None, 3)), Series("two", (None, 2, 2))), key="lines"
    )
    drawing = draw(lines)
    marks: dict[str, set[str]] = {}
    for shape in of(drawing, "point"):
        attributes = dict(shape.attributes)
        marks.setdefault(attributes["class"], set()).add("".join(c for c in attributes["d"] if c.isalpha()))
    assert marks["point s1"].isdisjoint(marks["point s2"])
    assert [dict(s.attributes)["d"].count("L") for s in of(drawing, "curve")] == [1, 1]
    assert drawing.rows[1] == ("2026-01-02", "", "2")


def test_a_line_that_ends_before_the_others_has_its_name_beside_its_own_end() -> None:
    series = (Series("whole", (1, 2, 3)), Series("short", (1, 1, None)))
    whole, short = sorted(of(draw(replace(CHART, form=Form.LINES, series=series)), "name"), key=lambda s: -at(s, "x"))
    assert (whole.text, short.text) == ("whole", "short")
    assert at(short, "x") < at(whole, "x") - 100


def test_names_at_the_ends_of_lines_never_touch() -> None:
    same = tuple(Series(f"line {number}", (1, 2, 3)) for number in range(4))
    heights = sorted(at(shape, "y") for shape in of(draw(replace(CHART, form=Form.LINES, series=same)), "name"))
    assert min(low - high for high, low in itertools.pairwise(heights)) >= 13.9
    assert heights[-1] < 240


@pytest.mark.parametrize("value", [0.0, 1.0, 3.0])
def test_names_of_lines_that_end_before_the_others_never_touch(value: float) -> None:
    """Runs of suites end at different times, and of many the numbers are the same."""
    ended = [Series(f"suite number {n}", tuple([value] * n + [None] * (6 - n))) for n in (2, 3, 4)]
    chart = replace(CHART, form=Form.LINES, labels=tuple("abcdef"), series=(*ended, Series("whole", (3.0,) * 6)))
    names = [(at(shape, "x"), at(shape, "y")) for shape in of(draw(chart), "name") if shape.text != "whole"]
    wide = 6 * len("suite number 2")
    assert len(names) == 3
    for (left, high), (other, low) in itertools.combinations(sorted(names), 2):
        assert other - left > wide or abs(high - low) >= 13
    assert all(20 < high < 240 for _, high in names)


def test_labels_along_the_bottom_never_touch_however_many_there_are() -> None:
    days = tuple(f"2026-01-{number:02}" for number in range(1, 32))
    drawing = draw(replace(CHART, labels=days, series=(Series("active", tuple(range(31))),)))
    places = [at(shape, "x") for shape in of(drawing, "tick") if shape.text.startswith("2026")]
    assert min(right - left for left, right in itertools.pairwise(places)) > 80


def test_the_same_numbers_come_as_a_table() -> None:
    """A table of the same numbers."""
    drawing = draw(CHART)
    assert drawing.heads == ("day", "active", "archived")
    assert drawing.rows == (("2026-01-01", "2", "0"), ("2026-01-02", "3", "1"), ("2026-01-03", "4", "2"))


@pytest.mark.parametrize("form", Form)
def test_one_place_and_no_rows_at_all_can_be_drawn(form: Form) -> None:
    drawing = draw(replace(CHART, form=form, labels=("2026-01-01",), series=(Series("active", (0,)),)))
    assert drawing.rows == (("2026-01-01", "0"),)


def test_a_series_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="one value for each"):
        draw(replace(CHART, series=(Series("active", (1,)),)))


def test_a_file_of_its_own_is_xml_with_a_title_a_sentence_and_escaped_words() -> None:
    """The picture is an SVG file."""
    lines = replace(CHART, form=Form.LINES, series=(Series("a<b", (1, 2, 3)),))
    text = svg_file(title="T & more", about="It ends.", drawings=[draw(lines), draw(lines)], foot="seed 7")
    root = ElementTree.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    assert [root.findtext(f"{space}title"), root.findtext(f"{space}desc")] == ["T & more", "It ends."]
    assert sum(element.text == "a<b" for element in root.iter(f"{space}text")) == 2
    assert "<script" not in text
    with pytest.raises(ValueError, match="lines only"):
        svg_file(title="T", about="", drawings=[draw(CHART)])
