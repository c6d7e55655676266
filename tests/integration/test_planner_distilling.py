"""Planning with a model: promotions and summaries from episodes, asked once, kept, and honest about what failed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from consolidation import invariants, planner, review, runner
from consolidation.models import Draft, Operation, Plan, Policy
from consolidation.operations import Approval, Kind, State
from consolidation.rendering import render
from consolidation.runner import Outcome
from observations.embedding import HASHING
from observations.llm import BudgetSpent, CutOff, ModelFailed, Refused, Request, Unreachable
from observations.models import Episode, Observation, Scope
from observations.records import Outcome as Ending
from observations.records import Status
from tests.acceptance import world
from tests.building import observe, scope, tell
from tests.scripted import ScriptedCompleter

pytestmark = pytest.mark.django_db(transaction=True)

FACT = "Ana takes the night train to Graz"
WORDS = "took the night train to Graz"
SUMMARY = [
    "In week 1 Ana took the night train to Graz again.",
    "In week 2 Ana took the night train to Graz again.",
    "In week 3 Ana took the night train to Graz again.",
]


@pytest.fixture
def within() -> Scope:
    return scope("team-a/ana")


def weeks(within: Scope, *, roots: Sequence[str] = ("doc://1", "doc://2", "doc://3")) -> list[Episode]:
    """One turn a week about the same train, in one session."""
    return [
        tell(f"In week {at} Ana {WORDS} again.", within=within, root=root, session="s1", outcome=Ending.SUCCESS)
        for at, root in enumerate(roots, start=1)
    ]


def fact(labels: Sequence[int], **changed: Any) -> dict[str, Any]:
    quotes = [{"episode": label, "words": WORDS} for label in labels]
    key = {"subject": "Ana", "predicate": "takes", "object": "the night train to Graz"}
    return {"text": FACT, **key, "supported_by": list(labels), "quotes": quotes, **changed}


def promoting(labels: Sequence[int] = (0, 1, 2)) -> ScriptedCompleter:
    return ScriptedCompleter(by_purpose={"promote": {"facts": [fact(labels)]}})


def compacting(sentences: Sequence[str] = SUMMARY) -> ScriptedCompleter:
    def said(request: Request) -> dict[str, Any]:
        return {"sentences": [{"text": text, "episodes": [at]} for at, text in enumerate(sentences)]}

    return ScriptedCompleter(by_purpose={"promote": {"facts": []}, "compact": said})


def plan(within: Scope, completer: ScriptedCompleter | None) -> Plan:
    return planner.plan(
        scopes=[within], pattern=within.name, by="test", trigger="command", profile=HASHING, completer=completer
    )


def only(kind: Kind) -> Operation:
    return Operation.objects.get(kind=kind)


def faults(made: Plan) -> list[tuple[str, bool]]:
    return [(item["step"], item["failed"]) for item in made.failures]


# --- promoting ------------------------------------------------------------------------------------------------------


def test_three_independent_episodes_promote_a_fact_without_a_person(within: Scope) -> None:
    """R45, R75, R77: planned as automatic, at the promoted ceiling, with the episodes it rests on."""
    episodes = weeks(within)
    made = plan(within, promoting())
    operation = only(Kind.PROMOTE)
    assert (operation.approval, operation.status, operation.text) == (Approval.AUTO, State.PLANNED, FACT)
    assert [source.row_id for source in operation.sources.order_by("position")] == [turn.pk for turn in episodes]
    assert made.state == Plan.State.COMPLETE
    assert runner.apply(operation=operation, by="ines").outcome is Outcome.APPLIED
    assert Observation.objects.get().confidence == pytest.approx(0.6)
    assert invariants.check() == []


def test_two_independent_episodes_wait_for_a_person(within: Scope) -> None:
    weeks(within, roots=("doc://1", "doc://2"))
    plan(within, promoting((0, 1)))
    assert (only(Kind.PROMOTE).approval, only(Kind.PROMOTE).status) == (Approval.NEEDS_HUMAN, State.NEEDS_HUMAN)


def test_promotion_with_one_supporter_is_skipped_and_says_one_supporting(within: Scope) -> None:
    """R76, R103."""
    weeks(within)
    plan(within, promoting((1,)))
    operation = only(Kind.PROMOTE)
    assert operation.status == State.SKIPPED
    assert "1 supporting" in operation.skipped_reason


def test_a_second_pass_asks_nothing_and_proposes_the_same_operation(within: Scope) -> None:
    """C12: planning twice with no change gives the same items; the model is asked once."""
    weeks(within)
    completer = promoting()
    first = plan(within, completer)
    second = plan(within, completer)
    assert len(completer.requests) == 1
    assert (first.figures["new"], second.figures["new"], second.figures["again"]) == (1, 0, 1)
    assert Operation.objects.count() == 1


def test_what_is_said_in_another_group_of_episodes_is_still_the_same_operation(within: Scope) -> None:
    """DESIGN 4, Identity: a further episode makes a new question, not a second copy of the item that waits."""
    weeks(within)
    completer = promoting()
    plan(within, completer)
    tell("Ana bought a scarf.", within=within, session="s1", root="doc://9")
    later = plan(within, completer)
    assert len(completer.requests) == 2
    assert (later.figures["new"], later.figures["again"], later.figures["stale"]) == (0, 1, 0)


def test_an_applied_fact_is_not_promoted_again(within: Scope) -> None:
    weeks(within)
    completer = promoting()
    plan(within, completer)
    runner.apply(operation=only(Kind.PROMOTE), by="ines")
    again = plan(within, completer)
    assert again.figures["new"] == 0 or Operation.objects.exclude(status=State.SKIPPED).count() == 1


def test_a_fact_that_memory_holds_already_is_skipped_and_names_it(within: Scope) -> None:
    weeks(within)
    known = observe(FACT, within=within)
    plan(within, promoting())
    assert only(Kind.PROMOTE).skipped_reason == f"already known as obs_{known.pk}"


def test_a_refused_fact_is_asked_again_only_with_a_new_witness(within: Scope) -> None:
    """R78 and the memory of decisions: rejecting is remembered, new evidence is a new question."""
    weeks(within, roots=("doc://1", "doc://2"))
    plan(within, promoting((0, 1)))
    review.reject(operation=only(Kind.PROMOTE), by="ines", reason="it was twice, not a habit")
    tell("Ana bought a scarf.", within=within, session="s1", root="doc://9")
    assert plan(within, promoting((0, 1))).figures["new"] == 0
    tell(f"In week 4 Ana {WORDS} again.", within=within, session="s1", root="doc://4")
    assert plan(within, promoting((0, 1, 3))).figures["new"] == 1


def test_a_fact_taken_back_is_not_promoted_again(within: Scope) -> None:
    weeks(within)
    plan(within, promoting())
    operation = only(Kind.PROMOTE)
    runner.apply(operation=operation, by="ines")
    runner.undo(operation=operation, by="ines")
    tell("Ana bought a scarf.", within=within, session="s1", root="doc://9")
    assert plan(within, promoting()).figures["new"] == 0


# --- compacting -----------------------------------------------------------------------------------------------------


@pytest.fixture
def compacts(within: Scope) -> Policy:
    return Policy.objects.create(pattern=within.name, body={"compact": True, "compact_after_days": 1})


def test_a_session_becomes_a_summary_that_keeps_every_figure(within: Scope, compacts: Policy) -> None:
    """R44, C9."""
    episodes = weeks(within)
    plan(within, compacting())
    operation = only(Kind.COMPACT)
    assert (operation.approval, operation.status) == (Approval.AUTO, State.PLANNED), operation.reason
    assert operation.text == " ".join(SUMMARY)
    assert runner.apply(operation=operation, by="ines").outcome is Outcome.APPLIED
    assert Episode.objects.filter(status=Status.ARCHIVED).count() == len(episodes)
    assert invariants.check() == []


def test_a_summary_that_loses_a_number_waits_for_a_person(within: Scope, compacts: Policy) -> None:
    weeks(within)
    plan(within, compacting(["Ana took the night train to Graz again in three different weeks.", *SUMMARY[1:]]))
    assert only(Kind.COMPACT).approval == Approval.NEEDS_HUMAN


def test_nothing_is_compacted_until_a_policy_says_so(within: Scope) -> None:
    """R32: off by default."""
    weeks(within)
    completer = compacting()
    plan(within, completer)
    assert completer.asked_for("compact") == []


def test_episodes_that_a_promotion_rests_on_are_compacted_in_the_next_pass(within: Scope, compacts: Policy) -> None:
    """One record, one appliable operation of a plan: the promotion would go stale."""
    weeks(within)
    said = compacting()._by_purpose | {"promote": {"facts": [fact((0, 1, 2))]}}
    completer = ScriptedCompleter(by_purpose=said)
    plan(within, completer)
    promotion, compaction = only(Kind.PROMOTE), only(Kind.COMPACT)
    assert compaction.skipped_reason == f"waits for the next pass, after {promotion.op_id}"
    runner.apply(operation=promotion, by="ines")
    plan(within, completer)
    newest = Operation.objects.filter(kind=Kind.COMPACT).order_by("-generation")[0]
    assert newest.status == State.PLANNED


# --- what fails, says so --------------------------------------------------------------------------------------------


def test_without_a_model_promoting_does_not_run_and_says_why(within: Scope) -> None:
    """Everything that needs no model still works; the rest says why it did not run. Nothing failed."""
    weeks(within)
    made = plan(within, None)
    assert made.state == Plan.State.COMPLETE
    assert faults(made) == [(Kind.PROMOTE, False)]
    shown = render(planner.printed(made))
    assert "No language model is configured" in shown
    assert "nothing to do" not in shown


def test_a_compaction_that_somebody_asked_for_fails_visibly_without_a_model(within: Scope, compacts: Policy) -> None:
    """C9 and the rule over all cases: a failed step is shown as failed, never as nothing to do."""
    weeks(within)
    made = plan(within, None)
    assert made.state == Plan.State.PARTIAL
    assert (Kind.COMPACT, True) in faults(made)
    assert "nothing to do" not in render(planner.printed(made))


@pytest.mark.parametrize(
    "failure",
    [Refused("It declined."), CutOff("It was too long."), Unreachable("It is away."), BudgetSpent("It is spent.")],
    ids=lambda failure: type(failure).__name__,
)
def test_a_model_that_gives_no_summary_is_a_failed_step(within: Scope, compacts: Policy, failure: ModelFailed) -> None:
    weeks(within)
    completer = ScriptedCompleter(by_purpose={"promote": {"facts": []}, "compact": failure})
    made = plan(within, completer)
    assert made.state == Plan.State.PARTIAL
    assert (Kind.COMPACT, True) in faults(made)
    assert str(failure) in render(planner.printed(made))
    assert not Operation.objects.exists()


@pytest.mark.parametrize("reply", ["", "Sorry, I cannot see any sentences.", '{"sentences": []}'])
def test_a_stub_of_a_summary_is_never_a_summary(within: Scope, compacts: Policy, reply: str) -> None:
    """C9: refused, and said so, either as a failed step or as a skipped item with its reason."""
    weeks(within)
    completer = ScriptedCompleter(by_purpose={"promote": {"facts": []}, "compact": reply or Refused("Empty.")})
    made = plan(within, completer)
    skipped = Operation.objects.filter(kind=Kind.COMPACT, status=State.SKIPPED).exists()
    assert made.state == Plan.State.PARTIAL or skipped
    assert not Operation.objects.exclude(status=State.SKIPPED).exists()


def test_an_unusable_answer_is_asked_for_three_times_in_all(within: Scope) -> None:
    """E9: an unreadable answer is not 'nothing corroborated', and it is not asked for for ever."""
    weeks(within)
    completer = ScriptedCompleter(by_purpose={"promote": "What a lovely journey!"})
    states = [plan(within, completer).state for _ in range(5)]
    assert len(completer.requests) == 3
    assert states == [Plan.State.PARTIAL] * 3 + [Plan.State.COMPLETE] * 2
    assert "3 attempts" in render(planner.printed(Plan.objects.order_by("-id")[0]))
    draft = Draft.objects.get()
    assert (draft.answer, draft.attempts) == ("unusable", 3)


def test_what_stood_stays_while_the_model_is_away(within: Scope) -> None:
    """An item does not go stale because a question about a larger group could not be asked."""
    weeks(within)
    plan(within, promoting())
    tell("Ana bought a scarf.", within=within, session="s1", root="doc://9")
    away = ScriptedCompleter(by_purpose={"promote": Unreachable("It is away.")})
    made = plan(within, away)
    assert made.figures["stale"] == 0
    assert only(Kind.PROMOTE).status == State.PLANNED


def test_one_failing_scope_leaves_the_answers_of_the_others(within: Scope) -> None:
    weeks(within)
    other = scope("team-b/bo")
    weeks(other, roots=("x://1", "x://2", "x://3"))
    calls: list[int] = []

    def said(request: Request) -> dict[str, Any]:
        calls.append(request.scope_id or 0)
        if request.scope_id == within.pk:
            raise Unreachable("It is away.")
        return {"facts": [fact((0, 1, 2))]}

    completer = ScriptedCompleter(by_purpose={"promote": said})
    made = planner.plan(
        scopes=[within, other], pattern="*", by="test", trigger="command", profile=HASHING, completer=completer
    )
    assert made.state == Plan.State.PARTIAL
    assert only(Kind.PROMOTE).scope == other
    assert set(calls) == {within.pk, other.pk}


# --- nothing is written ---------------------------------------------------------------------------------------------


def test_planning_with_a_model_changes_nothing_of_memory(within: Scope, compacts: Policy) -> None:
    """C12, I22, R98."""
    weeks(within)
    observe(FACT, within=within)
    before = world.snapshot()
    plan(within, compacting())
    kept = ("observation", "evidence", "lineage", "vector", "journal", "episode", "consumed", "alias")
    after = world.snapshot()
    assert [line for line in after.splitlines() if line.startswith(kept)] == [
        line for line in before.splitlines() if line.startswith(kept)
    ]


def test_a_question_holds_the_episodes_of_one_scope_only(within: Scope) -> None:
    """R90, C6: what is sent to the model never crosses scopes."""
    weeks(within)
    secret = tell(
        "The other team's word is zirconium.", within=scope("team-b/bo"), happened_at=datetime(2020, 1, 1, tzinfo=UTC)
    )
    completer = promoting()
    planner.plan(
        scopes=[within, secret.scope], pattern="*", by="test", trigger="command", profile=HASHING, completer=completer
    )
    assert all("zirconium" not in request.text for request in completer.requests if request.scope_id == within.pk)


def test_copies_of_one_source_are_one_witness_and_the_plan_says_so(within: Scope) -> None:
    """C8: e1 and e2 are one document ingested twice, e3 is made from it; support is 1, however often it is ingested."""
    weeks(within, roots=("doc://1", "doc://1", "doc://1"))
    completer = promoting()
    made = plan(within, completer)
    operation = only(Kind.PROMOTE)
    assert (operation.status, operation.skipped_reason) == (State.SKIPPED, "1 supporting, 2 needed")
    assert completer.requests == []
    assert "SKIPPED 1" in render(planner.printed(made))
    for _ in range(10):
        tell(f"In week 1 Ana {WORDS} again.", within=within, root="doc://1", session="s1")
    again = plan(within, completer)
    assert not Operation.objects.exclude(status__in=(State.SKIPPED, State.STALE)).exists()
    assert again.figures["asked"] == 0


def test_a_pass_of_limited_time_asks_so_many_questions_and_says_what_waits(within: Scope) -> None:
    """A worker's task is ended after a while: what it did not ask is asked by the next pass, and is not nothing."""
    for at in range(80):
        tell(f"In week {at} Ana {WORDS} again.", within=within, root=f"doc://{at}", session=f"s{at}")
    completer = ScriptedCompleter(by_purpose={"promote": {"facts": []}})
    values = {"pattern": within.name, "by": "test", "trigger": "schedule", "profile": HASHING, "completer": completer}
    first = planner.plan(scopes=[within], most_asked=2, **values)  # type: ignore[arg-type]
    assert len(completer.requests) == 2
    assert "wait for the next pass" in first.failures[0]["error"]
    assert first.state == Plan.State.COMPLETE
    planner.plan(scopes=[within], **values)  # type: ignore[arg-type]
    assert len(completer.requests) > 2
    assert len({request.text for request in completer.requests}) == len(completer.requests), "none was asked twice"
