"""The fixed numbers of REQUIREMENTS B, each asserted as a number: rules only, no database."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from consolidation import candidates, compact, merge, promote, rollout
from consolidation.operations import Approval, Kind, Proposal, State, input_key, operation_id
from consolidation.policy import RANGES, Policy, PolicyError, Trigger
from consolidation.rendering import SMALL_STORE
from observations.embedding import HASHING, Profile
from observations.records import MemoryKind, Record
from tests.unit.promoting import DEFAULT, cluster, episode, planned, tea, tea_fact
from tests.unit.rows import PROFILE, all_links, columns, row

ROOT = Path(__file__).resolve().parents[2]
OPERATIONS = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
PLANT = ("office plant", "watered on", "monday")
HOMES = [row(number, f"Ann lives in {place}", ("ann", "lives in", place)) for number, place in enumerate("abc", 1)]


def test_a_store_is_small_below_two_thousand_records() -> None:
    """R31 (N): a few thousand; below it the product says to measure first."""
    assert SMALL_STORE == 2_000


def test_the_default_merges_and_promotes_and_prunes_nothing() -> None:
    """R32 (N): near-identical facts merge, episodes are promoted and never removed, nothing is pruned."""
    assert (DEFAULT.merge, DEFAULT.promote) == (True, True)
    assert (DEFAULT.compact, DEFAULT.archive, DEFAULT.prune, DEFAULT.retention) == (False, False, False, ())
    assert (DEFAULT.mergeable, DEFAULT.untouchable, DEFAULT.keep_days) == (tuple(MemoryKind), (), 0)


def test_the_default_trigger_is_a_person_and_a_cron_line_is_written_down() -> None:
    """R33 (N): schedule, record count or manual; manual unless somebody says otherwise, and a line for cron."""
    assert (DEFAULT.trigger, set(Trigger)) == (Trigger.MANUAL, {"manual", "records", "schedule"})
    assert re.search(r"^ *\d+ \d+ \* \* \* .*manage\.py consolidate plan --explain$", OPERATIONS, re.MULTILINE)


# --- blocks ----------------------------------------------------------------------------------------------------------


def test_rows_meet_by_subject_and_by_each_of_sixteen_minhash_bands() -> None:
    """R38 (N): subject and MinHash band; the bands are sixteen, of four hashes each."""
    assert candidates.BANDS == 16
    assert {"SUBJECT", "BAND"} <= set(candidates.Met.__members__)
    drawn = np.random.default_rng(1).standard_normal((3, 256)).astype(np.float32)
    vectors = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    made = columns(3, vectors=vectors, keys={"subject": [5, 5, 6]})
    [block] = candidates.blocks(keys=made.subject_key, columns=made)
    assert block.tolist() == [0, 1]


def test_episodes_of_one_day_meet_and_a_second_later_is_another_group() -> None:
    """R38 (N): created_at // 86400, for episodes without a session: within 86,400 seconds of the first (DESIGN 8)."""
    assert timedelta(hours=DEFAULT.session_hours).total_seconds() == 86_400
    second = 1 / 86_400
    inside = [episode(number, f"Turn {number}", day=day) for number, day in ((1, 0), (2, 1.0))]
    outside = [*inside, episode(3, "Turn 3", day=1 + second), episode(4, "Turn 4", day=1 + 2 * second)]
    now = inside[0].happened_at + timedelta(days=400)
    groups = compact.groups(episodes=outside, policy=DEFAULT, now=now)
    assert [[turn.id for turn in group.episodes] for group in groups] == [[1, 2], [3, 4]]


def test_of_fifty_thousand_records_a_twelfth_of_the_pairs_is_looked_at() -> None:
    """R37: 1.25 billion pairs; the pass says how many it compared."""
    n = 50_000
    drawn = np.random.default_rng(5).standard_normal((n, 32)).astype(np.float32)
    vectors = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    made = columns(n, vectors=vectors, keys={"subject": (np.arange(n) // 100 + 1).tolist()})
    found = candidates.pairs(made, t_candidate=0.9)
    assert n < found.compared < n * (n - 1) // 2 / 12


def test_blocks_hold_2_to_200_rows() -> None:
    """R39 (N): also by the policy, which may only ask for smaller ones."""
    made = columns(401, keys={"subject": [7] * 200 + [8] * 200 + [9]})
    assert sorted(len(block) for block in candidates.blocks(keys=made.subject_key, columns=made)) == [200, 200]
    whole = columns(201, keys={"subject": [7] * 201})
    assert max(len(block) for block in candidates.blocks(keys=whole.subject_key, columns=whole)) <= 200
    assert (DEFAULT.block_cap, RANGES["block_cap"]) == (200, (2, 200))


# --- merging ---------------------------------------------------------------------------------------------------------


def proposed(rows: list[Record], cosine: float, profile: Profile = PROFILE) -> tuple[Proposal, ...]:
    return merge.merge_proposals(rows, all_links(rows, cosine), profile=profile, policy=DEFAULT)


def test_facts_merge_by_themselves_from_0_95_with_one_key_and_no_shipped_embedder_is_below() -> None:
    """R42, R66 (N): 0.95 and an identical subject, predicate and object."""
    one, other = (row(number, "The plant is watered on Mondays", PLANT) for number in (1, 2))
    other = replace(other, normalised="plant watered mondays")  # another wording, so that the cosine decides
    assert [made.approval for made in proposed([one, other], 0.95)] == [Approval.AUTO]
    assert [made.approval for made in proposed([one, other], 0.94999)] == [Approval.NEEDS_HUMAN]
    another = replace(other, key=("office plant", "watered on", "tuesday"))
    assert not [made for made in proposed([one, another], 0.99) if made.kind is Kind.MERGE and made.appliable]
    shipped = re.findall(r"t_merge=([\d.]+),", (ROOT / "observations/embedding.py").read_text(encoding="utf-8"))
    assert len(shipped) == 2
    assert min(map(float, shipped)) >= 0.95
    assert HASHING.t_merge == 0.95


def test_no_policy_lowers_the_measured_threshold() -> None:
    """R42, R66 (N): whatever somebody writes down."""
    assert Policy(t_merge=0.5).merge_threshold(measured=0.95) == 0.95
    with pytest.raises(PolicyError):
        Policy(t_merge=0.4)


@pytest.mark.parametrize("cosine", [0.85, 0.86, 0.9, 0.949, 0.95, 0.99, 1.0])
def test_one_key_with_two_objects_never_merges_from_0_85_up(cosine: float) -> None:
    """R43, R66 (N): a contradiction at 0.9 and in the band [0.85, 0.95) alike goes to a person."""
    profile = replace(PROFILE, t_candidate=0.85)
    made = proposed(HOMES[:2], cosine, profile)
    merges = [one for one in made if one.kind is Kind.MERGE]
    assert [(one.state, one.approval) for one in merges] == [(State.SKIPPED, Approval.NEVER)]
    assert "contradiction" in merges[0].skipped_reason
    assert [one.state for one in made if one.kind is Kind.SUPERSEDE] == [State.NEEDS_HUMAN]


def test_confidence_rises_by_0_01_a_witness_to_0_99_at_most() -> None:
    """R72 (N): min(.99, best + .01 (n - 1))."""
    for n, expected in ((1, 0.5), (2, 0.51), (10, 0.59), (60, 0.99)):
        rows = [row(number, "x", roots=[f"root {number}"]) for number in range(1, n + 1)]
        assert merge.combine(rows, keeper=1).claim.confidence == pytest.approx(expected)
    assert (DEFAULT.confidence_cap, RANGES["confidence_cap"]) == (0.99, (0.0, 0.99))


@pytest.mark.parametrize("again", ["a", "b"])
def test_a_merge_of_a_merge_counts_each_witness_once(again: str) -> None:
    """R72, R93, R95: what a merged row was raised by already does not raise it again; a new witness does by 0.01."""
    first = merge.combine([row(1, "x", roots=["a"]), row(2, "x", roots=["b"])], keeper=1).claim
    assert first.confidence == pytest.approx(0.51)
    merged = row(3, "x", confidence=first.confidence, roots=["a", "b"], chain=1)
    copy = merge.combine([merged, row(4, "x", roots=[again])], keeper=3).claim
    assert copy.confidence == pytest.approx(0.51)
    assert merge.combine([merged, row(4, "x", roots=["c"])], keeper=3).claim.confidence == pytest.approx(0.52)


# --- promoting and compacting ----------------------------------------------------------------------------------------


def test_two_supporters_are_the_least_and_three_need_nobody() -> None:
    """R45, R75 (N): 2 wait for a person, 3 are automatic, 1 is skipped."""
    assert (DEFAULT.min_support, DEFAULT.auto_support) == (2, 3)
    made = {n: planned(tea(), tea_fact(*range(n)))[0] for n in (1, 2, 3, 4)}
    assert {n: (one.state, one.approval) for n, one in made.items()} == {
        1: (State.SKIPPED, Approval.NEVER),
        2: (State.NEEDS_HUMAN, Approval.NEEDS_HUMAN),
        3: (State.PLANNED, Approval.AUTO),
        4: (State.PLANNED, Approval.AUTO),
    }
    assert RANGES["min_support"][0] == 2


def test_what_is_promoted_has_confidence_0_6_whatever_a_policy_says() -> None:
    """R75 (N): the constant, the default and the end of the range."""
    assert (promote.CEILING, DEFAULT.promoted_confidence, RANGES["promoted_confidence"]) == (0.6, 0.6, (0.0, 0.6))
    assert planned(tea(), tea_fact(0, 1, 2))[0].product["confidence"] == 0.6


def test_a_summary_stands_for_ten_episodes_at_most() -> None:
    """R81 (N): max_compression 10.0, in the default and at the end of the range."""
    assert (DEFAULT.max_compression, RANGES["max_compression"]) == (10.0, (1.0, 10.0))
    told = tuple(episode(number, f"Turn {number}", session="s") for number in range(1, 12))
    ten, eleven = (compact.Group(1, "s", told[:size]) for size in (10, 11))
    assert not compact.over_limit(group=ten, policy=DEFAULT)
    assert compact.over_limit(group=eleven, policy=DEFAULT)


# --- identity and people ---------------------------------------------------------------------------------------------


def test_the_sources_id_is_eight_bytes_of_blake2b_in_hex() -> None:
    """R59 (N): "op_" and 16 hex digits; the product's own id covers scope and product too, in 32 (settled in D)."""
    assert re.fullmatch(r"op_[0-9a-f]{16}", input_key(kind=Kind.MERGE, sources=["b", "a"]))
    assert input_key(kind=Kind.MERGE, sources=["b", "a"]) == input_key(kind=Kind.MERGE, sources=["a", "b"])
    assert re.fullmatch(r"op_[0-9a-f]{32}", operation_id(parts=["merge"]))


def test_a_schedule_applies_nothing_in_the_first_seven_days_and_by_default_never() -> None:
    """R94 (N): at least a week of plans that people read."""
    assert (rollout.TRIAL_DAYS, DEFAULT.unattended) == (7, False)


def test_one_witness_however_often_is_below_the_least_support() -> None:
    """R95, R103: distinct sources are counted, not records."""
    copies = cluster(*(episode(number, "I drink green tea daily", root="doc", speaker="Ann") for number in range(1, 8)))
    said = {"text": "Ann drinks green tea daily", "subject": "", "predicate": "", "object": ""}
    quotes = [{"episode": label, "words": "I drink green tea daily"} for label in range(7)]
    [made] = planned(copies, {**said, "supported_by": list(range(7)), "quotes": quotes})
    assert (made.state, made.skipped_reason) == (State.SKIPPED, "1 supporting, 2 needed")
