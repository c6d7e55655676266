"""STORE: the only code that changes memory. Every function runs inside the caller's transaction and takes the scope's lock.

Nothing is overwritten: a change is a new row and a move of the old one, which PostgreSQL checks and journals (migrations/0002).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from django.db import connection

from observations import outbox
from observations.models import Embedding, Episode, Evidence, Lineage, Observation, Scope, database_now
from observations.normalise import clean, key_part, normalised
from observations.records import Claim, EvidenceRef, Past, Status, Turn, WrittenBy

if TYPE_CHECKING:
    from observations.embedding import Profile

_LOCK_SPACE = 0x5061 << 40  # our corner of PostgreSQL's 64-bit advisory locks
EMBED = "embed"  # the outbox task that computes missing vectors


class ScopeNameRefused(ValueError):
    """The scope's name is not a path: no empty part, no leading or trailing slash or space, no '*', at most 200 characters."""


class Fate(StrEnum):
    """What became of one thing that was to be written."""

    ADDED = "added"
    KNOWN = "already there"  # same id, same content: nothing to do
    REFUSED = "refused"  # same id, other content


@dataclass(frozen=True, slots=True)
class Written:
    """The fate of one claim or turn. `id` is the stored row's, absent only when refused."""

    fate: Fate
    id: int | None = None
    reason: str = ""
    cleaned: bool = False  # a character no database can hold was replaced (C1)


@dataclass(frozen=True, slots=True)
class Prior:
    """How one row stood before an operation, for undo: restored, never guessed."""

    id: int
    status: Status
    superseded_by_id: int | None
    valid_from: datetime | None
    valid_to: datetime | None


def content_hash(text: str) -> str:
    """sha256 of the text's UTF-8 bytes, hex (I11)."""
    return hashlib.sha256(text.encode()).hexdigest()


def key64(*parts: str) -> int:
    """A signed 64-bit key of already normalised parts, length-prefixed; 0 when any part is empty, and never 0 otherwise."""
    if not all(parts):
        return 0
    blob = "".join(f"{len(part)}:{part}" for part in parts).encode()
    return int.from_bytes(hashlib.blake2b(blob, digest_size=8).digest(), "little", signed=True) or 1


def open_scope(*, name: str) -> Scope:
    """The scope of that name, made when it is new. Raises ScopeNameRefused. One or two queries."""
    parts = name.split("/")
    bad = any(not part.strip() or part != part.strip() for part in (parts[0], parts[-1])) or not all(parts)
    if bad or len(name) > 200 or "*" in name or not name.isprintable():
        raise ScopeNameRefused(
            f"scope name {name[:60]!r} is refused: give a path such as 'team/project', without empty parts or '*'"
        )
    return Scope.objects.get_or_create(name=name)[0]


def lock_scope(*, scope_id: int, exclusive: bool = False, cause: str = "") -> datetime:
    """Take the scope's transaction-level lock: exclusive for apply, undo and erase, shared for every other writer.

    `cause` goes into the journal of the moves this transaction makes. One query; waits for the lock. Returns the database's clock
    as it was when the lock was had.
    """
    take = "pg_advisory_xact_lock" if exclusive else "pg_advisory_xact_lock_shared"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {take}(%s), set_config('palimpsest.cause', %s, true), clock_timestamp()",
            [_LOCK_SPACE + scope_id, cause[:120]],
        )
        row = cursor.fetchone()
    assert row is not None
    moment: datetime = row[2]
    return moment


def lock_rows(*, scope_id: int, ids: Iterable[int]) -> dict[int, Observation]:
    """Observations of one scope, locked in id order (unsorted locks deadlock), by id. One query."""
    rows = Observation.objects.filter(scope_id=scope_id, id__in=list(ids)).order_by("id").select_for_update(of=("self",))
    return {row.pk: row for row in rows}


# --- adding ---------------------------------------------------------------------------------------------------------


def add_observations(
    *, scope: Scope, claims: Sequence[Claim], written_by: WrittenBy, pasts: Sequence[Past] = ()
) -> list[Written]:
    """Store claims, one fate per claim, in order. Idempotent by external id; a claim without one is known by its content.

    `pasts`, one per claim when given, is what an import knows of the rows: what is not active there is born quarantined.
    A constant number of queries however many claims. Raises django.db.IntegrityError when another writer adds the same
    external id at the same moment: run the transaction again, and the row is already there.
    """
    now = lock_scope(scope_id=scope.pk, cause=written_by)
    drafts = [_draft(scope, claim, written_by, now) for claim in claims]
    for draft, past in zip(drafts, pasts, strict=False):
        _take_over(draft, past)
    known = _known(Observation, scope, [row.external_id for row in drafts])
    fresh, fates = _sort(drafts, known)
    Observation.objects.bulk_create(fresh)
    by_external = {row.external_id: row.pk for row in fresh}
    rows = [
        _evidence(scope, by_external[draft.external_id], ref)
        for draft, claim, fate in zip(drafts, claims, fates, strict=True)
        if fate == Fate.ADDED
        for ref in {ref.source_uri: ref for ref in claim.evidence}.values()
    ]
    Evidence.objects.bulk_create(rows)
    if fresh:
        _embed_later(scope, [row.pk for row in fresh])
    return _written(drafts, fates, known | {key: (pk, "") for key, pk in by_external.items()})


def add_episodes(*, scope: Scope, turns: Sequence[Turn]) -> list[Written]:
    """Store turns verbatim, one fate per turn, in order. Idempotent by scope + source uri + content, and by external id."""
    now = lock_scope(scope_id=scope.pk, cause="episodes")
    drafts = [_episode(scope, turn, now) for turn in turns]
    known = _known(Episode, scope, [row.external_id for row in drafts])
    known_content = _known_content(scope, drafts)
    fresh, fates = _sort(drafts, known, known_content)
    Episode.objects.bulk_create(fresh)
    known |= {row.external_id: (row.pk, "") for row in fresh}
    known |= {row.external_id: (known_content[key], "") for row in drafts if (key := _content(row)) in known_content and row.external_id not in known}
    return _written(drafts, fates, known)


def replace(*, scope: Scope, old_id: int, claim: Claim, written_by: WrittenBy, union: bool = True) -> Written:
    """Write a claim that supersedes a current row: the old row keeps its text and names its successor (R12).

    With `union` the new row takes over the old one's evidence (R15, an UPDATE); without, it starts fresh (R16, a DELETE and
    replace). Raises Observation.DoesNotExist when the old row is not current in this scope.
    """
    lock_scope(scope_id=scope.pk, cause=f"{written_by}: replace")
    [written] = add_observations(scope=scope, claims=[claim], written_by=written_by)
    if written.fate != Fate.ADDED or written.id is None:
        return written
    old = Observation.objects.active().in_scope(scope).select_for_update(of=("self",)).get(pk=old_id)
    if union:
        copy_evidence(scope_id=scope.pk, into=written.id, sources=[old.pk])
    move(scope_id=scope.pk, ids=[old.pk], to=Status.SUPERSEDED, successor=written.id)
    return written


def _draft(scope: Scope, claim: Claim, written_by: WrittenBy, now: datetime) -> Observation:
    parts = [clean(part) for part in (claim.text, claim.subject, claim.predicate, claim.object)]
    text, subject, predicate, object_ = (part for part, _ in parts)
    parts += [clean(f"{ref.source_uri}{ref.root_source}{ref.quote}") for ref in claim.evidence]
    cleaned = any(changed for _, changed in parts)
    key = (key_part(subject), key_part(predicate), key_part(object_))
    return Observation(
        scope=scope,
        external_id=claim.external_id or _content_id("obs", text, claim.created_at, *key, *(r.source_uri for r in claim.evidence)),
        text=text,
        content_hash=content_hash(text),
        cleaned=cleaned,
        subject=subject,
        predicate=predicate,
        object=object_,
        text_key=key64(normalised(text)),
        subject_key=key64(key[0]),
        sp_key=key64(*key[:2]),
        spo_key=key64(*key),
        confidence=claim.confidence,
        stated_by=claim.stated_by,
        written_by=written_by,
        created_at=claim.created_at or now,
        valid_from=claim.valid_from,
        valid_to=claim.valid_to,
    )


def _take_over(row: Observation, past: Past) -> None:
    """Put what an import knows of a row into its draft."""
    row.written_by, row.reconciled_at, row.cleaned = past.written_by, past.reconciled_at, row.cleaned or past.cleaned
    row.chain, row.uses_inherited = past.chain, past.uses_inherited
    if past.derivation:
        row.derivation, row.derived_at, row.produced_by = past.derivation, past.derived_at, past.produced_by
    if past.status != Status.ACTIVE:
        row.status = Status.QUARANTINED
    if past.status == Status.ERASED:
        row.content_hash = ""  # what an erased row has, so that its line is known again


def _episode(scope: Scope, turn: Turn, now: datetime) -> Episode:
    fields = (turn.text, turn.speaker, turn.role, turn.session, turn.source_uri, turn.root_source)
    parts = [clean(field) for field in fields]
    text, speaker, role, session, source, root = (part for part, _ in parts)
    external = turn.external_id or _content_id("ep", text, turn.happened_at, source, session, str(turn.seq))
    source = source or f"palimpsest:{external}"
    return Episode(
        scope=scope,
        external_id=external,
        text=text,
        content_hash=content_hash(text),
        cleaned=turn.cleaned or any(changed for _, changed in parts),
        speaker=speaker,
        role=role,
        session=session,
        seq=turn.seq,
        happened_at=turn.happened_at or now,
        source_uri=source,
        root_source=root or source,
        outcome=turn.outcome,
    )


def _content_id(prefix: str, text: str, at: datetime | None, *parts: str) -> str:
    """The external id of a row whose writer gave none: the same content is the same row."""
    blob = "\x1f".join([text, at.isoformat() if at else "", *parts]).encode()
    return f"{prefix}:{hashlib.blake2b(blob, digest_size=16).hexdigest()}"


def _evidence(scope: Scope, observation_id: int, ref: EvidenceRef) -> Evidence:
    return Evidence(
        scope=scope,
        observation_id=observation_id,
        source_uri=clean(ref.source_uri)[0],
        root_source=clean(ref.root)[0],
        quote=clean(ref.quote)[0] or None,
        quote_start=ref.quote_start,
    )


def _known(model: type[Observation] | type[Episode], scope: Scope, external_ids: list[str]) -> dict[str, tuple[int, str]]:
    rows = model._default_manager.filter(scope=scope, external_id__in=external_ids)
    return {external: (pk, digest) for external, pk, digest in rows.values_list("external_id", "pk", "content_hash")}


def _content(row: Episode) -> tuple[str, str]:
    return row.source_uri, row.content_hash


def _known_content(scope: Scope, drafts: Sequence[Episode]) -> dict[tuple[str, str], int]:
    rows = Episode.objects.filter(scope=scope, content_hash__in=[row.content_hash for row in drafts])
    return {(uri, digest): pk for uri, digest, pk in rows.values_list("source_uri", "content_hash", "pk")}


Row = TypeVar("Row", Observation, Episode)


def _sort(
    drafts: Sequence[Row],
    known: Mapping[str, tuple[int, str]],
    known_content: Mapping[tuple[str, str], int] | None = None,
) -> tuple[list[Row], list[Fate]]:
    """Which drafts are new, and every draft's fate; a repeat inside the batch is already there."""
    seen = {external: digest for external, (_, digest) in known.items()}
    contents = set(known_content or ())
    fresh, fates = [], []
    for row in drafts:
        digest = seen.get(row.external_id)
        if digest is not None:
            fates.append(Fate.KNOWN if digest == row.content_hash else Fate.REFUSED)
            continue
        if isinstance(row, Episode):
            if _content(row) in contents:
                fates.append(Fate.KNOWN)
                continue
            contents.add(_content(row))
        seen[row.external_id] = row.content_hash
        fresh.append(row)
        fates.append(Fate.ADDED)
    return fresh, fates


def _written(
    drafts: Sequence[Observation | Episode], fates: Sequence[Fate], ids: Mapping[str, tuple[int, str]]
) -> list[Written]:
    reason = "this id is already there with another text; a change is a new line with a new id"
    return [
        Written(
            fate=fate,
            id=ids[row.external_id][0] if row.external_id in ids and fate != Fate.REFUSED else None,
            reason=reason if fate == Fate.REFUSED else "",
            cleaned=row.cleaned,
        )
        for row, fate in zip(drafts, fates, strict=True)
    ]


def _embed_later(scope: Scope, ids: list[int]) -> None:
    payload = {"first": min(ids), "last": max(ids)}
    outbox.enqueue(task=EMBED, scope_id=scope.pk, key=f"{payload['first']}-{payload['last']}", payload=payload)


def adopt_lineage(
    *, scope: Scope, derived_id: int, past: Past, observations: Sequence[int], episodes: Sequence[int]
) -> None:
    """Write the lineage that an imported derived row brings along; its operation lives in another store. One query."""
    assert past.derived_at is not None
    Lineage.objects.bulk_create(
        Lineage(
            scope=scope,
            derived_id=derived_id,
            source_observation_id=observation,
            source_episode_id=episode,
            derivation=past.derivation,
            derived_at=past.derived_at,
            operation=past.produced_by,
            imported=True,
        )
        for observation, episode in [*((pk, None) for pk in observations), *((None, pk) for pk in episodes)]
    )


# --- vectors --------------------------------------------------------------------------------------------------------


def put_embeddings(
    *, profile: Profile, rows: Sequence[tuple[int, int]], vectors: np.ndarray[tuple[int, int], np.dtype[np.float32]], bands: Sequence[bytes]
) -> None:
    """Store vectors (n, dimensions) and MinHash bands of (scope id, observation id) rows under a profile; redoing it is harmless.

    Raises ValueError for a wrong number of dimensions: a vector of another profile is refused, never stored.
    """
    if vectors.shape != (len(rows), profile.dimensions):
        raise ValueError(
            f"{len(rows)} vectors of {profile.dimensions} dimensions expected for profile {profile.name}, got {vectors.shape}"
        )
    Embedding.objects.bulk_create(
        [
            Embedding(scope_id=scope, observation_id=pk, profile=profile.name, dimensions=profile.dimensions, vector=vector, bands=band)
            for (scope, pk), vector, band in zip(rows, vectors, bands, strict=True)
        ],
        update_conflicts=True,
        unique_fields=["scope", "observation", "profile"],
        update_fields=["vector", "bands"],
    )


# --- what the runner does -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Derived:
    """A derived row to be written: the claim, where it comes from and what made it (R49)."""

    claim: Claim
    sources: tuple[int, ...]  # observation ids
    derivation: str  # merge, supersede, ...
    operation: str  # "op_…#generation"
    chain: int = 0
    uses_inherited: int = 0
    same_text_as: int | None = None  # a source whose vector is this row's too
    at: datetime | None = None  # derived_at; None: the database's clock


def write_derived(*, scope: Scope, derived: Derived) -> int:
    """Write a derived row with the union of its sources' evidence (R96), its vector and its lineage; returns its id. Four queries."""
    now = derived.at or database_now()
    row = _draft(scope, derived.claim, WrittenBy.CONSOLIDATION, now)
    row.derivation, row.derived_at, row.produced_by = derived.derivation, now, derived.operation
    row.chain, row.uses_inherited = derived.chain, derived.uses_inherited
    row.save(force_insert=True)
    copy_evidence(scope_id=scope.pk, into=row.pk, sources=derived.sources)
    if derived.same_text_as is None:
        Evidence.objects.bulk_create([_evidence(scope, row.pk, ref) for ref in derived.claim.evidence], ignore_conflicts=True)
        _embed_later(scope, [row.pk])
    else:
        _copy_embedding(scope_id=scope.pk, into=row.pk, source=derived.same_text_as)
    Lineage.objects.bulk_create(
        Lineage(
            scope=scope,
            derived=row,
            source_observation_id=source,
            derivation=derived.derivation,
            derived_at=now,
            operation=derived.operation,
        )
        for source in derived.sources
    )
    return row.pk


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
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO observations_evidence (scope_id, observation_id, episode_id, source_uri, root_source, quote, quote_start)"
            " SELECT DISTINCT ON (source_uri) scope_id, %s::bigint, episode_id, source_uri, root_source, quote, quote_start"
            " FROM observations_evidence WHERE scope_id = %s AND observation_id = ANY (%s) ORDER BY source_uri, id"
            " ON CONFLICT (scope_id, observation_id, source_uri) DO NOTHING",
            [into, scope_id, list(sources)],
        )


def _copy_embedding(*, scope_id: int, into: int, source: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO observations_embedding (scope_id, observation_id, profile, dimensions, vector, bands, active)"
            " SELECT scope_id, %s::bigint, profile, dimensions, vector, bands, true"
            " FROM observations_embedding WHERE scope_id = %s AND observation_id = %s",
            [into, scope_id, source],
        )
