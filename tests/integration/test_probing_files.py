"""Files of probes: YAML beside JSON lines, taken whole or not at all, and a suite written out again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from consolidation.models import Probe, Suite
from observations.models import Observation, Scope
from tests import probing as given
from tests.building import observe, scope
from tests.integration.test_probing import probe

pytestmark = pytest.mark.django_db

YAML = """
- query: anvil of the bakery
  expected: [anvil-bakery]
  category: things
- query: teapot of the tower
  expected: [{ours}]
  forbidden: [teapot-cellar]
  outdated: [teapot-meadow]
  as_of: 2024-05-01
- query: what anvils cost
  negative: true
- unit: the anvil
  ids: [anvil-bakery, anvil-tower]
"""


@pytest.fixture
def here() -> Scope:
    within = scope()
    given.fill(within)
    return within


def ids(*names: str) -> list[int]:
    return sorted(Observation.objects.filter(external_id__in=names).values_list("pk", flat=True))


def test_a_yaml_file_becomes_a_suite_which_is_written_out_and_imported_as_the_next_one(
    here: Scope, tmp_path: Path
) -> None:
    """R112: to change a suite is to make another one."""
    path = tmp_path / "probes.yaml"
    path.write_text(YAML.format(ours=f"obs_{ids('teapot-tower')[0]}"), encoding="utf-8")
    assert probe(f"import {path} --scope {here.name} --name first --json").document["probes"] == 3
    path.write_text(probe(f"export first --scope {here.name}").out, encoding="utf-8")
    assert probe(f"import {path} --scope {here.name} --name second").status == 0
    first, second = Suite.objects.order_by("pk")
    kept = [
        list(Probe.objects.filter(suite=suite).order_by("number").values_list(*FIELDS)) for suite in (first, second)
    ]
    assert kept[0] == kept[1]
    assert first.units == second.units == dict.fromkeys(map(str, ids("anvil-bakery", "anvil-tower")), 1)
    assert [row[1] for row in kept[0]] == [ids("anvil-bakery"), ids("teapot-tower"), []]
    assert kept[0][1][2:4] == (ids("teapot-cellar"), ids("teapot-meadow"))


FIELDS = ("query", "expected", "forbidden", "outdated", "category", "negative", "as_of")
GOOD = {"query": "anvil of the bakery", "expected": ["anvil-bakery"]}


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("p.jsonl", f"{json.dumps(GOOD)}\n{{secret", "Nothing was imported: line 2: it is not JSON."),
        ("p.jsonl", f"{json.dumps(GOOD)}\n[]\n[]", "line 2: it is not an object, and 1 more cannot be used"),
        ("p.yaml", "- query: anvil of the bakery\n  expected: secret", "entry 1: expected is not a list"),
        ("p.yml", "- &a [secret]\n- *a", "line 1 has an anchor"),
        ("p.yaml", "- !!python/name:os.system secret", "line 1 has a tag"),
        ("p.yaml", b"\xff\xfe\x00", "it is not UTF-8"),
        ("p.jsonl", b" " * 8_000_001, "more than 8 MB"),
    ],
    ids=["json", "two", "field", "alias", "tag", "bytes", "large"],
)
def test_a_bad_file_is_one_sentence_and_nothing_of_it_is_imported(
    here: Scope, tmp_path: Path, name: str, content: str | bytes, why: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    for words in (f"import {path} --name x", f"run {path}"):
        ran = probe(f"{words} --scope {here.name}")
        assert (ran.status, ran.out) == (2, "")
        assert why in ran.error
        assert "secret" not in ran.error
        assert "\n" not in ran.error.strip()
    assert not Suite.objects.exists()


def test_a_name_like_ours_that_a_writer_gave_is_the_writers(here: Scope, tmp_path: Path) -> None:
    """An external id may look like an id of ours: what the writer named comes first."""
    first = Observation.objects.order_by("pk").first()
    assert first
    named = observe("The gate is red", within=here, external_id=f"obs_{first.pk}")
    suite = given.imported(here, {"query": "gate", "expected": [f"obs_{first.pk}"]})
    assert suite.probes.get().expected == [named.pk]


def test_a_record_of_another_scope_is_not_found_by_our_id(here: Scope) -> None:
    """I3: nothing crosses a scope."""
    elsewhere = given.fill(scope("team-b"))[0]
    suite = given.imported(here, GOOD, {"query": "theirs", "expected": [f"obs_{elsewhere.pk}"]})
    assert suite.probes.get().expected == ids("anvil-bakery")[:1]
