"""On a phone and at 200% zoom every room is reached, an item is on the first screen, and no word bursts a page."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from consolidation.models import Comment
from consolidation.operations import Approval, Kind
from tests.building import observe, propose, scope
from tests.desk import PASSWORD, person
from tests.e2e.browser import SIZES, Watch, shoot
from tests.e2e.looking import PHONE, WIDE, ZOOMED
from tests.e2e.test_newcomer import sign_in

pytestmark = pytest.mark.django_db(transaction=True)

QUEUE = "/admin/consolidation/operation/"
ROOMS = ("Policies", "Trash", "Events", "Held back", "Suites", "Answers", "Aliases", "Scopes", "Pause and resume")


def sized(page: Page, size: tuple[int, int]) -> Page:
    """The same page in a window of that size."""
    page.set_viewport_size({"width": size[0], "height": size[1]})
    return page


def test_every_room_is_reached_by_keyboard_on_a_phone_and_zoomed(
    chromium: Browser, watch: Watch, live_server: LiveServer
) -> None:
    """E.10: the rooms that stand beside a wide page are one press away on a narrow one, and push nothing aside."""
    person("olga", superuser=True, password=PASSWORD)
    page = sign_in(chromium, watch, live_server, "olga", PASSWORD)
    places = page.get_by_role("navigation", name="Places")
    wide = places.get_by_role("link").all_inner_texts()
    assert set(ROOMS) <= set(wide)
    expect(places.get_by_role("button", name="More")).to_be_hidden()
    for size in (PHONE, ZOOMED):
        sized(page, size).goto(QUEUE)
        expect(places.get_by_role("link", name="Policies")).to_be_hidden()
        top = page.get_by_role("heading", name="Review queue").bounding_box()
        places.get_by_role("button", name="More").press("Enter")
        assert places.get_by_role("link").all_inner_texts() == wide
        assert page.get_by_role("heading", name="Review queue").bounding_box() == top
        assert page.evaluate(WIDE) == []
        for room in ROOMS:
            places.get_by_role("link", name=room, exact=True).click(trial=True)  # nothing lies over it
    shoot(page, "narrow-more")
    sized(page, SIZES["phone"])
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('#rooms') !== null")
    page.keyboard.press("Escape")
    expect(places.get_by_role("link", name="Policies")).to_be_hidden()
    places.get_by_role("button", name="More").click()
    places.get_by_role("link", name="Policies").click()
    expect(page.get_by_role("heading", name="Policies")).to_be_visible()


def test_the_rooms_open_without_a_script(chromium: Browser, watch: Watch, live_server: LiveServer) -> None:
    """E.10: no script is needed to get anywhere."""
    person("olga", "Reviewer", "*", password=PASSWORD)
    state = sign_in(chromium, watch, live_server, "olga", PASSWORD).context.storage_state()
    plain = chromium.new_context(base_url=live_server.url, java_script_enabled=False, storage_state=state)
    page = sized(plain.new_page(), PHONE)
    page.goto(QUEUE)
    page.get_by_role("button", name="More").click()
    page.get_by_role("link", name="Trash").click()
    expect(page.get_by_role("heading", name="Trash")).to_be_visible()
    plain.close()


def test_a_phone_shows_an_item_first_and_the_button_after_what_it_decides(
    chromium: Browser, watch: Watch, live_server: LiveServer
) -> None:
    """E.4, E.10: counts and filters are folded where they would fill the screen; a decision over several items stands
    below the last of them; a comment of one endless word stays inside its page.
    """
    here, word = scope("team-a/u1"), "w" * 1500
    made = [
        propose(Kind.MERGE, [observe(f"Tea {n} {end}", within=here) for end in "ab"], approval=Approval.NEEDS_HUMAN)
        for n in range(3)
    ]
    Comment.objects.create(scope=here, operation=made[0], by="olga", text=word)
    person("rita", "Reviewer", "team-a/*", password=PASSWORD)
    page = sign_in(chromium, watch, live_server, "rita", PASSWORD)
    sized(page, SIZES["phone"]).goto(QUEUE)
    item = page.get_by_role("listitem").filter(has_text="Tea").first.bounding_box()
    assert item is not None
    assert item["y"] + item["height"] < SIZES["phone"][1]
    page.get_by_text("Filters").click()
    expect(page.get_by_label("Kind")).to_be_visible()
    shoot(page, "narrow-queue")
    sized(page, SIZES["desktop"])
    expect(page.get_by_role("navigation", name="How many of what")).to_be_visible()
    page.get_by_label("All 3 shown here").check()
    page.get_by_role("button", name="Approve 3").click()
    button = page.get_by_role("button", name="Approve these 3 items").bounding_box()
    last = page.locator(".full").last.bounding_box()
    assert button is not None
    assert last is not None
    assert button["y"] > last["y"] + last["height"]
    page.get_by_role("link", name="To the end, where you decide").click()
    expect(page.get_by_role("button", name="Approve these 3 items")).to_be_in_viewport()
    shoot(page, "narrow-bulk")
    sized(page, SIZES["phone"]).goto(f"{QUEUE}{made[0].pk}/")
    expect(page.get_by_text(word)).to_be_visible()
    assert page.evaluate(WIDE) == []
