"""Pages that a signed-in person is led to by no address: the door, what is refused, and a store with nothing in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.desk import PASSWORD, client_of, person
from tests.e2e.looking import DESKTOP, LISTENER, at_hand

pytestmark = pytest.mark.django_db(transaction=True)
EMPTY = {
    "observations/scope": "The first write makes one",
    "observations/outbox": "No work waits",
    "observations/tombstone": "Nothing was erased",
    "observations/scopeaccess": "Add an entry",
    "consolidation/verdict": "No pair was told apart",
}


@pytest.fixture
def window(chromium: Browser, live_server: LiveServer) -> Iterator[BrowserContext]:
    """A window in which nobody is signed in."""
    size = {"width": DESKTOP[0], "height": DESKTOP[1]}
    context = chromium.new_context(base_url=live_server.url, viewport=size, reduced_motion="reduce")  # type: ignore[arg-type]
    context.add_init_script(LISTENER)
    yield context
    context.close()


@pytest.fixture
def wrong() -> Iterator[list[str]]:
    """What is wrong with the pages that a test looked at: nothing may be, at its end."""
    found: list[str] = []
    yield found
    assert found == []


def look(page: Page, heading: str, wrong: list[str]) -> None:
    """The page is the one that is meant, and what is wrong with it."""
    expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    wrong += [f"{heading}: {one}" for one in at_hand(page)]


def signed_in(
    window: BrowserContext, live_server: LiveServer, name: str, group: str = "", *, superuser: bool = False
) -> Page:
    """A page of somebody's."""
    session = client_of(person(name, group, superuser=superuser)).cookies["sessionid"].value
    window.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
    return window.new_page()


def try_to_sign_in(page: Page, password: str) -> None:
    """As rita."""
    page.get_by_label("Username").fill("rita")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").press("Enter")


def test_nothing_is_wrong_with_the_door(window: BrowserContext, wrong: list[str]) -> None:
    """E.10: to sign in, a wrong password, a form that is too old, a name that is locked."""
    person("rita", "Viewer", password=PASSWORD)
    page = window.new_page()
    page.goto("/admin/")
    look(page, "Sign in", wrong)
    try_to_sign_in(page, "wrong")
    expect(page.get_by_role("alert")).to_contain_text("correct username and password")
    look(page, "Sign in", wrong)
    window.clear_cookies()
    try_to_sign_in(page, PASSWORD)
    look(page, "The form was too old", wrong)
    for _ in range(10):
        Client().post("/admin/login/", {"username": "rita", "password": "wrong"})
    page.goto("/admin/")
    try_to_sign_in(page, PASSWORD)
    look(page, "Locked for a while", wrong)


def test_nothing_is_wrong_with_what_is_refused(
    window: BrowserContext, live_server: LiveServer, wrong: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """E.10: not there, not allowed, failed, and signed out."""
    page = signed_in(window, live_server, "vera", "Viewer")
    page.goto("/admin/consolidation/operation/999/")
    look(page, "There is nothing here", wrong)
    page.goto("/admin/consolidation/policy/new/")
    look(page, "You may not do that", wrong)

    def broken(_request: object) -> dict[str, object]:
        raise RuntimeError("broken")

    with monkeypatch.context() as patch:
        patch.setattr("consolidation.admin.desk.desk", broken)
        page.goto("/admin/")
        look(page, "Something went wrong", wrong)
    page.goto("/admin/")
    page.get_by_role("button", name="Log out").press("Enter")
    look(page, "You are signed out", wrong)


def test_nothing_is_wrong_where_there_is_nothing(
    window: BrowserContext, live_server: LiveServer, wrong: list[str]
) -> None:
    """E.10: empty states say what to do; Django's own lists, too."""
    page = signed_in(window, live_server, "root", superuser=True)
    page.goto("/admin/")
    look(page, "Memory under review", wrong)
    for address, words in EMPTY.items():
        page.goto(f"/admin/{address}/")
        expect(page.locator(".empty")).to_contain_text(words)
    look(page, "Verdicts", wrong)


def test_somebody_without_a_role_is_told_who_gives_one(
    window: BrowserContext, live_server: LiveServer, wrong: list[str]
) -> None:
    """E.10: a new account that may read nothing yet."""
    page = signed_in(window, live_server, "nora")
    page.goto("/admin/")
    expect(page.locator(".empty")).to_contain_text("An administrator gives it a group")
    look(page, "Memory under review", wrong)


def test_what_is_not_understood_is_told_in_our_words() -> None:
    """E.10: a request that Django refuses before any page sees it."""
    answer = Client().get("/admin/", headers={"host": "elsewhere.example"})
    assert answer.status_code == 400
    assert "That was not understood" in answer.content.decode()
