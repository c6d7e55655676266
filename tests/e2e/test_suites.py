"""A steward makes a suite in a real browser and runs it: the form, the picture of its runs, each probe's outcome."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from consolidation import probing
from consolidation.models import Suite
from observations.models import Observation
from tests import probing as given
from tests.building import observe, scope
from tests.desk import PASSWORD, person
from tests.e2e.browser import Watch, shoot
from tests.e2e.test_newcomer import sign_in

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_steward_makes_a_suite_and_runs_it(chromium: Browser, watch: Watch, live_server: LiveServer) -> None:
    """R26, R112: no console error, no violation of the content policy, nothing wider than the window."""
    here = scope("team-a/u1")
    old = given.suite(here, also=[{"query": "teapot of the tower", "expected": ["lantern-cellar"]}])
    observe("A <script>hostile</script> \u202erow of the bakery", within=here)
    for k in (3, 5, 5):
        probing.run_suite(suite=old, by="ann", k=k)
    person("sven", "Steward", "*", password=PASSWORD)
    page = sign_in(chromium, watch, live_server, "sven", PASSWORD)
    page.get_by_role("link", name="Suites").click()
    shoot(page, "suites")
    page.get_by_role("link", name="New suite").click()
    shoot(page, "suite-new")
    page.get_by_label("Scope").first.select_option("team-a/u1")
    page.get_by_role("button", name="Begin empty").click()
    page.get_by_label("Name of the suite").fill("by hand")
    first = page.get_by_role("group", name="Question 1")
    first.get_by_label("What somebody asks").fill("anvil of the bakery")
    first.get_by_role("button", name="Find").click()
    anvil = Observation.objects.get(external_id="anvil-bakery")
    page.get_by_role("button", name=f"obs_{anvil.pk} should come").click()
    expect(page.get_by_label("Records that should come").first).to_have_value(f"obs_{anvil.pk}")
    shoot(page, "suite-edit")
    page.get_by_role("button", name="Save the suite").click()
    expect(page.get_by_text("1 probes are in force")).to_be_visible()
    assert Suite.objects.in_force().get().name == "by hand"
    page.get_by_role("button", name="Run it now").press("Enter")
    expect(page.get_by_text("Run: recall@5 is 1.0000.")).to_be_visible()
    page.goto(f"/admin/consolidation/suite/{old.pk}/")
    page.get_by_role("button", name="Run it now").click()
    expect(page.get_by_role("img", name="Runs over time")).to_be_visible()
    shoot(page, "suite")
