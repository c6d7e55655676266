"""The failure modes of REQUIREMENTS B, through planner, runner and database: R41, R48, R55, R56, R88-R90, R93-R95, E2,
E7-E9. Most have their control beside them: the defence is taken out, and what it keeps away happens.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np
import pytest
from django.db import transaction

from consolidation import candidates, compact, invariants, merge, planner, promote, review, rollout, runner
from consolidation.compact import grouping
from consolidation.merge import judging
from consolidation.models import Operation, Plan, PlanItem, Policy
from consolidation.operations import Approval, Kind, State
from consolidation.policy import Policy as Rules
from consolidation.policy import approval_of
from consolidation.rendering import render
from consolidation.runner import Outcome
from observations import store
from observations.embedding import HASHING
from observations.llm import ModelFailed, Unreachable
from observations.models import Episode, Observation, Scope, database_now
from observations.records import StatedBy, Status, Turn
from tests import probing
from tests.acceptance import engine, world
from tests.acceptance.boundaries import run_in_child
from tests.acceptance.engine import offline as offline
from tests.building import first_confirms, observe, propose, scope, seconded, tell
from tests.conftest import superuser
from tests.consolidating import run
from tests.scripted import ScriptedCompleter
from tests.unit import promoting, rows

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("offline")]


@pytest.fixture
def within() -> Scope:
    return scope("team-a/ana")


# --- R41: a block that is no block -----------------------------------------------------------------------------------


def crowd(size: int = 5_000) -> candidates.Columns:
    """Records of one subject, in pairs of near copies: vectors as a model gives them, two and two alike."""
    drawn = np.random.default_rng(3).standard_normal((size // 2, 64)).astype(np.float32)
    vectors = np.repeat(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), 2, axis=0)
    return rows.columns(size, vectors=vectors, keys={"subject": [1] * size})


def test_five_thousand_records_of_one_subject_are_no_block() -> None:
    """R41, R37, R39: no block holds more than 200, every record is in one, near copies meet, and far fewer pairs are
    looked at than there are.
    """
    made = crowd()
    blocks = list(candidates.blocks(keys=made.subject_key, columns=made))
    assert max(map(len, blocks)) <= 200
    assert set(np.concatenate(blocks).tolist()) == set(range(5_000))
    assert sum(len(block) * (len(block) - 1) // 2 for block in blocks) < 5_000 * 4_999 // 2 / 10
    held = [set(block.tolist()) for block in blocks]
    met = sum(any({row, row + 1} <= block for block in held) for row in range(0, 5_000, 2))
    assert met > 0.99 * 2_500


def test_without_the_cap_one_subject_is_one_block_of_all_pairs() -> None:
    """The control of R41: 12.5 million pairs of one subject."""
    made = crowd()
    [block] = candidates.blocks(keys=made.subject_key, columns=made, cap=5_000)
    assert len(block) * (len(block) - 1) // 2 == 12_497_500


# --- R88: a merge that was a contradiction ---------------------------------------------------------------------------

SAME_WORDS = [
    ("She lives there now", "She lives there now"),
    ("Ann lives in the old town since spring", "Ann lives in the old town since the spring"),
]


@pytest.mark.parametrize("texts", SAME_WORDS)
def test_what_the_structured_keys_tell_apart_is_never_merged_for_its_text(
    within: Scope, texts: tuple[str, str]
) -> None:
    """R88: identical words about one subject and predicate, and two objects."""
    said = [
        observe(text, within=within, key=("ann", "lives in", place)) for text, place in zip(texts, ab(), strict=True)
    ]
    made = engine.plan(within)
    assert not [item for item in engine.items(made, Kind.MERGE) if item.status != State.SKIPPED]
    [question] = engine.items(made, Kind.SUPERSEDE)
    assert question.status == State.NEEDS_HUMAN
    assert engine.apply_all(made) == []
    assert set(Observation.objects.active()) == set(said)


def ab() -> tuple[str, str]:
    return "Oslo", "Bergen"


def test_a_rule_that_compares_texts_alone_would_merge_two_cities(
    within: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of R88: without the keys the same two rows are one claim, and one of the cities is gone."""
    for place in ab():
        observe("She lives there now", within=within, key=("ann", "lives in", place))
    monkeypatch.setattr(judging, "contradicts", lambda *_: False)
    monkeypatch.setattr(judging, "_key_failures", lambda *_: [])
    monkeypatch.setattr(candidates, "contradicting", lambda columns: columns.ids[:0])
    monkeypatch.setattr(merge, "several", lambda _rows: {})
    made = engine.plan(within)
    assert engine.counted(engine.apply_all(made)) == {"applied": 1}
    assert "I16" in {violation.id for violation in invariants.check()}


def test_a_row_without_a_key_bridges_no_contradiction(within: Scope) -> None:
    """E2, R88: near both of them, in their words; whatever is applied, both objects stay."""
    said = engine.contradiction(within)
    observe("Ann lives in the old town since spring", within=within)
    engine.apply_all(engine.plan(within))
    assert set(said) <= set(Observation.objects.active())


# --- R89: a compaction that is a deletion ----------------------------------------------------------------------------


@pytest.fixture
def compacts(within: Scope) -> Policy:
    return Policy.objects.create(pattern=within.name, body={"compact": True, "compact_after_days": 1})


def test_forty_to_one_is_refused_and_said_aloud(
    within: Scope, compacts: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R89, E8: in the plan with its reason, and at the command with a status that is not 0."""
    told = [tell(f"Ana drew figure {number}.", within=within, session="s") for number in range(40)]
    monkeypatch.setattr(grouping, "_parts", lambda turns, cap: [turns])
    made = engine.plan(within, completer=engine.compacting(engine.echoing))
    assert "over the limit of 10 to 1: 40 episodes" in render(planner.printed(made), explain=True)
    forced = propose(Kind.COMPACT, told, text="Ana drew forty figures.")
    ran = run(f"apply {forced.op_id}")
    assert (ran.status, "over the limit of 10 episodes to one summary" in ran.out) == (1, True)
    assert Episode.objects.filter(status=Status.ACTIVE).count() == 40


def test_without_the_cap_forty_episodes_would_leave_the_reads_for_one_line(
    within: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of R89: with the runner's refusal taken out the same operation is applied."""
    told = [tell(f"Ana drew figure {number}.", within=within, session="s") for number in range(40)]
    forced = propose(Kind.COMPACT, told, text="Ana drew forty figures.")
    monkeypatch.setattr("consolidation.runner.execution.refusal_to_apply", lambda _work, **_: None)
    assert engine.applied(forced).text == "Ana drew forty figures."
    assert not Episode.objects.filter(status=Status.ACTIVE).exists()


# --- R90: across scopes ----------------------------------------------------------------------------------------------


def two_scopes() -> dict[str, Callable[[], object]]:
    """Each rule, given rows of two scopes at once."""
    mine, other = (rows.row(number, "The relay hums", scope=number) for number in (1, 2))
    turns = [promoting.episode(number, "The relay hums", scope=number) for number in (1, 2)]
    link = candidates.Link(1, 2, 0.99, candidates.Met.TEXT)
    policy, now = Rules(), database_now()
    return {
        "merge": lambda: merge.merge_proposals([mine, other], [link], profile=HASHING, policy=policy),
        "judge": lambda: merge.judge(mine, other, link=link, profile=HASHING, policy=policy),
        "cluster": lambda: promote.clusters(episodes=turns, policy=policy, vectors=None, t_near=0.5),
        "question": lambda: promote.Cluster(tuple(turns)),
        "group": lambda: compact.groups(episodes=turns, policy=policy, now=now),
    }


@pytest.mark.parametrize("rule", ["merge", "judge", "cluster", "question", "group"])
def test_no_rule_takes_rows_of_two_scopes(rule: str) -> None:
    """R90: scope first, always: a planner that forgot it would be refused by the rules themselves."""
    with pytest.raises(ValueError, match="scope"):
        two_scopes()[rule]()


def test_a_planner_that_read_two_scopes_as_one_plans_nothing_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """R90: the defence behind the first one: the reading mixes scopes, the rule refuses, the plan has failed."""
    mine, other = scope("team-a/u1"), scope("team-a/u2")
    engine.alike(mine), engine.alike(other)
    read = planner.reading.records

    def of_both(*, scope_id: int, ids: Any, **more: Any) -> Any:
        return [*read(scope_id=mine.pk, ids=every(), **more), *read(scope_id=other.pk, ids=every(), **more)]

    monkeypatch.setattr(planner.reading, "records", of_both)
    made = engine.plan(mine)
    assert (made.state, engine.items(made)) == (Plan.State.FAILED, [])


def every() -> list[int]:
    return list(Observation.objects.values_list("pk", flat=True))


# --- R93: doing it again ---------------------------------------------------------------------------------------------


def test_ten_passes_leave_what_one_pass_leaves(within: Scope) -> None:
    """R93, R57, R99: no double merge, no merge of a merge, no second promotion; the first pass is the last change."""
    engine.alike(within), engine.pairs(within, count=2), engine.weeks(within)
    completer = engine.promoting()
    assert engine.counted(engine.apply_all(engine.plan(within, completer=completer))) == {"applied": 4}
    after = engine.everything()
    for _ in range(9):
        assert engine.apply_all(engine.plan(within, completer=completer)) == []
    assert engine.everything() == after


def test_two_plans_that_hold_one_merge_make_one_row_of_it(within: Scope) -> None:
    """R93: the operation is looked up first; also where the second plan was made before the first was applied."""
    engine.alike(within)
    first, second = engine.plan(within), engine.plan(within)
    assert engine.counted(engine.apply_all(first)) == {"applied": 1}
    assert engine.counted(engine.apply_all(second)) == {"already": 1}
    assert Observation.objects.filter(derivation=Kind.MERGE).count() == 1


@pytest.mark.parametrize("blind", [["refusal_to_apply"], ["refusal_to_apply", "moved_since_review"]])
def test_an_applier_that_forgets_to_look_is_stopped_by_the_database(
    within: Scope, monkeypatch: pytest.MonkeyPatch, blind: list[str]
) -> None:
    """The control of R93: without the look at the operation, and without the one at its sources as well, the second
    application is a failure that says so, and not a second row.
    """
    engine.alike(within)
    [operation] = engine.items(engine.plan(within))
    engine.applied(operation)
    before = engine.everything()
    for name in blind:
        monkeypatch.setattr(f"consolidation.runner.execution.{name}", lambda _work, **_: None)
    assert runner.apply(operation=Operation.objects.get(pk=operation.pk), by="ann").outcome == Outcome.FAILED
    assert engine.everything() == before


# --- R94: the first week ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("hours", "ready"), [(0, False), (7 * 24 - 1, False), (7 * 24 + 1, True)])
def test_nothing_is_applied_unattended_before_a_week_of_plans_that_were_read(
    within: Scope, hours: int, ready: bool
) -> None:
    """R94, R112, R116: seven days, one plan of which a person opened every item, and a suite that measures recall."""
    engine.alike(within)
    Policy.objects.create(pattern="*", body={"unattended": True})
    made = engine.plan(within)
    grow_older(hours)
    if ready:
        with pytest.raises(rollout.NotUnattended, match="opened by a person"):
            rollout.apply_unattended(plan=made)
    PlanItem.objects.update(opened_at=database_now(), opened_by="maya")
    if ready:
        with pytest.raises(rollout.NotUnattended, match="recall: not measured, it has no probe suite"):
            rollout.apply_unattended(plan=made)
        probing.suite(within)
        assert engine.counted(rollout.apply_unattended(plan=made).results) == {"applied": 1}
    else:
        with pytest.raises(rollout.NotUnattended, match="less than 7 days old"):
            rollout.apply_unattended(plan=made)
    assert Operation.objects.filter(status=State.APPLIED).exists() == ready


def grow_older(hours: int) -> None:
    with superuser() as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute("UPDATE consolidation_plan SET created_at = created_at - %s * interval '1 hour'", (hours,))


# --- R95: confidence that grows by repetition ------------------------------------------------------------------------


@pytest.mark.parametrize(("sources", "confidence"), [(["doc://1"] * 5, 0.5), ([f"doc://{n}" for n in range(5)], 0.54)])
def test_confidence_counts_distinct_sources_and_not_records(
    within: Scope, sources: list[str], confidence: float
) -> None:
    """R95, R72, E7: five copies of one document are as sure as one; five documents are surer by 0.04."""
    texts = ("The relay sits in rack 4", "the relay sits in rack 4", "The relay sits in rack 4.")
    for text, uri in zip([*texts, *texts[:2]], sources, strict=True):
        observe(text, within=within, sources=[uri])
    [operation] = engine.items(engine.plan(within))
    assert engine.applied(operation).confidence == pytest.approx(confidence)


def test_a_document_that_is_ingested_again_and_again_never_gets_surer(within: Scope) -> None:
    """R95, R93, C8: merged with what was merged before, one copy after the other, without a person."""
    for uri in ("doc://1", "doc://2", "doc://3"):
        observe("The relay sits in rack 4", within=within, sources=[uri])
    [operation] = engine.items(engine.plan(within))
    assert engine.applied(operation).confidence == pytest.approx(0.52)
    for _ in range(6):
        observe("the relay sits in rack 4.", within=within, sources=["doc://1"])
        [operation] = engine.items(engine.plan(within))
        assert engine.applied(operation).confidence == pytest.approx(0.52)


def test_twenty_copies_of_a_rumour_stay_below_the_users_own_word(within: Scope) -> None:
    """E7, R72: at 0.9 each they stay at 0.9, and a user's own statement is no automatic part of it."""
    for number in range(20):
        text = "The office closes at noon" + ("." if number % 2 else "")
        observe(text, within=within, sources=["rumour://1"], confidence=0.9)
    user = observe(
        "The office closes at noon", within=within, stated_by=StatedBy.USER, confidence=0.95, sources=["user://1"]
    )
    made = engine.plan(within)
    assert engine.counted(engine.apply_all(made)) == {"applied": 1}
    [derived] = Observation.objects.filter(derivation=Kind.MERGE)
    assert derived.confidence == pytest.approx(0.9)
    assert Observation.objects.get(pk=user.pk).status == Status.ACTIVE


# --- R48: what is automatic can be taken back ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in Kind if approval_of(kind) is Approval.AUTO])
def test_what_is_automatic_is_reversible(kind: Kind) -> None:
    """R48, R62: applied and undone, everything that reads see is what it was."""
    assert kind in runner.REVERSIBLE
    pk = world.KINDS[kind.value]()
    before = reads()
    assert world.apply(pk).outcome == Outcome.APPLIED
    assert reads() != before
    assert world.undo(pk).outcome == Outcome.UNDONE
    assert reads() == before


def reads() -> list[object]:
    """What stands in the reads: observations and episodes, whole but for their versions."""
    kept = Observation.objects.active().order_by("pk")
    turns = Episode.objects.filter(status=Status.ACTIVE).order_by("pk")
    return [{k: v for k, v in row.items() if k != "version"} for row in [*kept.values(), *turns.values()]]


def test_what_cannot_be_taken_back_is_never_automatic() -> None:
    """R48, R47: pruning ends in an erasure, and forgetting is one."""
    automatic = {kind for kind in Kind if approval_of(kind) is Approval.AUTO}
    assert automatic == {Kind.MERGE, Kind.PROMOTE, Kind.COMPACT, Kind.ARCHIVE}
    assert automatic <= set(runner.REVERSIBLE)


# --- R55 and R56: killed, full, too slow -----------------------------------------------------------------------------


def test_killed_after_40_of_100_operations_40_are_done_and_60_untouched(within: Scope) -> None:
    """R56, R55: one transaction an operation; killed with -9 in the middle of the 41st."""
    engine.pairs(within, count=100)
    made = engine.plan(within)
    assert len(engine.items(made)) == 100

    def die_at_41() -> None:
        calls, combine = count(1), merge.combine

        def combine_or_die(*args: Any, **more: Any) -> Any:
            if next(calls) == 41:
                os.kill(os.getpid(), signal.SIGKILL)
            return combine(*args, **more)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(merge, "combine", combine_or_die)
            first_confirms(made)
            rollout.apply_plan(plan=made, by="ann", confirmed=True)

    assert run_in_child(die_at_41).code == -signal.SIGKILL
    statuses = [item.status for item in engine.items(made)]
    assert statuses == [State.APPLIED] * 40 + [State.PLANNED] * 60
    untouched = [source.row_id for item in engine.items(made)[40:] for source in item.sources.all()]
    assert set(Observation.objects.filter(pk__in=untouched).values_list("status", "version")) == {(Status.ACTIVE, 1)}
    assert Observation.objects.filter(derivation=Kind.MERGE).count() == 40
    assert invariants.check() == []
    assert engine.counted(engine.apply_all(made)) == {"already": 40, "applied": 60}


@contextmanager
def full_disk(table: str) -> Iterator[None]:
    """Every insert into a table fails as PostgreSQL fails when its disk is full."""
    with superuser() as admin:
        admin.execute(
            "CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION"
            " 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$"
        )
        admin.execute(f"CREATE TRIGGER no_space BEFORE INSERT ON {table} EXECUTE FUNCTION no_space()")
        try:
            yield
        finally:
            admin.execute("DROP FUNCTION no_space CASCADE")


@pytest.mark.parametrize(
    "table", ["observations_observation", "observations_lineage", "consolidation_consumption", "observations_event"]
)
def test_a_full_disk_leaves_every_operation_whole_and_the_next_run_finishes(within: Scope, table: str) -> None:
    """R55: wherever the space ends; it is said, nothing of the operation is written, the rest is left for later."""
    engine.pairs(within, count=3)
    made = engine.plan(within)
    before = engine.everything()
    with full_disk(table):
        results = engine.apply_all(made)
    assert engine.counted(results) == {"failed": 1}
    assert "DiskFull" in results[0].sentence
    assert engine.everything() == before
    assert engine.counted(engine.apply_all(made)) == {"applied": 3}
    assert invariants.check() == []


@pytest.mark.parametrize("failure", [Unreachable("The model did not answer in 60 seconds.")])
def test_a_model_that_does_not_answer_in_time_fails_its_step_only_and_the_next_pass_does_it(
    within: Scope, compacts: Policy, failure: ModelFailed
) -> None:
    """R55, E9: shown as failed and not as nothing to do; the rest is planned; the next pass asks again."""
    engine.alike(within), engine.weeks(within, roots=["doc://1"] * 3)
    made = engine.plan(within, completer=engine.compacting(failure))
    assert made.state == Plan.State.PARTIAL
    shown = render(planner.printed(made))
    assert "did not answer in 60 seconds" in shown
    assert "nothing to do" not in shown
    assert proposed(made) == {Kind.MERGE}
    later = engine.plan(within, completer=engine.compacting(engine.echoing))
    assert proposed(later) == {Kind.MERGE, Kind.COMPACT}
    assert later.state == Plan.State.COMPLETE


def proposed(made: Plan) -> set[str]:
    return {item.kind for item in engine.items(made) if item.status != State.SKIPPED}


# --- E8: every kind can be carried out -------------------------------------------------------------------------------


def test_every_kind_that_is_planned_can_be_applied_and_every_skip_has_its_reason() -> None:
    """E8, R25, R27, R61, R62: a contradiction and a prune once a person decided; decay by its own planner."""
    engine.a_store_for_every_kind()
    made = engine.plan(completer=engine.whole_model())
    for item in engine.items(made):
        if item.status == State.SKIPPED:
            assert item.skipped_reason
        elif item.status == State.NEEDS_HUMAN:
            keep = item.keeper_id or item.sources.order_by("position")[0].row_id
            chosen = review.Decision(keep=keep) if item.kind == Kind.SUPERSEDE else review.Decision()
            review.approve(operation=item, by="ines", decision=chosen, reason="read it")
            seconded(item)
    results = engine.apply_all(made)
    assert set(engine.counted(results)) == {"applied"}
    assert {result.kind for result in results} == {"merge", "promote", "compact", "supersede", "archive", "prune"}
    assert invariants.check() == []


@pytest.mark.parametrize(
    "reply",
    ["nothing in them agrees", '{"facts": [{"text": 7}]}', '{"facts": "none"}', "", '{"facts": [true, null, "x"]}'],
)
def test_no_answer_of_a_model_crashes_a_pass_or_counts_as_support(within: Scope, reply: str) -> None:
    """E9: what cannot be read is a failed step, what is no fact is no fact; neither writes anything."""
    engine.weeks(within)
    with transaction.atomic():
        store.add_episodes(scope=within, turns=[Turn(text="Ana bought a scarf.", source_uri="chat://9")])
    made = engine.plan(within, completer=ScriptedCompleter(by_purpose={"promote": reply}))
    unreadable = not reply.startswith('{"facts": [')
    assert (made.state == Plan.State.PARTIAL) == unreadable
    assert engine.apply_all(made) == []
    assert not Observation.objects.exists()
