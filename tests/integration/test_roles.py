"""The suite proves nothing about grants unless it runs as the lesser role: these tests fail when it does not."""

from __future__ import annotations

import pytest
from django.db import ProgrammingError, connection, transaction

from tests.building import observe, scope

pytestmark = pytest.mark.django_db

MEMORY = [
    "observation",
    "episode",
    "evidence",
    "lineage",
    "event",
    "scope",
    "transition",
    "tombstone",
    "embedding",
    "use",
]


def test_the_suite_runs_as_the_application_role_and_never_as_owner_or_superuser() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_user, current_database(), rolsuper, rolcreatedb, rolbypassrls,"
            " pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE relname = 'observations_event'), 'USAGE')"
            " FROM pg_roles WHERE rolname = current_user"
        )
        row = cursor.fetchone()
    assert row is not None
    role, database, *powers = row
    assert role == "palimpsest_app"
    assert database.startswith("test_")
    assert powers == [False, False, False, False]


def test_the_application_role_can_write_and_read_memory() -> None:
    """Without this, a database that grants nothing at all would pass every test below."""
    assert observe("The relay sits in rack 4", within=scope()).text == "The relay sits in rack 4"


@pytest.mark.parametrize("table", MEMORY)
@pytest.mark.parametrize("statement", ["DELETE FROM observations_{}", "TRUNCATE observations_{} CASCADE"])
def test_the_application_role_can_neither_delete_nor_truncate_memory(table: str, statement: str) -> None:
    with (
        pytest.raises(ProgrammingError, match="permission denied"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement.format(table))


@pytest.mark.parametrize("column", ["text", "scope_id", "stated_by", "created_at", "subject", "confidence"])
def test_the_application_role_cannot_update_what_is_immutable(column: str) -> None:
    with (
        pytest.raises(ProgrammingError, match="permission denied"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(f"UPDATE observations_observation SET {column} = {column}")
