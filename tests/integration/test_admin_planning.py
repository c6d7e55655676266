"""Plan now by a worker, its progress, and what a plan's page says of what moved since (E.5)."""

from __future__ import annotations

import json

import pytest
from django.test import override_settings
from django.urls import reverse

from consolidation.admin.plan import planning
from consolidation.models import Plan, Planning
from consolidation.operations import Kind
from consolidation.runner import Outcome
from consolidation.tasks import PLAN_NOW
from observations import outbox
from tests.acceptance.acting import KEY, apply, correct, three
from tests.building import observe, propose, scope
from tests.desk import client_of, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three records are many, so that a worker plans them."""
    monkeypatch.setattr(planning, "IN_REQUEST", 2)


def asked(name: str = "team-a/u1") -> tuple[Planning, str]:
    """A pass asked for by an operator, and the address that the browser was sent to."""
    within = scope(name)
    client = client_of(person("olga", "Operator", "team-a/*"))
    answer = client.post(reverse("admin:consolidation_plan_new"), {"target": f"scope:{within.pk}"})
    row = Planning.objects.get()
    assert answer.headers["Location"] == reverse("admin:consolidation_plan_coming", args=[row.pk])
    return row, answer.headers["Location"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("quick")
def test_a_plan_over_many_records_is_a_workers_and_its_page_says_how_far_it_is() -> None:
    three(scope())
    row, address = asked()
    client = client_of(person("rita", "Reviewer", "team-a/*"))
    assert "Waiting for a worker" in client.get(address).content.decode()
    assert Plan.objects.count() == 0
    payload: dict[str, int | str] = {"planning": row.pk}
    assert outbox.perform(task=PLAN_NOW, scope_id=None, key=str(row), payload=payload).startswith("plan_")
    row.refresh_from_db()
    assert (row.done, row.doing, row.error) == (1, "team-a/u1", "")
    told = client.get(reverse("admin:consolidation_plan_progress", args=[row.pk])).json()
    assert (told["state"], told["plan"]) == ("done", reverse("admin:consolidation_plan_change", args=[row.plan_id]))
    assert client.get(address).headers["Location"] == told["plan"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("quick")
def test_a_worker_that_died_before_it_said_so_makes_no_second_plan() -> None:
    """E1: the plan is stored once, however often the work is delivered."""
    three(scope())
    row, _ = asked()
    payload: dict[str, int | str] = {"planning": row.pk}
    outbox.perform(task=PLAN_NOW, scope_id=None, key=str(row), payload=payload)
    made = Plan.objects.get()
    Planning.objects.filter(pk=row.pk).update(plan=None, finished_at=None)
    assert outbox.perform(task=PLAN_NOW, scope_id=None, key=f"{row} again", payload=payload) == str(made)
    assert Plan.objects.count() == 1


@pytest.mark.usefixtures("quick")
def test_nobody_waits_for_a_plan_of_scopes_that_are_not_theirs() -> None:
    three(scope())
    row, address = asked()
    stranger = client_of(person("zoe", "Operator", "team-b/*"))
    assert stranger.get(address).status_code == 404
    assert stranger.get(reverse("admin:consolidation_plan_progress", args=[row.pk])).status_code == 404


def test_the_json_of_a_plan_is_the_commands_and_holds_nothing_of_scopes_one_may_not_see() -> None:
    mine, theirs = scope("team-a/u1"), scope("team-b/u2")
    plan = Plan.objects.create(
        pattern="*", requested_by="test", trigger="command", failures=[{"scope": theirs.name, "error": "no"}]
    )
    for within in (mine, theirs):
        pair = [observe(f"A shelf of {within.name} holds cables", within=within) for _ in "ab"]
        propose(Kind.MERGE, pair, plan=plan)
    address = reverse("admin:consolidation_plan_json", args=[plan.pk])
    whole = client_of(person("root", superuser=True)).get(address)
    assert whole.headers["Content-Disposition"] == f'attachment; filename="plan_{plan.pk}.json"'
    assert len(whole.json()["operations"]) == 2
    part = client_of(person("rita", "Reviewer", "team-a/*")).get(address)
    assert [operation["scope"] for operation in part.json()["operations"]] == [mine.name]
    assert "team-b" not in json.dumps(part.json())


def test_a_stale_item_shows_what_took_the_place_of_its_source_word_by_word() -> None:
    """C11: "what changed" is a difference, not a sentence."""
    rows = three(scope())
    plan = Plan.objects.create(pattern="team-a/u1", requested_by="test", trigger="command")
    operation = propose(Kind.MERGE, rows, plan=plan)
    correct(rows[1], "The relay sits in rack 9")
    assert apply(operation).outcome == Outcome.STALE
    client = client_of(person("rita", "Reviewer", "team-a/*"))
    shown = client.get(reverse("admin:consolidation_plan_change", args=[plan.pk]), {"show": "closed"}).content.decode()
    assert "What changed since it was planned" in shown
    assert "<del>4</del>" in shown
    assert "<ins>9</ins>" in shown


def test_what_would_be_refused_now_is_said_on_the_page() -> None:
    within = scope()
    plan = Plan.objects.create(pattern="team-a/u1", requested_by="test", trigger="command")
    propose(Kind.MERGE, [observe("The relay sits in rack 4", within=within, key=KEY) for _ in "ab"], plan=plan)
    within.held_at = within.created_at
    within.save(update_fields=["held_at"])
    client = client_of(person("rita", "Reviewer", "team-a/*"))
    shown = client.get(reverse("admin:consolidation_plan_change", args=[plan.pk])).content.decode()
    assert "Would be refused now" in shown
    assert "scope is on hold" in shown


@override_settings(ANTHROPIC_API_KEY="a-key")
def test_where_a_model_is_asked_the_page_does_not_wait() -> None:
    three(scope())
    asked()
