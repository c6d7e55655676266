"""Holds: placed and lifted from the command line; nothing is planned or applied against a held one (DESIGN 3, 4)."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from consolidation import planner, runner
from consolidation.operations import Kind
from consolidation.runner import Outcome
from observations.embedding import HASHING
from observations.models import Event, Scope
from tests.building import observe, propose, scope

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def within() -> Scope:
    return scope("team-a/u1")


def memory(*words: str) -> str:
    out = io.StringIO()
    call_command("memory", *words, stdout=out)
    return out.getvalue()


def test_a_held_scope_is_left_out_of_plans_and_its_operations_wait(within: Scope) -> None:
    operation = propose(Kind.MERGE, [observe("Prefers tea", within=within), observe("Prefers tea", within=within)])
    assert "is on hold" in memory("hold", "--scope", within.name, "--reason", "a dispute")
    within.refresh_from_db()
    made = planner.plan(scopes=[within], pattern="*", by="test", trigger="command", profile=HASHING)
    assert "on hold" in made.failures[0]["error"]
    assert runner.apply(operation=operation, by="ines").outcome is Outcome.REFUSED
    assert "Released" in memory("release", "--scope", within.name)
    assert runner.apply(operation=operation, by="ines").outcome is Outcome.APPLIED
    assert list(Event.objects.filter(action__in=("held", "released")).values_list("action", flat=True)) == [
        "held",
        "released",
    ]


def test_a_hold_may_end_by_itself_on_a_day_to_come(within: Scope) -> None:
    assert "until 2999-01-31" in memory("hold", "--scope", within.name, "--until", "2999-01-31", "--reason", "audit")
    within.refresh_from_db()
    assert within.held_until is not None


@pytest.mark.parametrize("until", ["yesterday", "2001-01-31"])
def test_a_day_that_is_none_or_over_is_refused_and_nothing_is_held(within: Scope, until: str) -> None:
    with pytest.raises(CommandError):
        memory("hold", "--scope", within.name, "--until", until, "--reason", "audit")
    within.refresh_from_db()
    assert within.held_at is None


def test_releasing_what_is_not_held_says_so(within: Scope) -> None:
    assert "is not on hold" in memory("release", "--scope", within.name)
