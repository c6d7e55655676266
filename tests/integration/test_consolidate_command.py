"""`manage.py consolidate`: dry unless told otherwise, readable, honest in its exit status (R52-R54, R79, R86, R99,
R110).
"""

from __future__ import annotations

import pytest
from django.db import transaction

from consolidation.models import Operation, Pause, Plan, Policy
from consolidation.operations import Kind, State
from observations import outbox, store
from observations.models import Observation, Scope, database_now
from observations.records import Claim, MemoryKind, Status, WrittenBy
from tests.building import observe, propose, scope
from tests.consolidating import contradiction, only, run, twins
from tests.integration.test_beat import snapshot

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _no_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "wake", lambda: None)


# --- planning -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["", "plan", "--explain", "plan --explain", "--apply"])
def test_an_empty_store_has_nothing_to_do(words: str) -> None:
    """R110."""
    ran = run(words)
    assert (ran.out, ran.status) == ("nothing to do\n", 0)


def test_an_empty_store_has_nothing_to_do_in_json_either() -> None:
    assert run("--json").document == {"id": None, "counts": {}, "operations": []}


@pytest.mark.parametrize(
    "words", ["", "plan", "plan --explain", "--json", "--scope team-a/u1", "plan --scope 'team-a/*'"]
)
def test_planning_is_what_it_does_when_nothing_is_said_and_it_writes_nothing_to_memory(words: str) -> None:
    """R52, R98, C12."""
    twins()
    contradiction("team-a/u2")
    before = snapshot()
    assert run(words).status == 0
    assert snapshot() == before
    assert Plan.objects.count() == 1
    assert not Operation.objects.filter(status=State.APPLIED).exists()


def test_the_printed_plan_says_what_would_be_kept_and_why() -> None:
    """R53: the plan as a person reads it."""
    twins()
    out = run("").out
    for words in (
        "MERGE 1",
        "MERGE 2→1",
        "keep",
        "relay-1",
        '"The relay listens on port 4411"',
        "similarity 1.000",
        "reason",
    ):
        assert words in out
    assert "PRUNE 0  retention policy: none configured" in out
    assert "CAUTION" in out  # R54: nothing was skipped
    assert "ADVICE" in out  # R31: a small store


def test_records_that_a_policy_lets_nothing_touch_leave_a_trace_in_the_plan() -> None:
    """R32, R54: counted per scope, told, and a reason for no caution; rows that left the reads are not among them."""
    within = twins("team-a/u1")
    twins("team-a/u2", "router")
    claims = [Claim(text=f"Her name is {name}", kind=MemoryKind.IDENTITY) for name in ("Ann", "Bo", "Cy")]
    with transaction.atomic():
        store.add_observations(scope=within, claims=claims, written_by=WrittenBy.IMPORT)
        gone = Observation.objects.get(text="Her name is Cy")
        store.move(scope_id=within.pk, ids=[gone.pk], to=Status.ARCHIVED)
    assert "UNTOUCHABLE" not in run("").out
    Policy.objects.create(pattern="*", body={"untouchable": ["identity"]})
    out = run("").out
    assert "UNTOUCHABLE  2 records are untouchable by policy: they are part of no proposal." in out
    assert "CAUTION" not in out
    assert run("--json").document["figures"]["untouchable"] == {str(within.pk): 2}
    assert "CAUTION" in run("--scope team-a/u2").out  # the other scope has no such record: nothing is kept out there


def test_skips_are_counted_with_the_hint_and_listed_when_explained() -> None:
    contradiction()
    assert "(run `manage.py consolidate plan --explain` to list them)" in run("").out
    plan = Plan.objects.latest("pk")
    assert plan.explained_at is None
    assert "contradiction" in run("--explain").out
    assert Plan.objects.latest("pk").explained_at is not None


def test_a_plan_as_json_is_whole() -> None:
    """id, counts, and per operation id, kind, approval, status, skip, scope, sources, product, signals."""
    twins()
    document = run("--json").document
    assert document["id"] == str(Plan.objects.get())
    assert document["counts"]["merge"] == 1
    [operation] = document["operations"]
    wanted = {"id", "kind", "approval", "status", "skipped_reason", "scope", "sources", "product", "signals"}
    assert wanted <= set(operation)
    assert (operation["kind"], operation["approval"], operation["status"]) == ("merge", "AUTO", "planned")
    assert operation["scope"] == "team-a/u1"
    assert [(s["external_id"], s["text"]) for s in operation["sources"]] == [
        ("relay-1", "The relay listens on port 4411"),
        ("relay-2", "The relay listens on port 4411."),
    ]


def test_a_scope_or_a_family_of_scopes_is_planned_by_itself() -> None:
    twins("team-a/u1"), twins("team-a/u2", "router"), twins("team-b/u1", "switch")
    assert {o["scope"] for o in run("--scope team-a/u1 --json").document["operations"]} == {"team-a/u1"}
    assert {o["scope"] for o in run("--scope 'team-a/*' --json").document["operations"]} == {"team-a/u1", "team-a/u2"}
    assert {o["scope"] for o in run("--json").document["operations"]} == {"team-a/u1", "team-a/u2", "team-b/u1"}


def test_options_may_stand_before_or_after_the_sub_command() -> None:
    twins("team-a/u1"), twins("team-b/u1", "switch")
    before = run("--scope team-b/u1 --json plan").document
    after = run("plan --scope team-b/u1 --json").document
    assert [o["id"] for o in before["operations"]] == [o["id"] for o in after["operations"]]
    assert len(before["operations"]) == 1


@pytest.mark.parametrize(
    "words", ["--scope nowhere", "plan --scope 'nowhere/*'", "stats --scope nowhere", "apply --scope nowhere"]
)
def test_a_scope_that_is_not_there_is_one_sentence_and_status_2(words: str) -> None:
    twins()
    ran = run(words)
    assert ran.status == 2
    assert "nowhere" in ran.error
    assert ran.error.count("\n") == 0
    assert ran.out == ""
    assert not Plan.objects.exists()


def test_rows_without_a_vector_are_said() -> None:
    within = twins()
    with transaction.atomic():
        store.add_observations(scope=within, claims=[Claim(text="Bare")], written_by=WrittenBy.DELIBERATE)
    assert "NOTE  1 record without a vector yet, compared by words alone" in run("").out
    assert run("--json").document["without_vector"] == 1


def test_a_scope_that_fails_is_said_first_and_the_status_is_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed step is shown as failed, never counted as nothing to do."""
    twins("a/good")
    twins("b/bad", "router")
    Policy.objects.create(pattern="b/bad", body={"no_such_field": 1})
    ran = run("")
    assert ran.status == 1
    assert ran.out.startswith("PARTIAL  1 scope could not be planned")
    assert "b/bad" in ran.out.splitlines()[1]
    assert "MERGE 1" in ran.out
    as_json = run("--json")
    assert (as_json.status, as_json.document["state"]) == (1, "partial")


def test_a_scope_on_hold_is_left_out_with_its_reason_and_is_no_failure() -> None:
    within = twins()
    Scope.objects.filter(pk=within.pk).update(held_at=database_now(), hold_reason="audit")
    ran = run("")
    assert ran.status == 0
    assert "NOT PLANNED  team-a/u1: scope is on hold" in ran.out


@pytest.mark.parametrize("words", ["", "--apply", "apply"])
def test_while_everything_is_paused_it_refuses_in_one_sentence(words: str) -> None:
    twins()
    run("")
    Pause.objects.create(by="maya")
    ran = run(words)
    assert ran.status == 1
    assert "paused by maya" in ran.error
    assert not Operation.objects.filter(status=State.APPLIED).exists()


def test_hostile_text_cannot_paint_over_the_terminal() -> None:
    within = scope("team-a/u1")
    observe("Port\x1b[2J 4411\u202e", within=within, external_id="evil\n1")
    observe("Port\x1b[2J 4411\u202e", within=within, external_id="evil\n2")
    out = run("--explain").out + run(f"explain {Operation.objects.get().op_id}").out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "evil\n" not in out


# --- applying -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["--apply", "plan --apply"])
def test_apply_in_one_step_plans_and_applies_what_is_automatic(words: str) -> None:
    twins()
    contradiction("team-a/u2")
    ran = run(words)
    assert ran.status == 0
    assert "MERGE 1" in ran.out  # the plan is printed before what became of it
    assert "APPLIED" in ran.out
    assert "planned 1, applied 1, skipped 0" in ran.out
    assert only(Kind.MERGE).status == State.APPLIED
    assert only(Kind.SUPERSEDE).status == State.NEEDS_HUMAN


def test_a_second_apply_applies_nothing_and_skips_what_the_first_applied() -> None:
    """R99."""
    twins("a/1"), twins("a/2", "router")
    run("")
    first, second = run("apply --json").document, run("apply --json").document
    assert (first["planned"], first["applied"], first["skipped"]) == (2, 2, 0)
    assert (second["planned"], second["applied"], second["skipped"]) == (2, 0, first["applied"])
    assert [result["outcome"] for result in second["results"]] == ["already", "already"]
    assert first["plan"] == str(Plan.objects.get())


def test_the_newest_plan_a_named_plan_or_one_operation_is_applied() -> None:
    twins("a/1"), twins("a/2", "router")
    run("--scope a/1"), run("--scope a/2")
    old, new = Plan.objects.order_by("pk")
    assert run("apply --json").document["plan"] == str(new)
    assert run(f"apply {old} --json").document["plan"] == str(old)
    assert set(Operation.objects.values_list("status", flat=True)) == {State.APPLIED}
    twins("a/3", "kettle")
    run("")
    operation = Operation.objects.get(scope__name="a/3")
    assert run(f"apply {operation.op_id}").out.startswith(f"APPLIED   {operation.op_id}")


@pytest.mark.parametrize("pattern", ["*", "a/*", "a/b/*", "a/b/1"])
def test_a_scope_of_a_wider_plan_is_applied_and_undone_by_itself(pattern: str) -> None:
    """The newest plan that covers the scope is meant, and of it that scope's items only."""
    mine, other = twins("a/b/1"), twins("a/b/2", "router")
    contradiction("a/b/2")
    merges = Operation.objects.filter(kind=Kind.MERGE).exclude(status=State.SKIPPED)
    run(f"--scope '{pattern}'"), run("--scope a/b/2")
    plan = Plan.objects.order_by("pk")[0]
    document = run("apply --scope a/b/1 --json").document
    assert (document["plan"], document["planned"], document["applied"]) == (str(plan), 1, 1)
    assert document["waiting_for_a_person"] == 0
    assert Operation.objects.get(scope=mine).status == State.APPLIED
    assert merges.get(scope=other).status == State.PLANNED
    run("apply --scope a/b/2")
    assert run(f"undo --plan {plan} --scope a/b/1 --json").document["undone"] == 1
    assert merges.get(scope=other).status == State.APPLIED


def test_a_plan_that_holds_nothing_of_the_scope_is_not_applied_to_it() -> None:
    twins("a/1"), twins("a/2", "router")
    run("--scope a/2")
    assert run("apply --scope a/1").error == "There is no plan that covers a/1 yet: `manage.py consolidate` makes one."
    ran = run(f"apply {Plan.objects.get()} --scope a/1")
    assert (ran.status, "was made for a/2" in ran.error) == (2, True)
    assert run(f"apply {Plan.objects.get()} --scope 'a/*' --json").document["applied"] == 1


def test_the_width_of_a_plan_is_judged_by_the_scopes_that_are_applied() -> None:
    """DESIGN 4, blast radius: a wide scope asks for --yes only where it is touched."""
    Policy.objects.create(pattern="a/wide", body={"blast_floor": 0, "blast_share": 0.0})
    twins("a/wide"), twins("a/small", "router")
    run("")
    assert run("apply --scope a/small").status == 0
    assert run("apply --scope a/wide").status == 1
    assert Operation.objects.get(scope__name="a/wide").status == State.PLANNED


def test_what_waits_for_a_person_is_counted_and_not_applied() -> None:
    contradiction()
    run("")
    document = run("apply --json").document
    assert (document["planned"], document["waiting_for_a_person"]) == (0, 1)
    assert "nothing to apply" in run("apply").out


def test_an_item_that_went_stale_is_listed_and_the_status_is_1() -> None:
    """C11."""
    within = twins("a/1")
    twins("a/2", "router")
    run("")
    merge = Operation.objects.get(scope=within)
    row = Observation.objects.in_scope(within).latest("pk")
    with transaction.atomic():
        store.lock_scope(scope_id=within.pk)
        store.move(scope_id=within.pk, ids=[row.pk], to=Status.ARCHIVED)
    ran = run("apply")
    assert ran.status == 1
    assert f"STALE     {merge.op_id}" in ran.out
    assert f"obs_{row.pk}" in ran.out
    assert "planned 2, applied 1" in ran.out
    assert "1 of 2 operations were not carried out" in ran.error


def test_a_plan_that_touches_much_of_a_scope_waits_for_yes() -> None:
    """DESIGN 4, blast radius; nothing is applied without the word."""
    Policy.objects.create(pattern="*", body={"blast_floor": 0, "blast_share": 0.0})
    twins()
    run("")
    ran = run("apply")
    assert ran.status == 1
    assert "--yes" in ran.error
    assert only(Kind.MERGE).status == State.PLANNED
    ran = run("apply --yes --by ana")
    assert ran.status == 1
    assert "two_person_wide" in ran.error
    assert "in another person's name (--by)" in ran.error
    assert run("apply --yes --by ana").status == 1
    assert only(Kind.MERGE).status == State.PLANNED
    assert run("apply --yes --by olga").status == 0
    assert only(Kind.MERGE).status == State.APPLIED


@pytest.mark.parametrize(
    "words", ["apply", "apply plan_99", "apply op_00", "apply nonsense", "undo op_00", "explain op_00"]
)
def test_what_does_not_exist_is_one_sentence_and_status_2(words: str) -> None:
    scope("a/1")
    ran = run(words)
    assert ran.status == 2
    assert ran.error.endswith(".")
    assert "\n" not in ran.error


def test_an_operation_of_another_scope_is_not_reached_through_this_one() -> None:
    twins("a/1"), twins("b/1", "router")
    run("")
    operation = Operation.objects.get(scope__name="b/1")
    for verb in ("apply", "undo", "explain", "approve"):
        assert run(f"{verb} {operation.op_id} --scope a/1").status == 2
    assert Operation.objects.get(pk=operation.pk).status == State.PLANNED


# --- undoing --------------------------------------------------------------------------------------------------------


def test_undo_says_what_it_restores_and_restores_it() -> None:
    """R102."""
    within = twins()
    run("--apply")
    operation = only(Kind.MERGE)
    ran = run(f"undo {operation.op_id}")
    ids = [row.pk for row in Observation.objects.in_scope(within).filter(derivation=None)]
    assert ran.out.startswith(f"RESTORES  obs_{ids[0]}, obs_{ids[1]}\nRETRACTS  obs_{operation.derived_id}\n")
    assert "UNDONE" in ran.out
    assert Observation.objects.active().in_scope(within).count() == 2
    again = run(f"undo {operation.op_id}")
    assert (again.status, again.out.splitlines()[0].split()[0]) == (0, "ALREADY")  # once, and nothing is "blocked"


def test_a_whole_plan_is_undone_in_reverse_with_a_result_per_item() -> None:
    twins("a/1"), twins("a/2", "router")
    run("--apply")
    plan = Plan.objects.get()
    applied = list(Operation.objects.order_by("applied_at").values_list("op_id", flat=True))
    document = run(f"undo --plan {plan} --json").document
    assert [result["operation"] for result in document["results"]] == applied[::-1]
    assert (document["plan"], document["undone"]) == (str(plan), 2)
    assert run(f"undo --plan {plan}").out.splitlines()[0] == "nothing to undo"


def test_an_undo_that_is_blocked_names_what_to_undo_first_and_the_status_is_1() -> None:
    """C13."""
    within = twins()
    run("--apply")
    first = only(Kind.MERGE)
    merged = Observation.objects.get(derivation="merge")
    other = observe("The relay listens on port 4411", within=within)
    second = propose(Kind.MERGE, [merged, other])
    run(f"apply {second.op_id}")
    ran = run(f"undo {first.op_id}")
    assert ran.status == 1
    assert f"undo {second.op_id} first" in ran.out
    assert run(f"undo {second.op_id}").status == 0
    assert run(f"undo {first.op_id}").status == 0


@pytest.mark.parametrize("words", ["undo", "undo op_1 --plan plan_1"])
def test_undo_wants_one_thing_to_undo(words: str) -> None:
    assert run(words).status == 2
