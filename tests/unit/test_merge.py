"""What merges by itself, what a person decides, what is never merged; similarity is scripted, the guards are real."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import nan

import pytest

from consolidation.candidates import Link, Met
from consolidation.merge import Verdict, cliques, cover, judge, merge_proposals
from consolidation.operations import Approval, Kind, Proposal, State
from consolidation.policy import Policy
from observations.records import Record, StatedBy
from tests.unit.rows import PROFILE, all_links, day, row

DEFAULT = Policy()
PLANT = ("office plant", "watered on", "monday")


def plan(
    rows: Sequence[Record],
    links: Sequence[Link] | None = None,
    *,
    policy: Policy = DEFAULT,
    distinct: frozenset[tuple[int, int]] = frozenset(),
) -> tuple[Proposal, ...]:
    found = all_links(rows) if links is None else links
    return merge_proposals(rows, found, profile=PROFILE, policy=policy, distinct=distinct)


def only(rows: Sequence[Record], links: Sequence[Link] | None = None, *, policy: Policy = DEFAULT) -> Proposal:
    [proposal] = plan(rows, links, policy=policy)
    return proposal


# --- automatic merges ------------------------------------------------------------------------------------------------


def test_equal_keys_and_similar_texts_merge_by_themselves() -> None:
    """R42."""
    rows = [
        row(1, "The office plant is watered on Mondays", PLANT, confidence=0.4),
        row(2, "Office plant is watered on Mondays.", PLANT, confidence=0.6),
    ]
    made = only(rows, all_links(rows, 0.98))
    assert (made.kind, made.approval, made.state) == (Kind.MERGE, Approval.AUTO, State.PLANNED)
    assert (made.sources, made.keeper, made.score) == ((1, 2), 2, 0.98)


def test_identical_texts_without_keys_merge_by_themselves_even_without_vectors() -> None:
    """DESIGN 4; R-D: near-duplicates without a key."""
    rows = [row(1, "Ann has three cats"), row(2, "ann has 3 cats.")]
    made = only(rows, [Link(1, 2, nan, Met.TEXT)])
    assert (made.approval, made.score) == (Approval.AUTO, None)
    assert "no vectors" in made.reason


def test_the_threshold_is_reached_at_exactly_its_value_and_not_below() -> None:
    """R42, R66: at or over 0.95; a policy may raise it, never lower it."""
    rows = [row(number, "The plant is watered on Mondays", PLANT) for number in (1, 2)]
    rows[1] = replace(rows[1], normalised="plant watered mondays")
    at, below = all_links(rows, 0.95), all_links(rows, 0.9499)
    assert only(rows, at).approval is Approval.AUTO
    assert only(rows, below).approval is Approval.NEEDS_HUMAN
    assert only(rows, at, policy=Policy(t_merge=0.96)).approval is Approval.NEEDS_HUMAN
    assert only(rows, below, policy=Policy(t_merge=0.6)).approval is Approval.NEEDS_HUMAN


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        ({"key": ("", "", "")}, {"key": ("", "", "")}, "no key"),
        ({"key": ("plant", "watered on", "")}, {"key": ("plant", "watered on", "")}, "no key"),
        ({}, {"key": ("office plant", "watered on", "")}, "keys differ"),
        ({}, {"key": ("office plant", "gets water", "monday")}, "keys differ"),
        ({}, {"stated_by": StatedBy.OUTSIDE}, "different origins"),
        ({"stated_by": StatedBy.USER}, {}, "different origins"),
        ({"chain": 3}, {}, "merged 3 times already"),
        ({"valid_to": day("2021-01-01")}, {"valid_from": day("2021-01-01")}, "periods do not overlap"),
    ],
)
def test_one_missing_condition_sends_the_pair_to_a_person_and_is_named(
    one: dict[str, object], other: dict[str, object], why: str
) -> None:
    """DESIGN 4 and 5, I12, I16."""
    texts = ("The plant is watered on Mondays", "Plant is always given its water on Mondays")
    a = row(1, texts[0], **{"key": PLANT, **one})  # type: ignore[arg-type]
    b = replace(row(2, texts[0], **{"key": PLANT, **other}), normalised="worded differently")  # type: ignore[arg-type]
    made = only([a, b], all_links([a, b], 0.99))
    assert (made.approval, made.state) == (Approval.NEEDS_HUMAN, State.NEEDS_HUMAN)
    assert why in made.reason


@pytest.mark.parametrize(
    ("one", "other"),
    [(PLANT, ("", "", "")), (("plant", "", ""), ("", "", "")), (PLANT, (*PLANT[:2], ""))],
)
def test_identical_texts_whose_keys_are_not_equal_or_absent_on_both_sides_wait_for_a_person(
    one: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    """I16."""
    rows = [row(1, "It is watered on Mondays", one), row(2, "It is watered on Mondays", other)]
    assert only(rows).approval is Approval.NEEDS_HUMAN


def test_a_merge_names_no_memory_text_in_its_reason_or_signals() -> None:
    rows = [row(1, "Zanzibar trip is booked"), row(2, "Zanzibar holiday is booked")]
    made = only(rows, all_links(rows, 0.9))
    assert "anzibar" not in repr((made.reason, made.skipped_reason, made.signals, made.product))
    assert made.signals["pairs"] == [
        {
            "a": 1,
            "b": 2,
            "cosine": 0.9,
            "met": ["neighbour"],
            "verdict": "possible contradiction",
            "failed": ["no key", "similarity under 0.95", "guard wording"],
        }
    ]


# --- guards ----------------------------------------------------------------------------------------------------------

MAY = "Guests may use the north car park after six"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (MAY, "Guests may not use the north car park after six"),
        ("The client makes 3 retries", "The client makes 5 retries"),
        ("Deliveries come before 10", "Deliveries come after 10"),
        ("The gate is always locked", "The gate is never locked"),
    ],
)
@pytest.mark.parametrize("key", [("", "", ""), PLANT])
def test_opposite_texts_are_skipped_as_a_possible_contradiction_and_reach_the_queue(
    one: str, other: str, key: tuple[str, str, str]
) -> None:
    """C7."""
    rows = [row(1, one, key), row(2, other, key)]
    made = only(rows)
    assert made.state is State.SKIPPED
    assert made.skipped_reason.startswith("possible contradiction")
    assert made.awaits_review


def test_the_guard_does_not_block_the_control_pair() -> None:
    """C7: the same words about the same key still merge beside the opposite ones."""
    parking = ("guests", "may use", "north car park after six")
    rows = [
        row(1, MAY, parking),
        row(2, "Guests may not use the north car park after six"),
        row(3, "Guests can use the north car park after six", parking),
    ]
    made = plan(rows)
    [merged] = [proposal for proposal in made if proposal.appliable]
    assert (merged.sources, merged.approval) == ((1, 3), Approval.AUTO)
    assert all(2 not in proposal.sources or proposal.skipped_reason.startswith("possible") for proposal in made)


def test_texts_worded_differently_are_asked_about_without_the_alarm_of_another_order() -> None:
    rows = [
        row(1, "Sam expressed appreciation towards Evan's support"),
        row(2, "Sam expresses gratitude to Evan for his support"),
    ]
    assert only(rows, all_links(rows, 0.92)).state is State.NEEDS_HUMAN


# --- clusters --------------------------------------------------------------------------------------------------------


def test_a_keyless_row_does_not_bridge_two_contradicting_ones() -> None:
    """E2, R88."""
    rows = [
        row(1, "Ann lives in Oslo", ("ann", "lives in", "oslo")),
        row(2, "Ann lives there"),
        row(3, "Ann lives in Bergen", ("ann", "lives in", "bergen")),
    ]
    for proposal in plan(rows):
        together = proposal.appliable and proposal.kind is Kind.MERGE and {1, 3} <= set(proposal.sources)
        assert not together
        assert not proposal.auto


def test_records_of_different_subjects_never_merge_however_similar() -> None:
    """E2, R46: only an alias could make them one claim."""
    rows = [row(1, "Likes tea", ("ann", "likes", "tea")), row(2, "Likes tea", ("bob", "likes", "tea"))]
    made = only(rows, all_links(rows, 0.99))
    assert (made.state, made.approval, made.skipped_reason) == (State.SKIPPED, Approval.NEVER, "different subjects")


def test_clusters_are_cliques_and_not_stars() -> None:
    """E2: 1 is near 2 and 3, but 2 and 3 are not near each other."""
    rows = [replace(row(number, "plant watered", PLANT), normalised=f"n{number}") for number in (1, 2, 3)]
    links = [link for link in all_links(rows, 0.97, c1_2=0.98) if (link.a, link.b) != (2, 3)]
    applied = [proposal for proposal in plan(rows, links) if proposal.appliable]
    assert [proposal.sources for proposal in applied] == [(1, 2)]
    [waits] = [proposal for proposal in plan(rows, links) if not proposal.appliable]
    assert waits.sources == (1, 3)
    assert waits.skipped_reason == f"waits for the next pass, after {applied[0].id}"


def test_a_chain_for_a_person_is_cut_strongest_first_and_the_rest_waits() -> None:
    rows = [row(number, f"text number words {number}") for number in (1, 2, 3)]
    rows = [replace(record, text="same words", normalised=f"n{record.id}") for record in rows]
    links = [Link(1, 2, 0.88, Met.NEIGHBOUR), Link(2, 3, 0.93, Met.NEIGHBOUR)]
    made = plan(rows, links)
    assert [(proposal.sources, proposal.state) for proposal in made] == [
        ((1, 2), State.SKIPPED),
        ((2, 3), State.NEEDS_HUMAN),
    ]


def test_merges_for_a_person_are_no_larger_than_a_person_reads() -> None:
    rows = [replace(row(number, "same words"), normalised=f"n{number}") for number in range(1, 31)]
    made = plan(rows, all_links(rows, 0.9), policy=Policy(cluster_cap=8))
    asked = [proposal for proposal in made if proposal.appliable]
    assert max(len(proposal.sources) for proposal in asked) == 8
    assert {source for proposal in made for source in proposal.sources} == set(range(1, 31))


def test_a_hundred_copies_are_one_merge_with_bounded_signals() -> None:
    rows = [row(number, "Standup moved to 09:30") for number in range(1, 101)]
    made = only(rows)
    assert len(made.sources) == 100
    assert len(made.signals["pairs"]) == 99  # type: ignore[arg-type]  # those of the keeper
    assert made.signals["pairs_judged"] == 4_950


def test_cliques_and_covers_leave_no_row_out() -> None:
    rows = [row(number, "x") for number in range(1, 6)]
    links = [Link(1, other, 0.9, Met.NEIGHBOUR) for other in range(2, 6)]
    judged = [
        replace(judge(rows[0], rows[link.b - 1], link=link, profile=PROFILE, policy=Policy()), verdict=Verdict.ASK)
        for link in links
    ]
    assert cliques(judged, cap=8) == [(1, 2)]
    assert sorted(cover(judged, cap=8)) == [(1, 2), (1, 3), (1, 4), (1, 5)]


def test_a_pair_judged_distinct_is_never_proposed_together_again() -> None:
    """DESIGN 4: remembered for good; the cluster is split by it."""
    rows = [row(number, "Standup moved to 09:30") for number in (1, 2, 3)]
    made = plan(rows, distinct=frozenset({(1, 2)}))
    assert all(not {1, 2} <= set(proposal.sources) for proposal in made)
    assert [proposal.sources for proposal in made if proposal.appliable] == [(1, 3)]
    assert plan(rows[:2], distinct=frozenset({(1, 2)})) == ()


def test_one_pass_refuses_records_of_two_scopes() -> None:
    """C6, R90."""
    rows = [row(1, "Prefers short answers", scope=1), row(2, "Prefers short answers", scope=2)]
    with pytest.raises(ValueError, match="A pass plans one scope"):
        plan(rows)
    with pytest.raises(ValueError, match="never compared"):
        judge(rows[0], rows[1], link=all_links(rows)[0], profile=PROFILE, policy=Policy())


def test_periods_with_time_between_them_are_two_claims() -> None:
    """Two terms of one office: their union would claim the years between."""
    mayor = ("ann", "is", "mayor")
    rows = [
        row(1, "Ann is mayor", mayor, valid_from=day("2001-01-01"), valid_to=day("2005-01-01")),
        row(2, "Ann is mayor", mayor, valid_from=day("2010-01-01")),
    ]
    assert (only(rows).approval, only(rows).skipped_reason) == (Approval.NEVER, "different periods")


# --- keepers ---------------------------------------------------------------------------------------------------------


def test_the_keeper_is_the_highest_by_confidence_then_by_date() -> None:
    """R67."""
    text = "Standup moved to 09:30"
    older, newer = day("2023-01-01"), day("2024-01-01")
    sure = [row(1, text, confidence=0.7, created_at=older), row(2, text, confidence=0.5, created_at=newer)]
    even = [row(1, text, created_at=older), row(2, text, created_at=newer)]
    assert only(sure).keeper == 1
    assert only(even).keeper == 2


def test_a_users_word_is_the_one_kept_and_only_a_person_can_merge_it_with_anothers() -> None:
    """I12."""
    text = "Prefers tea"
    rows = [
        row(1, text, stated_by=StatedBy.USER, confidence=0.3),
        row(2, text, stated_by=StatedBy.TOOL, confidence=0.9),
    ]
    made = only(rows)
    assert (made.keeper, made.approval) == (1, Approval.NEEDS_HUMAN)


def test_the_richer_text_is_proposed_as_keeper_and_named() -> None:
    rows = [
        row(1, "Maria volunteers at a homeless shelter", confidence=0.9),
        row(2, "Maria volunteers at a homeless shelter and likes it", confidence=0.4),
    ]
    made = only(rows, all_links(rows, 0.9))
    assert made.keeper == 2
    assert "obs_2 adds to obs_1" in made.reason
    assert made.signals["refinements"] == [[1, 2]]


def test_a_richer_text_of_lower_origin_does_not_replace_a_users_word() -> None:
    """I12."""
    rows = [
        row(1, "Maria volunteers at a homeless shelter", stated_by=StatedBy.USER),
        row(2, "Maria volunteers at a homeless shelter and likes it", stated_by=StatedBy.OUTSIDE),
    ]
    assert only(rows, all_links(rows, 0.9)).keeper == 1


def test_the_score_is_the_lowest_similarity_to_the_keeper() -> None:
    """R70."""
    rows = [replace(row(number, "plant watered", PLANT), normalised=f"n{number}") for number in (1, 2, 3)]
    rows[0] = replace(rows[0], confidence=0.9)
    made = only(rows, all_links(rows, 0.99, c1_2=0.97, c1_3=0.98, c2_3=0.955))
    assert (made.keeper, made.score) == (1, 0.97)


def test_a_refused_merge_is_not_asked_again_and_frees_its_rows_for_others() -> None:
    """DESIGN 4, Identity: no operation on these rows waits behind one that a person refused."""
    rows = [replace(row(number, "same words"), normalised=f"n{number}") for number in (1, 2, 3)]
    links = [Link(1, 2, 0.93, Met.NEIGHBOUR), Link(2, 3, 0.9, Met.NEIGHBOUR)]
    refused = {Kind.MERGE: frozenset({(1, 2)})}
    made = merge_proposals(rows, links, profile=PROFILE, policy=DEFAULT, rejected=refused)
    assert [(proposal.sources, proposal.state) for proposal in made] == [((2, 3), State.NEEDS_HUMAN)]
