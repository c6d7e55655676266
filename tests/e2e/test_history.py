"""Looking back in a real browser: the lineage by keyboard, a moment, an answer, a subject, and a record on paper."""

from __future__ import annotations

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from consolidation import runner
from consolidation.operations import Approval, Kind
from consolidation.review import Decision
from observations import prompting
from observations.embedding import embedder
from observations.models import Observation, Scope
from observations.normalise import key64
from tests.building import observe, propose, tell
from tests.desk import PASSWORD, World, person, world
from tests.e2e.browser import Watch, shoot
from tests.e2e.test_newcomer import sign_in
from tests.engine import approve_and_apply, promotion

pytestmark = pytest.mark.django_db(transaction=True)


def grown(mine: World) -> Observation:
    """A row with a lineage of four layers, the first of which are episodes; and Ann's city, decided."""
    _, new = Observation.objects.filter(operation_sources__operation=mine.supersede).order_by("pk")
    told = tuple(
        tell(f"{who} takes the night train to Graz", within=mine.scope, root=f"{who}://1", speaker=who)
        for who in ("Ana", "Ben")
    )
    prompting.prompt(scope=mine.scope, about="Lives in Ghent", embedder=embedder("hashing"))
    asked = promotion(told, plan=mine.plan)
    approve_and_apply(asked)
    asked.refresh_from_db()
    fact = Observation.objects.get(pk=asked.derived_id or 0)
    again = [fact, mine.derived, *(observe(f"The relay restarts at 3, {n}", within=mine.scope) for n in range(4))]
    merged = propose(Kind.MERGE, again, approval=Approval.NEEDS_HUMAN, keeper=mine.derived)
    approve_and_apply(merged)
    merged.refresh_from_db()
    approve_and_apply(mine.supersede, decision=Decision(keep=new.pk), reason="She moved in May, she says so herself.")
    assert runner.undo_preview(operation=merged).blockers == ()
    return Observation.objects.get(pk=merged.derived_id or 0)


def test_a_reader_looks_back_by_keyboard(chromium: Browser, watch: Watch, live_server: LiveServer) -> None:
    """E.8: every box of the drawing is reached by Tab in reading order and opened by Enter; no page complains."""
    mine = world()
    row = grown(mine)
    person("vera", "Viewer", "team-a/*", password=PASSWORD)
    page = sign_in(chromium, watch, live_server, "vera", PASSWORD)
    the_lineage_is_walked(page, row)
    the_versions_are_read(page, mine)
    what_was_told_is_found(page, mine.scope)
    history_is_searched(page)
    page.goto(reverse("admin:observations_observation_subject", args=[mine.scope.pk, key64("ann")]))
    expect(page.get_by_role("heading", name="lives in")).to_be_visible()
    shoot(page, "subject")
    a_record_is_printed(page, mine)


def the_lineage_is_walked(page: Page, row: Observation) -> None:
    """From the first episode down to the row itself, in the order in which the boxes stand."""
    page.goto(reverse("admin:observations_observation_change", args=[row.pk]))
    shoot(page, "observation-history")
    page.get_by_role("region", name="Drawing of the lineage").focus()
    boxes = page.locator("svg.graph a.box")
    names = [boxes.nth(at).get_attribute("aria-label") for at in range(boxes.count())]
    for name in names:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == name
    assert names[0] is not None
    assert names[0].startswith("ep_")
    assert any(name and name.startswith(f"obs_{row.pk}, merge, active, this row, from obs_") for name in names)
    boxes.first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page).to_have_title(f"{names[0].split(',')[0]} | Palimpsest")


def the_versions_are_read(page: Page, mine: World) -> None:
    """Who replaced what, and how it stood on a day."""
    old = Observation.objects.filter(operation_sources__operation=mine.supersede).order_by("pk")[0]
    page.goto(reverse("admin:observations_observation_change", args=[old.pk]))
    versions = page.locator("#versions")
    expect(versions.get_by_text("decided by rita, applied by olga: She moved in May")).to_be_visible()
    expect(versions.locator("ins")).to_contain_text("Lyon")
    shoot(page, "observation-superseded")
    page.get_by_label("Day, or day and time (UTC)").fill("2021-06-01")
    page.keyboard.press("Enter")
    expect(page.get_by_text("not written yet")).to_be_visible()
    shoot(page, "as-of")
    page.get_by_role("link", name="The whole scope then").click()
    expect(page.get_by_role("heading", name="What was believed")).to_be_visible()
    shoot(page, "as-of-scope")


def what_was_told_is_found(page: Page, within: Scope) -> None:
    """The last answer of the scope by a moment."""
    page.goto(reverse("admin:observations_givenanswer_changelist"))
    page.get_by_text("What was the agent told?").click()
    page.get_by_label("By scope").select_option(within.name)
    page.get_by_label("and moment (UTC)").fill("2100-01-01")
    shoot(page, "answers-find")
    page.get_by_role("button", name="The last answer by then").press("Enter")
    expect(page.get_by_text("Lives in Ghent")).to_be_visible()
    expect(page.get_by_text("now superseded")).to_be_visible()
    shoot(page, "answer-then")


def history_is_searched(page: Page) -> None:
    """What was typed is in no address."""
    page.goto(reverse("admin:observations_observation_history"))
    page.get_by_label("Words").fill("Lives Ghent")
    page.get_by_label("Status").select_option("past")
    page.get_by_role("button", name="Search", exact=True).press("Enter")
    expect(page.get_by_role("link", name="Lives in Ghent")).to_be_visible()
    assert "Ghent" not in page.url
    shoot(page, "history")


def a_record_is_printed(page: Page, mine: World) -> None:
    """On paper there is the record, and nothing of the frame."""
    page.goto(reverse("admin:consolidation_operation_record", args=[mine.supersede.pk]))
    expect(page.get_by_text("It matches")).to_be_visible()
    shoot(page, "record")
    page.emulate_media(media="print")
    expect(page.get_by_role("heading", name="What was shown")).to_be_visible()
    expect(page.get_by_role("navigation", name="Places")).to_be_hidden()
    expect(page.get_by_role("link", name="Download as text")).to_be_hidden()
    shoot(page, "record-print")
    page.emulate_media(media="screen")
    with page.expect_download() as kept:
        page.get_by_role("link", name="Download as JSON").click()
    assert kept.value.suggested_filename == f"record-{mine.supersede.op_id}-1.json"
