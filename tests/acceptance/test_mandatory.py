"""The thirteen tests that the mission names (R96-R108), each under its own sentence: through the real planner and the
real runner on PostgreSQL, with a scripted model, offline.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from django.db.models import F

from consolidation import candidates, invariants, promote, rollout, runner
from consolidation.compact import grouping
from consolidation.models import Operation, OperationSource, Plan, Policy
from consolidation.operations import Approval, Kind, State
from consolidation.runner import Outcome
from observations.models import Embedding, Episode, Evidence, Lineage, Observation, Scope
from observations.records import EpisodeRecord, Status
from tests.acceptance import engine
from tests.acceptance.boundaries import run_in_child
from tests.acceptance.engine import offline as offline
from tests.building import observe, propose, scope, tell
from tests.offline import Offline

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("offline")]


@pytest.fixture
def within() -> Scope:
    return scope("team-a/ana")


def only(made: Plan, kind: Kind) -> Operation:
    [operation] = engine.items(made, kind)
    return operation


# --- merging --------------------------------------------------------------------------------------------------------


def test_merging_preserves_every_source_id(within: Scope) -> None:
    """R96: in the lineage, and with the evidence of each; also when what is merged was merged before.

    Decision 0014: of a row that was merged with repeats of itself, the lineage names what it came from; its own id is
    the operation's, and it names its successor.
    """
    rows = engine.alike(within)
    first = engine.applied(only(engine.plan(within), Kind.MERGE))
    [fourth] = engine.alike(within, texts=["the relay sits in rack 4"])
    again = only(engine.plan(within), Kind.MERGE)
    second = engine.applied(again)
    said = {row.pk for row in rows}
    assert {derived.pk: set(edges(derived)) for derived in (first, second)} == {
        first.pk: said,
        second.pk: {*said, fourth.pk},
    }
    assert set(again.sources.values_list("observation_id", flat=True)) == {first.pk, fourth.pk}
    first.refresh_from_db()
    assert (first.status, first.superseded_by_id) == (Status.ARCHIVED, second.pk)
    cited = {ref.source_uri for row in [*rows, fourth] for ref in row.evidence.all()}
    assert set(Evidence.objects.filter(observation=second).values_list("source_uri", flat=True)) == cited
    assert invariants.check() == []


def edges(derived: Observation) -> Iterable[int | None]:
    return Lineage.objects.filter(derived=derived).values_list("source_observation_id", flat=True)


def test_a_contradiction_is_skipped_and_its_reason_contains_contradiction(within: Scope) -> None:
    """R97: however alike the words are; nothing of it is applied, and both rows stay."""
    rows = engine.contradiction(within)
    made = engine.plan(within)
    skipped = only(made, Kind.MERGE)
    assert (skipped.status, skipped.approval) == (State.SKIPPED, Approval.NEVER)
    assert "contradiction" in skipped.skipped_reason
    assert engine.apply_all(made) == []
    assert set(Observation.objects.active()) == set(rows)


def test_a_dry_run_leaves_the_store_snapshot_unchanged() -> None:
    """R98: a plan of every kind of operation; each table of memory, its counters and its times are as they were."""
    engine.a_store_for_every_kind()
    before = engine.everything()
    made = engine.plan(completer=engine.whole_model())
    kinds = {operation.kind for operation in engine.items(made) if operation.status != State.SKIPPED}
    assert {Kind.MERGE, Kind.PROMOTE, Kind.COMPACT, Kind.SUPERSEDE, Kind.ARCHIVE, Kind.PRUNE} == kinds
    assert engine.everything() == before


def test_the_snapshot_would_show_a_plan_that_is_applied() -> None:
    """The control of R98: the same digest after an application is another one."""
    engine.a_store_for_every_kind()
    before = engine.everything()
    assert engine.counted(engine.apply_all(engine.plan(completer=engine.whole_model())))["applied"] > 3
    changed = {table for table, digest in engine.everything().items() if before[table] != digest}
    assert {"observations_observation", "observations_lineage", "observations_episode"} <= changed


def test_a_second_apply_applies_0_and_skips_what_the_first_applied(within: Scope) -> None:
    """R99: of the same plan, and of a plan made again."""
    engine.pairs(within, count=3), engine.weeks(within)
    completer = engine.promoting()
    made = engine.plan(within, completer=completer)
    first = engine.apply_all(made)
    assert engine.counted(first) == {"applied": 4}
    second = engine.apply_all(made)
    assert engine.counted(second) == {"already": 4}
    assert [result.operation for result in second] == [result.operation for result in first]
    rows = Observation.objects.count()
    assert engine.apply_all(engine.plan(within, completer=completer)) == []
    assert Observation.objects.count() == rows


# --- crashing -------------------------------------------------------------------------------------------------------


def test_a_crash_after_2_operations_leaves_the_store_whole_resumes_and_the_last_operation_is_done(
    within: Scope,
) -> None:
    """R100, R56, R82, R111: a real process, killed with -9 between the second and the third operation of a plan."""
    engine.pairs(within, count=5)
    made = engine.plan(within)
    done: list[str] = []

    def die_after_two(result: runner.Result) -> None:
        done.append(result.operation)
        if len(done) == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    death = run_in_child(lambda: rollout.apply_plan(plan=made, by="ann", progress=die_after_two))
    assert death.code == -signal.SIGKILL
    assert states(made) == [State.APPLIED] * 2 + [State.PLANNED] * 3
    assert invariants.check() == []
    resumed = engine.apply_all(made)
    assert [result.outcome for result in resumed] == [Outcome.ALREADY] * 2 + [Outcome.APPLIED] * 3
    last = engine.items(made)[-1]
    assert (last.status, set(edges(engine.product(last)))) == (State.APPLIED, {s.row_id for s in last.sources.all()})
    assert (invariants.check(), Observation.objects.active().count()) == ([], 5)


def states(made: Plan) -> list[str]:
    return [operation.status for operation in engine.items(made)]


# --- what is kept, and taken back -----------------------------------------------------------------------------------


def test_the_sources_of_a_merge_are_archived_and_still_present(within: Scope) -> None:
    """R101: out of the reads, with their own text, and leading to what they became."""
    rows = engine.alike(within)
    derived = engine.applied(only(engine.plan(within), Kind.MERGE))
    assert set(Observation.objects.active()) == {derived}
    for row in rows:
        kept = Observation.objects.get(pk=row.pk)
        assert (kept.status, kept.text, kept.superseded_by_id) == (Status.ARCHIVED, row.text, derived.pk)


def test_undo_makes_the_sources_active(within: Scope) -> None:
    """R102: and the derived row leaves the reads."""
    rows = engine.alike(within)
    merge = only(engine.plan(within), Kind.MERGE)
    derived = engine.applied(merge)
    assert runner.undo(operation=Operation.objects.get(pk=merge.pk), by="ann").outcome == Outcome.UNDONE
    assert set(Observation.objects.active()) == set(rows)
    assert Observation.objects.get(pk=derived.pk).status == Status.RETRACTED


# --- promoting ------------------------------------------------------------------------------------------------------


def test_a_promotion_with_1_supporter_is_skipped_and_says_1_supporting(within: Scope) -> None:
    """R103: applying the plan writes nothing."""
    engine.weeks(within)
    made = engine.plan(within, completer=engine.promoting([1]))
    skipped = only(made, Kind.PROMOTE)
    assert skipped.status == State.SKIPPED
    assert "1 supporting" in skipped.skipped_reason
    assert engine.apply_all(made) == []
    assert not Observation.objects.exists()


@pytest.mark.parametrize("roots", [3, 4, 12])
def test_a_promoted_confidence_is_at_most_0_6(within: Scope, roots: int) -> None:
    """R104: however many say it."""
    engine.weeks(within, roots=[f"doc://{number}" for number in range(roots)])
    made = engine.plan(within, completer=engine.promoting(range(roots)))
    assert 0 < engine.applied(only(made, Kind.PROMOTE)).confidence <= 0.6


def test_a_promotion_keeps_all_episodes(within: Scope) -> None:
    """R105: active, at their version, with their words."""
    told = engine.weeks(within)
    before = list(Episode.objects.order_by("pk").values("pk", "text", "status", "version", "content_hash"))
    fact = engine.applied(only(engine.plan(within, completer=engine.promoting()), Kind.PROMOTE))
    assert list(Episode.objects.order_by("pk").values("pk", "text", "status", "version", "content_hash")) == before
    named = Lineage.objects.filter(derived=fact).values_list("source_episode_id", flat=True)
    assert set(named) == {turn.pk for turn in told}


# --- scopes, limits and dates ---------------------------------------------------------------------------------------


def test_no_block_crosses_scopes(monkeypatch: pytest.MonkeyPatch) -> None:
    """R106: what is blocked, clustered and grouped is looked at while it happens, in three scopes that say the same: by
    text, by subject, by sixteen MinHash bands and by neighbours, as in a scope that is too large for an exact pass.
    """
    names = ("team-a/ana", "team-a/ana/second", "team-b/bo")
    for name in names:
        engine.alike(scope(name)), engine.contradiction(scope(name)), engine.weeks(scope(name))
        engine.put_bands(scope(name))
    Policy.objects.create(pattern="*", body={"compact": True, "compact_after_days": 1})
    rows = dict(Observation.objects.values_list("pk", "scope_id"))
    blocks: list[set[int]] = []
    keyed: list[str] = []
    real_blocks, real_clusters, real_groups = candidates.blocks, promote.clusters, grouping.groups

    def blocks_of(*, keys: candidates.Ints, columns: candidates.Columns, cap: int = 200) -> candidates.Blocks:
        found = real_blocks(keys=keys, columns=columns, cap=cap)
        blocks.extend({rows[pk] for pk in columns.ids[block].tolist()} for block in found)
        keyed.extend(["block"] * bool(len(found.sizes)))
        return found

    def clusters_of(**given: object) -> promote.Found:
        found = real_clusters(**given)  # type: ignore[arg-type]
        blocks.extend({turn.scope_id for turn in cluster.episodes} for cluster in found.clusters)
        return found

    def groups_of(**given: object) -> tuple[grouping.Group, ...]:
        found = real_groups(**given)  # type: ignore[arg-type]
        blocks.extend({turn.scope_id for turn in group.episodes} for group in found)
        return found

    monkeypatch.setattr(candidates, "EXACT_ROWS", 1)
    monkeypatch.setattr(candidates, "blocks", blocks_of)
    monkeypatch.setattr(promote, "clusters", clusters_of)
    monkeypatch.setattr("consolidation.compact.groups", groups_of)
    made = engine.plan(completer=engine.whole_model())
    assert len(keyed) == 3 * (1 + 1 + candidates.BANDS), "text, subject and every band made blocks in every scope"
    assert {frozenset(block) for block in blocks} == {frozenset({scope(name).pk}) for name in names}
    assert {operation.kind for operation in engine.items(made)} >= {Kind.MERGE, Kind.PROMOTE, Kind.COMPACT}
    assert not OperationSource.objects.exclude(operation__scope=F("scope")).exists()
    every = OperationSource.objects.select_related("observation", "episode", "operation")
    assert {(row.observation or row.episode).scope_id == row.operation.scope_id for row in every} == {True}  # type: ignore[union-attr]


def forty(within: Scope) -> list[Episode]:
    """One session of forty turns."""
    return [
        tell(f"Ana drew figure {at} of the atlas.", within=within, session="s1", root="doc://1") for at in range(40)
    ]


@pytest.mark.parametrize("cap", [10.0, None], ids=["set to 10", "by default"])
def test_a_40_to_1_compaction_at_cap_10_applies_0(
    within: Scope, monkeypatch: pytest.MonkeyPatch, cap: float | None
) -> None:
    """R107: by the planner where its groups have no limit, and by the runner whoever made the operation."""
    told = forty(within)
    limit = {"max_compression": cap} if cap else {}
    Policy.objects.create(pattern="*", body={"compact": True, "compact_after_days": 1, **limit})
    monkeypatch.setattr(grouping, "_parts", _unlimited)
    made = engine.plan(within, completer=engine.compacting(engine.echoing))
    refused = only(made, Kind.COMPACT)
    assert (refused.n_sources, refused.status) == (40, State.SKIPPED)
    assert refused.skipped_reason == "over the limit of 10 to 1: 40 episodes"
    forced = propose(Kind.COMPACT, told, text="Ana drew forty figures.", plan=made)
    results = engine.apply_all(made)
    assert engine.counted(results) == {"refused": 1}
    assert "over the limit of 10 episodes to one summary" in results[0].sentence
    assert Operation.objects.get(pk=forced.pk).derived_id is None
    assert (Observation.objects.count(), Episode.objects.filter(status=Status.ACTIVE).count()) == (0, 40)


def _unlimited(turns: Sequence[EpisodeRecord], cap: int) -> Iterable[Sequence[EpisodeRecord]]:
    return [turns]


def test_forty_episodes_become_four_summaries_and_not_one(within: Scope) -> None:
    """R107, R89: the planner's own groups keep the limit."""
    forty(within)
    Policy.objects.create(pattern="*", body={"compact": True, "compact_after_days": 1})
    made = engine.plan(within, completer=engine.compacting(engine.echoing))
    assert [operation.n_sources for operation in engine.items(made, Kind.COMPACT)] == [10] * 4


def test_a_merged_created_at_is_the_earliest_2020_of_2020_and_2024(within: Scope) -> None:
    """R108: so that merging does not make old news fresh again."""
    early, late = engine.moments_of(2020, 2024)
    for text, said in (("The relay sits in rack 4", late), ("The relay sits in rack 4.", early)):
        observe(text, within=within, created_at=said)
    derived = engine.applied(only(engine.plan(within), Kind.MERGE))
    assert (derived.created_at, derived.created_at.year) == (early, 2020)
    assert Embedding.objects.filter(observation=derived, active=True).exists()
    assert np.isfinite(derived.confidence)


def test_the_suite_reaches_this_machine_only() -> None:
    """R109: offline: what tries to leave it is refused, and the servers of the suite are still there."""
    with pytest.raises(Offline):
        socket.create_connection(("192.0.2.1", 443), timeout=1)
    assert not Observation.objects.exists()
