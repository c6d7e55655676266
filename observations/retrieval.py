"""RETRIEVE: what an agent may read, by meaning and by words, active rows of one scope only (R13, I21).

A read never raises for a dead store or embedder: it returns what it found and says that it is incomplete (promise 9).
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final, TypeVar

from django.conf import settings
from django.db import connection, transaction

from observations.embedding import Embedder, embedder
from observations.models import Observation, Scope, Use
from observations.normalise import clean
from observations.records import Status

log = logging.getLogger(__name__)

# Who reads, and how many rows each gets. Every read names one of these in its Use rows.
CALL_SITES: Final[Mapping[str, int]] = {
    "is_known": 2,  # is this claim in the store already
    "nearest": 3,  # what a new claim is reconciled with
    "context": 10,  # what a prompt is given
    "search": 5,  # somebody looks: the command, a tool
}
LONGEST_QUERY: Final = 4_000  # characters; the rest of a longer one is not read
_MOST: Final = 1_000  # rows of one answer
_POOL: Final = 4  # each way of searching hands in this many times k rows to be ranked together
_RANK_OFFSET: Final = 60  # reciprocal rank fusion's constant


class Why(StrEnum):
    """Why a hit is among the answers."""

    WORDS = "words"
    MEANING = "meaning"
    BOTH = "both"


class Trust(StrEnum):
    """How far a reader may trust a row: by what kind of record it is, never by what its text says (C15)."""

    MEDIUM = "medium"  # an extracted or merged claim
    LOW = "low"  # a summary that a model wrote


@dataclass(frozen=True, slots=True)
class Hit:
    """One row of an answer."""

    id: int
    external_id: str
    text: str
    why: Why
    trust: Trust
    status: Status
    score: float  # reciprocal ranks added up: comparable within one answer only
    cosine: float | None  # to the query; None when the row came by its words alone


@dataclass(frozen=True, slots=True)
class Answer:
    """What one read returned, best first. Not `complete` when a part of the search failed: not the same as empty."""

    id: uuid.UUID
    hits: tuple[Hit, ...]
    complete: bool


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


def search(*, scope: Scope, query: str, k: int, call_site: str, embedder: Embedder | None = None) -> Answer:
    """The k best active rows of a scope for a query, by meaning and by words; fewer only where the scope holds fewer.

    A row is found by its words at once and by its meaning once its vector is there. Writes one Use row per hit. Raises
    ValueError for an unknown call site, and nothing else.
    """
    if call_site not in CALL_SITES:
        raise ValueError(f"There is no call site {call_site!r}: name one of {', '.join(CALL_SITES)}.")
    text = clean(query)[0][:LONGEST_QUERY].strip()
    k = min(k, _MOST)
    if not text or k < 1:
        return Answer(uuid.uuid4(), (), complete=True)
    pool = max(_POOL * k, 50)
    near = _attempt("meaning", lambda: _by_meaning(scope, text, pool, embedder or current_embedder()))
    worded = _attempt("words", lambda: _by_words(scope, text, pool))
    ranked = _fused(near or [], worded or [])
    hits = _attempt("rows", lambda: _hits(scope, ranked, dict(near or []), dict(worded or []), k))
    answer = Answer(uuid.uuid4(), hits or (), complete=None not in (near, worded, hits))
    _attempt("uses", lambda: _note_uses(scope, answer, call_site))
    return answer


Found = TypeVar("Found")
Scored = list[tuple[int, float]]  # (observation id, score), best first


def _attempt(part: str, read: Callable[[], Found]) -> Found | None:
    """A part of a read, or None when it failed; inside somebody's transaction the failure does not spoil it."""
    try:
        with transaction.atomic():
            return read()
    except Exception as error:  # promise 9: whatever an embedder or a driver raises, the agent that asked goes on
        log.warning("search: %s failed (%s); the answer is incomplete", part, type(error).__name__)
        return None


def _by_meaning(scope: Scope, text: str, pool: int, embedder: Embedder) -> Scored:
    """The nearest rows by an exact scan of the scope's vectors: no other scope's size can thin the answer (C14)."""
    [vector] = embedder.embed([text])
    profile = embedder.profile
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT observation_id, 1 - (vector <=> %s::vector) FROM observations_embedding"
            " WHERE scope_id = %s AND profile = %s AND dimensions = %s AND active AND vector IS NOT NULL"
            " AND observation_id IS NOT NULL ORDER BY vector <=> %s::vector, observation_id LIMIT %s",
            [str(vector.tolist()), scope.pk, profile.name, profile.dimensions, str(vector.tolist()), pool],
        )
        return [(pk, cosine) for pk, cosine in cursor.fetchall()]


# One lookup per word of the query in the index of migration 0004, whose entries carry the scope. A row's score is the
# sum of its words' inverse document frequencies within the scope: what every row says counts for nothing.
_WORDS = """
WITH words AS (
  SELECT lexeme, ('''@ ' || %(scope)s || '''')::tsquery
      && ('''' || replace(replace(lexeme, '\\', '\\\\'), '''', '''''') || '''')::tsquery AS query
  FROM unnest(to_tsvector('english', %(text)s)) LIMIT 32
), found AS (
  SELECT w.lexeme, o.id FROM words w JOIN observations_observation o
  ON (to_tsvector('english', o.text) || array_to_tsvector(ARRAY['@ ' || o.scope_id::text])) @@ w.query
  WHERE o.scope_id = %(scope)s AND o.status = 'active'
), total AS (
  SELECT count(*)::float8 AS n FROM observations_observation WHERE scope_id = %(scope)s AND status = 'active'
), weights AS (
  SELECT lexeme, ln(1 + (n - count(*) + 0.5) / (count(*) + 0.5)) AS weight FROM found, total GROUP BY lexeme, n
)
SELECT id, sum(weight) AS score FROM found JOIN weights USING (lexeme)
GROUP BY id ORDER BY score DESC, id LIMIT %(pool)s
"""


def _by_words(scope: Scope, text: str, pool: int) -> Scored:
    with connection.cursor() as cursor:
        cursor.execute(_WORDS, {"scope": scope.pk, "text": text, "pool": pool})
        return [(pk, score) for pk, score in cursor.fetchall()]


def _fused(near: Scored, worded: Scored) -> list[tuple[int, float]]:
    """Both rankings by reciprocal rank. Equal scores share a rank, so words that fit all rows alike change no order."""
    scores: dict[int, float] = {}
    for ranking in (near, worded):
        for pk, rank in _ranks(ranking):
            scores[pk] = scores.get(pk, 0.0) + 1 / (_RANK_OFFSET + rank)
    cosines = dict(near)
    return sorted(scores.items(), key=lambda hit: (-hit[1], -cosines.get(hit[0], -1.0), hit[0]))


def _ranks(ranking: Scored) -> list[tuple[int, int]]:
    ranks: list[tuple[int, int]] = []
    rank, before = 0, None
    for place, (pk, score) in enumerate(ranking, start=1):
        rank = rank if score == before else place
        ranks.append((pk, rank))
        before = score
    return ranks


def _hits(
    scope: Scope, ranked: Sequence[tuple[int, float]], near: Mapping[int, float], worded: Mapping[int, float], k: int
) -> tuple[Hit, ...]:
    rows = Observation.objects.active().in_scope(scope).in_bulk([pk for pk, _ in ranked])
    return tuple(_hit(rows[pk], score, near.get(pk), pk in worded) for pk, score in ranked if pk in rows)[:k]


def _hit(row: Observation, score: float, cosine: float | None, by_words: bool) -> Hit:
    return Hit(
        id=row.pk,
        external_id=row.external_id,
        text=row.text or "",
        why=Why.WORDS if cosine is None else Why.BOTH if by_words else Why.MEANING,
        trust=Trust.LOW if row.derivation == "compact" else Trust.MEDIUM,
        status=Status(row.status),
        score=score,
        cosine=cosine,
    )


def _note_uses(scope: Scope, answer: Answer, call_site: str) -> None:
    """One insert: who was handed out by which answer (R51). Telemetry; without it the read stands all the same."""
    Use.objects.bulk_create(
        Use(scope=scope, observation_id=hit.id, call_site=call_site, answer=answer.id) for hit in answer.hits
    )
