"""`manage.py consolidate samples` and `judge`: what is to be checked, and a person's word on it."""

from __future__ import annotations

import pytest

from consolidation.models import Demotion, Sample
from tests.building import scope
from tests.consolidating import run
from tests.measuring_error import applied, planned

pytestmark = pytest.mark.django_db(transaction=True)


def test_samples_lists_what_waits_and_what_is_known_of_each_rule() -> None:
    assert "nothing to check" in run("samples").out
    [operation] = applied(scope())
    said = run("samples").out
    assert f"1 to check\n  {operation.op_id}  same key, 0.98-0.99  team-a/u1" in said
    assert "automatic    nothing known" in said
    found = run("samples --json").document
    assert [row["operation"] for row in found["waiting"]] == [operation.op_id]
    [band] = found["bands"]
    assert (band["of"], band["waiting"], band["error"], band["upper"]) == ("automatic operations", 1, None, None)


def test_judge_counts_the_word_and_the_plan_says_which_rule_fell() -> None:
    [operation] = applied(scope())
    said = run(f"judge {operation.op_id} --wrong --by ines")
    assert (said.status, said.error) == (0, "")
    assert f"is judged wrong, by ines. `manage.py consolidate undo {operation.op_id}` takes it back." in said.out
    assert Demotion.objects.get().wrong == 1
    warned = "WARN  merge: same key, 0.98-0.99 was wrong in 1 of 1, at least 20.7% where 0.5% are allowed"
    assert warned in run("samples").out
    assert warned in run("plan").out


def test_a_second_word_is_refused_and_a_correction_is_asked_for_by_name() -> None:
    [operation] = applied(scope())
    run(f"judge {operation.op_id} --right --by ines")
    again = run(f"judge {operation.op_id} --wrong --by otto")
    assert (again.status, "ines said so" in again.error) == (1, True)
    assert run(f"judge {operation.op_id} --wrong --correct --by otto").status == 0
    assert (Sample.objects.get().judged, Sample.objects.get().judged_by) == ("wrong", "otto")


def test_what_is_not_asked_about_cannot_be_judged() -> None:
    [operation] = planned(scope())
    refused = run(f"judge {operation.op_id} --right")
    assert (refused.status, "is not asked about" in refused.error) == (1, True)
