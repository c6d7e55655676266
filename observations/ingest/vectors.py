"""Vectors and MinHash bands of stored rows, computed after the write: by a worker, or at the end of an import."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from django.db import transaction
from django.db.models import Exists, OuterRef

from observations import store
from observations.embedding import Embedder
from observations.minhash import stored_bands
from observations.models import Embedding, Observation, ObservationQuerySet, Scope
from observations.normalise import normalised
from observations.records import Status
from observations.retrieval import current_embedder

CHUNK = 128  # texts embedded between two writes

# An archived row may come back by an undo; what is superseded, retracted or erased is never searched or planned again.
_EMBEDDED = (Status.ACTIVE, Status.ARCHIVED, Status.QUARANTINED)


def embed_missing(*, scope_id: int, first: int, last: int, embedder: Embedder | None = None) -> int:
    """Compute what is missing for rows `first` to `last` of a scope under the current profile; returns how many.

    Harmless to repeat. Raises EmbeddingError when the embedder fails; what was computed before stays.
    """
    embedder = embedder or current_embedder()
    return _embed_all(embedder, scope_id, _missing(embedder).filter(pk__gte=first, pk__lte=last), lambda _done: None)


def embed_now(*, scopes: Iterable[Scope], on_progress: Callable[[int], None] | None = None) -> int:
    """Compute every missing vector of some scopes; returns how many. Raises EmbeddingError.

    The outbox keeps its rows: a worker that finds them finds nothing left to do.
    """
    embedder, told = current_embedder(), on_progress or (lambda _done: None)
    return sum(_embed_all(embedder, scope.pk, _missing(embedder), told) for scope in scopes)


def missing_vectors(*, scopes: Iterable[Scope]) -> int:
    """How many rows of some scopes have no vector under the current profile. One query."""
    return _missing(current_embedder()).filter(scope__in=list(scopes)).count()


def _missing(embedder: Embedder) -> ObservationQuerySet:
    there = Embedding.objects.filter(
        scope=OuterRef("scope"), observation=OuterRef("pk"), profile=embedder.profile.name, vector__isnull=False
    )
    return Observation.objects.filter(~Exists(there), status__in=_EMBEDDED)


def _embed_all(embedder: Embedder, scope_id: int, rows: ObservationQuerySet, on_progress: Callable[[int], None]) -> int:
    done, after = 0, 0
    while chunk := list(rows.filter(scope_id=scope_id, pk__gt=after).order_by("pk").values_list("pk", "text")[:CHUNK]):
        count = _embed(embedder, scope_id, {pk: text or "" for pk, text in chunk})
        done, after = done + count, chunk[-1][0]
        on_progress(count)
    return done


def _embed(embedder: Embedder, scope_id: int, texts: dict[int, str]) -> int:
    """Embed outside any lock; write under the scope's, and never what was erased meanwhile: a vector is memory."""
    vectors = dict(zip(texts, embedder.embed(list(texts.values())), strict=True))
    bands = dict(zip(texts, stored_bands([normalised(text) for text in texts.values()]), strict=True))
    with transaction.atomic():
        store.lock_scope(scope_id=scope_id)
        left = Observation.objects.filter(scope_id=scope_id, pk__in=list(texts)).exclude(status=Status.ERASED)
        ids = list(left.order_by("pk").values_list("pk", flat=True))
        if ids:
            store.put_embeddings(
                profile=embedder.profile,
                rows=[(scope_id, pk) for pk in ids],
                vectors=np.stack([vectors[pk] for pk in ids]),
                bands=[bands[pk] for pk in ids],
            )
    return len(ids)
