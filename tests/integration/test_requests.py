"""What programs and the pipeline ask for lands in review, once, and is decided by people (C4, I12, R47)."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from consolidation import requests, review, runner, tasks
from consolidation.models import Operation
from consolidation.operations import Approval, Kind, State
from consolidation.review import Refused
from observations import outbox, store
from observations.models import Observation, Scope, Tombstone
from observations.records import StatedBy, Status
from tests.building import observe, propose, scope

pytestmark = pytest.mark.django_db


def deliver(task: str, within: Scope, key: str = "r1", **payload: Any) -> str:
    """As a worker does: through the row."""
    return outbox.perform(task=task, scope_id=within.pk, key=key, payload={"by": "token:abc", **payload})


def approve(operation: Operation, **chosen: object) -> Operation:
    shown = review.shown_digest(operation=operation)
    decision = review.Decision(**chosen)  # type: ignore[arg-type]
    return review.approve(operation=operation, by="rev", digest=shown, decision=decision, reason="seen")


def test_a_bare_delete_becomes_a_question_and_moves_nothing() -> None:
    """C4: a DELETE that brings no replacement is not carried out by the machine."""
    within = scope()
    row = observe("The office plant is watered on Mondays.", within=within)
    assert deliver(tasks.REVIEW_RETIRE, within, observations=[row.pk], why="a later turn denies it") == "1 asked"
    [operation] = Operation.objects.all()
    assert (operation.kind, operation.approval, operation.status) == (
        Kind.ARCHIVE,
        Approval.NEEDS_HUMAN,
        State.NEEDS_HUMAN,
    )
    assert operation.requested_by == "token:abc"
    assert Operation.objects.awaiting_review().count() == 1
    row.refresh_from_db()
    assert row.status == Status.ACTIVE


@pytest.mark.django_db(transaction=True)
def test_what_a_person_agrees_to_retire_leaves_the_reads_and_comes_back() -> None:
    """Also a user's word, because a person decided (I12), and also when it was used since it was asked."""
    within = scope()
    row = observe("Ana likes tea.", within=within, stated_by=StatedBy.USER)
    [operation] = requests.retire(scope=within, ids=[row.pk], by="token:abc", request="r1", why="asked")
    assert runner.apply(operation=operation, by="ops").outcome == "refused", "nobody approved it"
    assert runner.apply(operation=approve(operation), by="ops").outcome == "applied"
    row.refresh_from_db()
    assert row.status == Status.ARCHIVED
    operation.refresh_from_db()
    assert runner.undo(operation=operation, by="ops").outcome == "undone"
    row.refresh_from_db()
    assert row.status == Status.ACTIVE


@pytest.mark.parametrize("task", [tasks.REVIEW_RETIRE, tasks.REVIEW_CONTRADICTION, tasks.REVIEW_FORGET])
def test_a_request_that_is_delivered_twice_asks_once(task: str) -> None:
    """C17: also after it was decided, and another request for the same while one is open asks nothing new."""
    within = scope()
    old, new = observe("Tea at four.", within=within), observe("Tea at five.", within=within)
    payload = {"observations": [old.pk], "old": old.pk, "new": new.pk}
    for key in ("r1", "r1", "r2"):
        deliver(task, within, key=key, **payload)
    [operation] = Operation.objects.all()
    review.reject(operation=operation, by="rev", reason="no")
    deliver(task, within, key="r1", **payload)
    assert Operation.objects.count() == 1
    deliver(task, within, key="r3", **payload)
    assert Operation.objects.count() == 2, "a new request after a no is a new question"


def test_a_claim_from_elsewhere_waits_beside_the_one_it_contradicts() -> None:
    """Both stay current until a person picks; the newer is suggested, never assumed."""
    within = scope()
    old, new = observe("Ships on Fridays.", within=within), observe("Ships on Mondays.", within=within)
    deliver(tasks.REVIEW_CONTRADICTION, within, old=old.pk, new=new.pk)
    operation = Operation.objects.get()
    assert operation.kind == Kind.SUPERSEDE
    assert operation.product["suggested_keep"] == new.pk
    assert runner.apply(operation=approve(operation, keep=new.pk), by="ops").outcome == "applied"
    old.refresh_from_db()
    assert (old.status, old.superseded_by_id) == (Status.SUPERSEDED, new.pk)


def test_without_a_key_the_answer_that_it_holds_several_values_is_refused_with_what_to_say_instead() -> None:
    """There is no predicate to learn from. That they are different claims is remembered; both stay current."""
    within = scope()
    old, new = observe("Ana plays chess.", within=within), observe("Ana plays go.", within=within)
    operation = requests.settle(scope=within, ids=[old.pk, new.pk], by="intake", request="r1", why="x")
    assert operation is not None
    with pytest.raises(Refused, match="have none: say that they are different claims"):
        approve(operation, many_valued=True)
    review.distinct(operation=operation, by="rev")
    assert Observation.objects.active().count() == 2


def test_a_question_about_rows_that_left_meanwhile_is_not_asked() -> None:
    """Fewer than two current claims contradict nothing."""
    within = scope()
    old, new = observe("Ships on Fridays.", within=within), observe("Ships on Mondays.", within=within)
    with transaction.atomic():
        store.lock_scope(scope_id=within.pk, cause="test")
        store.move(scope_id=within.pk, ids=[old.pk], to=Status.ARCHIVED)
    assert "not current" in deliver(tasks.REVIEW_CONTRADICTION, within, old=old.pk, new=new.pk)
    assert "current" in deliver(tasks.REVIEW_RETIRE, within, observations=[old.pk])
    assert not Operation.objects.exists()


def test_rows_of_another_scope_are_never_asked_about() -> None:
    """C6: a payload that names them finds nothing."""
    within, other = scope("team/a"), scope("team/b")
    row = observe("Theirs.", within=other)
    deliver(tasks.REVIEW_RETIRE, within, observations=[row.pk])
    deliver(tasks.REVIEW_FORGET, within, observations=[row.pk])
    assert not Operation.objects.exists()


def test_a_request_to_forget_lists_all_that_was_derived_and_erases_nothing() -> None:
    """It lands in review with its closure; this version does not carry it out, says so, and it can be rejected."""
    within = scope()
    a, b = (observe("The relay hums.", within=within) for _ in "ab")
    merged = propose(Kind.MERGE, [a, b])
    assert runner.apply(operation=merged, by="ops").outcome == "applied"
    merged.refresh_from_db()
    observe("Something else.", within=within)
    deliver(tasks.REVIEW_FORGET, within, observations=[a.pk])
    operation = Operation.objects.get(kind=Kind.FORGET)
    assert {source.observation_id for source in operation.sources.all()} == {a.pk, merged.derived_id}
    assert operation.product["rows"] == 2
    assert operation.reason == "asked to forget: 1 row, 2 with all that was derived from them"
    with pytest.raises(Refused, match="does not carry one out"):
        approve(operation)
    assert runner.apply(operation=operation, by="ops").outcome == "refused"
    assert not Tombstone.objects.exists()
    review.reject(operation=operation, by="rev", reason="kept by law")


def test_forgetting_everything_counts_every_row_that_has_words() -> None:
    """C18's request: all statuses but erased, of this scope only."""
    within, other = scope("team/a"), scope("team/b")
    rows = [observe(f"Note {n}.", within=within) for n in range(5)]
    observe("Theirs.", within=other)
    with transaction.atomic():
        store.lock_scope(scope_id=within.pk, cause="test")
        store.move(scope_id=within.pk, ids=[rows[0].pk], to=Status.ARCHIVED)
        store.erase(scope_id=within.pk, ids=[rows[1].pk], by="ana", reason="asked", request="forget:1")
    deliver(tasks.REVIEW_FORGET, within, all=1)
    operation = Operation.objects.get()
    assert operation.product["rows"] == operation.n_sources == 4
    assert operation.product["all"] is True


@pytest.mark.parametrize("payload", [{}, {"observations": "1"}, {"observations": [True]}, {"observations": ["1"]}])
def test_a_payload_that_names_no_rows_is_refused_and_kept_as_such(payload: dict[str, Any]) -> None:
    """A failed step is shown as failed, never as nothing to do."""
    assert deliver(tasks.REVIEW_RETIRE, scope(), **payload) == outbox.REFUSED
