"""A scheduled scope is planned again after everything a planner could see, and after nothing else."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from consolidation import calibrating, review, tasks
from consolidation.calibration import Band, Measured
from consolidation.models import Operation, Plan, Policy
from consolidation.operations import Approval, Kind
from observations import ingest, outbox, store
from observations.embedding import HASHING
from observations.models import Episode, Outbox, Scope, database_now
from observations.records import Given, KeyState, Status
from observations.tasks import sweep
from tests.acceptance.acting import apply, undo
from tests.building import observe, propose, scope, tell
from tests.conftest import superuser
from tests.integration.planning import asked

pytestmark = pytest.mark.django_db(transaction=True)

Act = Callable[[], object]
_windows = count(1)


@pytest.fixture(autouse=True)
def _no_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "wake", lambda: None)


@pytest.fixture
def within() -> Scope:
    """The scope that changes, beside one that never does."""
    observe("The kettle is new", within=scope("team-b/quiet"))
    return scope("team-a/u1")


def changed() -> set[str]:
    """The names of the scopes that are to be planned."""
    ids = tasks.changed_scopes(older_than=tasks.PLANNED_AGAIN_AFTER)
    return set(Scope.objects.filter(pk__in=ids).values_list("name", flat=True))


def planned() -> None:
    """Every scope as after its scheduled plan."""
    Outbox.objects.filter(done_at=None).update(done_at=database_now())
    for row in Scope.objects.all():
        tasks.plan_scope(row.pk, f"round {next(_windows)}")


# --- what a planner could see ----------------------------------------------------------------------------------------


def _given(within: Scope, state: KeyState = KeyState.GIVEN) -> Act:
    row = observe("Bo works at Relay.", within=within)
    subject = "Bo" if state == KeyState.GIVEN else ""
    given = {row.pk: Given(state, model="m", prompt_version="1", subject=subject)}

    def act() -> None:
        with transaction.atomic():
            assert store.put_keys(scope_id=within.pk, given=given) == {row.pk}

    return act


def a_key_is_given(within: Scope) -> Act:
    return _given(within)


def a_given_key_is_withdrawn(within: Scope) -> Act:
    _given(within)()
    row = within.observations.get()
    return lambda: ingest.withdraw_key(observation=row, by="rev")


def _decided(operation: Operation, decision: review.Decision | None = None) -> Operation:
    review.approve(operation=operation, by="rev", decision=decision, reason="looked")
    return operation


def _alias(within: Scope) -> Operation:
    rows = [observe(f"{name} knows Bo", within=within, key=(name, "knows", "Bo")) for name in ("anna", "ana b")]
    key, product = ("anna", "is", "ana b"), {"discriminator": "a"}
    return _decided(propose(Kind.ALIAS, rows, approval=Approval.NEEDS_HUMAN, key=key, product={**product}))


def an_alias_is_made(within: Scope) -> Act:
    operation = _alias(within)
    return lambda: apply(operation)


def an_alias_is_removed(within: Scope) -> Act:
    operation = _alias(within)
    apply(operation)
    return lambda: undo(operation)


def _lesson(within: Scope) -> Operation:
    """No row moves for it: only the lesson and its verdict are new."""
    rows = [observe(f"Ann likes {what}", within=within, key=("ann", "likes", what)) for what in ("tea", "rain")]
    operation = propose(Kind.SUPERSEDE, rows, approval=Approval.NEEDS_HUMAN)
    return _decided(operation, review.Decision(many_valued=True))


def a_predicate_turns_out_to_hold_many(within: Scope) -> Act:
    operation = _lesson(within)
    return lambda: apply(operation)


def a_lesson_is_taken_back(within: Scope) -> Act:
    operation = _lesson(within)
    apply(operation)
    return lambda: undo(operation)


def an_episode_comes(within: Scope) -> Act:
    tell("It began here", within=within)
    return lambda: tell("And went on", within=within)


def the_first_episode_comes_to_a_scope_without_observations(within: Scope) -> Act:
    return lambda: tell("It began here", within=within)


def an_episode_gets_its_vector(within: Scope) -> Act:
    tell("It began here", within=within)

    def act() -> None:
        Outbox.objects.filter(task=store.EMBED).update(done_at=None)
        sweep()

    return act


def an_episode_is_archived(within: Scope) -> Act:
    turn: Episode = tell("It began here", within=within)

    def act() -> None:
        with transaction.atomic():
            store.move_episodes(scope_id=within.pk, ids=[turn.pk], to=Status.ARCHIVED)

    return act


def a_proposal_is_rejected(within: Scope) -> Act:
    """What waited for its rows may be proposed now."""
    asked(within)
    return lambda: review.reject(operation=_proposed(within), by="rev", reason="no")


def a_proposal_is_told_apart(within: Scope) -> Act:
    asked(within)
    return lambda: review.distinct(operation=_proposed(within), by="rev")


def _proposed(within: Scope) -> Operation:
    return Operation.objects.get(scope=within)


CHANGES = (
    a_key_is_given,
    a_given_key_is_withdrawn,
    an_alias_is_made,
    an_alias_is_removed,
    a_predicate_turns_out_to_hold_many,
    a_lesson_is_taken_back,
    an_episode_comes,
    the_first_episode_comes_to_a_scope_without_observations,
    an_episode_gets_its_vector,
    an_episode_is_archived,
    a_proposal_is_rejected,
    a_proposal_is_told_apart,
)


@pytest.mark.parametrize("prepare", CHANGES, ids=lambda change: change.__name__)
def test_a_scope_is_planned_again_after(prepare: Callable[[Scope], Act], within: Scope) -> None:
    """DESIGN 8: only scopes that changed are planned, and no change is missed (M2)."""
    act = prepare(within)
    planned()
    assert changed() == set()
    act()
    assert changed() == {within.name}
    planned()
    assert changed() == set()


@pytest.mark.parametrize("state", [KeyState.NONE, KeyState.UNUSABLE])
def test_an_answer_that_gives_no_key_is_no_change(state: KeyState, within: Scope) -> None:
    """A store whose rows hold no keys is not planned again for it."""
    act = _given(within, state)
    planned()
    act()
    assert changed() == set()


def test_a_calibration_and_its_enabling_concern_every_scope(within: Scope) -> None:
    """The thresholds of all change with it."""
    observe("The relay hums", within=within)
    planned()
    measured = Measured((Band(0.9, different=1_000),))
    row = calibrating.store(profile=HASHING, measured=measured, proposed=(0.8, 0.95), by="ann")
    assert changed() == {within.name, "team-b/quiet"}
    planned()
    assert changed() == set()
    calibrating.enable(calibration=row, by="ann")
    assert changed() == {within.name, "team-b/quiet"}


# --- what a plan left to the next one --------------------------------------------------------------------------------


def test_a_plan_whose_step_failed_is_made_again(within: Scope) -> None:
    """A failed step is never nothing to do: a model that was away is asked again without anything changing."""
    observe("The relay hums", within=within)
    planned()
    Plan.objects.filter(pattern=within.name).update(state=Plan.State.PARTIAL)
    assert changed() == {within.name}


def test_what_the_budget_held_back_is_asked_on_another_day(within: Scope) -> None:
    """Held back is not forgotten; within the day it would be held back again."""
    Policy.objects.create(pattern="*", body={"review_budget": 1})
    for number in range(2):
        for town in ("Oslo", "Rome"):
            observe(f"Ann {number} lives in {town}", within=within, key=(f"ann {number}", "lives in", town))
    planned()
    assert Plan.objects.get(pattern=within.name).figures["held_back"] == 1
    assert changed() == set()
    with superuser() as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute("UPDATE consolidation_plan SET created_at = created_at - interval '1 day'")
        admin.execute("UPDATE consolidation_operation SET created_at = created_at - interval '1 day'")
    assert changed() == {within.name}
    planned()
    assert Plan.objects.filter(pattern=within.name).latest("pk").figures["held_back"] == 0


# --- what it costs ---------------------------------------------------------------------------------------------------


def test_looking_what_changed_takes_the_same_queries_however_many_scopes_there_are(within: Scope) -> None:
    observe("The relay hums", within=within)
    planned()
    with CaptureQueriesContext(connection) as few:
        tasks.changed_scopes(older_than=tasks.PLANNED_AGAIN_AFTER)
    for number in range(5):
        observe("The relay hums", within=scope(f"team-c/{number}"))
    planned()
    with CaptureQueriesContext(connection) as many:
        tasks.changed_scopes(older_than=tasks.PLANNED_AGAIN_AFTER)
    assert len(few) == len(many) == 6


def test_one_scope_is_looked_at_alone(within: Scope) -> None:
    """A plan notes how its own scope stood, not the whole store."""
    row = observe("The relay hums", within=within)
    assert set(tasks.standing(scope_id=within.pk)) == {within.pk}
    assert tasks.standing(scope_id=within.pk)[within.pk] == tasks.standing()[within.pk]
    assert tasks.standing(scope_id=within.pk)[within.pk]["rows"] == row.version
