"""What both ways of searching are told, and how they read: one statement each, whose rows come packed for numpy."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import numpy as np
import psycopg
from django.db import connection
from psycopg import sql
from psycopg.pq import Format

from observations import fading
from observations.models import Scope
from observations.retrieval.narrowing import Among
from observations.retrieval.overlay import Overlay
from observations.retrieval.sites import FLOOR

Value = str | int | float | datetime | list[Any] | None
Numbers = np.ndarray[tuple[int], np.dtype[Any]]

# When a row was first said, and its half-life: what its strength is computed from, here and not in SQL, where a power
# of each row takes longer than to hand over both.
AGED: Final = sql.SQL("timestamptz_send(created_at) || int4send(coalesce(half_life_days, 0))")
AGED_TYPE: Final = (("said", ">i8"), ("half_life", ">i4"))
NOW: Final = sql.SQL("timestamptz_send(coalesce(%(now)s, now()))")
_DAY: Final = 86_400_000_000  # microseconds


def strengths(packed: Numbers, now: bytes) -> Numbers:
    """How strong each row is, from columns as AGED packs them and the moment as NOW does."""
    days = (int.from_bytes(now, "big", signed=True) - packed["said"].astype(float)) / _DAY
    return fading.strengths(days=days, half_lives=packed["half_life"].astype(float), floor=FLOOR)


def common(scope: Scope, among: Among | None, overlay: Overlay | None = None) -> dict[str, Value]:
    """The parameters that both statements have."""
    return {
        **(overlay.columns if overlay else {}),
        "scope": scope.pk,
        "now": among.now if among else None,
        "among": among.ids if among else [],
    }


# Of a scope's observations, and of its vectors, those that a read is among: what is current, some rows by id, and what
# would stay under an overlay.
ROWS: Final = tuple(
    (sql.SQL(of_observations), sql.SQL(of_vectors))
    for of_observations, of_vectors in (
        ("status = 'active'", "active"),
        ("id = ANY (%(among)s::bigint[])", "observation_id = ANY (%(among)s::bigint[])"),
        (
            "status = 'active' AND id <> ALL (%(without)s::bigint[])",
            "active AND observation_id <> ALL (%(without)s::bigint[])",
        ),
    )
)


def text_of(statement: sql.Composed) -> str:
    """A statement as it is sent, made once: its literals are numbers, and psycopg remembers what it parsed."""
    return statement.as_string(None)


def one_row(statement: str | sql.Composed, values: Mapping[str, Value]) -> Any:
    """The only row of a statement, bytes as they are: Django's own cursor has them written in hexadecimal.

    In the transaction in which Django's connection stands. Raises django.db.Error.
    """
    connection.ensure_connection()
    plain: Any = psycopg.Cursor(connection.connection)
    plain.format = Format.BINARY
    with connection.make_debug_cursor(plain) if connection.queries_logged else connection.make_cursor(plain) as cursor:
        cursor.execute(statement, values)
        [row] = cursor.fetchall()
        return row
