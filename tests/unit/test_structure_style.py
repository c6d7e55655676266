"""The habits of the code that can be measured: short functions and files, all documented, nothing left or swallowed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median, quantiles

import pytest

from tests.structure_writers import parsed

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("memory_site", "observations", "consolidation")
PYTHON = (*PRODUCT, "tests", "benchmarks", "scripts")
TEXT = {".py", ".md", ".html", ".txt", ".css", ".js", ".svg", ".toml", ".yml", ".yaml", ".sh", ".json", ".example", ""}
# Patterns are written so that this file does not match them.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:[r]oot|[w]ork|[h]ome/[a-z]|[U]sers|[o]pt/[a-z]|[t]mp/[a-z])[/\w]*")
LEFT_OVER = re.compile(r"\b(?:[T]ODO|[F]IXME|[X]XX|[N]otImplementedError)\b")
REGISTRY = re.compile(r"https?://(?:[\w-]+\.)*(?:[p]ypi\.org|[p]ythonhosted\.org)")
LET_THROUGH = re.compile(
    r"[m]ark_safe|[S]afeString|\|\s*[s]afe\b|[a]utoescape\s+off|[f]ormat_html\(\s*f[\"']|[_]_html__"
)
# A time is an element of its own: made by format_html from words that stand in the code, as the test below holds.
TIMES = "consolidation/admin/texts.py"
BROAD = {"Exception", "BaseException"}


@cache
def python_files() -> tuple[Path, ...]:
    paths = (path for package in PYTHON for path in sorted((ROOT / package).rglob("*.py")))
    return tuple(path for path in paths if "migrations" not in path.parts)


@cache
def text_files() -> tuple[Path, ...]:
    """What is ours and would be committed: no environment, caches, data of a running demo, vocabulary or lock."""
    folders = (*PYTHON, "templates", "docs", "docker", ".ci")
    inside = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
    top = (
        path
        for path in ROOT.iterdir()
        if path.is_file() and path.name not in {"requirements.lock", ".env", ".coverage"}
    )
    wanted = (path for path in (*inside, *top) if path.suffix in TEXT and path.name != "vocab.txt")
    return tuple(sorted(path for path in wanted if "__pycache__" not in path.parts))


@cache
def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.fixture(autouse=True, scope="module")
def trees_are_let_go() -> Iterator[None]:
    yield
    parsed.cache_clear()


def lengths(package: str) -> dict[str, int]:
    """Lines of every function of a package, by place."""
    found = {}
    for path in python_files():
        if path.relative_to(ROOT).parts[0] == package:
            for node in ast.walk(parsed(read(path))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    place = f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
                    found[place] = (node.end_lineno or node.lineno) - node.lineno + 1
    return found


def matches(pattern: re.Pattern[str], paths: tuple[Path, ...]) -> Iterator[str]:
    for path in paths:
        for match in pattern.finditer(read(path)):
            yield f"{path.relative_to(ROOT)}:{read(path)[: match.start()].count(chr(10)) + 1}: {match[0].strip()}"


@pytest.mark.parametrize("package", PRODUCT)
def test_functions_are_short(package: str) -> None:
    """STYLE: median at most 10 lines, 90th percentile at most 35."""
    found = lengths(package)
    longest = sorted(found, key=found.__getitem__)[-5:]
    assert median(found.values()) <= 10, longest
    assert quantiles(found.values(), n=10)[-1] <= 35, longest


def test_files_are_under_500_lines() -> None:
    long = [f"{path.relative_to(ROOT)}: {count}" for path in python_files() if (count := read(path).count("\n")) >= 500]
    assert not long, f"split by what changes together: {long}"


def test_every_module_class_and_public_function_says_what_could_not_be_guessed() -> None:
    """Habit 14. Methods may speak for themselves; what others import may not."""
    silent = []
    for path in python_files():
        if path.relative_to(ROOT).parts[0] not in PRODUCT:
            continue
        tree = parsed(read(path))
        named = (node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef))
        silent += [
            f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
            for node in named
            if not node.name.startswith("_") and not ast.get_docstring(node)
        ]
        if tree.body and not ast.get_docstring(tree):
            silent.append(f"{path.relative_to(ROOT)}: the module")
    assert not silent, "a docstring is missing: " + ", ".join(silent)


def test_no_machines_path_no_registrys_address_and_nothing_left_for_later_is_in_any_file() -> None:
    found = [hit for pattern in (MACHINE_PATH, LEFT_OVER, REGISTRY) for hit in matches(pattern, text_files())]
    assert not found, "\n".join(found)


def test_memory_text_is_escaped_everywhere() -> None:
    """O2: nothing marks text as safe, in Python or in a template."""
    product = tuple(path for path in text_files() if path.relative_to(ROOT).parts[0] in (*PRODUCT, "templates"))
    found = [line for line in matches(LET_THROUGH, product) if not line.startswith(TIMES)]
    assert not found, "hand the text to the template and let it be escaped:\n" + "\n".join(found)


def made_of_variables(source: str) -> list[int]:
    """Lines of calls of `told` and `format_html` whose words are not written there."""
    calls = (node for node in ast.walk(parsed(source)) if isinstance(node, ast.Call))
    named = (node for node in calls if ast.unparse(node.func).rpartition(".")[2] in ("told", "format_html"))
    return [node.lineno for node in named if not (node.args and isinstance(node.args[0], ast.Constant))]


def test_the_words_around_a_time_stand_in_the_code() -> None:
    """O2: what is put in is escaped, and nothing else can become markup. The one call within `told` hands its on."""
    found = {
        path.relative_to(ROOT).as_posix(): lines
        for path in python_files()
        if "told(" in (source := path.read_text(encoding="utf-8")) or "format_html(" in source
        if (lines := [line for line in made_of_variables(source) if "admin" in path.parts])
    }
    assert {name: len(lines) for name, lines in found.items()} == {TIMES: 1}


def swallowed(source: str) -> list[int]:
    """Lines of handlers of every exception that neither raise again nor look at what they caught."""
    lines = []
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.ExceptHandler) and (node.type is None or ast.unparse(node.type) in BROAD):
            inside = [each for statement in node.body for each in ast.walk(statement)]
            used = node.name and any(isinstance(each, ast.Name) and each.id == node.name for each in inside)
            if not used and not any(isinstance(each, ast.Raise) for each in inside):
                lines.append(node.lineno)
    return lines


def test_no_exception_is_swallowed() -> None:
    found = [f"{path.relative_to(ROOT)}:{line}" for path in python_files() for line in swallowed(read(path))]
    assert not found, f"name the exception, or log its kind: {', '.join(found)}"


@pytest.mark.parametrize(
    ("source", "caught"),
    [
        ("try:\n    f()\nexcept Exception:\n    pass\n", True),
        ("try:\n    f()\nexcept:\n    g()\n", True),
        ("try:\n    f()\nexcept BaseException as error:\n    g()\n", True),
        ("try:\n    f()\nexcept OSError:\n    pass\n", False),
        ("try:\n    f()\nexcept BaseException:\n    g()\n    raise\n", False),
        ("try:\n    f()\nexcept Exception as error:\n    log(error)\n", False),
    ],
)
def test_a_swallowed_exception_would_be_found(source: str, caught: bool) -> None:
    assert bool(swallowed(source)) == caught


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (MACHINE_PATH, "open('/" + "root/x')"),
        (MACHINE_PATH, "see /" + "home/ann/notes"),
        (MACHINE_PATH, "cd /" + "work/main"),
        (LEFT_OVER, "# TO" + "DO: later"),
        (LEFT_OVER, "raise NotImplemented" + "Error"),
        (REGISTRY, "https://py" + "pi.org/simple"),
        (LET_THROUGH, "mark_" + "safe(text)"),
        (LET_THROUGH, "{{ text|" + "safe }}"),
        (LET_THROUGH, "{% autoescape" + " off %}"),
        (LET_THROUGH, "format_html(" + "f'<b>{text}</b>')"),
    ],
)
def test_what_must_not_be_there_would_be_found(pattern: re.Pattern[str], text: str) -> None:
    """The positive control of the searches above."""
    assert pattern.search(text)


@pytest.mark.parametrize("text", ["/healthz", "the /admin/ page", "/var/lib", "/tmp", "a|safely"])
def test_what_may_be_there_is_left_alone(text: str) -> None:
    assert not any(pattern.search(text) for pattern in (MACHINE_PATH, LEFT_OVER, REGISTRY, LET_THROUGH))
