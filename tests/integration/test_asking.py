"""The four questions of a scope that no policy covers: asked, answered, and what holds while they are open (R32)."""

from __future__ import annotations

import argparse
import json
import shlex
from typing import Any

import pytest
from django.core.management import CommandError

from consolidation import asking, planner, revising
from consolidation.asking import QUESTIONS, Answers, answer, question_lines, unanswered
from consolidation.management import setup
from consolidation.models import Policy, PolicyRevision
from consolidation.policy import Policy as Rules
from consolidation.policy import PolicyError, Trigger
from observations.models import Event
from observations.records import MemoryKind
from tests.building import scope

pytestmark = pytest.mark.django_db


def stored(pattern: str, **fields: Any) -> Policy:
    """A policy as somebody saved it."""
    return revising.revise(pattern=pattern, policy=Rules(**fields), by="seed", version=revising.NEW)


def told(words: str, *, scope: str | None = "team-a/u1", as_json: bool = False) -> str:
    """One run of the sub-command with these words, as the shell would split them."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    setup.arguments(parser)
    options = vars(parser.parse_args(shlex.split(words)))
    return setup.run({**options, "scope": scope, "by": "carl", "json": as_json})


def held(pattern: str = "team-a/u1") -> Rules:
    return Rules.from_dict(Policy.objects.get(pattern=pattern).body)


# --- asking -----------------------------------------------------------------------------------------------------------


def test_there_are_four_questions_and_each_says_what_holds_without_an_answer() -> None:
    """R32, R33: what may be merged, what never, what duty, what trigger."""
    assert [question.name for question in QUESTIONS] == ["merge", "never", "keep_days", "trigger"]
    assert all(question.words.endswith("?") and question.hint and question.unanswered for question in QUESTIONS)
    kinds = {choice.value for choice in QUESTIONS[0].choices}
    assert kinds == {choice.value for choice in QUESTIONS[1].choices} == set(MemoryKind)
    assert {choice.value for choice in QUESTIONS[3].choices} == set(Trigger)
    assert {question.name for question in QUESTIONS} < {*Answers.__dataclass_fields__}


def test_a_scope_is_unanswered_while_no_pattern_covers_it() -> None:
    one, two, three = scope("team-a/u1"), scope("team-a/u2"), scope("team-b/u1")
    assert unanswered(scopes=[one, two, three]) == [one, two, three]
    stored("team-a/u2")
    assert unanswered(scopes=[one, two, three]) == [one, three]
    stored("team-a/*")
    assert unanswered(scopes=[one, two, three]) == [three]
    stored("*")
    assert unanswered(scopes=[one, two, three]) == []


def test_the_printed_plan_asks_and_says_how_to_answer() -> None:
    lines = question_lines([scope("team-a/u1")])
    assert lines[0] == ("ASKED     no policy covers team-a/u1. Until four questions are answered, this holds:")
    assert [line.split("?")[0].strip() for line in lines[1:5]] == [question.words[:-1] for question in QUESTIONS]
    assert "near-identical records of every kind" in lines[1]
    assert lines[5] == "  Answer with `manage.py consolidate setup --scope team-a/u1`, or in the admin under Policies."


def test_the_printed_plan_names_three_scopes_and_counts_the_others() -> None:
    scopes = [scope(f"team-a/u{number}") for number in range(5)]
    lines = question_lines(scopes)
    assert lines[0].startswith("ASKED     no policy covers team-a/u0, team-a/u1, team-a/u2 and 2 more.")
    assert "--scope PATTERN`" in lines[5]
    stored("team-a/*")
    assert question_lines(scopes) == []


def test_a_scopes_name_cannot_hide_anything_in_the_printed_plan() -> None:
    """F5: a scope's name is shown like memory text, and quoted for the shell."""
    lines = question_lines([scope("team a/o'hara")])
    assert "'team a/o'\"'\"'hara'" in lines[5]


def test_what_is_not_answered_holds_as_the_questions_say() -> None:
    """Unanswered: merge near-identical and promote; compact, archive and prune off."""
    policy = Policy.objects.in_force(scope="team-a/u1").rules
    assert policy == Rules()
    assert set(policy.mergeable) == set(MemoryKind)
    assert policy.untouchable == ()
    assert (policy.keep_days, policy.trigger) == (0, Trigger.MANUAL)


@pytest.mark.django_db(transaction=True)
def test_asking_changes_nothing_about_a_plan() -> None:
    """A plan of an unanswered scope is a plan."""
    within = scope("team-a/u1")
    assert planner.plan(scopes=[within], pattern=within.name, by="t", trigger="command").state == "complete"
    assert not Policy.objects.exists()


# --- answering --------------------------------------------------------------------------------------------------------


def test_answers_become_the_policy_of_the_pattern() -> None:
    row = answer(
        pattern="team-a/*",
        answers=Answers(
            merge=(MemoryKind.FACT,), never=(MemoryKind.IDENTITY,), keep_days=365, trigger=Trigger.RECORDS, every=200
        ),
        by="carl",
    )
    found = held("team-a/*")
    assert (found.mergeable, found.untouchable, found.keep_days) == ((MemoryKind.FACT,), (MemoryKind.IDENTITY,), 365)
    assert (found.trigger, found.every_records) == (Trigger.RECORDS, 200)
    assert (row.version, row.updated_by) == (1, "carl")
    assert (found.compact, found.archive, found.prune) == (False, False, False)
    assert Event.objects.get(action="policy_saved").actor == "carl"


def test_what_is_left_open_stays_as_it_holds_there() -> None:
    """A narrower policy begins with the wider one's settings, its own with its own."""
    stored("team-a/*", chain_cap=1, keep_days=30)
    answer(pattern="team-a/u1", answers=Answers(trigger=Trigger.SCHEDULE), by="carl")
    assert (held().chain_cap, held().keep_days, held().trigger) == (1, 30, Trigger.SCHEDULE)
    answer(pattern="team-a/u1", answers=Answers(never=(MemoryKind.NOTE,)), by="rita")
    assert (held().trigger, held().untouchable) == (Trigger.SCHEDULE, (MemoryKind.NOTE,))
    assert PolicyRevision.objects.filter(pattern="team-a/u1").count() == 2
    assert held("team-a/*").trigger is Trigger.MANUAL


def test_nothing_may_be_merged_without_a_person_is_an_answer() -> None:
    answer(pattern="team-a/u1", answers=Answers(merge=()), by="carl")
    assert (held().mergeable, held().merge) == ((), True)


def test_a_number_of_records_means_that_trigger_and_no_other() -> None:
    assert Answers(every=9).values() == {"trigger": "records", "every_records": 9}
    with pytest.raises(PolicyError, match="goes with the trigger 'records'"):
        Answers(every=9, trigger=Trigger.MANUAL).values()
    assert not Answers().given
    assert Answers(keep_days=0).given


@pytest.mark.parametrize(
    ("pattern", "answers", "field"),
    [
        ("team-a/", Answers(keep_days=1), "pattern"),
        ("team-a/u1", Answers(keep_days=-1), "keep_days"),
        ("team-a/u1", Answers(every=0), "every_records"),
    ],
)
def test_an_answer_that_cannot_be_used_stores_nothing(pattern: str, answers: Answers, field: str) -> None:
    with pytest.raises(PolicyError) as refused:
        answer(pattern=pattern, answers=answers, by="carl")
    assert refused.value.field == field
    assert not Policy.objects.exists()


def test_answering_onto_a_policy_changed_meanwhile_is_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    stored("team-a/u1")
    reading = revising.wider

    def changed_after(**given: Any) -> Policy | None:
        row = reading(**given)
        revising.revise(pattern="team-a/u1", policy=Rules(grace_days=7), by="rita", version=1)
        return row

    monkeypatch.setattr(revising, "wider", changed_after)
    with pytest.raises(revising.Conflict, match=r"Version 2 of the policy of team-a/u1 was saved meanwhile, by rita"):
        answer(pattern="team-a/u1", answers=Answers(keep_days=1), by="carl")
    assert held().grace_days == 7


# --- the command ------------------------------------------------------------------------------------------------------


def test_without_an_answer_the_command_asks_and_writes_nothing() -> None:
    """Habit 2: writing takes a word."""
    said = told("")
    assert "No policy covers team-a/u1. Nothing was changed." in said
    for question in QUESTIONS:
        assert f"{question.words}  {question.option}" in said
        assert f"now: {question.unanswered}" in said
    assert "    identity    Identity: who somebody is" in said
    assert not Policy.objects.exists()


def test_the_command_says_what_holds_now_and_by_which_policy() -> None:
    stored("team-a/*", keep_days=30, trigger=Trigger.RECORDS, mergeable=(MemoryKind.FACT,))
    said = told("")
    assert "team-a/u1 has no policy of its own; that of team-a/* holds." in said
    assert "now: fact\n" in said
    assert "now: 30 days" in said
    assert "now: records, every 500" in said
    assert "team-a/* has a policy, version 1." in told("", scope="team-a/*")


def test_the_command_stores_what_was_answered() -> None:
    said = told("--merge fact,note --never 'identity, preference' --keep-days 90 --every 50")
    assert said.splitlines()[0] == "The policy of team-a/u1 is version 1, by carl."
    assert "When is it planned?  records, every 50" in said
    assert "On besides merging and promoting: nothing." in said
    assert held().mergeable == (MemoryKind.FACT, MemoryKind.NOTE)
    assert held().untouchable == (MemoryKind.PREFERENCE, MemoryKind.IDENTITY)
    document = json.loads(told("--trigger manual", as_json=True))
    assert (document["version"], document["stored"], document["policy"]["trigger"]) == (2, True, "manual")


def test_all_and_none_are_answers_too() -> None:
    told("--merge none --never all")
    assert (held().mergeable, held().untouchable) == ((), tuple(MemoryKind))
    told("--merge all --never none")
    assert (held().mergeable, held().untouchable) == (tuple(MemoryKind), ())


def test_json_says_what_holds_without_storing() -> None:
    document = json.loads(told("", as_json=True))
    assert (document["stored"], document["holds"], document["version"]) == (False, None, None)
    assert document["policy"] == Rules().to_dict()
    assert not Policy.objects.exists()


@pytest.mark.parametrize(
    ("words", "pattern", "sentence"),
    [
        ("", None, "Say for which scopes: --scope 'team/anna', 'team/*' for all below it, or '*' for all."),
        ("--keep-days 1", "team-a/", "pattern must be the name of a scope such as 'team/anna'"),
        ("--merge opinion", "team-a/u1", "--merge takes preference, identity, fact, state, episode, note, with commas"),
        ("--never ''", "team-a/u1", "--never takes preference, "),
        ("--keep-days 99999", "team-a/u1", "keep_days must be from 0 to 36500, not 99999."),
        ("--every 5 --trigger schedule", "team-a/u1", "every_records goes with the trigger 'records'"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence_and_status_2(words: str, pattern: str | None, sentence: str) -> None:
    with pytest.raises(CommandError) as refused:
        told(words, scope=pattern)
    assert str(refused.value).startswith(sentence)
    assert refused.value.returncode == 2
    assert not Policy.objects.exists()


def test_a_conflict_is_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def conflict(**_: Any) -> Policy:
        raise revising.Conflict(pattern="team-a/u1", current=None)

    monkeypatch.setattr(asking, "answer", conflict)
    with pytest.raises(CommandError, match="was removed meanwhile") as refused:
        told("--keep-days 1")
    assert refused.value.returncode == 1


def test_a_stored_policy_that_cannot_be_read_is_said() -> None:
    Policy.objects.create(pattern="team-a/*", body={"blokc": 1})
    with pytest.raises(CommandError, match="policy has no field 'blokc'"):
        told("--keep-days 1")
