"""Deciding five hundred items at once in a real browser: what will happen first, then progress, then item by item."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

import pytest
from celery import current_app
from django.db import connection
from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from consolidation.models import BulkItem, Operation
from consolidation.operations import Approval, Kind, State
from observations import outbox
from tests.building import observe, propose, scope
from tests.desk import PASSWORD, person
from tests.e2e.browser import Watch, shoot
from tests.e2e.test_newcomer import sign_in
from tests.queueing import ask_many, rows_in

pytestmark = pytest.mark.django_db(transaction=True)

QUEUE = "/admin/consolidation/operation/"


@pytest.fixture
def worker() -> Iterator[threading.Thread]:
    """What a worker does, in a thread with a connection of its own; a test starts it."""

    def work() -> None:
        try:
            current_app.loader.import_default_modules()  # as a worker does at its start
            outbox.work(seconds=300)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    yield thread
    if thread.ident is not None:
        thread.join()


def test_five_hundred_items_are_rejected_with_progress_and_a_result_for_each(
    chromium: Browser, watch: Watch, live_server: LiveServer, worker: threading.Thread
) -> None:
    """E.4: the confirmation says how many, the bar moves, the end lists what became of each; one refused stops none."""
    here = scope("team-a/u1")
    ask_many(rows_in(here), 500, hours=100)
    ask_many(rows_in(here), 2, kind=Kind.PRUNE, hours=30)
    person("rita", "Reviewer", "team-a/*", password=PASSWORD)
    page = sign_in(chromium, watch, live_server, "rita", PASSWORD)
    page.goto(QUEUE)
    shoot(page, "queue")
    page.get_by_role("navigation", name="How many of what").get_by_role("link", name="merge").click()
    page.get_by_role("button", name="Reject all…").click()
    expect(page.get_by_role("heading", name="Reject 500 items")).to_be_visible()
    shoot(page, "bulk-confirm")
    page.get_by_label("Reason (needed)").fill("from a rule that was wrong")
    page.get_by_role("button", name="Reject these 500 items").click()
    expect(page.get_by_text("0 done, 0 not done, 500 waiting, of 500")).to_be_visible()
    shoot(page, "bulk-progress")
    worker.start()
    expect(page.get_by_text("Finished.")).to_be_visible(timeout=300_000)
    expect(page.get_by_text("500 done, 0 not done, 0 waiting, of 500")).to_be_visible()
    expect(page.get_by_role("listitem").filter(has_text="now rejected, rita")).to_have_count(200)
    shoot(page, "bulk-done")
    assert Counter(Operation.objects.values_list("status", flat=True)) == {"rejected": 500, "needs_human": 2}
    assert BulkItem.objects.filter(outcome="done").count() == 500


def test_a_few_are_approved_together_after_every_word_was_shown(
    chromium: Browser, watch: Watch, live_server: LiveServer
) -> None:
    """E.4, D2: chosen on the list, read whole, then approved; without a worker."""
    here = scope("team-a/u1")
    for n in range(3):
        pair = [observe(f"{'Prefers tea without sugar in the morning. ' * 6}{n} {end}", within=here) for end in "ab"]
        propose(Kind.MERGE, pair, approval=Approval.NEEDS_HUMAN)
    person("rita", "Reviewer", "team-a/*", password=PASSWORD)
    page = sign_in(chromium, watch, live_server, "rita", PASSWORD)
    page.goto(QUEUE)
    page.get_by_label("All 3 shown here").check()
    page.get_by_role("button", name="Approve 3").click()
    expect(page.get_by_role("heading", name="Approve 3 items")).to_be_visible()
    expect(page.get_by_text("6 records leave the reads, and 3 are written")).to_be_visible()
    shoot(page, "bulk-approve")
    assert Operation.objects.filter(status=State.APPROVED).count() == 0
    page.get_by_role("button", name="Approve these 3 items").click()
    expect(page.get_by_text("3 done, 0 not done, 0 waiting, of 3")).to_be_visible()
    assert Operation.objects.filter(status=State.APPROVED, decided_by="rita").count() == 3
