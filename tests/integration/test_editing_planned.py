"""What the next plan makes of an edit: it leaves the rows alone while that waits, and asks the old question no more."""

from __future__ import annotations

import pytest

from consolidation import review, runner
from consolidation.models import Operation
from consolidation.operations import State
from consolidation.review import Changes
from consolidation.runner import Outcome
from tests.building import observe, scope
from tests.integration.planning import asked, change_policy, one, operations, plan

pytestmark = pytest.mark.django_db(transaction=True)

OWN = Changes(own={"text": "Maria helps at the homeless shelter downtown"})


def _edited() -> Operation:
    asked(scope())
    made = review.edit(operation=one(plan()), by="rita", changes=OWN)
    return Operation.objects.select_related("scope").get(pk=made.pk)


def test_an_edit_that_waits_stays_and_nothing_else_is_asked_about_its_rows() -> None:
    """DESIGN 4, Identity: as an approved operation keeps its rows."""
    new = _edited()
    made = plan()
    assert [row.pk for row in operations(made)] == [new.pk]
    assert (made.figures["new"], made.figures["stale"]) == (0, 0)
    review.approve(operation=new, by="rita")
    assert runner.apply(operation=new, by="ann").outcome == Outcome.APPLIED
    assert operations(plan()) == []


def test_neither_a_refused_edit_nor_what_it_came_from_is_asked_again_until_something_changed() -> None:
    new = _edited()
    review.reject(operation=new, by="ann", reason="two shelters")
    assert operations(plan()) == []
    change_policy(observe("Anything", within=new.scope))
    [again] = [row for row in operations(plan()) if row.n_sources == 2]
    assert new.edited_from is not None
    assert (again.op_id, again.generation) == (new.edited_from.op_id, 2)


def test_an_edit_goes_stale_with_its_policy_and_the_question_is_asked_anew() -> None:
    new = _edited()
    change_policy(observe("Anything", within=new.scope))
    [again] = [row for row in operations(plan()) if row.n_sources == 2]
    new.refresh_from_db()
    assert (new.status, again.edited_from_id) == (State.STALE, None)
