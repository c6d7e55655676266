"""Promotions, summaries, contradictions over time, aliases, the trash and the model, in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from consolidation.models import Alias, Cardinality, Operation, Plan
from consolidation.operations import State
from observations.llm import Answer
from observations.models import GivenKey, Observation
from observations.records import Status
from tests.desk import PASSWORD, item_url, person
from tests.e2e.browser import Watch, shoot
from tests.e2e.test_newcomer import sign_in
from tests.engine import Engine, approve_and_apply, call, engine, unusable

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def mine() -> Engine:
    """A memory of scope team-a/u1, and an operator who may see it."""
    made = engine()
    person("olga", "Operator", "*", password=PASSWORD)
    return made


@pytest.fixture
def olga(chromium: Browser, watch: Watch, live_server: LiveServer, mine: Engine) -> Page:
    """Her browser."""
    return sign_in(chromium, watch, live_server, "olga", PASSWORD)


def test_a_fact_is_read_with_its_witnesses_and_written(olga: Page, mine: Engine) -> None:
    """From the queue to the fact, what it rests on, and the record it becomes; then undo is shown."""
    olga.get_by_role("link", name="Queue", exact=True).click()
    shoot(olga, "queue-engine")
    olga.goto(item_url(mine.promote))
    expect(olga.locator("mark", has_text="the night train to Graz")).to_have_count(3)
    expect(olga.get_by_text("promoted, not user-stated").first).to_be_visible()
    shoot(olga, "promote")
    olga.get_by_role("button", name="Approve and apply").click()
    expect(olga.get_by_role("status").get_by_text("applied")).to_be_visible()
    shoot(olga, "promote-applied")
    olga.get_by_role("link", name="Undo…").click()
    expect(olga.get_by_text("promoting left the episodes as they were")).to_be_visible()
    shoot(olga, "promote-undo")


def test_a_summary_is_read_with_what_it_loses(olga: Page, mine: Engine) -> None:
    """What vanishes is marked where it stood, and undo would bring the episodes back."""
    olga.goto(item_url(mine.compact))
    expect(olga.locator("mark", has_text="120")).to_be_visible()
    expect(olga.locator("mark", has_text="Ben")).to_be_visible()
    shoot(olga, "compact")
    olga.get_by_role("button", name="Approve and apply").click()
    expect(olga.get_by_role("status").get_by_text("applied")).to_be_visible()
    olga.locator(".spoken a.id").first.click()
    expect(olga.get_by_text("Archived: reads see its summary")).to_be_visible()
    shoot(olga, "episode-archived")


def test_values_over_time_are_settled_by_their_periods(olga: Page, mine: Engine) -> None:
    """Nothing is chosen before a person chooses; the days are those of the rows, and can be changed."""
    olga.goto(item_url(mine.supersede))
    expect(olga.get_by_role("radio", checked=True)).to_have_count(0)
    shoot(olga, "supersede")
    olga.get_by_role("radio", name=re.compile("each in its period")).check()
    first = olga.locator('.under input[type="date"]').nth(1)
    expect(first).to_have_value("2019-04-30")
    first.fill("2019-03-31")
    olga.get_by_label("Reason").fill("she moved twice")
    shoot(olga, "supersede-periods")
    olga.get_by_role("button", name="Approve and apply").click()
    expect(olga.get_by_role("status").get_by_text("applied")).to_be_visible()
    rows = Observation.objects.filter(operation_sources__operation=mine.supersede).order_by("pk")
    assert {row.status for row in rows} == {Status.ACTIVE}
    assert f"{rows[0].valid_to:%Y-%m-%d}" == "2019-03-31"


def test_a_predicate_with_several_values_is_learnt(olga: Page, mine: Engine) -> None:
    """The lesson stands on its own page, with the decision that taught it."""
    olga.goto(item_url(mine.supersede))
    olga.get_by_role("radio", name=re.compile("it holds several values")).check()
    olga.get_by_label("Reason").fill("she keeps three flats")
    olga.get_by_role("button", name="Approve and apply").click()
    expect(olga.get_by_role("status").get_by_text("applied")).to_be_visible()
    assert Cardinality.objects.get().holds == "many"
    olga.goto("/admin/consolidation/cardinality/")
    expect(olga.get_by_text("several values at once")).to_be_visible()
    shoot(olga, "learnt")


def test_two_subjects_are_made_one_from_a_records_page(olga: Page, mine: Engine, watch: Watch) -> None:
    """From an observation to the question, its decision, and the list of aliases."""
    olga.goto(item_url(mine.alias))
    shoot(olga, "alias")
    row = Observation.objects.filter(scope=mine.scope, subject="Ann").latest("pk")
    olga.goto(f"/admin/observations/observation/{row.pk}/")
    olga.get_by_role("link", name="All about Ann").click()
    expect(olga.get_by_text("Ann lives in Ghent")).to_be_visible()
    shoot(olga, "about")
    olga.get_by_role("link", name="These two subjects are one…").click()
    shoot(olga, "alias-new")
    olga.get_by_label("is the same as").fill("Anastasia Brandt")
    olga.get_by_role("button", name="Ask for a decision").click()
    expect(olga.get_by_role("status").get_by_text("The question is put")).to_be_visible()
    olga.get_by_label("Reason").fill("the same person")
    olga.get_by_role("button", name="Approve and apply").click()
    expect(olga.get_by_role("alert").get_by_text("who proposes never approves")).to_be_visible()
    watch.refused(olga)
    approve_and_apply(Operation.objects.get(requested_by="olga", claim_subject="ann"), reason="the same person")
    assert Alias.objects.get().subject == "ann"
    olga.goto("/admin/consolidation/alias/")
    expect(olga.get_by_text("anastasia brandt")).to_be_visible()
    shoot(olga, "aliases")


def test_a_given_key_is_withdrawn(olga: Page, mine: Engine) -> None:
    """The key with the words it rests on and its model; withdrawing is asked once more."""
    olga.goto(f"/admin/observations/observation/{mine.given.pk}/")
    expect(olga.locator("mark", has_text="Bo works at Relay")).to_be_visible()
    shoot(olga, "observation-given")
    olga.get_by_role("link", name="Withdraw this key…").click()
    shoot(olga, "key-withdraw")
    olga.get_by_role("button", name="Withdraw this key").click()
    expect(olga.get_by_role("status").get_by_text("Withdrawn")).to_be_visible()
    assert GivenKey.objects.get(observation=mine.given).state == GivenKey.State.WITHDRAWN


def test_the_trash_leads_back(olga: Page, mine: Engine) -> None:
    """What was pruned is seen, with the days it has left, and comes back."""
    olga.goto("/admin/consolidation/operation/trash/")
    expect(olga.get_by_text("29 days left")).to_be_visible()
    shoot(olga, "trash")
    olga.get_by_role("link", name="Undo…").click()
    olga.get_by_role("button", name="Undo it").click()
    expect(olga.locator(".head .chip")).to_have_text("undone")
    assert Operation.objects.get(pk=mine.prune.pk).status == State.UNDONE
    olga.goto("/admin/consolidation/operation/trash/")
    expect(olga.get_by_text("The trash is empty")).to_be_visible()


def test_what_the_model_was_asked_is_seen_in_figures(olga: Page, mine: Engine) -> None:
    """Calls, costs, failures and answers of no use, and the plan that says so."""
    for answer in (Answer.OK, Answer.OK, Answer.UNUSABLE, Answer.HELD):
        call(mine.scope, answer=answer, cost=420_000)
    call(mine.scope, purpose="keys")
    unusable(mine.scope)
    error = "promote: 1 of 3 groups of episodes were not answered."
    plan = Plan.objects.create(
        pattern="team-a/*",
        requested_by="olga",
        trigger="admin",
        state=Plan.State.PARTIAL,
        failures=[{"scope": mine.scope.name, "step": "promote", "error": error, "failed": True}],
        figures={"held_back": 12},
        policies={str(mine.scope.pk): "0" * 64},
        snapshots={"0" * 64: {"pattern": "team-a/*", "version": 3, "body": {}}},
    )
    for number, operation in enumerate((mine.promote, mine.compact, mine.supersede)):
        plan.items.create(scope=mine.scope, operation=operation, position=number)
    olga.goto("/admin/observations/modelcall/")
    expect(olga.get_by_text("1 unusable")).to_be_visible()
    shoot(olga, "model")
    olga.get_by_role("link", name=str(plan)).click()
    expect(olga.get_by_text("Not all of it was planned")).to_be_visible()
    expect(olga.get_by_text("12 more questions held back")).to_be_visible()
    olga.get_by_text("The policies it was made under").click()
    shoot(olga, "plan-engine")


def test_what_has_faded_is_seen_without_colour(olga: Page, mine: Engine) -> None:
    olga.goto(item_url(mine.archive))
    expect(olga.get_by_role("img", name=re.compile("Strength under 0.01 of 1"))).to_be_visible()
    shoot(olga, "archive")
