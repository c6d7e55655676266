"""What may be proposed for archiving, and what stays however faded it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from consolidation.decay import archive_proposals
from consolidation.operations import Approval, Kind, Proposal, State
from consolidation.policy import Policy
from observations.records import MemoryKind, Record, StatedBy, Status
from tests.unit.rows import day, row

NOW = day("2025-06-01")
ARCHIVES = Policy(archive=True)
STATE = MemoryKind.STATE


def aged(
    number: int,
    days: float,
    kind: MemoryKind = STATE,
    *,
    stated_by: StatedBy = StatedBy.AGENT,
    status: Status = Status.ACTIVE,
) -> Record:
    """A row of so many days; a state, whose half-life is a week, unless told otherwise."""
    record = row(number, "x", created_at=NOW - timedelta(days=days), stated_by=stated_by, status=status)
    return replace(record, kind=kind, half_life_days=kind.half_life_days)


def archives(
    *records: Record,
    policy: Policy = ARCHIVES,
    now: datetime = NOW,
    used: Mapping[int, datetime] | None = None,
    protected: frozenset[int] = frozenset(),
    taken: frozenset[int] = frozenset(),
) -> tuple[Proposal, ...]:
    return archive_proposals(records, policy=policy, now=now, used_since=used or {}, protected=protected, taken=taken)


def test_nothing_is_archived_unless_the_policy_says_so() -> None:
    """R32: the default changes rank only."""
    assert archives(aged(1, 5_000), policy=Policy()) == ()


def test_a_faded_row_is_archived_with_the_plan_and_by_itself() -> None:
    """R62: archive is automatic; one proposal a row, in the order of their ids."""
    made = archives(aged(2, 24), aged(1, 400))
    assert [(p.kind, p.sources, p.approval, p.state) for p in made] == [
        (Kind.ARCHIVE, (1,), Approval.AUTO, State.PLANNED),
        (Kind.ARCHIVE, (2,), Approval.AUTO, State.PLANNED),
    ]


@pytest.mark.parametrize(
    ("kind", "stays", "goes"),
    [
        (MemoryKind.NOTE, 9, 10),
        (MemoryKind.STATE, 23, 24),
        (MemoryKind.EPISODE, 99, 100),
        (MemoryKind.FACT, 597, 598),
    ],
)
def test_a_kind_is_archived_after_three_and_a_third_of_its_half_lives(kind: MemoryKind, stays: int, goes: int) -> None:
    assert [p.sources for p in archives(aged(1, stays, kind), aged(2, goes, kind))] == [(2,)]


@pytest.mark.parametrize("kind", [MemoryKind.PREFERENCE, MemoryKind.IDENTITY])
def test_what_has_no_half_life_stays_for_good(kind: MemoryKind) -> None:
    assert archives(aged(1, 30_000, kind)) == ()


def test_the_half_life_is_the_one_that_was_set_at_write() -> None:
    """DESIGN 8: a fact that its writer gave three days fades like a note."""
    assert [p.sources for p in archives(replace(aged(1, 10, MemoryKind.FACT), half_life_days=3))] == [(1,)]
    assert archives(replace(aged(1, 10, MemoryKind.NOTE), half_life_days=180)) == ()


def test_the_policy_says_below_what_strength() -> None:
    assert archives(aged(1, 8), policy=Policy(archive=True, archive_below=0.5)) != ()
    assert archives(aged(1, 30_000), policy=Policy(archive=True, archive_below=0.0)) == ()


def test_a_users_own_word_never_decays_out() -> None:
    """R47, C10: nor a row that carries one under another's name."""
    assert archives(aged(1, 5_000, stated_by=StatedBy.USER)) == ()
    assert archives(aged(1, 5_000), protected=frozenset({1})) == ()


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.ACTIVE])
def test_only_live_rows_are_archived(status: Status) -> None:
    assert archives(aged(1, 5_000, status=status)) == ()


def test_untouchable_kinds_stay() -> None:
    policy = Policy(archive=True, untouchable=(MemoryKind.STATE,))
    assert [p.sources for p in archives(aged(1, 900), aged(2, 900, MemoryKind.NOTE), policy=policy)] == [(2,)]


def test_a_retention_duty_keeps_rows_that_are_younger() -> None:
    """R32."""
    policy = Policy(archive=True, keep_days=90)
    assert [p.sources for p in archives(aged(1, 89), aged(2, 91), policy=policy)] == [(2,)]


@pytest.mark.parametrize(("used_days_ago", "stays"), [(0, True), (6.9, True), (7.1, False), (-1, True)])
def test_a_row_stays_while_a_prompt_was_given_it_within_its_half_life(used_days_ago: float, stays: bool) -> None:
    """However old, somebody needs it; by a clock that runs ahead too."""
    made = archives(aged(1, 900), used={1: NOW - timedelta(days=used_days_ago)})
    assert (made == ()) == stays


def test_a_row_that_another_operation_takes_waits_and_says_so() -> None:
    [made] = archives(aged(1, 900), taken=frozenset({1}))
    assert (made.state, made.approval) == (State.SKIPPED, Approval.NEVER)
    assert made.skipped_reason.startswith("waits for the next pass")


# --- the same question from day to day -------------------------------------------------------------------------------


def identity(proposal: Proposal) -> tuple[object, ...]:
    """What makes the planner store a proposal anew when it is different."""
    return proposal.id, proposal.approval, proposal.skipped_reason, proposal.product, proposal.reason


def test_the_reason_says_since_when_it_is_weak_and_in_what_half_life() -> None:
    [made] = archives(aged(1, 24))
    assert made.reason == (
        "decay: first said on 2025-05-08 with a half-life of 7 days, weaker than 0.1 since 2025-05-31,"
        " and in no prompt for the last 7 days"
    )
    assert made.signals == {
        "first_said_at": "2025-05-08T00:00:00+00:00",
        "age_days": 24,
        "half_life_days": 7,
        "strength": 0.0929,
        "last_used_at": None,
    }


def test_a_proposal_stays_the_same_as_the_row_gets_weaker() -> None:
    """R57: a rejected archive must not come back tomorrow under another id or another reason."""
    [today] = archives(aged(1, 24))
    [later] = archives(aged(1, 24), now=NOW + timedelta(days=300), used={1: NOW})
    assert identity(today) == identity(later)
    assert today.signals != later.signals, "today's age and strength are figures beside it"


def test_a_row_that_fades_next_changes_no_other_rows_proposal() -> None:
    """A rejection of one row stays a rejection of that row."""
    rows = [aged(1, 24), aged(2, 23)]
    first, after = archives(*rows), archives(*rows, now=NOW + timedelta(days=2))
    assert [identity(p) for p in after[:1]] == [identity(p) for p in first]
    assert [p.sources for p in after] == [(1,), (2,)]


def test_a_merged_row_fades_from_the_earliest_time_anyone_said_it() -> None:
    """R73: merging must not make old news fresh again; with the newest source's date it would be."""
    sources = [aged(1, 400), aged(2, 1)]
    merged = replace(sources[0], id=3, derivation="merge", created_at=min(row.created_at for row in sources))
    naive = replace(merged, created_at=max(row.created_at for row in sources))
    assert [p.sources for p in archives(merged)] == [(3,)]
    assert archives(naive) == ()


def test_reasons_and_figures_hold_no_text_of_the_row() -> None:
    [made] = archives(replace(aged(1, 24), text="the vault opens at nine", subject="vault"))
    assert "vault" not in f"{made.reason} {dict(made.signals)} {made.id}"
