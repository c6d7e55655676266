"""A newcomer walks through the demo in a real browser: reads the plan, approves, rejects, applies, undoes, looks; and
the README's walk through it, sentence by sentence. In one file, because loading the demo takes the longest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from django.test import override_settings
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
from tests.keeping import kept

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("real_embedder"), pytest.mark.slow]


@dataclass(frozen=True)
class Demo:
    """What `make demo` prints: the plan that waits, and the logins."""

    plan: str
    logins: dict[str, str]


@kept
def loaded_demo() -> Demo:
    """The demo, loaded as `make demo` loads it."""
    with override_settings(ANTHROPIC_API_KEY=""):
        loaded = load(say=lambda _: None)
    return Demo(plan=str(loaded.plan), logins=dict(re.findall(r"^  (\w+) +(\S+) ", loaded.logins, re.M)))


@pytest.fixture
def demo() -> Demo:
    """The demo of this file's tests, each of which has it as it was loaded."""
    return loaded_demo()


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
    operation = open_item(page, "Waiting for me", Kind.SUPERSEDE)
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
    operation = open_item(page, "Waiting for me", Kind.MERGE)
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
    expect(versions.last).to_contain_text("this one")
    expect(page.locator(".lineage")).to_contain_text("merge")
    shoot(page, "observation")
    versions.first.get_by_role("link", name=re.compile("^obs_")).click()
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


# --- the README's walk, sentence by sentence ----------------------------------------------------------------------


class Walker:
    """Somebody of the demo in a browser window of their own."""

    def __init__(self, browser: Browser, watch: Watch, server: LiveServer, name: str, word: str) -> None:
        self.page = watch.over(browser.new_context(base_url=server.url).new_page())
        self.page.goto("/")
        self.page.get_by_label("Username").fill(name)
        self.page.get_by_label("Password").fill(word)
        self.page.get_by_role("button", name="Log in").click()
        expect(self.page.get_by_role("heading", name="Memory under review")).to_be_visible()

    def at(self, place: str) -> Page:
        """Follow the navigation."""
        self.page.locator(".places").get_by_role("link", name=place, exact=True).click()
        expect(self.page.locator("main h1").first).to_be_attached()
        return self.page

    def plan(self) -> Page:
        """The plan that waits today."""
        self.at("Plans").get_by_role("link", name="plan_2", exact=True).click()
        expect(self.page.get_by_role("heading", name="plan_2")).to_be_visible()
        return self.page

    def queue(self, tab: str, kind: Kind) -> Page:
        """A tab of the queue, one kind of it."""
        self.at("Queue").get_by_role("navigation", name="Parts of the queue").get_by_role(
            "link", name=re.compile(tab)
        ).click()
        self.page.wait_for_url(re.compile("show="), wait_until="load")
        self.page.get_by_label("Kind").select_option(kind)
        self.page.wait_for_url(re.compile(f"kind={kind}"), wait_until="load")
        return self.page

    def item(self, tab: str, kind: Kind, words: str = "") -> Page:
        """The page of the first item of a kind whose texts hold some words."""
        self.queue(tab, kind).locator("[data-row]", has_text=words).first.locator("[data-open]").click()
        self.page.wait_for_url(re.compile(r"/operation/\d+/$"))
        return self.page


def test_every_step_of_the_readmes_walk_is_as_it_says(
    chromium: Browser, watch: Watch, live_server: LiveServer, demo: Demo
) -> None:
    """Ten steps, four people, no complaint of the browser."""
    with override_settings(ANTHROPIC_API_KEY=""):
        people = ("ana", "olga", "omar", "dora")
        ana, olga, omar, dora = (Walker(chromium, watch, live_server, name, demo.logins[name]) for name in people)
        what_was_not_planned_stands_above_the_items(ana)
        three_ways_out_are_suggested_and_one_is_approved(ana)
        an_alias_waits_and_a_lesson_holds(ana)
        one_prune_can_come_back_and_eight_wait(ana)
        what_was_approved_is_applied_and_the_plan_asks_a_second_time_and_person(olga, omar)
        archived_remarks_come_back(olga)
        the_steward_answers_four_questions_and_decides_nothing(dora)
        an_observation_shows_its_versions_and_its_strength(dora)
        what_an_agent_wrote_is_under_writing(dora)
        what_was_asked_for_stands_in_no_plan_and_waits(ana)


def what_was_not_planned_stands_above_the_items(ana: Walker) -> None:
    main = ana.plan().locator("main")
    expect(main.get_by_text("PROMOTE did not run. No language model is configured")).to_have_count(4)
    expect(main).to_contain_text("4 more questions held back")
    expect(main).to_contain_text("No policy covers research/tidewater-lab")


def three_ways_out_are_suggested_and_one_is_approved(ana: Walker) -> None:
    page = ana.item("Waiting for me", Kind.SUPERSEDE, "The river board pays")
    expect(page.locator("main")).to_contain_text("All are true: it holds several values")
    page = ana.item("Waiting for me", Kind.SUPERSEDE, "Curlew's skipper is Morag")
    expect(page.locator("main")).to_contain_text("Suggested: All are true, each in its period")
    page = ana.item("Waiting for me", Kind.SUPERSEDE, "Primary on-call hands over")
    expect(page.locator("main")).to_contain_text("Suggested: Keep the newest")
    page.get_by_role("radio").first.check()
    page.get_by_label("Reason").fill("the rota is the one of the wiki")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_role("status").get_by_text("It waits to be applied")).to_be_visible()


def an_alias_waits_and_a_lesson_holds(ana: Walker) -> None:
    expect(ana.item("Waiting for me", Kind.ALIAS).locator("main")).to_contain_text("calder is compared as calder foods")
    lesson = ana.at("Learnt values").get_by_role("row", name=re.compile("plays"))
    expect(lesson).to_contain_text("several values at once")
    expect(lesson).to_contain_text("people/maya-okafor")


def one_prune_can_come_back_and_eight_wait(ana: Walker) -> None:
    trash = ana.at("Trash").locator("main")
    expect(trash).to_contain_text("Mail queue drained, deliveries on time.")
    expect(trash).to_contain_text(re.compile("(29|30) days left"))
    expect(ana.queue("Waiting for me", Kind.PRUNE).locator("[data-open]")).to_have_count(8)


def what_was_approved_is_applied_and_the_plan_asks_a_second_time_and_person(olga: Walker, omar: Walker) -> None:
    page = olga.item("Approved, not applied", Kind.SUPERSEDE)
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_role("status").get_by_text("applied")).to_be_visible()
    for walker in (olga, omar):
        walker.plan().get_by_role("link", name="Apply plan…").click()
        page = walker.page
        expect(page.locator("main")).to_contain_text("records of team/relay-platform, over the limit of 20")
        page.get_by_label("Yes, touch that much").check()
        page.get_by_role("button", name=re.compile("^Apply .* operations$")).click()
        page.wait_for_load_state("load")
        if walker is olga:
            assert Operation.objects.filter(status=State.PLANNED).exists()
    expect(page.locator("main").get_by_text(re.compile("^merge of 3 into obs_.* applied")).first).to_be_visible(
        timeout=60_000
    )
    assert not Operation.objects.filter(status=State.PLANNED).exists()


def archived_remarks_come_back(olga: Walker) -> None:
    page = olga.item("Decided", Kind.ARCHIVE)
    page.get_by_role("link", name="Undo…").click()
    page.get_by_role("button", name="Undo it").click()
    expect(page.locator(".head .chip")).to_have_text("undone")
    assert Operation.objects.filter(kind=Kind.ARCHIVE, status=State.UNDONE).count() == 1


def the_steward_answers_four_questions_and_decides_nothing(dora: Walker) -> None:
    page = dora.item("Waiting for a reviewer", Kind.PRUNE)
    expect(page.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    page = dora.at("Policies")
    page.get_by_role("link", name="Answer four questions").click()
    page.get_by_label("For which scopes").select_option("research/tidewater-lab")
    page.get_by_role("button", name="Save the answers").click()
    expect(page.get_by_role("status").get_by_text("version 1")).to_be_visible()


def an_observation_shows_its_versions_and_its_strength(dora: Walker) -> None:
    page = dora.at("Memory")
    page.get_by_role("searchbox").fill("allotment first Saturday month")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("hold all of these words")).to_be_visible()
    page.get_by_text("Allotment working mornings are on the first Saturday of the month.").first.click()
    expect(page.locator(".chain > li")).to_have_count(4)
    expect(page.locator(".lineage")).to_contain_text("merge")
    expect(page.locator("main")).to_contain_text("Strength today")


def what_an_agent_wrote_is_under_writing(dora: Walker) -> None:
    token = dora.at("Tokens").get_by_role("row", name=re.compile("pilot"))
    expect(token).to_contain_text("revoked")
    expect(token.get_by_role("link", name="Revoke")).to_have_count(0)
    main = dora.at("Intake").locator("main")
    expect(main).to_contain_text("No model is configured")
    expect(main.get_by_role("row", name=re.compile("every 5 turns"))).to_have_count(1)
    expect(main.get_by_role("row", name="team/relay-platform")).to_contain_text("6")
    expect(dora.at("Residue").get_by_role("row", name=re.compile("delivery report"))).to_contain_text("token:")
    page = dora.at("Core memory")
    page.get_by_role("link", name="open", exact=True).click()
    expect(page.locator("main")).to_contain_text("Undo revision 4")
    expect(page.locator("main").get_by_text(re.compile("token:")).first).to_be_visible()


def what_was_asked_for_stands_in_no_plan_and_waits(ana: Walker) -> None:
    page = ana.item("Waiting for me", Kind.FORGET, "Otis")
    expect(page.locator("main")).to_contain_text("via merge")
    page = ana.item("Waiting for me", Kind.ARCHIVE, "public docs")
    expect(page.locator("main")).to_contain_text("nothing changes until somebody decides")
