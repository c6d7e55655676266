"""Ways in which the engine was broken once, without its model: keys, names, lessons, churn and whole plans."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction

from consolidation import aliases, invariants, learning, review, rollout, runner
from consolidation.models import Operation, Policy
from consolidation.operations import Approval, Kind, State
from consolidation.runner import Outcome
from observations import store
from observations.models import Episode, Observation, Scope, database_now
from observations.records import Given, KeyState, Status
from tests.acceptance import engine
from tests.acceptance.acting import correct
from tests.acceptance.engine import items, plan, promoting, weeks
from tests.acceptance.test_broken_engine import decide, latest, open_items
from tests.building import observe, scope, seconded

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def within() -> Scope:
    return scope("team-a/ana")


# --- what left the reads ---------------------------------------------------------------------------------------------


def test_a_fact_that_was_corrected_is_not_promoted_again_unseen(within: Scope) -> None:
    """R71, I12: old episodes still say it, and one more; but somebody put something else in its place."""
    weeks(within)
    engine.apply_all(plan(within, completer=promoting()))
    correct(Observation.objects.get(scope=within), "Ana goes by bus now")
    weeks(within, roots=("doc://4",), first=4)
    engine.apply_all(plan(within, completer=promoting((0, 1, 2, 3))))
    assert [row.text for row in Observation.objects.active().in_scope(within)] == ["Ana goes by bus now"]
    waiting = latest(Kind.PROMOTE)
    assert (waiting.approval, waiting.status) == (Approval.NEEDS_HUMAN, State.NEEDS_HUMAN)
    assert "left the reads" in waiting.reason


# --- keys that a model gave ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("subjects", [("", ""), ("north car park", "guests")], ids=["no key", "two readings"])
def test_a_model_that_reads_two_subjects_hides_no_contradiction(within: Scope, subjects: tuple[str, str]) -> None:
    """C7: 'may' and 'may not' reach a person, whatever a model took for their subjects."""
    texts = ("Guests may use the north car park after six", "Guests may not use the north car park after six")
    rows = [observe(text, within=within) for text in texts]
    if all(subjects):
        give(within, {row: (subject, "use", "") for row, subject in zip(rows, subjects, strict=True)})
    made = plan(within)
    [item] = [one for one in items(made) if one.n_sources == 2]
    assert (item.approval, item.skipped_reason[:22]) == (Approval.NEEDS_HUMAN, "possible contradiction")


def give(within: Scope, keys: dict[Observation, tuple[str, str, str]]) -> None:
    given = {
        row.pk: Given(KeyState.GIVEN, "scripted", "keys-1", *key, quote=(0, len(row.text or "")))
        for row, key in keys.items()
    }
    with transaction.atomic():
        assert store.put_keys(scope_id=within.pk, given=given) == set(given)


def test_equal_keys_that_a_model_gave_merge_nothing_by_themselves(within: Scope) -> None:
    """Keys of a model find candidates; only the writers' own make a merge automatic."""
    rows = [observe(text, within=within) for text in ("The relay sits in rack 4", "In rack 4 the relay sits now")]
    give(within, dict.fromkeys(rows, ("relay", "sits in", "rack 4")))
    plan(within)
    assert not Operation.objects.filter(kind=Kind.MERGE, approval=Approval.AUTO).exists()


# --- aliases, holds, lessons -----------------------------------------------------------------------------------------


def test_an_alias_that_is_undone_leaves_what_was_merged_under_it_whole(within: Scope) -> None:
    """I2, I16: the merge stands by the decision that was in force, and its own undo still works."""
    names = ("k7", "relay")
    rows = [observe("The relay sits in rack 4", within=within, key=(name, "sits in", "rack 4")) for name in names]
    alias = aliases.request_alias(scope=within, subject="k7", name="relay", by="ann")
    review.approve(operation=alias, by="ben", reason="one device")
    assert runner.apply(operation=alias, by="ben").outcome is Outcome.APPLIED
    plan(within)
    merge = latest(Kind.MERGE)
    if merge.approval == Approval.NEEDS_HUMAN:
        review.approve(operation=merge, by="ben")
    engine.applied(merge)
    assert runner.undo(operation=Operation.objects.get(pk=alias.pk), by="ben").outcome is Outcome.UNDONE
    assert invariants.check() == []
    plan(within)
    assert runner.undo(operation=Operation.objects.get(pk=merge.pk), by="ben").outcome is Outcome.UNDONE
    assert Observation.objects.active().in_scope(within).count() == len(rows)
    assert invariants.check() == []


def test_no_alias_is_asked_for_in_a_scope_on_hold(within: Scope) -> None:
    """DESIGN 3: no operation is planned against a hold, whoever asks for it."""
    for name in ("k7", "relay"):
        observe("The relay sits in rack 4", within=within, key=(name, "sits in", "rack 4"))
    Scope.objects.filter(pk=within.pk).update(held_at=database_now(), hold_reason="a case")
    with pytest.raises(review.Refused, match="hold"):
        aliases.request_alias(scope=Scope.objects.get(pk=within.pk), subject="k7", name="relay", by="ann")


def test_one_of_two_decisions_that_is_undone_leaves_what_the_other_taught(within: Scope) -> None:
    """What a predicate holds is known while any decision says so."""
    decide(within, "Bo", "takes", many=False)
    second = decide(within, "Cy", "takes", many=False)
    assert runner.undo(operation=second, by="ann").outcome is Outcome.UNDONE
    assert learning.cardinalities(scope_id=within.pk) == {"takes": "one"}


def test_one_value_that_a_decision_taught_under_many_is_there_when_many_is_taken_back(within: Scope) -> None:
    """Undo gives back what was there: a lesson that was overruled is not lost with the one that overruled it."""
    decide(within, "Bo", "takes", many=False)
    many = decide(within, "Cy", "takes", many=True)
    assert learning.cardinalities(scope_id=within.pk) == {"takes": "many"}
    assert runner.undo(operation=many, by="ann").outcome is Outcome.UNDONE
    assert learning.cardinalities(scope_id=within.pk) == {"takes": "one"}


# --- churn -----------------------------------------------------------------------------------------------------------


def test_a_row_that_was_archived_and_taken_back_is_not_archived_again(within: Scope) -> None:
    """DESIGN 4, Undo: decay does not ask for ever, and a use yesterday counts."""
    Policy.objects.create(pattern=within.name, body={"archive": True, "archive_below": 0.5})
    observe("The crane stands in hall 2", within=within, created_at=database_now() - timedelta(days=4000))
    engine.apply_all(plan(within))
    assert runner.undo(operation=latest(Kind.ARCHIVE), by="ann").outcome is Outcome.UNDONE
    for _ in range(2):
        plan(within)
    assert open_items(Kind.ARCHIVE) == []


def test_a_whole_store_planned_twice_holds_no_new_item(within: Scope) -> None:
    """C12: with every kind in it, promotions, summaries, decay and prunes too."""
    engine.a_store_for_every_kind()
    completer = engine.whole_model()
    plan(completer=completer)
    for _ in range(2):
        again = plan(completer=completer)
        assert (again.figures["new"], again.figures["stale"], again.figures["asked"]) == (0, 0, 0)


def test_a_whole_store_applied_and_planned_until_nothing_is_left_comes_to_rest(within: Scope) -> None:
    """No plan churns: passes end, and each operation is one decision."""
    engine.a_store_for_every_kind()
    completer = engine.whole_model()
    for _ in range(6):
        made = plan(completer=completer)
        engine.apply_all(made)
        assert invariants.check() == []
    assert plan(completer=completer).figures["new"] == 0


@pytest.mark.parametrize("kind", [Kind.ARCHIVE, Kind.PRUNE])
def test_what_a_prompt_was_given_since_it_was_planned_stays(within: Scope, kind: Kind) -> None:
    """C10, I13: planned as faded or unused on Monday, used on Tuesday, not taken away on Wednesday."""
    retention = [{"stated_by": "agent", "older_than_days": 30, "only_unused": True}]
    body = {"archive": True, "archive_below": 0.5} if kind == Kind.ARCHIVE else {"prune": True, "retention": retention}
    Policy.objects.create(pattern=within.name, body=body)
    row = observe("The crane stands in hall 2", within=within, created_at=database_now() - timedelta(days=4000))
    plan(within)
    if kind == Kind.PRUNE:
        review.approve(operation=latest(kind), by="ann", reason="nobody needs it")
        seconded(latest(kind))
    engine.use(row)
    result = runner.apply(operation=latest(kind), by="ann")
    assert (result.outcome, "used" in result.sentence) == (Outcome.STALE, True)
    assert Observation.objects.get(pk=row.pk).status == Status.ACTIVE
    plan(within)
    assert open_items(kind) == []


# --- whole plans -----------------------------------------------------------------------------------------------------


def test_everything_that_a_plan_applied_can_be_undone_and_gives_back_what_was_there(within: Scope) -> None:
    """I9: merges, promotions, summaries and archives of one plan, taken back in reverse."""
    engine.a_store_for_every_kind()
    completer = engine.whole_model()
    made = plan(completer=completer)
    before = standing()
    engine.apply_all(made)
    assert standing() != before
    rollout.undo_plan(plan=made, by="ann")
    assert standing() == before
    assert invariants.check() == []


def standing() -> dict[str, object]:
    """What reads see, and how every row stands."""
    rows = Observation.objects.exclude(status=Status.RETRACTED).order_by("pk")
    turns = Episode.objects.order_by("pk")
    fields = ("pk", "status", "superseded_by_id", "confidence", "valid_from", "valid_to", "created_at")
    return {"rows": list(rows.values_list(*fields)), "turns": list(turns.values_list("pk", "status"))}
