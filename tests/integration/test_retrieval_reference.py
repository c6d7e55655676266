"""A search beside a plain one: every row scored one by one, words by PostgreSQL's full text search, cosines by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from unittest.mock import patch

import numpy as np
import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from observations import retrieval, store
from observations.embedding import HASHING, Matrix, Profile
from observations.models import Scope
from observations.records import Claim, MemoryKind, Status, WrittenBy
from observations.retrieval import Answer, Hit, Narrowed, Weights
from observations.retrieval.sites import FLOOR, fades
from tests.accents import without_accents
from tests.building import scope

pytestmark = pytest.mark.django_db
CLOSE = 1e-6  # vectors are stored in single precision
WORDS = ("relay", "relays", "harbour", "the", "Ana", "Berg", "lantern", "C++", "日本", "x" * 99)
TEXT = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
LONG = st.just(" ".join(f"word{n}" for n in range(300)) + " relay harbour")  # over what an entry of an index takes
NAME = st.lists(st.sampled_from(WORDS[:6]), max_size=2).map(" ".join)
NUMBER = st.sampled_from((-1.0, -0.5, 0.0, 0.0, 0.25, 0.5, 1.0))  # few, so that many rows tie
VECTOR = st.tuples(NUMBER, NUMBER)
K = st.sampled_from((1, 2, 5, 50))


@dataclass(frozen=True)
class Row:
    """One row of a made-up store."""

    text: str
    subject: str
    vector: tuple[float, float] | None  # None: it has none yet
    age: int  # in days
    half_life: int | None
    status: Status


ROW = st.builds(
    Row,
    text=st.one_of(TEXT, TEXT, TEXT, LONG),
    subject=NAME,
    vector=st.one_of(st.none(), VECTOR),
    age=st.sampled_from((0, 3, 60, 4_000)),
    half_life=st.sampled_from((None, 1, 180, 2_147_483_647)),
    status=st.sampled_from((Status.ACTIVE, Status.ACTIVE, Status.ACTIVE, Status.ARCHIVED, Status.QUARANTINED)),
)


@dataclass(frozen=True)
class Given:
    """An embedder that answers with one vector."""

    vector: tuple[float, float]
    profile: Profile = HASHING

    def embed(self, _texts: object) -> Matrix:
        return laid(self.vector)[None, :]


def laid(vector: tuple[float, float]) -> Matrix:
    full = np.zeros(HASHING.dimensions, np.float32)
    full[:2] = vector
    return full


def written(within: Scope, rows: list[Row], now: datetime) -> dict[int, Row]:
    claims = [
        Claim(
            text=row.text,
            external_id=f"{within.pk}-{n}",
            subject=row.subject,
            kind=MemoryKind.IDENTITY,  # which does not fade by itself
            half_life_days=row.half_life,
            created_at=now - timedelta(days=row.age),
        )
        for n, row in enumerate(rows)
    ]
    held = [row.status is Status.QUARANTINED for row in rows]
    stored = store.add_observations(scope=within, claims=claims, written_by=WrittenBy.IMPORT, held=held)
    by_id = {each.id: row for each, row in zip(stored, rows, strict=True) if each.id is not None}
    near = {pk: row.vector for pk, row in by_id.items() if row.vector is not None}
    if near:
        store.put_embeddings(
            profile=HASHING,
            rows=[(within.pk, pk) for pk in near],
            vectors=np.array([laid(vector) for vector in near.values()]),
            bands=[bytes(128)] * len(near),
        )
    if gone := [pk for pk, row in by_id.items() if row.status is Status.ARCHIVED]:
        store.move(scope_id=within.pk, ids=gone, to=Status.ARCHIVED)
    return by_id


# --- the plain one --------------------------------------------------------------------------------------------------


def began() -> datetime:
    """When the transaction did, from which a search within it counts a row's age, however long the test takes."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT now()")
        [(moment,)] = cursor.fetchall()
        assert isinstance(moment, datetime)
        return moment


def lexemes(text: str) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tsvector_to_array(to_tsvector('english', %s))", [without_accents(text)])
        [(found,)] = cursor.fetchall()
        return set(found)


def cosine(one: tuple[float, float], other: tuple[float, float]) -> float:
    lengths = math.hypot(*one) * math.hypot(*other)
    return (one[0] * other[0] + one[1] * other[1]) / lengths if lengths else 0.0


def scored(rows: Mapping[int, Row], query: str, vector: tuple[float, float], floor: float) -> dict[int, float]:
    """The score of every row that has a word of the query or a vector."""
    asked = lexemes(query)
    held = {pk: lexemes(f"{row.text} {row.subject}") & asked for pk, row in rows.items()}
    names = {pk: lexemes(row.subject) for pk, row in rows.items()}
    bearing = {word: sum(word in words for words in held.values()) for word in asked}
    weight = {word: math.log(1 + (len(rows) - n + 0.5) / (n + 0.5)) for word, n in bearing.items()}
    rarest = math.log(1 + (max(len(rows), 1) - 0.5) / 1.5)
    cosines = {pk: cosine(row.vector, vector) for pk, row in rows.items() if row.vector is not None}
    weights, best = Weights.of_settings(), max(cosines.values(), default=1.0)
    scores = {}
    for pk, row in rows.items():
        share = sum(weight[word] for word in held[pk]) / (sum(weight.values()) or 1)
        named = asked & names[pk]
        rare = max((weight[word] / rarest for word in named), default=0.0)
        near = cosines.get(pk, best * share)
        score = near + weights.words * share + weights.subject * rare**2 * len(named) / max(len(names[pk]), 1)
        left = max(floor, 0.5 ** (row.age / row.half_life)) if row.half_life else 1.0
        if pk in cosines or share > 0:
            scores[pk] = score - fades("search") * (1 - left) * abs(score)
    return scores


def looked(within: Scope, query: str, vector: tuple[float, float], k: int, narrowed: Narrowed) -> Answer:
    return retrieval.look(scope=within, query=query, k=k, call_site="search", embedder=Given(vector), narrowed=narrowed)


def agrees(hits: tuple[Hit, ...], scores: Mapping[int, float], rows: Mapping[int, Row], k: int) -> None:
    """The best first, each with its score, ties by age; then what could not be compared, the newest first."""
    assert len(hits) == len({hit.id for hit in hits}) == min(k, len(rows))
    compared = [hit for hit in hits if hit.id in scores]
    filling = [hit.id for hit in hits if hit.id not in scores]
    assert [hit.id for hit in hits] == [*(hit.id for hit in compared), *filling]
    assert [hit.score for hit in compared] == pytest.approx([scores[hit.id] for hit in compared], abs=CLOSE)
    wanted = sorted(scores.values(), reverse=True)[:k]
    assert [hit.score for hit in compared] == pytest.approx(wanted, abs=CLOSE)
    assert filling == sorted(set(rows) - set(scores), reverse=True)[: len(filling)]


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(rows=[], beside=[], query="relay", vector=(1.0, 0.0), k=5)
@example(rows=[], beside=[], query="the", vector=(0.0, 0.0), k=5)
@given(
    rows=st.lists(ROW, max_size=12),
    beside=st.lists(ROW, max_size=3),
    query=st.one_of(TEXT, TEXT, LONG),
    vector=VECTOR,
    k=K,
)
def test_a_search_answers_as_a_plain_one_that_scores_every_row_by_itself(
    rows: list[Row], beside: list[Row], query: str, vector: tuple[float, float], k: int
) -> None:
    """C14: ids, scores and number; with ties, rows without a vector, vectors of no direction, long texts, stop words
    alone, other scopes' rows; also in a large scope, and with history, which is asked for by name.
    """
    with transaction.atomic():
        here, now = scope(), began()
        written(scope("team-b/u1"), beside, now)
        stored = written(here, rows, now)
        query = query[:90] if query.startswith("word0") else query
        current = {pk: row for pk, row in stored.items() if row.status is Status.ACTIVE}
        past = {pk: row for pk, row in stored.items() if row.status is not Status.QUARANTINED}
        indexed = Scope.objects.get(pk=here.pk)
        indexed.index_profile = "some"  # read as a large scope is: words and the nearest are looked up
        ways = (
            (here, current, Narrowed()),
            (indexed, current, Narrowed()),
            (here, past, Narrowed(include_history=True)),
        )
        for within, among, narrowed in ways:
            answer = looked(within, query, vector, k, narrowed)
            assert answer.complete
            agrees(answer.hits, scored(among, query, vector, FLOOR), among, k)
        transaction.set_rollback(True)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(ROW, max_size=12),
    query=TEXT,
    vector=VECTOR,
    most=st.sampled_from((1, 3, 5)),
    indexed=st.booleans(),
    k=K,
)
def test_so_does_one_of_a_scope_too_large_to_be_read_whole(
    rows: list[Row], query: str, vector: tuple[float, float], most: int, indexed: bool, k: int
) -> None:
    """C14: also of words that more rows hold than are read, where every row has its vector."""
    rows = [replace(row, vector=row.vector or (0.5, 0.25), status=Status.ACTIVE) for row in rows]
    with transaction.atomic():
        here = scope()
        stored = written(here, rows, began())
        here.index_profile = "some" if indexed else ""
        with patch("observations.retrieval.words.MOST_READ", most):
            answer = looked(here, query, vector, k, Narrowed())
        assert answer.complete
        agrees(answer.hits, scored(stored, query, vector, FLOOR), stored, k)
        transaction.set_rollback(True)
