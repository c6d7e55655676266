"""`manage.py consolidate`: deciding and explaining operations, measuring the store (R86, R116, C16)."""

from __future__ import annotations

import io
import json

import pytest

from consolidation import planner, review
from consolidation.management.commands.consolidate import Command
from consolidation.models import Operation, Plan, Policy
from consolidation.operations import Approval, Kind, Shown, State, digest
from observations import outbox
from observations.models import Event, Evidence, Observation
from observations.records import Claim, EvidenceRef, Outcome, StatedBy
from tests.building import observe, propose, scope, tell
from tests.consolidating import contradiction, only, run, twins
from tests.engine import promotion, values, write
from tests.integration.test_beat import snapshot
from tests.jsonl import imported

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _no_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "wake", lambda: None)


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


def test_explain_marks_the_claim_that_a_person_kept_and_before_that_only_a_suggestion() -> None:
    """R83: the row called kept is the one that stays, not the one that was suggested."""
    contradiction()
    run("")
    operation = only(Kind.SUPERSEDE)
    suggested = Observation.objects.get(pk=operation.keeper_id or 0)
    other = Observation.objects.exclude(pk=suggested.pk).get()
    assert f"obs_{suggested.pk} [{suggested.external_id}] active (suggested)" in run(f"explain {operation.op_id}").out
    run(f"approve {operation.op_id} --keep {other.pk} --reason 'it was moved'")
    run(f"apply {operation.op_id}")
    said = run(f"explain {operation.op_id}").out
    assert f"obs_{other.pk} [{other.external_id}] active (kept)" in said
    assert f"obs_{suggested.pk} [{suggested.external_id}] superseded  " in said


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


RIGHT = "--text 'The coffee machine is on floor 4' --reason 'both are old'"


def neither(words: str) -> Observation:
    """A contradiction settled by the right claim, as the command wrote it."""
    contradiction()
    run("")
    operation = only(Kind.SUPERSEDE)
    assert run(f"approve {operation.op_id} {RIGHT} {words}").status == 0
    assert run(f"apply {operation.op_id}").status == 0
    return Observation.objects.active().get()


@pytest.mark.parametrize("given", ["4", " 4\x00 "])
def test_a_later_value_is_questioned_against_the_right_claim(given: str) -> None:
    """R71: the written claim has the whole key, so that an import with another object of it is a contradiction."""
    written = neither(f"--object '{given}'")
    assert (written.subject, written.predicate) == ("office", "coffee machine is on floor")
    assert written.object in ("4", "4\N{REPLACEMENT CHARACTER}")
    line = {
        "id": "coffee-5",
        "scope": "team-a/u1",
        "text": "The coffee machine is on floor 5",
        "subject": "office",
        "predicate": "coffee machine is on floor",
        "object": "5",
    }
    assert imported(line).added == 1
    run("")
    question = Operation.objects.exclude(status=State.APPLIED).get(kind=Kind.SUPERSEDE)
    later = Observation.objects.get(external_id="coffee-5")
    assert question.status == State.NEEDS_HUMAN
    assert [source.row_id for source in question.sources.order_by("position")] == [written.pk, later.pk]


def test_without_an_object_the_right_claim_is_questioned_by_nothing() -> None:
    """As it was: the claim has subject and predicate only. A control of the test above."""
    written = neither("")
    assert (written.subject, written.predicate, written.object) == ("office", "coffee machine is on floor", "")
    observe("The coffee machine is on floor 5", within=written.scope, key=("office", "coffee machine is on floor", "5"))
    run("")
    assert not Operation.objects.exclude(status=State.APPLIED).filter(kind=Kind.SUPERSEDE).exists()


def test_the_object_is_part_of_what_is_approved() -> None:
    """I17, I18: changed after the approval, nothing of it is written."""
    contradiction()
    run("")
    operation = only(Kind.SUPERSEDE)
    run(f"approve {operation.op_id} {RIGHT} --object 4")
    Operation.objects.filter(pk=operation.pk).update(decision_object="5")
    ran = run(f"apply {operation.op_id}")
    assert (ran.status, "STALE" in ran.out) == (1, True)
    assert Observation.objects.active().count() == 2


def test_an_approval_without_an_object_has_the_digest_it_always_had() -> None:
    """What was approved before a right claim could have an object is still applied."""
    contradiction()
    run("")
    run(f"approve {only(Kind.SUPERSEDE).op_id} {RIGHT}")
    operation = only(Kind.SUPERSEDE)
    rows = Observation.objects.order_by("pk")
    then = digest(
        operation=operation.op_id,
        generation=1,
        kind=Kind.SUPERSEDE,
        decision={
            "product": operation.product,
            "keeper": operation.keeper_id,
            "chosen": {"text": True},
            "text": "The coffee machine is on floor 4",
        },
        sources=[Shown(row.pk, row.version, row.status, row.content_hash) for row in rows],
        policy=operation.policy_hash,
    )
    assert operation.approved_digest == then


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        ("--object 4 --keep coffee-2 --reason because", 1, "An object belongs to the right claim"),
        ("--object 4 --reason because", 1, "Choose one"),
        (f"--object {'4' * 1_001} {RIGHT}", 1, "1,001 characters: 1,000 are the most"),
        (f"--text {'a' * 20_001} --reason because", 1, "20,001 characters: 20,000 are the most"),
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


def test_explain_says_whose_word_each_source_is_and_what_it_rests_on() -> None:
    """R50, R53: what the item page says, in its words: said by, first said, true, evidence with quotes and roots."""
    within = scope("team-a/u1")
    rows = values(within)
    more = [f"mail://{number}" for number in range(8)]
    rows.append(observe("Ann lives in Bern", within=within, stated_by=StatedBy.USER, sources=more))
    Evidence.objects.create(scope=within, observation=rows[0], source_uri="copy://1", root_source="doc://Ghent")
    lines = run(f"explain {propose(Kind.SUPERSEDE, rows, approval=Approval.NEEDS_HUMAN).op_id}").out.splitlines()
    at = lines.index(f'    obs_{rows[0].pk} [home-Ghent] active  "Ann lives in Ghent"')
    assert lines[at + 1 : at + 8] == [
        "      key         Ann / lives in / Ghent",
        "      said by     agent via background",
        "      first said  2016-06-01 00:00 UTC",
        "      true        2016-05-01 to 2019-04-30",
        "      confidence  0.50",
        "      evidence    2 sources, 1 independent",
        '        doc://Ghent  "moved to Ghent"',
    ]
    assert lines[at + 8] == "        copy://1 from doc://Ghent"
    at = lines.index(f'    obs_{rows[3].pk} [{rows[3].external_id}] active  "Ann lives in Bern"')
    assert lines[at + 1] == "      said by     user via background"
    assert lines[at + 3] == "      true        no period given"
    assert lines[at + 5] == "      evidence    8 sources, 8 independent"
    assert lines[at + 11 : at + 13] == ["        mail://5", "        and 2 more"]


def test_explain_says_who_told_the_episodes_and_which_words_a_promotion_rests_on() -> None:
    """R53: the fact is nobody's own word; each episode has its teller, day, outcome, root source and quote."""
    turn = tell(
        "She took the night train to Graz",
        within=scope("team-a/u1"),
        root="call://7",
        outcome=Outcome.SUCCESS,
        session="trips",
        role="user",
    )
    plan = Plan.objects.create(pattern="*", requested_by="test", trigger="command")
    lines = run(f"explain {promotion((turn,), plan=plan).op_id}").out.splitlines()
    assert "  trust     counts as said by agent" in lines
    assert [line for line in lines if "(promoted, not user-stated)" in line]
    at = lines.index(f'    ep_{turn.pk} [{turn.external_id}] active  "She took the night train to Graz"')
    assert lines[at + 1 : at + 5] == [
        "      said by     Ana (user)",
        f"      said        {turn.happened_at:%Y-%m-%d %H:%M} UTC, session trips",
        "      outcome     verified success",
        f'      evidence    {turn.source_uri} from call://7  "the night train to Graz"',
    ]


def test_explain_prints_the_same_as_json() -> None:
    """With the evidence whole, and what a reviewer wrote."""
    within = scope("team-a/u1")
    operation = propose(Kind.SUPERSEDE, values(within), approval=Approval.NEEDS_HUMAN)
    run(f"approve {operation.op_id} --text 'Ann lives in Bern' --object Bern --reason asked")
    document = run(f"explain {operation.op_id} --json").document
    assert document["sources"][0]["evidence"] == [
        {"source_uri": "doc://Ghent", "root_source": "doc://Ghent", "quote": "moved to Ghent"}
    ]
    assert (document["sources"][0]["stated_by"], document["sources"][0]["written_by"]) == ("agent", "background")
    assert (document["decision_text"], document["decision_object"]) == ("Ann lives in Bern", "Bern")
    out = run(f"explain {operation.op_id}").out
    assert '  right claim  "Ann lives in Bern"\n  its object   "Bern"\n' in out


def test_nothing_hostile_of_a_source_reaches_the_terminal_or_forges_a_line() -> None:
    """F5: addresses, roots, quotes, speakers, sessions and what a reviewer wrote, each on its own line and cut."""
    within = scope("team-a/u1")
    evil = "\x1b[2J\u202e\n  state     applied"
    evidence = (EvidenceRef(f"doc://{evil}", root_source=f"root://{evil}", quote=evil + "x" * 200),)
    rows = [
        write(Claim(n, external_id=f"c{n}", subject="s", predicate="p", object=n, evidence=evidence), within=within)
        for n in "ab"
    ]
    said = tell("Hello", within=within, speaker=evil, session=evil, root=evil, role=evil)
    one = propose(Kind.SUPERSEDE, rows, approval=Approval.NEEDS_HUMAN)
    review.approve(operation=one, by="x", decision=review.Decision(text=evil, object=evil), reason="asked")
    for operation in (one, propose(Kind.COMPACT, [said], text="Hello")):
        out = run(f"explain {operation.op_id}").out
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert [line for line in out.splitlines() if line.startswith("  state     ")] == [out.splitlines()[1]]
        assert "\\u202e" in out
        assert "x" * 181 not in out


def test_unattended_application_is_refused_until_it_is_allowed_and_a_named_override_is_an_event() -> None:
    """R94, R116."""
    twins()
    Policy.objects.create(pattern="*", body={"unattended": False})
    run("plan")
    refused = run("apply --unattended")
    assert (refused.status, "does not allow unattended" in refused.error) == (1, True)
    Policy.objects.filter(pattern="*").update(body={"unattended": True})
    run("plan")
    early = run("apply --unattended --by ana")
    assert "first plan is less than 7 days old" in early.error
    assert Operation.objects.filter(status=State.APPLIED).count() == 0
    applied = run("apply --unattended --by ana --override 'the old store was reviewed for a year'")
    assert applied.status == 0
    assert Operation.objects.filter(status=State.APPLIED).count() == 1
    event = Event.objects.get(action="unattended_override")
    assert (event.actor, event.detail["reason"]) == ("ana", "the old store was reviewed for a year")


def test_stats_measure_what_is_there() -> None:
    """R86: size over time, duplicates, promotions, the oldest record, the growth curve."""
    twins()
    contradiction()
    run("")
    document = run("stats --json").document
    assert document["observations"] == 4
    told = {"share": 0.25, "same_text": 1, "same_text_is_estimate": False, "waiting_merges": 1}
    assert document["duplicates"] == told
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
