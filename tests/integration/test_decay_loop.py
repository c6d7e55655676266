"""Decay whole: planned, applied, undone, refused, and the same question night after night (DESIGN 4)."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import transaction

from consolidation import planner, review, runner
from consolidation.models import Operation, Policy
from consolidation.operations import Approval, Kind, State
from consolidation.runner import Outcome
from observations import outbox, retrieval, store
from observations.models import Observation, Scope, database_now
from observations.records import Claim, MemoryKind, StatedBy, Status, WrittenBy
from tests.building import embed, scope
from tests.integration.planning import memory, operations, plan

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _archives(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that archives; and no worker to wake."""
    monkeypatch.setattr(outbox, "wake", lambda: None)
    Policy.objects.create(pattern="*", body={"archive": True})


def said(text: str, days: float, *, within: Scope, stated_by: StatedBy = StatedBy.AGENT) -> Observation:
    """A state, whose half-life is a week, first said so many days ago."""
    created_at = database_now() - timedelta(days=days)
    claim = Claim(text=text, kind=MemoryKind.STATE, stated_by=stated_by, created_at=created_at)
    with transaction.atomic():
        [written] = store.add_observations(scope=within, claims=[claim], written_by=WrittenBy.IMPORT)
    assert written.id is not None
    embed([written.id], within=within)
    return Observation.objects.get(pk=written.id)


def source(operation: Operation) -> int | None:
    return operation.sources.get().observation_id


def found(within: Scope, query: str) -> list[int]:
    return [hit.id for hit in retrieval.search(scope=within, query=query, k=5, call_site="nearest").hits]


def later(monkeypatch: pytest.MonkeyPatch, days: float) -> datetime:
    """Planning takes place so many days from now."""
    now = database_now() + timedelta(days=days)
    monkeypatch.setattr(planner, "database_now", lambda: now)
    return now


def test_a_faded_row_is_planned_applied_and_comes_back_by_undo() -> None:
    """R62: automatic with the plan, and whole again afterwards; not asked again while nothing changed."""
    here = scope()
    row = said("Waiting on the relay fix", 30, within=here)
    before = memory()
    [archive] = operations(plan())
    assert (archive.kind, archive.approval, archive.status) == (Kind.ARCHIVE, Approval.AUTO, State.PLANNED)
    assert memory() == before, "planning writes nothing"
    assert runner.apply(operation=archive, by="ann").outcome == Outcome.APPLIED
    assert Observation.objects.get(pk=row.pk).status == Status.ARCHIVED
    assert found(here, "relay fix") == []
    assert operations(plan()) == []
    runner.undo(operation=Operation.objects.get(pk=archive.pk), by="ann")
    assert found(here, "relay fix") == [row.pk]
    assert operations(plan()) == []


def test_by_default_nothing_is_archived() -> None:
    """R32."""
    Policy.objects.all().delete()
    said("Waiting on the relay fix", 3_000, within=scope())
    assert operations(plan()) == []


def test_the_same_archive_is_planned_night_after_night_while_nobody_applies_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """C12, R57: one operation however much older and weaker the row has become."""
    here = scope()
    said("Waiting on the relay fix", 30, within=here)
    [first] = operations(plan())
    for night in (1, 2, 50, 400):
        later(monkeypatch, night)
        assert operations(plan()) == [first]
    assert Operation.objects.get().status == State.PLANNED


def test_a_rejected_archive_stays_rejected_while_others_fade_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """One proposal a row: a rejection is of that row, whatever fades next."""
    here = scope()
    kept, fades_next = said("The pager is with Ida", 30, within=here), said("The lift is broken", 20, within=here)
    [archive] = operations(plan())
    assert source(archive) == kept.pk
    review.reject(operation=archive, by="ann", reason="still true")
    later(monkeypatch, 10)
    [next_one] = operations(plan())
    assert source(next_one) == fades_next.pk


def test_a_users_word_and_a_row_in_use_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """R47, C10; and a row that a search handed out last week."""
    here = scope()
    said("I am in Turin this week", 3_000, within=here, stated_by=StatedBy.USER)
    used = said("The lift is broken", 3_000, within=here)
    retrieval.search(scope=here, query="lift", k=1, call_site="context")
    later(monkeypatch, 6)
    assert operations(plan()) == []
    later(monkeypatch, 8)
    assert [source(operation) for operation in operations(plan())] == [used.pk]


def test_a_row_is_taken_by_one_operation_of_a_plan() -> None:
    """A row that has faded and is past its retention is archived or pruned, never both at once."""
    body = {"archive": True, "prune": True, "retention": [{"stated_by": "agent", "older_than_days": 20}]}
    Policy.objects.update(body=body)
    said("The lift is broken", 3_000, within=scope())
    made = operations(plan())
    assert {operation.kind for operation in made} == {Kind.ARCHIVE, Kind.PRUNE}
    [appliable] = [operation for operation in made if operation.status != State.SKIPPED]
    [waiting] = [operation for operation in made if operation.status == State.SKIPPED]
    assert appliable.approval != Approval.NEVER
    assert waiting.skipped_reason.startswith("waits for the next pass")
