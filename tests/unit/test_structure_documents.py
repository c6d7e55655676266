"""What exists is documented, and what is documented exists (habit 19)."""

from __future__ import annotations

import re
import tomllib
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class
from packaging.requirements import Requirement
from packaging.version import Version

from consolidation.operations import Approval, Kind, State
from observations.records import Outcome, StatedBy, Status, WrittenBy

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("memory_site", "observations", "consolidation")
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = {
    path.relative_to(ROOT): path.read_text(encoding="utf-8")
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
}
OPERATIONS = DOCUMENTS[Path("docs/operations.md")]
GLOSSARY = DOCUMENTS[Path("docs/glossary.md")]
DECISIONS = sorted(path for path in DOCUMENTS if re.fullmatch(r"\d{4}-.*", path.name))
NO_SETTING = {"PALIMPSEST_RUN"}  # how the supervisor knows its own children again
LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)")


def product_code() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for app in PRODUCT for path in (ROOT / app).rglob("*.py"))


def commands() -> Iterator[str]:
    """Every command of the project with every sub-command: "consolidate", "consolidate undo", ..."""
    for name, app in get_commands().items():
        if app in PRODUCT:
            parser: ArgumentParser = load_command_class(str(app), name).create_parser("manage.py", name)
            yield name
            for action in parser._actions:
                if isinstance(action, _SubParsersAction):
                    yield from (f"{name} {verb}" for verb in action.choices)


def test_every_command_and_sub_command_is_in_the_table_of_commands() -> None:
    missing = [name for name in commands() if not re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", OPERATIONS)]
    assert not missing, f"docs/operations.md, Commands: add {', '.join(missing)}"


def test_every_command_in_the_table_exists() -> None:
    named = set(re.findall(r"manage\.py (\w+(?: (?:[a-z]+\b))?)", OPERATIONS))
    known = set(commands()) | {"check", "createsuperuser"}
    gone = [name for name in named if name not in known and name.split()[0] not in known - {"memory", "consolidate"}]
    assert not gone, f"docs/operations.md names {', '.join(gone)}, which manage.py does not know"


def test_every_setting_is_in_the_table_of_settings_and_in_the_example() -> None:
    names = set(re.findall(r"\benv(?:\.\w+)?\(\s*\"([A-Z_]+)\"", product_code()))
    names |= set(re.findall(r"\"(PALIMPSEST_[A-Z_]+)\"", product_code()))
    names -= NO_SETTING
    assert len(names) > 10
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    missing = [name for name in sorted(names) if f"| `{name}` |" not in OPERATIONS]
    assert not missing, f"docs/operations.md, Settings: add {', '.join(missing)}"
    missing = [name for name in sorted(names) if not re.search(rf"^#?{name}=", example, re.MULTILINE)]
    assert not missing, f".env.example: add {', '.join(missing)}"


def test_every_setting_in_the_table_is_read_somewhere() -> None:
    listed = set(re.findall(r"^\| `([A-Z_]+)` \|", OPERATIONS, re.MULTILINE))
    gone = sorted(name for name in listed if f'"{name}"' not in product_code())
    assert not gone, f"docs/operations.md, Settings: nothing reads {', '.join(gone)}"


def test_every_system_check_is_in_the_table_of_checks_and_every_row_is_a_check() -> None:
    existing = set(re.findall(r"id=\"(palimpsest\.[EW]\d{3})\"", product_code()))
    listed = set(re.findall(r"^\| (palimpsest\.[EW]\d{3}) \|", OPERATIONS, re.MULTILINE))
    assert existing == listed, f"docs/operations.md, System checks: {sorted(existing ^ listed)}"


def test_every_field_of_a_policy_is_named() -> None:
    from consolidation.policy import Policy

    missing = [name for name in Policy().to_dict() if f"`{name}`" not in OPERATIONS]
    assert not missing, f"docs/operations.md, Planning: name {', '.join(missing)}"


def test_every_target_of_the_makefile_is_in_its_help_and_in_a_document() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert phony
    targets = set(phony[1].split()) - {"help", "environment"}
    written = "\n".join(DOCUMENTS.values())
    assert targets <= set(re.findall(r'@echo "make ([\w-]+)', makefile))
    assert targets <= set(re.findall(r"make ([\w-]+)", written))


@pytest.mark.parametrize(
    "words", [Kind, Approval, State, Status, StatedBy, WrittenBy, Outcome], ids=lambda words: words.__name__
)
def test_every_word_of_a_closed_list_is_in_the_glossary(words: type[StrEnum]) -> None:
    missing = [word for word in words if f"`{word}`" not in GLOSSARY]
    assert not missing, f"docs/glossary.md: explain {', '.join(missing)}"


def test_decisions_are_numbered_without_gaps_listed_and_say_context_choice_and_cost() -> None:
    assert [path.name[:4] for path in DECISIONS] == [f"{number:04}" for number in range(1, len(DECISIONS) + 1)]
    index = DOCUMENTS[Path("docs/decisions/README.md")]
    for path in DECISIONS:
        headings = re.findall(r"^## (.+)$", DOCUMENTS[path], re.MULTILINE)
        assert headings == ["Context", "Choice", "Cost"], path
        title = DOCUMENTS[path].partition("\n")[0].removeprefix("# ")
        assert f"[{title}]({path.name})" in index, path


def anchors(text: str) -> set[str]:
    """The anchors a Markdown reader gives the headings."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_inside_the_project_leads_somewhere() -> None:
    broken = []
    for path, text in DOCUMENTS.items():
        for link in LINK.finditer(text):
            target, _, anchor = link["target"].partition("#")
            if "://" in target or target.startswith("mailto:"):
                continue
            place = (ROOT / path).parent / target if target else ROOT / path
            there = place.exists() and (
                not anchor or place.suffix != ".md" or anchor in anchors(place.read_text(encoding="utf-8"))
            )
            if not there:
                broken.append(f"{path}: {link['target']}")
    assert not broken, f"{broken}"


def test_every_promise_of_the_readme_is_linked_to_tests_that_exist() -> None:
    """A link whose text is a test's name leads to the file that has it."""
    section = README.partition("## What it promises")[2].partition("\n## ")[0]
    promises = re.findall(r"^\d+\. .+?(?=^\d+\. |\Z)", section, re.MULTILINE | re.DOTALL)
    assert len(promises) >= 6
    for promise in promises:
        links = [link for link in LINK.finditer(promise) if link["target"].startswith("tests/")]
        assert links, f"no test is linked: {promise[:60]}"
        for link in links:
            name = link["text"].strip("`")
            assert f"def {name}(" in (ROOT / link["target"]).read_text(encoding="utf-8"), (
                f"{link['target']} has no {name}"
            )


def test_the_lock_has_every_dependency_at_a_version_that_is_asked_for() -> None:
    """After a change of pyproject.toml the lock is compiled again (CONTRIBUTING.md says how)."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pins: dict[str, list[Version]] = {}
    for name, version in re.findall(r"^([a-z0-9-]+)==([^\s;\\]+)", lock, re.MULTILINE):
        pins.setdefault(name, []).append(Version(version))
    for line in (*project["dependencies"], *extras):
        wanted = Requirement(line)
        found = pins.get(re.sub(r"[-_.]+", "-", wanted.name).lower(), [])
        assert found, f"requirements.lock has no {wanted.name}: compile it again"
        assert all(version in wanted.specifier for version in found), (
            f"{wanted} against {found}: compile the lock again"
        )


def test_the_lock_pins_everything_with_hashes_and_names_no_index() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    entries = re.split(r"^(?=[a-z0-9])", lock, flags=re.MULTILINE)[1:]
    assert len(entries) > 80
    assert all("==" in entry.partition("\n")[0] and "--hash=sha256:" in entry for entry in entries)
    assert "://" not in lock
    assert not re.search(r"^-", lock, re.MULTILINE)
