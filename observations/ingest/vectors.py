"""Vectors and MinHash bands of stored rows, computed after the write: by a worker, or at the end of an import."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

import numpy as np
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from observations import store
from observations.embedding import Embedder
from observations.minhash import stored_bands
from observations.models import Embedding, Episode, Observation, Scope
from observations.normalise import normalised
from observations.records import Status
from observations.retrieval import current_embedder
from observations.store import EPISODES

__all__ = ["EPISODES", "Vectors", "embed_missing", "embed_now", "missing_vectors", "note_index"]

CHUNK = 128  # texts embedded between two writes

# An archived row may come back by an undo, and a superseded one is found by whoever asks for history; what is retracted
# or erased is never searched or planned again.
_EMBEDDED = (Status.ACTIVE, Status.SUPERSEDED, Status.ARCHIVED, Status.QUARANTINED)


class Vectors(NamedTuple):
    """A number of vectors of each kind of row."""

    observations: int
    episodes: int

    @property
    def total(self) -> int:
        """Of both kinds together."""
        return self.observations + self.episodes


def embed_missing(
    *, scope_id: int, first: int, last: int, episodes: bool = False, embedder: Embedder | None = None
) -> int:
    """Compute what is missing for observations, or episodes, `first` to `last` of a scope under the current profile.

    Returns how many. Harmless to repeat. Raises EmbeddingError when the embedder fails; what was computed before stays.
    """
    embedder = embedder or current_embedder()
    if episodes:
        return _embed_all(Episode, embedder, scope_id, lambda _done: None, first=first, last=last)
    return _embed_all(Observation, embedder, scope_id, lambda _done: None, first=first, last=last)


def embed_now(
    *, scopes: Iterable[Scope], episodes: bool = True, on_progress: Callable[[int], object] | None = None
) -> Vectors:
    """Compute every missing vector of some scopes; returns how many. Raises EmbeddingError.

    Without `episodes` those are left to the worker. The outbox keeps its rows: a worker that finds them finds nothing
    left to do.
    """
    told, within = on_progress or (lambda _done: None), list(scopes)
    return Vectors(
        observations=_embed_scopes(Observation, within, told),
        episodes=_embed_scopes(Episode, within, told) if episodes else 0,
    )


def missing_vectors(*, scopes: Iterable[Scope]) -> Vectors:
    """How many rows of some scopes have no vector under the current profile. Two queries."""
    embedder, within = current_embedder(), list(scopes)
    return Vectors(
        observations=_missing(Observation, embedder).filter(scope__in=within).count(),
        episodes=_missing(Episode, embedder).filter(scope__in=within).count(),
    )


def note_index(*, scope: Scope, profile: str) -> None:
    """Note for which profile an approximate index of a scope stands, or "" for none; reads go by it. One query."""
    store.note_index(scope=scope, profile=profile)


Row = TypeVar("Row", Observation, Episode)


def _missing(model: type[Row], embedder: Embedder) -> QuerySet[Row]:
    of = "episode" if model is Episode else "observation"
    there = Embedding.objects.filter(
        scope=OuterRef("scope"), profile=embedder.profile.name, vector__isnull=False, **{of: OuterRef("pk")}
    )
    return model._default_manager.filter(~Exists(there), status__in=_EMBEDDED)


def _embed_scopes(model: type[Row], scopes: Iterable[Scope], told: Callable[[int], object]) -> int:
    embedder = current_embedder()
    return sum(_embed_all(model, embedder, scope.pk, told) for scope in scopes)


def _embed_all(
    model: type[Row],
    embedder: Embedder,
    scope_id: int,
    told: Callable[[int], object],
    *,
    first: int = 0,
    last: int = 2**63 - 1,
) -> int:
    rows = _missing(model, embedder).filter(scope_id=scope_id, pk__lte=last).order_by("pk").values_list("pk", "text")
    done, after = 0, first - 1
    while chunk := list(rows.filter(pk__gt=after)[:CHUNK]):
        count = _embed(model, embedder, scope_id, {pk: text or "" for pk, text in chunk})
        done, after = done + count, chunk[-1][0]
        told(count)
    return done


def _embed(model: type[Row], embedder: Embedder, scope_id: int, texts: dict[int, str]) -> int:
    """Embed outside any lock; write under the scope's, and never what was erased meanwhile: a vector is memory."""
    vectors = dict(zip(texts, embedder.embed(list(texts.values())), strict=True))
    bands = dict(zip(texts, stored_bands([normalised(text) for text in texts.values()]), strict=True))
    with transaction.atomic():
        store.lock_scope(scope_id=scope_id)
        left = model._default_manager.filter(scope_id=scope_id, pk__in=list(texts)).exclude(status=Status.ERASED)
        ids = list(left.order_by("pk").values_list("pk", flat=True))
        if ids:
            store.put_embeddings(
                profile=embedder.profile,
                rows=[(scope_id, pk) for pk in ids],
                vectors=np.stack([vectors[pk] for pk in ids]),
                bands=[bands[pk] for pk in ids],
                episodes=model is Episode,
            )
    return len(ids)
