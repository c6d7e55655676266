"""What planning reads of one scope: columns by binary COPY, then only the rows that the rules have to judge (DESIGN 8).

Called inside the planner's read-only repeatable-read transaction; nothing here writes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

import numpy as np
from django.db import connection
from django.db.models import Count, Q
from psycopg import sql

from consolidation.candidates import Columns
from consolidation.policy import Policy
from consolidation.prune import Spent
from observations.embedding import Profile
from observations.minhash import BANDS
from observations.models import Evidence, Observation, Use
from observations.records import Record, Status

_HEADER: Final = 19  # bytes before the first row: signature, flags, no extension
_TRAILER: Final = 2  # bytes after the last one
_FLUSH: Final = 32 << 20  # bytes of COPY data turned into arrays at a time
_CHUNK: Final = 5_000  # rows of one ORM query


class UnreadableCopy(RuntimeError):
    """PostgreSQL's binary COPY does not have the rows that were asked for."""


def columns(*, scope_id: int, profile: Profile) -> Columns:
    """The active rows of a scope as arrays, with their vectors of one profile. Four queries, of which two are COPY.

    Keys come from the rows and vectors from the embeddings, each with its id, because COPY keeps no order; a row
    without a vector yet has zeros.
    """
    keys = _keys(scope_id)
    n = len(keys)
    vectors = np.zeros((n, profile.dimensions), np.float32)
    bands = np.zeros((n, BANDS), np.int64)
    has_vector = np.zeros(n, np.bool_)
    ids = keys["id"]
    for block in _embeddings(scope_id, profile):
        at = np.searchsorted(ids, block["id"])
        found = np.flatnonzero((at < n) & (ids[np.minimum(at, n - 1)] == block["id"]))
        vectors[at[found]] = block["vector"][found]
        bands[at[found]] = block["bands"][found]
        has_vector[at[found]] = True
    _normalise(vectors, has_vector)
    return Columns(
        ids=ids.copy(),
        text_key=keys["text"].copy(),
        subject_key=keys["subject"].copy(),
        sp_key=keys["sp"].copy(),
        spo_key=keys["spo"].copy(),
        bands=bands,
        vectors=vectors,
        has_vector=has_vector,
    )


def _keys(scope_id: int) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    query = sql.SQL(
        "COPY (SELECT id, text_key, subject_key, sp_key, spo_key FROM observations_observation"
        " WHERE scope_id = {scope} AND status = 'active') TO STDOUT (FORMAT binary)"
    ).format(scope=sql.Literal(scope_id))
    layout = [(name, np.dtype(np.int64), ()) for name in ("id", "text", "subject", "sp", "spo")]
    blocks = list(_copied(query, layout))
    keys = np.concatenate(blocks) if blocks else np.empty(0, [(name, np.int64) for name, _, _ in layout])
    return keys[np.argsort(keys["id"], kind="stable")]


def _embeddings(scope_id: int, profile: Profile) -> Iterator[np.ndarray[tuple[int], np.dtype[np.void]]]:
    query = sql.SQL(
        "COPY (SELECT observation_id, CASE WHEN length(bands) = {width} THEN bands ELSE {none} END, vector"
        " FROM observations_embedding WHERE scope_id = {scope} AND profile = {profile} AND active"
        " AND observation_id IS NOT NULL AND vector IS NOT NULL AND dimensions = {dimensions})"
        " TO STDOUT (FORMAT binary)"
    ).format(
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


def _copied(query: sql.Composed, layout: Layout) -> Iterator[np.ndarray[tuple[int], np.dtype[np.void]]]:
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


def _native(
    rows: np.ndarray[tuple[int], np.dtype[np.void]], layout: Layout
) -> np.ndarray[tuple[int], np.dtype[np.void]]:
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


def _normalise(
    vectors: np.ndarray[tuple[int, int], np.dtype[np.float32]], has_vector: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> None:
    """Bring vectors of an endpoint that does not do it to length 1; a vector of zeros is none."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    has_vector &= lengths > 0
    off = np.flatnonzero(has_vector & (np.abs(lengths - 1) > 1e-3))
    vectors[off] /= lengths[off, None]


# --- the rows that have to be judged ---------------------------------------------------------------------------------


def records(*, scope_id: int, ids: Iterable[int], status: Status = Status.ACTIVE) -> list[Record]:
    """The rows of these ids that have a status, as the rules see them, by id. Three queries per 5,000 ids."""
    found: list[Record] = []
    ordered = iter(sorted(set(ids)))
    while part := list(islice(ordered, _CHUNK)):
        roots, used = _roots(scope_id, part), _uses(scope_id, part)
        rows = Observation.objects.filter(scope_id=scope_id, pk__in=part, status=status).order_by("pk")
        found += [row.record(roots=roots[row.pk], uses=used[row.pk]) for row in rows]
    return found


def _roots(scope_id: int, ids: Sequence[int]) -> Mapping[int, frozenset[str]]:
    roots: defaultdict[int, frozenset[str]] = defaultdict(frozenset)
    rows = Evidence.objects.filter(scope_id=scope_id, observation_id__in=ids)
    for pk, root in rows.values_list("observation_id", "root_source"):
        roots[pk] |= {root}
    return roots


def _uses(scope_id: int, ids: Sequence[int]) -> Counter[int]:
    rows = Use.objects.filter(scope_id=scope_id, observation_id__in=ids)
    return Counter(dict(rows.values_list("observation_id").annotate(n=Count("id")).order_by()))


@dataclass(frozen=True, slots=True)
class Prunable:
    """What the rules of pruning look at."""

    aged: list[Record]  # active rows past some retention rule
    spent: list[Spent]  # derived rows in use, with their archived sources
    protected: frozenset[int]  # rows that carry a user's word further down their lineage


def prunable(*, scope_id: int, policy: Policy, now: datetime) -> Prunable:
    """The rows of a scope that the pruning rules have to judge. Two queries when there are none."""
    past = Q()
    for rule in policy.retention:
        past |= Q(stated_by=rule.stated_by, created_at__lt=now - timedelta(days=rule.older_than_days))
    aged: list[int] = []
    if past:
        rows = Observation.objects.active().filter(past, scope_id=scope_id)
        aged = list(rows.values_list("pk", flat=True))
    sources = _archived_sources(scope_id)
    spent = _spent(scope_id, sources)
    protected = _protected(scope_id) if aged or spent else frozenset[int]()
    return Prunable(aged=records(scope_id=scope_id, ids=aged), spent=spent, protected=protected)


def _archived_sources(scope_id: int) -> Mapping[int, list[int]]:
    """Per active derived row that was used since it was derived: its archived sources (R51, I13)."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT l.derived_id, s.id FROM observations_lineage l"
            " JOIN observations_observation d ON d.id = l.derived_id AND d.scope_id = l.scope_id"
            " AND d.status = 'active'"
            " JOIN observations_observation s ON s.id = l.source_observation_id AND s.scope_id = l.scope_id"
            " AND s.status = 'archived' AND s.superseded_by_id = l.derived_id"
            " WHERE l.scope_id = %s AND EXISTS (SELECT 1 FROM observations_use u WHERE u.scope_id = l.scope_id"
            " AND u.observation_id = l.derived_id AND u.used_at >= l.derived_at) ORDER BY 1, 2",
            [scope_id],
        )
        for derived, source in cursor.fetchall():
            found[derived].append(source)
    return found


def _spent(scope_id: int, sources: Mapping[int, list[int]]) -> list[Spent]:
    if not sources:
        return []
    derived = records(scope_id=scope_id, ids=sources)
    every = [source for rows in sources.values() for source in rows]
    archived = {row.id: row for row in records(scope_id=scope_id, ids=every, status=Status.ARCHIVED)}
    used = _uses(scope_id, sorted(sources))
    return [
        Spent(
            derived=row,
            sources=tuple(archived[source] for source in sources[row.id] if source in archived),
            uses=used[row.id],
        )
        for row in derived
    ]


def _protected(scope_id: int) -> frozenset[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH RECURSIVE carries(id) AS ("
            " SELECT l.derived_id FROM observations_lineage l JOIN observations_observation s"
            " ON s.id = l.source_observation_id AND s.scope_id = l.scope_id"
            " WHERE l.scope_id = %(scope)s AND s.stated_by = 'user'"
            " UNION SELECT l.derived_id FROM observations_lineage l JOIN carries c ON c.id = l.source_observation_id"
            " WHERE l.scope_id = %(scope)s) SELECT id FROM carries",
            {"scope": scope_id},
        )
        return frozenset(pk for (pk,) in cursor.fetchall())
