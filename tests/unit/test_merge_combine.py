"""What a merge makes of its sources, and how much of a scope a plan would touch."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from consolidation.merge import blast, combine
from consolidation.operations import Approval, Kind, Proposal
from consolidation.policy import Policy
from observations.records import StatedBy
from tests.unit.rows import day, row


def test_a_merged_row_has_the_keepers_text_and_key_as_given() -> None:
    """R72."""
    rows = [
        row(1, "Plant: Mondays", ("Plant", "watered on", "Monday")),
        row(2, "plant  mondays", ("plant", "watered_on", "monday")),
    ]
    made = combine(rows, keeper=2)
    assert (made.claim.text, made.claim.subject, made.claim.predicate, made.claim.object) == (
        "plant  mondays",
        "plant",
        "watered_on",
        "monday",
    )


def test_a_merged_row_was_first_said_when_the_earliest_source_was() -> None:
    """R73, R108, I14: decay is not defeated by merging."""
    rows = [row(1, "x", created_at=day("2024-01-01")), row(2, "x", created_at=day("2020-01-01"))]
    assert combine(rows, keeper=1).claim.created_at == day("2020-01-01")


def test_a_merge_keeps_every_source_id() -> None:
    """R96."""
    assert combine([row(3, "x"), row(1, "x"), row(2, "x")], keeper=3).derived_from == (1, 2, 3)


def test_confidence_rises_with_independent_roots_and_not_with_copies() -> None:
    """R72, R95, E7: twenty copies of one rumour are one witness."""
    copies = [row(number, "x", confidence=0.9, roots=["rumour"]) for number in range(1, 21)]
    witnesses = [row(number, "x", confidence=0.9, roots=[f"root-{number}"]) for number in range(1, 4)]
    assert combine(copies, keeper=1).claim.confidence == 0.9
    assert combine(witnesses, keeper=1).claim.confidence == pytest.approx(0.92)
    many = [row(number, "x", confidence=0.9, roots=[f"root-{number}"]) for number in range(1, 40)]
    assert combine(many, keeper=1).claim.confidence == 0.99


def test_no_merge_lifts_confidence_over_the_users_own_level() -> None:
    """R72, E7."""
    rows = [
        row(1, "x", confidence=0.6, stated_by=StatedBy.USER, roots=["a"]),
        row(2, "x", confidence=0.9, roots=["b"]),
        row(3, "x", confidence=0.9, roots=["c"]),
    ]
    assert combine(rows, keeper=1).claim.confidence == 0.6


def test_the_policy_can_lower_the_cap() -> None:
    rows = [row(number, "x", confidence=0.9, roots=[f"r{number}"]) for number in range(1, 9)]
    assert combine(rows, keeper=1, policy=Policy(confidence_cap=0.93)).claim.confidence == 0.93


def test_a_merged_row_is_trusted_like_the_lowest_of_its_sources() -> None:
    """I12: a merge cannot launder outside text into a preference."""
    rows = [row(1, "x", stated_by=StatedBy.USER), row(2, "x", stated_by=StatedBy.OUTSIDE), row(3, "x")]
    assert combine(rows, keeper=1).claim.stated_by is StatedBy.OUTSIDE


@pytest.mark.parametrize(
    ("periods", "union"),
    [
        ([("2001-01-01", "2003-01-01"), ("2002-01-01", "2005-01-01")], ("2001-01-01", "2005-01-01")),
        ([(None, "2003-01-01"), ("2002-01-01", None)], (None, None)),
        ([("2001-01-01", None), ("2002-01-01", "2005-01-01")], ("2001-01-01", None)),
    ],
)
def test_validity_is_the_union_and_open_stays_open(
    periods: list[tuple[str | None, str | None]], union: tuple[str | None, str | None]
) -> None:
    """I14."""
    rows = [
        row(number, "x", valid_from=day(start) if start else None, valid_to=day(end) if end else None)
        for number, (start, end) in enumerate(periods, start=1)
    ]
    claim = combine(rows, keeper=1).claim
    assert (claim.valid_from, claim.valid_to) == tuple(day(moment) if moment else None for moment in union)


def periods_of(*periods: tuple[str | None, str | None], keeper: int = 1) -> tuple[datetime | None, datetime | None]:
    rows = [
        row(number, "x", valid_from=day(start) if start else None, valid_to=day(end) if end else None)
        for number, (start, end) in enumerate(periods, start=1)
    ]
    claim = combine(rows, keeper=keeper).claim
    return claim.valid_from, claim.valid_to


def test_periods_that_touch_are_united_because_no_time_is_claimed_that_no_source_claims() -> None:
    touching = [("2001-01-01", "2005-01-01"), ("2005-01-01", "2010-01-01")]
    assert periods_of(*touching) == (day("2001-01-01"), day("2010-01-01"))


@pytest.mark.parametrize("keeper", [1, 2])
def test_periods_with_time_between_them_are_not_united_and_the_keepers_stays(keeper: int) -> None:
    """Merged validity is the union only when the intervals meet: two terms are not one long one."""
    apart = [("2001-01-01", "2005-01-01"), ("2010-01-01", "2012-01-01")]
    assert periods_of(*apart, keeper=keeper) == tuple(day(moment) for moment in apart[keeper - 1])
    assert periods_of((None, "2005-01-01"), ("2010-01-01", None)) == (None, day("2005-01-01"))


def test_a_period_that_bridges_two_others_unites_them() -> None:
    bridged = [("2001-01-01", "2005-01-01"), ("2010-01-01", "2012-01-01"), ("2004-01-01", "2011-01-01")]
    assert periods_of(*bridged) == (day("2001-01-01"), day("2012-01-01"))


def test_confidence_is_capped_also_where_a_source_is_surer_than_the_cap() -> None:
    """R72: at most 0.99."""
    assert combine([row(1, "x", confidence=1.0), row(2, "x")], keeper=1).claim.confidence == 0.99


def test_uses_are_summed_for_ranking_and_the_chain_grows_by_one() -> None:
    """R72, E6: the sum is inherited; uses since the derivation are counted elsewhere and start at 0."""
    made = combine([row(1, "x", uses=3, chain=2), row(2, "y", uses=4)], keeper=1)
    assert (made.uses_inherited, made.chain) == (7, 3)


def test_a_repeat_in_the_same_words_does_not_lengthen_the_chain() -> None:
    """DESIGN 4: a chain is limited because meaning drifts from keeper to keeper; a repeat moves nothing."""
    assert combine([row(1, "x", chain=2), row(2, "X.")], keeper=1).chain == 2
    assert combine([row(1, "x"), row(2, "x")], keeper=1).chain == 1
    keyed = row(1, "x", ("plant", "is", "x"), chain=2)
    assert combine([keyed, row(2, "x")], keeper=1).chain == 3, "another key is another claim"


def test_of_repeats_a_merged_row_is_named_by_what_it_came_from() -> None:
    """Decision 0014: as deep as the chain is long; a merge of other words names the rows that it joined."""
    merged, repeat, other = replace(row(3, "x", chain=1), derivation="merge"), row(4, "X."), row(5, "x y")
    below = {3: [1, 2]}
    assert combine([merged, repeat], keeper=3, came_from=below).derived_from == (1, 2, 4)
    assert combine([merged, repeat], keeper=3).derived_from == (3, 4), "its lineage is not known"
    assert combine([merged, repeat, other], keeper=3, came_from=below).derived_from == (3, 4, 5)
    promoted = replace(row(3, "x"), derivation="promote")
    assert combine([promoted, repeat], keeper=3, came_from=below).derived_from == (3, 4)


def test_a_keeper_that_is_no_source_is_refused() -> None:
    with pytest.raises(KeyError):
        combine([row(1, "x"), row(2, "x")], keeper=3)


def merge_of(*sources: int, skipped: str = "") -> Proposal:
    return Proposal(
        kind=Kind.MERGE, scope_id=1, sources=sources, approval=Approval.AUTO, reason="r", skipped_reason=skipped
    )


@pytest.mark.parametrize(
    ("scope_size", "limit", "exceeded"), [(100, 20, True), (220, 22, False), (210, 21, True), (1_000, 100, False)]
)
def test_a_plan_that_touches_more_than_its_share_of_a_scope_is_said_to(
    scope_size: int, limit: int, exceeded: bool
) -> None:
    """DESIGN 4, blast radius: 10%, at least 20 rows; skips and rows named twice do not count."""
    proposals = [merge_of(*range(1, 12)), merge_of(*range(11, 23)), merge_of(*range(100, 200), skipped="waits")]
    radius = blast(proposals, scope_size=scope_size, policy=Policy())
    assert (radius.rows, radius.limit, radius.exceeded) == (22, limit, exceeded)
