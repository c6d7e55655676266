"""Nobody approves what they did not see: every field and every character that is decided on is on the page (D2)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from consolidation import review, runner
from consolidation.admin.queue import focus_reading
from consolidation.admin.texts import WHOLE
from consolidation.models import Drill, Operation
from consolidation.operations import Approval, Json, Kind, State
from consolidation.review import Changes
from observations.ingest.lines import MAX_TEXT
from observations.models import Observation, Scope
from observations.records import Claim, MemoryKind
from tests.building import observe, propose, scope, tell
from tests.desk import client_of, decide, item_url, person, settle, status_of
from tests.engine import keyed, write
from tests.integration.test_focus import look, press

pytestmark = pytest.mark.django_db

END = "and always deploy"
GHENT = ("Ann", "lives in", "Ghent")


@pytest.fixture
def within() -> Scope:
    """A scope of team-a."""
    return scope()


@pytest.fixture
def rita(db: Any) -> Client:
    """A reviewer of team-a."""
    return client_of(person("rita", "Reviewer", "team-a/*"))


def edited_object(within: Scope) -> Operation:
    """Somebody else's edit of a merge: the object that it would write is no source's."""
    rows = [observe(text, within=within, key=GHENT) for text in ("Ann lives in Ghent", "ann lives in Ghent!")]
    old = propose(Kind.MERGE, rows, approval=Approval.NEEDS_HUMAN)
    key = {"subject": "Ann", "predicate": "lives in", "object": "Marsopolis"}
    new = review.edit(operation=old, by="zoe", changes=Changes(own=key))
    settle()
    return Operation.objects.select_related("scope").get(pk=new.pk)


def fact(within: Scope, *, length: int = 0) -> Operation:
    """A promotion whose key stands in none of its episodes, the last one of them `length` characters longer."""
    turns = [tell(f"I moved to Ghent {n} {'x ' * (length * n // 2)}{END}", within=within) for n in range(2)]
    product: dict[str, Json] = {"confidence": 0.6, "stated_by": "agent", "support": [[turns[0].pk, 0, 16]]}
    key = ("Ann", "lives in", "Marsopolis")
    return propose(
        Kind.PROMOTE, turns, approval=Approval.NEEDS_HUMAN, text="Ann lives in Ghent", key=key, product=product
    )


def summary(within: Scope, *, number: int = 3, length: int = 0) -> Operation:
    """A compaction of so many turns, the last of them with that many characters more."""
    turns = [tell(f"Turn {n}", within=within) for n in range(number - 1)]
    last = tell(f"{'x ' * (length // 2)}{END}", within=within)
    return propose(Kind.COMPACT, [*turns, last], approval=Approval.NEEDS_HUMAN, text="Turns were taken.")


def long_merge(within: Scope, *, length: int = 30_000) -> Operation:
    """Two texts longer than a view of several shows, which differ in their last words."""
    filler = "x " * (length // 2)
    rows = [observe(f"{filler}{end}", within=within) for end in ("and never deploy", END)]
    return propose(Kind.MERGE, rows, approval=Approval.NEEDS_HUMAN)


def bulk_page(client: Client, operation: Operation) -> str:
    """The page on which a selection is approved."""
    page = client.get(reverse("admin:consolidation_operation_changelist")).content.decode()
    shown = re.search(r'name="shown" value="([^"]*)"', page)
    assert shown is not None
    data = {"verb": "approve", "shown": shown[1], "pick": str(operation.pk)}
    return client.post(reverse("admin:consolidation_operation_decide"), data, follow=True).content.decode()


def card_of(client: Client, operation: Operation) -> str:
    """The focus view at the only item there is."""
    at = look(client)
    assert at.kind == operation.kind
    return at.card


def page_of(client: Client, operation: Operation) -> str:
    """The item's own page."""
    return client.get(item_url(operation)).content.decode()


VIEWS: dict[str, Callable[[Client, Operation], str]] = {"focus": card_of, "bulk": bulk_page, "item": page_of}


# --- every field ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", sorted(VIEWS))
def test_a_field_that_an_edit_would_write_is_shown_and_marked_as_nobodys(
    view: str, within: Scope, rita: Client
) -> None:
    """D2: an edited object stands beside the text that it would be written with, in each view that approves it."""
    operation = edited_object(within)
    page = VIEWS[view](rita, operation)
    assert "<mark>Marsopolis</mark>" in page
    assert "no source says this" in page


def test_what_focus_shows_of_a_record_is_what_is_written(within: Scope, rita: Client) -> None:
    """D2: each field of the row that applying wrote stood in the card."""
    operation, at = edited_object(within), look(rita)
    assert press(rita, at, "approve").status == 200
    done = runner.apply(operation=Operation.objects.select_related("scope").get(pk=operation.pk), by="olga")
    assert done.outcome == runner.Outcome.APPLIED, done
    operation.refresh_from_db()
    assert operation.derived_id is not None
    row = Observation.objects.get(pk=operation.derived_id)
    parts = dict(re.findall(r"<dt>([^<]*)</dt><dd class=\"memory\">(?:<mark>)?([^<]*)", at.card))
    wanted = {"Subject": row.subject, "Predicate": row.predicate, "Object": row.object, "Kind": row.kind}
    wanted |= {"Said by": row.stated_by, "Confidence": f"{row.confidence:.2f}", "True": "no period given"}
    wanted |= {"Fades": f"by half in {row.half_life_days} days"}
    assert wanted.items() <= {name: value.strip() for name, value in parts.items()}.items()


@pytest.mark.parametrize("view", sorted(VIEWS))
def test_the_key_of_a_fact_is_shown_with_what_no_episode_says(view: str, within: Scope, rita: Client) -> None:
    """D2: a promotion writes subject, predicate and object too."""
    page = VIEWS[view](rita, fact(within))
    assert "<mark>Marsopolis</mark>" in page
    assert "in no episode, word by word" in page
    assert END in page


@pytest.mark.parametrize("view", sorted(VIEWS))
def test_a_summary_is_shown_with_all_that_it_would_be_stored_as(view: str, within: Scope, rita: Client) -> None:
    """D2: its confidence and how it fades, beside its words and its episodes."""
    page = VIEWS[view](rita, summary(within))
    assert "by half in 180 days" in page
    assert "0.40" in page
    assert END in page


def test_what_keeping_another_text_would_write_besides_is_shown(within: Scope, rita: Client) -> None:
    """D2: a kept text brings its kind and its key along."""
    first = observe("Ann lives in Ghent", within=within, key=GHENT)
    note = Claim(text="ann lives in ghent!", external_id="n", kind=MemoryKind.NOTE, subject="Anna", predicate="is in")
    operation = propose(Kind.MERGE, [first, write(note, within=within)], keeper=first, approval=Approval.NEEDS_HUMAN)
    for page in (look(rita).card, page_of(rita, operation)):
        other = page[page.index("Where another text is kept") :]
        assert "note" in other[:2000]
        assert "Anna" in other[:2000]


def test_a_key_that_a_model_gave_and_the_new_row_takes_over_is_shown(within: Scope, rita: Client) -> None:
    """D2: the answer is copied to the row that is written, so it is part of what is approved."""
    row = keyed(within)
    propose(Kind.MERGE, [row, observe("Bo is at Relay", within=within)], keeper=row, approval=Approval.NEEDS_HUMAN)
    card = look(rita).card
    assert re.search(r"<dt>Object</dt><dd[^>]*>Relay <span[^>]*>given by ", card)


@pytest.mark.parametrize("view", ["focus", "item"])
def test_both_names_of_an_alias_are_shown_to_their_ends(view: str, within: Scope, rita: Client) -> None:
    """D2: names that begin alike differ in their ends."""
    names = tuple("a" * 300 + end for end in ("-one", "-other"))
    rows = [observe(f"It is {n}", within=within, key=(name, "is", "x")) for n, name in enumerate(names)]
    operation = propose(Kind.ALIAS, rows, approval=Approval.NEEDS_HUMAN, key=(names[0], "", names[1]))
    page = VIEWS[view](rita, operation)
    assert f"<q>{names[0]}</q>" in page
    assert f"<q>{names[1]}</q>" in page


# --- every character --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [long_merge, lambda w: fact(w, length=25_000), lambda w: summary(w, length=25_000)])
def test_a_long_item_is_not_approved_in_focus_but_led_to_its_page_which_shows_all_of_it(
    make: Any, within: Scope, rita: Client
) -> None:
    """D2: neither by the view, which offers none, nor by a request that asks for it all the same."""
    operation = make(within)
    at = look(rita)
    assert "approve" not in at.verbs().values()
    assert focus_reading.TOO_LONG in at.card
    refused = press(rita, at, "approve")
    assert (refused.status, refused.sentence) == (422, focus_reading.TOO_LONG)
    assert status_of(operation) == State.NEEDS_HUMAN
    opened = rita.post("/admin/consolidation/operation/focus/open/", {"item": at.field("item"), "verb": "open"})
    page = rita.get(opened["Location"]).content.decode()
    assert END in page


def test_a_long_drill_is_refused_like_a_long_item_and_counts_as_nothing(within: Scope, rita: Client) -> None:
    """D2, E.4: an approval made by hand, of what no page showed whole, tells a drill from an item in nothing and says
    nothing of the reviewer; a rejection catches it.
    """
    filler = "x " * (WHOLE // 2)
    low, high = (observe(f"{filler}{end}", within=within) for end in ("and never deploy", END))
    drill = Drill.objects.create(scope=within, by="rita", low=low, high=high)
    long_merge(within)
    at = look(rita)
    assert f"obs_{low.pk}" in at.card
    assert focus_reading.TOO_LONG in at.card
    refused = press(rita, at, "approve")
    assert (refused.status, refused.sentence) == (422, focus_reading.TOO_LONG)
    drill.refresh_from_db()
    assert drill.answer == Drill.Answer.WAITING
    assert press(rita, at, "reject", preset_reject="1").sentence.startswith("That was a drill, and you caught it")


def test_a_long_item_is_still_rejected_in_focus(within: Scope, rita: Client) -> None:
    """D2 is about approving: a no writes nothing."""
    operation = long_merge(within)
    assert press(rita, look(rita), "reject", preset_reject="1").status == 200
    assert status_of(operation) == State.REJECTED


def test_a_long_text_scrolls_in_a_region_that_a_keyboard_reaches(within: Scope, rita: Client) -> None:
    """E.10: all of it is in the page, and read without a pointer."""
    page = page_of(rita, long_merge(within))
    assert re.search(r'<blockquote class="memory long" tabindex="0" role="group" aria-label="[^"]+">', page)


def test_every_episode_of_a_long_summary_stands_on_its_page(within: Scope, rita: Client) -> None:
    """D2: however many they are; the focus view refuses what it would have to cut."""
    operation = summary(within, number=focus_reading.PIECES + 1)
    at = look(rita)
    assert press(rita, at, "approve").status == 422
    page = page_of(rita, operation)
    assert f"Turn {focus_reading.PIECES - 1}" in page
    assert END in page


def test_the_episodes_of_a_product_are_not_folded_away_in_focus(within: Scope, rita: Client) -> None:
    """D2: what a summary is decided by is open when its card comes."""
    summary(within)
    assert END in re.sub(r"<details.*?</details>", "", look(rita).card, flags=re.DOTALL)


def test_a_long_item_approved_on_its_page_was_whole_there(within: Scope, rita: Client) -> None:
    """D2: the page's own digest approves it."""
    operation = long_merge(within, length=MAX_TEXT - 40)
    page = page_of(rita, operation)
    assert '<ins><span class="visually-hidden">added: </span>' in page
    digest = re.search(r'name="digest" value="([^"]*)"', page)
    assert digest is not None
    assert END in page
    decide(rita, operation, "approve", digest=digest[1])
    assert status_of(operation) == State.APPROVED
