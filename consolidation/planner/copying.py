"""The rows and vectors of one scope as arrays, by binary COPY: planning works on columns, not on objects (DESIGN 8).

Called inside the planner's read-only repeatable-read transaction; nothing here writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from django.db import connection
from psycopg import sql

from consolidation.candidates import Columns, Flags, Floats, Ints
from observations.embedding import Profile
from observations.minhash import BANDS
from observations.models import GivenKey, Observation
from observations.normalise import key64, key_part

Keys: TypeAlias = npt.NDArray[np.void]
_HEADER: Final = 19  # bytes before the first row: signature, flags, no extension
_TRAILER: Final = 2  # bytes after the last one
_FLUSH: Final = 32 << 20  # bytes of COPY data turned into arrays at a time


class UnreadableCopy(RuntimeError):
    """PostgreSQL's binary COPY does not have the rows that were asked for."""


def columns(*, scope_id: int, profile: Profile, aliases: Mapping[str, str] | None = None) -> Columns:
    """The active rows of a scope as arrays, with their vectors of one profile. Four queries, of which two are COPY; one
    or two more where keys were given or subjects have other names.

    Keys come from the rows, from what a model gave beside them and through the aliases (normalised subject -> name);
    vectors from the embeddings, each with its id, because COPY keeps no order. A row without a vector yet has zeros.
    """
    keys = _keys(scope_id)
    _give(keys, scope_id)
    if aliases:
        _rename(keys, scope_id, aliases)
    n = len(keys)
    vectors, bands, has_vector = _vectors(keys["id"], scope_id, profile)
    return Columns(
        ids=keys["id"].copy(),
        text_key=keys["text"].copy(),
        subject_key=keys["subject"].copy(),
        sp_key=keys["sp"].copy(),
        spo_key=keys["spo"].copy(),
        bands=bands.reshape(n, BANDS),
        vectors=vectors,
        has_vector=has_vector,
    )


def episode_vectors(*, scope_id: int, profile: Profile) -> tuple[Ints, Floats]:
    """Ids and unit vectors of the active episodes of a scope that have one, by id. One COPY."""
    found = list(_embeddings(scope_id, profile, of="episode_id"))
    if not found:
        return np.empty(0, np.int64), np.empty((0, profile.dimensions), np.float32)
    rows = np.concatenate(found)
    rows = rows[np.argsort(rows["id"], kind="stable")]
    ids, vectors, has_vector = rows["id"].copy(), rows["vector"].copy(), np.ones(len(rows), np.bool_)
    _normalise(vectors, has_vector)
    return ids[has_vector], vectors[has_vector]


def _vectors(ids: Ints, scope_id: int, profile: Profile) -> tuple[Floats, Ints, Flags]:
    n = len(ids)
    vectors = np.zeros((n, profile.dimensions), np.float32)
    bands = np.zeros((n, BANDS), np.int64)
    has_vector = np.zeros(n, np.bool_)
    for block in _embeddings(scope_id, profile):
        at = np.searchsorted(ids, block["id"])
        found = np.flatnonzero((at < n) & (ids[np.minimum(at, n - 1)] == block["id"]))
        vectors[at[found]] = block["vector"][found]
        bands[at[found]] = block["bands"][found]
        has_vector[at[found]] = True
    _normalise(vectors, has_vector)
    return vectors, bands, has_vector


def _give(keys: Keys, scope_id: int) -> None:
    """Put in the hashes of whole keys where a model gave a part. One query."""
    given = GivenKey.objects.filter(scope_id=scope_id, state=GivenKey.State.GIVEN).order_by("observation_id")
    for pk, *hashes in given.values_list("observation_id", "subject_key", "sp_key", "spo_key").iterator():
        _put(keys, pk, dict(zip(("subject", "sp", "spo"), hashes, strict=True)))


def _rename(keys: Keys, scope_id: int, aliases: Mapping[str, str]) -> None:
    """Hash the keys of rows about a subject that has another name as if they were about that name. Two queries."""
    by_key = {key64(subject): name for subject, name in aliases.items()}
    ids = keys["id"][np.isin(keys["subject"], np.fromiter(by_key, np.int64, len(by_key)))].tolist()
    rows = Observation.objects.filter(scope_id=scope_id, pk__in=ids)
    given = {row.observation_id: row for row in GivenKey.objects.filter(scope_id=scope_id, observation__in=ids)}
    for row in rows:
        subject, predicate, object_ = map(key_part, row.key_with(given.get(row.pk)))
        name = aliases.get(subject, subject)
        hashes = {"subject": key64(name), "sp": key64(name, predicate), "spo": key64(name, predicate, object_)}
        _put(keys, row.pk, hashes)


def _put(keys: Keys, pk: int, hashes: Mapping[str, int]) -> None:
    at = int(np.searchsorted(keys["id"], pk))
    if at < len(keys) and keys["id"][at] == pk:
        for name, value in hashes.items():
            keys[name][at] = value or keys[name][at]


def _keys(scope_id: int) -> Keys:
    query = sql.SQL(
        "COPY (SELECT id, text_key, subject_key, sp_key, spo_key FROM observations_observation"
        " WHERE scope_id = {scope} AND status = 'active') TO STDOUT (FORMAT binary)"
    ).format(scope=sql.Literal(scope_id))
    layout = [(name, np.dtype(np.int64), ()) for name in ("id", "text", "subject", "sp", "spo")]
    blocks = list(_copied(query, layout))
    keys = np.concatenate(blocks) if blocks else np.empty(0, [(name, np.int64) for name, _, _ in layout])
    return keys[np.argsort(keys["id"], kind="stable")]


def _embeddings(scope_id: int, profile: Profile, *, of: str = "observation_id") -> Iterator[Keys]:
    query = sql.SQL(
        "COPY (SELECT {of}, CASE WHEN length(bands) = {width} THEN bands ELSE {none} END, vector"
        " FROM observations_embedding WHERE scope_id = {scope} AND profile = {profile} AND active"
        " AND {of} IS NOT NULL AND vector IS NOT NULL AND dimensions = {dimensions})"
        " TO STDOUT (FORMAT binary)"
    ).format(
        of=sql.Identifier(of),
        width=sql.Literal(BANDS * 8),
        none=sql.Literal(bytes(BANDS * 8)),
        scope=sql.Literal(scope_id),
        profile=sql.Literal(profile.name),
        dimensions=sql.Literal(profile.dimensions),
    )
    yield from _copied(
        query,
        [
            ("id", np.dtype(np.int64), ()),
            ("bands", np.dtype("<i8"), (BANDS,)),  # stored by us as little-endian bytes
            ("vector", np.dtype(np.float32), (profile.dimensions,)),
        ],
    )


Layout = Sequence[tuple[str, "np.dtype[np.generic]", tuple[int, ...]]]


def _copied(query: sql.Composed, layout: Layout) -> Iterator[Keys]:
    """The rows of a binary COPY whose fields have one size, as native record arrays of a few megabytes each.

    A vector's field starts with its dimensions and two unused bytes. Raises UnreadableCopy for a row of another shape.
    """
    wire = _wire(layout)
    rest = b""
    first = True
    for data in _chunks(query):
        data = rest + data
        if first:
            if len(data) < _HEADER:
                rest = data
                continue
            data, first = data[_HEADER:], False
        whole = len(data) // wire.itemsize * wire.itemsize
        rest = data[whole:]
        if whole:
            yield _native(np.frombuffer(data[:whole], wire), layout)
    if len(rest) != _TRAILER or rest != b"\xff\xff":
        raise UnreadableCopy("A binary COPY ended in the middle of a row.")


def _chunks(query: sql.Composed) -> Iterator[bytes]:
    connection.ensure_connection()
    with connection.cursor() as cursor, cursor.copy(query.as_string(connection.connection)) as copy:
        held: list[bytes] = []
        size = 0
        for data in copy:
            held.append(bytes(data))
            size += len(held[-1])
            if size >= _FLUSH:
                yield b"".join(held)
                held, size = [], 0
        yield b"".join(held)


def _wire(layout: Layout) -> np.dtype[np.void]:
    """The layout on the wire: a field count, then per field its length and its bytes, numbers big-endian."""
    fields: list[tuple[str, object] | tuple[str, object, tuple[int, ...]]] = [("fields", ">i2")]
    for name, kind, shape in layout:
        fields.append((f"{name}_length", ">i4"))
        if name == "vector":
            fields += [("dimensions", ">i2"), ("unused", ">i2")]
        fields.append((name, kind if name == "bands" else kind.newbyteorder(">"), shape))
    return np.dtype(fields)


def _native(rows: Keys, layout: Layout) -> Keys:
    expected = [
        int(np.prod(shape, dtype=np.int64)) * kind.itemsize + (4 if name == "vector" else 0)
        for name, kind, shape in layout
    ]
    right = (rows["fields"] == len(layout)).all() and all(
        (rows[f"{name}_length"] == length).all() for (name, _, _), length in zip(layout, expected, strict=True)
    )
    if not right:
        raise UnreadableCopy("A binary COPY holds a row of another shape than its query has.")
    native = np.empty(len(rows), [(name, kind.newbyteorder("="), shape) for name, kind, shape in layout])
    for name, _, _ in layout:
        native[name] = rows[name]
    return native


def _normalise(vectors: Floats, has_vector: Flags) -> None:
    """Bring vectors of an endpoint that does not do it to length 1; a vector of zeros is none."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    has_vector &= lengths > 0
    off = np.flatnonzero(has_vector & (np.abs(lengths - 1) > 1e-3))
    vectors[off] /= lengths[off, None]
