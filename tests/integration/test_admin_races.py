"""Two people, or two clicks, at once over two connections: one decision, one application (C16); and planning."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection, connections
from django.test import Client
from django.urls import reverse

from consolidation import pausing, review
from consolidation.admin.plan import screen as plans
from consolidation.models import Operation, Plan, Policy
from consolidation.operations import Approval, Kind, State
from observations.models import Event, Observation, Outbox
from observations.records import Status
from tests.building import observe, propose, scope
from tests.desk import client_of, decide, item_url, person, world

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 12


def at_once(*acts: Callable[[], int]) -> list[int]:
    """Run every act in a thread with a connection of its own, all released together; what each returned."""
    gate = Barrier(len(acts))

    def run(act: Callable[[], int]) -> int:
        gate.wait()
        try:
            return act()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


def post(client: Client, operation: Operation, verb: str) -> Callable[[], int]:
    """One click, prepared: the digest is what the page showed before anybody clicked."""
    data = {"verb": verb, "digest": review.shown_digest(operation=operation), "reason": "because"}
    return lambda: client.post(item_url(operation, "decide_one"), data).status_code


def test_of_an_approval_and_a_rejection_at_once_one_is_kept() -> None:
    """C16: in every round one is let through, the other is told with a 409, and events agree with the state."""
    ana, ben = (client_of(person(name, "Reviewer", "*")) for name in ("ana", "ben"))
    for number in range(ROUNDS):
        row = observe(f"Queue was long {number}", within=scope())
        prune = propose(Kind.PRUNE, [row], approval=Approval.NEEDS_HUMAN)
        answers = at_once(post(ana, prune, "approve"), post(ben, prune, "reject"))
        assert sorted(answers) == [302, 409]
        prune.refresh_from_db()
        won = State.APPROVED if answers[0] == 302 else State.REJECTED
        assert (prune.status, prune.decided_by) == (won, "ana" if won == State.APPROVED else "ben")
        assert list(Event.objects.filter(subject=prune.op_id).values_list("action", flat=True)) == [won]
        row.refresh_from_db()
        assert row.status == Status.ACTIVE


def test_a_double_click_over_two_connections_applies_once() -> None:
    """C16: both clicks end on the item's page; one approval, one application, one merged record."""
    olga = client_of(person("olga", "Operator", "*"))
    for number in range(ROUNDS):
        pair = [observe(f"{text} {number}", within=scope()) for text in ("Tea", "tea!")]
        merge = propose(Kind.MERGE, pair, approval=Approval.NEEDS_HUMAN)
        click = post(olga, merge, "approve_apply")
        assert at_once(click, click) == [302, 302]
        merge.refresh_from_db()
        assert merge.status == State.APPLIED
        events = Event.objects.filter(subject=merge.op_id).order_by("id").values_list("action", flat=True)
        assert list(events) == ["approved", "applied"]
        assert Observation.objects.filter(produced_by=f"{merge.op_id}#1").count() == 1


# --- planning, which needs a transaction of its own ------------------------------------------------------------------


def snapshot() -> list[tuple[object, ...]]:
    """Every memory row as it stands."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT o.* FROM observations_observation o ORDER BY id")
        return list(cursor.fetchall())


def test_plan_now_proposes_and_changes_no_memory() -> None:
    """C12: the button stores a plan by who pressed it; memory is as it was, and pressing again adds no copy."""
    olga = client_of(person("olga", "Operator", "team-a/*"))
    within = scope()
    for text in ("The gate opens at 9.", "the gate opens at nine"):
        observe(text, within=within, key=("gate", "opens at", "9"))
    before = snapshot()
    for _ in range(2):
        answer = olga.post(reverse("admin:consolidation_plan_new"), {"target": f"scope:{within.pk}"}, follow=True)
        assert "Nothing has been changed" in answer.content.decode()
    assert snapshot() == before
    assert list(Plan.objects.values_list("requested_by", "trigger").distinct()) == [("olga", "admin")]
    assert Operation.objects.count() == 1


def test_an_empty_scope_has_nothing_to_do() -> None:
    """R79: the plan page says so."""
    olga = client_of(person("olga", "Operator", "team-a/*"))
    scope()
    answer = olga.post(reverse("admin:consolidation_plan_new"), {"target": "pattern:team-a/*"}, follow=True)
    assert "Nothing to do" in answer.content.decode()


@pytest.mark.parametrize("target", ["scope:999", "scope:x", "pattern:*", "pattern:team-b/*", "", "scope:" + "9" * 40])
def test_nobody_plans_what_they_may_not_see(target: str) -> None:
    """I2p: a pattern or scope of others is refused with a sentence, and no plan is stored."""
    olga = client_of(person("olga", "Operator", "team-a/*"))
    observe("theirs", within=scope("team-b/u1"))
    answer = olga.post(reverse("admin:consolidation_plan_new"), {"target": target}, follow=True)
    assert "no such scope" in answer.content.decode()
    assert not Plan.objects.exists()


def test_planning_while_paused_is_refused_with_a_sentence() -> None:
    """The pause holds for the button too."""
    olga = client_of(person("olga", "Operator", "*"))
    observe("something", within=scope())
    pausing.pause(scope=None, by="root")
    answer = olga.post(reverse("admin:consolidation_plan_new"), {"target": "pattern:*"}, follow=True)
    assert "paused by root" in answer.content.decode()


def test_a_large_plan_is_handed_to_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page does not wait for hundreds of transactions: the work is a row in the outbox, in the name of who asked."""
    monkeypatch.setattr(plans, "AT_ONCE", 0)
    mine = world()
    olga = client_of(person("olga", "Operator", "team-a/*"))
    address = reverse("admin:consolidation_plan_apply", args=[mine.plan.pk])
    shown = f"{mine.automatic.pk}:{review.shown_digest(operation=mine.automatic)}"
    olga.post(address, {"shown": olga.get(address).context["whole"].shown})
    row = Outbox.objects.get(task="apply_plan")
    assert row.payload == {"plan": mine.plan.pk, "by": "olga", "confirmed": 0, "shown": shown}


def test_a_policy_that_cannot_be_read_closes_no_page() -> None:
    """Bad input: every page still opens, says what is wrong, and offers nothing that would be refused."""
    mine = world()
    olga = client_of(person("olga", "Operator", "team-a/*"))
    Policy.objects.create(pattern="team-a/*", body={"no_such_field": 1})
    page = olga.get(item_url(mine.merge)).content.decode()
    assert "cannot be read" in page
    assert 'value="approve"' not in page
    assert olga.get(reverse("admin:consolidation_operation_changelist")).context["decidable"] == 0
    for name in ("plan_change", "plan_apply", "plan_undo"):
        answer = olga.get(reverse(f"admin:consolidation_{name}", args=[mine.plan.pk]), follow=True)
        assert answer.status_code == 200, name
    assert "cannot be read" in olga.get(item_url(mine.applied, "undo")).content.decode()
    assert decide_safely(olga, mine.merge) == 409


def decide_safely(client: Client, operation: Operation) -> int:
    """Post an approval with a digest that was good a moment ago."""
    return decide(client, operation, "approve", digest="0" * 64)[0]
