"""Vectors: stored under a profile, and asked for later when a row is new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from observations import outbox
from observations.models import Embedding, Scope

if TYPE_CHECKING:
    from observations.embedding import Profile


EMBED: Final = "embed"  # the outbox task that computes missing vectors
EPISODES: Final = "episodes"  # what such work is about, where it is not about observations


def embed_later(scope: Scope, ids: list[int], *, episodes: bool = False) -> None:
    """Ask for the vectors of new rows, in the transaction that writes them. One query."""
    first, last, about = min(ids), max(ids), f"{EPISODES} " if episodes else ""
    payload: dict[str, int | str] = {"first": first, "last": last, **({"of": EPISODES} if episodes else {})}
    outbox.enqueue(task=EMBED, scope_id=scope.pk, key=f"{about}{first}-{last}", payload=payload)


def put_embeddings(
    *,
    profile: Profile,
    rows: Sequence[tuple[int, int]],
    vectors: np.ndarray[tuple[int, int], np.dtype[np.float32]],
    bands: Sequence[bytes],
    episodes: bool = False,
) -> None:
    """Store vectors (n, dimensions) and MinHash bands of (scope id, observation or episode id) rows under a profile;
    redoing it is harmless.

    Raises ValueError for a wrong number of dimensions: a vector of another profile is refused, never stored.
    """
    if vectors.shape != (len(rows), profile.dimensions):
        raise ValueError(
            f"{len(rows)} vectors of {profile.dimensions} dimensions expected for profile {profile.name},"
            f" got {vectors.shape}"
        )
    of = "episode" if episodes else "observation"
    Embedding.objects.bulk_create(
        [
            Embedding(
                scope_id=scope,
                **{f"{of}_id": pk},
                profile=profile.name,
                dimensions=profile.dimensions,
                vector=vector,
                bands=band,
            )
            for (scope, pk), vector, band in zip(rows, vectors, bands, strict=True)
        ],
        update_conflicts=True,
        unique_fields=["scope", of, "profile"],
        update_fields=["vector", "bands"],
    )
