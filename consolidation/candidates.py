"""Candidate pairs of one scope: columns in, pairs out (DESIGN 8). Nothing here ever sees two scopes (C6, R90, R106).

Rows meet in blocks: same normalised text, same subject and predicate, same subject, one of 16 MinHash bands, and cells
of vector neighbours. A block holds 2 to 200 rows; a larger one is split into overlapping ones of similar rows, never
dropped (R39, R41). Up to EXACT_ROWS rows the neighbours are the whole scope in one exact pass of matrix products, which
finds every pair at or over the threshold; the keys then say why a pair met and find the rows that have no vector.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntFlag
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from observations.minhash import BANDS as BANDS
from observations.minhash import minhash_bands as minhash_bands

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float32]
Flags: TypeAlias = npt.NDArray[np.bool_]

EXACT_ROWS: Final = 20_000  # up to here a scope's neighbours are found exactly
_CELL_ROWS: Final = 1_000  # rows to a pivot in a larger scope; each row is in two cells
_SMALL_BLOCK: Final = 16  # rows; up to here pairs are looked up one by one
_SEED: Final = 20_200_101  # every drawing of rows or directions is the same in every run
_CHUNK: Final = 1_024  # rows of one matrix product: 1,024 x 20,000 cosines are 80 MB
_AUDITED: Final = 64  # rows of one matrix product of the audit
_SLACK: Final = 1e-3  # products are taken this much lower; the kept cosine is computed again, pair by pair
_NEAREST: Final = 64  # neighbours kept of one row: beyond that its copies, the text key finds them


class Met(IntFlag):
    """The keys on which a pair agrees; `0` never leaves this module."""

    TEXT = 1  # identical normalised text
    SUBJECT_PREDICATE = 2  # a claim about the same thing: contradictions meet here, at any cosine
    SUBJECT = 4
    BAND = 8  # at least one MinHash band: much the same shingles
    NEIGHBOUR = 16  # cosine at or over t_candidate

    @property
    def names(self) -> tuple[str, ...]:
        """The keys as words, for an operation's signals."""
        return tuple(key.name.lower() for key in Met if key in self and key.name)


@dataclass(frozen=True, slots=True)
class Columns:
    """The rows of ONE scope, n of them, as arrays. Keys are 64-bit hashes of normalised values; 0 means absent."""

    ids: Ints  # (n,)
    text_key: Ints  # (n,)
    subject_key: Ints  # (n,)
    sp_key: Ints  # (n,) subject and predicate
    spo_key: Ints  # (n,) subject, predicate and object
    bands: Ints  # (n, 16); a row of zeros where none were made
    vectors: Floats  # (n, dimensions), L2-normalised; a row of zeros where there is none
    has_vector: Flags  # (n,)

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Pairs:
    """The pairs that survived, each once: indices into the columns, of `i` the lower id."""

    i: Ints
    j: Ints
    cosine: Floats  # nan where a row has no vector
    met: Ints  # bits of Met
    compared: int = 0  # pairs whose cosine or key was looked at
    blocks: int = 0  # blocks of 2 rows or more, all keys
    split: int = 0  # of them, oversize ones that were split

    def __len__(self) -> int:
        return len(self.i)


class Link(NamedTuple):
    """One pair as the rules read it: row ids, a < b."""

    a: int
    b: int
    cosine: float  # nan where a row has no vector
    met: Met


def links(*, columns: Columns, pairs: Pairs) -> list[Link]:
    """The pairs by row id, in ascending order of (a, b)."""
    a, b = columns.ids[pairs.i], columns.ids[pairs.j]
    low, high = np.minimum(a, b), np.maximum(a, b)
    order = np.lexsort((high, low))
    rows = zip(
        low[order].tolist(), high[order].tolist(), pairs.cosine[order].tolist(), pairs.met[order].tolist(), strict=True
    )
    return [Link(a, b, cosine, Met(met)) for a, b, cosine, met in rows]


# --- blocks ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of one key: `rows` holds the row numbers of all blocks one after the other, `sizes` how many each has."""

    rows: Ints
    sizes: Ints
    split: int  # oversize blocks that were split into several of these

    def __iter__(self) -> Iterator[Ints]:
        return iter(np.split(self.rows, np.cumsum(self.sizes)[:-1])) if len(self.sizes) else iter(())


def blocks(*, keys: Ints, columns: Columns, cap: int = 200) -> Blocks:
    """The blocks of rows that share a key other than 0, each of 2 to `cap` rows; larger ones are split (R39, R41)."""
    order = np.argsort(keys, kind="stable")
    order = order[keys[order] != 0]
    if len(order) < 2:
        return Blocks(order[:0], order[:0], 0)
    starts = np.flatnonzero(np.r_[True, np.diff(keys[order]) != 0])
    sizes = np.diff(np.r_[starts, len(order)])
    fits = (sizes >= 2) & (sizes <= cap)
    parts = [order[np.repeat(fits, sizes)]]
    counts = [sizes[fits]]
    oversize = np.flatnonzero(sizes > cap)
    for block in oversize.tolist():
        pieces = split(rows=order[starts[block] : starts[block] + sizes[block]], columns=columns, cap=cap)
        parts += pieces
        counts.append(np.array([len(piece) for piece in pieces], np.int64))
    return Blocks(np.concatenate(parts), np.concatenate(counts), len(oversize))


def split(*, rows: Ints, columns: Columns, cap: int) -> list[Ints]:
    """An oversize block as overlapping blocks of at most `cap` rows; rows with similar vectors stay together.

    Each row goes to the cells of its two nearest pivots. What pivots cannot tell apart (copies, rows without a vector)
    is cut into windows that overlap by half. Every row is in at least one block.
    """
    if len(rows) <= cap:
        return [rows]
    told = rows[columns.has_vector[rows]]
    pieces = _windows(rows[~columns.has_vector[rows]], cap)
    for part in _cells(told, columns.vectors, size=EXACT_ROWS // 2, choices=1):
        for cell in _cells(part, columns.vectors, size=max(2, cap // 4), choices=2):
            pieces += _windows(_alike(cell, columns.vectors) if len(cell) > cap else cell, cap)
    return pieces


def _windows(rows: Ints, cap: int) -> list[Ints]:
    """The rows in their order, cut into windows of `cap` that overlap by half; none for no rows."""
    if len(rows) <= cap:
        return [rows] if len(rows) else []
    step = max(1, cap // 2)
    return [rows[at : at + cap] for at in range(0, len(rows) - cap + step, step)]


def _alike(rows: Ints, vectors: Floats) -> Ints:
    """The rows along one fixed direction: near rows are near each other in it, equal ones keep their order."""
    direction = np.random.default_rng(_SEED).standard_normal(size=vectors.shape[1], dtype=np.float32)
    ordered: Ints = rows[np.argsort(np.round(vectors[rows] @ direction, 4), kind="stable")]
    return ordered


def _cells(rows: Ints, vectors: Floats, *, size: int, choices: int) -> list[Ints]:
    """Cells of about `size` times `choices` rows around pivots drawn among the rows; each row in its nearest ones."""
    count = min(-(-len(rows) // size), len(rows))
    if count <= choices:
        return [rows] if len(rows) else []
    drawn = np.random.default_rng(_SEED).choice(len(rows), size=count, replace=False)
    pivots = vectors[rows[np.sort(drawn)]]
    nearest = np.empty((len(rows), choices), np.int64)
    for at in range(0, len(rows), _CHUNK):
        cosines = np.round(vectors[rows[at : at + _CHUNK]] @ pivots.T, 4)
        for choice in range(choices):
            best = cosines.argmax(axis=1)
            nearest[at : at + _CHUNK, choice] = best
            cosines[np.arange(len(best)), best] = -2
    members = np.repeat(np.arange(len(rows)), choices)[np.argsort(nearest, axis=None, kind="stable")]
    ends = np.cumsum(np.bincount(nearest.ravel(), minlength=count))[:-1]
    return [rows[cell] for cell in np.split(members, ends) if len(cell)]


def _pairs_of(found: Blocks, n: int) -> Ints:
    """Every pair of every block as the 64-bit key low * n + high; a pair met twice is there twice."""
    rows, ends = found.rows, np.repeat(np.cumsum(found.sizes), found.sizes)
    at: Ints = np.arange(len(rows))
    keys: list[Ints] = []
    offset = 1
    while len(at := at[at + offset < ends[at]]):
        low, high = np.minimum(rows[at], rows[at + offset]), np.maximum(rows[at], rows[at + offset])
        keys.append(low * n + high)
        offset += 1
    return np.concatenate(keys) if keys else np.empty(0, np.int64)


# --- pairs -----------------------------------------------------------------------------------------------------------


def pairs(columns: Columns, *, t_candidate: float, block_cap: int = 200) -> Pairs:
    """The pairs of one scope worth judging, whatever order the rows came in.

    Kept: cosine at or over `t_candidate`; identical normalised text; and, at any cosine, claims about one subject and
    predicate with different objects, as a chain through the values of the key (merge.py groups them by key again).
    """
    order = np.argsort(columns.ids, kind="stable")
    ordered = _in_order(columns, order)
    n = len(ordered)
    texts = blocks(keys=ordered.text_key, columns=ordered, cap=block_cap)
    chained = _value_chain(ordered)
    near, compared, found, cut = _neighbours(ordered, t_candidate, block_cap)
    keys = np.unique(np.concatenate([_pairs_of(texts, n), chained, near]))
    i, j = (keys // n, keys % n) if n else (keys, keys)
    cosine = _cosines(ordered, i, j)
    met = _met(ordered, i, j, cosine, t_candidate)
    kept = ((met & int(Met.TEXT | Met.NEIGHBOUR)) != 0) | np.isin(keys, chained)
    return Pairs(
        i=order[i[kept]],
        j=order[j[kept]],
        cosine=cosine[kept],
        met=met[kept],
        compared=compared + len(keys) - len(near),
        blocks=len(texts.sizes) + found,
        split=texts.split + cut,
    )


def _in_order(columns: Columns, order: Ints) -> Columns:
    return Columns(
        ids=columns.ids[order],
        text_key=columns.text_key[order],
        subject_key=columns.subject_key[order],
        sp_key=columns.sp_key[order],
        spo_key=columns.spo_key[order],
        bands=columns.bands[order],
        vectors=columns.vectors[order],
        has_vector=columns.has_vector[order],
    )


def contradicting(columns: Columns) -> Ints:
    """Ids, ascending, of every row of a key with two objects or more: at any cosine, in whatever blocks they met (R71).

    The rules see a contradiction whole only when they are given all of these, beside the rows that pairs met.
    """
    ids: Ints = np.sort(columns.ids[_of_several_values(columns)])
    return ids


def _of_several_values(columns: Columns) -> Ints:
    """The rows of keys with two objects or more, ordered by key, then object, then id."""
    order: Ints = np.lexsort((columns.ids, columns.spo_key, columns.sp_key))
    order = order[(columns.sp_key[order] != 0) & (columns.spo_key[order] != 0)]
    if len(order) < 2:
        return order[:0]
    sp, spo = columns.sp_key[order], columns.spo_key[order]
    starts = np.flatnonzero(np.r_[True, np.diff(sp) != 0])
    sizes = np.diff(np.r_[starts, len(order)])
    several = spo[starts] != spo[starts + sizes - 1]  # sorted: the ends differ when any two do
    rows: Ints = order[np.repeat(several, sizes)]
    return rows


def _value_chain(columns: Columns) -> Ints:
    """Each row of a key with several objects, linked to the next one: n - 1 pairs a key, so no key is too large."""
    order = _of_several_values(columns)
    sp = columns.sp_key[order]
    linked = np.flatnonzero(sp[1:] == sp[:-1])
    low, high = np.minimum(order[linked], order[linked + 1]), np.maximum(order[linked], order[linked + 1])
    keys: Ints = low * len(columns) + high
    return keys


def _neighbours(columns: Columns, least: float, cap: int) -> tuple[Ints, int, int, int]:
    """Keys of pairs near `least` or over, pairs compared, blocks, oversize blocks split."""
    rows = np.flatnonzero(columns.has_vector)
    if len(rows) < 2:
        return np.empty(0, np.int64), 0, 0, 0
    if len(rows) <= EXACT_ROWS:
        return _near(columns, rows, least), len(rows) * (len(rows) - 1) // 2, 1, 0
    return _blocked(columns, rows, least, cap)


def _near(columns: Columns, rows: Ints, least: float) -> Ints:
    """Keys of the pairs within ascending `rows` at about `least` or over; of one row, its nearest `_NEAREST`."""
    vectors = columns.vectors[rows]
    keys: list[Ints] = []
    for at in range(0, len(rows), _CHUNK):
        cosines = vectors[at : at + _CHUNK] @ vectors[at:].T
        hits = cosines >= least - _SLACK
        height = len(hits)
        hits[:, :height] &= ~np.tri(height, dtype=np.bool_)  # each pair once: columns right of the diagonal
        crowded = np.flatnonzero(np.count_nonzero(hits, axis=1) > _NEAREST)
        if len(crowded):
            hits[crowded] = _strongest(cosines[crowded], hits[crowded])
        low, high = np.nonzero(hits)
        keys.append(rows[low + at] * len(columns) + rows[high + at])
    return np.concatenate(keys) if keys else np.empty(0, np.int64)


def _strongest(cosines: Floats, hits: Flags) -> Flags:
    """The `_NEAREST` best hits of each row; equal ones by id."""
    ranked = np.argsort(np.where(hits, -np.round(cosines, 4), 2), axis=1, kind="stable")[:, :_NEAREST]
    kept = np.zeros_like(hits)
    np.put_along_axis(kept, ranked, True, axis=1)
    return kept & hits


def _blocked(columns: Columns, rows: Ints, least: float, cap: int) -> tuple[Ints, int, int, int]:
    """A large scope: neighbour cells, subjects and bands; what meets in none of them waits for a later pass (R40)."""
    cells = _cells(rows, columns.vectors, size=_CELL_ROWS, choices=2)
    cells = [part for cell in cells for part in _windows(cell, EXACT_ROWS)]
    found = [_near(columns, cell, least) for cell in cells]
    compared = sum(len(cell) * (len(cell) - 1) // 2 for cell in cells)
    made, cut = len(cells), 0
    for keys in (columns.subject_key, *columns.bands.T):
        block = blocks(keys=np.where(columns.has_vector, keys, 0), columns=columns, cap=cap)
        found.append(_near_in(block, columns, least))
        compared += int((block.sizes * (block.sizes - 1) // 2).sum())
        made, cut = made + len(block.sizes), cut + block.split
    return np.unique(np.concatenate(found)), compared, made, cut


def _near_in(found: Blocks, columns: Columns, least: float) -> Ints:
    """Keys of the pairs at about `least` or over in blocks: small ones all at once, large ones as matrix products."""
    small = found.sizes <= _SMALL_BLOCK
    rows = found.rows[np.repeat(small, found.sizes)]
    keys = np.unique(_pairs_of(Blocks(rows, found.sizes[small], 0), len(columns)))
    near = [keys[_cosines(columns, keys // len(columns), keys % len(columns)) >= least - _SLACK]]
    large = Blocks(found.rows[np.repeat(~small, found.sizes)], found.sizes[~small], 0)
    return np.concatenate([*near, *(_near(columns, np.sort(block), least) for block in large)])


def _cosines(columns: Columns, i: Ints, j: Ints) -> Floats:
    """The cosine of each pair, the same in every run and block; nan where a row has no vector."""
    out = np.full(len(i), np.nan, np.float32)
    both = np.flatnonzero(columns.has_vector[i] & columns.has_vector[j])
    for at in range(0, len(both), 65_536):
        part = both[at : at + 65_536]
        out[part] = np.einsum("ij,ij->i", columns.vectors[i[part]], columns.vectors[j[part]])
    return out


def _met(columns: Columns, i: Ints, j: Ints, cosine: Floats, t_candidate: float) -> Ints:
    band = ((columns.bands[i] == columns.bands[j]) & (columns.bands[i] != 0)).any(axis=1)
    met = np.zeros(len(i), np.int64)
    met[band] |= int(Met.BAND)
    met[cosine >= t_candidate] |= int(Met.NEIGHBOUR)
    for keys, bit in (
        (columns.text_key, Met.TEXT),
        (columns.sp_key, Met.SUBJECT_PREDICATE),
        (columns.subject_key, Met.SUBJECT),
    ):
        met[(keys[i] == keys[j]) & (keys[i] != 0)] |= int(bit)
    return met


# --- what blocking missed --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Missed:
    """A sampled exact audit: `sampled` rows against the whole scope."""

    sampled: int  # rows
    there: int  # pairs at or over the threshold that these rows have
    missed: int  # of them, pairs that blocking did not find
    estimate: float  # pairs missed in the whole scope, extrapolated


def missed(columns: Columns, pairs: Pairs, *, t_merge: float, sample: int = 200, seed: int = 0) -> Missed:
    """How many pairs at or over `t_merge` blocking missed, from `sample` rows compared with every row of the scope.

    Exact when `sample` covers all rows with a vector. A copy beyond a row's nearest `_NEAREST` counts as missed.
    """
    rows = np.flatnonzero(columns.has_vector)
    drawn = np.sort(np.random.default_rng(seed).permutation(rows)[:sample])
    n = len(columns)
    known = np.concatenate([pairs.i * n + pairs.j, pairs.j * n + pairs.i])
    there = found = 0
    for at in range(0, len(drawn), _AUDITED):
        part = drawn[at : at + _AUDITED]
        near = columns.vectors[part] @ columns.vectors.T >= t_merge
        near[np.arange(len(part)), part] = False
        row, other = np.nonzero(near)
        there += len(row)
        found += int(np.isin(part[row] * n + other, known, kind="sort").sum())
    share = len(rows) / len(drawn) if len(drawn) else 0.0
    return Missed(sampled=len(drawn), there=there, missed=there - found, estimate=(there - found) * share / 2)
