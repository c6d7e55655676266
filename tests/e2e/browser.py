"""A real browser: the system's Chromium or Chrome, else one of Playwright's own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Playwright, Request, Response, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
ARTIFACTS = Path(__file__).resolve().parents[2] / "test-artifacts"
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


class NoBrowser(Exception):
    """No browser could be started; the text says what was tried."""


@contextmanager
def browser() -> Iterator[Browser]:
    """A running browser. Raises NoBrowser."""
    with sync_playwright() as playwright:
        running = _start(playwright)
        try:
            yield running
        finally:
            running.close()


def _start(playwright: Playwright) -> Browser:
    tried = []
    for program in [*filter(None, map(shutil.which, NAMES)), None]:
        try:
            return playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        except Error as error:
            tried.append(f"{program or 'a Playwright browser'}: {error.message.splitlines()[0]}")
    raise NoBrowser("No browser could be started. " + "; ".join(tried))


@dataclass
class Watch:
    """What a page complained about: nothing may be in it at the end."""

    complaints: list[str] = field(default_factory=list)

    def over(self, page: Page) -> Page:
        """Listen to one page: console errors (violations of the policy among them), script errors, failed requests."""
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(f"script: {error}"))
        page.on("response", self._response)
        page.on("requestfailed", self._failed)
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        return page

    def refused(self, page: Page) -> None:
        """A refusal that a test asked for: the answer 409 and the browser's own line about it are no complaint."""
        page.wait_for_load_state("networkidle")
        assert any(complaint.startswith("409") for complaint in self.complaints), self.complaints
        self.complaints = [complaint for complaint in self.complaints if "409" not in complaint]

    def _failed(self, request: Request) -> None:
        """A request that failed; one that the page itself left behind when it was closed or went on is none."""
        if request.failure != "net::ERR_ABORTED":
            self.complaints.append(f"failed: {request.url}")

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.complaints.append(f"{response.status}: {response.url}")


def shoot(page: Page, name: str) -> None:
    """That nothing of the page as it is now runs over its side, on a desktop and on a phone. Where PALIMPSEST_SHOTS is
    set, pictures of it in light and dark go to test-artifacts: drawing them takes longer than all that is tested.
    """
    for size, (width, height) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        if os.environ.get("PALIMPSEST_SHOTS"):
            _draw(page, f"{name}-{size}")
        over = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert over <= 1, f"{name} is {over} px too wide on a {size}"
    page.set_viewport_size({"width": SIZES["desktop"][0], "height": SIZES["desktop"][1]})


def _draw(page: Page, name: str) -> None:
    ARTIFACTS.mkdir(exist_ok=True)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.screenshot(path=ARTIFACTS / f"{name}-{scheme}.png", full_page=True)
    page.emulate_media(color_scheme="light")
