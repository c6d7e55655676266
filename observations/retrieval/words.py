"""Finding by words: what share of the query's words each row holds, and whose subject the query names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from django.db import connection
from psycopg import sql

from observations.models import Scope
from observations.retrieval.narrowing import Among
from observations.retrieval.overlay import PLUS, Overlay
from observations.retrieval.values import AGED, AGED_TYPE, NOW, Numbers, Value, common, one_row, rows_of, strengths


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """Rows of a scope, ascending by id, and what each has of the query: all that a read is among, those without any of
    its words too; where it is not `whole`, only those that hold one.
    """

    ids: Numbers
    strengths: Numbers
    shares: Numbers  # of the query's words, 0 to 1
    named: Numbers  # how much of its subject the query names, 0 to 1, the less the more rows bear the name
    whole: bool = True

    def best(self, count: int, *, fades: float = 0.0) -> Numbers:
        """The ids of the `count` that have most of the query, best first; none without any of it."""
        scores = (self.shares + self.named) * (1 - fades * (1 - self.strengths))
        order = np.argsort(-scores, kind="stable")[:count]
        return self.ids[order[self.shares[order] > 0]]


_NONE: Final = np.empty(0)
NOTHING: Final = Words(np.empty(0, np.int64), _NONE, _NONE, _NONE, whole=False)

# The codes of a row's words (migration 0019) are read whole, of all rows in one statement, and compared by numpy: one
# lookup per word in an index comes to the same rows again for each word, which takes PostgreSQL longer than to read
# them once. A row of more words than LONG brings those that are asked for alone.
_LONG: Final = 512 * 8  # bytes
_MOST: Final = 32  # words of a query that are looked up
_LONGEST: Final = 2_000  # bytes of a word
_LEXEMES: Final = sql.SQL(
    """SELECT lexeme, hashtextextended(lexeme, 0) & -2 AS code FROM unnest(to_tsvector('english', %(text)s))
  WHERE octet_length(lexeme) <= {} LIMIT {}"""
).format(sql.Literal(_LONGEST), sql.Literal(_MOST))
_SCAN: Final = """
WITH asked AS MATERIALIZED (SELECT coalesce(array_agg(code), '{{}}') AS codes FROM ({lexemes}) lexemes)
SELECT {now}, (SELECT string_agg(int8send(code), '') FROM asked, unnest(codes) code), {total},
  string_agg(int8send(id) || {aged} || int4send(octet_length(held) / 8) || int2send(subject_words), ''),
  string_agg(held, '')
FROM (
  SELECT id, created_at, half_life_days, subject_words, CASE WHEN octet_length(words) > {long}
    THEN palimpsest_word_codes_held(words, (SELECT codes FROM asked)) ELSE words END AS held
  FROM {rows}
) read
"""
_TYPE: Final = np.dtype([("id", ">i8"), *AGED_TYPE, ("words", ">i4"), ("subject_words", ">i2")])
MOST_READ = 60_000  # rows of a scope that are read whole: more would be a burden on whoever asks
_STORED: Final = sql.SQL("(SELECT * FROM observations_observation WHERE scope_id = %(scope)s AND {} {}) stored")
_PLUS: Final = sql.SQL(
    """(SELECT id, created_at, half_life_days, words, subject_words FROM {}
    UNION ALL SELECT id, created_at, half_life_days, palimpsest_word_codes(text, subject, predicate, object),
      palimpsest_subject_words(subject) FROM {}) laid"""
)
# In a large scope, rows that hold a word of the query, by the index of migration 0014, whose entries carry the scope: a
# condition on scope_id would tempt the planner to read the scope row by row instead.
_BY_INDEX: Final = sql.SQL(
    """observations_observation
  WHERE palimpsest_words(scope_id, text, subject, predicate, object) @@ %(query)s::tsquery AND status = 'active'"""
)
_ALL: Final = sql.SQL("count(*)")
_LIMIT: Final = sql.SQL("LIMIT %(most)s + 1")
_COUNT: Final = sql.SQL(
    "(SELECT count(*) FROM observations_observation WHERE scope_id = %(scope)s AND status = 'active')"
)


def _scan(rows: sql.Composable, total: sql.Composable) -> sql.Composed:
    long = sql.Literal(_LONG)
    return sql.SQL(_SCAN).format(lexemes=_LEXEMES, now=NOW, aged=AGED, long=long, rows=rows, total=total)


def _of(among: Among | None, overlay: Overlay | None) -> sql.Composed:
    stored = _STORED.format(rows_of(among, overlay)[0], sql.SQL("") if among or overlay else _LIMIT)
    return _scan(_PLUS.format(stored, PLUS) if overlay else stored, _ALL)


def by_words(scope: Scope, text: str, *, among: Among | None = None, overlay: Overlay | None = None) -> Words:
    """What each row has of a query in its text or key; in a large scope that is read as a whole, by an index.

    Raises django.db.Error. One query, three where the index is asked.
    """
    alone = among is None and overlay is None
    if not (alone and scope.index_profile):
        words = _read(_of(among, overlay), common(scope, among, overlay) | {"text": text, "most": MOST_READ})
        if not alone or len(words.ids) <= MOST_READ:
            return words
    return _by_index(scope, text)


def _by_index(scope: Scope, text: str) -> Words:
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("SELECT lexeme FROM ({}) lexemes").format(_LEXEMES), {"text": text})
        words = " | ".join(_quoted(lexeme) for (lexeme,) in cursor.fetchall())
    if not words:
        return NOTHING
    query = f"{_quoted(f'@ {scope.pk}')} & ({words})"
    return replace(_read(_scan(_BY_INDEX, _COUNT), common(scope, None) | {"text": text, "query": query}), whole=False)


def _quoted(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"


def _read(statement: sql.Composed, values: Mapping[str, Value]) -> Words:
    now, asked, total, packed, held = one_row(statement, values)
    rows = np.frombuffer(packed or b"", dtype=_TYPE)
    codes, words = (np.frombuffer(part or b"", dtype=">i8").astype(np.int64) for part in (asked, held))
    shares, named = _counted(rows, words, codes, total)
    order = np.argsort(rows["id"])
    aged = strengths(rows, now)
    return Words(rows["id"][order].astype(np.int64), aged[order], shares[order], named[order])


def _counted(rows: Numbers, words: Numbers, asked: Numbers, total: int) -> tuple[Numbers, Numbers]:
    """What share of the query each row holds, and how much of its subject the query names.

    Each word is weighed by its inverse document frequency within the scope: what every row says counts for nothing. A
    row is named by the share of its subject's words that the query holds, times the square of how rare the rarest of
    them is: a speaker of half the rows is no subject among them.
    """
    shares, rarest, told = np.zeros((3, len(rows)))
    ends, bare = np.cumsum(rows["words"]), words & -2
    places = [np.flatnonzero(bare == code) for code in asked]
    held = np.array([len(at) for at in places])
    weights = np.log1p((total - held + 0.5) / (held + 0.5))
    rarity = weights / np.log1p((max(total, 1) - 0.5) / 1.5)
    for at, weight, rare in zip(places, weights / (weights.sum() or 1), rarity, strict=True):
        row, in_subject = np.searchsorted(ends, at, side="right"), words[at] & 1 == 1
        shares[row] += weight  # a row has each word once
        named = row[in_subject]
        rarest[named] = np.maximum(rarest[named], rare)
        told[named] += 1
    return shares, rarest**2 * told / np.maximum(rows["subject_words"], 1)
