"""What a browser sees of one page: what it complains about, what axe finds in it, what is too wide, what moves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any, Final

from playwright.sync_api import Page

AXE: Final = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
TAGS: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
# The rules whose answer other colours can change; what size can change is asked at each size.
COLOURS: Final = ["color-contrast", "link-in-text-block"]
EVERY_RULE: Final = {"type": "tag", "values": TAGS}
OF_COLOUR: Final = {"type": "rule", "values": COLOURS}
SHIFT: Final = 0.1  # of layout, at most, while a page comes up
PHONE: Final = (390, 844)
DESKTOP: Final = (1280, 900)
ZOOMED: Final = (640, 450)  # a desktop at 200%: half as many CSS pixels
# Listens before anything of the page runs. The browser keeps what it learns in this page's own window.
LISTENER: Final = """
  window.__violated = []; window.__shift = 0;
  document.addEventListener('securitypolicyviolation', (e) => __violated.push(
    e.violatedDirective + ' ' + e.blockedURI));
  const moved = (list) => { for (const one of list.getEntries()) if (!one.hadRecentInput) __shift += one.value; };
  new PerformanceObserver(moved).observe({ type: 'layout-shift', buffered: true });
"""
# What may be wider than the window: only what scrolls inside a box of its own.
WIDE: Final = """() => {
  const over = document.documentElement.scrollWidth - window.innerWidth;
  if (over <= 1) return [];
  const wide = (e) => e.getBoundingClientRect().right > window.innerWidth + 1;
  const found = [...document.querySelectorAll('body *')].filter(wide).slice(-3);
  const told = found.map((e) => `${over} px: ${e.tagName.toLowerCase()}.${e.className}`);
  return told.length ? told : [`${over} px: words that run out of their box`];
}"""
# What the page's own script does when a box changes its size, it does with the next frame.
DRAWN: Final = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
RUN: Final = """async (only) => {
  const found = await axe.run(document, { runOnly: only, resultTypes: ['violations'], preload: false });
  const why = (n) => [...n.any, ...n.all, ...n.none].slice(0, 1).map((a) => a.message).join();
  const told = (n) => `${n.target.join(' ')} ${why(n)}`;
  return found.violations.map((v) => `${v.id}: ${v.nodes.slice(0, 4).map(told).join(' | ')}`);
}"""


def looked_at(page: Page, address: str) -> Iterator[str]:
    """Everything that is wrong with the page at an address, one line each."""
    page.goto(address, wait_until="load")
    yield from at_hand(page)


def at_hand(page: Page) -> Iterator[str]:
    """Everything that is wrong with the page that is open: in light and dark, on a desktop, zoomed, and on a phone. It
    is not loaded again: its window is resized and its colours are changed, as a reader would. Every rule of axe is
    asked at both sizes, in one of the colours each; in the other one those that colours can change.
    """
    yield from (f"policy: {one}" for one in page.evaluate("__violated"))
    page.evaluate(AXE)  # through the debugger: the page's own policy is untouched, and stands while axe reads
    yield from _asked(page, "light desktop", EVERY_RULE)
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    yield from _asked(page, "dark desktop", OF_COLOUR)
    for name, size in (("zoomed", ZOOMED), ("phone", PHONE)):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        yield from (f"{name}, too wide by {one}" for one in page.evaluate(WIDE))
    page.evaluate(DRAWN)
    yield from _asked(page, "dark phone", EVERY_RULE)
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    yield from _asked(page, "light phone", OF_COLOUR)
    shift: Any = page.evaluate("__shift")
    if shift >= SHIFT:
        yield f"what is on the page moved: {shift:.2f}"
    page.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})


def _asked(page: Page, how: str, rules: Mapping[str, object]) -> Iterator[str]:
    """What axe finds by some rules."""
    yield from (f"{how}, {one}" for one in page.evaluate(RUN, dict(rules)))
