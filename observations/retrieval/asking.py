"""A query as it is compared: its vector, and the profile that it may be compared under."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from django.conf import settings

from observations.embedding import Embedder, Profile, embedder


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
    """A query's vector. Raises what the embedder does."""
    [vector] = embedder.embed([text])
    return Asked(str(vector.tolist()), embedder.profile)
