"""Every page of the admin in a real browser: nothing complains, axe finds nothing, nothing is too wide or moves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.desk import client_of, person
from tests.e2e.browser import Watch
from tests.e2e.looking import DESKTOP, LISTENER, PHONE, looked_at
from tests.pages import Furnished, furnished

pytestmark = pytest.mark.django_db(transaction=True)
ZONE = "Asia/Kolkata"  # five and a half hours from UTC: minutes differ, too


@pytest.fixture
def store() -> Furnished:
    """What the pages are about; brought back before anybody signs in."""
    return furnished()


@pytest.fixture
def page(store: Furnished, chromium: Browser, live_server: LiveServer) -> Iterator[Page]:
    """A superuser's window, in another zone, without motion."""
    context = chromium.new_context(
        base_url=live_server.url,
        viewport={"width": DESKTOP[0], "height": DESKTOP[1]},
        timezone_id=ZONE,
        reduced_motion="reduce",
    )
    context.add_init_script(LISTENER)
    session = client_of(person("root", superuser=True)).cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
    yield context.new_page()
    context.close()


BAD = "<html lang=en><title>x</title><main><h1>a</h1><p style='color:%23999;background:%23fff;width:2000px'>wide"


def test_the_naive_control_is_found_wrong(page: Page) -> None:
    """A look that finds nothing wrong with pale words in a line of 2,000 px would prove nothing of our pages."""
    found = " ".join(looked_at(page, f"data:text/html,<!doctype html>{BAD}"))
    assert "light desktop, color-contrast" in found
    assert "light phone, color-contrast" in found
    assert "dark desktop, color-contrast" in found
    assert "dark phone, color-contrast" in found
    assert "phone, too wide" in found


def test_nothing_is_wrong_with_any_page(store: Furnished, page: Page, watch: Watch) -> None:
    """E.10, E must hold: `default-src 'self'`, WCAG 2.2 AA by axe in light and dark, a phone, 200% zoom, no shift."""
    watch.over(page)
    wrong = []
    for name, address in store.addresses.items():
        wrong += [f"{name}: {one}" for one in looked_at(page, address)]
    assert wrong == []


def test_times_are_the_readers_with_the_exact_one_at_hand(store: Furnished, page: Page, watch: Watch) -> None:
    """E.10: the reader's zone, UTC on hover, and all of them in UTC for who asks."""
    watch.over(page).goto(f"/admin/observations/observation/{store.mine.world.derived.pk}/")
    time = page.locator("time[title]").first
    utc = time.get_attribute("title") or ""
    shown = time.inner_text()
    assert utc.endswith(" UTC")
    assert utc[11:16] != shown[-5:]
    page.get_by_role("button", name="Show them in UTC").press("Enter")
    expect(time).to_contain_text(utc[11:16])
    expect(page.get_by_text("Times are in UTC.")).to_be_visible()


def test_where_one_is_stands_in_sight(store: Furnished, page: Page, watch: Watch) -> None:
    """E.10: the last of the rooms and the last of the tabs are marked, and seen without scrolling a list for them."""
    watch.over(page)
    for size in (DESKTOP, (1280, 600)):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.goto("/admin/observations/tombstone/")
        rooms = page.get_by_role("navigation", name="Places")
        expect(rooms.get_by_role("link", name="Tombstones")).to_be_in_viewport(ratio=1)
        expect(rooms.get_by_role("link", name="Desk")).to_be_in_viewport(ratio=1)
        assert page.evaluate("scrollY") == 0
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    page.goto("/admin/consolidation/operation/?show=decided")
    expect(page.get_by_role("link", name="Decided")).to_be_in_viewport(ratio=0.9)


LISTS = ("event", "givenanswer", "intake", "residue", "token", "plan", "policy", "calibration", "suite", "alias")


def test_a_list_is_read_on_a_phone_without_scrolling_it_sideways(store: Furnished, page: Page, watch: Watch) -> None:
    """E.10: each row is a card there, with every value under the name of its column."""
    watch.over(page)
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    lists = [
        where for name, where in store.addresses.items() if name.endswith(tuple(f"_{one}_changelist" for one in LISTS))
    ]
    assert len(lists) == len(LISTS)
    for address in lists:
        page.goto(address)
        boxes = page.locator(".scroll")
        assert boxes.evaluate_all("(all) => all.filter((box) => box.scrollWidth > box.clientWidth + 1).length") == 0, (
            address
        )
        assert page.locator("table.stacked tbody td:not(:empty)").count() > 0, address
