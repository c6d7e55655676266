"""Who writes memory, read from the syntax trees: used by test_structure_writers.py.

A call counts as a write when its method writes and its receiver is, as far as can be read from the module, a memory
row, a query for memory rows or a related manager of them. The receiver is followed through imports, assignments, loops,
annotations of parameters, attributes and results, foreign keys and reverse names. Receivers of save() and delete() that
cannot be followed are reported too: better a plain annotation than a silent gap. SQL is read from string literals.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

MEMORY = frozenset(
    [
        *("Scope", "Episode", "Observation", "GivenKey", "Evidence", "Embedding", "Lineage", "Tombstone"),
        *("Extraction", "IntakeItem", "UnusableAnswer"),
    ]
)
_METHODS = ("create", "bulk_create", "get_or_create", "update_or_create", "update", "bulk_update", "delete", "save")
_RELATED = ("add", "set", "remove", "clear")  # of related managers; sets and dictionaries have them too
RELATED_WRITES = frozenset(prefix + name for name in _RELATED for prefix in ("", "a"))
ROW_WRITES = frozenset({"save", "asave", "delete", "adelete", "save_base"})  # no plain value has these
WRITES = frozenset(prefix + name for name in _METHODS for prefix in ("", "a")) | RELATED_WRITES | ROW_WRITES
TABLES = "|".join(sorted(name.lower() for name in MEMORY))
VERB = r"\b(?:INSERT\s+INTO|UPDATE(?:\s+ONLY)?|DELETE\s+FROM(?:\s+ONLY)?|TRUNCATE(?:\s+TABLE)?|MERGE\s+INTO|COPY)\s+"
SQL = re.compile(
    rf"{VERB}\"?observations_(?:{TABLES})\b|\bSELECT\s+(?:\*\s+FROM\s+)?palimpsest_erase_\w+", re.IGNORECASE
)
SQL_OPEN = re.compile(rf"{VERB}\"?$", re.IGNORECASE)  # the table's name is put in later
UNKNOWN = "?"


@dataclass(frozen=True)
class Found:
    """One place that writes memory, or may."""

    line: int
    what: str


@dataclass(frozen=True)
class Known:
    """What is known across modules: names of attributes and of functions -> the models they hold or return."""

    models: frozenset[str]
    managers: frozenset[str] = frozenset()  # reverse names: attributes that are related managers
    attributes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    results: Mapping[str, frozenset[str]] = field(default_factory=dict)


def learn(
    sources: Mapping[Path, str],
    *,
    models: frozenset[str],
    relations: Mapping[str, frozenset[str]],
    managers: frozenset[str],
) -> Known:
    """Read annotations of attributes and results from all modules. `relations`: foreign keys and reverse names."""
    attributes, results = {name: set(held) for name, held in relations.items()}, dict[str, set[str]]()
    for source in sources.values():
        for node in ast.walk(parsed(source)):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                attributes.setdefault(node.target.id, set()).update(named(node.annotation, models))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns:
                results.setdefault(node.name, set()).update(named(node.returns, models))
    return Known(
        models=models,
        managers=managers,
        attributes={name: frozenset(held) for name, held in attributes.items()},
        results={name: frozenset(held) for name, held in results.items()},
    )


@cache
def parsed(source: str) -> ast.Module:
    """The tree of a module, read by several tests."""
    return ast.parse(source)


def named(annotation: ast.expr, models: frozenset[str]) -> set[str]:
    """The models an annotation mentions, quoted ones too."""
    words = re.findall(r"\w+", ast.unparse(annotation))
    return {word for word in words if word in models} | {
        word.removesuffix("QuerySet")
        for word in words
        if word.removesuffix("QuerySet") in models and word not in models
    }


def writes(source: str, *, known: Known) -> Iterator[Found]:
    """Every place in a module that writes memory rows, or saves or deletes a row of unknown kind."""
    tree = parsed(source)
    yield from _sql(tree)
    aliases = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in known.models
    }
    reader = _Reader(known=known, names={alias: {model} for alias, model in aliases.items()})
    reader.visit(tree)
    yield from reader.found


def _sql(tree: ast.Module) -> Iterator[Found]:
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            if match := SQL.search(node.value):
                yield Found(node.lineno, f"SQL: {' '.join(match[0].split())}")
        elif isinstance(node, ast.JoinedStr):
            for part, following in zip(node.values, node.values[1:], strict=False):
                open_ended = isinstance(part, ast.Constant) and SQL_OPEN.search(str(part.value))
                if open_ended and isinstance(following, ast.FormattedValue):
                    yield Found(node.lineno, "SQL that writes to a table named only when it runs")


@dataclass
class _Reader(ast.NodeVisitor):
    """Follows names through one module, top to bottom; a function sees the names around it."""

    known: Known
    names: dict[str, set[str]]
    found: list[Found] = field(default_factory=list)

    def models_of(self, node: ast.expr | None) -> set[str]:
        """The models an expression may hold rows, queries or managers of; {"?"} when it cannot be read."""
        match node:
            case ast.Name(id=name):
                return self.names.get(name, {UNKNOWN})
            case ast.Attribute(value=value, attr=attr):
                return self._attribute(value, attr)
            case ast.Call(func=ast.Name(id="cast"), args=[first, *_]):
                return named(first, self.known.models) or {UNKNOWN}
            case ast.Call(func=function, args=arguments):
                return self._call(function, arguments)
            case (
                ast.Subscript(value=value)
                | ast.Await(value=value)
                | ast.NamedExpr(value=value)
                | ast.Starred(value=value)
            ):
                return self.models_of(value)
            case ast.BinOp(left=left, right=right):
                return self.models_of(left) | self.models_of(right)
            case ast.BoolOp(values=values) | ast.List(elts=values) | ast.Tuple(elts=values) | ast.Set(elts=values):
                return set().union(*(self.models_of(value) for value in values)) if values else set()
            case ast.IfExp(body=body, orelse=other):
                return self.models_of(body) | self.models_of(other)
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
                return self._comprehension(node)
            case ast.Constant() | ast.JoinedStr() | ast.Dict() | ast.Compare():
                return set()
            case _:
                return {UNKNOWN}

    def _attribute(self, value: ast.expr, attr: str) -> set[str]:
        if attr in self.known.models:
            return {attr}
        held = self.known.attributes.get(attr)
        return set(held) if held else self.models_of(value)

    def _call(self, function: ast.expr, arguments: list[ast.expr]) -> set[str]:
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        words = [str(argument.value) for argument in arguments if isinstance(argument, ast.Constant)]
        if name in {"get_model", "get_historical_model"} and words:
            return {model for model in self.known.models if model.lower() == words[-1].rpartition(".")[2].lower()}
        if held := self.known.results.get(name):
            return set(held)
        if (
            name in {"list", "sorted", "tuple", "reversed", "iter", "next", "enumerate", "zip", "filter", "set"}
            and arguments
        ):
            return set().union(*(self.models_of(argument) for argument in arguments))
        return self.models_of(function)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> set[str]:
        inner = _Reader(known=self.known, names=dict(self.names))
        for loop in node.generators:
            inner.bind(loop.target, inner.models_of(loop.iter))
        return inner.models_of(node.elt)

    def bind(self, target: ast.expr, models: set[str]) -> None:
        """Remember what a name holds; every name of an unpacked target may hold any of it."""
        match target:
            case ast.Name(id=name):
                self.names[name] = models
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                for each in elts:
                    self.bind(each, models)
            case ast.Starred(value=value):
                self.bind(value, models)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for target in node.targets:
            pairs = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            if pairs and len(target.elts) == len(node.value.elts):  # type: ignore[attr-defined]
                for each, value in zip(target.elts, node.value.elts, strict=True):  # type: ignore[attr-defined]
                    self.bind(each, self.models_of(value))
            else:
                self.bind(target, self.models_of(node.value))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.generic_visit(node)
        self.bind(node.target, named(node.annotation, self.known.models))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.generic_visit(node)
        self.bind(node.target, self.models_of(node.value))

    def visit_For(self, node: ast.For) -> None:
        self.bind(node.target, self.models_of(node.iter))
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self.bind(node.target, self.models_of(node.iter))
        self.generic_visit(node)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            if item.optional_vars is not None:
                self.bind(item.optional_vars, self.models_of(item.context_expr))
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        own = node.name.removesuffix("QuerySet").removesuffix("Manager")
        inner = _Reader(known=self.known, names=dict(self.names), found=self.found)
        held = (
            {own} if own in self.known.models else set().union(*(named(base, self.known.models) for base in node.bases))
        )
        inner.names["self"] = inner.names["cls"] = held or {UNKNOWN}
        for statement in node.body:
            inner.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        inner = _Reader(known=self.known, names=dict(self.names), found=self.found)
        arguments = node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if argument.annotation is not None:
                inner.names[argument.arg] = named(argument.annotation, self.known.models)
        for statement in node.body:
            inner.visit(statement)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in WRITES:
            return
        verb, receiver = node.func.attr, node.func.value
        if isinstance(receiver, ast.Call) and ast.unparse(receiver.func) == "super":
            receiver = ast.Name(id="self")
        models = self.models_of(receiver)
        if verb in RELATED_WRITES and not (
            isinstance(receiver, ast.Attribute) and receiver.attr in self.known.managers
        ):
            return
        if touched := sorted(models & MEMORY):
            self.found.append(Found(node.lineno, f"{verb}() on {', '.join(touched)}: {ast.unparse(node.func)}"))
        elif verb in ROW_WRITES and UNKNOWN in models:
            self.found.append(Found(node.lineno, f"{verb}() on a row of unknown kind: {ast.unparse(node.func)}"))
