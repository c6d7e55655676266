"""A steward lets turns be read, hands out a token and edits core memory with a race, in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from consolidation import requests
from observations import access, ingest
from observations.models import CoreMemory, IntakeRun, Observation, Token
from tests.building import observe, scope
from tests.desk import PASSWORD, item_url, person
from tests.e2e.browser import Watch, shoot
from tests.e2e.test_newcomer import sign_in
from tests.intaking import deciding, model, read, told, turn
from tests.writing import unusable, where, writing

pytestmark = pytest.mark.django_db(transaction=True)

BEARER = re.compile(r"^pal_[0-9a-f]{16}_[0-9a-f]{64}$")
OSLO, LYON = "Ana lives in Oslo", "Ana lives in Lyon now"


@pytest.fixture
def stella(chromium: Browser, watch: Watch, live_server: LiveServer) -> Page:
    """A steward's browser."""
    scope("team-a/u1")
    person("stella", "Steward", "*", password=PASSWORD)
    return sign_in(chromium, watch, live_server, "stella", PASSWORD)


def place(page: Page, name: str) -> None:
    """Follow the navigation."""
    page.get_by_role("navigation", name="Places").get_by_role("link", name=name, exact=True).click()
    expect(page.locator("main h1").first).to_be_attached()


def test_a_steward_sets_what_programs_may_write(stella: Page, watch: Watch) -> None:
    """R32, R120, R121: no console error, no violation of the content policy, nothing wider than the window."""
    shoot(stella, "desk-steward")
    intake_is_enabled(stella)
    a_token_is_made_and_revoked(stella)
    core_memory_is_edited_with_a_race(stella, watch)


def intake_is_enabled(page: Page) -> None:
    """Off, then on for every third turn, from the scope's beginning."""
    told(scope("team-a/u1"), OSLO, "Hello Bo", "The lift was repaired")
    place(page, "Intake")
    expect(page.get_by_role("cell", name="off", exact=True)).to_be_visible()
    shoot(page, "intake-off")
    page.get_by_role("link", name="team-a/u1", exact=True).click()
    page.get_by_label("Read its turns in the background").press("Space")
    page.get_by_label("Ask a worker when so many turns wait").fill("3")
    page.get_by_label("All, from its beginning").check()
    page.get_by_label("Keep what an agent hands in").check()
    shoot(page, "intake-settings")
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    expect(page.get_by_text("Saved: turns of this scope are read in the background")).to_be_visible()
    expect(page.get_by_text("3 turns", exact=True)).to_be_visible()
    shoot(page, "intake-on")


def a_token_is_made_and_revoked(page: Page) -> None:
    """The secret is on one page; a reload makes no second token; revoking asks first."""
    place(page, "Tokens")
    shoot(page, "tokens-none")
    page.get_by_role("link", name="Make a token").click()
    page.get_by_label("Name, for people to know it by").fill("the editor’s agent")
    page.get_by_label("Scopes", exact=True).fill("team-a/*")
    shoot(page, "token-new")
    page.get_by_label("Scopes", exact=True).press("Enter")
    secret = page.get_by_role("textbox", name="Secret")
    expect(secret).to_have_value(BEARER)
    bearer = secret.input_value()
    assert access.verify_token(bearer=bearer) is not None
    assert bearer not in page.url
    secret.evaluate("field => { field.value = 'pal_0000000000000000_' + '0'.repeat(64) }")  # no picture has a secret
    shoot(page, "token-made")
    page.reload()
    assert Token.objects.count() == 1
    page.goto(where("token"))
    assert bearer not in page.content()
    page.get_by_role("link", name="Revoke").click()
    shoot(page, "token-revoke")
    page.get_by_role("button", name="Revoke this token").click()
    expect(page.get_by_text("it opens nothing from now on")).to_be_visible()
    assert access.verify_token(bearer=bearer) is None
    shoot(page, "tokens")


def core_memory_is_edited_with_a_race(page: Page, watch: Watch) -> None:
    """A program is faster: both texts are shown, nothing is lost, and what is saved next comes after it."""
    here = scope("team-a/u1")
    place(page, "Core memory")
    page.get_by_role("link", name="New core memory").click()
    page.get_by_label(re.compile("^Scope")).select_option("team-a/u1")
    page.get_by_label("Label: lower-case").fill("persona")
    page.get_by_label("Its text").fill("Kind and brief.\nAsks before it deletes anything.")
    shoot(page, "core-new")
    page.get_by_role("button", name="Make it").click()
    whole = page.get_by_label("The whole text")
    expect(whole).to_have_value("Kind and brief.\nAsks before it deletes anything.")
    ingest.replace_core(scope=here, label="persona", old="Kind", new="Patient", by="token:0123456789abcdef")
    whole.fill("Kind and very brief.\nAsks before it deletes anything.")
    page.get_by_role("button", name="Save the whole text").click()
    expect(page.get_by_text("Not saved: token:0123456789abcdef was first.")).to_be_visible()
    assert watch.complaints, "the browser notes the 409"
    assert all("409" in complaint for complaint in watch.complaints)
    watch.complaints.clear()
    expect(page.locator("mark", has_text="Patient")).to_be_visible()
    expect(whole).to_have_value("Kind and very brief.\nAsks before it deletes anything.")
    shoot(page, "core-race")
    page.get_by_role("button", name="Save the whole text").click()
    expect(page.get_by_text("Saved as revision 3.")).to_be_visible()
    page.get_by_text("Replace a part").click()
    page.get_by_label("What stands there, exactly").fill("very brief.\nAsks")
    page.get_by_label("What takes its place").fill("brief.\nAsks")
    page.get_by_role("button", name="Replace it").click()
    expect(page.get_by_text("Saved as revision 4.")).to_be_visible()
    shoot(page, "core")
    page.get_by_role("button", name="Undo revision 4").click()
    expect(page.get_by_text("Saved as revision 5.")).to_be_visible()
    assert CoreMemory.objects.get().value == "Kind and very brief.\nAsks before it deletes anything."
    place(page, "Core memory")
    shoot(page, "core-list")


def test_a_run_is_read_claim_by_claim_and_a_row_says_how_it_was_written(stella: Page) -> None:
    """From the list to a run, to a claim's row and its history; failed runs and given-up turns are named."""
    mine = writing("team-a/u2", mark="of the relay at the north gate")
    unusable(mine.run, mine.turns, reply='{"claims": [{"text": "half an answ')
    here = scope("team-a/u1")
    ingest.enable_intake(scope=here, by="stella", from_start=True)
    told(here, OSLO, "The lift was repaired")
    read(here)
    told(here, turn(LYON, number=3), turn("The lift was repaired again", number=4))
    read(here, completer=model(reconcile=deciding({LYON: ("UPDATE", OSLO, False)})))
    place(stella, "Intake runs")
    expect(stella.get_by_text("The model cannot be reached.").first).to_be_visible()
    shoot(stella, "runs")
    stella.goto(where("intakerun", "change", IntakeRun.objects.order_by("-pk")[0].pk))
    expect(stella.locator(".quoted mark", has_text=LYON)).to_be_visible()
    expect(stella.get_by_text("trust low: a model wrote it").first).to_be_visible()
    shoot(stella, "run")
    stella.goto(where("intakerun", "change", mine.run.pk))
    stella.get_by_text("The answer", exact=True).first.click()
    shoot(stella, "run-unusable")
    stella.goto(where("intakerun", "change", mine.failed.pk))
    expect(stella.get_by_role("alert")).to_contain_text("This run failed.")
    shoot(stella, "run-failed")
    for address, name in ((where("intake"), "intake"), (where("intake", "change", mine.scope.pk), "intake-failed")):
        stella.goto(address)
        shoot(stella, name)
    stella.goto(where("residue"))
    shoot(stella, "residue")
    old = Observation.objects.get(scope=here, text=OSLO)
    stella.goto(where("observation", "change", old.pk))
    expect(stella.get_by_text("the new row took over its evidence")).to_be_visible()
    shoot(stella, "observation-updated")
    assert old.superseded_by_id
    stella.goto(where("observation", "change", old.superseded_by_id))
    expect(stella.get_by_role("heading", name="How it was written")).to_be_visible()
    shoot(stella, "observation-written")


def test_what_programs_ask_is_read_in_the_queue_and_on_its_page(
    chromium: Browser, watch: Watch, live_server: LiveServer
) -> None:
    """Archive, which of two, forget: who asked and why."""
    here = scope("team-a/u1")
    rows = [observe(f"Ana plays {game}.", within=here) for game in ("chess", "go")]
    plant = observe("The office plant is watered on Mondays.", within=here)
    ids = [row.pk for row in rows]
    [archive] = requests.retire(
        scope=here, ids=[plant.pk], by="token:0123456789abcdef", request="a", why="a later turn denies it"
    )
    settle = requests.settle(scope=here, ids=ids, by="intake", request="b", why="another speaker says otherwise")
    forget = requests.forget(scope=here, ids=ids, by="token:0123456789abcdef", request="c")
    person("olga", "Operator", "*", password=PASSWORD)
    olga = sign_in(chromium, watch, live_server, "olga", PASSWORD)
    place(olga, "Queue")
    expect(olga.get_by_text("asked by token:0123456789abcdef").first).to_be_visible()
    shoot(olga, "queue-requests")
    for operation, name in ((archive, "archive"), (settle, "settle"), (forget, "forget")):
        assert operation is not None
        olga.goto(item_url(operation))
        expect(olga.get_by_role("heading", name="Asked for", exact=True)).to_be_visible()
        shoot(olga, f"request-{name}")
    expect(olga.get_by_role("button", name="Approve")).to_have_count(0)
