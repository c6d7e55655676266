"""Finding by words: rows of one scope that hold words of the query, what share of them, and whose subject it names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from django.db import connection
from psycopg import sql

from observations.models import Scope
from observations.retrieval.narrowing import Among
from observations.retrieval.overlay import PLUS, Overlay
from observations.retrieval.values import STRENGTH, Value, common

Numbers = np.ndarray[tuple[int], np.dtype[Any]]


class Words(NamedTuple):
    """What was found by words, by observation id."""

    shares: Mapping[int, float]  # of the query's words, 0 to 1
    strengths: Mapping[int, float]
    named: Mapping[int, float]  # how much of its subject the query names, 0 to 1, the less the more rows bear the name


# One lookup per word of the query in the index of migration 0014, whose entries carry the scope: a condition on
# scope_id here would tempt the planner to read the scope row by row instead, and so does a word that it does not see
# when it plans. The rows of each word come packed and are joined by numpy: PostgreSQL takes as long again for it.
_PACKED: Final = np.dtype([("id", ">i8"), ("strength", ">f8")])
_PACK: Final = sql.SQL("string_agg(int8send(o.id) || float8send({}), '')").format(STRENGTH)
_FOUND: Final = sql.SQL(
    """SELECT {word}, {pack} FROM observations_observation o
  WHERE palimpsest_words(o.scope_id, o.text, o.subject, o.predicate, o.object) @@ {query}::tsquery
    AND o.status = 'active' {rows}"""
)
# Of what has no index each text is taken apart once, not once per word.
_FOUND_IN: Final = sql.SQL(
    """SELECT w.word, {pack} FROM unnest(%(queries)s::text[]::tsquery[]) WITH ORDINALITY AS w (query, word) JOIN (
    SELECT id, created_at, half_life_days, palimpsest_words(%(scope)s, text, subject, predicate, object) AS words
    FROM {rows} OFFSET 0
  ) o ON o.words @@ w.query GROUP BY w.word"""
)
_STORED: Final = sql.SQL("observations_observation")
_OVERLAID: Final = sql.SQL("(SELECT id, subject FROM {} UNION ALL SELECT id, subject FROM {}) laid").format(
    _STORED, PLUS
)
_FOUND_PAST: Final = _FOUND_IN.format(
    pack=_PACK,
    rows=sql.SQL("observations_observation WHERE scope_id = %(scope)s AND id = ANY (%(among)s::bigint[])"),
)
_FOUND_PLUS: Final = _FOUND_IN.format(pack=_PACK, rows=PLUS)
# How many rows the read is among, as what the word 0 finds.
_COUNT: Final = sql.SQL(
    "SELECT count(*) AS n FROM observations_observation WHERE scope_id = %(scope)s AND status = 'active'"
)
_COUNT_AMONG: Final = sql.SQL("SELECT cardinality(%(among)s::bigint[])::bigint AS n")
_COUNT_OVERLAID: Final = sql.SQL(
    "SELECT n + cardinality(%(plus_id)s::bigint[]) AS n FROM ({} AND id <> ALL (%(without)s::bigint[])) stored"
).format(_COUNT)
_NAMES: Final = """
SELECT tsvector_to_array(to_tsvector('english', subject)), ids FROM (
  SELECT subject, string_agg(int8send(id), '') AS ids FROM {observations}
  WHERE id = ANY (%(rare)s::bigint[]) AND subject <> '' GROUP BY subject
) bearers
"""
_RARE: Final = 0.3  # a name that is less rare would count next to nothing, and many rows would be looked at for it
_MOST: Final = 32  # words of a query that are looked up
_LONGEST: Final = 2_000  # bytes of a word


def _found(count: int, rows: str) -> sql.Composed:
    """One lookup for each of so many words."""
    return sql.SQL(" UNION ALL ").join(
        _FOUND.format(word=sql.Literal(n), pack=_PACK, query=sql.Placeholder(f"query{n}"), rows=sql.SQL(rows))
        for n in range(1, count + 1)
    )


def _statement(count: int, among: Among | None, overlay: Overlay | None) -> sql.Composed:
    rows: sql.Composable = _COUNT
    found: sql.Composable = _found(count, "")
    if among:
        rows = _COUNT_AMONG
        found = _FOUND_PAST if among.past else _found(count, "AND o.id = ANY (%(among)s::bigint[])")
    elif overlay:
        rows, stored = _COUNT_OVERLAID, _found(count, "AND o.id <> ALL (%(without)s::bigint[])")
        found = sql.SQL("{} UNION ALL {}").format(stored, _FOUND_PLUS)
    return sql.SQL("SELECT 0, int8send(n) FROM ({}) counted UNION ALL {}").format(rows, found)


def _lexemes(text: str) -> list[str]:
    """The words of a query, as the index has them. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT lexeme FROM unnest(to_tsvector('english', %s)) WHERE octet_length(lexeme) <= %s LIMIT %s",
            [text, _LONGEST, _MOST],
        )
        return [lexeme for (lexeme,) in cursor.fetchall()]


def _quoted(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """The rows that hold words of the query, ascending by id, and what each word counts."""

    ids: Numbers
    strengths: Numbers
    shares: Numbers
    rare: Numbers  # ids of those that hold a rare word
    rarity: Mapping[str, float]  # of each word: 1 where one row holds it, 0 where every row does


def _counted(lexemes: Sequence[str], rows: Sequence[tuple[int, bytes | None]]) -> _Held:
    """A row's share is that of the query's words it holds, in its text or its key, each weighed by its inverse document
    frequency within the scope: what every row says counts for nothing.
    """
    packed: defaultdict[int, bytes] = defaultdict(bytes)
    for word, part in rows:
        packed[word] += part or b""
    total = int.from_bytes(packed[0], "big")
    each = [np.frombuffer(packed[word], dtype=_PACKED) for word, _ in enumerate(lexemes, start=1)]
    held = np.array([len(found) for found in each])
    weights = np.log1p((total - held + 0.5) / (held + 0.5))
    rarity = weights / np.log1p((max(total, 1) - 0.5) / 1.5)
    found = np.concatenate(each)
    ids, first, places = np.unique(found["id"].astype(np.int64), return_index=True, return_inverse=True)
    shares = np.bincount(places, weights=np.repeat(weights / weights.sum(), held), minlength=len(ids))
    rare = np.unique(places[np.repeat(rarity > _RARE, held)])
    strengths = found["strength"][first].astype(float)
    return _Held(ids, strengths, shares, ids[rare], dict(zip(lexemes, rarity.tolist(), strict=True)))


def _named(held: _Held, values: Mapping[str, Value], overlay: Overlay | None) -> Numbers:
    """A row is named by the share of its subject's words that the query holds, times the square of how rare the rarest
    of them is: a speaker of half the rows is no subject among them. One query, or none.
    """
    named = np.zeros(len(held.ids))
    if not len(held.rare):
        return named
    statement = sql.SQL(_NAMES).format(observations=_OVERLAID if overlay else _STORED)
    with connection.cursor() as cursor:
        cursor.execute(statement, {**values, "rare": f"{{{','.join(map(str, held.rare.tolist()))}}}"})
        bearers = cursor.fetchall()
    for words, packed in bearers:
        told = [held.rarity[word] for word in words if word in held.rarity]
        if told:
            ids = np.frombuffer(packed, dtype=">i8").astype(np.int64)
            named[np.searchsorted(held.ids, ids)] = max(told) ** 2 * len(told) / len(words)
    return named


def by_words(
    scope: Scope, text: str, pool: int, *, fades: float, among: Among | None = None, overlay: Overlay | None = None
) -> Words:
    """Rows that hold words of the query in their text or key, best first. Raises django.db.Error. Three queries at
    most.
    """
    lexemes = _lexemes(text)
    if not lexemes:
        return Words({}, {}, {})
    queries = [f"{_quoted(f'@ {scope.pk}')} & {_quoted(lexeme)}" for lexeme in lexemes]
    values = common(scope, pool, fades, among, overlay) | {"queries": queries}
    values |= {f"query{n}": query for n, query in enumerate(queries, start=1)}
    with connection.cursor() as cursor:
        cursor.execute(_statement(len(lexemes), among, overlay), values)
        held = _counted(lexemes, cursor.fetchall())
    named = _named(held, values, overlay)
    scores = (held.shares + named) * (1 - fades * (1 - held.strengths))
    best = np.lexsort((np.abs(held.ids), held.ids < 0, -scores))[:pool]  # as overlay.BY_AGE orders
    ids = held.ids[best].tolist()
    return Words(
        dict(zip(ids, held.shares[best].tolist(), strict=True)),
        dict(zip(ids, held.strengths[best].tolist(), strict=True)),
        {pk: share for pk, share in zip(ids, named[best].tolist(), strict=True) if share},
    )
