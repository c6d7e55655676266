"""The verbs of REQUIREMENTS B as a shell starts them (R52, R80, R81, R83-R87, R110, R117), and the whole pipeline from
candidates to the first use of what was made (R25, R27, R29, R30).
"""

from __future__ import annotations

import json
import re

import pytest
from django.urls import reverse

from consolidation import planner, runner
from consolidation.management.commands.consolidate import Command
from consolidation.models import Operation, Plan, Policy
from consolidation.operations import Kind, State
from consolidation.rendering import render
from observations import retrieval
from observations.models import Episode, Lineage, Observation, Scope
from observations.records import Status
from tests.acceptance import engine
from tests.acceptance.acting import let_the_grace_pass
from tests.acceptance.engine import offline as offline
from tests.building import observe, scope
from tests.consolidating import run
from tests.desk import client_of, person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("offline")]


@pytest.fixture
def within() -> Scope:
    return scope("team-a/ana")


def newest(kind: Kind) -> Operation:
    return Operation.objects.filter(kind=kind).latest("pk")


# --- dry run is the default -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["", "plan", "--explain", "plan --explain", "--json", "plan --json"])
def test_whatever_plans_applies_nothing_unless_it_is_told_to(words: str) -> None:
    """R52, R80, R83, R98 (V): planned n, applied 0; with a model, and something of every kind to do."""
    engine.a_store_for_every_kind()
    before = engine.everything()
    with engine.configured(engine.whole_model()):
        ran = run(words)
    assert ran.status == 0, ran.error
    made = Plan.objects.latest("pk")
    assert len(engine.items(made)) > 5
    assert not Operation.objects.filter(plan_items__plan=made, status=State.APPLIED).exists()
    assert engine.everything() == before
    assert ("Nothing has been changed." in ran.out) != ("--json" in words)


def test_apply_prints_the_same_plan_and_a_summary_of_it(within: Scope) -> None:
    """R81, R84, R117 (V): planned, applied and skipped, counted, with each operation in a line of its own."""
    engine.pairs(within, count=2), engine.contradiction(within)
    dry = run("")
    wet = run("--apply")
    same = [line for line in dry.out.splitlines() if line.startswith(("MERGE", "  MERGE", "    keep", "    merge"))]
    assert len(same) > 5
    assert [line for line in wet.out.splitlines() if line in same] == same
    assert re.search(r"planned 2, applied 2, skipped 0 \(done before\)", wet.out)
    assert "1 wait for a person, 1 skipped by rule" in wet.out
    assert wet.out.count("APPLIED   op_") == 2
    again = run(f"apply {Plan.objects.latest('pk')}")
    assert "planned 2, applied 0, skipped 2 (done before)" in again.out


def test_apply_reports_the_counts_to_programs_as_well(within: Scope) -> None:
    """R81, R84 (V)."""
    engine.pairs(within, count=2)
    done = run("--apply --json").document["applied"]
    assert {name: done[name] for name in ("planned", "applied", "skipped")} == {
        "planned": 2,
        "applied": 2,
        "skipped": 0,
    }


# --- a plan for an outsider -----------------------------------------------------------------------------------------


def test_a_plan_says_of_every_kind_what_would_become_of_what(within: Scope) -> None:
    """R53, R65, R77: the promotion with its episodes, count, verified successes and "(promoted, not user-stated)"."""
    engine.alike(within), engine.contradiction(within)
    episodes = engine.weeks(within)
    with engine.configured(engine.promoting()):
        out = run("").out
    merge, promotion = Operation.objects.get(kind=Kind.MERGE, status=State.PLANNED), newest(Kind.PROMOTE)
    for line in (
        "MERGE 1  (1 automatic, 0 for a person)",
        f"  MERGE 3→1  {merge.op_id}  in team-a/ana  automatic",
        "PROMOTE 1  (1 automatic, 0 for a person)",
        f"  PROMOTE  {promotion.op_id}  in team-a/ana  automatic",
        f'    fact     "{engine.FACT}"',
        "    support  3 independent sources, 3 verified successes, confidence 0.60 (promoted, not user-stated)",
        "SKIPPED 1  (run `manage.py consolidate plan --explain` to list them)",
    ):
        assert line in out.splitlines(), line
    assert re.search(r"^PRUNE 0  .*retention policy: none configured$", out, re.MULTILINE)
    for episode in episodes:
        assert f"    episode  ep_{episode.pk} [{episode.external_id}]  " in out
    assert re.search(r'^    keep     obs_\d+ \[\w+\]  "The relay sits in rack 4', out, re.MULTILINE)
    assert re.search(r'^    merge    obs_\d+ \[\w+\]  ".*"  \(similarity 1\.000\)$', out, re.MULTILINE)


def test_explain_lists_what_was_skipped_and_why(within: Scope) -> None:
    """R79, R83, R87, R54 (V): `plan --explain`, and `--explain` alone."""
    rows = engine.contradiction(within)
    for words in ("plan --explain", "--explain"):
        out = run(words).out
        assert "skipped  contradiction: same subject and predicate, different object" in out
        assert all(f"obs_{row.pk}" in out for row in rows)
    assert "different object" not in "".join(run("").out.partition("SKIPPED")[2])


def test_a_pass_that_skips_nothing_says_that_it_may_not_apply_its_rules(within: Scope) -> None:
    """R54: through the command; with a skip beside the merge it says nothing of the kind."""
    engine.alike(within)
    assert "CAUTION  Nothing was skipped." in run("").out
    engine.contradiction(within)
    assert "CAUTION" not in run("").out


def test_explain_shows_one_operation_whole(within: Scope) -> None:
    """R87 (V): the verb of that name."""
    engine.weeks(within)
    with engine.configured(engine.promoting()):
        run("")
    operation = newest(Kind.PROMOTE)
    told = run(f"explain {operation.op_id}").out
    for words in (operation.op_id, engine.FACT, "3 independent sources", "sources", "signals", "history"):
        assert words in told
    assert run(f"explain {operation.op_id} --json").document["id"] == operation.op_id


# --- undo and stats -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Kind.MERGE, Kind.PROMOTE, Kind.COMPACT])
def test_undo_restores_archived_sources_and_removes_the_derived_record(within: Scope, kind: Kind) -> None:
    """R85, R102 (V): `undo <operation_id>`; it says first what it restores and retracts."""
    Policy.objects.create(pattern="*", body={"compact": kind == Kind.COMPACT, "compact_after_days": 1})
    engine.alike(within) if kind == Kind.MERGE else engine.weeks(within)
    model = engine.promoting() if kind == Kind.PROMOTE else engine.compacting(engine.echoing)
    rows = set(Observation.objects.active())
    with engine.configured(model):
        run("--apply")
    operation = Operation.objects.get(kind=kind, status=State.APPLIED)
    derived = engine.product(operation)
    told = run(f"undo {operation.op_id}")
    assert (told.status, f"RETRACTS  obs_{derived.pk}" in told.out) == (0, True)
    assert set(Observation.objects.active()) == rows
    assert set(Episode.objects.values_list("status", flat=True)) <= {Status.ACTIVE}
    assert Observation.objects.get(pk=derived.pk).status == Status.RETRACTED


def test_undo_works_while_sources_are_archived_and_is_refused_when_they_are_pruned(within: Scope) -> None:
    """R85 (V): an erased source cannot come back, and the refusal says so."""
    engine.alike(within)
    run("--apply")
    merge = newest(Kind.MERGE)
    derived = engine.product(merge)
    engine.use(derived)
    Policy.objects.create(pattern="*", body={"prune": True})
    run("")
    prune = newest(Kind.PRUNE)
    assert run(f"approve {prune.op_id} --reason 'used up'").status == 0
    assert run(f"agree {prune.op_id} --by another").status == 0
    assert run(f"apply {prune.op_id}").status == 0
    waiting = run(f"undo {merge.op_id}")
    assert (waiting.status, f"undo {prune.op_id} first" in waiting.out) == (1, True)
    let_the_grace_pass(prune)
    runner.erase_pruned(scope_id=within.pk, operation_id=prune.pk)
    gone = run(f"undo {merge.op_id}")
    assert (gone.status, gone.out.count("is erased and cannot come back")) == (1, 3)
    assert Operation.objects.get(pk=merge.pk).status == State.APPLIED
    assert Observation.objects.get(pk=derived.pk).status == Status.ACTIVE


def test_stats_show_size_over_time_duplicates_promotions_and_the_oldest_record(within: Scope) -> None:
    """R86, R114 (V): with a bar for every month that something was said in."""
    early, late = engine.moments_of(2020, 2024)
    for text, said in (("The relay sits in rack 4", late), ("the relay sits in rack 4.", early)):
        observe(text, within=within, created_at=said)
    engine.weeks(within)
    with engine.configured(engine.promoting()):
        run("plan")
        assert "DUPLICATES    about 50.0% of what reads return" in run("stats").out
        run("apply")
    out = run("stats").out
    for line in ("PROMOTIONS    1", "OLDEST        2020-01-01", "DUPLICATES    about 0.0% of what reads return"):
        assert line in out
    assert re.search(r"^  2020-01  #+", out, re.MULTILINE)
    assert run("stats --json").document["promotions"] == 1


# --- tier 0 ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["", "plan", "plan --explain", "--apply"])
def test_an_empty_store_has_nothing_to_do_with_and_without_a_model(within: Scope, words: str) -> None:
    """R110, E5 (V): a scope is there and nothing in it."""
    assert "nothing to do" in run(words).out
    with engine.configured(engine.promoting()):
        assert "nothing to do" in run(words).out


def test_every_verb_of_the_mission_is_there() -> None:
    """R83-R87 (V): plan, --apply, undo, stats, explain, and --help for each."""
    text = Command().create_parser("manage.py", "consolidate").format_help()
    for verb in ("plan", "--apply", "--explain", "undo", "stats", "explain"):
        assert re.search(rf"(^|\W){re.escape(verb)}\W", text), verb


# --- the whole pipeline ---------------------------------------------------------------------------------------------


def test_one_pass_dedupes_merges_promotes_decays_and_prunes_with_lineage_and_dry_run() -> None:
    """R25, R27, R28: one plan holds all of it, as a proposal, for people to read."""
    engine.a_store_for_every_kind()
    made = engine.plan(completer=engine.whole_model())
    shown = render(planner.printed(made), explain=True)
    for kind in ("MERGE", "PROMOTE", "COMPACT", "SUPERSEDE", "ARCHIVE", "PRUNE"):
        assert re.search(rf"^{kind} [1-9]", shown, re.MULTILINE), kind
    assert re.search(r"^SKIPPED [1-9]", shown, re.MULTILINE)
    assert "Nothing has been changed." in shown


def test_from_candidates_to_the_first_use_of_what_was_made_of_them(within: Scope) -> None:
    """R29, R51: blocked, proposed, printed, applied, with lineage; the sources stay until the derived row was used, and
    then a person is asked whether they may go.
    """
    rows = engine.alike(within)
    Policy.objects.create(pattern="*", body={"prune": True})
    printed = run("")
    assert "MERGE 1  (1 automatic, 0 for a person)" in printed.out
    assert run("apply").status == 0
    merge = newest(Kind.MERGE)
    derived = engine.product(merge)
    assert Lineage.objects.filter(derived=derived).count() == len(rows)
    assert "PRUNE 1" not in run("").out
    answer = retrieval.search(scope=within, query="where does the relay sit", k=5, call_site="context")
    assert [hit.text for hit in answer.hits] == [derived.text]
    assert "PRUNE 1  (0 automatic, 1 for a person)" in run("").out
    assert set(Observation.objects.filter(pk__in=[row.pk for row in rows]).values_list("status", flat=True)) == {
        Status.ARCHIVED
    }


def test_five_phrasings_of_one_fact_fill_the_first_five_places_until_they_are_merged(within: Scope) -> None:
    """R30, R113: distinct@5 rises from 1 to 5; nothing that answered before stops answering."""
    other = ("The relay hums at night", "The relay was bought in May", "The relay has a red lamp", "The relay is loud")
    for text in other:
        observe(text, within=within)
    said = ("The relay sits in rack 4", "the relay sits in rack 4.", "The relay sits in rack 4.")
    for text in (*said, *said[:2]):
        observe(text, within=within, key=engine.RELAY)
    assert distinct(within) == 1
    run("--apply")
    assert distinct(within) == 5
    assert "the relay sits in rack 4" in found(within)[0].lower()


def found(within: Scope) -> list[str]:
    answer = retrieval.search(scope=within, query="The relay sits in rack 4", k=5, call_site="search")
    return [hit.text for hit in answer.hits]


def distinct(within: Scope) -> int:
    return len({text.lower().rstrip(".") for text in found(within)})


def test_the_same_plan_is_a_page_that_says_as_much(within: Scope) -> None:
    """R53, R116: what the command prints is what the page prints, for whoever reads it the first time."""
    engine.alike(within), engine.contradiction(within)
    run("plan --explain")
    made = Plan.objects.latest("pk")
    client = client_of(person("root", superuser=True))
    page = client.get(reverse("admin:consolidation_plan_printed", args=[made.pk])).content.decode()
    for item in engine.items(made):
        assert item.op_id in page
    assert json.loads(json.dumps(planner.plan_json(made)))["id"] == str(made)
