"""Every page of the admin in a real browser: nothing complains, axe finds nothing, nothing is too wide or moves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.desk import client_of, person
from tests.e2e.browser import Watch
from tests.e2e.looking import DESKTOP, LISTENER, looked_at
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
