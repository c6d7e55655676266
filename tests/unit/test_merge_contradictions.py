"""One subject and predicate with different objects: never merged, decided once per key by a person."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from consolidation.candidates import Link, Met
from consolidation.merge import merge_proposals
from consolidation.operations import Approval, Kind, Proposal, State
from consolidation.policy import Policy
from observations.records import Record
from tests.unit.rows import PROFILE, all_links, day, row

DEFAULT = Policy()
LIVES = ("ann", "lives in")


def home(number: int, place: str, **more: object) -> Record:
    return row(number, f"Ann lives in {place}", (*LIVES, place), **more)  # type: ignore[arg-type]


def plan(
    rows: Sequence[Record],
    links: Sequence[Link] | None = None,
    *,
    policy: Policy = DEFAULT,
    distinct: frozenset[tuple[int, int]] = frozenset(),
) -> dict[Kind, list[Proposal]]:
    made = merge_proposals(
        rows, all_links(rows) if links is None else links, profile=PROFILE, policy=policy, distinct=distinct
    )
    return {kind: [proposal for proposal in made if proposal.kind is kind] for kind in (Kind.MERGE, Kind.SUPERSEDE)}


@pytest.mark.parametrize("cosine", [0.99, 0.87])
def test_a_contradiction_is_a_skipped_merge_that_says_so_and_one_supersede(cosine: float) -> None:
    """R43, R68, R69, R97, E8."""
    rows = [home(1, "Oslo"), home(2, "Bergen")]
    made = plan(rows, all_links(rows, cosine))
    [skipped], [decision] = made[Kind.MERGE], made[Kind.SUPERSEDE]
    assert (skipped.state, skipped.approval) == (State.SKIPPED, Approval.NEVER)
    assert "contradiction" in skipped.skipped_reason
    assert decision.id in skipped.skipped_reason
    assert (decision.sources, decision.state) == ((1, 2), State.NEEDS_HUMAN)


def test_values_whose_texts_are_not_similar_still_meet_in_a_supersede() -> None:
    rows = [home(1, "Oslo"), row(2, "She has moved west for good", (*LIVES, "Bergen"))]
    made = plan(rows, [Link(1, 2, 0.2, Met.SUBJECT_PREDICATE)])
    assert made[Kind.MERGE] == []
    assert [proposal.sources for proposal in made[Kind.SUPERSEDE]] == [(1, 2)]


def test_there_is_one_supersede_per_key_with_every_live_value_of_it() -> None:
    rows = [home(1, "Oslo"), home(2, "Bergen"), home(3, "Molde"), row(4, "Ann likes tea", ("ann", "likes", "tea"))]
    made = plan(rows)
    assert [proposal.sources for proposal in made[Kind.SUPERSEDE]] == [(1, 2, 3)]
    assert [proposal.sources for proposal in made[Kind.MERGE] if "contradiction" in proposal.skipped_reason] == [
        (1, 2, 3)
    ]


def test_the_newest_is_suggested_and_never_assumed() -> None:
    rows = [home(1, "Oslo", created_at=day("2024-05-01")), home(2, "Bergen", created_at=day("2023-05-01"))]
    [decision] = plan(rows)[Kind.SUPERSEDE]
    assert decision.product == {"suggested_keep": 1, "why": "newer is suggested, never assumed"}
    assert decision.approval is Approval.NEEDS_HUMAN


def test_with_dated_values_the_newest_is_the_one_whose_period_starts_last() -> None:
    rows = [
        home(1, "Oslo", created_at=day("2024-05-01"), valid_from=day("2001-01-01")),
        home(2, "Bergen", created_at=day("2023-05-01"), valid_from=day("2010-01-01")),
    ]
    [decision] = plan(rows)[Kind.SUPERSEDE]
    assert decision.keeper == 2


def test_values_of_different_times_are_history_and_not_a_contradiction() -> None:
    rows = [
        home(1, "Oslo", valid_from=day("2001-01-01"), valid_to=day("2005-01-01")),
        home(2, "Bergen", valid_from=day("2005-01-01")),
    ]
    made = plan(rows)
    assert made[Kind.SUPERSEDE] == []
    assert [proposal.skipped_reason for proposal in made[Kind.MERGE]] == ["different periods"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {}),
        ({"valid_from": day("2001-01-01")}, {}),
        ({"valid_from": day("2001-01-01")}, {"valid_from": day("2005-01-01")}),
        ({"valid_from": day("2001-01-01"), "valid_to": day("2005-01-02")}, {"valid_from": day("2005-01-01")}),
    ],
)
def test_open_and_unknown_periods_overlap(one: dict[str, object], other: dict[str, object]) -> None:
    assert len(plan([home(1, "Oslo", **one), home(2, "Bergen", **other)])[Kind.SUPERSEDE]) == 1


def test_an_object_that_is_missing_is_not_a_different_one() -> None:
    """R71: the same non-empty subject and predicate, different object; a missing object is for a person to merge."""
    rows = [home(1, "Oslo"), row(2, "Ann lives in Oslo now", (*LIVES, ""))]
    assert plan(rows)[Kind.SUPERSEDE] == []


def test_an_automatic_merge_comes_first_and_the_contradiction_is_shown_as_waiting_for_it() -> None:
    """A plan has at most one appliable operation per record."""
    rows = [home(1, "Oslo"), home(2, "Oslo"), home(3, "Bergen")]
    made = plan(rows)
    [merged] = [proposal for proposal in made[Kind.MERGE] if proposal.appliable]
    [decision] = made[Kind.SUPERSEDE]
    assert (merged.sources, merged.approval) == ((1, 2), Approval.AUTO)
    assert decision.state is State.SKIPPED
    assert decision.awaits_review
    assert merged.id in decision.skipped_reason
    assert "contradiction" in decision.skipped_reason


def test_a_contradiction_takes_its_rows_before_a_merge_for_a_person_does() -> None:
    rows = [home(1, "Oslo"), home(2, "Bergen"), row(3, "Ann lives in Oslo by the sea")]
    made = plan(rows)
    assert [proposal.sources for proposal in made[Kind.SUPERSEDE] if proposal.appliable] == [(1, 2)]
    assert not any(proposal.appliable for proposal in made[Kind.MERGE])
    assert any(3 in proposal.sources for proposal in made[Kind.MERGE])


def test_values_that_a_person_said_are_both_true_are_not_asked_again_until_another_comes() -> None:
    rows = [home(1, "Oslo"), home(2, "Bergen")]
    judged = frozenset({(1, 2)})
    assert plan(rows, distinct=judged) == {Kind.MERGE: [], Kind.SUPERSEDE: []}
    [again] = plan([*rows, home(3, "Molde")], distinct=judged)[Kind.SUPERSEDE]
    assert again.sources == (1, 2, 3)


def test_a_predicate_with_very_many_live_values_is_read_as_many_valued_and_says_so() -> None:
    rows = [row(number, f"Ann likes thing {number}", ("ann", "likes", f"thing {number}")) for number in range(1, 15)]
    links = [Link(number, number + 1, 0.3, Met.SUBJECT_PREDICATE) for number in range(1, 14)]
    [decision] = plan(rows, links, policy=Policy(many_values=12))[Kind.SUPERSEDE]
    assert (decision.state, decision.approval) == (State.SKIPPED, Approval.NEVER)
    assert "14 live values of one key" in decision.skipped_reason
    [asked] = plan(rows[:12], links[:11], policy=Policy(many_values=12))[Kind.SUPERSEDE]
    assert asked.state is State.NEEDS_HUMAN


def test_a_refused_supersede_is_not_asked_again_while_a_refused_merge_hides_no_contradiction() -> None:
    """DESIGN 4, Identity."""
    rows = [home(1, "Oslo"), home(2, "Bergen")]
    pair = frozenset({(1, 2)})
    by_kind = {
        kind: merge_proposals(rows, all_links(rows), profile=PROFILE, policy=DEFAULT, rejected={kind: pair})
        for kind in (Kind.SUPERSEDE, Kind.MERGE)
    }
    assert [proposal.kind for proposal in by_kind[Kind.SUPERSEDE]] == [Kind.MERGE]
    assert [proposal.kind for proposal in by_kind[Kind.MERGE]] == [Kind.SUPERSEDE]
