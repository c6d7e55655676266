"""Ways in which the engine was broken once: each a small story that must not happen again."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction

from consolidation import invariants, review, runner
from consolidation.models import Draft, Operation, Plan, Policy
from consolidation.operations import Approval, Kind, State
from consolidation.runner import Outcome
from observations import store
from observations.llm import Request
from observations.models import Episode, Observation, Scope
from observations.records import StatedBy, Status
from tests.acceptance import engine
from tests.acceptance.engine import WORDS, compacting, echoing, fact, items, plan, promoting, weeks
from tests.building import observe, scope, tell
from tests.conftest import superuser
from tests.scripted import ScriptedCompleter

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def within() -> Scope:
    return scope("team-a/ana")


def open_items(kind: Kind) -> list[Operation]:
    return list(Operation.objects.filter(kind=kind, status__in=(State.PLANNED, State.NEEDS_HUMAN, State.APPROVED)))


def latest(kind: Kind) -> Operation:
    return Operation.objects.filter(kind=kind).select_related("scope").order_by("-pk")[0]


def labels_of(request: Request) -> list[dict[str, Any]]:
    return [json.loads(line) for line in request.text.splitlines() if line.startswith('{"label"')]


def decide(within: Scope, subject: str, predicate: str, *, many: bool = False) -> Operation:
    """A contradiction of this subject, planned, decided and applied."""
    rows = [
        observe(f"{subject} {predicate} the {what} on weekdays", within=within, key=(subject, predicate, what))
        for what in ("tram", "bike")
    ]
    plan(within, completer=ScriptedCompleter(by_purpose={"promote": {"facts": []}}, model="another"))
    [operation] = Operation.objects.filter(kind=Kind.SUPERSEDE, sources__observation=rows[0]).select_related("scope")
    chosen = review.Decision(many_valued=True) if many else review.Decision(keep=rows[0].pk)
    review.approve(operation=operation, by="ann", decision=chosen, reason="I asked")
    assert runner.apply(operation=operation, by="ann").outcome is Outcome.APPLIED
    return operation


# --- promotion -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", ["policy", "decision"])
def test_a_fact_with_another_value_than_the_one_memory_holds_waits_for_a_person(within: Scope, known: str) -> None:
    """DESIGN 4: contradictions are a person's; of a predicate with one value, no second is promoted unseen."""
    weeks(within)
    observe("Ana takes the bus to Linz", within=within, key=("Ana", "takes", "the bus"), stated_by=StatedBy.USER)
    if known == "policy":
        Policy.objects.create(pattern=within.name, body={"single_valued": ["takes"]})
    else:
        decide(within, "Bo", "takes")
    plan(within, completer=promoting())
    assert latest(Kind.PROMOTE).approval == Approval.NEEDS_HUMAN


def test_a_fact_that_was_promoted_beside_another_value_is_asked_about_next(within: Scope) -> None:
    """C7, R71: two current truths become a question."""
    weeks(within)
    observe("Ana takes the bus to Linz", within=within, key=("Ana", "takes", "the bus"), stated_by=StatedBy.USER)
    completer = promoting()
    plan(within, completer=completer)
    operation = latest(Kind.PROMOTE)
    if operation.approval == Approval.NEEDS_HUMAN:
        review.approve(operation=operation, by="ann")
    engine.applied(operation)
    plan(within, completer=completer)
    assert len(open_items(Kind.SUPERSEDE)) == 1


def test_an_approved_fact_is_not_promoted_a_second_time_with_a_further_witness(within: Scope) -> None:
    """DESIGN 4: one claim, one appliable operation, also while an approval waits."""
    weeks(within, roots=("doc://1", "doc://2"))
    plan(within, completer=promoting((0, 1)))
    review.approve(operation=latest(Kind.PROMOTE), by="ann")
    weeks(within, roots=("doc://3",), first=3)
    made = plan(within, completer=promoting((0, 1, 2)))
    engine.apply_all(made)
    assert Observation.objects.filter(scope=within, status=Status.ACTIVE).count() == 1


def test_quotes_that_have_nothing_to_do_with_a_fact_do_not_promote_it_by_themselves(within: Scope) -> None:
    """F3: three witnesses that each say the fact, not three that say anything."""
    weeks(within)
    tell("The weather was fine in Linz all day.", within=within, root="doc://8")
    tell("The soup tasted of paprika and salt.", within=within, root="doc://9")
    quotes = [
        {"episode": 0, "words": "took the night train to Graz"},
        {"episode": 3, "words": "The weather was fine"},
        {"episode": 4, "words": "The soup tasted of paprika"},
    ]
    said = {**fact([0, 3, 4]), "quotes": quotes}
    plan(within, completer=ScriptedCompleter(by_purpose={"promote": {"facts": [said]}}))
    assert latest(Kind.PROMOTE).approval != Approval.AUTO


def test_a_fact_that_denies_what_its_quotes_say_is_not_promoted_by_itself(within: Scope) -> None:
    """C7: 'never takes' is not what three episodes of taking it say."""
    weeks(within)
    plan(within, completer=promoting(text="Ana never takes the night train to Graz"))
    assert not Operation.objects.filter(kind=Kind.PROMOTE, approval=Approval.AUTO).exists()


def test_spellings_of_one_address_are_one_witness(within: Scope) -> None:
    """C8, R95: a fragment, the case of a host and a slash at the end make no second source."""
    weeks(within, roots=("https://example.org/page", "https://EXAMPLE.org/page#part-2", "http://example.org/page/"))
    plan(within, completer=promoting())
    assert not Operation.objects.filter(kind=Kind.PROMOTE, approval=Approval.AUTO).exists()


def test_a_key_that_is_another_claim_than_its_text_is_not_promoted_unseen(within: Scope) -> None:
    """R42: a key decides what a row is merged with and what it contradicts, so it has to be of the text."""
    weeks(within)
    plan(within, completer=promoting(key=("user", "is allergic to", "Graz")))
    operation = latest(Kind.PROMOTE)
    assert operation.approval != Approval.AUTO or not operation.claim_predicate


def test_an_episode_that_is_forgotten_while_the_model_reads_it_leaves_nothing_behind(within: Scope) -> None:
    """J2, I19: a late answer about an erased episode is discarded, and the plan is made all the same."""
    turns = weeks(within)
    other = scope("team-b/bo")
    weeks(other, roots=("x://1", "x://2", "x://3"))

    def said(request: Request) -> Any:
        if request.scope_id == within.pk:
            forget(turns[0])
        return {"facts": [fact((0, 1, 2))]}

    made = plan(within, other, completer=ScriptedCompleter(by_purpose={"promote": said}))
    assert not Draft.objects.filter(scope=within).exclude(reply="").exists()
    assert not Operation.objects.filter(scope=within).exclude(text="").exists()
    assert Operation.objects.filter(scope=other, kind=Kind.PROMOTE).exists()
    assert made.pk


def forget(turn: Episode) -> None:
    """Erased by another connection while the planner waits for its model."""
    with superuser() as admin:
        admin.execute("SET session_replication_role = replica")  # no request can erase an episode yet
        admin.execute(
            "UPDATE observations_episode SET status = 'erased', text = NULL, content_hash = '', version = version + 1"
            " WHERE id = %s",
            [turn.pk],
        )
        admin.execute("SET session_replication_role = origin")
        admin.execute(
            "INSERT INTO observations_tombstone (scope_id, episode_id, erased_at, erased_by, reason, request,"
            " fingerprint) VALUES (%s, %s, clock_timestamp(), 'ann', 'forget', 'forget:1', '')",
            [turn.scope_id, turn.pk],
        )


def test_a_model_door_that_breaks_costs_one_step_of_one_scope(within: Scope) -> None:
    """C12 and the rule over all cases: shown as failed, and everything else is planned."""
    weeks(within)
    pair = engine.alike(within)
    other = scope("team-b/bo")
    weeks(other, roots=("x://1", "x://2", "x://3"))

    class Broken(ScriptedCompleter):
        def complete(self, request: Request) -> Any:
            if request.scope_id == within.pk:
                raise ZeroDivisionError("a secret of Ana")
            return super().complete(request)

    made = plan(within, other, completer=Broken(by_purpose={"promote": {"facts": [fact((0, 1, 2))]}}))
    assert made.state == Plan.State.PARTIAL
    assert [(fault["scope"], fault["failed"]) for fault in made.failures] == [(within.name, True)]
    assert "secret" not in str(made.failures)
    assert {operation.kind for operation in items(made)} == {Kind.MERGE, Kind.PROMOTE}
    assert pair


def test_a_refused_fact_is_not_promoted_in_other_words(within: Scope) -> None:
    """The memory of decisions: the same claim of the same witnesses is not applied because a model rewords it."""
    weeks(within)
    plan(within, completer=promoting())
    review.reject(operation=latest(Kind.PROMOTE), by="ann", reason="it was for a project, not a habit")
    tell("The soup tasted of paprika and salt.", within=within, root="doc://9")
    plan(within, completer=promoting(text="Ana usually takes the night train to Graz"))
    assert open_items(Kind.PROMOTE) == []
    weeks(within, roots=("doc://4",), first=4)
    plan(within, completer=promoting((0, 1, 2, 4), text="Ana usually takes the night train to Graz"))
    assert len(open_items(Kind.PROMOTE)) == 1


def test_two_planners_at_once_ask_make_one_item_each_and_lose_nothing(within: Scope) -> None:
    """Two plans of one scope race: no error, no item twice, and either plan can be applied."""
    weeks(within)
    engine.alike(within)
    both = threading.Barrier(2, timeout=20)

    def said(_request: Request) -> Any:
        both.wait()
        return {"facts": [fact((0, 1, 2))]}

    def planned() -> int:
        try:
            return plan(within, completer=ScriptedCompleter(by_purpose={"promote": said})).pk
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        made = [future.result(timeout=60) for future in [pool.submit(planned) for _ in range(2)]]
    assert [one.kind for one in Operation.objects.exclude(status=State.SKIPPED).order_by("kind")] == [
        "merge",
        "promote",
    ]
    for pk in made:
        engine.apply_all(Plan.objects.get(pk=pk))
    assert Observation.objects.active().in_scope(within).count() == 2
    assert invariants.check() == []


# --- drafts ----------------------------------------------------------------------------------------------------------


def test_an_answer_that_was_kept_is_not_overwritten_by_a_worse_one(within: Scope) -> None:
    """Of two planners that ask the same at once, a good answer that was paid for stays."""
    weeks(within)
    inner: list[Plan] = []

    def said(_request: Request) -> Any:
        if not inner:
            inner.append(plan(within, completer=promoting()))
        return "I would rather talk about trains."

    plan(within, completer=ScriptedCompleter(by_purpose={"promote": said}))
    assert Draft.objects.get().answer == "ok"
    assert latest(Kind.PROMOTE).status == State.PLANNED


# --- compaction ------------------------------------------------------------------------------------------------------


@pytest.fixture
def compacts(within: Scope) -> Policy:
    return Policy.objects.create(pattern=within.name, body={"compact": True, "compact_after_days": 1})


def test_a_summary_that_was_taken_back_is_not_planned_again(within: Scope, compacts: Policy) -> None:
    """DESIGN 4, Undo: the next pass does not propose the same again, and does not pay for it either."""
    weeks(within)
    completer = compacting(echoing)
    engine.apply_all(plan(within, completer=completer))
    [operation] = Operation.objects.filter(kind=Kind.COMPACT)
    assert operation.status == State.APPLIED
    assert runner.undo(operation=operation, by="ann").outcome is Outcome.UNDONE
    asked = len(completer.asked_for("compact"))
    for _ in range(2):
        plan(within, completer=completer)
    assert open_items(Kind.COMPACT) == []
    assert len(completer.asked_for("compact")) == asked


def test_a_summary_of_a_users_words_does_not_fade(within: Scope) -> None:
    """R47, I12, C10: a user's word is never archived by decay, nor pruned, whatever it was put into."""
    Policy.objects.create(
        pattern=within.name,
        body={
            "compact": True,
            "compact_after_days": 1,
            "archive": True,
            "archive_below": 0.5,
            "prune": True,
            "retention": [{"stated_by": "agent", "older_than_days": 30}],
        },
    )
    for week in (1, 2, 3):
        tell(f"In week {week} I {WORDS} again.", within=within, session="s1", role="user")
    completer = compacting(echoing)
    plan(within, completer=completer)
    review.approve(operation=latest(Kind.COMPACT), by="ann")
    engine.applied(latest(Kind.COMPACT))
    summary = Observation.objects.get(derivation="compact")
    plan(within, completer=completer)
    taking = Operation.objects.filter(kind__in=(Kind.ARCHIVE, Kind.PRUNE), sources__observation=summary)
    assert not taking.exists()


def losing_a_week(request: Request) -> dict[str, Any]:
    """A summary that leaves out the first week's number: for a person."""
    vague = {"text": f"Ana {WORDS} again in several different weeks.", "episodes": [0]}
    return {"sentences": [vague, *echoing(request)["sentences"][1:]]}


def test_a_late_turn_of_a_session_makes_a_new_question_and_then_none(within: Scope, compacts: Policy) -> None:
    """A group that grew: what waited is stale with a reason, once, and no pass brings it back."""
    weeks(within)
    completer = compacting(losing_a_week)
    plan(within, completer=completer)
    weeks(within, roots=("doc://4",), first=4)
    assert plan(within, completer=completer).figures["stale"] == 1
    again = plan(within, completer=completer)
    assert (again.figures["new"], again.figures["stale"], again.figures["asked"]) == (0, 0, 0)


def test_a_rejected_summary_is_not_asked_about_again_while_its_session_stands(within: Scope, compacts: Policy) -> None:
    """The memory of decisions: a no is final until something changes."""
    weeks(within)
    completer = compacting(losing_a_week)
    plan(within, completer=completer)
    review.reject(operation=latest(Kind.COMPACT), by="ann", reason="it leaves out a week")
    for _ in range(2):
        plan(within, completer=completer)
    assert open_items(Kind.COMPACT) == []


@pytest.mark.parametrize("model", ["same", "another"])
def test_a_summary_taken_back_stays_away_whatever_model_is_asked(within: Scope, compacts: Policy, model: str) -> None:
    """DESIGN 4, Undo: another model's words for the same episodes are not applied by themselves after an undo."""
    weeks(within)
    engine.apply_all(plan(within, completer=compacting(echoing)))
    assert runner.undo(operation=latest(Kind.COMPACT), by="ann").outcome is Outcome.UNDONE
    other = ScriptedCompleter(by_purpose={"promote": {"facts": []}, "compact": echoing}, model=model)
    engine.apply_all(plan(within, completer=other if model == "another" else compacting(echoing)))
    assert Episode.objects.filter(status=Status.ARCHIVED).count() == 0


def test_a_promotion_under_way_is_stale_when_its_episode_is_archived_between(within: Scope) -> None:
    """C11: nothing is written of it, and it says which episode moved."""
    turns = weeks(within)
    plan(within, completer=promoting())
    with transaction.atomic():
        store.lock_scope(scope_id=within.pk, exclusive=True, cause="test")
        store.move_episodes(scope_id=within.pk, ids=[turns[1].pk], to=Status.ARCHIVED)
    result = runner.apply(operation=latest(Kind.PROMOTE), by="ann")
    assert (result.outcome, f"ep_{turns[1].pk} was archived" in result.sentence) == (Outcome.STALE, True)
    assert not Observation.objects.in_scope(within).exists()


# --- policy ----------------------------------------------------------------------------------------------------------


def test_nothing_is_approved_under_another_policy_than_it_was_planned_under(within: Scope) -> None:
    """D1: a prune planned under a retention is not approved once nobody wants it pruned."""
    policy = Policy.objects.create(
        pattern=within.name, body={"prune": True, "retention": [{"stated_by": "tool", "older_than_days": 30}]}
    )
    observe("The build took 52 minutes", within=within, stated_by=StatedBy.TOOL)
    plan(within)
    policy.body = {}
    policy.save()
    with pytest.raises(review.Refused, match="policy changed"):
        review.approve(operation=latest(Kind.PRUNE), by="ann", reason="old")
