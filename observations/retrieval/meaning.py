"""Finding by meaning: the nearest rows of one scope, exactly, or in a large scope by its index (see large.py)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

import numpy as np
from django.db import connection
from psycopg import sql

from observations.models import Scope
from observations.retrieval import large
from observations.retrieval.asking import Asked
from observations.retrieval.narrowing import Among
from observations.retrieval.overlay import BY_AGE, BY_ID, PLUS, Overlay
from observations.retrieval.values import STRENGTH, Value, common


class Meaning(NamedTuple):
    """What was found by meaning, by observation id."""

    cosines: Mapping[int, float]  # of the nearest, and of those found by words
    strengths: Mapping[int, float]  # of the nearest


# The nearest rows once what has faded is put back. Fading only puts back, so no row farther than the pool's last one,
# faded, can come into the pool: only rows within that reach have their strength looked up, by their primary key.
_NEAREST: Final = """
WITH mine AS MATERIALIZED (
  SELECT observation_id AS id, vector <=> %(vector)s::vector AS distance FROM observations_embedding
  WHERE scope_id = %(scope)s AND profile = %(profile)s AND dimensions = %(dimensions)s
    AND vector IS NOT NULL AND observation_id IS NOT NULL AND {rows}
), reach AS (
  SELECT max(distance + %(fades)s * (1 - strength) * abs(1 - distance)) AS distance
  FROM (SELECT distance, {strength_of_mine} AS strength FROM mine ORDER BY distance LIMIT %(pool)s) closest
), aged AS MATERIALIZED (
  SELECT id, distance, {strength_of_mine} AS strength FROM mine WHERE distance <= (SELECT distance FROM reach)
), nearest AS (
  SELECT id, distance, strength FROM aged
  ORDER BY distance + %(fades)s * (1 - strength) * abs(1 - distance), {order} LIMIT %(pool)s
)
SELECT string_agg(int8send(id) || float8send(1 - distance) || float8send(coalesce(strength, -1)), '') FROM (
  SELECT id, distance, strength FROM nearest
  UNION ALL
  SELECT id, distance, NULL FROM mine WHERE id = ANY (%(also)s::bigint[]) AND id NOT IN (SELECT id FROM nearest)
) found
"""
_PACKED: Final = np.dtype([("id", ">i8"), ("cosine", ">f8"), ("strength", ">f8")])  # a strength of -1: not asked for


_STORED: Final = sql.SQL("observations_observation")
_OVERLAID: Final = sql.SQL(
    """(SELECT id, created_at, half_life_days FROM {}
    UNION ALL SELECT id, created_at, half_life_days FROM {})"""
).format(_STORED, PLUS)
_PLUS_NEAR: Final = sql.SQL(
    """active AND observation_id <> ALL (%(without)s::bigint[])
  UNION ALL SELECT id, vector::vector <=> %(vector)s::vector FROM {} WHERE dimensions = %(dimensions)s"""
).format(PLUS)


def _nearest(rows: sql.Composable, observations: sql.Composable = _STORED, order: sql.SQL = BY_ID) -> sql.Composed:
    strength = sql.SQL("(SELECT {} FROM {} o WHERE o.id = mine.id)").format(STRENGTH, observations)
    return sql.SQL(_NEAREST).format(strength_of_mine=strength, rows=rows, order=order)


_NEAREST_ACTIVE: Final = _nearest(sql.SQL("active"))
_NEAREST_AMONG: Final = _nearest(sql.SQL("observation_id = ANY (%(among)s::bigint[])"))
_NEAREST_OVERLAID: Final = _nearest(_PLUS_NEAR, _OVERLAID, BY_AGE)


def by_meaning(
    scope: Scope,
    asked: Asked,
    pool: int,
    *,
    fades: float,
    also: Collection[int],
    among: Among | None = None,
    overlay: Overlay | None = None,
) -> Meaning:
    """The nearest rows: by an exact scan of the scope's vectors, so that no other scope's size can thin the answer
    (C14); by its index where one was made, and exactly after all where that hands over too few.

    `also` are rows whose cosine is wanted however far they are. Raises django.db.Error. One query, with an index up to
    four.
    """
    values: dict[str, Value] = {
        **common(scope, pool, fades, among, overlay),
        "vector": asked.vector,
        "profile": asked.profile.name,
        "dimensions": asked.profile.dimensions,
        "also": f"{{{','.join(map(str, also))}}}",  # a list of a thousand is quoted one by one
    }
    if among is None and overlay is None and large.indexed(scope=scope, profile=asked.profile):
        found = _by_index(scope, asked, pool, values)
        if len(found.strengths) >= pool:
            return found
    query = _NEAREST_OVERLAID if overlay else _NEAREST_ACTIVE
    return _meaning(_NEAREST_AMONG if among else query, values)


def _by_index(scope: Scope, asked: Asked, pool: int, values: Mapping[str, Value]) -> Meaning:
    """What the index of a large scope hands over, ranked by the exact distance."""
    near = large.candidates(scope_id=scope.pk, profile=asked.profile, wanted=pool)
    rows = sql.SQL("active AND observation_id = ANY (ARRAY({}) || %(also)s::bigint[])").format(near)
    with connection.cursor() as cursor:
        cursor.execute(large.TUNE)
        found = _meaning(_nearest(rows), values)
        cursor.execute(large.TUNE_BACK)
    return found


def _meaning(query: sql.Composed, values: Mapping[str, Value]) -> Meaning:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        [(packed,)] = cursor.fetchall()
    found = np.frombuffer(packed or b"", dtype=_PACKED)
    near = found[found["strength"] >= 0]
    return Meaning(
        dict(zip(found["id"].tolist(), found["cosine"].tolist(), strict=True)),
        dict(zip(near["id"].tolist(), near["strength"].tolist(), strict=True)),
    )
