"""A query as it is compared: its vector, and the profile that it may be compared under."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from django.conf import settings

from observations.embedding import Embedder, EmbeddingError, Profile, embedder


@lru_cache(maxsize=1)
def current_embedder() -> Embedder:
    """The embedder of the settings; its model is loaded at the first use. Raises UnknownEmbedder."""
    return embedder(
        settings.PALIMPSEST_EMBEDDER,
        base_url=settings.PALIMPSEST_EMBEDDINGS_URL,
        api_key=settings.PALIMPSEST_EMBEDDINGS_KEY,
        model=settings.PALIMPSEST_EMBEDDINGS_MODEL,
        dimensions=settings.PALIMPSEST_EMBEDDINGS_DIMENSIONS,
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """The query's vector as PostgreSQL reads it, and the profile it may be compared under."""

    vector: str
    profile: Profile


def asked_of(text: str, embedder: Embedder) -> Asked:
    """A query's vector. Raises what the embedder does, and EmbeddingError for what PostgreSQL would refuse to compare,
    so that the embedder failed and not the store: the words of the query still find what they find.
    """
    [vector] = embedder.embed([text])
    if vector.shape != (embedder.profile.dimensions,) or not np.isfinite(vector).all():
        raise EmbeddingError(f"The embedder of {embedder.profile.name} answered with what is no vector of its profile.")
    return Asked(str(vector.tolist()), embedder.profile)
