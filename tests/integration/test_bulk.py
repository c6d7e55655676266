"""One decision over many items: exactly those that were listed, each by itself, and none of them twice (D2, H2)."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from django.test import Client

from consolidation import review
from consolidation.models import BulkDecision, BulkItem, Deferral, Operation, Verdict
from consolidation.operations import Approval, Kind, State
from consolidation.review import Refused
from consolidation.review.bulk import Verb, ask, carry_out, progress, start, stop
from observations import outbox
from observations.models import Event, Scope, ScopeAccess, database_now
from tests.acceptance.boundaries import run_in_child
from tests.building import observe, propose, scope
from tests.desk import client_of, person
from tests.queueing import ask_many, rows_in

pytestmark = pytest.mark.django_db

QUEUE = "admin:consolidation_operation_changelist"
DECIDE = "admin:consolidation_operation_decide"
ASK = "admin:consolidation_operation_bulkask"
BULK = "admin:consolidation_operation_bulk"
CONFIRM = "admin:consolidation_operation_bulkconfirm"
PROGRESS = "admin:consolidation_operation_bulkprogress"


@pytest.fixture
def here() -> Scope:
    """Whose memory it is."""
    return scope("team-a/u1")


@pytest.fixture
def ana(here: Scope) -> Client:
    """A reviewer of team-a."""
    return client_of(person("ana", "Reviewer", "team-a/*"))


def states() -> Counter[str]:
    """Operations by their state."""
    return Counter(Operation.objects.values_list("status", flat=True))


def outcomes(bulk: BulkDecision) -> list[tuple[str, str]]:
    """What became of each item, in order."""
    return list(BulkItem.objects.filter(bulk=bulk).order_by("position").values_list("outcome", "sentence"))


# --- what it covers -------------------------------------------------------------------------------------------------


def test_a_whole_list_is_refused_item_by_item_and_its_reason_leaves(here: Scope, ana: Client) -> None:
    """E.4: each item has its own event and result; the reason stands with the decisions, and nowhere else."""
    ask_many(rows_in(here), 7)
    bulk = ask(verb=Verb.REJECT, among=Operation.objects.all(), by="ana")
    assert (bulk.total, bulk.scopes, states()) == (7, [here.pk], Counter({State.NEEDS_HUMAN: 7}))
    start(bulk=bulk, by="ana", reason="all from a broken rule")
    bulk.refresh_from_db()
    assert outcomes(bulk) == [("done", "rejected")] * 7
    assert (states(), bulk.reason) == (Counter({State.REJECTED: 7}), "")
    assert bulk.finished_at is not None
    assert Event.objects.filter(action="rejected", actor="ana").count() == 7
    assert set(Operation.objects.values_list("decision_reason", flat=True)) == {"all from a broken rule"}


def test_what_arrives_after_the_asking_is_never_decided(here: Scope, ana: Client) -> None:
    """D2: the list is the one of that moment; the control asks again and finds the late one."""
    rows = rows_in(here)
    ask_many(rows, 3)
    bulk = ask(verb=Verb.REJECT, among=Operation.objects.awaiting_review(), by="ana")
    [late] = ask_many(rows, 1)
    start(bulk=bulk, by="ana", reason="no")
    late.refresh_from_db()
    assert (late.status, states()[State.REJECTED]) == (State.NEEDS_HUMAN, 3)
    again = ask(verb=Verb.REJECT, among=Operation.objects.awaiting_review(), by="ana")
    assert list(again.items.values_list("operation_id", flat=True)) == [late.pk]


def test_one_refused_item_never_blocks_the_rest(here: Scope, ana: Client) -> None:
    """E.4: what somebody else decided, what the database refuses, and what is fine, in one go."""
    made = ask_many(rows_in(here), 4)
    bulk = ask(verb=Verb.REJECT, among=Operation.objects.all(), by="ana")
    review.approve(operation=made[1], by="ben")
    start(bulk=bulk, by="ana", reason="no")
    found = outcomes(bulk)
    assert [outcome for outcome, _ in found] == ["done", "refused", "done", "done"]
    assert "ben decided it" in found[1][1]
    made[1].refresh_from_db()
    assert made[1].status == State.APPROVED


def test_different_claims_are_remembered_for_every_item(here: Scope, ana: Client) -> None:
    for n in range(3):
        pair = [observe(f"{word} {n}", within=here) for word in ("Tea", "Coffee")]
        propose(Kind.MERGE, pair, approval=Approval.NEEDS_HUMAN)
    start(bulk=ask(verb=Verb.DISTINCT, among=Operation.objects.all(), by="ana"), by="ana")
    assert (states(), Verdict.objects.count()) == (Counter({State.DISTINCT: 3}), 3)


def test_putting_off_changes_nothing_for_others(here: Scope, ana: Client) -> None:
    ask_many(rows_in(here), 3)
    until = database_now() + timedelta(days=3)
    start(bulk=ask(verb=Verb.DEFER, among=Operation.objects.all(), by="ana", until=until), by="ana")
    assert Deferral.objects.filter(by="ana", until=until).count() == 3
    mine = Scope.objects.all()
    assert (review.waiting_for(by="ana", scopes=mine).count(), review.waiting_for(by="ben", scopes=mine).count()) == (
        0,
        3,
    )


def test_a_whole_list_must_be_of_one_sort(here: Scope) -> None:
    """E.4: kind, scope, rule and band; whatever differs is refused with what to do."""
    rows, other = rows_in(here), rows_in(scope("team-a/u2"))
    [first] = ask_many(rows, 1)
    for [strange] in (
        ask_many(rows, 1, kind=Kind.ARCHIVE),
        ask_many(other, 1),
        ask_many(rows, 1, rule=("same key", "0.99-1")),
    ):
        with pytest.raises(Refused, match="choose one kind, one scope and one rule"):
            ask(verb=Verb.REJECT, among=Operation.objects.filter(pk__in=[first.pk, strange.pk]), by="ana")
    alike = Operation.objects.filter(kind=Kind.MERGE, scope=here, band="0.98-0.99")
    assert ask(verb=Verb.REJECT, among=alike, by="ana").total == 1


def test_only_what_was_shown_is_approved_at_most_fifty_and_only_what_can_be_taken_back(here: Scope) -> None:
    """E.4, D2: never a whole list, never a prune or forget, and no supersede, which needs a choice."""
    rows = rows_in(here)
    made = ask_many(rows, 51)
    shown = {row.pk: review.shown_digest(operation=row) for row in made[:1]}
    with pytest.raises(Refused, match="Only what was shown"):
        ask(verb=Verb.APPROVE, among=Operation.objects.all(), by="ana")
    with pytest.raises(Refused, match="At most 50"):
        ask(verb=Verb.APPROVE, among=Operation.objects.all(), by="ana", shown={row.pk: "0" * 64 for row in made})
    for kind in (Kind.PRUNE, Kind.FORGET, Kind.SUPERSEDE):
        [alone] = ask_many(rows, 1, kind=kind)
        with pytest.raises(Refused, match=f"A {kind} is (approved by itself|not approved)"):
            ask(verb=Verb.APPROVE, among=Operation.objects.all(), by="ana", shown={**shown, alone.pk: "0" * 64})
    assert not BulkDecision.objects.exists()


def test_an_approval_covers_what_was_shown_and_refuses_what_changed(here: Scope, ana: Client) -> None:
    """D2, C11: of two shown items the one whose record moved is refused saying what changed; the other is approved."""
    first, second, third = (
        propose(Kind.MERGE, [observe(f"{n} {x}", within=here) for x in "ab"], approval=Approval.NEEDS_HUMAN)
        for n in range(3)
    )
    shown = {row.pk: review.shown_digest(operation=row) for row in (first, second)}
    bulk = ask(verb=Verb.APPROVE, among=Operation.objects.all(), by="ana", shown=shown)
    start(bulk=bulk, by="ana")
    assert outcomes(bulk) == [("done", "approved")] * 2
    stale = ask(verb=Verb.APPROVE, among=Operation.objects.all(), by="ana", shown={third.pk: "0" * 64})
    start(bulk=stale, by="ana")
    [(outcome, sentence)] = outcomes(stale)
    assert (outcome, "not what was shown" in sentence) == ("refused", True)
    third.refresh_from_db()
    assert third.status == State.NEEDS_HUMAN


# --- who and when ---------------------------------------------------------------------------------------------------


def test_who_may_not_review_or_see_any_more_decides_nothing(here: Scope) -> None:
    """D2: the right is asked for when an item's turn comes, not only when somebody clicked."""
    asker = person("ana", "Reviewer", "team-a/*")
    ask_many(rows_in(here), 2)
    bulk = ask(verb=Verb.REJECT, among=Operation.objects.all(), by="ana")
    ScopeAccess.objects.filter(user=asker).delete()
    start(bulk=bulk, by="ana", reason="no")
    assert outcomes(bulk) == [("refused", "ana may not decide here any more.")] * 2
    assert states() == Counter({State.NEEDS_HUMAN: 2})


def test_it_is_confirmed_by_who_asked_once_and_within_twelve_hours(here: Scope, ana: Client) -> None:
    ask_many(rows_in(here), 1)
    bulk = ask(verb=Verb.REJECT, among=Operation.objects.all(), by="ana")
    with pytest.raises(Refused, match="ana asked for it"):
        start(bulk=bulk, by="ben", reason="no")
    with pytest.raises(Refused, match="needs a reason"):
        start(bulk=bulk, by="ana")
    old = BulkDecision.objects.create(
        verb="reject", by="ana", scopes=[here.pk], total=1, at=database_now() - timedelta(hours=13)
    )
    with pytest.raises(Refused, match="12 hours ago"):
        start(bulk=old, by="ana", reason="no")
    start(bulk=bulk, by="ana", reason="no")
    with pytest.raises(review.AlreadyDecided, match="confirmed before"):
        start(bulk=bulk, by="ana", reason="no")
    assert states() == Counter({State.REJECTED: 1})


def test_stopping_leaves_what_nobody_came_to(here: Scope, ana: Client) -> None:
    ask_many(rows_in(here), 3)
    bulk = ask(verb=Verb.REJECT, among=Operation.objects.all(), by="ana")
    assert stop(bulk=bulk, by="ana") == 3
    assert carry_out(bulk=bulk) == 0
    assert (states(), progress(bulk=bulk).refused) == (Counter({State.NEEDS_HUMAN: 3}), 3)


# --- a worker that dies ---------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_killed_workers_are_followed_by_one_that_goes_on() -> None:
    """kill -9 at one statement after another, each time in a new delivery: every item is decided once, with one event,
    and an item says that it is done exactly when it is decided.
    """
    here = scope("team-a/u1")
    person("ana", "Reviewer", "team-a/*")
    ask_many(rows_in(here), 6)
    bulk = ask(verb=Verb.REJECT, among=Operation.objects.all(), by="ana")
    BulkDecision.objects.filter(pk=bulk.pk).update(reason="no")
    for boundary in (16, 21, 27, 34, 43):
        assert run_in_child(lambda: carry_out(bulk=bulk), kill_at=boundary).code == -9
        assert states()[State.REJECTED] == BulkItem.objects.filter(outcome="done").count() < 6
    assert carry_out(bulk=bulk) == 0
    assert outcomes(bulk) == [("done", "rejected")] * 6
    assert Event.objects.filter(action="rejected").count() == 6


@pytest.mark.django_db(transaction=True)
def test_a_large_one_is_a_workers_and_the_row_of_its_work_says_so() -> None:
    """The request only confirms it; a second delivery finds nothing to do."""
    here = scope("team-a/u1")
    person("ana", "Reviewer", "team-a/*")
    ask_many(rows_in(here), 51)
    bulk = ask(verb=Verb.REJECT, among=Operation.objects.all(), by="ana")
    start(bulk=bulk, by="ana", reason="no")
    assert (states()[State.REJECTED], progress(bulk=bulk).started) == (0, True)
    outbox.work()
    assert states() == Counter({State.REJECTED: 51})
    bulk.refresh_from_db()
    assert progress(bulk=bulk).finished
