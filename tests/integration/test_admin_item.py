"""The page of one operation: its fields, what is lost, why it was proposed, and an edit that is previewed as it is
written (E.2, E.3).
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from consolidation import review, runner
from consolidation.admin.item.editing import Preview
from consolidation.admin.item.reading import Item
from consolidation.models import Operation
from consolidation.operations import Approval, Kind, State
from observations.models import Observation, Scope, Use
from tests.building import observe, propose, scope
from tests.desk import client_of, item_url, person, settle, status_of
from tests.engine import engine, keyed

pytestmark = pytest.mark.django_db

EDIT, PREVIEWED = 17, 16
PAIRS = [
    {"a": 0, "b": 0, "cosine": 0.91, "met": ["subject_predicate"], "verdict": "ask", "failed": ["guard number"]},
]


@pytest.fixture
def within() -> Scope:
    return scope()


@pytest.fixture
def olga() -> Client:
    """An operator of team-a."""
    return client_of(person("olga", "Operator", "team-a/*"))


def rows(within: Scope) -> list[Observation]:
    said = (
        ("Ann moved to Ghent in 2019", "Ghent"),
        ("ann moved to ghent", ""),
        ("Ann moved to Ghent with Bo", "Ghent"),
    )
    return [
        observe(
            text, within=within, key=("Ann", "lives in", value) if value else ("", "", ""), sources=[f"mail://{at}"]
        )
        for at, (text, value) in enumerate(said)
    ]


def merge(within: Scope, **more: Any) -> Operation:
    return propose(Kind.MERGE, rows(within), approval=Approval.NEEDS_HUMAN, judgement=("similar", "0.91-0.92"), **more)


def item(client: Client, operation: Operation) -> Item:
    found: Item = client.get(item_url(operation)).context["item"]
    return found


def form_of(client: Client, operation: Operation) -> dict[str, Any]:
    """What a browser would post of the edit page without a change."""
    context = client.get(item_url(operation, "edit")).context
    form = context["form"]
    data: dict[str, Any] = {
        "digest": context["digest"],
        "in": [str(card.id) for card, kept in form.cards if kept] + [str(turn.id) for turn, kept in form.turns if kept],
    }
    for entry in (*form.differ, *form.equal):
        data[f"own_{entry.name}"] = entry.own
        if entry.picks:
            data[f"pick_{entry.name}"] = next((pick.value for pick in entry.picks if pick.chosen), "own")
    return data


def previewed(client: Client, operation: Operation, data: dict[str, Any]) -> Preview:
    found: Preview = client.post(item_url(operation, "preview"), data).context["preview"]
    return found


# --- what the page says ----------------------------------------------------------------------------------------------


def test_fields_that_differ_are_in_the_table_and_equal_ones_are_folded_away(within: Scope, olga: Client) -> None:
    """E.2: conflicts marked; who says what."""
    operation = merge(within)
    fields = item(olga, operation).fields
    assert fields is not None
    assert {"Text", "Subject", "Predicate", "Object", "First said"} <= {field.label for field in fields.differ}
    assert {field.label for field in fields.equal} >= {"Kind", "Stated by", "True"}
    assert [field.label for field in fields.differ if field.conflict] == ["Text"]
    page = olga.get(item_url(operation)).content.decode()
    assert f"{len(fields.equal)} equal fields</summary>" in page


def test_what_the_result_would_not_say_is_lost_in_words(within: Scope, olga: Client) -> None:
    """E.2: numbers, dates and names, marked by more than a colour."""
    one, two, three = rows(within)
    operation = propose(Kind.MERGE, [one, two, three], approval=Approval.NEEDS_HUMAN, keeper=two)
    losses = item(olga, operation).losses
    assert losses is not None
    gone = {word.text for source in losses.sources for word in source.words}
    assert {"2019", "Bo"} <= gone
    page = olga.get(item_url(operation)).content.decode()
    assert '<b class="lost-word">lost</b>' in page
    assert '<span class="visually-hidden">lost: </span><del>2019</del>' in page


def test_words_that_differ_say_so_without_colour(within: Scope, olga: Client) -> None:
    """E.2: struck through and underlined, and spoken as removed and added."""
    page = olga.get(item_url(merge(within))).content.decode()
    assert '<del><span class="visually-hidden">removed: </span>' in page
    assert '<ins><span class="visually-hidden">added: </span>' in page


def test_why_it_was_proposed_names_the_rule_its_error_the_guards_and_the_signals(within: Scope, olga: Client) -> None:
    """E.2: keys that met, a bar per signal, the rule with its error so far, the guard that objected."""
    first = merge(within)
    review.approve(operation=first, by="rita")
    second = merge(within, signals={"pairs": PAIRS})
    review.reject(operation=merge(within), by="rita", reason="no")
    why = item(olga, second).why
    assert why.judgement is not None
    assert "wrong in 1 of 2 judged here" in why.judgement.error
    assert why.guards == ("guard number",)
    assert ("Lowest similarity", "0.910") in {(bar.label, bar.words) for bar in why.bars}
    page = olga.get(item_url(second)).content.decode()
    assert page.count("<meter") == len(why.bars) + 1
    assert "same subject and predicate" in page
    assert "style=" not in page


def test_what_else_rests_on_the_sources_is_there(within: Scope, olga: Client) -> None:
    """E.2: what was built on it, and the other open questions about it."""
    sources = rows(within)
    done = propose(Kind.MERGE, sources[:2], approval=Approval.NEEDS_HUMAN)
    review.approve(operation=done, by="rita")
    assert runner.apply(operation=done, by="olga").outcome == runner.Outcome.APPLIED
    settle()
    done.refresh_from_db()
    open_now = propose(Kind.MERGE, sources[1:], approval=Approval.NEEDS_HUMAN)
    other = propose(Kind.ARCHIVE, sources[2:], approval=Approval.NEEDS_HUMAN)
    why = item(olga, open_now).why
    assert [one.pk for one in why.built] == [done.derived_id]
    assert [one.pk for one in why.open] == [other.pk]
    assert "gives every source back" in why.undo


def test_the_values_of_a_contradiction_stand_on_one_screen_with_who_says_them(olga: Client) -> None:
    """E.3: said when, by whom, on what evidence, valid when, and which is suggested; each choice has its key."""
    mine = engine()
    values = item(olga, mine.supersede).values
    assert values is not None
    assert [bar.suggested for bar in values.timeline.bars] == [False, False, True]
    assert all(bar.by and bar.evidence and bar.words for bar in values.timeline.bars)
    assert [choice.key for choice in values.choices] == ["1", "2", "3", "b", "", ""]


# --- editing ---------------------------------------------------------------------------------------------------------


def test_the_form_as_it_comes_changes_nothing_and_says_so(within: Scope, olga: Client) -> None:
    operation = merge(within)
    shown = previewed(olga, operation, form_of(olga, operation))
    assert shown.refusal == "Nothing is changed: approve it as it stands."
    assert Operation.objects.filter(edited_from=operation).count() == 0


def test_the_preview_is_what_is_stored_after_apply(within: Scope, olga: Client) -> None:
    """E.2, promise 1: text, key, trust, confidence and dates, from the form to the database."""
    operation = merge(within)
    data = form_of(olga, operation)
    data |= {
        "pick_text": "own",
        "own_text": "Ann has lived in Ghent since 2019.",
        "own_object": "Gent",
        "pick_object": "own",
    }
    data["in"] = data["in"][:1] + data["in"][2:]
    shown = previewed(olga, operation, data)
    assert (shown.refusal, shown.product is not None) == ("", True)
    assert Operation.objects.filter(edited_from=operation).count() == 0  # looking writes nothing
    answer = olga.post(item_url(operation, "edit"), {**data, "verb": "approve_apply"}, follow=True)
    settle()
    assert answer.status_code == 200
    new = Operation.objects.get(edited_from=operation)
    assert (status_of(operation), new.status, new.edited_by, new.decided_by) == ("edited", "applied", "olga", "olga")
    row = Observation.objects.get(pk=new.derived_id or 0)
    product = shown.product
    assert product is not None
    assert product.text.plain == row.text == "Ann has lived in Ghent since 2019."
    assert product.key == f"{row.subject} · {row.predicate} · {row.object}" == "Ann · lives in · Gent"
    assert (product.by, product.confidence, product.sources) == (row.stated_by, f"{row.confidence:.2f}", 2)


def test_an_edit_may_be_left_to_somebody_else(within: Scope) -> None:
    rita = client_of(person("rita", "Reviewer", "team-a/*"))
    operation = merge(within)
    data = form_of(rita, operation) | {"pick_text": "own", "own_text": "Ann is in Ghent", "verb": "save"}
    rita.post(item_url(operation, "edit"), data)
    new = Operation.objects.get(edited_from=operation)
    assert (new.status, new.decided_by) == (State.NEEDS_HUMAN, "")
    why = item(rita, new).why
    assert why.edited_from is not None
    assert (why.edited_from.pk, why.edited_by) == (operation.pk, "rita")
    again = rita.post(item_url(operation, "edit"), data)  # a second click finds the first one (C16)
    assert again["Location"] == item_url(new)
    ruth = client_of(person("ruth", "Reviewer", "team-a/*"))
    refused = ruth.post(item_url(operation, "edit"), {**data, "verb": "approve"})
    assert refused.status_code == 409
    assert "is edited" in refused.content.decode()
    assert Operation.objects.filter(edited_from=operation).count() == 1


def test_a_form_that_showed_something_else_is_refused_and_keeps_what_was_written(within: Scope, olga: Client) -> None:
    """D2, C11."""
    operation = merge(within)
    data = form_of(olga, operation) | {
        "pick_text": "own",
        "own_text": "My words",
        "verb": "approve",
        "digest": "0" * 64,
    }
    answer = olga.post(item_url(operation, "edit"), data)
    assert answer.status_code == 409
    assert "is not what was shown any more" in answer.content.decode()
    assert "My words</textarea>" in answer.content.decode()
    assert status_of(operation) == State.NEEDS_HUMAN


@pytest.mark.parametrize("broken", [{"in": ["x"]}, {"in": ["99999999"]}, {"pick_text": "7" * 30}, {"pick_kind": "own"}])
def test_a_form_that_no_page_made_is_a_sentence_and_not_an_error(
    broken: dict[str, Any], within: Scope, olga: Client
) -> None:
    operation = merge(within)
    answer = olga.post(item_url(operation, "preview"), form_of(olga, operation) | broken)
    assert answer.status_code == 200
    assert answer.context["preview"].refusal


def test_a_key_that_a_model_gave_is_taken_as_the_reviewers_own_word(within: Scope, olga: Client) -> None:
    """It stands in no row; whoever takes it says it."""
    given, other = keyed(within), observe("Bo is employed by Relay", within=within)
    operation = propose(Kind.MERGE, [given, other], approval=Approval.NEEDS_HUMAN, keeper=other)
    data = form_of(olga, operation)
    data |= {f"pick_{part}": str(given.pk) for part in ("subject", "predicate", "object")}
    shown = previewed(olga, operation, data)
    assert shown.product is not None
    assert shown.product.key == "Bo · works at · Relay"


def test_promotions_and_summaries_are_edited_by_their_words(olga: Client) -> None:
    mine = engine()
    for operation in (mine.promote, mine.compact):
        data = form_of(olga, operation) | {"own_text": "Ana takes a night train to Graz."}
        shown = previewed(olga, operation, data)
        assert shown.product is not None
        assert shown.product.text.plain == "Ana takes a night train to Graz."
    assert shown.losses is not None
    assert "120 euros" in {word.text for source in shown.losses.sources for word in source.words}


def test_other_kinds_have_no_form(olga: Client) -> None:
    mine = engine()
    page = olga.get(item_url(mine.supersede, "edit")).content.decode()
    assert "A supersede is not edited" in page
    assert "data-edit" not in page
    assert 'data-key="e"' not in olga.get(item_url(mine.supersede)).content.decode()


def test_one_may_look_and_not_edit_without_the_right(within: Scope) -> None:
    viewer, stranger = client_of(person("vic", "Viewer", "team-a/*")), client_of(person("sam", "Reviewer", "team-b/*"))
    operation = merge(within)
    for page in ("edit", "preview"):
        assert viewer.get(item_url(operation, page)).status_code == 403
        assert stranger.get(item_url(operation, page)).status_code == 404


# --- whatever the words ----------------------------------------------------------------------------------------------

HOSTILE = "<script>alert(1)</script> \u202egnp.exe \u0000 \U000e0041 \U0001f600 שלום"


def test_hostile_words_are_text_on_every_page_of_the_item(within: Scope, olga: Client) -> None:
    """F5, O1: in texts and keys, in the form, in the preview, and in what was written."""
    sources = [
        observe(f"{HOSTILE} {'x' * 5_000} {number}", within=within, key=(HOSTILE, HOSTILE, HOSTILE)) for number in "ab"
    ]
    operation = propose(Kind.MERGE, sources, approval=Approval.NEEDS_HUMAN)
    data = form_of(olga, operation) | {"pick_text": "own", "own_text": HOSTILE}
    pages = [
        olga.get(item_url(operation)),
        olga.get(item_url(operation, "edit")),
        olga.post(item_url(operation, "preview"), data),
        olga.post(item_url(operation, "edit"), {**data, "verb": "preview"}),
    ]
    for answer in pages:
        page = answer.content.decode()
        assert answer.status_code == 200
        assert "<script>alert" not in page
        assert "\U000e0041" not in re.sub(r"<(textarea|input)[^>]*>([^<]*</textarea>)?", "", page)
        assert "\u202e" not in re.sub(r"<(textarea|input)[^>]*>([^<]*</textarea>)?", "", page)


def test_an_endless_word_is_shown_whole_and_not_looked_through(within: Scope, olga: Client) -> None:
    sources = [observe(letter * 300_000, within=within) for letter in "ab"]
    operation = propose(Kind.MERGE, sources, approval=Approval.NEEDS_HUMAN)
    answer = olga.get(item_url(operation))
    assert answer.status_code == 200
    assert 900_000 < len(answer.content) < 1_600_000  # two sources, what would be written, and the difference
    losses = answer.context["item"].losses
    assert losses.unchecked == "they are too long"


# --- queries ---------------------------------------------------------------------------------------------------------


def count(client: Client, operation: Operation, data: dict[str, Any] | None) -> int:
    with CaptureQueriesContext(connection) as captured:
        page = "edit" if data is None else "preview"
        address = item_url(operation, page)
        answer = client.get(address) if data is None else client.post(address, data)
        assert answer.status_code == 200
    return len(captured)


@pytest.mark.parametrize("posted", [False, True])
def test_the_form_and_its_preview_run_a_fixed_number_of_queries(posted: bool, within: Scope, olga: Client) -> None:
    """STYLE 20: for two sources, and for nine that were used."""
    few = propose(Kind.MERGE, rows(within)[:2], approval=Approval.NEEDS_HUMAN)
    many = propose(Kind.MERGE, [row for _ in range(3) for row in rows(within)], approval=Approval.NEEDS_HUMAN)
    answer = "00000000-0000-4000-8000-000000000000"
    for source in many.sources.all():
        Use.objects.create(scope=within, observation_id=source.row_id, call_site="search", answer=answer)
    counted = []
    for operation in (few, many):
        data = form_of(olga, operation) | {"pick_text": "own", "own_text": "Ann lives in Ghent"} if posted else None
        counted.append(count(olga, operation, data))
    assert counted == [PREVIEWED if posted else EDIT] * 2
