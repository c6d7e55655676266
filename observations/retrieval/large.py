"""Large scopes: the nearest rows by an approximate index of that scope, where somebody had one made.

A scope of up to LARGE rows is scanned exactly, which finds every row. Beyond that `manage.py memory index` makes one
index per scope and profile (HNSW over half precision). What it hands over is ranked again by the exact distance, and
when it hands over too few rows the scope is scanned after all: no read returns fewer rows than the scope has.
"""

from __future__ import annotations

from typing import Final

from django.db.models import Count
from psycopg import sql

from observations.embedding import Profile
from observations.models import Observation, Scope

LARGE: Final = 20_000  # current rows of a scope from which an index is worth its upkeep (DESIGN 8)
MOST_DIMENSIONS: Final = 4_000  # of a half-precision vector that pgvector's HNSW takes
WIDER: Final = 4  # times as many rows as are wanted are taken from the index, and ranked exactly
LEAST: Final = 400

# A wider search of the graph costs little beside an exact scan; a narrower one misses rows. Measured by
# tests/integration/test_retrieval_large.py: recall of at least 0.99. Without sorts, because the planner takes a walk of
# the graph for dearer than it is: left alone it reads and sorts the scope that the index was made for.
_SCAN: Final = {
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.ef_search": "800",
    "hnsw.max_scan_tuples": "100000",
    "enable_sort": "off",
}
TUNE: Final = sql.SQL("SELECT {}").format(
    sql.SQL(", ").join(
        sql.SQL("set_config({}, {}, true)").format(sql.Literal(name), sql.Literal(value))
        for name, value in _SCAN.items()
    )
)
TUNE_BACK: Final = "SET LOCAL enable_sort = on"  # the others concern no statement without such an index


def unindexed(*, profile: Profile) -> list[tuple[str, int]]:
    """Scopes of more than LARGE current rows without an index for the profile, and how many they have. One query."""
    if profile.dimensions > MOST_DIMENSIONS:
        return []
    rows = Observation.objects.active().exclude(scope__index_profile=profile.name).order_by("scope__name")
    return list(rows.values_list("scope__name").annotate(n=Count("pk")).filter(n__gt=LARGE))


def indexed(*, scope: Scope, profile: Profile) -> bool:
    """Whether an index of this scope stands for the profile. No query."""
    return scope.index_profile == profile.name and profile.dimensions <= MOST_DIMENSIONS


def name_of(*, scope_id: int, profile: str) -> str:
    """What the index of a scope and profile is called; at most 63 characters, as PostgreSQL has it."""
    plain = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in profile)
    return f"embedding_near_{scope_id}_{plain}"[:63]


def rows_of(*, scope_id: int, profile: Profile) -> sql.Composed:
    """The condition of a scope's index, and of every read that is to use it: constants, so that PostgreSQL sees that
    one implies the other.
    """
    return sql.SQL(
        "scope_id = {} AND profile = {} AND dimensions = {} AND active AND vector IS NOT NULL"
        " AND observation_id IS NOT NULL"
    ).format(sql.Literal(scope_id), sql.Literal(profile.name), sql.Literal(profile.dimensions))


def half(*, column: sql.Composable, profile: Profile) -> sql.Composed:
    """A vector in half precision, as the index holds it."""
    return sql.SQL("({}::halfvec({}))").format(column, sql.SQL(str(profile.dimensions)))


def candidates(*, scope_id: int, profile: Profile, wanted: int, by_index: bool = True) -> sql.Composed:
    """A SELECT of the ids that are nearest to %(vector)s: as the index finds them, or by a scan."""
    compared: list[sql.Composable] = [
        sql.SQL("vector"),
        sql.SQL("%(vector)s::vector"),
    ]  # untyped, it would be a halfvec
    if by_index:
        compared = [half(column=column, profile=profile) for column in compared]
    return sql.SQL("SELECT observation_id FROM observations_embedding WHERE {} ORDER BY {} <=> {} LIMIT {}").format(
        rows_of(scope_id=scope_id, profile=profile), *compared, sql.Literal(max(WIDER * wanted, LEAST))
    )
