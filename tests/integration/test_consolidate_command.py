"""`manage.py consolidate`: dry unless told otherwise, readable, honest in its exit status (R52-R54, R79, R86, R99,
R110).
"""

from __future__ import annotations

import io
import json
import shlex
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from consolidation import planner
from consolidation.management.commands.consolidate import Command
from consolidation.models import Operation, Pause, Plan, Policy
from consolidation.operations import Kind, State
from observations import outbox
from observations.models import Event, Observation, Scope, database_now
from observations.records import StatedBy, Status
from tests.building import observe, propose, scope
from tests.integration.test_beat import snapshot

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _no_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "wake", lambda: None)


@dataclass
class Ran:
    """What one run printed, and how it ended."""

    out: str
    error: str = ""
    status: int = 0

    @property
    def document(self) -> dict[str, Any]:
        """Standard output as JSON: nothing else may be on it."""
        found: dict[str, Any] = json.loads(self.out)
        return found


def run(words: str) -> Ran:
    """One run with these words, as the shell would split them."""
    out = io.StringIO()
    try:
        call_command("consolidate", *shlex.split(words), stdout=out, stderr=io.StringIO())
    except CommandError as error:
        return Ran(out.getvalue(), str(error), error.returncode)
    return Ran(out.getvalue())


def twins(name: str = "team-a/u1", word: str = "relay") -> Scope:
    """A scope with one automatic merge."""
    within = scope(name)
    observe(f"The {word} listens on port 4411", within=within, external_id=f"{word}-1")
    observe(f"The {word} listens on port 4411.", within=within, external_id=f"{word}-2")
    return within


def contradiction(name: str = "team-a/u1") -> Scope:
    """A scope with one contradiction."""
    within = scope(name)
    key = ("office", "coffee machine is on floor")
    observe("The coffee machine is on floor 2", within=within, key=(*key, "2"), external_id="coffee-2")
    observe("The coffee machine is on floor 3", within=within, key=(*key, "3"), external_id="coffee-3")
    return within


def only(kind: Kind) -> Operation:
    return Operation.objects.exclude(status=State.SKIPPED).get(kind=kind)


# --- planning -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["", "plan", "--explain", "plan --explain", "--apply"])
def test_an_empty_store_has_nothing_to_do(words: str) -> None:
    """R110."""
    assert run(words) == Ran("nothing to do\n")


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
    from django.db import transaction

    from observations import store
    from observations.records import Claim, WrittenBy

    within = twins()
    with transaction.atomic():
        store.add_observations(scope=within, claims=[Claim(text="Bare")], written_by=WrittenBy.DELIBERATE)
    assert "NOTE  1 records have no vector yet" in run("").out
    assert run("--json").document["without_vector"] == 1


def test_a_scope_that_fails_is_said_first_and_the_status_is_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed step is shown as failed, never counted as nothing to do."""
    twins("a/good")
    twins("b/bad", "router")
    Policy.objects.create(pattern="b/bad", body={"no_such_field": 1})
    ran = run("")
    assert ran.status == 1
    assert ran.out.startswith("PARTIAL  1 scopes could not be planned")
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
    from django.db import transaction

    from observations import store

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
    assert run("apply --yes").status == 0
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


def test_a_whole_plan_is_undone_in_reverse_with_a_result_per_item() -> None:
    twins("a/1"), twins("a/2", "router")
    run("--apply")
    plan = Plan.objects.get()
    applied = list(Operation.objects.order_by("applied_at").values_list("op_id", flat=True))
    document = run(f"undo --plan {plan} --json").document
    assert [result["operation"] for result in document["results"]] == applied[::-1]
    assert document["undone"] == 2
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


# --- deciding -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["coffee-2", "obs_{}", "{}"])
def test_a_contradiction_is_settled_by_naming_the_claim_that_stays(how: str) -> None:
    """By its external id, its own id, or its own id with the prefix."""
    contradiction()
    run("")
    stays = Observation.objects.get(external_id="coffee-2")
    operation = only(Kind.SUPERSEDE)
    ran = run(f"approve {operation.op_id} --keep {how.format(stays.pk)} --reason 'it was moved' --by maya")
    assert ran.out == (
        f"{operation.op_id} is approved, by maya: `manage.py consolidate apply {operation.op_id}` carries it out.\n"
    )
    assert run(f"apply {operation.op_id}").status == 0
    assert list(Observation.objects.active().values_list("external_id", flat=True)) == ["coffee-2"]


def test_all_values_of_a_key_may_stay() -> None:
    contradiction()
    run("")
    operation = only(Kind.SUPERSEDE)
    assert run(f"approve {operation.op_id} --both --reason 'there are two machines'").status == 0
    run(f"apply {operation.op_id}")
    assert Observation.objects.active().count() == 2
    assert run("--json").document["operations"] == []


def test_the_right_claim_may_be_written() -> None:
    contradiction()
    run("")
    operation = only(Kind.SUPERSEDE)
    run(f"approve {operation.op_id} --text 'The coffee machine is on floor 4' --reason 'both are old'")
    run(f"apply {operation.op_id}")
    row = Observation.objects.active().get()
    assert (row.text, row.stated_by) == ("The coffee machine is on floor 4", StatedBy.OPERATOR)


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        ("--keep coffee-2", 1, "needs a reason"),
        ("--reason because", 1, "Choose one"),
        ("--keep coffee-9 --reason because", 2, "not one of its records"),
        ("--keep obs_999 --reason because", 2, "not one of its records"),
    ],
)
def test_a_decision_that_is_not_one_is_refused(words: str, status: int, sentence: str) -> None:
    contradiction()
    run("")
    operation = only(Kind.SUPERSEDE)
    ran = run(f"approve {operation.op_id} {words}")
    assert (ran.status, sentence in ran.error) == (status, True)
    assert only(Kind.SUPERSEDE).status == State.NEEDS_HUMAN


def test_an_id_that_names_two_records_is_refused() -> None:
    """One record's external id is the other's own id."""
    within = scope("team-a/u1")
    key = ("office", "floor")
    first = observe("Floor 2", within=within, key=(*key, "2"))
    observe("Floor 3", within=within, key=(*key, "3"), external_id=str(first.pk))
    run("")
    ran = run(f"approve {only(Kind.SUPERSEDE).op_id} --keep {first.pk} --reason because")
    assert ran.status == 2
    assert "names two" in ran.error


def test_a_rejection_and_a_distinction_are_kept_and_not_asked_again() -> None:
    twins("a/1")
    twins("a/2", "router")
    run("")
    one, two = Operation.objects.order_by("pk")
    assert run(f"reject {one.op_id} --reason 'not the same relay' --by maya").status == 0
    assert run(f"distinct {two.op_id} --by ben").status == 0
    assert run("--json").document["counts"]["merge"] == 0
    assert set(Event.objects.filter(action__in=("rejected", "distinct")).values_list("action", "actor")) == {
        ("rejected", "maya"),
        ("distinct", "ben"),
    }


def test_who_decided_first_is_said_to_who_came_second() -> None:
    """C16."""
    contradiction()
    run("")
    operation = only(Kind.SUPERSEDE)
    run(f"reject {operation.op_id} --reason no --by maya")
    ran = run(f"approve {operation.op_id} --keep coffee-2 --reason yes --by ben")
    assert ran.status == 1
    assert "maya decided it" in ran.error


def test_without_a_name_the_user_of_the_machine_decides() -> None:
    twins()
    run("--apply")
    assert Operation.objects.get().applied_by.startswith("cli")


# --- reading --------------------------------------------------------------------------------------------------------


def test_explain_shows_one_operation_whole_and_counts_as_reading_it() -> None:
    """R116: every item of the first plans is to be read."""
    contradiction()
    run("")
    operation = only(Kind.SUPERSEDE)
    ran = run(f"explain {operation.op_id[:12]} --by maya")
    for words in (operation.op_id, "needs human", "coffee-2", '"The coffee machine is on floor 3"', "signals"):
        assert words in ran.out
    item = operation.plan_items.get()
    assert item.opened_by == "maya"
    run(f"reject {operation.op_id} --reason 'a misprint' --by maya")
    ran = run(f"explain {operation.op_id}")
    assert "by maya: a misprint" in ran.out
    document = run(f"explain {operation.op_id} --json").document
    assert document["decision_reason"] == "a misprint"
    assert [event["action"] for event in document["events"]][-1] == "rejected"


def test_stats_measure_what_is_there() -> None:
    """R86: size over time, duplicates, promotions, the oldest record, the growth curve."""
    twins()
    contradiction()
    run("")
    document = run("stats --json").document
    assert document["observations"] == 4
    assert document["duplicates"] == {"share": 0.25, "same_text": 1, "waiting_merges": 1}
    assert document["months"][-1]["said_total"] == 4
    first = Observation.objects.earliest("created_at").created_at
    assert document["oldest"] == first.isoformat()
    assert document["promotions"] == 0
    run("apply")
    document = run("stats --json").document
    assert document["by_status"] == {"active": 3, "archived": 2}
    assert document["duplicates"]["share"] == 0.0
    assert document["applied"] == {"merge": 1}
    text = run("stats").out
    assert "3 active, 2 archived" in text
    assert "GROWTH" in text
    assert "#" in text


def test_stats_of_an_empty_store_are_zeros() -> None:
    assert run("stats --json").document["observations"] == 0
    assert "OLDEST        nothing yet" in run("stats").out


def test_reading_commands_write_nothing_to_memory() -> None:
    twins()
    run("")
    before = snapshot()
    operation = only(Kind.MERGE)
    for words in ("stats", "stats --json", f"explain {operation.op_id}", f"explain {operation.op_id} --json"):
        run(words)
    assert snapshot() == before


def test_every_sub_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("", "plan", "apply", "undo", "explain", "stats", "approve", "reject", "distinct"):
        with pytest.raises(SystemExit) as ended:
            Command(stdout=io.StringIO()).run_from_argv(["manage.py", "consolidate", *verb.split(), "--help"])
        assert ended.value.code == 0
        assert "--scope" in capsys.readouterr().out


def test_what_json_prints_is_what_the_planner_reads() -> None:
    twins()
    document = run("--json").document
    plan = Plan.objects.get()
    assert document["operations"] == json.loads(json.dumps(planner.plan_json(plan)))["operations"]
