"""Finding by meaning: how near each row of a scope is, exactly, and in a large scope by its index (large.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from django.db import connection, transaction
from psycopg import sql

from observations.models import Scope
from observations.retrieval import large
from observations.retrieval.asking import Asked
from observations.retrieval.narrowing import Among
from observations.retrieval.overlay import PLUS, Overlay
from observations.retrieval.values import (
    AGED,
    AGED_TYPE,
    NOW,
    ROWS,
    Numbers,
    Value,
    common,
    one_row,
    strengths,
    text_of,
)


@dataclass(frozen=True, slots=True, eq=False)
class Meaning:
    """Rows that have a vector under the query's profile: all that a read is among, or what an index handed over."""

    ids: Numbers
    cosines: Numbers
    strengths: Numbers | None = None  # None: whoever looked for words has them

    def best(self, count: int) -> Numbers:
        """The ids of the `count` nearest, the nearest first."""
        return self.ids[np.lexsort((self.ids, -self.cosines))[:count]]


NOTHING: Final = Meaning(np.empty(0, np.int64), np.empty(0))

_COSINE: Final = sql.SQL("float8send(1 - (vector::vector <=> %(vector)s::vector))")
_SCAN: Final = sql.SQL(
    """SELECT string_agg(packed, '') FROM (
  SELECT int8send(observation_id) || {cosine} AS packed FROM observations_embedding
  WHERE scope_id = %(scope)s AND profile = %(profile)s AND dimensions = %(dimensions)s
    AND vector IS NOT NULL AND observation_id IS NOT NULL AND {rows} {plus}
) read"""
)
_PLUS: Final = sql.SQL(
    "UNION ALL SELECT int8send(id) || {} FROM {} WHERE dimensions = %(dimensions)s AND vector IS NOT NULL"
).format(_COSINE, PLUS)
_READ, _READ_AMONG, _READ_OVERLAID = (
    text_of(_SCAN.format(cosine=_COSINE, rows=rows, plus=plus))
    for (_, rows), plus in zip(ROWS, (sql.SQL(""), sql.SQL(""), _PLUS), strict=True)
)
_TYPE: Final = np.dtype([("id", ">i8"), ("cosine", ">f8")])
_NEAREST: Final = """
WITH near AS MATERIALIZED ({candidates})
SELECT {now}, (SELECT count(*) FROM near), string_agg(int8send(o.id) || {cosine} || {aged}, '')
FROM observations_embedding e JOIN observations_observation o ON o.id = e.observation_id
WHERE e.scope_id = %(scope)s AND profile = %(profile)s AND dimensions = %(dimensions)s AND active
  AND o.status = 'active' AND vector IS NOT NULL
  AND e.observation_id = ANY (ARRAY(SELECT observation_id FROM near) || %(also)s::bigint[])
"""
_NEAREST_TYPE: Final = np.dtype([("id", ">i8"), ("cosine", ">f8"), *AGED_TYPE])


def by_meaning(scope: Scope, asked: Asked, *, among: Among | None = None, overlay: Overlay | None = None) -> Meaning:
    """How near each row is: by an exact scan of the scope's vectors, so that no other scope's size can thin the answer
    (C14). Raises django.db.Error. One query.
    """
    statement = _READ_AMONG if among else _READ_OVERLAID if overlay else _READ
    [packed] = one_row(statement, common(scope, among, overlay) | _vector(asked))
    found = np.frombuffer(packed or b"", dtype=_TYPE)
    return Meaning(found["id"].astype(np.int64), _numbers(found["cosine"]))


def nearest(scope: Scope, asked: Asked, *, wanted: int, also: Numbers) -> Meaning:
    """The nearest rows of a large scope, as its index hands them over, or a scan where it has none or hands over fewer
    than are wanted; and the rows `also`, whose cosine counts however far they are. All cosines are exact.

    Raises django.db.Error. One query, with an index up to four.
    """
    values = common(scope, None) | _vector(asked) | {"also": also.tolist()}
    if large.indexed(scope=scope, profile=asked.profile):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(large.TUNE)
            near, handed_over = _nearest(scope, asked, wanted, values, by_index=True)
            cursor.execute(large.TUNE_BACK)
        if handed_over >= wanted:
            return near
    return _nearest(scope, asked, wanted, values, by_index=False)[0]


def _nearest(
    scope: Scope, asked: Asked, wanted: int, values: dict[str, Value], *, by_index: bool
) -> tuple[Meaning, int]:
    candidates = large.candidates(scope_id=scope.pk, profile=asked.profile, wanted=wanted, by_index=by_index)
    statement = sql.SQL(_NEAREST).format(candidates=candidates, now=NOW, cosine=_COSINE, aged=AGED)
    now, handed_over, packed = one_row(statement, values)
    found = np.frombuffer(packed or b"", dtype=_NEAREST_TYPE)
    return Meaning(found["id"].astype(np.int64), _numbers(found["cosine"]), strengths(found, now)), handed_over


def _vector(asked: Asked) -> dict[str, Value]:
    return {"vector": asked.vector, "profile": asked.profile.name, "dimensions": asked.profile.dimensions}


def _numbers(cosines: Numbers) -> Numbers:
    """The cosine of a vector without a direction is no number, and such a row is as near as any."""
    return np.where(np.isnan(cosines), 0.0, cosines)
