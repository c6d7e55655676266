"""What a page showed is what its form does: another choice, another edit and another approval are not it (D2, C16)."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from consolidation import review
from consolidation.models import Operation
from consolidation.operations import Approval, Kind, State
from consolidation.review import Decision
from observations.models import Observation
from tests.building import observe, propose, scope
from tests.desk import client_of, decide, item_url, person, settle, status_of
from tests.integration.test_focus import look, press

pytestmark = pytest.mark.django_db

SAID_BEFORE = "You did that already"


@pytest.fixture
def rita(db: None) -> Client:
    return client_of(person("rita", "Reviewer", "team-a/*"))


@pytest.fixture
def olga(db: None) -> Client:
    return client_of(person("olga", "Operator", "team-a/*"))


def contradiction() -> tuple[Operation, Observation, Observation]:
    within = scope()
    ghent, lyon = (observe(f"Lives in {at}", within=within, key=("ann", "lives in", at)) for at in ("Ghent", "Lyon"))
    return propose(Kind.SUPERSEDE, [ghent, lyon], approval=Approval.NEEDS_HUMAN, keeper=lyon), ghent, lyon


def merge() -> tuple[Operation, list[Observation]]:
    within = scope()
    pair = [observe(text, within=within) for text in ("Ann lives in Ghent", "ann lives in Ghent!")]
    return propose(Kind.MERGE, pair, approval=Approval.NEEDS_HUMAN), pair


def digest_on(page: str) -> str:
    found = re.search(r'name="digest" value="([^"]*)"', page)
    assert found
    return found[1]


def test_d2_another_choice_in_a_second_tab_reads_which_one_stands(rita: Client) -> None:
    operation, ghent, lyon = contradiction()
    digest = review.shown_digest(operation=operation)
    decide(rita, operation, "approve", digest=digest, choice=f"keep:{ghent.pk}", reason="x")
    status, page = decide(rita, operation, "approve", digest=digest, choice=f"keep:{lyon.pk}", reason="x")
    assert (status, SAID_BEFORE in page, "rita decided it" in page) == (409, False, True)
    status, page = decide(rita, operation, "approve", digest=digest, choice=f"keep:{ghent.pk}", reason="x")
    assert (status, SAID_BEFORE in page) == (200, True)  # a second click of the same is no conflict
    operation.refresh_from_db()
    assert operation.decision == {"keep": ghent.pk}


def test_d2_another_choice_in_a_second_focus_view_is_refused(rita: Client) -> None:
    operation, ghent, lyon = contradiction()
    at = look(rita)
    press(rita, at, f"approve|keep:{ghent.pk}", preset_approve="1")
    assert press(rita, at, f"approve|keep:{lyon.pk}", preset_approve="1").status == 409
    assert press(rita, at, f"approve|keep:{ghent.pk}", preset_approve="1").status == 200
    operation.refresh_from_db()
    assert operation.decision == {"keep": ghent.pk}


def test_d2_another_edit_in_a_second_tab_is_not_dropped_in_silence(rita: Client) -> None:
    operation, pair = merge()
    form = {
        "verb": "approve",
        "digest": review.shown_digest(operation=operation),
        "pick_text": "own",
        "in": [str(row.pk) for row in pair],
        "own_text": "Ann lives in Ghent, Belgium",
    }
    rita.post(item_url(operation, "edit"), form)
    settle()
    other = rita.post(item_url(operation, "edit"), {**form, "own_text": "Ann has moved"}, follow=True)
    assert (other.status_code, SAID_BEFORE in other.content.decode()) == (409, False)
    again = rita.post(item_url(operation, "edit"), form, follow=True)
    assert SAID_BEFORE in again.content.decode()
    assert operation.edits.count() == 1


def test_d2_an_operator_applies_the_approval_that_was_shown_and_no_other(rita: Client, olga: Client) -> None:
    operation, ghent, lyon = contradiction()
    decide(rita, operation, "approve", choice=f"keep:{ghent.pk}", reason="x")
    digest = digest_on(olga.get(item_url(operation)).content.decode())
    operation.refresh_from_db()
    review.reopen(operation=operation, by="rita")
    review.approve(operation=operation, by="rita", decision=Decision(keep=lyon.pk), reason="x")
    settle()
    status, page = decide(olga, operation, "apply", digest=digest)
    assert (status, status_of(operation)) == (409, State.APPROVED)
    assert "was decided again after it was shown" in page
    assert decide(olga, operation, "apply", digest=digest_on(page))[0] == 200
    ghent.refresh_from_db()
    assert ghent.superseded_by_id == lyon.pk


def test_what_no_form_of_ours_sends_is_answered_in_words(rita: Client) -> None:
    """A NUL in a reason, and a generation that is a digit for Python alone."""
    operation, pair = merge()
    form = {
        "verb": "approve",
        "digest": review.shown_digest(operation=operation),
        "pick_text": "own",
        "in": [str(row.pk) for row in pair],
        "own_text": "words",
        "reason": "a\0b",
    }
    assert rita.post(item_url(operation, "edit"), form).status_code == 302
    settle()
    assert operation.edits.get().decision_reason == "ab"
    strange = reverse("admin:consolidation_operation_named", args=[f"{operation.op_id}#\N{SUPERSCRIPT TWO}"])
    assert rita.get(strange).status_code == 404
