"""Vectors and MinHash bands are computed after the write: once, and never for what was erased."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from django.db import transaction

from observations import ingest, store
from observations.embedding import EmbeddingError, Matrix, Profile, embedder
from observations.models import Embedding, Observation, Outbox, Scope
from tests.building import scope
from tests.jsonl import imported, observation

# --- vectors --------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_vectors_and_bands_are_computed_once_and_only_what_is_missing() -> None:
    imported(*({"id": str(n), "text": f"text {n}"} for n in range(5)))
    here = Scope.objects.get()
    assert ingest.missing_vectors(scopes=[here]) == 5
    told: list[int] = []
    assert ingest.embed_now(scopes=[here], on_progress=told.append) == 5 == sum(told)
    assert ingest.embed_now(scopes=[here]) == 0
    row = Embedding.objects.get(observation=observation("3"))
    assert row.bands is not None
    assert len(bytes(row.bands)) == 16 * 8
    expected = embedder("hashing").embed(["text 3"])[0]
    assert list(row.vector) == pytest.approx(expected.tolist(), abs=1e-6)


@pytest.mark.django_db
def test_a_worker_computes_the_range_it_was_given() -> None:
    imported(*({"id": str(n), "text": f"text {n}"} for n in range(5)))
    payload = Outbox.objects.get(task="embed").payload
    middle = observation("2").pk
    scope_id = observation("2").scope_id
    assert ingest.embed_missing(scope_id=scope_id, first=middle, last=middle) == 1
    assert ingest.embed_missing(scope_id=scope_id, first=payload["first"], last=payload["last"]) == 4
    assert ingest.embed_missing(scope_id=scope_id, first=payload["first"], last=payload["last"]) == 0


@pytest.mark.django_db
def test_a_row_erased_while_it_was_embedded_gets_no_vector() -> None:
    """A vector is memory too: it must not come back after an erase (I11, promise 7)."""
    here = scope()
    imported({"id": "x", "text": "My code is 4417"})
    row = observation("x")

    class Slow:
        profile: Profile = embedder("hashing").profile

        def embed(self, texts: Iterable[str]) -> Matrix:
            with transaction.atomic():
                store.erase(scope_id=here.pk, ids=[row.pk], by="Ana", reason="asked", request="forget:1")
            return embedder("hashing").embed(list(texts))

    assert ingest.embed_missing(scope_id=here.pk, first=row.pk, last=row.pk, embedder=Slow()) == 0
    assert not Embedding.objects.filter(observation=row, vector__isnull=False).exists()


@pytest.mark.django_db
def test_a_failing_embedder_leaves_the_rows_and_the_work_in_place() -> None:
    imported({"text": "t"})
    row = Observation.objects.get()

    class Dead:
        profile: Profile = embedder("hashing").profile

        def embed(self, _texts: Iterable[str]) -> Matrix:
            raise EmbeddingError("down")

    with pytest.raises(EmbeddingError):
        ingest.embed_missing(scope_id=row.scope_id, first=row.pk, last=row.pk, embedder=Dead())
    assert Outbox.objects.filter(task="embed", done_at=None).count() == 1
