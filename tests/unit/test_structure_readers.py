"""Who reads observations for an agent: through the QuerySet that decides who may see a row (R13, I21).

A query has to name `active()`, `as_of()` or `with_history()`; SQL that names the table has to ask for active rows in
the same piece. Read from the syntax trees of what answers agents. The exceptions say why.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READERS = ("observations/retrieval", "observations/prompting", "observations/calls")
DECIDING = {"active", "as_of", "with_history"}
TABLE = re.compile(r"\bobservations_observation\b")
ACTIVE = re.compile(r"\bstatus = 'active'")

EXCEPTIONS = {
    "retrieval/narrowing.py rows": "the place that decides: it calls one of the three on the next line",
    "retrieval/words.py _STORED": "values.ROWS says which: active ones, or ids that Narrowed.rows has decided on",
    "prompting/recalling.py _WORDS": "ids that Store.summaries has decided on",
    "calls/reading.py _chain": "a history shows what left the reads; what was erased is excluded",
    "calls/reading.py _CHAIN": "ids only: _chain reads their rows",
    "calls/receipts.py _put_texts_back": "the same answer to the same request; an erased row has no text",
}


def _owners(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Every function and every other statement of a module with its name, methods apart from their classes."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from _owners(ast.Module(node.body, []))
        elif isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            yield getattr(target, "id", "?"), node
        else:
            yield "?", node


def _chains(node: ast.AST) -> Iterator[list[str]]:
    """The names of each chain of calls on the observations' manager, or on a scope's: `objects`, `active`, ..."""
    inner = {id(each.value) for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    inner |= {id(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)}
    for each in ast.walk(node):
        if id(each) in inner or not isinstance(each, ast.Attribute | ast.Call):
            continue
        names: list[str] = []
        step: ast.AST = each
        while isinstance(step, ast.Attribute | ast.Call):
            if isinstance(step, ast.Attribute):
                names.append(step.attr)
            step = step.func if isinstance(step, ast.Call) else step.value
        manager = isinstance(step, ast.Name) and step.id == "Observation" and "objects" in names
        if manager or "observations" in names[:-1] or (names[-1:] == ["observations"] and len(names) > 1):
            yield names


def unguarded(source: str) -> set[str]:
    """Names of the functions and constants of a module that read observations and do not say which may be seen."""
    found = set()
    for name, node in _owners(ast.parse(source)):
        literals = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
        sql = [text for text in literals if isinstance(text, str) and TABLE.search(text)]
        if any(not DECIDING & {*chain} for chain in _chains(node)) or any(not ACTIVE.search(text) for text in sql):
            found.add(name)
    return found


def test_every_reader_asks_the_query_set_which_rows_may_be_seen() -> None:
    found = {
        f"{path.relative_to(ROOT / 'observations')} {name}"
        for package in READERS
        for path in sorted((ROOT / package).rglob("*.py"))
        for name in unguarded(path.read_text(encoding="utf-8"))
    }
    new = found - EXCEPTIONS.keys()
    assert not new, f"Call active(), as_of() or with_history() there, or ask for status = 'active' in the SQL: {new}"
    assert not EXCEPTIONS.keys() - found, "These read nothing unguarded any more: strike them from the list."


@pytest.mark.parametrize(
    "naive",
    [
        "def read(scope):\n    return Observation.objects.filter(scope=scope)",
        "def read(scope):\n    return list(Observation.objects.in_scope(scope).order_by('-pk')[:5])",
        "def read(scope):\n    return scope.observations.all()",
        "class Reader:\n    def read(self):\n        return Observation.objects.get(pk=1).text",
        "read = 'SELECT text FROM observations_observation WHERE scope_id = %s'",
        "def read():\n    return sql.SQL('SELECT 1 FROM x JOIN observations_observation o ON true')",
    ],
)
def test_a_reader_that_asks_nobody_is_found(naive: str) -> None:
    """The control: readers as somebody in a hurry would write them."""
    assert unguarded(naive) == {"read"}


def test_a_reader_that_asks_is_left_alone() -> None:
    assert not unguarded("def read(scope):\n    return Observation.objects.active().in_scope(scope).first()")
    assert not unguarded("READ = \"SELECT id FROM observations_observation WHERE status = 'active'\"")
