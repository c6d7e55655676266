"""Residue: at most seven descriptions, three days from when they were first held, and never memory (R121, R134)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from observations import ingest, prompting, tasks
from observations.models import Event, Intake, Observation, Residue, Scope, database_now
from tests.building import scope
from tests.conftest import superuser
from tests.integration.planning import operations, plan, twins

pytestmark = pytest.mark.django_db(transaction=True)

TOKEN = "token:0123456789abcdef"


@pytest.fixture
def within() -> Scope:
    """A scope that keeps residue."""
    kept = scope()
    Intake.objects.create(scope=kept, residue=True, updated_by="ana")
    return kept


def hold(within: Scope, *items: str) -> ingest.Held:
    return ingest.hold_residue(scope=within, items=items, session="s1", by=TOKEN)


def numbered(first: int, last: int) -> list[str]:
    return [f"The relay in rack {number} was restarted" for number in range(first, last + 1)]


def grow_older(text: str, by: timedelta) -> None:
    """Move when an item was first held: nobody but a superuser can."""
    with superuser() as admin:
        admin.execute(
            "UPDATE observations_residue SET first_held_at = first_held_at - %s, held_at = held_at - %s"
            " WHERE text = %s",
            (by, by, text),
        )


def test_residue_is_off_by_default_and_nothing_is_held() -> None:
    """R121."""
    held = hold(scope("team-a/off"), "The relay is slow")
    assert [(item.held, "turns it on" in item.reason) for item in held.items] == [(False, True)]
    assert not Residue.objects.exists()


def test_seven_are_held_and_the_eighth_is_refused_with_a_reason(within: Scope) -> None:
    """R121, R134: what an agent notes at the end of a run is little."""
    held = hold(within, *numbered(1, 9))
    assert [item.held for item in held.items] == [True] * 7 + [False] * 2
    assert "7" in held.items[7].reason
    assert list(Residue.objects.order_by("pk").values_list("text", flat=True)) == numbered(1, 7)


def test_a_refused_item_takes_no_place(within: Scope) -> None:
    held = hold(within, "Restart the relay", "Is it slow?", "", *numbered(1, 7))
    assert [item.held for item in held.items] == [False] * 3 + [True] * 7


def test_what_is_not_english_is_held_and_flagged_as_judged_by_nobody(within: Scope) -> None:
    """R134: the check of grammar knows English, and says so of everything else."""
    items = hold(within, "The relay is slow", "Das Relais ist langsam", "リレーが遅い", "何時ですか？").items
    assert [(item.held, item.judged) for item in items] == [(True, True), (True, False), (True, False), (False, False)]


def test_the_same_item_twice_takes_one_place(within: Scope) -> None:
    held = hold(within, "The relay is slow", "the relay is slow.", *numbered(1, 6))
    assert held.held == 8
    assert Residue.objects.count() == 7


def test_an_item_held_again_keeps_when_it_was_first_held(within: Scope) -> None:
    first = hold(within, "The relay is slow").items[0].first_held_at
    again = hold(within, "The relay is slow").items[0].first_held_at
    assert first == again is not None
    row = Residue.objects.get()
    assert row.held_at > row.first_held_at


def test_items_of_earlier_runs_give_way_and_the_answer_counts_them(within: Scope) -> None:
    hold(within, *numbered(1, 7))
    held = hold(within, "The relay is slow", numbered(1, 1)[0])
    assert held.gave_way == 1
    assert Residue.objects.count() == 7
    assert Residue.objects.filter(text__in=["The relay is slow", numbered(1, 1)[0]]).count() == 2


def test_what_was_first_held_three_days_ago_is_in_no_read_even_before_it_is_dropped(within: Scope) -> None:
    """R121, R134: and it goes by itself."""
    hold(within, "The relay is slow", "The relay is old")
    grow_older("The relay is old", timedelta(days=3))
    assert "The relay is old" not in prompting.prompt(scope=within).text
    assert "The relay is slow" in prompting.prompt(scope=within).text
    assert tasks.age_outbox().endswith(" 1 residue")
    assert list(Residue.objects.values_list("text", flat=True)) == ["The relay is slow"]


def test_holding_an_item_again_does_not_make_it_stay(within: Scope) -> None:
    hold(within, "The relay is slow")
    grow_older("The relay is slow", timedelta(days=2, hours=23))
    hold(within, "The relay is slow")
    grow_older("The relay is slow", timedelta(hours=1))
    assert ingest.drop_residue() == 1


def test_an_expired_item_is_held_anew_with_a_new_time(within: Scope) -> None:
    before = database_now()
    hold(within, "The relay is slow")
    grow_older("The relay is slow", timedelta(days=4))
    first = hold(within, "The relay is slow").items[0].first_held_at
    assert first is not None
    assert first > before


def test_residue_is_never_an_observation_and_no_plan_sees_it(within: Scope) -> None:
    hold(within, "The relay is slow", "The relay is slow today", *numbered(1, 5))
    assert not Observation.objects.exists()
    assert operations(plan(within)) == []


def test_the_same_words_as_observations_would_be_planned() -> None:
    """The control: the planner does see what residue says, where it is memory."""
    twins(scope(), "The relay is slow")
    assert operations(plan(scope()))


def test_the_event_holds_figures_and_no_words(within: Scope) -> None:
    hold(within, "The relay is slow")
    event = Event.objects.get(action="residue held")
    assert (event.actor, event.detail) == (TOKEN, {"held": 1, "gave_way": 0})


def test_c6_residue_of_another_scope_keeps_its_places(within: Scope) -> None:
    other = scope("team-b/u1")
    Intake.objects.create(scope=other, residue=True, updated_by="ana")
    hold(other, *numbered(1, 7))
    assert hold(within, *numbered(1, 7)).held == 7
    assert Residue.objects.count() == 14
