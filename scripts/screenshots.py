"""The pictures of the README, taken from a running demo: `python -m scripts.screenshots ADDRESS USER PASSWORD`.

With `make demo` in another terminal, its address and one of the logins that it prints. Written to docs/screenshots.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from playwright.sync_api import Page

from tests.e2e.browser import browser

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "screenshots"
SIZE: Final = (1280, 860)


def main(words: list[str]) -> int:
    """Take all of them; 2 without the three words."""
    if len(words) != 3:
        sys.stdout.write(__doc__ or "")
        return 2
    address, user, password = words
    FOLDER.mkdir(exist_ok=True)
    with browser() as chromium:
        page = chromium.new_page(
            base_url=address, viewport={"width": SIZE[0], "height": SIZE[1]}, reduced_motion="reduce"
        )
        page.goto("/admin/login/")
        page.get_by_label("Username").fill(user)
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Log in").click()
        for name, opened in PICTURES.items():
            opened(page)
            page.screenshot(path=FOLDER / f"{name}.png")
            sys.stdout.write(f"docs/screenshots/{name}.png\n")
    return 0


def _focus(page: Page) -> None:
    page.goto("/admin/consolidation/operation/focus/?kind=supersede")


def _item(page: Page) -> None:
    page.goto("/admin/consolidation/operation/?kind=merge")
    page.locator("[data-row] [data-open]").first.click()
    page.wait_for_load_state()


def _plan(page: Page) -> None:
    page.goto("/admin/consolidation/plan/")
    page.locator("main a[href*='/consolidation/plan/']").first.click()
    page.wait_for_load_state()
    measure = page.get_by_role("button", name="Measure now")
    if measure.count():
        measure.click()
        page.wait_for_load_state()
    page.locator("#impact").evaluate("(panel) => window.scrollTo(0, panel.offsetTop - 24)")


def _history(page: Page) -> None:
    page.goto("/admin/consolidation/operation/?show=decided&kind=merge")
    page.locator("[data-row] [data-open]").first.click()
    page.locator("main a[href*='/observations/observation/']").first.click()
    page.locator(".head .lead a[href*='/observations/observation/']").click()  # the row that stands in its place
    page.wait_for_load_state()
    page.set_viewport_size({"width": SIZE[0], "height": 1100})


PICTURES: Final[dict[str, Callable[[Page], None]]] = {
    "focus": _focus,
    "item": _item,
    "plan": _plan,
    "history": _history,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
