"""A word of 300 kB and words that run from right to left, in a real browser: no page is too wide for them, and the
sheet of keys over them opens, keeps the focus and closes.
"""

from __future__ import annotations

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from consolidation.models import Operation
from consolidation.operations import Approval, Kind
from consolidation.review import Decision
from observations.models import Observation
from tests.building import observe, propose, scope
from tests.desk import PASSWORD, item_url, person
from tests.e2e.browser import Watch
from tests.e2e.looking import DESKTOP, PHONE, WIDE, ZOOMED
from tests.e2e.test_newcomer import sign_in
from tests.engine import approve_and_apply

pytestmark = pytest.mark.django_db(transaction=True)

WORD = "w" * 300_000
HEBREW = "המפתח נמצא מתחת לעציץ."  # the full stop of a text that runs to the left stands at its left
FOCUS = "/admin/consolidation/operation/focus/"


@pytest.fixture
def merged() -> Operation:
    """A question about two endless words, and one about two texts from right to left."""
    here = scope("team-a/u1")
    endless = [observe(f"{WORD}{end}", within=here) for end in "ab"]
    propose(Kind.MERGE, [observe(text, within=here) for text in (HEBREW, HEBREW[:-1])], approval=Approval.NEEDS_HUMAN)
    return propose(Kind.MERGE, endless, approval=Approval.NEEDS_HUMAN)


@pytest.fixture
def decided() -> Observation:
    """A row whose history holds both, with a key of its own direction."""
    here = scope("team-a/u1")
    said = [
        observe(text, within=here, key=(HEBREW, "p", text[:400])) for text in (f"{HEBREW} {WORD}", f"{WORD} {HEBREW}")
    ]
    asked = propose(Kind.SUPERSEDE, said, approval=Approval.NEEDS_HUMAN, keeper=said[1])
    approve_and_apply(asked, decision=Decision(keep=said[1].pk), reason=WORD[:400])
    return said[1]


@pytest.fixture
def page(chromium: Browser, watch: Watch, live_server: LiveServer) -> Page:
    """The window of somebody who decides."""
    person("olga", "Operator", "team-a/*", password=PASSWORD)
    return sign_in(chromium, watch, live_server, "olga", PASSWORD)


def too_wide(page: Page) -> list[str]:
    """What is wider than the window, on a desktop, at 200% and on a phone."""
    found = []
    for width, height in (DESKTOP, ZOOMED, PHONE):
        page.set_viewport_size({"width": width, "height": height})
        found += [f"{width}: {one}" for one in page.evaluate(WIDE)]
    page.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})
    return found


def runs_to_the_left(text: Locator) -> bool:
    """Whether the last character of a text, its full stop, is drawn left of its first letter."""
    last_is_left: bool = text.evaluate("""(place) => {
      const words = document.createTreeWalker(place, NodeFilter.SHOW_TEXT), nodes = [];
      while (words.nextNode()) if (words.currentNode.data.trim()) nodes.push(words.currentNode);
      const at = (node, from) => {
        const range = document.createRange();
        range.setStart(node, from); range.setEnd(node, from + 1);
        return range.getBoundingClientRect();
      };
      const last = nodes.at(-1);
      return at(last, last.data.trimEnd().length - 1).left < at(nodes[0], 0).left;
    }""")
    return last_is_left


def test_the_naive_control_is_found_too_wide(page: Page) -> None:
    """A page that breaks no word is too wide for an endless one at every size."""
    page.goto(f"data:text/html,<!doctype html><main><p>{WORD[:3000]}")
    assert len(too_wide(page)) >= 3


def test_no_page_of_a_question_is_too_wide(merged: Operation, page: Page) -> None:
    """E.10, F5: the item, its edit, the queue and the view of one question at a time."""
    for address in (item_url(merged), item_url(merged, "edit"), "/admin/consolidation/operation/", FOCUS):
        page.goto(address)
        assert too_wide(page) == [], address
    expect(page.get_by_role("heading", level=2).first).to_be_visible()


def test_no_page_of_the_past_is_too_wide(decided: Observation, page: Page) -> None:
    """E.8, E.10, F5: a row with its versions and its lineage, all about its subject, and the search."""
    subject = reverse("admin:observations_observation_subject", args=[decided.scope_id, decided.subject_key])
    for address in (
        reverse("admin:observations_observation_change", args=[decided.pk]),
        subject,
        f"{reverse('admin:observations_observation_asof')}?scope={decided.scope_id}&at=2100-01-01",
        "/admin/observations/observation/?status=",
    ):
        page.goto(address)
        assert page.title(), address
        assert too_wide(page) == [], address


def test_a_text_runs_in_its_own_direction(merged: Operation, page: Page) -> None:
    """F5: with its full stop at its left, wherever it is quoted, on a page that runs to the right."""
    other = Operation.objects.exclude(pk=merged.pk).get()
    page.goto(item_url(other))
    assert runs_to_the_left(page.locator(".source blockquote.memory").first)
    page.goto("/admin/consolidation/operation/")
    assert runs_to_the_left(page.locator(".texts li", has_text=HEBREW).locator("q, .memory").first)


def test_the_sheet_of_keys_opens_keeps_the_focus_and_closes(merged: Operation, page: Page) -> None:
    """E.3, E.10: by its key over an endless word; Tab stays in it; Escape closes it and decides nothing."""
    page.goto(FOCUS)
    opener = page.get_by_role("button", name="Keys")
    opener.focus()
    page.keyboard.press("Enter")
    sheet = page.get_by_role("dialog", name="Keys")
    expect(sheet).to_be_visible()
    assert too_wide(page) == []
    for key in ("Tab",) * 4 + ("Shift+Tab",) * 4:
        page.keyboard.press(key)
        inside: bool = page.evaluate(
            "document.activeElement === document.body || document.activeElement.closest('dialog') !== null"
        )
        assert inside, key
    page.keyboard.press("a")
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    expect(opener).to_be_focused()
    merged.refresh_from_db()
    assert merged.decided_at is None
    page.keyboard.press("?")
    expect(sheet).to_be_visible()
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
