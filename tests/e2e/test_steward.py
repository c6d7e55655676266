"""A steward sets the rules in a real browser, by keyboard: four questions, a change of policy, a calibration."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from consolidation import calibrating
from consolidation.calibration import measure, propose
from consolidation.models import Policy
from consolidation.policy import Policy as Rules
from consolidation.policy import Trigger
from observations.embedding import HASHING
from tests.building import scope
from tests.desk import PASSWORD, person
from tests.e2e.browser import Watch, shoot
from tests.e2e.test_newcomer import sign_in

pytestmark = pytest.mark.django_db(transaction=True)


def calibration() -> int:
    """Something measured, with a curve to look at."""
    steps = [0.80 + number / 2_000 for number in range(400)]
    found = measure(
        duplicates=[True] * 400 + [False] * 1_200,
        cosines=[cosine**0.6 for cosine in steps] + steps * 3,
        objected=[number % 3 == 0 for number in range(400)] + [True] * 1_200,
        identical=[False] * 1_600,
    )
    return calibrating.store(profile=HASHING, measured=found, proposed=propose(measured=found), by="carl").pk


def test_a_steward_sets_the_rules_by_keyboard(chromium: Browser, watch: Watch, live_server: LiveServer) -> None:
    """R32, R33: no console error, no violation of the content policy, nothing wider than the window."""
    scope("team-a/u1")
    measured = calibration()
    person("sven", "Steward", "*", password=PASSWORD)
    page = sign_in(chromium, watch, live_server, "sven", PASSWORD)
    the_questions_are_answered(page)
    a_change_is_looked_at_and_saved(page)
    the_history_gives_it_back(page)
    the_scope_says_what_holds(page)
    page.get_by_role("link", name="Calibrations").click()
    shoot(page, "calibrations")
    page.goto(f"/admin/consolidation/calibration/{measured}/")
    expect(page.get_by_role("img", name="Share of duplicates found")).to_be_visible()
    shoot(page, "calibration")
    page.get_by_role("button", name="Let it merge without a person").press("Enter")
    expect(page.get_by_text("merges by key from 0.95 on.")).to_be_visible()


def the_questions_are_answered(page: Page) -> None:
    """Every question is reached by Tab and answered by Space and the arrow keys."""
    page.get_by_role("link", name="Policies").click()
    page.get_by_role("link", name="Answer four questions").click()
    shoot(page, "questions")
    page.get_by_label("For which scopes").select_option("team-a/u1")
    never = page.get_by_role("group", name="What must never be touched?")
    never.get_by_label("Identity: who somebody is").press("Space")
    page.get_by_label("For how many days must records be kept as they are?").fill("30")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")  # from "Not decided" to the next answer
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    expect(page.get_by_label("How many new records make a plan")).to_be_focused()
    page.keyboard.type("40")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Answered: the policy of team-a/u1 is version 1.")).to_be_visible()
    shoot(page, "policy")
    held = Rules.from_dict(Policy.objects.get().body)
    assert (held.keep_days, held.trigger, list(held.untouchable)) == (30, Trigger.RECORDS, ["identity"])


def a_change_is_looked_at_and_saved(page: Page) -> None:
    """What changes is shown first; saving is a second step."""
    page.get_by_role("link", name="Change", exact=True).click()
    shoot(page, "policy-form")
    page.get_by_label("Compact episodes into summaries").press("Space")
    page.get_by_role("group", name="Rule 1").get_by_label("Stated by").select_option("tool")
    page.get_by_role("group", name="Rule 1").get_by_label("Older than, in days").fill("540")
    page.get_by_role("button", name="Show what changes").press("Enter")
    changes = page.get_by_role("status").filter(has_text="What changes")
    expect(changes.get_by_role("row", name="Compact episodes into summaries off on")).to_be_visible()
    expect(changes.get_by_role("row", name="Rules of age for pruning none tool, older than 540 days")).to_be_visible()
    shoot(page, "policy-changes")
    assert Policy.objects.get().version == 1
    page.get_by_role("button", name="Save version 2").press("Enter")
    expect(page.get_by_text("Version 2 of the policy of team-a/u1 is saved.")).to_be_visible()


def the_history_gives_it_back(page: Page) -> None:
    """Version 1 again, as version 3."""
    page.get_by_role("link", name="History").click()
    shoot(page, "policy-history")
    page.get_by_role("link", name="Restore version 1").click()
    page.get_by_role("button", name="Save version 3").press("Enter")
    expect(page.get_by_text("Version 3 of the policy of team-a/u1 is saved.")).to_be_visible()
    assert Rules.from_dict(Policy.objects.get().body).compact is False


def the_scope_says_what_holds(page: Page) -> None:
    """From the list to the scope's own page."""
    page.get_by_role("navigation", name="Places").get_by_role("link", name="Policies").click()
    shoot(page, "policies")
    page.get_by_role("row", name="team-a/u1 team-a/u1").get_by_role("link").first.click()
    expect(page.get_by_role("heading", name="What holds for team-a/u1")).to_be_visible()
    shoot(page, "policy-holds")
