"""Rows made of claims and turns, before anything is written: cleaned, hashed and keyed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from observations.models import Episode, Scope
from observations.normalise import clean, key64, key_part, normalised
from observations.records import Claim, EvidenceRef, MemoryKind, Past, StatedBy, Status, Turn, WrittenBy


class Compared(NamedTuple):
    """What a claim is compared by, where its writer has computed it: the store need not take the texts apart again."""

    text_key: int  # Observation.text_key
    key: tuple[str, str, str]  # subject, predicate and object, each through normalise.key_part


@dataclass(slots=True)
class Draft:
    """An observation to be written, column by column; what is not here PostgreSQL fills in."""

    external_id: str
    text: str
    content_hash: str
    cleaned: bool
    subject: str
    predicate: str
    object: str
    text_key: int
    subject_key: int
    sp_key: int
    spo_key: int
    confidence: float
    kind: MemoryKind
    half_life_days: int | None
    stated_by: StatedBy
    written_by: WrittenBy
    created_at: datetime
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    reconciled_at: datetime | None = None
    derivation: str | None = None
    derived_at: datetime | None = None
    produced_by: str | None = None
    chain: int = 0
    uses_inherited: int = 0
    status: Status = Status.ACTIVE


@dataclass(frozen=True, slots=True)
class EvidenceDraft:
    """A row of evidence to be written, column by column."""

    episode_id: int | None
    source_uri: str
    root_source: str
    quote: str | None
    quote_start: int | None


def content_hash(text: str) -> str:
    """sha256 of the text's UTF-8 bytes, hex (I11)."""
    return hashlib.sha256(text.encode()).hexdigest()


def observation_row(claim: Claim, *, written_by: WrittenBy, now: datetime, compared: Compared | None = None) -> Draft:
    """An observation to be written, its text cleaned, its key normalised and hashed; `now` where the claim has no
    time.
    """
    parts = [clean(part) for part in (claim.text, claim.subject, claim.predicate, claim.object)]
    text, subject, predicate, object_ = (part for part, _ in parts)
    parts += [clean(f"{ref.source_uri}{ref.root_source}{ref.quote}") for ref in claim.evidence]
    key = compared.key if compared else (key_part(subject), key_part(predicate), key_part(object_))
    return Draft(
        external_id=claim.external_id
        or content_id("obs", text, claim.created_at, *key, *(r.source_uri for r in claim.evidence)),
        text=text,
        content_hash=content_hash(text),
        cleaned=any(changed for _, changed in parts),
        subject=subject,
        predicate=predicate,
        object=object_,
        text_key=compared.text_key if compared else key64(normalised(text)),
        subject_key=key64(key[0]),
        sp_key=key64(*key[:2]),
        spo_key=key64(*key),
        confidence=claim.confidence,
        kind=claim.kind,
        half_life_days=claim.half_life_days or claim.kind.half_life_days,
        stated_by=claim.stated_by,
        written_by=written_by,
        created_at=claim.created_at or now,
        valid_from=claim.valid_from,
        valid_to=claim.valid_to,
    )


def take_over(row: Draft, past: Past) -> None:
    """Put what an import knows of a row into its draft."""
    row.written_by, row.reconciled_at, row.cleaned = past.written_by, past.reconciled_at, row.cleaned or past.cleaned
    row.chain, row.uses_inherited = past.chain, past.uses_inherited
    if past.derivation:
        row.derivation, row.derived_at, row.produced_by = past.derivation, past.derived_at, past.produced_by
    if past.status != Status.ACTIVE:
        row.status = Status.QUARANTINED
    if past.status == Status.ERASED:
        row.content_hash = ""  # what an erased row has, so that its line is known again


def episode_row(scope: Scope, turn: Turn, now: datetime) -> Episode:
    """An unsaved episode, verbatim but for characters no database can hold; `now` where the turn has no time."""
    fields = (turn.text, turn.speaker, turn.role, turn.session, turn.source_uri, turn.root_source)
    parts = [clean(field) for field in fields]
    text, speaker, role, session, source, root = (part for part, _ in parts)
    external = turn.external_id or content_id("ep", text, turn.happened_at, source, session, str(turn.seq))
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
        status=turn.status,
    )


def content_id(prefix: str, text: str, at: datetime | None, *parts: str) -> str:
    """The external id of a row whose writer gave none: the same content is the same row."""
    blob = "\x1f".join([text, at.isoformat() if at else "", *parts]).encode()
    return f"{prefix}:{hashlib.blake2b(blob, digest_size=16).hexdigest()}"


def evidence_row(ref: EvidenceRef, *, episode_id: int | None = None) -> EvidenceDraft:
    """A row of evidence to be written, under its root source (C8); `episode_id` where the source is an episode."""
    return EvidenceDraft(
        episode_id=episode_id,
        source_uri=clean(ref.source_uri)[0],
        root_source=clean(ref.root)[0],
        quote=clean(ref.quote)[0] or None,
        quote_start=ref.quote_start,
    )
