"""Worlds that many tests begin with: built once by the product, then brought back as they were left, ids included.

Bringing one back takes a twentieth of building it. Triggers are off meanwhile, as they are while the store is emptied,
so a world is brought back only into an empty store, and only where tests commit (`transaction=True`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from django.db import connection

from tests.conftest import KEPT, emptier

T = TypeVar("T")
_COLUMNS = """
SELECT c.oid::regclass::text, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND c.relname <> ALL (%s)
  AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
GROUP BY c.oid
"""
_SEQUENCES = """
SELECT quote_ident(sequencename), last_value FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL
"""


@dataclass(frozen=True)
class Left:
    """What the first building left: its rows, as COPY reads them, and where ids go on."""

    rows: dict[str, bytes]  # table with its columns -> rows
    sequences: str


def kept(build: Callable[[], T]) -> Callable[[], T]:
    """A world that is built at the first call of this process; what `build` returned then is returned every time.

    `build` begins in an empty store, takes no arguments and returns nothing that a test may change.
    """
    left: list[tuple[Left, T]] = []

    @functools.wraps(build)
    def brought() -> T:
        assert not connection.in_atomic_block, "what is not committed can be neither kept nor brought back"
        if not left:
            made = build()
            left.append((_taken(), made))
        else:
            _bring_back(left[0][0])
        return left[0][1]

    return brought


def _taken() -> Left:
    admin, rows = emptier(), {}
    for table, columns in admin.execute(_COLUMNS, [list(KEPT)]).fetchall():
        named = f"{table} ({columns})"
        with admin.cursor() as cursor, cursor.copy(f"COPY {named} TO STDOUT (FORMAT binary)") as copy:
            data = b"".join(map(bytes, copy))
        if admin.execute(f"SELECT EXISTS (SELECT FROM {table})").fetchone() == (True,):
            rows[named] = data
    sequences = admin.execute(_SEQUENCES).fetchall()
    return Left(rows, "; ".join(f"SELECT setval('{name}', {last})" for name, last in sequences))


def _bring_back(left: Left) -> None:
    admin = emptier()
    with admin.transaction():
        for named, data in left.rows.items():
            with admin.cursor() as cursor, cursor.copy(f"COPY {named} FROM STDIN (FORMAT binary)") as copy:
                copy.write(data)
        admin.execute(left.sequences)
