"""RETRIEVE: what an agent may read, by meaning and by words, active rows of one scope only (R13, I21).

What has faded ranks behind what is equally relevant and fresh, and is never left out for it (docs/decisions/0010).
A read never raises for a dead store or embedder: it returns what it found and says that it is incomplete (promise 9).
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

import numpy as np
from django.conf import settings
from django.db import connection, transaction
from psycopg import sql

from observations import fading
from observations.embedding import Embedder, Profile, embedder
from observations.models import Observation, ObservationQuerySet, Scope, Use
from observations.normalise import clean
from observations.records import MemoryKind, StatedBy, Status

log = logging.getLogger(__name__)

# Who reads, and how many rows each gets. A read whose rows reach somebody names one of these in its Use rows.
CALL_SITES: Final[Mapping[str, int]] = {
    "is_known": 2,  # is this claim in the store already
    "nearest": 3,  # what a new claim is reconciled with
    "context": 10,  # what a prompt is given
    "search": 5,  # somebody looks: the command, a tool
    "probe": 5,  # how well reading works is measured
}
LONGEST_QUERY: Final = 4_000  # characters; the rest of a longer one is not read
_MOST: Final = 1_000  # rows of one answer
# Rows that a claim is compared with, or that are counted, reach nobody: such a read is no use, and never makes a source
# prunable (R51, I13).
_COMPARING: Final = frozenset({"is_known", "nearest", "probe"})
_SHARING: Final = 20  # rows beside which a row is seen
_SPARE: Final = 10  # further rows read, in case one leaves the reads meanwhile
_POOL: Final = 4  # each way of searching hands in this many times k rows to be ranked together
_WORDY: Final = 1_000  # rows whose share of words is known: one cut off counts as if it held none of them
# What holding all words of the query adds to the cosine. Measured with MiniLM on 667 questions over 1,283 observations
# in five scopes (locomo): recall@5 is 0.637 by meaning alone, 0.611 by words alone, 0.645 by reciprocal ranks, 0.68 so.
_WORDS_COUNT: Final = 0.35
# What a row loses of its score as its strength goes from 1 to 0, where somebody reads. A claim that is compared with
# stored ones is compared by relevance alone: what it repeats or replaces is mostly old. Measured in decision 0010.
_FADES: Final[Mapping[str, float]] = {"context": 0.1, "search": 0.1, "probe": 0.1}
# A row without a vector has to do with a query of whose words it holds this share. Measured in decision 0018.
_RELEVANT_BY_WORDS: Final = 0.35
_FLOOR: Final = 0.05  # strength never counts less: a faded row is ranked lower, never lost


class Why(StrEnum):
    """Why a hit is among the answers."""

    WORDS = "words"
    MEANING = "meaning"
    BOTH = "both"


class Trust(StrEnum):
    """How far a reader may trust a row: by what kind of record it is, never by what its text says (C15)."""

    HIGH = "high"  # verbatim: an episode; no row of an answer is one
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
    score: float  # comparable within one answer only
    cosine: float | None  # to the query; None while the row has no vector
    share: float = 0.0  # of the query's words that it holds, each weighed by how rare it is
    relevant: bool = True  # not below the floor of the embedder's profile (R7)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one read returned, best first. Not `complete` when a part of the search failed: not the same as empty."""

    id: uuid.UUID
    hits: tuple[Hit, ...]
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowed:
    """Which rows a read is narrowed to. A field that is None or "" narrows nothing, and no field asks for rows that
    lack a value: a row without a subject is in no answer about a subject. Every field has to fit.

    Raises ValueError for `as_of` beside `include_history`: one asks for a moment, the other for all of them.
    """

    subject: str = ""  # read as keys are compared
    kind: MemoryKind | None = None
    stated_by: StatedBy | None = None
    said_from: datetime | None = None  # first said then or later
    said_before: datetime | None = None
    as_of: datetime | None = None  # what was believed at that moment, instead of what is current
    include_history: bool = False  # also what was replaced or archived

    def __post_init__(self) -> None:
        if self.as_of is not None and self.include_history:
            raise ValueError("Ask for as_of or for include_history, not for both.")

    @property
    def past(self) -> bool:
        """Whether rows are asked for that are not current."""
        return self.as_of is not None or self.include_history

    def rows(self, *, scope: Scope) -> ObservationQuerySet:
        """The rows of a scope that may be read so: the one place that decides it."""
        rows = Observation.objects.in_scope(scope)
        if self.as_of is not None:
            rows = rows.as_of(self.as_of)
        else:
            rows = rows.with_history() if self.include_history else rows.active()
        if self.subject:
            rows = rows.about(self.subject)
        asked = {
            "kind": self.kind,
            "stated_by": self.stated_by,
            "created_at__gte": self.said_from,
            "created_at__lt": self.said_before,
        }
        return rows.filter(**{name: value for name, value in asked.items() if value is not None})


EVERYTHING: Final = Narrowed()  # that is current


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


def search(
    *,
    scope: Scope,
    query: str,
    k: int,
    call_site: str,
    embedder: Embedder | None = None,
    narrowed: Narrowed = EVERYTHING,
) -> Answer:
    """The k best rows of a scope for a query, by meaning and by words; fewer only where the scope holds fewer.

    Active rows, unless `narrowed` asks for others by name. A row is found by its words at once and by its meaning once
    its vector is there. Writes one Use row per hit, unless the rows are only compared with a claim or counted. Raises
    ValueError for an unknown call site, and nothing else.
    """
    answer = look(scope=scope, query=query, k=k, call_site=call_site, embedder=embedder, narrowed=narrowed)
    note_uses(scope=scope, answer=answer, call_site=call_site, ids=[hit.id for hit in answer.hits])
    return answer


def look(
    *,
    scope: Scope,
    query: str,
    k: int,
    call_site: str,
    embedder: Embedder | None = None,
    narrowed: Narrowed = EVERYTHING,
) -> Answer:
    """As `search`, and no Use is written: for a reader that hands out a part of what it finds."""
    if call_site not in CALL_SITES:
        raise ValueError(f"There is no call site {call_site!r}: name one of {', '.join(CALL_SITES)}.")
    text = clean(query)[0][:LONGEST_QUERY].strip()
    k = min(k, _MOST)
    if not text or k < 1:
        return Answer(uuid.uuid4(), (), complete=True)
    asked = _attempt("the embedder", lambda: _asked(text, embedder or current_embedder()))
    fades = _FADES.get(call_site, 0.0)
    hits = _attempt("the store", lambda: _read(scope, text, asked, k, fades, narrowed))
    return Answer(uuid.uuid4(), hits or (), complete=None not in (asked, hits))


def note_uses(*, scope: Scope, answer: Answer, call_site: str, ids: Sequence[int]) -> None:
    """Count what an answer handed out, one insert; a failure is logged and changes nothing. Nothing for call sites that
    only compare or count.
    """
    if ids and call_site not in _COMPARING:
        _attempt("the count of uses", lambda: _note_uses(scope, answer, call_site, ids))


def nearest(
    *, scope: Scope, text: str, vector: np.ndarray[tuple[int], np.dtype[np.float32]] | None, profile: Profile
) -> tuple[Hit, ...]:
    """The active claims of a scope that a new claim is reconciled with, the nearest first; never a summary (R21, R126).

    `vector` None: by words alone. Writes no Use, because nothing is handed out. Raises django.db.Error: who stores what
    it was compared with has to know that it was not. Three queries.
    """
    query = clean(text)[0][:LONGEST_QUERY].strip()
    if not query:
        return ()
    asked = _Asked(str(vector.tolist()), profile) if vector is not None else None
    k = CALL_SITES["nearest"]
    return tuple(hit for hit in _read(scope, query, asked, k + _SPARE, 0.0) if hit.trust is Trust.MEDIUM)[:k]


def sharing(*, scope: Scope, words: str) -> list[int]:
    """The active rows of a scope that share most with some words, the rarest counting most. Raises django.db.Error. One
    query.
    """
    return list(_by_words(scope, words, _SHARING, fades=0.0).shares)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The query's vector as PostgreSQL reads it, and the profile it may be compared under."""

    vector: str
    profile: Profile


def _asked(text: str, embedder: Embedder) -> _Asked:
    [vector] = embedder.embed([text])
    return _Asked(str(vector.tolist()), embedder.profile)


def _read(
    scope: Scope, text: str, asked: _Asked | None, k: int, fades: float, narrowed: Narrowed = EVERYTHING
) -> tuple[Hit, ...]:
    """By words first, because a row that holds them is worth its cosine however far it is. One transaction."""
    pool = max(_POOL * k, 50)
    with transaction.atomic():
        among = None if narrowed == EVERYTHING else _among(scope, narrowed)
        words = _by_words(scope, text, max(pool, _WORDY), fades=fades, among=among)
        meaning = _Meaning({}, {})
        if asked:
            meaning = _by_meaning(scope, asked, pool, fades=fades, also=words.shares, among=among)
        found = _Found(words, meaning, fades, asked.profile if asked else None)
        return _hits(scope, found, k, narrowed)


@dataclass(frozen=True, slots=True)
class _Among:
    """The rows that a read is narrowed to, and the moment it looks from."""

    ids: list[int]
    past: bool  # some may not be current
    now: datetime | None  # None: the database's clock


def _among(scope: Scope, narrowed: Narrowed) -> _Among:
    rows = narrowed.rows(scope=scope).order_by().values_list("pk", flat=True)
    return _Among(list(rows), narrowed.past, narrowed.as_of)


class _Words(NamedTuple):
    """What was found by words, by observation id."""

    shares: Mapping[int, float]  # of the query's words, 0 to 1
    strengths: Mapping[int, float]


class _Meaning(NamedTuple):
    """What was found by meaning, by observation id."""

    cosines: Mapping[int, float]  # of the nearest, and of those found by words
    strengths: Mapping[int, float]  # of the nearest


@dataclass(frozen=True, slots=True)
class _Found:
    """What both ways of searching found."""

    words: _Words
    meaning: _Meaning
    fades: float
    profile: Profile | None = None  # the query's; None: it could not be embedded

    def ranked(self) -> list[tuple[int, float]]:
        """Ids and scores, best first: the cosine, plus the share of words, which changes no order where it is equal.

        A row without a vector counts as near as its words say, so that it is found at once.
        """
        cosines, shares = self.meaning.cosines, self.words.shares
        best = max(cosines.values(), default=1.0)
        scores = {
            pk: self._faded(pk, cosines.get(pk, best * shares.get(pk, 0.0)) + _WORDS_COUNT * shares.get(pk, 0.0))
            for pk in {*cosines, *shares}
        }
        return sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))

    def _faded(self, pk: int, score: float) -> float:
        """The score less what its row has lost; a negative one falls too, so that fading never helps."""
        strength = self.words.strengths.get(pk, self.meaning.strengths.get(pk, 1.0))
        return score - self.fades * (1 - strength) * abs(score)

    def relevant(self, pk: int) -> bool:
        """Whether a row has to do with the query at all, however long ago it was said (R7)."""
        cosine, share = self.meaning.cosines.get(pk), self.words.shares.get(pk, 0.0)
        if cosine is None or self.profile is None:
            return share >= _RELEVANT_BY_WORDS
        return share >= self.profile.relevant_words or cosine + _WORDS_COUNT * share >= self.profile.t_relevant

    def why(self, pk: int) -> Why:
        """Which way a row came."""
        if pk not in self.meaning.strengths:
            return Why.WORDS
        return Why.BOTH if pk in self.words.shares else Why.MEANING


Read = TypeVar("Read")


def _attempt(part: str, read: Callable[[], Read]) -> Read | None:
    """A part of a read, or None when it failed."""
    try:
        return read()
    except Exception as error:  # promise 9: whatever an embedder or a driver raises, the agent that asked goes on
        log.warning("search: %s failed (%s); the answer is incomplete", part, type(error).__name__)
        return None


_STRENGTH: Final = sql.SQL(fading.strength_sql(now="coalesce(%(now)s, now())", floor="%(floor)s"))

# The nearest rows once what has faded is put back. Fading only puts back, so no row farther than the pool's last one,
# faded, can come into the pool: only rows within that reach have their strength looked up, by their primary key.
_NEAREST: Final = """
WITH mine AS MATERIALIZED (
  SELECT observation_id AS id, vector <=> %(vector)s::vector AS distance FROM observations_embedding
  WHERE scope_id = %(scope)s AND profile = %(profile)s AND dimensions = %(dimensions)s AND {rows}
    AND vector IS NOT NULL AND observation_id IS NOT NULL
), reach AS (
  SELECT max(distance + %(fades)s * (1 - strength) * abs(1 - distance)) AS distance
  FROM (SELECT distance, {strength_of_mine} AS strength FROM mine ORDER BY distance LIMIT %(pool)s) closest
), aged AS MATERIALIZED (
  SELECT id, distance, {strength_of_mine} AS strength FROM mine WHERE distance <= (SELECT distance FROM reach)
), nearest AS (
  SELECT id, distance, strength FROM aged
  ORDER BY distance + %(fades)s * (1 - strength) * abs(1 - distance), id LIMIT %(pool)s
)
SELECT id, 1 - distance, strength FROM nearest
UNION ALL
SELECT id, 1 - distance, NULL FROM mine WHERE id = ANY (%(also)s) AND id NOT IN (SELECT id FROM nearest)
"""


def _nearest(rows: str) -> sql.Composed:
    strength = sql.SQL("(SELECT {} FROM observations_observation o WHERE o.id = mine.id)").format(_STRENGTH)
    return sql.SQL(_NEAREST).format(strength_of_mine=strength, rows=sql.SQL(rows))


_NEAREST_ACTIVE: Final = _nearest("active")
_NEAREST_AMONG: Final = _nearest("observation_id = ANY (%(among)s)")


def _by_meaning(
    scope: Scope, asked: _Asked, pool: int, *, fades: float, also: Collection[int], among: _Among | None = None
) -> _Meaning:
    """The nearest rows by an exact scan of the scope's vectors: no other scope's size can thin the answer (C14).

    `also` are rows whose cosine is wanted however far they are.
    """
    values: dict[str, _Value] = {
        **_common(scope, pool, fades, among),
        "vector": asked.vector,
        "profile": asked.profile.name,
        "dimensions": asked.profile.dimensions,
        "also": list(also),
    }
    with connection.cursor() as cursor:
        cursor.execute(_NEAREST_AMONG if among else _NEAREST_ACTIVE, values)
        rows = cursor.fetchall()
    strengths = {pk: strength for pk, _, strength in rows if strength is not None}
    return _Meaning({pk: cosine for pk, cosine, _ in rows}, strengths)


# One lookup per word of the query in the index of migration 0004, whose entries carry the scope: a condition on
# scope_id here would tempt the planner to read the scope row by row instead. A row's share is that of the query's words
# it holds, each weighed by its inverse document frequency within the scope: what every row says counts for nothing.
_WORDS: Final = """
WITH words AS MATERIALIZED (
  SELECT lexeme, ('''@ ' || %(scope)s || '''')::tsquery
      && ('''' || replace(replace(lexeme, '\\', '\\\\'), '''', '''''') || '''')::tsquery AS query
  FROM unnest(to_tsvector('english', %(text)s)) LIMIT 32
), found AS MATERIALIZED (
  {found}
), weights AS MATERIALIZED (
  SELECT w.lexeme, ln(1 + (rows.n - coalesce(hits.n, 0) + 0.5) / (coalesce(hits.n, 0) + 0.5)) AS weight
  FROM words w LEFT JOIN (SELECT lexeme, count(*)::float8 AS n FROM found GROUP BY lexeme) hits USING (lexeme)
  CROSS JOIN ({rows}) rows
)
SELECT id, sum(weight) / (SELECT sum(weight) FROM weights) AS share, strength FROM found JOIN weights USING (lexeme)
GROUP BY id, strength ORDER BY sum(weight) * (1 - %(fades)s * (1 - strength)) DESC, id LIMIT %(pool)s
"""
_FOUND: Final = """SELECT w.lexeme, o.id, {strength} AS strength FROM words w JOIN observations_observation o
  ON (to_tsvector('english', o.text) || array_to_tsvector(ARRAY['@ ' || o.scope_id::text])) @@ w.query
  WHERE o.status = 'active'"""
# Of what is not current there is no index: each text is taken apart once, not once per word.
_FOUND_PAST: Final = """SELECT w.lexeme, o.id, o.strength FROM words w JOIN (
    SELECT id, {strength} AS strength,
      to_tsvector('english', text) || array_to_tsvector(ARRAY['@ ' || scope_id::text]) AS words
    FROM observations_observation WHERE id = ANY (%(among)s) OFFSET 0
  ) o ON o.words @@ w.query"""
_COUNT: Final = (
    "SELECT count(*)::float8 AS n FROM observations_observation WHERE scope_id = %(scope)s AND status = 'active'"
)
_COUNT_AMONG: Final = "SELECT cardinality(%(among)s::bigint[])::float8 AS n"


def _words(found: str, rows: str) -> sql.Composed:
    return sql.SQL(_WORDS).format(found=sql.SQL(found).format(strength=_STRENGTH), rows=sql.SQL(rows))


_WORDS_ACTIVE: Final = _words(_FOUND, _COUNT)
_WORDS_AMONG: Final = _words(_FOUND + " AND o.id = ANY (%(among)s)", _COUNT_AMONG)
_WORDS_PAST: Final = _words(_FOUND_PAST, _COUNT_AMONG)


_Value = str | int | float | datetime | list[int] | None


def _common(scope: Scope, pool: int, fades: float, among: _Among | None) -> dict[str, _Value]:
    """What both ways of searching are told."""
    return {
        "scope": scope.pk,
        "pool": pool,
        "fades": fades,
        "floor": _FLOOR,
        "now": among.now if among else None,
        "among": among.ids if among else [],
    }


def _by_words(scope: Scope, text: str, pool: int, *, fades: float, among: _Among | None = None) -> _Words:
    """Rows that hold words of the query, and what share of them, by weight: 0 to 1."""
    query = _WORDS_ACTIVE
    if among:
        query = _WORDS_PAST if among.past else _WORDS_AMONG
    with connection.cursor() as cursor:
        cursor.execute(query, {**_common(scope, pool, fades, among), "text": text})
        rows = cursor.fetchall()
    return _Words({pk: share for pk, share, _ in rows}, {pk: strength for pk, _, strength in rows})


def _hits(scope: Scope, found: _Found, k: int, narrowed: Narrowed) -> tuple[Hit, ...]:
    ranked = found.ranked()[: k + _SPARE]
    rows = narrowed.rows(scope=scope).in_bulk([pk for pk, _ in ranked])
    return tuple(_hit(rows[pk], score, found) for pk, score in ranked if pk in rows)[:k]


def trust_of(row: Observation) -> Trust:
    """How far a row may be trusted, by what kind of record it is."""
    return Trust.LOW if row.derivation == "compact" else Trust.MEDIUM


def _hit(row: Observation, score: float, found: _Found) -> Hit:
    return Hit(
        id=row.pk,
        external_id=row.external_id,
        text=row.text or "",
        why=found.why(row.pk),
        trust=trust_of(row),
        status=Status(row.status),
        score=score,
        cosine=found.meaning.cosines.get(row.pk),
        share=found.words.shares.get(row.pk, 0.0),
        relevant=found.relevant(row.pk),
    )


def _note_uses(scope: Scope, answer: Answer, call_site: str, ids: Sequence[int]) -> None:
    """One insert: who was handed out by which answer (R51). Telemetry; without it the read stands all the same."""
    with transaction.atomic():  # a savepoint within somebody's transaction, which a failure must not spoil
        Use.objects.bulk_create(
            Use(scope=scope, observation_id=pk, call_site=call_site, answer=answer.id) for pk in ids
        )
