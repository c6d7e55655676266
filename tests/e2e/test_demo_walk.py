"""The README's walk through the demo, sentence by sentence, in a real browser."""

from __future__ import annotations

import re

import pytest
from django.test import override_settings
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from consolidation.models import Operation
from consolidation.operations import Kind, State
from memory_site.demo.loading import load
from tests.e2e.browser import Watch

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("real_embedder"), pytest.mark.slow]


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


def test_every_step_of_the_readmes_walk_is_as_it_says(chromium: Browser, watch: Watch, live_server: LiveServer) -> None:
    """Nine steps, three people, no complaint of the browser."""
    with override_settings(ANTHROPIC_API_KEY=""):
        loaded = load(say=lambda _: None)
        words = dict(re.findall(r"^  (\w+) +(\S+) ", loaded.logins, re.M))
        ana, olga, dora = (Walker(chromium, watch, live_server, name, words[name]) for name in ("ana", "olga", "dora"))
        what_was_not_planned_stands_above_the_items(ana)
        three_ways_out_are_suggested_and_one_is_approved(ana)
        an_alias_waits_and_a_lesson_holds(ana)
        one_prune_can_come_back_and_eight_wait(ana)
        what_was_approved_is_applied_and_the_plan_asks_a_second_time(olga)
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
    page = ana.item("Needs a person", Kind.SUPERSEDE, "The river board pays")
    expect(page.locator("main")).to_contain_text("All are true: it holds several values")
    page = ana.item("Needs a person", Kind.SUPERSEDE, "Curlew's skipper is Morag")
    expect(page.locator("main")).to_contain_text("Suggested: All are true, each in its period")
    page = ana.item("Needs a person", Kind.SUPERSEDE, "Primary on-call hands over")
    expect(page.locator("main")).to_contain_text("Suggested: Keep the newest")
    page.get_by_role("radio").first.check()
    page.get_by_label("Reason").fill("the rota is the one of the wiki")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_role("status").get_by_text("It waits to be applied")).to_be_visible()


def an_alias_waits_and_a_lesson_holds(ana: Walker) -> None:
    expect(ana.item("Needs a person", Kind.ALIAS).locator("main")).to_contain_text("calder is compared as calder foods")
    lesson = ana.at("Learnt values").get_by_role("row", name=re.compile("plays"))
    expect(lesson).to_contain_text("several values at once")
    expect(lesson).to_contain_text("people/maya-okafor")


def one_prune_can_come_back_and_eight_wait(ana: Walker) -> None:
    trash = ana.at("Trash").locator("main")
    expect(trash).to_contain_text("Mail queue drained, deliveries on time.")
    expect(trash).to_contain_text(re.compile("(29|30) days left"))
    expect(ana.queue("Needs a person", Kind.PRUNE).locator("[data-open]")).to_have_count(8)


def what_was_approved_is_applied_and_the_plan_asks_a_second_time(olga: Walker) -> None:
    page = olga.item("Approved, not applied", Kind.SUPERSEDE)
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_role("status").get_by_text("applied")).to_be_visible()
    olga.plan().get_by_role("link", name="Apply plan…").click()
    expect(page.locator("main")).to_contain_text("records of team/relay-platform, over the limit of 20")
    page.get_by_label("Yes, touch that much").check()
    page.get_by_role("button", name=re.compile("^Apply .* operations$")).click()
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
    expect(dora.item("Needs a person", Kind.PRUNE).get_by_role("button", name="Approve", exact=True)).to_have_count(0)
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
    page = ana.item("Needs a person", Kind.FORGET, "Otis")
    expect(page.locator("main")).to_contain_text("via merge")
    page = ana.item("Needs a person", Kind.ARCHIVE, "public docs")
    expect(page.locator("main")).to_contain_text("nothing changes until somebody decides")
