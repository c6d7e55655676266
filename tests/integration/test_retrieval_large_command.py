"""`memory index`: approximate indexes of large scopes, listed, made and dropped by hand."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest
from django.core.management import CommandError
from django.test import override_settings

from observations.models import Embedding, Scope
from tests.building import scope
from tests.integration.test_retrieval_large import drawn, fill, found, memory

pytestmark = pytest.mark.django_db(transaction=True)  # an index is made by another connection


@pytest.fixture(autouse=True)
def owners_address() -> Iterator[None]:
    """As the command finds it outside the suite."""
    with override_settings(MIGRATE_DATABASE_URL=os.environ["MIGRATE_DATABASE_URL"]):
        yield


@pytest.fixture
def filled() -> Scope:
    within = scope("big/a")
    fill(within, 60, seed=1)
    return within


def test_a_scope_is_indexed_once_and_read_all_the_same_when_its_index_is_gone(filled: Scope) -> None:
    """The mark is a hint: an index that somebody dropped costs time and no row."""
    listed = json.loads(memory("index --list --at-least 50 --json"))
    assert [(one["scope"], one["rows"], one["indexed"]) for one in listed["scopes"]] == [("big/a", 60, False)]
    assert "no index: run" in memory("index --list --at-least 50")
    assert "Indexed big/a: 60 rows." in memory("index --at-least 50")
    assert "Nothing to do" in memory("index --at-least 50")
    assert "indexed" in memory("index --list --at-least 50")
    marked, [vector] = Scope.objects.get(pk=filled.pk), drawn(1, 6)
    before = found(marked, vector)
    assert "Dropped the index of big/a" in memory("index --at-least 200")
    assert Scope.objects.get(pk=filled.pk).index_profile == ""
    assert "scanned exactly" in memory("index --list --at-least 200")
    assert found(marked, vector) == before  # by a process that had read the mark before


def test_what_is_printed_for_a_program_is_how_it_stands_afterwards(filled: Scope) -> None:
    made = json.loads(memory("index --at-least 50 --json"))
    assert (made["done"], [one["indexed"] for one in made["scopes"]]) == (["Indexed big/a: 60 rows."], [True])
    assert json.loads(memory("index --at-least 200 --json"))["scopes"] == []


def test_who_does_not_own_the_tables_makes_no_index(filled: Scope) -> None:
    """One sentence that says what to set; the application's role is the lesser one."""
    with override_settings(MIGRATE_DATABASE_URL=""), pytest.raises(CommandError, match="set MIGRATE_DATABASE_URL"):
        memory("index --at-least 50")
    assert not Scope.objects.exclude(index_profile="").exists()
    assert Embedding.objects.filter(scope=filled).count() == 60
