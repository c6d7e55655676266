"""Keys that a model gave to observations whose writers gave none: beside the row, never over it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.db import connection

from observations.models import ClockTimestamp, GivenKey, Observation
from observations.normalise import key64, key_part
from observations.records import Given, KeyState
from observations.store.scopes import lock_scope

MAX_ATTEMPTS: Final = 3  # answers that could not be used, after which a row is not asked about any more


class KeyNotGiven(Exception):
    """The observation has no key that a model gave, so there is none to take back."""


# A row that was archived, erased or given a key meanwhile is left as it is.
_PUT = f"""
INSERT INTO observations_givenkey AS k (scope_id, observation_id, state, subject, predicate, object, subject_key,
  sp_key, spo_key, quote_start, quote_end, model, prompt_version, attempts, at, withdrawn_by)
SELECT o.scope_id, o.id, n.state, n.subject, n.predicate, n.object, n.subject_key, n.sp_key, n.spo_key, n.quote_start,
  n.quote_end, n.model, n.prompt_version, 1, clock_timestamp(), ''
FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[],
  %s::int[], %s::int[], %s::text[], %s::text[]) AS n (id, state, subject, predicate, object, subject_key, sp_key,
  spo_key, quote_start, quote_end, model, prompt_version)
JOIN observations_observation o ON o.id = n.id
WHERE o.scope_id = %s AND o.status = 'active'
ORDER BY o.id
ON CONFLICT (scope_id, observation_id) DO UPDATE
SET state = excluded.state, subject = excluded.subject, predicate = excluded.predicate, object = excluded.object,
  subject_key = excluded.subject_key, sp_key = excluded.sp_key, spo_key = excluded.spo_key,
  quote_start = excluded.quote_start, quote_end = excluded.quote_end, model = excluded.model,
  prompt_version = excluded.prompt_version, attempts = k.attempts + 1, at = excluded.at
WHERE k.state = 'unusable' AND k.attempts < {MAX_ATTEMPTS}
RETURNING k.observation_id
"""  # noqa: S608  the only figure put in is a constant of this module


def put_keys(*, scope_id: int, given: Mapping[int, Given]) -> set[int]:
    """Store what a model said about current rows, by their ids; returns the ids it was stored for.

    Left alone: a row that is not current any more, and one that has an answer which stands. Takes the scope's shared
    lock. Raises django.db.DatabaseError (PA005) for a part that the row's writer gave. Three queries.
    """
    lock_scope(scope_id=scope_id, cause="keys")
    rows = Observation.objects.active().filter(scope_id=scope_id, pk__in=given).order_by("pk")
    drafts = [_draft(row, given[row.pk]) for row in rows.only("scope_id", "subject", "predicate", "object")]
    fields = ("observation_id", "state", "subject", "predicate", "object", "subject_key", "sp_key", "spo_key")
    columns = [
        [getattr(draft, field) for draft in drafts]
        for field in (*fields, "quote_start", "quote_end", "model", "prompt_version")
    ]
    with connection.cursor() as cursor:
        cursor.execute(_PUT, [*columns, scope_id])
        return {int(pk) for (pk,) in cursor.fetchall()}


def adopt_keys(*, scope_id: int, given: Mapping[int, Given]) -> None:
    """Write the given keys that imported rows bring along, with their time and attempts. Two queries.

    Raises django.db.DatabaseError (PA005) for a part that the row's writer gave.
    """
    rows = Observation.objects.filter(scope_id=scope_id, pk__in=given).order_by("pk")
    GivenKey.objects.bulk_create(_draft(row, given[row.pk]) for row in rows)


def _draft(row: Observation, given: Given) -> GivenKey:
    """An unsaved given key; its hashes are those of the whole key, the writer's parts included."""
    draft = GivenKey(
        scope_id=row.scope_id,
        observation_id=row.pk,
        state=str(given.state),
        subject=given.subject,
        predicate=given.predicate,
        object=given.object,
        model=given.model[:80],
        prompt_version=given.prompt_version[:20],
        attempts=given.attempts,
        at=given.at or ClockTimestamp(),
        withdrawn_by=given.withdrawn_by,
    )
    if given.quote is not None:
        draft.quote_start, draft.quote_end = given.quote
    if given.state == KeyState.GIVEN:
        subject, predicate, object_ = map(key_part, row.key_with(draft))
        draft.subject_key = key64(subject)
        draft.sp_key = key64(subject, predicate)
        draft.spo_key = key64(subject, predicate, object_)
    return draft


def withdraw_key(*, observation: Observation, by: str) -> None:
    """Take back the key that a model gave a row: its parts go, and the row is never asked about again.

    Takes the scope's shared lock. Raises KeyNotGiven when there is none, or it was taken back before. Two queries.
    """
    lock_scope(scope_id=observation.scope_id, cause="withdraw key")
    found = GivenKey.objects.filter(
        scope_id=observation.scope_id, observation_id=observation.pk, state=GivenKey.State.GIVEN
    )
    withdrawn = found.update(
        state=GivenKey.State.WITHDRAWN,
        **dict.fromkeys(("subject", "predicate", "object"), ""),
        **dict.fromkeys(("subject_key", "sp_key", "spo_key"), 0),
        quote_start=None,
        quote_end=None,
        at=ClockTimestamp(),
        withdrawn_by=by[:150],
    )
    if not withdrawn:
        raise KeyNotGiven(f"{observation} has no key that a model gave, so there is none to take back.")


def copy_key(*, scope_id: int, into: int, source: int) -> None:
    """Give a row what a model said about another one of the same normalised text and key, if anything. One query.

    A row of another text or key, one that has an answer already, and an answer that could not be used get nothing. Keys
    are compared as they are stored, parts without a hash of their own but for case and underscores. The quoted words
    are handed on only where the texts are the same to the letter: they are positions.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO observations_givenkey (scope_id, observation_id, state, subject, predicate, object,"
            " subject_key, sp_key, spo_key, quote_start, quote_end, model, prompt_version, attempts, at, withdrawn_by)"
            " SELECT g.scope_id, n.id, g.state, g.subject, g.predicate, g.object, g.subject_key, g.sp_key, g.spo_key,"
            " CASE WHEN n.text = o.text THEN g.quote_start END, CASE WHEN n.text = o.text THEN g.quote_end END,"
            " g.model, g.prompt_version, g.attempts, g.at, g.withdrawn_by"
            " FROM observations_givenkey g JOIN observations_observation o ON o.id = g.observation_id"
            " JOIN observations_observation n ON n.scope_id = g.scope_id"
            "  AND n.text_key = o.text_key AND n.text_key <> 0"
            "  AND (n.subject_key, n.sp_key, n.spo_key) = (o.subject_key, o.sp_key, o.spo_key)"
            "  AND (n.subject = '', n.predicate = '', n.object = '')"
            "    = (o.subject = '', o.predicate = '', o.object = '')"
            "  AND (n.sp_key <> 0 OR lower(replace(n.predicate, '_', ' ')) = lower(replace(o.predicate, '_', ' ')))"
            "  AND (n.spo_key <> 0 OR lower(replace(n.object, '_', ' ')) = lower(replace(o.object, '_', ' ')))"
            " WHERE g.scope_id = %s AND o.id = %s AND n.id = %s AND g.state <> 'unusable' ON CONFLICT DO NOTHING",
            [scope_id, source, into],
        )
