"""An answer with more claims than one question reconciles loses none of them (R124, R126)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from observations import reconciliation
from observations.extraction import Extracted, Refusal, Refused, reading
from observations.ingest.background import parting, running
from observations.llm import Request, Unreachable
from observations.models import Evidence, Extraction, IntakeItem, Scope
from tests.building import observe, scope
from tests.intaking import active, enabled, lines_of, model, read, told

pytestmark = pytest.mark.django_db

TURNS, EACH = 15, 10
RACKS = [f"Rack {number} holds relay {number}" for number in range(1, TURNS * EACH + 1)]


def sentences(request: Request) -> dict[str, Any]:
    """A model that makes a claim of every sentence."""
    claims = [
        {"text": said, "turn": line["label"], "quote": said, "kind": "fact"}
        for line in lines_of(request)
        for said in line["text"].rstrip(".").split(". ")
    ]
    return {"claims": claims}


def said(within: Scope, *, each: int = EACH) -> None:
    """So many claims to a turn, and a row that all of them are near to, so that each has to be decided about."""
    observe("Rack 900 holds relay 900", within=within)
    told(within, *(". ".join(RACKS[at : at + each]) + "." for at in range(0, len(RACKS), each)))


@pytest.mark.parametrize(
    ("each", "questions"), [(EACH, [100, 50]), (150, [100, 50])], ids=["fifteen turns", "one turn"]
)
def test_all_of_a_hundred_and_fifty_claims_are_stored_once_and_each_is_decided_about(
    each: int, questions: list[int]
) -> None:
    """One extractor call; no question is about more than it may. One turn may hold them all."""
    here, asked = enabled(scope()), model(extract=sentences)
    said(here, each=each)
    report = read(here, completer=asked)
    assert (report.state, report.added, report.refused, report.flagged, report.left) == ("done", 150, 0, 0, 0)
    assert active(here)[1:] == RACKS
    assert Evidence.objects.filter(observation__text__in=RACKS).count() == 150
    assert set(Extraction.objects.values_list("state", "attempts")) == {("claims", 1)}
    assert len(asked.asked_for("extract")) == 1
    assert [len(lines_of(request)) for request in asked.asked_for("reconcile")] == questions
    assert max(questions) <= reconciliation.MAX_PROPOSALS


def test_refusing_what_is_over_one_question_would_have_lost_a_third_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The naive control."""
    monkeypatch.setattr(reading, "MAX_BELIEVED", reconciliation.MAX_PROPOSALS)
    here = enabled(scope())
    said(here)
    read(here, completer=model(extract=sentences))
    assert len(active(here)) == 1 + 100
    assert IntakeItem.objects.filter(verdict=IntakeItem.Verdict.REFUSED).count() == 50


def test_a_run_that_ends_between_two_parts_leaves_the_turns_of_the_second_unread_and_the_next_stores_them_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """C4. Nothing of the first part is stored again."""
    here, asked = enabled(scope()), model(extract=sentences)
    said(here)

    def ending(**given: Any) -> Iterator[parting.Part]:
        yield parting.in_parts(**given)[0]
        raise Unreachable("The model did not answer in time; try later.")

    with monkeypatch.context() as patch:
        patch.setattr(running, "in_parts", ending)
        report = read(here, completer=asked)
    assert (report.state, report.added, report.left) == ("failed", 100, 5)
    report = read(here, completer=asked)
    assert (report.state, report.turns, report.added, report.left) == ("done", 5, 50, 0)
    assert active(here)[1:] == RACKS


def test_turns_with_few_claims_are_one_part_and_what_names_no_turn_is_in_it() -> None:
    turns = [each.record() for each in told(scope(), "Rack 1 holds relay 1", "Rack 2 holds relay 2")]
    refused = Refused(Refusal.NO_ENTRY), Refused(Refusal.NO_QUOTE, episode=turns[1].id)
    [whole] = parting.in_parts(turns=turns, extracted=Extracted(refused=refused))
    assert (list(whole.turns), whole.extracted) == (turns, Extracted(refused=refused))
