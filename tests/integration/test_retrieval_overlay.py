"""A store as it would be: what a search over an overlay answers is what it answers once the rows have moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

import pytest
from django.db import connection, transaction

from observations import retrieval, store
from observations.embedding import HASHING, Hashing
from observations.models import Embedding, Observation, Scope, database_now
from observations.records import Claim, MemoryKind, Status, WrittenBy
from observations.retrieval import Answer, Narrowed, Overlay, Standing, Trust
from tests.building import observe, scope

pytestmark = pytest.mark.django_db
WORDS = ["relay", "harbour", "lantern", "violin", "orchard", "compass", "quarry", "saddle", "teapot", "glacier"]
AGES = (0, 3, 60, 400, 2_000)


@dataclass(frozen=True)
class Row:
    """One row of a made-up store."""

    claim: Claim
    embedded: bool


def made(random: Random, now: datetime, count: int, label: str) -> list[Row]:
    """Few words and few vectors, so that ties are common."""
    rows = []
    for n in range(count):
        text = " ".join(random.choices(WORDS, k=random.randint(1, 4)))
        claim = Claim(
            text=text,
            external_id=f"{label}{n}",
            subject=random.choice(["", "Ana", random.choice(WORDS)]),
            predicate=random.choice(["", "keeps"]),
            object=random.choice(["", random.choice(WORDS)]),
            kind=random.choice([MemoryKind.FACT, MemoryKind.PREFERENCE, MemoryKind.NOTE]),
            created_at=now - timedelta(days=random.choice(AGES)),
        )
        rows.append(Row(claim, random.random() < 0.8))
    return rows


def written(within: Scope, rows: Sequence[Row]) -> list[int]:
    with transaction.atomic():
        stored = store.add_observations(scope=within, claims=[row.claim for row in rows], written_by=WrittenBy.IMPORT)
        ids = [row.id or 0 for row in stored]
        near = [(pk, row.claim.text) for pk, row in zip(ids, rows, strict=True) if row.embedded]
        vectors = Hashing().embed([text for _, text in near])
        put = [(within.pk, pk) for pk, _ in near]
        store.put_embeddings(profile=HASHING, rows=put, vectors=vectors, bands=[b"\0" * 128] * len(near))
    return ids


def standing(rows: Sequence[Row]) -> tuple[Standing, ...]:
    return tuple(
        Standing(
            id=-place,
            text=row.claim.text,
            subject=row.claim.subject,
            predicate=row.claim.predicate,
            object=row.claim.object,
            created_at=row.claim.created_at or database_now(),
            half_life_days=row.claim.kind.half_life_days,
            vector=Hashing().embed([row.claim.text])[0] if row.embedded else None,
        )
        for place, row in enumerate(rows, start=1)
    )


def looked(within: Scope, query: str, overlay: Overlay | None = None, k: int = 5, call_site: str = "probe") -> Answer:
    answer = retrieval.look(scope=within, query=query, k=k, call_site=call_site, embedder=Hashing(), overlay=overlay)
    assert answer.complete
    return answer


@pytest.mark.parametrize("seed", range(6))
def test_an_overlay_answers_as_the_store_does_once_the_rows_have_moved(seed: int) -> None:
    """R115: what a plan would do to reading, told before anything is written; ids, scores, order and reasons."""
    random, here, now = Random(seed), scope(), database_now()
    written(scope("beside"), made(random, now, 30, "beside"))
    ids = written(here, made(random, now, random.choice([0, 8, 60]), "old"))
    joining = made(random, now, random.choice([0, 1, 12, 40]), "new")
    leaving = random.sample(ids, len(ids) // 3)
    overlay = Overlay(without=frozenset(leaving), plus=standing(joining))
    queries = [" ".join(random.choices(WORDS, k=random.randint(1, 3))) for _ in range(20)] + ["Ana keeps", "nothing"]
    before = [looked(here, query) for query in queries]
    told = [looked(here, query, overlay, k) for query in queries for k in (1, 5, 30)]

    new = written(here, joining)
    store.move(scope_id=here.pk, ids=leaving, to=Status.ARCHIVED)
    real = {-place: pk for place, pk in enumerate(new, start=1)}
    found = [looked(here, query, None, k) for query in queries for k in (1, 5, 30)]
    for expected, projected in zip(found, told, strict=True):
        assert [real.get(hit.id, hit.id) for hit in projected.hits] == [hit.id for hit in expected.hits]
        for one, other in zip(projected.hits, expected.hits, strict=True):
            assert (one.text, one.why, one.trust, one.status) == (other.text, other.why, other.trust, other.status)
            assert (one.score, one.cosine, one.share) == pytest.approx((other.score, other.cosine, other.share))
    if joining or leaving:  # a control: the store as it was answers otherwise
        assert [[hit.id for hit in answer.hits] for answer in before] != [
            [hit.id for hit in answer.hits] for answer in (looked(here, query) for query in queries)
        ]


def test_an_overlay_of_nothing_changes_nothing() -> None:
    here = scope()
    written(here, made(Random(1), database_now(), 40, "old"))
    for query in WORDS:
        plain, laid = looked(here, query), looked(here, query, Overlay())
        assert [hit.id for hit in laid.hits] == [hit.id for hit in plain.hits]


def test_an_overlay_is_read_in_a_transaction_that_cannot_write() -> None:
    """Promise 1: a projection writes nothing, not even a temporary table."""
    here = scope()
    rows = written(here, made(Random(2), database_now(), 20, "old"))
    overlay = Overlay(without=frozenset(rows[:3]), plus=standing(made(Random(3), database_now(), 3, "new")))
    kept = list(Observation.objects.values()), list(Embedding.objects.values_list("pk", "active"))
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL transaction_read_only = on")
        assert len(looked(here, "relay harbour", overlay, k=100).hits) == 20
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_class WHERE relpersistence = 't'")
            assert cursor.fetchone() == (0,)
        transaction.set_rollback(True)
    assert kept == (list(Observation.objects.values()), list(Embedding.objects.values_list("pk", "active")))


def test_a_summary_that_would_be_new_bears_the_trust_of_a_summary() -> None:
    here = scope()
    observe("the relay hums", within=here)
    row = Standing(id=-1, text="the relay", created_at=database_now(), half_life_days=None, derivation="compact")
    trust = {hit.id: hit.trust for hit in looked(here, "relay", Overlay(plus=(row,))).hits}
    assert trust[-1] is Trust.LOW


@pytest.mark.parametrize("ids", [(0,), (7,), (-1, -1)])
def test_rows_that_would_be_new_bear_negative_ids_each_its_own(ids: tuple[int, ...]) -> None:
    rows = tuple(Standing(id=pk, text="x", created_at=database_now(), half_life_days=None) for pk in ids)
    with pytest.raises(ValueError, match="negative ids"):
        Overlay(plus=rows)


def test_an_overlay_is_not_asked_of_the_past() -> None:
    with pytest.raises(ValueError, match="not narrowed"):
        retrieval.look(
            scope=scope(), query="q", k=1, call_site="probe", narrowed=Narrowed(subject="Ana"), overlay=Overlay()
        )
