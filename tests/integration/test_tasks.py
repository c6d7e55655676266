"""Tasks are safe to deliver twice, plan only what changed, and apply only for a person or by policy (C12, C17, E1, E4,
M2, R94).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from consolidation import runner, tasks
from consolidation.models import Operation, Pause, Plan, PlanItem, Policy
from consolidation.operations import Kind, State
from observations import outbox, store
from observations.models import Embedding, Observation, Outbox, Scope, database_now
from observations.records import Claim, Status, WrittenBy
from observations.tasks import embed, sweep
from tests import probing
from tests.acceptance.acting import let_the_grace_pass
from tests.building import first_confirms, observe, propose, scope, seconded
from tests.conftest import superuser

pytestmark = pytest.mark.django_db(transaction=True)
WINDOW = "2026-03-01T02"


@pytest.fixture(autouse=True)
def _no_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests call the tasks themselves; the real queue is tested with a real worker."""
    monkeypatch.setattr(outbox, "wake", lambda: None)


def written(text: str, within: Scope) -> None:
    """One more row with its vector, and the outbox empty again."""
    observe(text, within=within)
    Outbox.objects.filter(done_at=None).update(done_at=database_now())


def twins(name: str = "team-a/u1") -> Scope:
    """A scope with one automatic merge in it."""
    within = scope(name)
    written("The relay listens on port 4411", within)
    written("The relay listens on port 4411.", within)
    return within


def at_once(number: int, act: Callable[[], object]) -> list[object]:
    """What an act returns in so many threads at once."""
    gate, results = threading.Barrier(number), []

    def run() -> None:
        try:
            gate.wait()
            results.append(act())
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def open_rows(task: str) -> int:
    return Outbox.objects.filter(task=task, done_at=None).count()


# --- embedding ------------------------------------------------------------------------------------------------------


def test_what_is_written_is_embedded_by_the_sweep_and_not_twice() -> None:
    within = scope("team-a/u1")
    with transaction.atomic():
        claims = [Claim(text=f"Fact number {number}") for number in range(3)]
        store.add_observations(scope=within, claims=claims, written_by=WrittenBy.DELIBERATE)
    assert not Embedding.objects.exists()
    assert sweep() == "1 rows"
    vectors = set(Embedding.objects.values_list("pk", flat=True))
    assert len(vectors) == 3
    ids = list(Observation.objects.order_by("pk").values_list("pk", flat=True))
    assert embed(within.pk, ids[0], ids[-1]) == outbox.ALREADY_DONE
    assert set(Embedding.objects.values_list("pk", flat=True)) == vectors


# --- planning -------------------------------------------------------------------------------------------------------


def test_a_planning_message_delivered_again_makes_no_second_plan() -> None:
    """C17, E1: five deliveries, in a row and an hour apart."""
    within = twins()
    first = tasks.plan_scope(within.pk, WINDOW)
    assert first == str(Plan.objects.get())
    assert [tasks.plan_scope(within.pk, WINDOW) for _ in range(4)] == [outbox.ALREADY_DONE] * 4
    assert Plan.objects.count() == 1
    assert Operation.objects.count() == 1


def test_a_planning_message_delivered_twice_at_once_makes_one_plan() -> None:
    """C17: the other delivery ends as 'already running' or 'already done'."""
    within = twins()
    said = at_once(4, lambda: tasks.plan_scope(within.pk, WINDOW))
    assert len([one for one in said if str(one).startswith("plan_")]) == 1
    assert set(said) <= {str(Plan.objects.get()), outbox.ALREADY_RUNNING, outbox.ALREADY_DONE}


def test_two_planners_past_every_lease_still_store_one_plan() -> None:
    """The unique key decides where a lease was lost: both planned, one is stored."""
    within = twins()
    job = outbox.Job(0, tasks.PLAN_SCOPE, within.pk, "k", {"window": WINDOW}, 1)
    said = at_once(3, lambda: tasks._plan_scope(job))
    assert sorted(map(str, said)) == [outbox.ALREADY_DONE] * 2 + [str(Plan.objects.get())]
    assert PlanItem.objects.count() == 1


def test_only_scopes_that_changed_are_planned_again() -> None:
    one, two = twins("a/1"), twins("a/2")
    assert tasks.plan_all() == "2 scopes"
    sweep()
    assert tasks.plan_all() == "0 scopes"
    written("The kettle is new", two)
    assert tasks.changed_scopes(older_than=tasks.PLANNED_AGAIN_AFTER) == [two.pk]
    assert tasks.plan_all() == "1 scopes"
    assert Outbox.objects.get(task=tasks.PLAN_SCOPE, done_at=None).scope_id == two.pk
    assert one.pk != two.pk


def change_status(within: Scope) -> None:
    row = Observation.objects.active().in_scope(within).first()
    assert row is not None
    with transaction.atomic():
        store.lock_scope(scope_id=within.pk)
        store.move(scope_id=within.pk, ids=[row.pk], to=Status.ARCHIVED)


def change_policy(within: Scope) -> None:
    Policy.objects.create(pattern=within.name, body={"block_cap": 100})


def add_a_row_without_a_vector(within: Scope) -> None:
    with transaction.atomic():
        store.add_observations(scope=within, claims=[Claim(text="Bare")], written_by=WrittenBy.DELIBERATE)


@pytest.mark.parametrize("change", [change_status, change_policy, add_a_row_without_a_vector])
def test_every_change_that_planning_could_see_counts(change: Callable[[Scope], None]) -> None:
    within = twins()
    tasks.plan_scope(within.pk, WINDOW)
    assert tasks.changed_scopes(older_than=tasks.PLANNED_AGAIN_AFTER) == []
    change(within)
    assert tasks.changed_scopes(older_than=tasks.PLANNED_AGAIN_AFTER) == [within.pk]


def test_vectors_that_come_after_the_plan_count_as_a_change() -> None:
    within = scope("team-a/u1")
    add_a_row_without_a_vector(within)
    tasks.plan_scope(within.pk, WINDOW)
    assert tasks.changed_scopes(older_than=tasks.PLANNED_AGAIN_AFTER) == []
    sweep()
    assert tasks.changed_scopes(older_than=tasks.PLANNED_AGAIN_AFTER) == [within.pk]


def test_a_quiet_scope_is_planned_once_a_week() -> None:
    """Retention and first uses come of age without any row changing."""
    within = twins()
    tasks.plan_scope(within.pk, WINDOW)
    assert tasks.changed_scopes(older_than=timedelta(days=7)) == []
    assert tasks.changed_scopes(older_than=timedelta(0)) == [within.pk]


def test_a_write_that_commits_after_the_plan_is_not_missed() -> None:
    """M2: its id and its time are older than the plan; a watermark over either would miss it. 20 rounds."""
    within, missed = twins(), 0
    for number in range(20):
        wrote, planned = threading.Event(), threading.Event()

        def write(number: int = number, wrote: threading.Event = wrote, planned: threading.Event = planned) -> None:
            try:
                with transaction.atomic():
                    claim = Claim(text=f"Late fact {number}")
                    store.add_observations(scope=within, claims=[claim], written_by=WrittenBy.DELIBERATE)
                    wrote.set()
                    planned.wait(20)
            finally:
                connection.close()

        writer = threading.Thread(target=write)
        writer.start()
        assert wrote.wait(20)
        tasks.plan_scope(within.pk, f"round {number}")
        assert tasks.changed_scopes(older_than=tasks.PLANNED_AGAIN_AFTER) == []
        planned.set()
        writer.join()
        missed += tasks.changed_scopes(older_than=tasks.PLANNED_AGAIN_AFTER) != [within.pk]
    assert missed == 0


def test_two_beats_never_double_a_run() -> None:
    """E4: every message arrives twice, at once; one row per scope, one plan per scope and window."""
    for name in ("a/1", "a/2", "a/3"):
        twins(name)
    at_once(2, tasks.plan_all)
    assert open_rows(tasks.PLAN_SCOPE) == 3
    at_once(2, sweep)
    at_once(2, tasks.plan_all)
    sweep()
    assert Plan.objects.count() == 3
    assert {plan.window[10] for plan in Plan.objects.all()} == {"T"}


def test_a_backlog_of_nights_makes_one_plan_per_scope() -> None:
    """E4: no burst; while a run waits, the next one has nothing to add."""
    twins()
    for _ in range(5):
        tasks.plan_all()
    assert open_rows(tasks.PLAN_SCOPE) == 1


def test_scopes_on_hold_or_paused_are_left_alone() -> None:
    held, paused, free = twins("a/held"), twins("a/paused"), twins("a/free")
    Scope.objects.filter(pk=held.pk).update(held_at=database_now(), hold_reason="audit")
    Pause.objects.create(scope=paused, by="maya")
    assert tasks.plan_all() == "1 scopes"
    assert Outbox.objects.get(task=tasks.PLAN_SCOPE).scope_id == free.pk


def test_while_everything_is_paused_nothing_is_planned_and_no_attempt_is_used_up() -> None:
    within = twins()
    Pause.objects.create(by="maya")
    assert tasks.plan_all() == "paused"
    assert tasks.plan_scope(within.pk, WINDOW) == outbox.WAITING
    assert Outbox.objects.get(task=tasks.PLAN_SCOPE).attempts == 0
    assert not Plan.objects.exists()


def test_planning_by_schedule_changes_nothing_of_memory() -> None:
    """C12, I22."""
    within = twins()
    before = list(Observation.objects.order_by("pk").values())
    tasks.plan_all()
    sweep()
    assert Plan.objects.get(pattern=within.name).trigger == "schedule"
    assert list(Observation.objects.order_by("pk").values()) == before


# --- applying -------------------------------------------------------------------------------------------------------


@pytest.fixture
def plan() -> Plan:
    """A plan with one automatic merge."""
    operation = propose(Kind.MERGE, list(Observation.objects.in_scope(twins()).order_by("pk")))
    Outbox.objects.filter(done_at=None).update(done_at=database_now())
    return Plan.objects.get(items__operation=operation)


def test_a_plans_automatic_items_are_applied_in_the_name_of_who_asked(plan: Plan) -> None:
    assert tasks.apply_plan(plan.pk, "olga") == "1 applied"
    operation = Operation.objects.get()
    assert (operation.status, operation.applied_by) == (State.APPLIED, "olga")


def test_an_apply_message_delivered_again_changes_nothing(plan: Plan) -> None:
    """C17, I8: in a row and at once."""
    at_once(3, lambda: tasks.apply_plan(plan.pk, "olga"))
    before = list(Observation.objects.order_by("pk").values())
    assert tasks.apply_plan(plan.pk, "olga") == "1 already"
    assert list(Observation.objects.order_by("pk").values()) == before
    assert Observation.objects.filter(derivation="merge").count() == 1


def test_the_schedule_cannot_apply_a_plan(plan: Plan) -> None:
    """DESIGN 7: nothing that writes memory is scheduled, whatever an admin adds to beat's table."""
    tasks.apply_plan.push_request(periodic_task_name="apply every night")  # type: ignore[call-arg]  # the stubs know fewer headers
    try:
        assert "refused" in tasks.apply_plan(plan.pk, "olga")
    finally:
        tasks.apply_plan.pop_request()
    assert Operation.objects.get().status == State.PLANNED


def test_somebody_who_left_meanwhile_applies_nothing(plan: Plan) -> None:
    User.objects.create(username="olga", is_active=False)
    assert tasks.apply_plan(plan.pk, "olga") == outbox.REFUSED
    assert Operation.objects.get().status == State.PLANNED


def test_a_refusal_is_kept_on_the_row_and_not_tried_again(plan: Plan) -> None:
    Pause.objects.create(by="maya")
    assert tasks.apply_plan(plan.pk, "olga") == outbox.REFUSED
    row = Outbox.objects.get(task=tasks.APPLY_PLAN)
    assert row.done_at is not None
    assert "paused by maya" in row.last_error


def test_a_wide_plan_needs_its_second_confirmation_here_too(plan: Plan) -> None:
    Policy.objects.create(pattern="*", body={"blast_floor": 0, "blast_share": 0.0})
    with superuser() as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute("UPDATE consolidation_operation SET policy_hash = %s", [Policy.objects.effective(scope="x").hash])
    assert tasks.apply_plan(plan.pk, "olga") == outbox.REFUSED
    first_confirms(plan)
    assert tasks.apply_plan(plan.pk, "olga", confirmed=True) == "1 applied"


def test_unattended_application_is_off_by_default_and_refused_in_the_trial() -> None:
    """R94: by policy only; and not in the first seven days."""
    within = twins()
    tasks.plan_scope(within.pk, WINDOW)
    assert tasks.apply_unattended() == "no scope allows it"
    Policy.objects.create(pattern=within.name, body={"unattended": True})
    tasks.plan_scope(within.pk, "under the new policy")
    assert tasks.apply_unattended() == "1 plans refused"
    assert Operation.objects.latest("pk").status == State.PLANNED


def test_unattended_application_works_once_the_trial_is_over() -> None:
    within = twins()
    Policy.objects.create(pattern=within.name, body={"unattended": True})
    tasks.plan_scope(within.pk, WINDOW)
    PlanItem.objects.update(opened_at=database_now(), opened_by="maya")
    with superuser() as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute("UPDATE consolidation_plan SET created_at = created_at - interval '8 days'")
    assert tasks.apply_unattended() == "1 plans refused"  # R112: recall is not measured there
    probing.suite(within)
    assert tasks.apply_unattended() == "1 applied"
    assert Operation.objects.get().applied_by == "schedule"


# --- the end of a prune ---------------------------------------------------------------------------------------------


def pruned() -> Operation:
    """A prune that a person approved and applied."""
    from consolidation import review

    row = observe("The old office had a red door", within=scope("team-a/u1"))
    operation = propose(Kind.PRUNE, [row])
    Outbox.objects.filter(done_at=None).update(done_at=database_now())
    review.approve(operation=operation, by="maya", reason="too old")
    seconded(operation)
    assert runner.apply(operation=Operation.objects.get(pk=operation.pk), by="olga").outcome == "applied"
    return Operation.objects.get(pk=operation.pk)


def test_pruned_rows_are_erased_after_the_grace_period_and_not_before() -> None:
    operation = pruned()
    assert sweep() == "0 rows"
    assert Observation.objects.get().status == Status.ARCHIVED
    Outbox.objects.filter(task=runner.ERASE_PRUNED).update(due_at=database_now())
    let_the_grace_pass(operation)
    assert sweep() == "1 rows"
    assert Observation.objects.get().status == Status.ERASED
    job = outbox.Job(0, runner.ERASE_PRUNED, operation.scope_id, "k", {"operation": operation.pk}, 1)
    assert tasks._erase_pruned(job) == outbox.ALREADY_DONE


def test_a_prune_undone_in_time_is_never_erased() -> None:
    operation = pruned()
    runner.undo(operation=operation, by="maya")
    Outbox.objects.filter(task=runner.ERASE_PRUNED).update(due_at=database_now())
    sweep()
    job = outbox.Job(0, runner.ERASE_PRUNED, operation.scope_id, "k", {"operation": operation.pk}, 1)
    tasks._erase_pruned(job)
    assert Observation.objects.get().status == Status.ACTIVE


def test_an_erase_waits_as_long_as_the_scope_is_on_hold() -> None:
    operation = pruned()
    Scope.objects.filter(pk=operation.scope_id).update(held_at=database_now(), hold_reason="audit")
    for _ in range(7):
        Outbox.objects.filter(task=runner.ERASE_PRUNED).update(due_at=database_now())
        sweep()
    row = Outbox.objects.get(task=runner.ERASE_PRUNED)
    assert (row.attempts, row.done_at) == (0, None)
    assert Observation.objects.get().text is not None


# --- housekeeping ---------------------------------------------------------------------------------------------------


def test_verifying_says_where_the_invariants_do_not_hold() -> None:
    twins()
    assert tasks.verify() == "0 broken"
    assert outbox.last_run(task=tasks.VERIFY)[1] == ""  # type: ignore[index]
    with superuser() as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute("UPDATE observations_observation SET text = 'tampered with'")
    assert tasks.verify() != "0 broken"
    last = outbox.last_run(task=tasks.VERIFY)
    assert last is not None
    assert "I11" in last[1]


# --- planned by records ---------------------------------------------------------------------------------------------


def test_a_scope_is_planned_once_enough_of_its_records_are_new() -> None:
    """R33: "every n new records"; the same number of records is planned once, however often beat asks."""
    within = scope("team-a/u1")
    Policy.objects.create(pattern=within.name, body={"trigger": "records", "every_records": 2})
    observe("Prefers tea", within=within)
    assert tasks.plan_due() == "0 scopes"
    observe("Prefers coffee", within=within)
    assert tasks.plan_due() == "1 scopes"
    assert tasks.plan_due() == "1 scopes"
    assert Outbox.objects.filter(task=tasks.PLAN_SCOPE).count() == 1
    sweep()
    assert Plan.objects.filter(scope=within).count() == 1
    assert tasks.plan_due() == "0 scopes"


def test_the_schedule_leaves_alone_what_is_planned_by_hand_or_by_records() -> None:
    """R33: a policy's word about when wins over the schedule that somebody enabled."""
    for name, trigger in (("a/hand", "manual"), ("a/records", "records"), ("a/schedule", "schedule")):
        observe("Prefers tea", within=scope(name))
        Policy.objects.create(pattern=name, body={"trigger": trigger})
    observe("Prefers tea", within=scope("a/unspoken"))
    assert tasks.plan_all() == "2 scopes"
