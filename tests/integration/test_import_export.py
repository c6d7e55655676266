"""An export imports into an equal store: every status, every edge, in any order of crashes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
from django.db import connection, transaction

from consolidation import invariants
from observations import ingest, store
from observations.ingest import importing
from observations.models import Lineage, Observation, Transition
from observations.records import Status
from tests.building import observe, scope
from tests.conftest import empty_the_store
from tests.everything import a_store_with_everything
from tests.jsonl import derived, exported, imported, observation, past

# --- history --------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_history_gets_its_status_wherever_its_successor_stands_in_the_file() -> None:
    history = [past("a", "superseded", superseded_by="b"), past("b", "archived", superseded_by="c")]
    report = imported(*history, past("c", "active"))
    assert (report.added, report.refused) == (3, [])
    assert [observation(name).status for name in "abc"] == ["superseded", "archived", "active"]
    assert observation("a").superseded_by == observation("b")
    assert not invariants.check()


@pytest.mark.django_db
def test_history_without_its_successor_is_held_back_until_a_file_brings_it() -> None:
    report = imported(past("a", "superseded", superseded_by="b"))
    assert report.added == 0
    [(number, reason)] = report.refused
    assert (number, reason.split(";")[0]) == (1, "superseded_by names 'b', which is neither stored nor in the file")
    assert observation("a").status == Status.QUARANTINED  # nobody reads it as current meanwhile
    report = imported(past("a", "superseded", superseded_by="b"), past("b", "active"))
    assert (report.added, report.already_there, report.refused) == (1, 1, [])
    assert observation("a").status == Status.SUPERSEDED


@pytest.mark.django_db
def test_successors_that_run_in_a_circle_are_refused_and_the_others_settle() -> None:
    """I6."""
    circle = [past("a", "superseded", superseded_by="b"), past("b", "archived", superseded_by="a")]
    report = imported(*circle, past("x", "superseded", superseded_by="y"), past("y", "active"))
    assert len(report.refused) == 1
    assert "leads back to the row itself" in report.refused[0][1]
    assert observation("x").status == Status.SUPERSEDED
    assert not invariants.check()


@pytest.mark.django_db
def test_an_imported_derived_row_brings_its_lineage_and_needs_no_operation() -> None:
    """R49, I1: its operation lives in the other store."""
    rows = [past("a", "archived", superseded_by="m"), past("b", "archived", superseded_by="m"), derived("m", "a", "b")]
    report = imported(*rows)
    assert report.refused == []
    assert Lineage.objects.filter(derived=observation("m"), imported=True, operation="op_1#1").count() == 2
    assert not invariants.check()


@pytest.mark.django_db
def test_a_file_cannot_launder_outside_text_into_a_users_word() -> None:
    """I12: a derived row is never trusted above the lowest of its sources."""
    report = imported(
        {"id": "a", "text": "a", "stated_by": "outside"},
        {"id": "b", "text": "b", "stated_by": "user"},
        derived("m", "a", "b", stated_by="user"),
    )
    assert report.refused == [(3, "stated_by is higher than that of 'a', which it derives from")]
    assert not Observation.objects.filter(external_id="m").exists()


@pytest.mark.django_db
def test_lineage_names_earlier_lines_only_so_it_cannot_run_in_a_circle() -> None:
    report = imported(derived("m", "a"), {"id": "a", "text": "a"})
    assert report.refused == [(1, "lineage names 'a', which is neither stored nor on an earlier line")]


@pytest.mark.django_db
def test_a_row_that_moved_here_is_not_moved_by_an_older_file() -> None:
    imported(past("a", "active"), past("b", "active"))
    [row] = Observation.objects.filter(external_id="a")
    store.move(scope_id=row.scope_id, ids=[row.pk], to=Status.ARCHIVED)
    report = imported(past("a", "superseded", superseded_by="b"), past("b", "active"))
    assert report.already_there == 2
    assert observation("a").status == Status.ARCHIVED


# --- export and back ------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_importing_an_export_into_an_empty_store_gives_an_equal_store() -> None:
    """G3: lossless, whatever the rows have been through."""
    a_store_with_everything()
    before = exported()
    statuses = {json.loads(line).get("status") for line in before}
    assert statuses >= {"active", "superseded", "archived", "retracted", "quarantined", "erased"}
    empty_the_store()
    report = ingest.import_lines(before)
    assert (report.added, report.refused) == (len(before), [])
    assert exported() == before
    assert not invariants.check()


@pytest.mark.django_db(transaction=True)
def test_importing_an_export_where_it_came_from_changes_nothing() -> None:
    a_store_with_everything()
    before, moves = exported(), Transition.objects.count()
    report = ingest.import_lines(before)
    assert (report.added, report.already_there, report.refused) == (0, len(before), [])
    assert (exported(), Transition.objects.count()) == (before, moves)


@pytest.mark.django_db(transaction=True)
def test_an_import_that_was_cut_off_anywhere_is_completed_by_running_it_again() -> None:
    """Nothing that was only half imported is ever read as current."""
    a_store_with_everything()
    before = exported()
    active = {row["id"] for row in map(json.loads, before) if row.get("status", "active") == "active"}
    for cut in range(0, len(before), 3):
        empty_the_store()
        with pytest.raises(KeyboardInterrupt):
            ingest.import_lines(_cut_off(before, cut))
        assert set(Observation.objects.active().values_list("external_id", flat=True)) <= active
        ingest.import_lines(before)
        assert exported() == before, cut


def _cut_off(rows: list[str], at: int) -> Iterator[str]:
    """Every line its own batch, then the end of the process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importing, "BATCH", 1)
        yield from rows[:at]
        raise KeyboardInterrupt


@pytest.mark.django_db(transaction=True)
def test_a_long_history_settles_across_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "BATCH", 7)
    chain = [past(f"r{n}", "superseded", superseded_by=f"r{n + 1}") for n in range(40)]
    report = imported(*chain, past("r40", "active"))
    assert report.refused == []
    assert Observation.objects.filter(status=Status.SUPERSEDED).count() == 40
    assert not invariants.check()


@pytest.mark.django_db(transaction=True)
def test_an_export_is_one_snapshot_however_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    here = scope()
    for n in range(3):
        observe(f"row {n}", within=here, external_id=f"r{n}")
    monkeypatch.setattr("observations.ingest.exporting.CHUNK", 1)
    reading = ingest.export_lines(scopes=[here])
    first = next(reading)
    _in_a_thread(lambda: imported({"id": "late", "text": "late"}))
    rest = [row["id"] for row in reading]
    assert (first["id"], rest) == ("r0", ["r1", "r2"])


@pytest.mark.django_db
def test_an_export_holds_the_scopes_asked_for_and_no_other() -> None:
    """C6."""
    for name in ("a", "b", "b/c"):
        imported({"text": f"of {name}"}, scope=name)
    assert {json.loads(line)["scope"] for line in exported("b")} == {"b"}


@pytest.mark.django_db
def test_a_fresh_export_holds_no_text_of_an_erased_row() -> None:
    here = scope()
    row = observe("My code is 4417", within=here, external_id="x", sources=["doc://1"])
    with transaction.atomic():
        store.erase(scope_id=here.pk, ids=[row.pk], by="Ana", reason="asked", request="forget:1")
    [line] = exported()
    assert "4417" not in line
    assert json.loads(line)["erased"] == {"by": "Ana", "reason": "asked", "request": "forget:1"}


def _in_a_thread(work: object) -> None:
    def run() -> None:
        try:
            work()  # type: ignore[operator]
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
