"""One subject and predicate with different objects: never merged, decided once per key by a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter

import pytest

from consolidation.candidates import Link, Met
from consolidation.merge import merge_proposals, unasked
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
    cardinality: Mapping[str, str] | None = None,
) -> dict[Kind, list[Proposal]]:
    made = merge_proposals(
        rows,
        all_links(rows) if links is None else links,
        profile=PROFILE,
        policy=policy,
        distinct=distinct,
        cardinality=cardinality or {},
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


OTHER, HELD = f"op_{'1' * 32}", f"op_{'2' * 32}"
BUDGET = "a question that the review budget holds back"


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (f"contradiction: different object; see {HELD}", f"contradiction: different object; it is {BUDGET}"),
        (f"contradiction: different object; see {OTHER}", f"contradiction: different object; see {OTHER}"),
        (f"waits for the next pass, after {HELD}", f"waits for the next pass, after {BUDGET}"),
        (f"waits for the next pass, after {HELD}, {OTHER}", f"waits for the next pass, after {OTHER}, {BUDGET}"),
        ("different subjects", "different subjects"),
    ],
)
def test_a_reason_names_no_question_that_the_budget_holds_back(reason: str, said: str) -> None:
    """R53: whatever else it names stays, and so does the operation itself."""
    skip = Proposal(
        kind=Kind.MERGE, scope_id=1, sources=(1, 2), approval=Approval.NEVER, reason="r", skipped_reason=reason
    )
    told = unasked(skip, held_back={HELD})
    assert (told.skipped_reason, told.id) == (said, skip.id)


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
    assert decision.product == {
        "suggested": "newest",
        "suggested_keep": 1,
        "why": "newer is suggested, never assumed",
        "order": [2, 1],
    }
    assert decision.approval is Approval.NEEDS_HUMAN


def test_with_dated_values_the_newest_is_the_one_whose_period_starts_last() -> None:
    rows = [
        home(1, "Oslo", created_at=day("2024-05-01"), valid_from=day("2001-01-01")),
        home(2, "Bergen", created_at=day("2023-05-01"), valid_from=day("2010-01-01")),
    ]
    [decision] = plan(rows)[Kind.SUPERSEDE]
    assert decision.keeper == 2


TURNS = {
    "touching": ("2005-01-01", "2005-01-01"),
    "with a gap": ("2005-01-01", "2009-01-01"),
    "overlapping": ("2005-01-01", "2003-01-01"),
}


@pytest.mark.parametrize(("left", "came"), TURNS.values(), ids=TURNS)
def test_a_change_of_value_is_asked_about_whether_or_not_its_periods_meet(left: str, came: str) -> None:
    """Overlapping or consecutive: a change of value is a question until somebody answered it (decision 0009)."""
    rows = [
        home(1, "Oslo", valid_from=day("2001-01-01"), valid_to=day(left)),
        home(2, "Bergen", valid_from=day(came)),
    ]
    made = plan(rows)
    [decision], [skipped] = made[Kind.SUPERSEDE], made[Kind.MERGE]
    assert (decision.sources, decision.state) == ((1, 2), State.NEEDS_HUMAN)
    assert (skipped.approval, decision.id in skipped.skipped_reason) == (Approval.NEVER, True)
    assert "contradiction" in skipped.skipped_reason


def test_an_answered_change_of_value_is_not_asked_again() -> None:
    """ "Both are true, each in its period" leaves a verdict behind; a period alone leaves none."""
    rows = [
        home(1, "Oslo", valid_from=day("2001-01-01"), valid_to=day("2005-01-01")),
        home(2, "Bergen", valid_from=day("2005-01-01")),
    ]
    assert plan(rows, distinct=frozenset({(1, 2)}))[Kind.SUPERSEDE] == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {}),
        ({"valid_from": day("2001-01-01")}, {}),
        ({"valid_from": day("2001-01-01")}, {"valid_from": day("2005-01-01")}),
        ({"valid_from": day("2001-01-01"), "valid_to": day("2005-01-02")}, {"valid_from": day("2005-01-01")}),
    ],
)
def test_open_and_unknown_periods_are_asked_about_as_well(one: dict[str, object], other: dict[str, object]) -> None:
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


def test_a_key_with_very_many_values_is_asked_about_like_any_other() -> None:
    """No change of value is skipped in silence; that there are many is a hint to the person, no answer."""
    rows = [row(number, f"Ann likes thing {number}", ("ann", "likes", f"thing {number}")) for number in range(1, 15)]
    links = [Link(number, number + 1, 0.3, Met.SUBJECT_PREDICATE) for number in range(1, 14)]
    [decision] = plan(rows, links)[Kind.SUPERSEDE]
    assert (decision.state, decision.sources) == (State.NEEDS_HUMAN, tuple(range(1, 15)))
    assert (decision.product["suggested"], decision.keeper) == ("many", None)


def test_a_key_of_thousands_of_values_is_planned_in_no_time_to_speak_of() -> None:
    """R37, R41: no step looks at every two rows of a question."""
    rows = [row(number, f"thing {number}", ("ann", "likes", f"thing {number}")) for number in range(1, 4_001)]
    links = [Link(number, number + 1, 0.97, Met.NEIGHBOUR) for number in range(1, 4_000)]
    started = perf_counter()
    made = plan(rows, links)
    assert perf_counter() - started < 5
    assert [len(proposals) for proposals in made.values()] == [1, 1]


def test_a_row_of_the_key_that_met_nobody_is_shown_as_well() -> None:
    """Every live value: also where no pair of the row survived, because its partner is kept for another operation."""
    rows = [home(1, "Oslo"), home(2, "Bergen"), home(3, "Molde")]
    [decision] = plan(rows, [Link(1, 2, 0.97, Met.NEIGHBOUR)])[Kind.SUPERSEDE]
    assert decision.sources == (1, 2, 3)
    [bare] = plan(rows, [])[Kind.SUPERSEDE]
    assert bare.sources == (1, 2, 3)


def test_the_values_are_given_in_order_of_time_with_the_periods_they_have() -> None:
    rows = [
        home(1, "Molde", valid_from=day("2010-01-01"), valid_to=day("2020-01-01")),
        home(2, "Oslo", valid_from=day("2001-01-01"), valid_to=day("2005-01-01")),
        home(3, "Bergen", valid_from=day("2005-01-01"), valid_to=day("2010-01-01")),
    ]
    [decision] = plan(rows)[Kind.SUPERSEDE]
    assert decision.product == {
        "suggested": "periods",
        "why": "every value has a period of its own, and none overlap",
        "order": [2, 3, 1],
    }
    assert decision.keeper is None
    assert "each in its own period" in decision.reason
    assert decision.signals["values"] == 3


# --- how many values a predicate holds -------------------------------------------------------------------------------

TEA = row(1, "Ann enjoys tea", ("ann", "hobby", "tea tasting"))
CHESS = row(2, "Ann enjoys chess", ("ann", "hobby", "chess"))


def test_two_hobbies_are_no_contradiction_once_somebody_said_so_and_two_birthdays_are() -> None:
    """A predicate's cardinality starts unknown, counts as one value, and is learnt."""
    unknown = plan([TEA, CHESS])
    assert len(unknown[Kind.SUPERSEDE]) == 1
    learnt = plan([TEA, CHESS], cardinality={"hobby": "many"})
    assert learnt[Kind.SUPERSEDE] == []
    days = [
        row(1, "Ann was born in May", ("ann", "born in", "may")),
        row(2, "Born in June", ("ann", "born in", "june")),
    ]
    assert len(plan(days, cardinality={"hobby": "many", "born": "one"})[Kind.SUPERSEDE]) == 1


@pytest.mark.parametrize("cosine", [0.87, 0.99])
def test_similar_values_of_a_many_valued_predicate_are_two_claims_and_never_a_merge(cosine: float) -> None:
    """Neither automatic nor in the queue, and not a contradiction either: a skip with its own reason."""
    made = plan([TEA, CHESS], all_links([TEA, CHESS], cosine), cardinality={"hobby": "many"})
    [skipped] = made[Kind.MERGE]
    assert (skipped.approval, skipped.state) == (Approval.NEVER, State.SKIPPED)
    assert skipped.skipped_reason == "two values of a predicate that holds several"
    assert not skipped.awaits_review


def test_values_of_a_many_valued_predicate_that_are_not_similar_are_nothing_at_all() -> None:
    made = plan([TEA, CHESS], [Link(1, 2, 0.2, Met.SUBJECT_PREDICATE)], cardinality={"hobby": "many"})
    assert made == {Kind.MERGE: [], Kind.SUPERSEDE: []}


def test_identical_texts_with_two_objects_stay_two_values_of_a_many_valued_predicate() -> None:
    rows = [row(1, "He played for both", ("ann", "club", "a")), row(2, "He played for both", ("ann", "club", "b"))]
    [skipped] = plan(rows, cardinality={"club": "many"})[Kind.MERGE]
    assert skipped.approval is Approval.NEVER


def test_one_value_of_a_many_valued_predicate_still_merges_with_itself() -> None:
    rows = [TEA, row(2, "Ann enjoys tea.", ("ann", "hobby", "tea tasting")), row(3, "Chess", ("ann", "hobby", "chess"))]
    made = plan(rows, all_links(rows, c1_3=0.2, c2_3=0.2), cardinality={"hobby": "many"})
    assert [(merge.sources, merge.approval) for merge in made[Kind.MERGE]] == [((1, 2), Approval.AUTO)]
    assert made[Kind.SUPERSEDE] == []


def test_there_is_one_skip_per_key_however_many_values_are_similar() -> None:
    rows = [row(number, f"Ann enjoys game {number}", ("ann", "hobby", f"game {number}")) for number in range(1, 21)]
    [skipped] = plan(rows, cardinality={"hobby": "many"})[Kind.MERGE]
    assert skipped.sources == tuple(range(1, 21))


@pytest.mark.parametrize(
    ("policy", "taught", "asked"),
    [
        (Policy(), {}, 1),
        (Policy(), {"hobby": "many"}, 0),
        (Policy(many_valued=("Hobby",)), {}, 0),
        (Policy(single_valued=("hobby",)), {"hobby": "many"}, 1),
        (Policy(many_valued=("hobby",)), {"hobby": "one"}, 0),
    ],
)
def test_the_policys_word_on_a_predicate_wins_over_a_reviewers(
    policy: Policy, taught: dict[str, str], asked: int
) -> None:
    assert len(plan([TEA, CHESS], policy=policy, cardinality=taught)[Kind.SUPERSEDE]) == asked


def test_a_question_says_whether_the_predicate_is_known_to_hold_one_value() -> None:
    [unknown] = plan([TEA, CHESS])[Kind.SUPERSEDE]
    [known] = plan([TEA, CHESS], cardinality={"hobby": "one"})[Kind.SUPERSEDE]
    assert (unknown.signals["holds"], known.signals["holds"]) == ("unknown", "one")


# --- what was judged before ------------------------------------------------------------------------------------------


def test_a_merge_does_not_carry_a_verdict_over_to_a_row_that_says_it_for_another_time() -> None:
    """Oslo, then Bergen, both judged true; now Oslo again. Merged first, the way back would never be asked about."""
    rows = [
        home(1, "Oslo", valid_from=day("2001-01-01"), valid_to=day("2005-01-01")),
        home(2, "Bergen", valid_from=day("2005-01-01")),
        home(3, "Oslo"),
    ]
    made = plan(rows, distinct=frozenset({(1, 2)}))
    [decision] = made[Kind.SUPERSEDE]
    assert (decision.sources, decision.state) == ((1, 2, 3), State.NEEDS_HUMAN)
    assert not any(merge.appliable for merge in made[Kind.MERGE])
    assert "'a': 1, 'b': 3" in repr(decision.signals["pairs"])  # the pair that waits is shown there


def test_a_row_that_only_repeats_a_judged_one_is_not_asked_about_and_merges() -> None:
    rows = [home(1, "Oslo"), home(2, "Bergen"), home(3, "Oslo")]
    made = plan(rows, distinct=frozenset({(1, 2)}))
    assert made[Kind.SUPERSEDE] == []
    assert [merge.sources for merge in made[Kind.MERGE] if merge.auto] == [(1, 3)]


def test_a_person_is_shown_every_value_also_those_judged_beside_each_other_before() -> None:
    rows = [home(1, "Oslo"), home(2, "Bergen"), home(3, "Molde")]
    [decision] = plan(rows, distinct=frozenset({(1, 2), (1, 3)}))[Kind.SUPERSEDE]
    assert decision.sources == (1, 2, 3)


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
