"""Keys that a model gave to observations whose writers gave none: beside the row, never over it."""

from __future__ import annotations

from django.db import connection


def copy_key(*, scope_id: int, into: int, source: int) -> None:
    """Give a row of the same text and key the parts of a key that a model gave another, if any. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO observations_givenkey (scope_id, observation_id, state, subject, predicate, object,"
            " subject_key, sp_key, spo_key, quote_start, quote_end, model, prompt_version, attempts, at, withdrawn_by)"
            " SELECT scope_id, %s::bigint, state, subject, predicate, object, subject_key, sp_key, spo_key,"
            " quote_start, quote_end, model, prompt_version, attempts, at, withdrawn_by FROM observations_givenkey"
            " WHERE scope_id = %s AND observation_id = %s ON CONFLICT DO NOTHING",
            [into, scope_id, source],
        )
