"""Rows that are derived, moved, restored and erased: what operations do. Set-based, one query each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import connection

from observations.models import Embedding, Episode, Scope, database_now
from observations.records import Claim, EvidenceRef, Status, WrittenBy
from observations.store.drafting import EvidenceDraft, evidence_row, observation_row
from observations.store.inserting import insert_evidence, insert_observations
from observations.store.scopes import lock_scope
from observations.store.vectors import embed_later


@dataclass(frozen=True, slots=True)
class Prior:
    """How one row stood before an operation, for undo: restored, never guessed."""

    id: int
    status: Status
    superseded_by_id: int | None
    valid_from: datetime | None
    valid_to: datetime | None


@dataclass(frozen=True, slots=True)
class Derived:
    """A derived row to be written: the claim, where it comes from and what made it (R49)."""

    claim: Claim
    sources: tuple[int, ...]  # observation ids, or episode ids with `of_episodes`: whose evidence it takes over
    derivation: str  # merge, supersede, ...
    operation: str  # "op_…#generation"
    named: tuple[int, ...] = ()  # what its lineage names, where that is not the sources
    chain: int = 0
    uses_inherited: int = 0
    same_text_as: int | None = None  # a source whose vector is this row's too
    at: datetime | None = None  # derived_at; None: the database's clock
    of_episodes: bool = False  # every source is one witness: its own uri and root
    quotes: Mapping[int, tuple[int, int]] = field(default_factory=dict)  # episode -> start and end of the words it gave


def write_derived(*, scope: Scope, derived: Derived) -> int:
    """Write a derived row with the union of its sources' evidence (R96), its vector and its lineage; returns its id.
    Four queries.
    """
    now = derived.at or database_now()
    row = observation_row(derived.claim, written_by=WrittenBy.CONSOLIDATION, now=now)
    row.derivation, row.derived_at, row.produced_by = derived.derivation, now, derived.operation
    row.chain, row.uses_inherited = derived.chain, derived.uses_inherited
    [pk] = insert_observations(scope_id=scope.pk, rows=[row], evidence={})
    if derived.of_episodes:
        _cite_episodes(scope, pk, derived)
    else:
        copy_evidence(scope_id=scope.pk, into=pk, sources=derived.sources)
    if derived.same_text_as is None:
        refs = [evidence_row(ref) for ref in derived.claim.evidence]
        insert_evidence(scope_id=scope.pk, rows={pk: refs}, unless_there=True)
        embed_later(scope, [pk])
    elif not _copy_embedding(scope_id=scope.pk, into=pk, source=derived.same_text_as):
        embed_later(scope, [pk])  # the source has none yet, and its own embedding will not reach this row
    _descend(scope_id=scope.pk, derived_id=pk, derived=derived, at=now)
    return pk


def _descend(*, scope_id: int, derived_id: int, derived: Derived, at: datetime) -> None:
    """Write a derived row's lineage, an edge per source, or per row named instead, in their order. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO observations_lineage (scope_id, derived_id, source_observation_id, source_episode_id,"
            " derivation, derived_at, operation, imported)"
            " SELECT %(scope)s, %(derived)s, CASE WHEN NOT %(of_episodes)s THEN s.id END,"
            " CASE WHEN %(of_episodes)s THEN s.id END, %(derivation)s, %(at)s, %(operation)s, false"
            " FROM unnest(%(sources)s::bigint[]) WITH ORDINALITY AS s (id, place) ORDER BY s.place",
            {
                "scope": scope_id,
                "derived": derived_id,
                "of_episodes": derived.of_episodes,
                "derivation": derived.derivation,
                "at": at,
                "operation": derived.operation,
                "sources": list(derived.named or derived.sources),
            },
        )


def _cite_episodes(scope: Scope, derived_id: int, derived: Derived) -> None:
    """Episodes as evidence, with the words they gave; two turns of one source are one piece. Two queries."""
    rows: dict[str, EvidenceDraft] = {}
    for turn in Episode.objects.filter(scope=scope, pk__in=derived.sources).order_by("pk"):
        start, end = derived.quotes.get(turn.pk, (None, None))
        ref = EvidenceRef(
            source_uri=turn.source_uri,
            root_source=turn.root_source,
            quote=(turn.text or "")[start:end] if start is not None else "",
            quote_start=start,
        )
        row = evidence_row(ref, episode_id=turn.pk)
        rows.setdefault(row.source_uri, row)
    insert_evidence(scope_id=scope.pk, rows={derived_id: list(rows.values())})


def move(*, scope_id: int, ids: Sequence[int], to: Status, successor: int | None = None) -> int:
    """Move rows to a status under one successor, each one version up; returns how many moved. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE observations_observation SET status = %s, superseded_by_id = %s, version = version + 1"
            " WHERE scope_id = %s AND id = ANY (%s) AND status <> %s",
            [to, successor, scope_id, list(ids), to],
        )
        moved: int = cursor.rowcount
        return moved


def restore(*, scope_id: int, priors: Sequence[Prior]) -> int:
    """Put rows back as they stood, each one version up; returns how many moved. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE observations_observation o SET status = p.status, superseded_by_id = p.successor,"
            " valid_from = p.valid_from, valid_to = p.valid_to, version = o.version + 1"
            " FROM unnest(%s::bigint[], %s::text[], %s::bigint[], %s::timestamptz[], %s::timestamptz[])"
            " AS p (id, status, successor, valid_from, valid_to)"
            " WHERE o.scope_id = %s AND o.id = p.id",
            [
                [prior.id for prior in priors],
                [str(prior.status) for prior in priors],
                [prior.superseded_by_id for prior in priors],
                [prior.valid_from for prior in priors],
                [prior.valid_to for prior in priors],
                scope_id,
            ],
        )
        moved: int = cursor.rowcount
        return moved


def move_episodes(*, scope_id: int, ids: Sequence[int], to: Status) -> int:
    """Archive episodes or bring them back, each one version up; their text stays as it is. Returns how many moved.
    One query.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE observations_episode SET status = %s, version = version + 1"
            " WHERE scope_id = %s AND id = ANY (%s) AND status <> %s",
            [to, scope_id, list(ids), to],
        )
        moved: int = cursor.rowcount
        return moved


def set_validity(*, scope_id: int, periods: Mapping[int, tuple[datetime | None, datetime | None]]) -> list[int]:
    """Give rows their periods of validity, each that changes one version up (a reviewer's "both true, in turn").

    Returns the ids that changed. One query.
    """
    rows = [(pk, start, end) for pk, (start, end) in sorted(periods.items())]
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE observations_observation o SET valid_from = p.start, valid_to = p.stop, version = o.version + 1"
            " FROM unnest(%s::bigint[], %s::timestamptz[], %s::timestamptz[]) AS p (id, start, stop)"
            " WHERE o.scope_id = %s AND o.id = p.id AND (o.valid_from, o.valid_to) IS DISTINCT FROM (p.start, p.stop)"
            " RETURNING o.id",
            [[row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows], scope_id],
        )
        return [int(pk) for (pk,) in cursor.fetchall()]


def erase(*, scope_id: int, ids: Sequence[int], by: str, reason: str, request: str) -> int:
    """Erase texts, keys, quotes and vectors for good, leaving shells and tombstones; returns how many rows were erased.

    Raises django.db.DatabaseError (PA004) for a user's own words without a forget request (I12).
    """
    lock_scope(scope_id=scope_id, exclusive=True, cause=request)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT palimpsest_erase_observations(%s, %s, %s, %s, %s)", [scope_id, list(ids), by, reason, request]
        )
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def copy_evidence(*, scope_id: int, into: int, sources: Sequence[int]) -> None:
    """Give a row the evidence of others too, each source once (R15, R96). One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO observations_evidence"
            " (scope_id, observation_id, episode_id, source_uri, root_source, quote, quote_start)"
            " SELECT DISTINCT ON (source_uri)"
            " scope_id, %s::bigint, episode_id, source_uri, root_source, quote, quote_start"
            " FROM observations_evidence WHERE scope_id = %s AND observation_id = ANY (%s) ORDER BY source_uri, id"
            " ON CONFLICT (scope_id, observation_id, source_uri) DO NOTHING",
            [into, scope_id, list(sources)],
        )


def ask_for_vectors(*, scope: Scope, ids: Sequence[int]) -> None:
    """Ask for the vectors of rows that have none: what left the reads before it was embedded was passed over. One or
    two queries.
    """
    there = Embedding.objects.filter(scope=scope, observation_id__in=list(ids), vector__isnull=False)
    missing = sorted(set(ids) - set(there.values_list("observation_id", flat=True)))
    if missing:
        embed_later(scope, missing)


def _copy_embedding(*, scope_id: int, into: int, source: int) -> int:
    """How many vectors, one per profile, a row took over from another. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO observations_embedding (scope_id, observation_id, profile, dimensions, vector, bands, active)"
            " SELECT scope_id, %s::bigint, profile, dimensions, vector, bands, true"
            " FROM observations_embedding WHERE scope_id = %s AND observation_id = %s AND vector IS NOT NULL",
            [into, scope_id, source],
        )
        copied: int = cursor.rowcount
        return copied
