"""Episodes and summaries that have to do with a query, by meaning and by words: the ten to select from (R3, R22).

Episodes have no index of words. So words are looked for among the newest turns and those that are nearest by meaning.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from pgvector.django import CosineDistance

from observations import answers, failures
from observations.embedding import Embedder, Profile
from observations.models import Embedding, Episode, Observation, Scope, Transition
from observations.normalise import clean
from observations.records import Status
from observations.retrieval import LONGEST_QUERY, Narrowed, current_embedder

log = logging.getLogger(__name__)

NEWEST: Final = 1_000  # turns, and summaries, among which words are looked for
_NEAREST: Final = 60
_WORDS_COUNT: Final = 0.35  # what holding all words of the query adds to the cosine, as in a search
_BY_WORDS: Final = 0.35  # the share of the query's words from which a row without a vector has to do with it
_BESIDE: Final = 5  # rows that share most with an old one


@dataclass(frozen=True, slots=True)
class Recalled:
    """A turn or a summary that was found. `id` is as in answers: below zero for a turn."""

    id: int
    score: float
    relevant: bool


@dataclass(frozen=True, slots=True)
class Store:
    """The turns and summaries of a scope that may be read, now or as of a moment: the one place that decides it."""

    scope: Scope
    as_of: datetime | None = None

    def turns(self) -> QuerySet[Episode]:
        """Episodes that nothing stands for yet; of a moment, those that happened by then and were not archived."""
        rows = Episode.objects.filter(scope=self.scope)
        if self.as_of is None:
            return rows.filter(status=Status.ACTIVE)
        moved = Transition.objects.filter(scope=self.scope, episode=OuterRef("pk"), at__lte=self.as_of)
        there = rows.filter(happened_at__lte=self.as_of, status__in=(Status.ACTIVE, Status.ARCHIVED))
        return there.filter(~Exists(moved.filter(to_status=Status.ARCHIVED)) | Q(status=Status.ACTIVE))

    def summaries(self) -> QuerySet[Observation]:
        """Summaries that are current, or were."""
        return Narrowed(as_of=self.as_of).rows(scope=self.scope).filter(derivation="compact")


def recall(*, store: Store, query: str, k: int, embedder: Embedder | None = None) -> tuple[list[Recalled], bool]:
    """At most k turns and summaries, the best first, and whether all of the search went well. Raises django.db.Error.
    Five queries.
    """
    text = clean(query)[0][:LONGEST_QUERY].strip()
    if not text:
        return [], True
    cosines, profile = _near(store, text, embedder)
    shares = _sharing(store, [text], also=list(cosines))[0]
    found = [_recalled(pk, cosines.get(pk), shares.get(pk, 0.0), profile) for pk in {*cosines, *shares}]
    return sorted(found, key=lambda hit: (-hit.score, hit.id))[:k], profile is not None


def beside(*, store: Store, texts: Sequence[str]) -> list[int]:
    """The turns and summaries that share most with each of some words: what may say what became of them. Three queries,
    none without words. Raises django.db.Error.
    """
    if not texts:
        return []
    found = (sorted(shares, key=lambda pk: (-shares[pk], pk))[:_BESIDE] for shares in _sharing(store, texts))
    return list(dict.fromkeys(pk for ids in found for pk in ids))


def _recalled(pk: int, cosine: float | None, share: float, profile: Profile | None) -> Recalled:
    """One row: its cosine, and what its words add; without a vector it counts as near as its words say. The floor is
    that of claims, which holds for turns as well (docs/decisions/0018).
    """
    score = (share if cosine is None else cosine) + _WORDS_COUNT * share
    if cosine is None or profile is None:
        return Recalled(pk, score, share >= _BY_WORDS)
    return Recalled(pk, score, share >= profile.relevant_words or score >= profile.t_relevant)


# --- by meaning ------------------------------------------------------------------------------------------------------


def _near(store: Store, text: str, embedder: Embedder | None) -> tuple[dict[int, float], Profile | None]:
    """Cosines of the nearest rows, by an exact scan of the scope's vectors; no profile where the embedder failed."""
    try:
        embedder = embedder or current_embedder()
        [vector] = embedder.embed([text])
    except Exception as error:  # promise 9: whatever an embedder raises, words are left
        failures.count("episodes: the embedder")
        log.warning("episodes: the embedder failed (%s); words alone are looked for", type(error).__name__)
        return {}, None
    profile = embedder.profile
    rows = (
        Embedding.objects.filter(
            Q(episode__in=store.turns().values("pk")) | Q(observation__in=store.summaries().values("pk")),
            scope=store.scope,
            profile=profile.name,
            dimensions=profile.dimensions,
            vector__isnull=False,
        )
        .annotate(distance=CosineDistance("vector", vector.tolist()))
        .order_by("distance", "pk")
        .values_list("episode_id", "observation_id", "distance")[:_NEAREST]
    )
    near = {answers.of_episode(turn) if turn else claim or 0: 1 - distance for turn, claim, distance in rows}
    return near, profile


# --- by words --------------------------------------------------------------------------------------------------------


# Of each text that is asked for, the share of its words that a row holds, each weighed by how rare it is there.
_WORDS: Final = """
WITH docs AS MATERIALIZED (
  SELECT -id AS id, palimpsest_lexemes(speaker || ' ' || text) AS words FROM observations_episode
  WHERE scope_id = %(scope)s AND id = ANY (%(turns)s)
  UNION ALL
  SELECT id, palimpsest_lexemes(text) FROM observations_observation
  WHERE scope_id = %(scope)s AND id = ANY (%(summaries)s)
), asked AS MATERIALIZED (
  SELECT place, lexeme,
    ('''' || replace(replace(lexeme, '\\', '\\\\'), '''', '''''') || '''')::tsquery AS query
  FROM unnest(%(texts)s::text[]) WITH ORDINALITY AS each (text, place),
    LATERAL (SELECT lexeme FROM unnest(palimpsest_lexemes(each.text)) LIMIT 32) one
), found AS MATERIALIZED (
  SELECT place, lexeme, id FROM asked JOIN docs ON docs.words @@ asked.query
), weights AS MATERIALIZED (
  SELECT place, lexeme, ln(1 + (rows.n - coalesce(hits.n, 0) + 0.5) / (coalesce(hits.n, 0) + 0.5)) AS weight
  FROM asked LEFT JOIN (SELECT place, lexeme, count(*)::float8 AS n FROM found GROUP BY place, lexeme) hits
    USING (place, lexeme)
  CROSS JOIN (SELECT count(*)::float8 AS n FROM docs) rows
)
SELECT place, id, sum(weight) / (SELECT sum(weight) FROM weights w WHERE w.place = found.place)
FROM found JOIN weights USING (place, lexeme) GROUP BY place, id
"""


def _sharing(store: Store, texts: Sequence[str], also: Sequence[int] = ()) -> list[Mapping[int, float]]:
    """For each text the rows that hold some of its words, and what share of them, 0 to 1. `also` are looked at however
    old they are.
    """
    turns = store.turns().order_by("-happened_at", "-pk").values_list("pk", flat=True)[:NEWEST]
    summaries = store.summaries().order_by("-created_at", "-pk").values_list("pk", flat=True)[:NEWEST]
    values: dict[str, int | list[int] | list[str]] = {
        "scope": store.scope.pk,
        "turns": [*turns, *(-pk for pk in also if pk < 0)],
        "summaries": [*summaries, *(pk for pk in also if pk > 0)],
        "texts": list(texts),
    }
    with connection.cursor() as cursor:
        cursor.execute(_WORDS, values)
        rows = cursor.fetchall()
    shares: list[dict[int, float]] = [{} for _ in texts]
    for place, pk, share in rows:
        shares[place - 1][pk] = share
    return list(shares)
