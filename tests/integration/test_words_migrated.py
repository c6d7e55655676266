"""The migration that writes the words of a row beside it: forward on any store, the words a writer gets; and back."""

from __future__ import annotations

from importlib import import_module

import psycopg
import pytest
from django.db import transaction

from observations import store
from observations.models import Observation, Scope
from observations.records import Claim, MemoryKind, Status, WrittenBy
from tests.building import observe, scope
from tests.conftest import superuser

pytestmark = pytest.mark.django_db(transaction=True)
MIGRATION = import_module("observations.migrations.0019_words_beside_the_row").Migration


def moved(row: Observation, to: Status, successor: Observation | None = None) -> None:
    with transaction.atomic():
        store.lock_scope(scope_id=row.scope_id, cause="test")
        store.move(scope_id=row.scope_id, ids=[row.pk], to=to, successor=successor.pk if successor else None)


def every_sort(here: Scope) -> None:
    """One row of each status, one that never fades, one of stop words alone and one of thousands of words."""
    plain, keyed = (
        observe("the relay hums", within=here),
        observe("hums", within=here, key=("Ana Berg", "keeps", "Ünsal")),
    )
    observe("the of and", within=here)
    observe(" ".join(f"word{n}" for n in range(5_000)), within=here, key=("Ana", "", ""))
    moved(observe("an old relay", within=here), Status.SUPERSEDED, plain)
    moved(observe("an archived relay", within=here), Status.ARCHIVED)
    erased = observe("forget Ana's relay", within=here, key=("Ana Berg", "", ""))
    moved(erased, Status.ARCHIVED)
    with transaction.atomic():
        store.lock_scope(scope_id=here.pk, cause="test")
        store.erase(scope_id=here.pk, ids=[erased.pk], by="ana", reason="asked", request="forget:1")
        claims = [
            Claim(text="I am Ana", external_id="i", kind=MemoryKind.IDENTITY),
            Claim(text="held", external_id="h"),
        ]
        store.add_observations(scope=here, claims=claims, written_by=WrittenBy.IMPORT, held=[False, True])
    moved(keyed, Status.RETRACTED)


def told(admin: psycopg.Connection, columns: str) -> list[tuple[object, ...]]:
    return admin.execute(f"SELECT id, status, {columns} FROM observations_observation ORDER BY id").fetchall()


def test_the_words_of_rows_that_were_there_are_those_that_a_writer_gets() -> None:
    """Of every status, an erased row's empty; backward takes columns, indexes and functions away and no row."""
    every_sort(scope())
    with superuser() as admin:
        admin.autocommit = False
        before, texts = told(admin, "words, words_head"), told(admin, "text, version")
        assert {row[1] for row in before} == {*Status}
        for operation in reversed(MIGRATION.operations):
            admin.execute(operation.reverse_sql)
        assert told(admin, "text, version") == texts
        left = "SELECT count(*) FROM pg_proc WHERE proname ~ '^palimpsest_words?_(codes|head)'"
        assert admin.execute(left).fetchone() == (0,)
        admin.execute(
            "UPDATE observations_observation SET status = 'archived', version = version + 1 WHERE text = 'the of and'"
        )
        for operation in MIGRATION.operations:
            admin.execute(operation.sql)
        assert [(row[0], *row[2:]) for row in told(admin, "words, words_head")] == [
            (row[0], *row[2:]) for row in before
        ]
        admin.rollback()
