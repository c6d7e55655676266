"""A reviewer edits a proposal in a real browser: what the preview shows while they type is what is stored (E.2)."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from consolidation.models import Operation
from consolidation.operations import Approval, Json, Kind, State
from observations.models import Observation
from tests.building import observe, propose, scope
from tests.desk import PASSWORD, item_url, person
from tests.e2e.browser import Watch, shoot
from tests.e2e.test_newcomer import sign_in
from tests.engine import engine

pytestmark = pytest.mark.django_db(transaction=True)

SIGNALS: dict[str, Json] = {
    "pairs": [
        {"a": 1, "b": 2, "cosine": 0.91, "met": ["subject_predicate", "band"], "verdict": "ask", "failed": ["number"]},
        {"a": 1, "b": 3, "cosine": 0.87, "met": ["neighbour"], "verdict": "ask", "failed": []},
    ]
}


def proposal() -> Operation:
    within = scope("team-a/u1")
    key = ("Ann", "lives in", "Ghent")
    rows = [
        observe("Ann moved to Ghent in March 2019 with Bo", within=within, key=key, sources=["mail://1", "mail://2"]),
        observe("ann moved to ghent", within=within),
        observe("Ann moved to Ghent, in Belgium", within=within, key=key),
    ]
    judgement = ("similar", "0.87-0.91")
    return propose(
        Kind.MERGE, rows, approval=Approval.NEEDS_HUMAN, judgement=judgement, signals=SIGNALS, keeper=rows[1]
    )


def test_an_edit_is_previewed_while_it_is_typed_and_stored_as_previewed(
    chromium: Browser, watch: Watch, live_server: LiveServer
) -> None:
    """By keyboard from the item to what it wrote; the keys do nothing while somebody types."""
    operation = proposal()
    person("olga", "Operator", "team-a/*", password=PASSWORD)
    page = sign_in(chromium, watch, live_server, "olga", PASSWORD)
    page.goto(item_url(operation))
    shoot(page, "item")
    the_evidence_opens_and_closes(page)
    page.keyboard.press("e")
    expect(page.get_by_role("heading", name="Edit what it would write")).to_be_visible()
    written = "Ann has lived in Ghent since March 2019 are odd"
    page.get_by_role("group", name="Text").get_by_role("radio", name="Own words").check()
    page.get_by_role("textbox", name="Text, own words").fill("")
    page.keyboard.type(written)
    preview = page.locator("[data-place=preview]")
    expect(preview.locator("blockquote")).to_have_text(written)
    page.get_by_role("checkbox").nth(2).press("Space")
    expect(preview.get_by_text("2 sources")).to_be_visible()
    shoot(page, "item-edit")
    said = preview.locator("dl").inner_text()
    page.get_by_role("heading", name="What it says").click()
    page.keyboard.press("a")
    expect(page.get_by_text("into obs_")).to_be_visible()
    new = Operation.objects.get(edited_from=operation)
    row = Observation.objects.get(pk=new.derived_id or 0)
    assert (new.status, row.text) == (State.APPLIED, written)
    assert all(part in said for part in (row.subject, row.stated_by, f"{row.confidence:.2f}"))
    shoot(page, "item-applied")


def the_evidence_opens_and_closes(page: Page) -> None:
    """And a reason holds letters, not keys."""
    evidence = page.locator("[data-evidence]").first
    page.keyboard.press("o")
    expect(evidence).to_have_attribute("open", "")
    page.keyboard.press("r")
    reason = page.get_by_label("Reason")
    expect(reason).to_be_focused()
    page.keyboard.type("read")
    expect(reason).to_have_value("read")
    reason.fill("")
    reason.blur()


def test_a_contradiction_is_settled_on_one_screen_by_keyboard(
    chromium: Browser, watch: Watch, live_server: LiveServer
) -> None:
    """E.3: 3 keeps the third, a asks for the reason, Enter settles it."""
    mine = engine()
    person("olga", "Operator", "team-a/*", password=PASSWORD)
    page = sign_in(chromium, watch, live_server, "olga", PASSWORD)
    page.goto(item_url(mine.supersede))
    shoot(page, "item-contradiction")
    page.keyboard.press("3")
    expect(page.get_by_role("radio", name="Keep obs_").nth(2)).to_be_checked()
    page.keyboard.press("a")
    page.keyboard.type("asked her")
    page.keyboard.press("Enter")
    expect(page.get_by_text("applied", exact=True).first).to_be_visible()
    assert Operation.objects.get(pk=mine.supersede.pk).decision_reason == "asked her"
