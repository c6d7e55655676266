"""Finding by words: what share of the query's words each row holds, and whose subject the query names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from django.db import connection
from psycopg import sql

from observations.models import Scope
from observations.retrieval.narrowing import Among
from observations.retrieval.overlay import PLUS, Overlay
from observations.retrieval.values import AGED_TYPE, NOW, ROWS, Numbers, Value, common, one_row, strengths, text_of


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
# them once. They stand in an index by scope, which a search reads instead of the table; a row of more words than an
# entry of an index takes brings those that are asked for alone.
_LONG: Final = 200  # as the indexes of migration 0019 have it
_MOST: Final = 32  # words of a query that are looked up
_LONGEST: Final = 2_000  # bytes of a word
_LEXEMES: Final = sql.SQL(
    """SELECT lexeme, hashtextextended(lexeme, 0) & -2 AS code FROM unnest(to_tsvector('english', %(text)s))
  WHERE octet_length(lexeme) <= {} LIMIT {}"""
).format(sql.Literal(_LONGEST), sql.Literal(_MOST))
_SCAN: Final = """
WITH asked AS MATERIALIZED (SELECT coalesce(array_agg(code), '{{}}') AS codes FROM ({lexemes}) lexemes) {rows}
SELECT {now}, (SELECT string_agg(int8send(code), '') FROM asked, unnest(codes) code), {total}, short.*, long.*
FROM (
  SELECT string_agg(words_head, ''), string_agg(words, '') FROM (
    SELECT words_head, words FROM {source} octet_length(words) <= {long} {limit}) rows
) short, (
  SELECT string_agg(words_head, ''), string_agg(int4send(octet_length(held) / 8), ''), string_agg(held, '') FROM (
    SELECT words_head, palimpsest_word_codes_held(words, (SELECT codes FROM asked)) AS held
    FROM {source} octet_length(words) > {long} {limit} OFFSET 0) rows
) long
"""
# As palimpsest_words_head packs it: when a row was first said, in microseconds, and its half-life in days, 0 for none.
_HEAD: Final = np.dtype([("id", ">i8"), *AGED_TYPE, ("words", ">i4"), ("subject_words", ">i2")])
MOST_READ = 60_000  # rows of a scope that are read whole: more would be a burden on whoever asks
_STORED: Final = sql.SQL("observations_observation WHERE scope_id = %(scope)s AND {} AND")
_LAID: Final = sql.SQL(", laid AS MATERIALIZED ({})")
_OVERLAID: Final = sql.SQL(
    """SELECT words_head, words FROM {} true
    UNION ALL SELECT palimpsest_words_head(id, created_at, half_life_days, codes, subject), codes
      FROM {}, LATERAL palimpsest_word_codes(text, subject, predicate, object) codes"""
)
# In a large scope, rows that hold a word of the query, by the index of migration 0014, whose entries carry the scope: a
# condition on scope_id would tempt the planner to read the scope row by row instead.
_BY_INDEX: Final = sql.SQL(
    """SELECT words_head, words FROM observations_observation
  WHERE palimpsest_words(scope_id, text, subject, predicate, object) @@ %(query)s::tsquery AND status = 'active'"""
)
_COUNT: Final = sql.SQL(
    "(SELECT count(*) FROM observations_observation WHERE scope_id = %(scope)s AND status = 'active')"
)
_NOTHING: Final = sql.SQL("")


def _scan(source: sql.Composable, *, rows: sql.Composable = _NOTHING, limit: sql.Composable = _NOTHING) -> str:
    parts = {"lexemes": _LEXEMES, "now": NOW, "long": sql.Literal(_LONG * 8)}
    total = _COUNT if rows is _BY_INDEX else sql.SQL("NULL")
    laid = _LAID.format(rows) if rows is not _NOTHING else rows
    return text_of(sql.SQL(_SCAN).format(source=source, rows=laid, limit=limit, total=total, **parts))


_ACTIVE, _AMONG, _STAYING = (_STORED.format(rows) for rows, _ in ROWS)
_READ: Final = _scan(_ACTIVE, limit=sql.SQL("LIMIT %(most)s + 1"))
_READ_AMONG: Final = _scan(_AMONG)
_READ_OVERLAID: Final = _scan(sql.SQL("laid WHERE"), rows=_OVERLAID.format(_STAYING, PLUS))
_READ_BY_INDEX: Final = _scan(sql.SQL("laid WHERE"), rows=_BY_INDEX)


def by_words(scope: Scope, text: str, *, among: Among | None = None, overlay: Overlay | None = None) -> Words:
    """What each row has of a query in its text or key; in a large scope that is read as a whole, by an index.

    Raises django.db.Error. One query, three where the index is asked.
    """
    alone = among is None and overlay is None
    if not (alone and scope.index_profile):
        statement = _READ_AMONG if among else _READ_OVERLAID if overlay else _READ
        words = _read(statement, common(scope, among, overlay) | {"text": text, "most": MOST_READ})
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
    return replace(_read(_READ_BY_INDEX, common(scope, None) | {"text": text, "query": query}), whole=False)


def _quoted(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"


def _read(statement: str, values: Mapping[str, Value]) -> Words:
    now, asked, total, heads, words, long_heads, long_held, held = one_row(statement, values)
    rows = np.frombuffer((heads or b"") + (long_heads or b""), dtype=_HEAD)
    ids, count = rows["id"].astype(np.int64), rows["words"].astype(np.int64)
    if long_held:  # of the last rows, which are long, only what was asked for is here
        held_of_long = np.frombuffer(long_held, dtype=">i4")
        count[-len(held_of_long) :] = held_of_long
    ends, codes = np.cumsum(count), _codes(words, held)
    bare = codes & -2
    held_by = []
    for code in _codes(asked):
        at = np.flatnonzero(bare == code)
        held_by.append((np.searchsorted(ends, at, side="right"), codes[at] & 1 == 1))
    shares, named = _counted(held_by, rows["subject_words"], len(ids) if total is None else total)
    order = np.argsort(ids)
    return Words(ids[order], strengths(rows, now)[order], shares[order], named[order])


def _codes(*packed: bytes | None) -> Numbers:
    return np.frombuffer(b"".join(part or b"" for part in packed), dtype=">i8").astype(np.int64)


def _counted(held_by: Sequence[tuple[Numbers, Numbers]], subject_words: Numbers, total: int) -> tuple[Numbers, Numbers]:
    """What share of the query each row holds, and how much of its subject the query names, from the rows that hold each
    of its words, once each, and which of them hold it in their subject.

    Each word is weighed by its inverse document frequency within the scope: what every row says counts for nothing. A
    row is named by the share of its subject's words that the query holds, times the square of how rare the rarest of
    them is: a speaker of half the rows is no subject among them.
    """
    shares, rarest, told = np.zeros((3, len(subject_words)))
    held = np.array([len(rows) for rows, _ in held_by])
    weights = np.log1p((total - held + 0.5) / (held + 0.5))
    rarity = weights / np.log1p((max(total, 1) - 0.5) / 1.5)
    for (rows, in_subject), weight, rare in zip(held_by, weights / (weights.sum() or 1), rarity, strict=True):
        shares[rows] += weight
        named = rows[in_subject]
        rarest[named] = np.maximum(rarest[named], rare)
        told[named] += 1
    return shares, rarest**2 * told / np.maximum(subject_words, 1)
