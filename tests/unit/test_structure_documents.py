"""What exists is documented, and what is documented exists (habit 19)."""

from __future__ import annotations

import json
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
from consolidation.policy import RANGES, Policy, Trigger
from observations.prompting import CLEAN
from observations.records import MemoryKind, Outcome, StatedBy, Status, WrittenBy
from observations.retrieval import CALL_SITES

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("memory_site", "observations", "consolidation")
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = {
    path.relative_to(ROOT): path.read_text(encoding="utf-8")
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
}
OPERATIONS = DOCUMENTS[Path("docs/operations.md")]
READING = DOCUMENTS[Path("docs/reading.md")]
GLOSSARY = DOCUMENTS[Path("docs/glossary.md")]
DECISIONS = sorted(path for path in DOCUMENTS if re.fullmatch(r"\d{4}-.*", path.name))
NO_SETTING = {
    "PALIMPSEST_RUN",  # how the supervisor knows its own children again
    *("PALIMPSEST_URL", "PALIMPSEST_TOKEN", "PALIMPSEST_SCOPE"),  # of the agent that uses the client
}
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
    named = set(re.findall(r"manage\.py (\w+(?: (?:[a-z-]+\b))?)", OPERATIONS))
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


def policy_rows() -> dict[str, tuple[str, str]]:
    """The table of a policy's fields: default and range as they are written, by field."""
    table = OPERATIONS.partition("\n| field | default |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| `([^|]+)` \| ([^|]*) \| [^|]+ \|$", table, re.MULTILINE)
    return {name: (default, may_be.strip()) for name, default, may_be in rows}


def test_every_field_of_a_policy_is_in_the_table_with_its_default() -> None:
    """R32: whoever decides what may be destroyed reads what holds without a decision."""
    listed = {name: json.loads(default) for name, (default, _) in policy_rows().items()}
    assert listed == Policy().to_dict(), "docs/operations.md, Policies: the table of fields"


def test_every_range_of_a_policy_is_in_the_table() -> None:
    for name, (low, high) in RANGES.items():
        may_be = policy_rows()[name][1]
        assert may_be.startswith(f"{low:g} to {int(high) if high == int(high) else high}"), f"{name}: {may_be}"


def test_the_half_lives_in_the_table_are_those_of_the_kinds() -> None:
    table = OPERATIONS.partition("\n| kind | half-life |")[2].partition("\n\n")[0]
    listed: dict[str, int | None] = {}
    for kinds, days in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (none|\d+)", table, re.MULTILINE):
        listed |= dict.fromkeys(re.findall(r"\w+", kinds), None if days == "none" else int(days))
    assert listed == {kind.value: kind.half_life_days for kind in MemoryKind}


def test_every_place_of_the_admin_is_in_the_table_of_pages() -> None:
    nav = (ROOT / "templates" / "admin" / "palimpsest" / "nav.html").read_text(encoding="utf-8")
    places = set(re.findall(r">([A-Z][\w ]+)(?:</span>)?</a>", nav))
    table = OPERATIONS.partition("\n| page | shows |")[2].partition("\n\n")[0]
    named = set(re.split(r", (?:and )?", ", ".join(re.findall(r"^\| ([A-Z][^|]+?) \|", table, re.MULTILINE))))
    assert len(places) > 15
    assert places <= named, f"docs/operations.md, Pages of the admin: add {sorted(places - named)}"


def test_every_call_site_is_in_the_table_of_call_sites_with_its_k() -> None:
    """R20; how well reading works is measured is no reader of its own: it asks as somebody who looks."""
    table = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", READING, re.M))
    assert table == {name: str(k) for name, k in CALL_SITES.items() if name != "probe"}
    assert CALL_SITES["probe"] == CALL_SITES["search"]


def test_the_document_says_of_every_section_where_it_is_cleaned_and_why_episodes_are_when_they_are_read() -> None:
    """R24: the table says what `prompting.CLEAN` says, and a paragraph gives the reason."""
    table = dict(re.findall(r"^\| ([A-Z][\w ]+?) \| (on (?:write|read))", READING, re.M))
    assert table == {section.value: clean.value for section, clean in CLEAN.items()}
    assert "**Why episodes are selected when they are read, and observations are not (R24).**" in READING


def test_every_entry_of_the_schedule_that_is_named_exists() -> None:
    seeds = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "consolidation/migrations").glob("*.py"))
    entries = set(re.findall(r'"((?:housekeeping|planning): [^"]+)"', seeds))
    named = set(re.findall(r'"((?:housekeeping|planning): [^"]+?)"', OPERATIONS.replace("\n", " ")))
    assert "planning: every scope that changed" in named
    assert named <= entries, f"docs/operations.md names {sorted(named - entries)}"


def test_the_cron_line_is_in_the_readme_as_well_and_plans_only() -> None:
    """R33, R94: by hand, plus a cron line that is written down."""
    lines = [re.findall(r"^ *(\d+ \d+ \* \* \* .+)$", text, re.MULTILINE) for text in (README, OPERATIONS)]
    assert lines[0] == lines[1]
    [line] = lines[0]
    assert line.endswith("manage.py consolidate plan --explain")


def test_every_target_of_the_makefile_is_in_its_help_and_in_a_document() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert phony
    targets = set(phony[1].split()) - {"help", "environment"}
    written = "\n".join(DOCUMENTS.values())
    assert targets <= set(re.findall(r'@echo "make ([\w-]+)', makefile))
    assert targets <= set(re.findall(r"make ([\w-]+)", written))


@pytest.mark.parametrize(
    "words",
    [Kind, Approval, State, Status, StatedBy, WrittenBy, Outcome, MemoryKind, Trigger],
    ids=lambda words: words.__name__,
)
def test_every_word_of_a_closed_list_is_in_the_glossary(words: type[StrEnum]) -> None:
    missing = [word for word in words if f"`{word}`" not in GLOSSARY]
    assert not missing, f"docs/glossary.md: explain {', '.join(missing)}"


@pytest.mark.parametrize(
    "term",
    [
        *("given key", "draft", "alias", "cardinality", "half-life", "strength", "held back", "support"),
        *("verified success", "coverage", "specific", "calibration", "chain", "trigger", "trash", "`turned`"),
        *("turn", "call", "doorway", "core memory", "revision", "residue", "intake", "run", "unusable answer"),
        *("flagged", "fence", "token", "bearer", "idempotency key", "receipt", "problem"),
    ],
)
def test_a_word_of_the_engine_is_in_the_glossary(term: str) -> None:
    rows = re.findall(r"^\| ([^|]+) \|", GLOSSARY, re.MULTILINE)
    assert term in {word.strip() for row in rows for word in row.split(",")}, f"docs/glossary.md: explain {term}"


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
