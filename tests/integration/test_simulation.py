"""`manage.py simulate`: two stores from one seed, only ever in a database that is thrown away (R26, R114, R115)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from observations.models import Observation, Scope
from tests.building import observe, scope
from tests.conftest import empty_the_store

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def throwaway() -> Iterator[None]:
    """The test database says of itself what one made by manage.py says."""
    with connection.cursor() as cursor:
        cursor.execute("SET palimpsest.throwaway = 'on'")
    yield
    with connection.cursor() as cursor:
        cursor.execute("SET palimpsest.throwaway = ''")


def simulate(*words: str) -> dict[str, Any]:
    out = StringIO()
    call_command("simulate", "--every", "3", "--json", *words, stdout=out, stderr=StringIO())
    document: dict[str, Any] = json.loads(out.getvalue())
    return document


def test_consolidation_makes_a_store_smaller_and_loses_nothing_and_the_picture_is_an_svg(
    throwaway: None, tmp_path: Path, show: Callable[[str], None]
) -> None:
    """R114, R115; the store that was left alone is the control: it holds every row that was said."""
    picture = tmp_path / "simulation.svg"
    document = simulate("--sessions", "6", "--out", str(picture))
    show(json.dumps(document["points"]))
    first, last = document["points"]
    assert (first["sessions"], last["sessions"]) == (3, 6)
    assert last["without"]["size"] == 6 * 8
    assert last["with"]["size"] < last["without"]["size"]
    assert last["with"]["recall"] >= last["without"]["recall"] > 0.5
    assert document["lost_recall_after"] == []
    text = picture.read_text(encoding="utf-8")
    for words in ("Recall@5 against size", "Size against sessions", "p95 of search against size", "left alone"):
        assert words in text


def test_one_seed_gives_the_same_numbers_twice_but_for_times(throwaway: None) -> None:
    once = simulate("--sessions", "3", "--seed", "3")
    empty_the_store()
    again = simulate("--sessions", "3", "--seed", "3")
    assert {**once, "timings": None} == {**again, "timings": None}


def test_it_refuses_a_database_that_was_not_made_for_it() -> None:
    """Never into a store that anybody uses, not even an empty one."""
    with pytest.raises(CommandError, match="not made to be thrown away") as refused:
        simulate("--sessions", "1")
    assert refused.value.returncode == 2
    assert not Scope.objects.exists()


def test_it_refuses_a_database_that_holds_memory(throwaway: None) -> None:
    observe("The relay is red", within=scope())
    with pytest.raises(CommandError, match="holds memory already"):
        simulate("--sessions", "1")
    assert Observation.objects.count() == 1


@pytest.mark.parametrize("words", [("--sessions", "0"), ("--sessions", "9", "--every", "0"), ("--out", "/nowhere/x")])
def test_what_cannot_be_done_is_said_before_anything_is_written(throwaway: None, words: tuple[str, ...]) -> None:
    with pytest.raises(CommandError) as refused:
        call_command("simulate", *words)
    assert refused.value.returncode == 2
    assert not Scope.objects.exists()


@pytest.mark.slow
def test_the_command_makes_its_own_database_and_never_uses_the_one_of_the_environment() -> None:
    """The address in the environment leads nowhere: a command that used it would fail."""
    nowhere = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing", "REDIS_URL": "redis://127.0.0.1:1/0"}
    done = subprocess.run(
        [sys.executable, "manage.py", "simulate", "--sessions", "2", "--every", "1", "--json"],
        cwd=ROOT,
        env={**os.environ, **nowhere, "MIGRATE_DATABASE_URL": nowhere["DATABASE_URL"]},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    assert [point["sessions"] for point in json.loads(done.stdout)["points"]] == [1, 2]
