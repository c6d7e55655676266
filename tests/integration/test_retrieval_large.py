"""Large scopes: an approximate index that a person has made, ranked exactly, with an exact scan behind it."""

from __future__ import annotations

import io
import os
import shlex
from collections.abc import Iterator

import numpy as np
import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.test import override_settings
from psycopg import sql
from pytest_django import DjangoDbBlocker

from observations import retrieval, store
from observations.embedding import HASHING
from observations.models import Observation, Scope
from observations.records import Claim, Status, WrittenBy
from observations.retrieval import large
from observations.retrieval.words import by_words
from tests.building import LONG_AGO, scope
from tests.conftest import empty_the_store

ROWS, K, ASKED = 1_000, 10, 20


def memory(words: str) -> str:
    out = io.StringIO()
    call_command("memory", *shlex.split(words), stdout=out, stderr=io.StringIO())
    return out.getvalue()


class Given:
    """An embedder that answers with vectors drawn beforehand."""

    profile = HASHING

    def __init__(self, vector: np.ndarray[tuple[int], np.dtype[np.float32]]) -> None:
        self.vector = vector

    def embed(self, _texts: object) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        return self.vector[None, :]


def drawn(count: int, seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Vectors around 40 centres, as texts about 40 matters are."""
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(40, HASHING.dimensions))
    near = centres[random.integers(0, 40, count)] + 0.6 * random.normal(size=(count, HASHING.dimensions))
    unit: np.ndarray[tuple[int, int], np.dtype[np.float32]] = (
        near / np.linalg.norm(near, axis=1, keepdims=True)
    ).astype(np.float32)
    return unit


def fill(within: Scope, count: int, seed: int) -> None:
    claims = [Claim(text=f"entry {n}", external_id=f"{within.pk}-{n}", created_at=LONG_AGO) for n in range(count)]
    with transaction.atomic():
        written = store.add_observations(scope=within, claims=claims, written_by=WrittenBy.IMPORT)
        store.put_embeddings(
            profile=HASHING,
            rows=[(within.pk, row.id) for row in written if row.id is not None],
            vectors=drawn(count, seed),
            bands=[bytes(128)] * count,
        )


@pytest.fixture(scope="module")
def stored(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Scope]:
    """A scope that is large for these tests, with its index, beside another one whose rows lie as near; made once, and
    committed, since an index is made by another connection.
    """
    with django_db_blocker.unblock():
        within = scope("big/a")
        fill(within, ROWS, seed=1)
        fill(scope("big/b"), 300, seed=2)
        with override_settings(MIGRATE_DATABASE_URL=os.environ["MIGRATE_DATABASE_URL"]):
            memory("index --scope big/a --at-least 500")
            yield Scope.objects.get(pk=within.pk)
            memory("index --scope big/* --at-least 100000")
        empty_the_store()


@pytest.fixture
def indexed(stored: Scope, db: None) -> Scope:
    """As a process has read it; what a test changes is rolled back."""
    return Scope.objects.get(pk=stored.pk)


def found(within: Scope, vector: np.ndarray[tuple[int], np.dtype[np.float32]], k: int = K) -> list[int]:
    answer = retrieval.look(scope=within, query="zzz", k=k, call_site="search", embedder=Given(vector))
    assert answer.complete
    return [hit.id for hit in answer.hits]


def exactly(within: Scope) -> Scope:
    """The same scope, read as if it had no index."""
    plain = Scope.objects.get(pk=within.pk)
    plain.index_profile = ""
    return plain


def plans(within: Scope) -> str:
    statement = large.candidates(scope_id=within.pk, profile=HASHING, wanted=50)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(large.TUNE)
        cursor.execute(sql.SQL("EXPLAIN {}").format(statement), {"vector": str(drawn(1, 9)[0].tolist())})
        return "\n".join(line for (line,) in cursor.fetchall())


def test_the_index_is_used_and_finds_what_an_exact_scan_finds(indexed: Scope) -> None:
    """DESIGN 8: recall against exact of 0.99 at least; k rows always, of this scope."""
    name = large.name_of(scope_id=indexed.pk, profile=HASHING.name)
    assert f"Index Scan using {name}" in plans(indexed)
    shared = 0
    for vector in drawn(ASKED, 3):
        near, exact = found(indexed, vector), found(exactly(indexed), vector)
        assert len(near) == len(exact) == K
        shared += len({*near} & {*exact})
    assert shared / (ASKED * K) >= 0.99


def test_rows_that_left_the_reads_thin_no_answer(indexed: Scope) -> None:
    """C14: whatever lies nearer and is not current, k rows come back, nearest first."""
    [vector] = drawn(1, 4)
    nearest = found(exactly(indexed), vector, k=400)
    with transaction.atomic():
        store.lock_scope(scope_id=indexed.pk, cause="test")
        store.move(scope_id=indexed.pk, ids=nearest, to=Status.ARCHIVED)
    near = found(indexed, vector)
    assert near == found(exactly(indexed), vector)
    assert not {*near} & {*nearest}
    assert len(near) == K


def test_where_the_index_hands_over_too_few_the_scope_is_scanned(indexed: Scope) -> None:
    """A scope that shrank since: min(k, available) rows come back."""
    kept = set(Observation.objects.filter(scope=indexed).order_by("pk").values_list("pk", flat=True)[:7])
    gone = list(Observation.objects.filter(scope=indexed).exclude(pk__in=kept).values_list("pk", flat=True))
    with transaction.atomic():
        store.lock_scope(scope_id=indexed.pk, cause="test")
        store.move(scope_id=indexed.pk, ids=gone, to=Status.ARCHIVED)
    assert {*found(indexed, drawn(1, 5)[0])} == kept


@pytest.mark.parametrize("query", ["zzz", "entry", "entry 7", "what is entry 77?"])
def test_a_scope_too_large_to_be_read_whole_answers_as_if_it_were(
    stored: Scope, db: None, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """Without an index of vectors: its nearest rows are picked by PostgreSQL, and its words by the index of words."""
    plain = exactly(stored)
    for vector in drawn(ASKED, 6):
        ways = []
        for most in (10 * ROWS, ROWS // 2):
            monkeypatch.setattr("observations.retrieval.words.MOST_READ", most)
            answer = retrieval.look(scope=plain, query=query, k=K, call_site="search", embedder=Given(vector))
            ways.append([(hit.id, hit.share, hit.why) for hit in answer.hits])
            assert answer.complete
            assert by_words(plain, query).whole is (most > ROWS)
        assert ways[0] == ways[1]


def test_of_words_that_most_rows_hold_no_more_rows_are_read_than_of_a_whole_scope(
    stored: Scope, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody carries a million rows into a web process because all of them bear a name; every row of a rare word is
    there, with the share that reading the whole scope gives it.
    """
    plain, query, most = exactly(stored), "what is entry 77?", 100
    whole = by_words(plain, query)
    shares = dict(zip(whole.ids.tolist(), whole.shares.tolist(), strict=True))
    assert sum(share > 0 for share in shares.values()) == ROWS  # naive control: so many hold a word of it
    monkeypatch.setattr("observations.retrieval.words.MOST_READ", most)
    part = by_words(plain, query)
    assert most < len(part.ids) <= 2 * most + 1
    assert {*whole.best(1).tolist()} == {*part.best(1).tolist()}
    assert dict(zip(part.ids.tolist(), part.shares.tolist(), strict=True)) == {
        pk: pytest.approx(shares[pk]) for pk in part.ids.tolist()
    }


def test_the_statements_after_a_walk_of_the_index_may_sort(indexed: Scope) -> None:
    """What it is tuned by ends with it, in whatever transaction a reader stands."""
    found(indexed, drawn(1, 8)[0])
    with connection.cursor() as cursor:
        cursor.execute("SHOW enable_sort")
        assert cursor.fetchone() == ("on",)
