"""Finding by words: what share of the query's words each row holds, and whose subject the query names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    its words too; where it is not `whole`, only those that hold one, and where `held` says how many rows hold each of
    its words, not even all of these.
    """

    ids: Numbers
    strengths: Numbers
    shares: Numbers  # of the query's words, 0 to 1
    named: Numbers  # how much of its subject the query names, 0 to 1, the less the more rows bear the name
    whole: bool = True
    held: Mapping[int, int] = field(default_factory=dict)  # by the code of a word
    total: int = 0  # rows of the scope; with `held`

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
    """SELECT lexeme, hashtextextended(lexeme, 0) & -2 AS code FROM unnest(palimpsest_lexemes(%(text)s))
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
_HOLDING: Final = """observations_observation
  WHERE palimpsest_words(scope_id, text, subject, predicate, object) @@ {}::tsquery AND status = 'active'"""
_BY_INDEX: Final = sql.SQL("SELECT words_head, words FROM {} LIMIT %(most)s + 1").format(
    sql.SQL(_HOLDING.format("%(query)s"))
)
_HELD: Final = sql.SQL(
    "SELECT (SELECT count(*) FROM {}) FROM unnest(%s::text[]) WITH ORDINALITY asked (query, place) ORDER BY place"
).format(sql.SQL(_HOLDING.format("query")))
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

    Raises django.db.Error. One query, three where the index is asked, five where more rows hold a word than are read.
    """
    alone = among is None and overlay is None
    if not (alone and scope.index_profile):
        statement = _READ_AMONG if among else _READ_OVERLAID if overlay else _READ
        found = _fetched(statement, common(scope, among, overlay) | {"text": text, "most": MOST_READ})
        if not alone or len(found.heads) <= MOST_READ:
            return _scored(found)
    return _by_index(scope, text)


def beside(words: Words, *, scope: Scope, text: str, ids: Numbers) -> Words:
    """These, and what further rows have of the query, where not all that hold a word of it were read. Raises
    django.db.Error. One query, or none.
    """
    if not words.held:
        return words
    further = Among(np.setdiff1d(ids, words.ids).tolist(), past=False, now=None)
    found = _fetched(_READ_AMONG, common(scope, further) | {"text": text})
    return _joined(words, _scored(found, held=words.held, total=words.total))


def _by_index(scope: Scope, text: str) -> Words:
    """Rows that hold a word of the query. Where those are more than are read whole, the ones of the rarest words, and
    as many of the others.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LEXEMES, {"text": text})
        codes = {_quoted(lexeme): code for lexeme, code in cursor.fetchall()}
    if not codes:
        return NOTHING
    mine = _quoted(f"@ {scope.pk}")
    values = common(scope, None) | {"text": text, "most": MOST_READ}

    def holding(words: Sequence[str]) -> _Fetched:
        return _fetched(_READ_BY_INDEX, values | {"query": f"{mine} & ({' | '.join(words)})"})

    found = holding([*codes])
    if len(found.heads) <= MOST_READ:
        return replace(_scored(found), whole=False)
    with connection.cursor() as cursor:
        cursor.execute(_HELD, [[f"{mine} & {word}" for word in codes]])
        held = {word: int(rows) for word, (rows,) in zip(codes, cursor.fetchall(), strict=True)}
    counted = {codes[word]: min(rows, found.total) for word, rows in held.items()}  # some may be newer than the total
    words = _scored(found, held=counted, total=found.total)
    if rare := _rarest(held):
        words = _joined(words, _scored(holding(rare), held=counted, total=found.total))
    return replace(words, whole=False, held=counted, total=found.total)


def _rarest(held: Mapping[str, int]) -> list[str]:
    """The words that fewest rows hold: so many that no more rows than are read whole hold any of them."""
    rare, rows = [], 0
    for word in sorted(held, key=lambda each: held[each]):
        rows += held[word]
        if rows > MOST_READ:
            break
        rare.append(word)
    return rare


def _joined(words: Words, more: Words) -> Words:
    """Both, each row once."""
    ids, at = np.unique(np.concatenate((words.ids, more.ids)), return_index=True)
    strengths, shares, named = (
        np.concatenate(pair)[at]
        for pair in ((words.strengths, more.strengths), (words.shares, more.shares), (words.named, more.named))
    )
    return replace(words, ids=ids, strengths=strengths, shares=shares, named=named)


def _quoted(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"


@dataclass(frozen=True, slots=True, eq=False)
class _Fetched:
    """What a statement of `_scan` says: rows, and the codes of their words one after another."""

    now: bytes
    asked: Numbers  # codes of the query's words
    total: int  # rows of the scope, or those that the read is among
    heads: Numbers  # as _HEAD
    ends: Numbers  # of each row's codes
    codes: Numbers


def _fetched(statement: str, values: Mapping[str, Value]) -> _Fetched:
    now, asked, total, heads, words, long_heads, long_held, held = one_row(statement, values)
    rows = np.frombuffer((heads or b"") + (long_heads or b""), dtype=_HEAD)
    count = rows["words"].astype(np.int64)
    if long_held:  # of the last rows, which are long, only what was asked for is here
        held_of_long = np.frombuffer(long_held, dtype=">i4")
        count[-len(held_of_long) :] = held_of_long
    total = len(rows) if total is None else total
    return _Fetched(now, _codes(asked), total, rows, np.cumsum(count), _codes(words, held))


def _codes(*packed: bytes | None) -> Numbers:
    return np.frombuffer(b"".join(part or b"" for part in packed), dtype=">i8").astype(np.int64)


def _scored(found: _Fetched, *, held: Mapping[int, int] | None = None, total: int | None = None) -> Words:
    """`held` and `total`: of the whole scope, where the rows that hold a word are not all here."""
    bare = found.codes & -2
    held_by = []
    for code in found.asked:
        at = np.flatnonzero(bare == code)
        held_by.append((np.searchsorted(found.ends, at, side="right"), found.codes[at] & 1 == 1))
    rows_of = np.array([held[int(code)] for code in found.asked] if held else [len(rows) for rows, _ in held_by])
    total = found.total if total is None else total
    shares, named = _counted(held_by, rows_of, found.heads["subject_words"], total)
    ids = found.heads["id"].astype(np.int64)
    order = np.argsort(ids)
    return Words(ids[order], strengths(found.heads, found.now)[order], shares[order], named[order])


def _counted(
    held_by: Sequence[tuple[Numbers, Numbers]], held: Numbers, subject_words: Numbers, total: int
) -> tuple[Numbers, Numbers]:
    """What share of the query each row holds, and how much of its subject the query names, from the rows that hold each
    of its words, once each, and which of them hold it in their subject; and how many in all hold each.

    Each word is weighed by its inverse document frequency within the scope: what every row says counts for nothing. A
    row is named by the share of its subject's words that the query holds, times the square of how rare the rarest of
    them is: a speaker of half the rows is no subject among them.
    """
    shares, rarest, told = np.zeros((3, len(subject_words)))
    weights = np.log1p((total - held + 0.5) / (held + 0.5))
    rarity = weights / np.log1p((max(total, 1) - 0.5) / 1.5)
    for (rows, in_subject), weight, rare in zip(held_by, weights / (weights.sum() or 1), rarity, strict=True):
        shares[rows] += weight
        named = rows[in_subject]
        rarest[named] = np.maximum(rarest[named], rare)
        told[named] += 1
    return shares, rarest**2 * told / np.maximum(subject_words, 1)
