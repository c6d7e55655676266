"""A pytest plugin: skips are loud, under CI=true a skipped browser test is a failure, what tests measured is told, and
what takes longest begins first.

Loaded with `-p` from pyproject.toml. Under pytest-xdist the worker changes the outcome and the controller tells it.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

BROWSER_TESTS = Path(__file__).resolve().parent / "e2e"
SHOWN = "shown"
LONGEST_FIRST = ("e2e", "acceptance", "integration")
INSTALL = "install Chromium (Debian: apt-get install --no-install-recommends chromium) or Chrome"


def strict() -> bool:
    """Whether this run may not pass without the browser tests."""
    return os.environ.get("CI", "").lower() in {"true", "1", "yes"}


def is_browser_test(path: Path) -> bool:
    """Whether a test file drives a real browser."""
    return path.resolve().is_relative_to(BROWSER_TESTS)


def why(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The reason of a skip."""
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A browser test that skips itself fails under CI=true."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        refuse(report, item.path)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """So does a whole file of them."""
    report = yield
    if report.skipped:
        refuse(report, collector.path)
    return report


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files of slow tests first, then by how much a test of their folder takes; inside a file nothing changes.

    With `make test` a process takes the next file when it has done one (`--no-loadscope-reorder`): the short ones are
    for the end, so that no process waits for the other's last long file.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path not in slow, _place(item.path), str(item.path)))


def pytest_collection_finish() -> None:
    """Spare every later garbage collection, and every forked child, the thousands of tests that stay to the end."""
    gc.collect()
    gc.freeze()


def _place(path: Path) -> int:
    return next((place for place, folder in enumerate(LONGEST_FIRST) if folder in path.parts), len(LONGEST_FIRST))


def refuse(report: pytest.TestReport | pytest.CollectReport, path: Path) -> None:
    """Turn a skipped browser test's report into a failure, where skips are not allowed."""
    if strict() and is_browser_test(path):
        reason = why(report)
        report.outcome = "failed"
        report.longrepr = f"With CI=true a browser test may not be skipped: {INSTALL}. It was skipped because: {reason}"


@pytest.fixture
def show(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Print lines at the end of the run, also from pytest-xdist's processes: what a test measured, passed or failed."""
    return lambda lines: record_property(SHOWN, lines)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have to show, and say what was not tested, once per reason, where nobody overlooks it."""
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, [])]
    shown = [lines for report in reports for name, lines in report.user_properties if name == SHOWN]
    if shown:
        terminalreporter.write_sep("-", "shown by the tests")
        terminalreporter.write_line("\n".join(shown))
    skipped = terminalreporter.stats.get("skipped", [])
    if not skipped:
        return
    terminalreporter.write_sep("!", f"{len(skipped)} NOT TESTED", yellow=True, bold=True)
    for reason, count in Counter(why(report) for report in skipped).most_common():
        terminalreporter.write_line(f"{count:4} x {reason.removeprefix('Skipped: ')}", yellow=True)
    terminalreporter.write_sep("!", yellow=True)
