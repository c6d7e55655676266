"""Rows made of claims and turns, before anything is written: cleaned, hashed and keyed."""

from __future__ import annotations

import hashlib
from datetime import datetime

from observations.models import Episode, Evidence, Observation, Scope
from observations.normalise import clean, key64, key_part, normalised
from observations.records import Claim, EvidenceRef, Past, Status, Turn, WrittenBy


def content_hash(text: str) -> str:
    """sha256 of the text's UTF-8 bytes, hex (I11)."""
    return hashlib.sha256(text.encode()).hexdigest()


def observation_row(scope: Scope, claim: Claim, written_by: WrittenBy, now: datetime) -> Observation:
    """An unsaved observation, its text cleaned, its key normalised and hashed; `now` where the claim has no time."""
    parts = [clean(part) for part in (claim.text, claim.subject, claim.predicate, claim.object)]
    text, subject, predicate, object_ = (part for part, _ in parts)
    parts += [clean(f"{ref.source_uri}{ref.root_source}{ref.quote}") for ref in claim.evidence]
    cleaned = any(changed for _, changed in parts)
    key = (key_part(subject), key_part(predicate), key_part(object_))
    return Observation(
        scope=scope,
        external_id=claim.external_id
        or content_id("obs", text, claim.created_at, *key, *(r.source_uri for r in claim.evidence)),
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
        kind=claim.kind,
        half_life_days=claim.half_life_days or claim.kind.half_life_days,
        stated_by=claim.stated_by,
        written_by=written_by,
        created_at=claim.created_at or now,
        valid_from=claim.valid_from,
        valid_to=claim.valid_to,
    )


def take_over(row: Observation, past: Past) -> None:
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


def evidence_row(scope: Scope, observation_id: int, ref: EvidenceRef, *, episode_id: int | None = None) -> Evidence:
    """An unsaved row of evidence, under its root source (C8); `episode_id` where the source is an episode."""
    return Evidence(
        scope=scope,
        observation_id=observation_id,
        episode_id=episode_id,
        source_uri=clean(ref.source_uri)[0],
        root_source=clean(ref.root)[0],
        quote=clean(ref.quote)[0] or None,
        quote_start=ref.quote_start,
    )
