"""An undo that a later change of the result blocks names the row that took its place, and what can be done (C13)."""

from __future__ import annotations

import pytest
from django.test import Client

from consolidation import invariants, runner
from consolidation.models import Operation
from consolidation.operations import Kind, State
from consolidation.runner import Outcome
from observations import ingest
from observations.models import Observation, Scope
from observations.records import Claim, EvidenceRef, Status
from tests.acceptance.acting import apply, derived_of, fresh, undo
from tests.building import observe, propose, scope
from tests.consolidating import run
from tests.desk import client_of, item_url, person, settle
from tests.intaking import gave_way
from tests.writing import where

pytestmark = pytest.mark.django_db


@pytest.fixture
def merge() -> Operation:
    """An applied merge of two rows."""
    within = scope("team-a/u1")
    rows = [observe(f"The relay sits in rack 4{end}", within=within) for end in ("", ".")]
    operation = propose(Kind.MERGE, rows)
    assert apply(operation).outcome == Outcome.APPLIED
    settle()
    return fresh(operation)


@pytest.fixture
def olga() -> Client:
    """An operator of team-a."""
    return client_of(person("olga", "Operator", "team-a/*"))


def corrected(row: Observation) -> int:
    """As a program or a person corrects a row by a call; the new row."""
    claim = Claim(text="The relay sits in <b>rack 7</b>", evidence=(EvidenceRef("test://corrected"),))
    kept = ingest.correct(scope=row.scope, observation_id=row.pk, claim=claim, by="ana@command")
    assert kept.replaced == row.pk
    assert kept.id is not None
    return kept.id


def standing(within: Scope) -> list[object]:
    """Every row with all that an undo may move."""
    return list(Observation.objects.filter(scope=within).order_by("pk").values())


def test_an_undo_whose_result_was_corrected_names_the_correction_at_every_door(merge: Operation, olga: Client) -> None:
    """C13, promise 5: nothing takes a deliberate correction back, so the sentence does not ask for it."""
    result = derived_of(merge)
    new = corrected(result)
    sentence = (
        f"{result} was superseded by obs_{new} since, and not in the background, so this stays applied:"
        f" correct or retire obs_{new} instead."
    )
    before = standing(merge.scope)
    preview = runner.undo_preview(operation=merge)
    assert (preview.blockers, preview.instead) == ((sentence,), (new,))
    refused = undo(merge)
    assert (refused.outcome, refused.sentence) == (Outcome.REFUSED, sentence)
    ran = run(f"undo {merge.op_id}")
    assert (ran.status, sentence in ran.out) == (1, True)
    page = olga.get(item_url(merge, "undo")).content.decode()
    assert sentence in page
    assert f'href="{where("observation", "change", new)}"' in page
    assert "<b>rack 7" not in page
    assert (standing(merge.scope), fresh(merge).status) == (before, State.APPLIED)


def test_what_the_background_put_in_the_results_place_is_taken_back_first_and_then_the_undo_goes(
    merge: Operation, olga: Client
) -> None:
    """C13, R12: doing what the sentence says leads to the undo."""
    result = derived_of(merge)
    new = gave_way(result, "The relay sits in rack 9")
    sentence = f"{result} was superseded by {new} since: take that back first, on its page."
    assert undo(merge).sentence == sentence
    page = olga.get(item_url(merge, "undo")).content.decode()
    assert sentence in page
    assert f'href="{where("observation", "change", new.pk)}"' in page
    ingest.take_back(scope=merge.scope, observation_id=new.pk, by="olga")
    assert runner.undo_preview(operation=fresh(merge)).blockers == ()
    assert undo(merge).outcome == Outcome.UNDONE
    settle()
    sources = Observation.objects.filter(operation_sources__operation=merge)
    assert set(sources.values_list("status", flat=True)) == {Status.ACTIVE}
    assert Observation.objects.get(pk=result.pk).status == Status.RETRACTED
    assert [str(found) for found in invariants.check()] == []


def test_of_two_changes_one_that_was_taken_back_does_not_hide_the_other(merge: Operation) -> None:
    """Control: what was taken back counts for nothing, and for nothing else."""
    result = derived_of(merge)
    ingest.take_back(scope=merge.scope, observation_id=gave_way(result).pk, by="olga")
    later = gave_way(Observation.objects.get(pk=result.pk), "The relay sits in rack 5")
    assert undo(merge).sentence == f"{result} was superseded by {later} since: take that back first, on its page."
    ingest.take_back(scope=merge.scope, observation_id=later.pk, by="olga")
    new = corrected(Observation.objects.get(pk=result.pk))
    assert f"{result} was superseded by obs_{new} since, and not in the background" in undo(merge).sentence
