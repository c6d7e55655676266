"""A reviewer decides by keyboard alone in a real browser: fast, verified in the database, and loud when refused."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from consolidation.admin.queue.focus_acts import reasons_to_approve, reasons_to_reject
from consolidation.admin.queue.focus_tokens import named
from consolidation.models import Deferral, Drill, Operation
from consolidation.operations import Approval, Kind, State
from observations.models import Event, Observation
from tests.building import observe, propose, scope
from tests.desk import PASSWORD, person
from tests.e2e.browser import Watch, shoot
from tests.e2e.test_newcomer import sign_in

pytestmark = pytest.mark.django_db(transaction=True)

ITEMS, BUDGET = 100, 20  # keys for 10 items
FOCUS = "/admin/consolidation/operation/focus/"


def queue(items: int) -> dict[int, Operation]:
    """Half merges, a quarter contradictions, a fifth prunes, and what was skipped for a person."""
    within, made = scope(), {}
    for number in range(items):
        kind = (Kind.MERGE, Kind.SUPERSEDE, Kind.MERGE, Kind.PRUNE, Kind.MERGE)[number % 5]
        texts = (f"Shelf {number} holds cables", f"Shelf {number} holds lamps and cables")
        rows: list[Observation] = [
            observe(text, within=within, key=(f"shelf {number}", "holds", text.partition("holds ")[2]))
            for text in texts
        ]
        one = propose(
            kind,
            rows[:1] if kind == Kind.PRUNE else rows,
            approval=Approval.NEEDS_HUMAN,
            keeper=rows[1] if kind != Kind.PRUNE else None,
            skipped_reason="held back: guard number" if number % 10 == 0 else "",
        )
        made[one.pk] = one
    return made


@dataclass
class Hands:
    """Presses keys and counts them."""

    page: Page
    presses: list[str] = field(default_factory=list)

    def press(self, key: str) -> None:
        """One key."""
        self.presses.append(key)
        self.page.keyboard.press(key)


@dataclass(frozen=True)
class Way:
    """One way to answer an item: its keys, the state they lead to, and what else of the decision is kept."""

    keys: str
    state: str
    reason: int = 0  # the number of the reason that was pressed
    keep: int = 0  # the number of the text or claim that was chosen
    many: bool = False


# For each kind the ways a reviewer answers it.
WAYS: dict[str, tuple[Way, ...]] = {
    "merge": (
        Way("a", "approved"),
        Way("2a", "approved", keep=2),
        Way("d", "distinct"),
        Way("r1", "rejected", reason=1),
        Way("l", "put off"),
    ),
    "supersede": (
        Way("13", "approved", reason=3, keep=1),
        Way("21", "approved", reason=1, keep=2),
        Way("b2", "approved", reason=2, many=True),
        Way("r4", "rejected", reason=4),
        Way("d", "distinct"),
    ),
    "prune": (Way("a1", "approved", reason=1), Way("r2", "rejected", reason=2), Way("l", "put off")),
}
Outcome = tuple[str, str, dict[str, object]]  # state, reason, what was chosen beyond a yes or a no


def read_it(page: Page) -> None:
    """What a person takes to look at a card before answering, on the page's clock alone."""
    page.clock.fast_forward(500)


def stopped(page: Page) -> Page:
    """From the next page on its clock stands still, so that no press comes late because a machine is slow."""
    page.clock.install(time="2026-12-01T00:00:00")
    page.clock.pause_at("2026-12-01T08:00:00")
    return page


def shown(page: Page) -> str:
    """The token of the item in the middle."""
    return page.locator("[data-card] [name=item]").input_value()


def turned(page: Page, token: str) -> None:
    """Another item than that is in the middle, or none."""
    page.wait_for_function(
        "token => document.querySelector('[data-card] [name=item]')?.value !== token", arg=token, polling=20
    )


def wanted_of(page: Page, way: Way, operation: Operation) -> Outcome:
    """What the keys of a way mean for the item as it is shown: its numbers are those that stand on the card."""
    offered = reasons_to_reject(operation) if way.state == "rejected" else reasons_to_approve(operation)
    chosen: dict[str, object] = {"many_valued": True} if way.many else {}
    if way.keep:
        chosen["keep"] = int(page.locator(f'[data-source="{way.keep}"] .id').inner_text().removeprefix("obs_"))
    return way.state, offered[way.reason - 1] if way.reason else "", chosen


def answer(page: Page, hands: Hands, turns: Counter[str], user_id: int) -> tuple[Operation, Outcome] | None:
    """Answer the item in the middle: which it was, and what should be kept of it. None for a drill."""
    token, kind = shown(page), page.locator("[data-card]").get_attribute("data-kind") or ""
    item = named(token=token, user_id=user_id)
    way = WAYS[kind][turns[kind] % len(WAYS[kind])]
    turns[kind] += 1
    meant = None
    if not item.drill:
        operation = Operation.objects.get(pk=item.pk)
        meant = operation, wanted_of(page, way, operation)
    read_it(page)
    for key in way.keys:
        hands.press(key)
    turned(page, token)
    return meant


def outcomes(made: Iterable[int]) -> dict[str, Outcome]:
    """What became of each operation, by its id."""
    put_off = set(Deferral.objects.filter(by="rita").values_list("operation_id", flat=True))
    found = {}
    for row in Operation.objects.filter(pk__in=made):
        waits = row.status in (State.NEEDS_HUMAN, State.SKIPPED) and row.pk in put_off
        found[row.op_id] = ("put off" if waits else row.status, row.decision_reason, row.decision)
    return found


def test_a_hundred_mixed_items_are_decided_by_keyboard_alone(
    chromium: Browser, watch: Watch, live_server: LiveServer
) -> None:
    """E.1 and "Must hold": at most 20 keys per 10 items, reasons among them; each decision is as pressed on that very
    item, in the database; no reload, no console error, and drills in between, which are no decisions.
    """
    made = queue(ITEMS)
    rita = person("rita", "Reviewer", "*", password=PASSWORD)
    page = sign_in(chromium, watch, live_server, "rita", PASSWORD)
    stopped(page)
    page.get_by_role("link", name="Review", exact=True).click()
    expect(page.locator("[data-card]")).to_be_visible()
    page.evaluate("window.untouched = true")
    hands, turns, wanted = Hands(page), Counter[str](), dict[str, Outcome]()
    while len(wanted) < ITEMS:
        before = len(hands.presses)
        if meant := answer(page, hands, turns, rita.pk):
            operation, outcome = meant
            wanted[operation.op_id] = outcome
        assert len(hands.presses) - before <= 2
    assert len(hands.presses) <= BUDGET * ITEMS / 10 + 2 * Drill.objects.count()
    assert outcomes(made) == wanted
    assert set(Operation.objects.exclude(decided_by="").values_list("decided_by", flat=True)) == {"rita"}
    assert set(Observation.objects.values_list("status", flat=True)) == {"active"}  # nothing is applied
    assert page.evaluate("window.untouched") is True
    expect(page.get_by_role("heading", name="Nothing awaits you")).to_be_visible()
    expect(page.locator("[data-undo]")).to_have_count(10)


def decided() -> int:
    """How many items were decided, or put off."""
    return Operation.objects.exclude(decided_by="").count() + Deferral.objects.count()


def test_what_is_pressed_twice_decides_once(chromium: Browser, watch: Watch, live_server: LiveServer) -> None:
    """D2: the second half of a double click, of a double press, and a key held down, that meet the next card, are none
    of its answers; a press after a look at it is one.
    """
    queue(10)
    person("rita", "Reviewer", "*", password=PASSWORD)
    page = sign_in(chromium, watch, live_server, "rita", PASSWORD)
    stopped(page)
    page.goto(f"{FOCUS}?kind=merge")
    posts: list[str] = []
    page.on("request", lambda request: posts.append(request.url) if request.method == "POST" else None)
    approve = page.get_by_role("button", name="Approve", exact=False).and_(page.locator("[data-key=a]"))
    approve.click()  # a card nobody can have read yet
    page.keyboard.press("a")
    assert posts == []
    read_it(page)
    token = shown(page)
    approve.dblclick()
    turned(page, token)
    _half(page, approve, count=2)
    page.keyboard.press("a")
    page.keyboard.press("a")
    assert decided() == len(posts) == 1
    read_it(page)
    _half(page, approve, count=2)  # a slow double click is one, too
    assert decided() == len(posts) == 1
    for times, key in enumerate(("a", "d", "l"), start=2):
        read_it(page)
        token = shown(page)
        page.keyboard.down(key)
        page.keyboard.down(key)  # held down: it repeats
        turned(page, token)
        page.keyboard.down(key)
        page.keyboard.up(key)
        page.keyboard.press(key)
        assert decided() == len(posts) == times
    read_it(page)
    page.keyboard.press("u")
    expect(page.get_by_role("status").filter(has_text="in your queue")).to_be_visible()
    page.keyboard.press("u")
    page.locator("[data-undo] button").first.click()
    assert (decided(), len(posts)) == (3, 5)


def _half(page: Page, button: Locator, *, count: int) -> None:
    """One half of a double click, where the button stands now."""
    box = button.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 9, box["y"] + 9)
    page.mouse.down(click_count=count)
    page.mouse.up(click_count=count)


def test_the_back_button_after_a_decision_decides_nothing_again(
    chromium: Browser, watch: Watch, live_server: LiveServer
) -> None:
    """D2: back to the page that asked, with the script and without: what is decided stays decided, once."""
    queue(10)
    person("rita", "Reviewer", "*", password=PASSWORD)
    page = sign_in(chromium, watch, live_server, "rita", PASSWORD)
    stopped(page)
    page.goto(f"{FOCUS}?kind=merge")
    read_it(page)
    page.keyboard.press("a")
    expect(page.get_by_role("status").filter(has_text="is approved")).to_be_visible()
    first = Operation.objects.get(status=State.APPROVED)
    page.get_by_role("button", name="Everything about it").click()
    page.go_back()
    expect(page.locator("[data-card]")).to_be_visible()
    page.keyboard.press("a")  # at once: no answer
    assert list(Operation.objects.filter(status=State.APPROVED)) == [first]
    plain = chromium.new_context(
        base_url=live_server.url, java_script_enabled=False, storage_state=page.context.storage_state()
    ).new_page()
    plain.goto(f"{FOCUS}?kind=merge")
    approve = plain.locator("[data-key=a]")
    approve.click()
    expect(plain.get_by_role("status").filter(has_text="is approved")).to_be_visible()
    plain.go_back()
    approve.click()
    expect(plain.get_by_role("status").filter(has_text="is approved")).to_be_visible()
    events = Event.objects.filter(action="approved").values_list("subject", flat=True)
    assert sorted(events) == sorted(set(events))
    assert len(events) == Operation.objects.filter(status=State.APPROVED).count()
    assert first.op_id in events


def test_a_digit_chooses_and_another_key_decides(chromium: Browser, watch: Watch, live_server: LiveServer) -> None:
    """E.1: of a merge whose text is kept, of a contradiction which claim: no digit decides by itself, nor one twice."""
    queue(2)
    person("rita", "Reviewer", "*", password=PASSWORD)
    page = sign_in(chromium, watch, live_server, "rita", PASSWORD)
    stopped(page)
    page.goto(f"{FOCUS}?kind=merge")
    read_it(page)
    second = page.locator('[data-source="2"]')
    expect(second.get_by_text("kept text")).to_be_hidden()
    page.keyboard.press("2")
    expect(second.get_by_text("kept text")).to_be_visible()
    expect(page.locator("[data-kept]:visible")).to_have_count(1)
    expect(page.get_by_role("status").filter(has_text="Text 2 is chosen.")).to_be_visible()
    said = second.locator("blockquote").inner_text()
    shoot(page, "focus-chosen")
    assert decided() == 0
    page.keyboard.press("a")
    expect(page.get_by_role("status").filter(has_text="is approved")).to_be_visible()
    merge = Operation.objects.get(status=State.APPROVED)
    assert Observation.objects.get(pk=merge.decision["keep"]).text == said
    page.goto(f"{FOCUS}?kind=supersede")
    read_it(page)
    for key in "22":
        page.keyboard.press(key)
    expect(page.get_by_role("group", name=re.compile("Why\\?"))).to_be_visible()
    assert decided() == 1
    page.keyboard.press("1")
    expect(page.get_by_role("status").filter(has_text="is approved")).to_be_visible()
    assert decided() == 2


def test_keys_undo_help_and_fields(chromium: Browser, watch: Watch, live_server: LiveServer) -> None:
    """E.1: undo last by key; keys do not fire while typing, with modifiers, on repeat or under the help sheet."""
    queue(5)
    person("rita", "Reviewer", "*", password=PASSWORD)
    page = sign_in(chromium, watch, live_server, "rita", PASSWORD)
    stopped(page)
    page.goto(f"{FOCUS}?kind=merge")
    shoot(page, "focus")
    read_it(page)
    for keys in ("Control+a", "Alt+d", "Shift+A", "?"):
        page.keyboard.press(keys)
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    shoot(page, "focus-keys")
    page.keyboard.press("a")
    page.keyboard.press("Escape")
    page.evaluate(
        "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'a', repeat: true, bubbles: true }))"
    )
    page.keyboard.press("o")
    expect(page.locator("[data-evidence]")).to_have_attribute("open", "")
    page.keyboard.press("r")
    expect(page.get_by_role("group", name=re.compile("Why not"))).to_be_visible()
    shoot(page, "focus-reasons")
    page.keyboard.press("w")
    page.keyboard.type("dr. l 12 and a")
    assert page.locator("[name=reason]").input_value() == "dr. l 12 and a"
    assert Operation.objects.exclude(decided_by="").count() == 0
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="is rejected")).to_be_visible()
    assert Operation.objects.get(status=State.REJECTED).decision_reason == "dr. l 12 and a"
    read_it(page)
    page.keyboard.press("u")
    expect(page.get_by_role("status").filter(has_text="is open again")).to_be_visible()
    assert Operation.objects.exclude(decided_by="").count() == 0
    assert page.locator("[data-card]").get_attribute("data-kind") == "merge"
    first = shown(page)
    page.keyboard.press("n")  # to and fro as fast as one likes
    turned(page, first)
    page.keyboard.press("Shift+L")
    page.keyboard.press("3")
    expect(page.get_by_role("status").filter(has_text="put off for a week")).to_be_visible()
    assert Deferral.objects.count() == 1


def test_a_decision_that_came_too_late_is_shown_loudly(
    chromium: Browser, watch: Watch, live_server: LiveServer
) -> None:
    """C16: of two browsers the second reads who decided and when, on the item it has; lost lines offer another try."""
    queue(3)
    for name in ("ana", "ben"):
        person(name, "Reviewer", "*", password=PASSWORD)
    ana, ben = (sign_in(chromium, watch, live_server, name, PASSWORD) for name in ("ana", "ben"))
    for page in (ana, ben):
        stopped(page)
        page.goto(f"{FOCUS}?kind=merge")
        read_it(page)
    ana.keyboard.press("a")
    expect(ana.get_by_role("status").filter(has_text="is approved")).to_be_visible()
    digest = ben.locator("[name=digest]").input_value()
    ben.keyboard.press("d")
    expect(ben.get_by_role("alert")).to_contain_text("ana decided it on")
    shoot(ben, "focus-lost")
    assert ben.locator("[name=digest]").input_value() == digest
    assert Operation.objects.get(status=State.APPROVED).decided_by == "ana"
    assert [complaint[:3] for complaint in watch.complaints if "409" in complaint]
    watch.complaints.clear()  # the browser's own lines about the 409 that the test is about
    at = shown(ben)
    ben.keyboard.press("n")
    turned(ben, at)
    read_it(ben)
    expect(ben.get_by_role("alert")).to_be_hidden()
    ben.context.set_offline(True)
    ben.keyboard.press("d")
    expect(ben.get_by_role("alert")).to_contain_text("The server was not reached")
    ben.context.set_offline(False)
    watch.complaints.clear()
    ben.keyboard.press("t")
    expect(ben.get_by_role("status").filter(has_text="different claims")).to_be_visible()
    assert Operation.objects.get(status=State.DISTINCT).decided_by == "ben"
