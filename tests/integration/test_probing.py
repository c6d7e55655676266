"""Suites on a real store: imported, run, compared before and after an application, and emptied by an erase."""

from __future__ import annotations

import io
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client

from consolidation import probing, rollout, runner
from consolidation.models import Operation, Plan, PlanItem, Policy, Probe, ProbeRun, Suite
from consolidation.operations import Kind
from observations import retrieval, store
from observations.models import Observation, Scope, Use, database_now
from observations.records import Status
from tests import probing as given
from tests.building import observe, propose, scope
from tests.conftest import superuser
from tests.consolidating import Ran, run, twins
from tests.desk import person

pytestmark = pytest.mark.django_db(transaction=True)


def probe(words: str) -> Ran:
    """One run of the command, as the shell would split its words."""
    out = io.StringIO()
    try:
        call_command("probe", *shlex.split(words), stdout=out, stderr=io.StringIO())
    except CommandError as error:
        return Ran(out.getvalue(), str(error), error.returncode)
    return Ran(out.getvalue())


@pytest.fixture
def within() -> Scope:
    """A scope with one automatic merge and a suite."""
    here = twins()
    given.suite(here, also=[{"query": "relay port", "expected": ["relay-1"]}])
    return here


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of one probe for each thing of the bakery, a negative one, and one that names a record of elsewhere."""
    rows: list[dict[str, Any]] = [
        {"query": f"{thing} of the bakery", "expected": [f"{thing}-bakery"]} for thing in given.THINGS
    ]
    rows += [{"query": "anvil price", "expected": ["anvil-tower"], "negative": True}, {"query": "x", "expected": ["?"]}]
    path = tmp_path / "probes.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


# --- importing and running --------------------------------------------------------------------------------------------


def test_a_file_is_imported_run_listed_and_shown(file: Path) -> None:
    """R26, R36: recall is measured over time."""
    given.fill(scope())
    made = probe(f"import {file} --scope team-a/u1 --name everyday --by ann --json")
    assert (made.document["probes"], made.document["negative"], made.document["unknown_records"]) == (11, 1, 1)
    for _ in range(2):
        ran = probe("run everyday --scope team-a/u1 --json")
        assert (ran.status, ran.document["measures"]["recall"]) == (0, 1.0)
        assert ran.document["measures"]["mistaken"] is not None
    text = probe("run everyday --scope team-a/u1 --k 3").out
    assert "recall@3    1.0000" in text
    assert "p95" in text
    assert "everyday  in force  recall@3 1.0000" in probe("list").out
    shown = probe("show everyday --scope team-a/u1 --json").document
    assert (len(shown["probes"]), [run["measures"]["recall"] for run in shown["runs"]]) == (11, [1.0, 1.0, 1.0])
    assert "RUNS" in probe("show everyday --scope team-a/u1").out


def test_a_file_is_run_without_being_kept(file: Path) -> None:
    given.fill(scope())
    assert probe(f"run {file} --scope team-a/u1 --json").document["measures"]["recall"] == 1.0
    assert not ProbeRun.objects.exists()
    assert not Suite.objects.exists()


def test_expected_records_may_be_named_by_their_texts() -> None:
    here = scope()
    given.fill(here)
    asked = [{"query": "anvil", "expected_texts": ["the ANVIL of the tower is painted"]}]
    suite = given.imported(here, *asked)
    row = Observation.objects.get(external_id="anvil-tower")
    assert suite.probes.get().expected == [row.pk]


def test_probes_leave_no_use_and_what_is_searched_does(within: Scope) -> None:
    """R51, I13: counting is no reading, and makes no source prunable."""
    probe("run everyday --scope team-a/u1")
    assert not Use.objects.exists()
    retrieval.search(scope=within, query="relay port", k=5, call_site="search")
    assert Use.objects.exists()


def test_no_number_is_shown_and_the_status_is_1_where_the_controls_do_not_fail() -> None:
    """R31: too small a store can be searched by chance."""
    here = twins()
    given.imported(here, {"query": "relay port", "expected": ["relay-1"]}, name="small")
    ran = probe("run small --scope team-a/u1")
    assert ran.status == 1
    assert "recall@5" not in ran.out
    assert "GATE FAILED  no number is shown" in ran.out


def test_a_forbidden_record_fails_the_gate() -> None:
    here = scope()
    given.suite(
        here, also=[{"query": "anvil of the tower", "forbidden": ["anvil-tower"], "expected": ["anvil-cellar"]}]
    )
    ran = probe("run everyday --scope team-a/u1 --json")
    assert (ran.status, ran.document["leaks"]) == (1, 1)
    assert "forbidden record" in ran.error


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("run everyday", "Say in which scope"),
        ("run everyday --scope nowhere", "There is no scope"),
        ("run other --scope team-a/u1", "no suite 'other'"),
        ("show other --scope team-a/u1", "no suite 'other'"),
        ("run everyday --scope team-a/u1 --k 0", "from 1 to 100"),
        ("import /nowhere.jsonl --scope team-a/u1 --name x", "cannot be read"),
        ("import {file} --scope team-a/u1 --name everyday", "choose another name"),
        ("import {file} --scope team-b --name x", "import the memory first"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_status_2(within: Scope, file: Path, words: str, why: str) -> None:
    scope("team-b")
    ran = probe(words.format(file=file))
    assert ran.status == 2
    assert why in ran.error


# --- before and after -------------------------------------------------------------------------------------------------


def test_apply_ends_with_what_was_skipped_and_the_three_numbers(within: Scope) -> None:
    """R115, R117: planned, applied, skipped and why, and recall@5, distinct@5 and size before and after."""
    run("plan")
    ran = run("apply")
    assert ran.status == 0
    assert "planned 1, applied 1" in ran.out
    assert ran.out.rstrip().endswith("recall@5    1.0000 → 1.0000\ndistinct@5  5.00 → 5.00\nrecords     42 → 41")
    assert list(ProbeRun.objects.order_by("pk").values_list("cause", flat=True)) == ["before", "after"]
    assert {run.plan for run in ProbeRun.objects.all()} == {Plan.objects.get()}


def test_applying_again_changes_no_number(within: Scope) -> None:
    run("plan --apply")
    document = run("apply --json").document
    assert document["impact"]["records"] == {"before": 41, "after": 41}
    assert document["impact"]["recall_fell"] == []


def test_without_a_suite_apply_says_that_recall_is_not_measured() -> None:
    """R112, R115."""
    twins()
    run("plan")
    ran = run("apply")
    assert ran.status == 0
    assert "recall: not measured  team-a/u1 has no probe suite" in ran.out
    assert "records     2 → 1" in ran.out
    assert not ProbeRun.objects.exists()


def test_one_operation_by_its_name_is_measured_too(within: Scope) -> None:
    run("plan")
    operation = Operation.objects.get(kind=Kind.MERGE, status="planned")
    assert run(f"apply {operation.op_id} --json").document["impact"]["recall_at_5"] == {"before": 1.0, "after": 1.0}


def losing(within: Scope) -> Operation:
    """An automatic operation that takes a record out of the reads which a probe expects."""
    row = Observation.objects.get(scope=within, external_id="anvil-bakery")
    return propose(Kind.ARCHIVE, [row])


def test_a_fall_of_recall_is_said_first_and_the_status_is_1(within: Scope) -> None:
    """R112, R118: recall@5 must not drop; if it did, that comes first, with the probe and an advice."""
    losing(within)
    ran = run("apply")
    assert ran.status == 1
    first, advice = ran.out.splitlines()[:2]
    assert first.startswith(
        "RECALL FELL  recall@5 of team-a/u1 went from 1.0000 to 0.9091 (lost: probe 10 of team-a/u1)"
    )
    assert "do not schedule" in advice
    assert "RECALL" not in ran.error
    assert "recall@5 of team-a/u1 went from" in ran.error


def test_after_a_fall_nothing_is_applied_unattended_until_recall_is_back(within: Scope) -> None:
    """R112, R118: an undo and a run of the suite lift it; a run at another k does not."""
    operation = losing(within)
    run("apply")
    assert "before plan_1 was applied and is 0.9091" in probing.fallen(scope=within)
    Policy.objects.create(pattern="*", body={"unattended": True})
    made = Plan.objects.latest("pk")
    PlanItem.objects.update(opened_at=database_now(), opened_by="maya")
    with superuser() as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute("UPDATE consolidation_plan SET created_at = created_at - interval '8 days'")
    with pytest.raises(rollout.NotUnattended, match=r"was 1\.0000 before plan_1 was applied"):
        rollout.apply_unattended(plan=made)
    assert runner.undo(operation=Operation.objects.get(pk=operation.pk), by="ann").outcome == "undone"
    probe("run everyday --scope team-a/u1 --k 10")
    assert probing.fallen(scope=within)
    probe("run everyday --scope team-a/u1")
    assert probing.fallen(scope=within) == ""


def test_the_plan_page_ends_with_the_same_and_a_fall_first(within: Scope, client: Client) -> None:
    """R117, R118."""
    losing(within)
    made = Plan.objects.latest("pk")
    client.force_login(person("olga", "Operator", "*"))
    page = client.get(f"/admin/consolidation/plan/{made.pk}/apply/")
    shown = page.context["whole"].shown
    body = client.post(
        f"/admin/consolidation/plan/{made.pk}/apply/", {"shown": shown, "confirmed": "1"}
    ).content.decode()
    assert body.index("RECALL FELL") < body.index("1 done") < body.index("Before and after")
    assert "recall@5    1.0000 → 0.9091" in body
    assert "records     42 → 41" in body


# --- kept, and erased -------------------------------------------------------------------------------------------------


def erase(row: Observation) -> None:
    with transaction.atomic():
        store.erase(scope_id=row.scope_id, ids=[row.pk], by="ann", reason="asked", request="forget:1")


def test_an_erase_empties_the_questions_that_name_the_record_and_no_others(within: Scope) -> None:
    """I19: a question may say what the record said."""
    erase(Observation.objects.get(external_id="anvil-bakery"))
    emptied = Probe.objects.filter(query="")
    assert [probe.number for probe in emptied] == [10]
    ran = probe("run everyday --scope team-a/u1 --json")
    assert (ran.document["left_out"], ran.document["probes"], ran.status) == (1, 10, 0)


def test_an_erase_of_what_a_merge_made_empties_the_question_too(within: Scope) -> None:
    run("plan --apply")
    derived = Observation.objects.get(derivation="merge")
    assert Probe.objects.get(number=11).query == "relay port"
    erase(derived)
    assert Probe.objects.get(number=11).query == ""


def test_a_question_that_names_no_record_goes_with_the_last_words_of_its_scope() -> None:
    here = scope()
    rows = given.fill(here)
    asked: list[dict[str, Any]] = [{"query": "anvil", "expected": ["anvil-tower"]}, {"query": "cost", "negative": True}]
    suite = given.imported(here, *asked)
    erase(rows[0])
    assert suite.probes.get(number=2).query
    for row in rows[1:]:
        erase(row)
    assert suite.probes.get(number=2).query == ""


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE consolidation_suite SET name = 'x'",
        "UPDATE consolidation_probe SET expected = '{}'",
        "UPDATE consolidation_probe SET query = 'x'",
        "UPDATE consolidation_proberun SET recall = 1",
        "DELETE FROM consolidation_suite",
        "DELETE FROM consolidation_probe",
        "DELETE FROM consolidation_proberun",
    ],
)
def test_what_was_measured_is_written_once(within: Scope, statement: str) -> None:
    """Also for the owner: a fall of recall cannot be made good by another number."""
    probe("run everyday --scope team-a/u1")
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


def test_a_superseded_value_that_comes_no_more_is_not_stale() -> None:
    here = scope()
    given.fill(here)
    old, new = (observe(f"The gate is on level {n}", within=here, external_id=f"gate-{n}") for n in (2, 3))
    asked = {"query": "level of the gate", "expected": ["gate-3"], "outdated": ["gate-2"]}
    suite = given.imported(here, asked)
    assert probing.run_suite(suite=suite, by="ann").figures.stale == 1
    with transaction.atomic():
        store.move(scope_id=here.pk, ids=[old.pk], to=Status.QUARANTINED)
    assert probing.run_suite(suite=suite, by="ann").figures.stale == 0
    assert new.pk in suite.probes.get().expected


# --- as of a date -----------------------------------------------------------------------------------------------------


def test_a_probe_as_of_a_date_is_asked_of_what_was_believed_then() -> None:
    """R112, C14: the value of then is found then, and only then; the value of now leaks there where it is forbidden."""
    here = scope()
    given.fill(here)
    old = observe("The gate is on level 2", within=here, external_id="gate-2")
    moment = database_now()
    with transaction.atomic():
        store.move(scope_id=here.pk, ids=[old.pk], to=Status.ARCHIVED)
    new = observe("The gate is on level 3", within=here, external_id="gate-3", created_at=database_now())
    asked = {"query": "level of the gate", "expected": ["gate-2"], "forbidden": ["gate-3"]}
    then = {**asked, "as_of": moment.isoformat()}
    suite = given.imported(here, asked, then)
    figures = probing.run_suite(suite=suite, by="ann").figures
    assert (figures.probes, figures.left_out, figures.missing) == (2, 0, {1: (old.pk,)})
    assert figures.leaked == {1: (new.pk,)}
