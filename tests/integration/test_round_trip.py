"""Nothing that a store says of its memory is lost by an export and its import: compared column by column, so that a
column nobody thought of is noticed.
"""

from __future__ import annotations

import json

import pytest
from django.db import connection

from consolidation import invariants
from observations import ingest
from observations.models import Episode, Evidence, GivenKey, Lineage, Observation
from tests.conftest import empty_the_store
from tests.everything import a_store_with_everything
from tests.jsonl import exported

pytestmark = pytest.mark.django_db(transaction=True)

# Of each table: what is another store's own, and no part of what is remembered.
_OWN = {
    Observation: {"id", "recorded_at", "version"},
    Episode: {"id", "recorded_at", "version"},
    Evidence: {"id"},
    Lineage: {"id", "imported"},  # an imported edge says so
    GivenKey: {"id"},
}
_NAMED = {
    "scope_id": "(SELECT name FROM observations_scope WHERE id = t.scope_id)",
    **dict.fromkeys(
        ("observation_id", "superseded_by_id", "derived_id", "source_observation_id"),
        "(SELECT external_id FROM observations_observation WHERE id = t.{column})",
    ),
    **dict.fromkeys(
        ("episode_id", "source_episode_id"), "(SELECT external_id FROM observations_episode WHERE id = t.{column})"
    ),
}


def remembered() -> dict[str, list[str]]:
    """Every row of memory with every column, rows named by their external ids."""
    found = {}
    with connection.cursor() as cursor:
        for model, own in _OWN.items():
            columns = sorted({str(field.column) for field in model._meta.concrete_fields} - own)
            values = ", ".join(_NAMED.get(column, "t.{column}").format(column=column) for column in columns)
            cursor.execute(f"SELECT jsonb_build_array({values})::text FROM {model._meta.db_table} t")
            found[model.__name__] = sorted(row for (row,) in cursor.fetchall())
    return found


def test_the_world_that_is_sent_through_holds_what_the_engine_makes() -> None:
    """Else the test below proves nothing about it."""
    a_store_with_everything()
    rows = [json.loads(line) for line in exported()]
    assert {row.get("derivation") for row in rows} >= {"merge", "promote", "compact"}
    assert {row.get("memory_kind") for row in rows} >= {"preference", "identity", "state", "episode", "note"}
    assert {row["given_key"]["state"] for row in rows if "given_key" in row} >= {"given", "none", "unusable"}
    assert {row.get("status", "active") for row in rows if row["kind"] == "episode"} == {"active", "archived"}
    assert any(part.get("episode") for row in rows for part in row.get("evidence", ()))
    assert any(row.get("half_life_days") for row in rows)


def test_no_column_of_memory_is_lost_by_an_export_and_its_import() -> None:
    """G3: observations, episodes, evidence, lineage and given keys."""
    a_store_with_everything()
    before, lines = remembered(), exported()
    assert all(before.values())
    empty_the_store()
    report = ingest.import_lines(lines)
    assert (report.added, report.refused) == (len(lines), [])
    after = remembered()
    for table, rows in before.items():
        assert after[table] == rows, table
    assert invariants.check() == []


def test_a_store_that_went_through_twice_says_the_same_as_after_once() -> None:
    a_store_with_everything()
    lines = exported()
    for _ in range(2):
        empty_the_store()
        ingest.import_lines(lines)
        again = exported()
        assert again == lines
        lines = again
