"""Opening a scope and taking its locks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Final

from django.db import connection

from observations.models import Episode, Observation, Scope
from observations.normalise import key64

_LOCK_SPACE = 0x5061 << 40  # our corner of PostgreSQL's 64-bit advisory locks


class ScopeNameRefused(ValueError):
    """The scope's name is not a path: no empty part, no leading or trailing slash or space, no '*', at most 200
    characters.
    """


def open_scope(*, name: str) -> Scope:
    """The scope of that name, made when it is new. Raises ScopeNameRefused. One or two queries."""
    _check_name(name)
    return Scope.objects.get_or_create(name=name)[0]


def find_scope(*, name: str) -> Scope | None:
    """The scope of that name, or None where it is not there yet. Raises ScopeNameRefused. One query."""
    _check_name(name)
    return next(iter(Scope.objects.raw("SELECT * FROM observations_scope WHERE name = %s", [name])), None)


def _check_name(name: str) -> None:
    parts = name.split("/")
    bad = any(not part.strip() or part != part.strip() for part in (parts[0], parts[-1])) or not all(parts)
    if bad or len(name) > 200 or "*" in name or not name.isprintable():
        raise ScopeNameRefused(
            f"scope name {name[:60]!r} is refused: give a path such as 'team/project', without empty parts or '*'"
        )


def lock_scope(*, scope_id: int, exclusive: bool = False, cause: str = "") -> datetime:
    """Take the scope's transaction-level lock: exclusive for apply, undo and erase, shared for every other writer.

    `cause` goes into the journal of the moves this transaction makes. One query; waits for the lock. Returns the
    database's clock as it was when the lock was had.
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


def lock_texts(*, scope_id: int, text_keys: Iterable[int]) -> None:
    """Keep other writers from adding the same normalised texts (Observation.text_key) until this transaction ends.

    Taken after the scope's lock and before any row's, so that looking whether a text is there and adding it is one
    step. One query, or none; waits.
    """
    keys = _keys_of_texts(scope_id, text_keys)
    if keys:
        with connection.cursor() as cursor:  # in the order of the list: two writers of the same texts never deadlock
            cursor.execute("SELECT pg_advisory_xact_lock(key) FROM unnest(%s::bigint[]) AS key", [keys])


# The texts' locks are taken for rows that the scope's is part of: never before it.
_BOTH: Final = """
WITH scope AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared(%s), set_config('palimpsest.cause', %s, true)),
texts AS MATERIALIZED (SELECT pg_advisory_xact_lock(key) FROM scope, unnest(%s::bigint[]) AS key)
SELECT (SELECT count(*) FROM scope), (SELECT count(*) FROM texts), clock_timestamp()
"""


def lock_scope_and_texts(*, scope_id: int, text_keys: Iterable[int], cause: str) -> datetime:
    """What `lock_scope`, shared, and `lock_texts` do, in that order. One query; waits. Returns the database's clock."""
    keys = _keys_of_texts(scope_id, text_keys)
    with connection.cursor() as cursor:
        cursor.execute(_BOTH, [_LOCK_SPACE + scope_id, cause[:120], keys])
        row = cursor.fetchone()
    assert row is not None
    moment: datetime = row[2]
    return moment


def _keys_of_texts(scope_id: int, text_keys: Iterable[int]) -> list[int]:
    return sorted({key64("text", str(scope_id), str(key)) for key in text_keys})


def same_texts(*, scope_id: int, text_keys: Collection[int]) -> list[int]:
    """The current rows of a scope that have one of these text keys: they may say the same. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM observations_observation WHERE scope_id = %s AND text_key = ANY (%s) AND status = 'active'",
            [scope_id, list(text_keys)],
        )
        return [int(pk) for (pk,) in cursor.fetchall()]


def hold_scope(*, scope: Scope, until: datetime | None, reason: str) -> None:
    """Place a hold, open-ended without `until`, or change the one that stands; nothing is planned or applied against
    the scope while it does. Two queries.
    """
    now = lock_scope(scope_id=scope.pk, exclusive=True, cause="hold")
    Scope.objects.filter(pk=scope.pk).update(held_at=now, held_until=until, hold_reason=reason)


def release_scope(*, scope: Scope) -> bool:
    """Lift a scope's hold; False when there is none. Two queries."""
    lock_scope(scope_id=scope.pk, exclusive=True, cause="release")
    held = Scope.objects.filter(pk=scope.pk, held_at__isnull=False)
    return bool(held.update(held_at=None, held_until=None, hold_reason=""))


def note_index(*, scope: Scope, profile: str) -> None:
    """Note for which profile an approximate index of the scope stands; empty for none. One query."""
    Scope.objects.filter(pk=scope.pk).update(index_profile=profile)


def lock_rows(*, scope_id: int, ids: Iterable[int]) -> dict[int, Observation]:
    """Observations of one scope, locked in id order (unsorted locks deadlock), by id. One query."""
    rows = (
        Observation.objects.filter(scope_id=scope_id, id__in=list(ids)).order_by("id").select_for_update(of=("self",))
    )
    return {row.pk: row for row in rows}


def lock_episodes(*, scope_id: int, ids: Iterable[int]) -> dict[int, Episode]:
    """Episodes of one scope, locked in id order, by id; taken after observations. One query."""
    rows = Episode.objects.filter(scope_id=scope_id, id__in=list(ids)).order_by("id").select_for_update(of=("self",))
    return {row.pk: row for row in rows}
