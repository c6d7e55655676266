"""What may be proposed for pruning, and what never is."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from consolidation.operations import Approval, Kind, State
from consolidation.policy import Policy, Retention
from consolidation.prune import Spent, prune_proposals
from observations.records import MemoryKind, Record, StatedBy, Status
from tests.unit.rows import day, row

NOW = day("2025-06-01")
PRUNES = Policy(prune=True)
TOOLS = Policy(prune=True, retention=(Retention(stated_by=StatedBy.TOOL, older_than_days=100),))


def aged(number: int, days: int, **more: object) -> Record:
    return row(number, "x", created_at=NOW - timedelta(days=days), **{"stated_by": StatedBy.TOOL, **more})  # type: ignore[arg-type]


def archived(number: int, stated_by: StatedBy = StatedBy.AGENT) -> Record:
    return row(number, "x", status=Status.ARCHIVED, stated_by=stated_by)


def test_without_a_retention_rule_nothing_is_proposed_however_old_and_idle() -> None:
    """C10, R32: an idle account is not an empty account."""
    assert prune_proposals([aged(1, 5_000), aged(2, 5_000)], [], policy=PRUNES, now=NOW) == ()


def test_a_policy_that_does_not_prune_proposes_nothing_whatever_its_rules() -> None:
    """R32: the default prunes nothing, by retention or as used-up sources."""
    spent = Spent(derived=row(9, "x"), sources=(archived(1),), uses=1)
    policy = replace(TOOLS, prune=False)
    assert prune_proposals([aged(2, 5_000)], [spent], policy=policy, now=NOW, decayed=[archived(3)]) == ()
    assert not Policy().prune


def test_a_row_past_its_retention_is_proposed_by_itself_and_waits_for_a_person() -> None:
    """R62: every prune needs a human."""
    made = prune_proposals([aged(2, 101), aged(1, 200), aged(3, 100)], [], policy=TOOLS, now=NOW)
    assert [(p.kind, p.sources, p.approval, p.state) for p in made] == [
        (Kind.PRUNE, (1,), Approval.NEEDS_HUMAN, State.NEEDS_HUMAN),
        (Kind.PRUNE, (2,), Approval.NEEDS_HUMAN, State.NEEDS_HUMAN),
    ]
    assert made[0].reason == "retention: rows stated by tool, older than 100 days"


def test_a_proposal_stays_the_same_as_the_row_gets_older() -> None:
    """A rejected prune must not come back tomorrow under another id or another reason."""
    [today] = prune_proposals([aged(1, 200)], [], policy=TOOLS, now=NOW)
    [later] = prune_proposals([aged(1, 200)], [], policy=TOOLS, now=NOW + timedelta(days=30))
    assert today == later


@pytest.mark.parametrize("stated_by", [origin for origin in StatedBy if origin is not StatedBy.TOOL])
def test_a_rule_reaches_its_own_origin_only(stated_by: StatedBy) -> None:
    assert prune_proposals([aged(1, 900, stated_by=stated_by)], [], policy=TOOLS, now=NOW) == ()


def test_rows_that_were_used_are_left_when_the_rule_says_only_unused() -> None:
    policy = Policy(prune=True, retention=(Retention(StatedBy.TOOL, older_than_days=100, only_unused=True),))
    made = prune_proposals([aged(1, 900, uses=1), aged(2, 900)], [], policy=policy, now=NOW)
    assert [proposal.sources for proposal in made] == [(2,)]


def test_a_rule_of_a_kind_reaches_rows_of_that_kind_only() -> None:
    """DESIGN 4: retention by scope pattern and kind."""
    policy = Policy(prune=True, retention=(Retention(StatedBy.TOOL, older_than_days=100, kind=MemoryKind.NOTE),))
    rows = [replace(aged(number, 900), kind=kind) for number, kind in enumerate(MemoryKind, start=1)]
    [made] = prune_proposals(rows, [], policy=policy, now=NOW)
    assert made.sources == (1 + list(MemoryKind).index(MemoryKind.NOTE),)
    assert made.reason == "retention: rows of kind note stated by tool, older than 100 days"
    assert made.product["kind"] == "note"


@pytest.mark.parametrize("order", [1, -1])
def test_the_shortest_rule_that_a_row_is_past_is_the_reason_for_good(order: int) -> None:
    """Two rules that overlap: growing older does not turn the proposal into another one."""
    rules = (Retention(StatedBy.TOOL, older_than_days=365), Retention(StatedBy.TOOL, 30, kind=MemoryKind.FACT))
    policy = Policy(prune=True, retention=rules[::order])
    [young], [old] = (prune_proposals([aged(1, days)], [], policy=policy, now=NOW) for days in (40, 900))
    assert (young.reason, young.product) == (old.reason, old.product)
    assert "older than 30 days" in young.reason


def test_untouchable_kinds_stay_whatever_the_retention_says() -> None:
    policy = replace(TOOLS, untouchable=(MemoryKind.FACT,))
    rows = [aged(1, 900), replace(aged(2, 900), kind=MemoryKind.NOTE)]
    assert [made.sources for made in prune_proposals(rows, [], policy=policy, now=NOW)] == [(2,)]


def test_a_retention_duty_is_stronger_than_a_retention_rule() -> None:
    """R32: keep_days keeps what older_than_days would give up."""
    made = prune_proposals([aged(1, 199), aged(2, 201)], [], policy=replace(TOOLS, keep_days=200), now=NOW)
    assert [proposal.sources for proposal in made] == [(2,)]


def test_archiving_a_row_does_not_end_its_retention() -> None:
    """A row that decayed out of the reads is still stored, and still past its retention."""
    gone = [aged(1, 900, status=Status.ARCHIVED), aged(2, 900, status=Status.SUPERSEDED), aged(3, 50)]
    [made] = prune_proposals([], [], policy=TOOLS, now=NOW, decayed=gone)
    assert (made.sources, made.state) == ((1,), State.NEEDS_HUMAN)


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.ACTIVE])
def test_retention_looks_at_live_rows_only(status: Status) -> None:
    assert prune_proposals([aged(1, 900, status=status)], [], policy=TOOLS, now=NOW) == ()


def test_a_row_that_carries_a_users_word_is_protected() -> None:
    """R47, I12: a merge for a person may have lowered the origin of the row, not of the word."""
    assert prune_proposals([aged(1, 900)], [], policy=TOOLS, now=NOW, protected=frozenset({1})) == ()


def test_a_row_that_another_operation_takes_waits_and_says_so() -> None:
    [made] = prune_proposals([aged(1, 900)], [], policy=TOOLS, now=NOW, taken=frozenset({1}))
    assert (made.state, made.approval) == (State.SKIPPED, Approval.NEVER)
    assert made.skipped_reason.startswith("waits for the next pass")


def test_archived_sources_go_together_once_their_derived_row_has_been_used_since() -> None:
    """R51, I13."""
    spent = Spent(derived=row(9, "x"), sources=(archived(2), archived(1)), uses=1)
    [made] = prune_proposals([], [spent], policy=PRUNES, now=NOW)
    assert (made.sources, made.state, made.product) == ((1, 2), State.NEEDS_HUMAN, {"derived": 9})


def test_sources_of_a_row_that_was_never_used_are_not_proposed() -> None:
    """C10, I13, E6: what the row inherited does not count."""
    unused = Spent(derived=row(9, "x", uses=50), sources=(archived(1), archived(2)), uses=0)
    assert prune_proposals([], [unused], policy=PRUNES, now=NOW) == ()


@pytest.mark.parametrize("status", [Status.RETRACTED, Status.ARCHIVED, Status.SUPERSEDED, Status.ERASED])
def test_sources_stay_when_their_derived_row_is_no_longer_live(status: Status) -> None:
    spent = Spent(derived=row(9, "x", status=status), sources=(archived(1),), uses=3)
    assert prune_proposals([], [spent], policy=PRUNES, now=NOW) == ()


def test_a_users_own_words_are_never_among_the_sources_to_go() -> None:
    """R47, I12, C10."""
    spent = Spent(
        derived=row(9, "x"), sources=(archived(1, StatedBy.USER), archived(2), archived(3), row(4, "live")), uses=2
    )
    [made] = prune_proposals([], [spent], policy=PRUNES, now=NOW, protected=frozenset({3}))
    assert made.sources == (2,)
    assert made.reason.endswith("2 stated by the user stay")
    only_users = Spent(derived=row(9, "x"), sources=(archived(1, StatedBy.USER),), uses=2)
    assert prune_proposals([], [only_users], policy=PRUNES, now=NOW) == ()


def test_sources_of_untouchable_kinds_stay_and_are_counted() -> None:
    notes = [replace(archived(number), kind=MemoryKind.NOTE) for number in (1, 2)]
    spent = Spent(derived=row(9, "x"), sources=(*notes, archived(3), archived(4, StatedBy.USER)), uses=2)
    policy = replace(PRUNES, untouchable=(MemoryKind.NOTE,))
    [made] = prune_proposals([], [spent], policy=policy, now=NOW)
    assert made.sources == (3,)
    assert made.reason.endswith("; 1 stated by the user stay; 2 of kinds that are never touched stay")


def test_sources_wait_together_while_a_retention_duty_keeps_one_of_them() -> None:
    """A set that grew from day to day would be another operation each day, and a rejection would not hold."""
    sources = (aged(1, 300, status=Status.ARCHIVED), aged(2, 80, status=Status.ARCHIVED))
    spent = Spent(derived=row(9, "x"), sources=sources, uses=1)
    policy = replace(PRUNES, keep_days=100)
    assert prune_proposals([], [spent], policy=policy, now=NOW) == ()
    [made] = prune_proposals([], [spent], policy=policy, now=NOW + timedelta(days=21))
    assert made.sources == (1, 2)
