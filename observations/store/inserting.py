"""New rows put into PostgreSQL: one statement however many, their columns in one JSON document.

A statement with a placeholder per value costs both sides several times as much as what it writes: the client quotes
and joins ten thousand literals, the server parses and plans them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from operator import attrgetter
from typing import Final

from django.db import connection

from observations.store.drafting import Draft, EvidenceDraft

# Absent members are NULL there. Rows come out of the document, and get their ids, in its order; the same statement
# writes their evidence.
_OBSERVATIONS: Final = """
WITH born AS (
INSERT INTO observations_observation (scope_id, external_id, text, content_hash, cleaned, subject, predicate, object,
  text_key, subject_key, sp_key, spo_key, confidence, kind, half_life_days, stated_by, written_by, created_at,
  valid_from, valid_to, reconciled_at, derivation, derived_at, produced_by, chain, uses_inherited, status, version)
SELECT %s, r.external_id, r.text, r.content_hash, r.cleaned, r.subject, r.predicate, r.object,
  r.text_key, r.subject_key, r.sp_key, r.spo_key, r.confidence, r.kind, r.half_life_days, r.stated_by, r.written_by,
  r.created_at, r.valid_from, r.valid_to, r.reconciled_at, r.derivation, r.derived_at, r.produced_by, r.chain,
  r.uses_inherited, r.status, 1
FROM json_to_recordset(%s::json) AS r (external_id text, text text, content_hash text, cleaned boolean, subject text,
  predicate text, object text, text_key bigint, subject_key bigint, sp_key bigint, spo_key bigint,
  confidence double precision, kind text, half_life_days integer, stated_by text, written_by text,
  created_at timestamptz, valid_from timestamptz, valid_to timestamptz, reconciled_at timestamptz, derivation text,
  derived_at timestamptz, produced_by text, chain smallint, uses_inherited integer, status text)
RETURNING id, external_id
), resting AS (
INSERT INTO observations_evidence (scope_id, observation_id, episode_id, source_uri, root_source, quote, quote_start)
SELECT %s, born.id, r.episode_id, r.source_uri, r.root_source, r.quote, r.quote_start
FROM ROWS FROM (json_to_recordset(%s::json) AS (external_id text, episode_id bigint, source_uri text, root_source text,
  quote text, quote_start integer)) WITH ORDINALITY AS r (external_id, episode_id, source_uri, root_source, quote,
  quote_start, place) JOIN born USING (external_id)
ORDER BY r.place)
SELECT id FROM born ORDER BY id
"""
_EVIDENCE: Final = """
INSERT INTO observations_evidence (scope_id, observation_id, episode_id, source_uri, root_source, quote, quote_start)
SELECT %s, r.observation_id, r.episode_id, r.source_uri, r.root_source, r.quote, r.quote_start
FROM json_to_recordset(%s::json) AS r (observation_id bigint, episode_id bigint, source_uri text, root_source text,
  quote text, quote_start integer)
"""
_UNLESS_THERE: Final = " ON CONFLICT (scope_id, observation_id, source_uri) DO NOTHING"


def insert_observations(
    *, scope_id: int, rows: Sequence[Draft], evidence: Mapping[str, Sequence[EvidenceDraft]]
) -> list[int]:
    """Write drafts and, by their external ids, what they rest on; returns their ids, in order. One query, or none."""
    if not rows:
        return []
    resting = [{"external_id": name, **_members(each)} for name, refs in evidence.items() for each in refs]
    document, more = _document(map(_members, rows)), _document(resting)
    with connection.cursor() as cursor:
        cursor.execute(_OBSERVATIONS, [scope_id, document, scope_id, more])
        return [int(pk) for (pk,) in cursor.fetchall()]


def insert_evidence(*, scope_id: int, rows: Mapping[int, Sequence[EvidenceDraft]], unless_there: bool = False) -> None:
    """Write evidence by the ids of the observations, with `unless_there` only what those do not rest on yet. One query,
    or none.
    """
    resting = [{"observation_id": pk, **_members(each)} for pk, refs in rows.items() for each in refs]
    if resting:
        with connection.cursor() as cursor:
            cursor.execute(f"{_EVIDENCE}{_UNLESS_THERE if unless_there else ''}", [scope_id, _document(resting)])


_Members = dict[str, object]
_DRAFTED: Final = tuple(each.name for each in fields(Draft))
_RESTED: Final = tuple(each.name for each in fields(EvidenceDraft))
_VALUES: Final = {Draft: attrgetter(*_DRAFTED), EvidenceDraft: attrgetter(*_RESTED)}


def _members(row: Draft | EvidenceDraft) -> _Members:
    """The columns that have a value."""
    names, values = _DRAFTED if isinstance(row, Draft) else _RESTED, _VALUES[type(row)](row)
    return {name: value for name, value in zip(names, values, strict=True) if value is not None}


def _document(rows: Iterable[_Members]) -> str:
    return json.dumps(list(rows), ensure_ascii=False, default=datetime.isoformat)
