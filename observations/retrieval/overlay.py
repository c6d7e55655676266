"""A store as it would be: some rows out of the reads, and others in their place, without writing any (DESIGN 4).

`look` over an overlay answers as it would once the rows had moved. The rows that would be new bear negative ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final

import numpy as np
from psycopg import sql


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Standing:
    """One row that would be active: what a search reads of it, as `store` would write it."""

    id: int  # -1 for the one that would be written first, -2 for the next
    text: str
    subject: str = ""
    predicate: str = ""
    object: str = ""
    created_at: datetime
    half_life_days: int | None  # None: it never fades
    derivation: str | None = None
    # float32 of shape (dimensions,), under the profile that the read is made with; None: found by its words alone
    vector: np.ndarray[tuple[int], np.dtype[np.float32]] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Overlay:
    """Which active rows of one scope would leave the reads, and which would join them.

    Raises ValueError for ids of `plus` that are not negative or stand twice.
    """

    without: frozenset[int] = frozenset()
    plus: tuple[Standing, ...] = ()

    def __post_init__(self) -> None:
        ids = {row.id for row in self.plus}
        if len(ids) < len(self.plus) or max(ids, default=-1) >= 0:
            raise ValueError("Rows that would be new bear negative ids, each its own: -1, -2 and so on.")

    @cached_property
    def columns(self) -> Mapping[str, list[Any]]:
        """The rows that would join, column by column as PostgreSQL reads them."""
        vectors = [row.vector for row in self.plus]
        return {
            "without": sorted(self.without),
            "plus_id": [row.id for row in self.plus],
            "plus_text": [row.text for row in self.plus],
            "plus_subject": [row.subject for row in self.plus],
            "plus_predicate": [row.predicate for row in self.plus],
            "plus_object": [row.object for row in self.plus],
            "plus_created_at": [row.created_at for row in self.plus],
            "plus_half_life": [row.half_life_days for row in self.plus],
            "plus_vector": [None if vector is None else str(vector.tolist()) for vector in vectors],
            "plus_dimensions": [0 if vector is None else len(vector) for vector in vectors],
        }

    @cached_property
    def standing(self) -> dict[int, Standing]:
        """The rows that would join, by their ids."""
        return {row.id: row for row in self.plus}


# What would join, for a FROM clause. Its columns bear the names of an observation's, so that one rule reads both.
PLUS: Final = sql.SQL(
    """unnest(%(plus_id)s::bigint[], %(plus_text)s::text[], %(plus_subject)s::varchar[],
  %(plus_predicate)s::varchar[], %(plus_object)s::varchar[], %(plus_created_at)s::timestamptz[],
  %(plus_half_life)s::int[], %(plus_vector)s::text[], %(plus_dimensions)s::int[])
  AS plus (id, text, subject, predicate, object, created_at, half_life_days, vector, dimensions)"""
)


def age_order(pk: int) -> tuple[bool, int]:
    """The order in which rows were written, what would be new last."""
    return pk < 0, abs(pk)
