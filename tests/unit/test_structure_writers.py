"""Only observations/store/ and migrations create, save, update or delete memory rows (DESIGN 2, STYLE)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest
from django.apps import apps
from django.db.models import ForeignObjectRel

from tests.structure_writers import MEMORY, Known, learn, parsed, writes

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("memory_site", "observations", "consolidation")
WRITERS = frozenset(
    Path(f"observations/store/{name}.py")
    for name in ("adding", "inserting", "intake", "keys", "moving", "scopes", "vectors")
)
HOW_TO_FIX = (
    "Memory is written by observations/store and by migrations only. Call a function of store from ingest or runner "
    "(or write one there); where the row is of another kind, annotate the variable with its model."
)


@lru_cache(maxsize=1)
def sources() -> dict[Path, str]:
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    read = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in paths}
    return {path: text for path, text in read.items() if "migrations" not in path.parts}


@pytest.fixture(autouse=True, scope="module")
def trees_are_let_go() -> Iterator[None]:
    yield
    parsed.cache_clear()


@lru_cache(maxsize=1)
def known() -> Known:
    """Every model of the project and of Django, and the attributes by which one leads to another."""
    relations: dict[str, set[str]] = {}
    managers: set[str] = set()
    for model in apps.get_models():
        for relation in model._meta.get_fields():
            target = relation.related_model
            if not isinstance(target, type):
                continue
            reverse = isinstance(relation, ForeignObjectRel)
            name = (relation.get_accessor_name() if isinstance(relation, ForeignObjectRel) else relation.name) or "+"
            relations.setdefault(name, set()).add(target.__name__)
            managers |= {name} if reverse or relation.many_to_many else set()
    return learn(
        sources(),
        models=frozenset(model.__name__ for model in apps.get_models()),
        relations={name: frozenset(held) for name, held in relations.items()},
        managers=frozenset(managers),
    )


def is_store(path: Path) -> bool:
    """Whether a module is observations.store or a part of it."""
    return path.with_suffix("").parts[:2] == ("observations", "store")


def offences() -> Iterator[str]:
    for path, text in sources().items():
        if not is_store(path):
            for found in writes(text, known=known()):
                yield f"{path}:{found.line}: {found.what}"


def test_the_list_of_memory_rows_names_models_that_exist() -> None:
    assert {model.__name__ for model in apps.get_app_config("observations").get_models()} >= MEMORY


def test_only_store_writes_memory() -> None:
    found = list(offences())
    assert not found, "\n".join([*found, HOW_TO_FIX])


def test_store_itself_is_seen_to_write_every_kind_of_memory_row_but_tombstones() -> None:
    """The positive control on real code; tombstones are written by the erasing function."""
    texts = [sources()[path] for path in sorted(WRITERS)]
    seen = " ".join(found.what for text in texts for found in writes(text, known=known()))
    missing = [
        name for name in MEMORY - {"Tombstone"} if name not in seen and f"observations_{name.lower()}" not in seen
    ]
    assert not missing
    assert "palimpsest_erase" in seen


IMPORTS = """
from observations import models
from observations.models import Embedding, Episode, Evidence, Event, Observation, Scope
"""
CAUGHT = {
    "create": "Observation.objects.create(text='x')",
    "bulk_create": "Evidence.objects.bulk_create([])",
    "get_or_create": "Scope.objects.get_or_create(name='x')",
    "update_or_create": "Embedding._default_manager.update_or_create(pk=1)",
    "update of a filtered query": "Observation.objects.active().filter(pk=1).update(status='archived')",
    "delete of a query": "Episode.objects.all().delete()",
    "async": "async def f() -> None:\n    await Observation.objects.acreate(text='x')",
    "through the module": "models.Observation.objects.create()",
    "through get_model": "from django.apps import apps\napps.get_model('observations', 'Observation').objects.create()",
    "an alias": "from observations.models import Observation as Row\nRow.objects.create()",
    "save of a new row": "row = Observation(text='x')\nrow.save()",
    "save of a read row": "row = Observation.objects.get(pk=1)\nrow.save(update_fields=['status'])",
    "save in a loop": "for row in Observation.objects.active():\n    row.save()",
    "save in a sorted loop": "for row in sorted(Observation.objects.all(), key=str):\n    row.delete()",
    "a query kept in a name": "rows = Observation.objects.filter(pk=1)\nrows.update(status='archived')",
    "a row in a parameter": "def f(row: Observation) -> None:\n    row.save()",
    "rows in a parameter": "def f(rows: list[Observation]) -> None:\n    rows[0].delete()",
    "a row of unknown kind": "def f(row):\n    row.save()",
    "a foreign key": "def f(event: Event) -> None:\n    event.scope.save()",
    "a reverse name": "def f(scope: Scope) -> None:\n    scope.observations.create(text='x')",
    "a reverse name filtered": "def f(row: Observation) -> None:\n    row.evidence.filter(quote='x').delete()",
    "a set of rows": "def f(row: Observation) -> None:\n    row.supersedes.set([])",
    "a row another function returns": "row = lock_rows(scope_id=1, ids=[1])[1]\nrow.save()",
    "bulk_update": "Observation.objects.bulk_update([], ['status'])",
    "self in a queryset": "class ObservationQuerySet:\n    def f(self) -> None:\n        self.update(status='x')",
    "SQL insert": "q = 'INSERT INTO observations_observation (text) VALUES (1)'",
    "SQL update": 'q = """\n  UPDATE   observations_episode SET text = 1"""',
    "SQL delete": "q = 'delete from \"observations_scope\"'",
    "SQL copy": "q = 'COPY observations_embedding FROM STDIN'",
    "SQL to any table": "table = 'x'\nq = f'UPDATE {table} SET x = 1'",
    "the erasing function": "q = 'SELECT palimpsest_erase_observations(1)'",
}
PASSED = {
    "another model": "Event.objects.create()",
    "another row": "def f(event: Event) -> None:\n    event.save()",
    "reading": "list(Observation.objects.filter(pk=1).values_list('text'))",
    "a dictionary": "seen: dict[str, int] = {}\nseen.update(a=1)",
    "a set": "ids = set()\nids.add(1)",
    "SQL that reads": "q = 'SELECT text FROM observations_observation FOR UPDATE'",
    "SQL of another table": "q = 'UPDATE observations_outbox SET attempts = 1'",
    "a neighbour of a memory table": "q = 'DELETE FROM observations_scopeaccess'",
    "words in a docstring": 'def f() -> None:\n    """UPDATE observations_observation is refused."""',
}


@pytest.mark.parametrize("code", CAUGHT.values(), ids=CAUGHT)
def test_a_write_is_caught_whatever_its_form(code: str) -> None:
    assert list(writes(IMPORTS + code, known=known()))


@pytest.mark.parametrize("code", PASSED.values(), ids=PASSED)
def test_what_writes_no_memory_is_left_alone(code: str) -> None:
    assert not list(writes(IMPORTS + code, known=known()))
