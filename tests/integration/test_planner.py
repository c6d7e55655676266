"""PLAN: what it stores, what it leaves alone, and that the same proposal stays the same operation."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from django.db import InternalError, connection, transaction

from consolidation import planner, review, runner
from consolidation.models import Operation, Pause, Plan, PlanItem, Policy
from consolidation.operations import Kind, State
from consolidation.rendering import render
from observations import store
from observations.embedding import HASHING, MINILM
from observations.models import Event, Observation, Scope, Use, database_now
from observations.records import Claim, StatedBy, Status, WrittenBy
from tests.building import LONG_AGO, observe, scope
from tests.integration.planning import LIVES, as_list, asked, memory, one, operations, plan, twins

pytestmark = pytest.mark.django_db(transaction=True)


# --- what is stored --------------------------------------------------------------------------------------------------


def test_a_plan_stores_its_operations_with_sources_versions_and_signals() -> None:
    """DESIGN 4: what was shown can be held against what is there when it is applied."""
    within = scope()
    first, second = twins(within)
    made = plan()
    operation = one(made)
    assert (operation.kind, operation.status, operation.approval) == (Kind.MERGE, State.PLANNED, "AUTO")
    assert operation.signals["pairs"][0]["met"][0] == "text"
    assert operation.policy_hash == Policy.objects.effective(scope=within.name).hash
    rows = operation.sources.order_by("position").values_list("observation_id", "planned_version", "planned_hash")
    assert list(rows) == [(row.pk, 1, row.content_hash) for row in (first, second)]
    assert made.policies == {str(within.pk): operation.policy_hash}
    assert Event.objects.filter(action="planned", subject=str(made), actor="ann").count() == 1


def test_contradictions_become_one_supersede_and_a_skipped_merge() -> None:
    """R97, C7: through the database."""
    within = scope()
    for place in ("Oslo", "Bergen"):
        observe(f"Ann lives in the city of {place}", within=within, key=(*LIVES, place))
    made = plan()
    [decision] = operations(made, Kind.SUPERSEDE)
    assert decision.status == State.NEEDS_HUMAN
    assert decision.product["suggested_keep"] == decision.keeper_id
    for skipped in operations(made, Kind.MERGE):
        assert "contradiction" in skipped.skipped_reason


def test_an_empty_store_says_nothing_to_do() -> None:
    """R79, R110."""
    assert render(planner.printed(plan())) == f"{Plan.objects.get()}: nothing to do"
    scope()
    assert "nothing to do" in render(planner.printed(plan()))


def test_rows_without_a_vector_are_compared_by_their_words() -> None:
    within = scope()
    claims = [Claim(text="Standup moved to 09:30", external_id=name) for name in ("a", "b")]
    with transaction.atomic():
        store.add_observations(scope=within, claims=claims, written_by=WrittenBy.IMPORT)
    made = plan()
    assert one(made).score is None
    assert made.figures["without_vector"] == 2


def test_vectors_of_another_profile_are_not_compared() -> None:
    """DESIGN 3: a vector of another profile is refused, never scored as 0."""
    within = scope()
    asked(within)
    assert operations(plan(profile=MINILM)) == []
    assert len(operations(plan(profile=HASHING))) == 1


def test_rows_that_are_not_active_are_not_planned() -> None:
    """R13."""
    within = scope()
    first, _ = twins(within)
    with transaction.atomic():
        store.move(scope_id=within.pk, ids=[first.pk], to=Status.ARCHIVED)
    assert operations(plan()) == []


# --- scopes ----------------------------------------------------------------------------------------------------------


def test_nothing_is_compared_across_scopes() -> None:
    """C6, R90, R106: same wording, subject and day in three scopes."""
    names = ("team-a/u1", "team-a/u2", "team-a/u1/project")
    for name in names:
        observe("Prefers short answers", within=scope(name), key=("u", "prefers", "short answers"))
    made = plan()
    assert operations(made) == []
    assert made.figures["records"] == 3
    for name in names:
        observe("prefers short answers.", within=scope(name), key=("u", "prefers", "short answers"))
    again = plan()
    assert len(operations(again)) == 3
    assert {operation.scope.name for operation in operations(again)} == set(names)
    for operation in operations(again):
        scopes = set(operation.sources.values_list("observation__scope_id", flat=True))
        scopes |= set(PlanItem.objects.filter(operation=operation).values_list("scope_id", flat=True))
        assert scopes == {operation.scope_id}


def test_a_scope_on_hold_or_paused_is_left_out_with_its_reason() -> None:
    """DESIGN 4: NEVER anything under a hold."""
    held, paused, free = scope("held"), scope("paused"), scope("free")
    for within in (held, paused, free):
        twins(within)
    Scope.objects.filter(pk=held.pk).update(held_at=database_now(), hold_reason="audit")
    Pause.objects.create(scope=paused, by="olga")
    made = plan()
    assert {operation.scope_id for operation in operations(made)} == {free.pk}
    assert made.state == Plan.State.COMPLETE
    shown = render(planner.printed(made)).splitlines()
    assert "NOT PLANNED  held: scope is on hold" in shown
    assert "NOT PLANNED  paused: paused by olga" in shown


def test_while_everything_is_paused_planning_is_refused() -> None:
    Pause.objects.create(by="olga")
    with pytest.raises(review.Refused, match="paused by olga"):
        plan()
    assert Plan.objects.count() == 0


def test_a_scope_that_fails_is_shown_and_stops_no_other_one() -> None:
    """A failed step is shown as failed, never counted as nothing to do."""
    twins(scope("good"))
    twins(scope("bad"))
    Policy.objects.create(pattern="bad", body={"t_merge": 9})
    made = plan()
    assert made.state == Plan.State.PARTIAL
    assert {operation.scope.name for operation in operations(made)} == {"good"}
    assert made.failures == [
        {
            "scope": "bad",
            "error": "its policy cannot be read: t_merge must be from 0.5 to 1.0, not 9.0.",
            "failed": True,
        }
    ]
    only_bad = plan(Scope.objects.get(name="bad"))
    assert only_bad.state == Plan.State.FAILED
    assert "nothing to do" not in render(planner.printed(only_bad))


def test_an_error_of_the_database_in_one_scope_leaves_the_snapshot_to_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = scope("first"), scope("second")
    twins(first)
    twins(second)
    real = planner.reading.prunable

    def broken(*, scope_id: int, **more: object) -> object:
        if scope_id == first.pk:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 / 0")
        return real(scope_id=scope_id, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(planner.reading, "prunable", broken)
    made = plan()
    assert made.state == Plan.State.PARTIAL
    assert {operation.scope_id for operation in operations(made)} == {second.pk}
    assert made.failures[0]["error"].startswith("DataError")


# --- a dry run -------------------------------------------------------------------------------------------------------


def test_planning_changes_no_table_of_memory() -> None:
    """R98, C12, I22: every kind of operation that can be planned."""
    within = scope()
    twins(within)
    asked(within)
    for place in ("Oslo", "Bergen"):
        observe(f"Ann lives in {place}", within=within, key=(*LIVES, place))
    observe("The build took 41 minutes", within=within, stated_by=StatedBy.TOOL, created_at=LONG_AGO)
    Policy.objects.create(
        pattern="*", body={"prune": True, "retention": [{"stated_by": "tool", "older_than_days": 30}]}
    )
    before = memory()
    made = plan()
    assert {operation.kind for operation in operations(made)} >= {Kind.MERGE, Kind.SUPERSEDE, Kind.PRUNE}
    assert memory() == before


def test_the_transaction_that_reads_refuses_to_write() -> None:
    """C12: read-only is the database's word, not a habit."""
    twins(scope())

    def write(_name: str) -> None:
        Scope.objects.create(name="written while planning")

    with pytest.raises(InternalError, match="read-only transaction"):
        plan(progress=write)


def test_planning_inside_another_transaction_is_refused() -> None:
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
        plan()


def test_progress_is_told_for_every_scope() -> None:
    scope("a"), scope("b")
    told: list[str] = []
    plan(progress=told.append)
    assert told == ["a", "b"]


# --- pruning ---------------------------------------------------------------------------------------------------------


def use(row: Observation) -> None:
    Use.objects.create(scope_id=row.scope_id, observation_id=row.pk, call_site="search", answer="0" * 32)


def test_archived_sources_are_proposed_once_their_derived_row_was_used_and_not_before() -> None:
    """R51, I13, C10; uses that the row inherited do not count."""
    within = scope()
    Policy.objects.create(pattern="*", body={"prune": True})
    first, second = twins(within)
    use(first)
    operation = one(plan())
    runner.apply(operation=operation, by="ann")
    assert operations(plan()) == []
    derived = Operation.objects.get(pk=operation.pk).derived
    assert derived is not None
    use(derived)
    proposed = one(plan())
    assert (proposed.kind, proposed.status, proposed.approval) == (Kind.PRUNE, State.NEEDS_HUMAN, "NEEDS_HUMAN")
    assert set(proposed.sources.values_list("observation_id", flat=True)) == {first.pk, second.pk}


def test_an_idle_scope_loses_nothing_however_often_it_is_planned() -> None:
    """C10: user-stated and extracted facts, 200 days unread."""
    within = scope()
    for number in range(3):
        observe(f"Fact {number} of the user", within=within, stated_by=StatedBy.USER)
        observe(f"Extracted {number}", within=within)
    before = memory()
    for _ in range(3):
        assert operations(plan()) == []
    assert memory() == before


def test_a_merged_users_word_is_not_pruned_by_the_age_of_its_lower_origin() -> None:
    """R47, I12."""
    within = scope()
    observe("Prefers tea", within=within, stated_by=StatedBy.USER)
    observe("prefers tea.", within=within, stated_by=StatedBy.TOOL)
    runner.apply(operation=review.approve(operation=one(plan()), by="ann"), by="ann")
    merged = Observation.objects.active().get()
    assert merged.stated_by == StatedBy.TOOL
    Policy.objects.create(pattern="*", body={"prune": True, "retention": [{"stated_by": "tool", "older_than_days": 1}]})
    assert operations(plan(), Kind.PRUNE) == []


# --- what is read ----------------------------------------------------------------------------------------------------


def test_columns_hold_what_the_rows_hold_whatever_order_copy_gives() -> None:
    """DESIGN 8: the id travels with the row."""
    within, other = scope(), scope("other")
    rows = [
        observe(f"Note {number} about rack {number % 7}", within=within, key=("rack", "is", str(number % 7)))
        for number in range(40)
    ]
    observe("In another scope", within=other)
    bare = Claim(text="No vector yet", external_id="bare")
    with transaction.atomic():
        store.add_observations(scope=within, claims=[bare], written_by=WrittenBy.IMPORT)
        store.move(scope_id=within.pk, ids=[rows[5].pk], to=Status.ARCHIVED)
    read = planner.copying.columns(scope_id=within.pk, profile=HASHING)
    live = list(Observation.objects.active().in_scope(within).order_by("pk"))
    assert read.ids.tolist() == [row.pk for row in live]
    assert read.text_key.tolist() == [row.text_key for row in live]
    assert read.spo_key.tolist() == [row.spo_key for row in live]
    assert read.has_vector.tolist() == [row.external_id != "bare" for row in live]
    by_row = {item.observation_id: item.vector for row in live for item in row.embeddings.all()}
    for at, row in enumerate(live):
        if row.pk in by_row:
            assert read.vectors[at].tolist() == pytest.approx(list(by_row[row.pk]), abs=1e-6)


def test_json_holds_the_whole_operation_with_external_ids_and_texts() -> None:
    """Build 7: a plan as JSON."""
    within = scope()
    first = observe("Standup moved to 09:30", within=within, external_id="a-1")
    second = observe("standup moved to 09:30.", within=within, external_id="a-2")
    document = planner.plan_json(plan())
    assert document["counts"] == {
        "merge": 1,
        "promote": 0,
        "supersede": 0,
        "prune": 0,
        "skipped": 0,
        "automatic": 1,
        "awaiting_review": 0,
        "total": 1,
    }
    [operation] = as_list(document["operations"])
    assert operation["status"] == "planned"
    assert [(source["id"], source["external_id"], source["text"]) for source in as_list(operation["sources"])] == [
        (f"obs_{first.pk}", "a-1", "Standup moved to 09:30"),
        (f"obs_{second.pk}", "a-2", "standup moved to 09:30."),
    ]
    assert json.loads(json.dumps(document)) == document


def test_the_printed_plan_shows_texts_similarities_and_what_pruning_is_set_to() -> None:
    """R53."""
    within = scope()
    twins(within)
    shown = render(planner.printed(plan()))
    assert "MERGE 2→1" in shown
    assert "similarity 1.000" in shown
    assert "PRUNE 0  retention policy: none configured" in shown
    assert "PROMOTE 0  needs a model; none configured" in shown
    assert "PLANNED FROM  2 records in 1 scope, 1 pair compared in " in shown


def test_a_plan_is_read_with_a_fixed_number_of_queries(django_assert_num_queries: Callable[[int], object]) -> None:
    within = scope()
    for number in range(4):
        twins(within, f"Standup number {number} moved to room {number}")
    made = plan()
    with django_assert_num_queries(2):  # type: ignore[attr-defined]
        planner.printed(made)
    with django_assert_num_queries(2):  # type: ignore[attr-defined]
        planner.plan_json(made)
