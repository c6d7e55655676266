"""A newcomer walks through the demo in a real browser: reads the plan, approves, rejects, applies, undoes, looks."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from consolidation.models import Operation
from consolidation.operations import Approval, Kind, State
from memory_site.demo.loading import load
from observations.models import Event, Observation
from observations.records import Status
from tests.building import observe, propose, scope
from tests.desk import PASSWORD, person
from tests.e2e.browser import Watch, shoot

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("real_embedder")]


@dataclass(frozen=True)
class Demo:
    """What `make demo` prints: the plan that waits, and the logins."""

    plan: str
    logins: dict[str, str]


@pytest.fixture
def demo() -> Demo:
    """The demo, loaded as `make demo` loads it."""
    loaded = load(say=lambda _: None)
    return Demo(plan=str(loaded.plan), logins=dict(re.findall(r"^  (\w+) +(\S+) ", loaded.logins, re.M)))


def sign_in(browser: Browser, watch: Watch, server: LiveServer, name: str, word: str) -> Page:
    """A fresh browser window in which somebody signed in through the login page."""
    page = watch.over(browser.new_context(base_url=server.url).new_page())
    page.goto("/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(word)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Memory under review")).to_be_visible()
    return page


def open_item(page: Page, tab: str, kind: str) -> Operation:
    """From the queue to the first item of a kind, as a person goes there."""
    page.get_by_role("link", name="Queue", exact=True).click()
    page.get_by_role("navigation", name="Parts of the queue").get_by_role("link", name=re.compile(tab)).click()
    page.wait_for_url(re.compile("show="), wait_until="load")  # its script has run: a chosen filter applies at once
    page.get_by_label("Kind").select_option(kind)
    page.wait_for_url(re.compile(f"kind={kind}"))
    page.locator("[data-open]").first.click()
    page.wait_for_url(re.compile(r"/operation/\d+/$"))
    return Operation.objects.get(pk=int(page.url.rstrip("/").rpartition("/")[2]))


def test_a_newcomer_reviews_a_plan(chromium: Browser, watch: Watch, live_server: LiveServer, demo: Demo) -> None:
    """The path of the README, with no console error and no violation of the content policy on any page."""
    ana = sign_in(chromium, watch, live_server, "ana", demo.logins["ana"])
    shoot(ana, "desk")
    the_plan_is_read(ana, demo.plan)
    approved = a_contradiction_is_approved(ana)
    rejected = a_merge_is_rejected(ana)
    assert (rejected.status, rejected.decided_by) == (State.REJECTED, "ana")
    olga = sign_in(chromium, watch, live_server, "olga", demo.logins["olga"])
    what_was_approved_waits_and_is_applied(olga, approved)
    merged = an_automatic_merge_is_applied(olga)
    an_observation_shows_its_past(olga, merged)
    the_merge_is_undone(olga, merged)


def the_plan_is_read(page: Page, name: str) -> None:
    """The plan page: counts by kind, items with their states, the printed plan."""
    page.get_by_role("link", name="Plans", exact=True).click()
    expect(page.get_by_role("heading", name="Plans")).to_be_visible()
    shoot(page, "plans")
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    page.get_by_text("The printed plan").click()
    printed = page.locator("pre.printout")
    expect(printed).to_contain_text("MERGE")
    expect(printed).to_contain_text("Nothing has been changed.")
    shoot(page, "plan")


def a_contradiction_is_approved(page: Page) -> Operation:
    """Both claims side by side, what differs marked; one is kept, for a reason; nothing changes in memory yet."""
    operation = open_item(page, "Needs a person", Kind.SUPERSEDE)
    expect(page.locator(".source")).to_have_count(operation.n_sources)
    expect(page.locator(".source mark").first).to_be_visible()
    shoot(page, "contradiction")
    page.get_by_role("radio", name=re.compile(f"Keep obs_{operation.keeper_id}")).check()
    page.get_by_label("Reason").fill("the newer one was confirmed on the call")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_role("status").get_by_text("is approved")).to_be_visible()
    operation.refresh_from_db()
    assert (operation.status, operation.decided_by) == (State.APPROVED, "ana")
    rows = Observation.objects.filter(operation_sources__operation=operation)
    assert {row.status for row in rows} == {Status.ACTIVE}
    return operation


def a_merge_is_rejected(page: Page) -> Operation:
    """A rejection needs a reason: without one the page says so and nothing is decided."""
    operation = open_item(page, "Needs a person", Kind.MERGE)
    shoot(page, "merge")
    expect(page.get_by_role("button", name="Apply")).to_have_count(0)
    page.get_by_label("Reason").fill("these are two different weeks")
    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_role("status").get_by_text("is rejected")).to_be_visible()
    operation.refresh_from_db()
    return operation


def what_was_approved_waits_and_is_applied(page: Page, operation: Operation) -> None:
    """The list "approved, not applied" holds it; the operator applies it."""
    found = open_item(page, "Approved, not applied", Kind.SUPERSEDE)
    assert found.pk == operation.pk
    expect(page.get_by_text("the newer one was confirmed on the call")).to_be_visible()
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_role("status").get_by_text("applied")).to_be_visible()
    operation.refresh_from_db()
    assert (operation.status, operation.applied_by) == (State.APPLIED, "olga")


def an_automatic_merge_is_applied(page: Page) -> Operation:
    """An automatic item is applied by itself from its page."""
    operation = open_item(page, "Automatic", Kind.MERGE)
    shoot(page, "automatic")
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_role("link", name="Undo…")).to_be_visible()
    operation.refresh_from_db()
    assert operation.status == State.APPLIED
    return operation


def an_observation_shows_its_past(page: Page, merged: Operation) -> None:
    """From the item to the record it wrote: its versions, its lineage with the operation, the journal of a source."""
    page.get_by_role("link", name=f"obs_{merged.derived_id}").click()
    versions = page.locator(".chain > li")
    expect(versions).to_have_count(1 + merged.n_sources)
    expect(versions.first).to_contain_text("this one")
    expect(page.locator(".lineage")).to_contain_text("merge")
    shoot(page, "observation")
    versions.last.get_by_role("link", name=re.compile("^obs_")).click()
    expect(page.get_by_text("Not current.")).to_be_visible()
    journal = page.locator("section", has=page.get_by_role("heading", name="Journal"))
    expect(journal).to_contain_text("archived")
    page.locator(".lineage").get_by_role("link", name=re.compile("^op_")).first.click()
    expect(page).to_have_url(re.compile(f"/operation/{merged.pk}/$"))


def the_merge_is_undone(page: Page, merged: Operation) -> None:
    """Undo is shown first; then the sources are active again, and the history says who did it."""
    page.get_by_role("link", name="Undo…").click()
    expect(page.get_by_role("heading", name="What undo would put back")).to_be_visible()
    shoot(page, "undo")
    page.get_by_role("button", name="Undo it").click()
    expect(page.locator(".head .chip")).to_have_text("undone")
    shoot(page, "undone")
    merged.refresh_from_db()
    assert merged.status == State.UNDONE
    rows = Observation.objects.filter(operation_sources__operation=merged)
    assert {row.status for row in rows} == {Status.ACTIVE}
    done = Event.objects.filter(subject=merged.op_id).order_by("id").values_list("action", "actor")
    assert list(done)[-2:] == [("applied", "olga"), ("undone", "olga")]


def test_the_other_places_open_without_a_complaint(
    chromium: Browser, watch: Watch, live_server: LiveServer, demo: Demo
) -> None:
    """Every place of the navigation, the theme toggle and the search, on the strict policy; screenshots of each."""
    page = sign_in(chromium, watch, live_server, "olga", demo.logins["olga"])
    places = page.locator(".places a")
    addresses = [places.nth(number).get_attribute("href") or "" for number in range(places.count())]
    assert len(addresses) >= 10
    for address in addresses:
        page.goto(address)
        expect(page.locator("main h1").first).to_be_attached()
        shoot(page, "place-" + address.strip("/").replace("/", "-"))
    page.goto("/admin/observations/observation/")
    page.get_by_role("searchbox").fill("relay")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("hold all of these words")).to_be_visible()
    assert "relay" not in page.url
    page.locator("button.theme-toggle").click()
    assert page.evaluate("document.documentElement.dataset.theme") in ("light", "dark")


def test_hostile_text_opens_no_dialog(chromium: Browser, watch: Watch, live_server: LiveServer) -> None:
    """O2 in a real browser: a memory that carries markup is shown as text on every page that shows it."""
    payload = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'><svg onload=alert(3)>"
    within = scope("team/relay-platform")
    pair = [observe(f"{payload} {number}", within=within, key=(payload, payload, str(number))) for number in "ab"]
    operation = propose(Kind.SUPERSEDE, pair, approval=Approval.NEEDS_HUMAN, keeper=pair[0])
    person("ana", "Reviewer", "*", password=PASSWORD)
    page = sign_in(chromium, watch, live_server, "ana", PASSWORD)
    for address in (
        f"/admin/consolidation/operation/{operation.pk}/",
        f"/admin/observations/observation/{pair[0].pk}/",
        "/admin/consolidation/operation/",
        "/admin/observations/observation/",
    ):
        page.goto(address)
        expect(page.get_by_text("onerror=alert(1)").first).to_be_visible()
        assert page.locator("img, script:not([src])").count() == 0
