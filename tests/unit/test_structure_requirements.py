"""docs/requirements.md names, for every requirement, tests that exist and say which requirement they are about."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from consolidation.policy import Policy

ROOT = Path(__file__).resolve().parents[2]
TABLE = (ROOT / "docs/requirements.md").read_text(encoding="utf-8")
WANTED = [
    *(f"R{number}" for number in range(1, 135)),
    *(f"E{number}" for number in range(1, 11)),
    *(f"C{number}" for number in range(1, 16)),
]
NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
ROW = re.compile(
    r"^\| (?P<name>[REC]\d+)(?: \((?P<marks>[TNFV, ]+)\))? \| (?P<asks>[^|]+) \| (?P<where>[^|]+) \|$", re.M
)
NOT_BUILT = "not built yet"
MANDATORY = range(96, 109)  # the mission's own thirteen tests
MARKS = {  # as the mission sets them: (T) a test must prove it, (N) a fixed number, (F) a failure mode, (V) a verb
    "N": {3, 21, 22, 23, 31, 32, 33, 38, 39, 42, 43, 45, 56, 59, 65, 66, 72, 75, 81, 94, 124, 126},
    "F": {2, 41, *range(88, 96), 123, 132},
    "V": {52, 83, 84, 85, 86, 87},
    "T": {2, 7, 13, 15, 16, *MANDATORY, 125, 133},
}


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    marks: frozenset[str]
    where: str

    @property
    def tests(self) -> list[tuple[str, str]]:
        """The tests it names, each with its file."""
        return NAMED.findall(self.where)


def rows(table: str) -> list[Row]:
    return [
        Row(found["name"], frozenset(re.findall("[A-Z]", found["marks"] or "")), found["where"])
        for found in ROW.finditer(table)
    ]


@cache
def said_in(file: str) -> dict[str, str]:
    """The tests of a file, each with what it says of itself: name and docstring."""
    path = ROOT / "tests" / file
    if not path.is_file():
        return {}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))
    return {node.name: f"{node.name} {ast.get_docstring(node) or ''}" for node in found}


def wrong(table: str) -> Iterator[str]:
    """What is wrong with a table, a sentence each."""
    known = rows(table)
    names = [row.name for row in known]
    yield from (f"{name} has no row" for name in WANTED if name not in names)
    yield from (f"{name} has {names.count(name)} rows" for name in sorted({*names}) if names.count(name) > 1)
    for row in known:
        if not row.tests and NOT_BUILT not in row.where:
            yield f"{row.name} names no test and does not say '{NOT_BUILT}'"
        for file, test in row.tests:
            said = said_in(file).get(test)
            if said is None:
                yield f"{row.name}: tests/{file} has no {test}"
            elif not re.search(rf"\b{row.name}\b", said):
                yield f"{row.name}: the docstring of {test} in tests/{file} does not mention {row.name}"


def test_every_requirement_is_shown_by_tests_that_exist_and_say_so() -> None:
    found = list(wrong(TABLE))
    assert not found, "docs/requirements.md:\n" + "\n".join(found)


def test_the_marks_are_those_of_the_mission_and_marked_rows_have_a_test() -> None:
    known = {row.name: row for row in rows(TABLE)}
    for mark, numbers in MARKS.items():
        assert {name for name, row in known.items() if mark in row.marks} == {f"R{number}" for number in numbers}
    bare = [row.name for row in known.values() if row.marks and not row.tests]
    assert not bare, f"docs/requirements.md: name a test for {', '.join(bare)}"


def test_every_mandatory_test_is_in_the_file_of_that_name() -> None:
    """R36: the mission's own thirteen tests stand together, one for each of R96-R108 at least."""
    said = " ".join(said_in("acceptance/test_mandatory.py").values())
    missing = [number for number in MANDATORY if not re.search(rf"\bR{number}\b", said)]
    assert not missing
    first = {row.name: row.tests[0][0] for row in rows(TABLE) if row.name in {f"R{number}" for number in MANDATORY}}
    assert set(first.values()) == {"acceptance/test_mandatory.py"}


def test_what_is_not_built_yet_is_said_for_these_and_no_others() -> None:
    """So that a row is looked at again when its part is built; take it out here then."""
    assert {row.name for row in rows(TABLE) if NOT_BUILT in row.where} == {"R50"}


LINE = "| R96 (T) | merging | `acceptance/test_mandatory.py::test_merging_preserves_every_source_id` |"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", "R96 has no row"),
        (f"{LINE}\n{LINE}", "R96 has 2 rows"),
        (LINE.replace("_every_", "_no_"), "R96: tests/acceptance/test_mandatory.py has no test_merging_preserves_no_"),
        (LINE.replace("mandatory.py", "nowhere.py"), "R96: tests/acceptance/test_nowhere.py has no test_merging_"),
        (LINE.replace("R96", "R97"), "in tests/acceptance/test_mandatory.py does not mention R97"),
        ("| R96 (T) | merging | the README says so |", "R96 names no test and does not say 'not built yet'"),
    ],
)
def test_a_row_that_is_wrong_would_be_found(line: str, sentence: str) -> None:
    """The positive control of the first test."""
    assert any(sentence in found for found in wrong(line))


# --- requirements about the project itself ---------------------------------------------------------------------------


def test_the_project_is_built_from_pyproject_by_hatchling() -> None:
    """R34: a package each in the design's layout, which overrides the src folder."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["build-system"]["build-backend"] == "hatchling.build"
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", project["project"]["name"])
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert {"consolidation", "observations"} <= set(packages)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", name) for name in packages)


def test_the_modules_of_the_mission_are_there_and_the_command_comes_last() -> None:
    """R35: six modules, each importable by itself, and the command that only they need not know."""
    for module in ("operations", "candidates", "merge", "promote", "prune", "runner"):
        assert find_spec(f"consolidation.{module}") is not None
    assert find_spec("consolidation.management.commands.consolidate") is not None
    layers = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition('"consolidation-layers"')[2]
    assert layers.index("management") < layers.index("runner") < layers.index("merge") < layers.index("operations")


def test_thresholds_retention_and_what_may_merge_are_settings_and_the_example_and_readme_exist() -> None:
    """R60: a policy holds them; what a process needs is in the example; the README says how to begin."""
    known = {field.name for field in fields(Policy)}
    assert {
        "t_merge",
        "min_support",
        "max_compression",
        "archive_below",
        "retention",
        "mergeable",
        "untouchable",
    } <= known
    assert "DATABASE_URL" in (ROOT / ".env.example").read_text(encoding="utf-8")
    assert "make demo" in (ROOT / "README.md").read_text(encoding="utf-8")
