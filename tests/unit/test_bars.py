"""A figure below its bar is a failure: benchmarks say so by their exit status, unless they are only to report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.bars import REPORT_ONLY, Bar, status

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
FAST, SLOW = Bar("a write", 49.9, 50, "ms"), Bar("a write", 50.0, 50, "ms")
MANY, FEW = Bar("writes", 500, 500, "a second", least=True), Bar("writes", 499.9, 500, "a second", least=True)


@pytest.mark.parametrize(
    ("bars", "wanted"), [([], 0), ([FAST, MANY], 0), ([SLOW], 1), ([FEW], 1), ([FAST, MANY, FEW], 1)]
)
def test_one_missed_bar_makes_the_exit_status_1(bars: list[Bar], wanted: int) -> None:
    assert status(bars, report_only=False) == wanted


@pytest.mark.parametrize("figure", [float("nan"), float("inf")])
def test_a_figure_that_is_none_holds_no_bar(figure: float) -> None:
    assert status([Bar("a write", figure, 50, "ms")], report_only=False) == 1
    assert status([Bar("writes", float("nan"), 500, "a second", least=True)], report_only=False) == 1


def test_a_missed_bar_is_said_whatever_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert status([SLOW, FAST, FEW], report_only=True) == 0
    assert capsys.readouterr().err.splitlines() == [
        "Above the bar: a write, 50.0 ms; it has to be under 50.",
        "Below the bar: writes, 499.9 a second; it has to be at least 500.",
    ]


def test_a_benchmark_that_speaks_of_a_bar_ends_by_it() -> None:
    """None may print that it is below a bar and end with 0: the words stand in one place, beside the status."""
    speaking = {path.name for path in FOLDER.glob("*.py") if re.search(r"\bbars?\b", path.read_text().casefold())}
    assert {"bars.py", "writing.py", "pages.py"} <= speaking
    for name in speaking - {"bars.py"}:
        source = (FOLDER / name).read_text(encoding="utf-8")
        assert "return status(" in source, name
        assert "take_option(parser)" in source, name
        assert not re.search(r"(?:below|above) the bar", source.casefold()), name


def test_the_option_has_one_name() -> None:
    assert REPORT_ONLY == "--report-only"
