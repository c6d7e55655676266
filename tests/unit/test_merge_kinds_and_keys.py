"""What kinds of claims and keys that a model gave mean for merging, and what a policy switches off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from consolidation.merge import combine, merge_proposals
from consolidation.operations import Approval, Kind, Proposal
from consolidation.policy import Policy
from observations.records import MemoryKind, Record
from tests.unit.rows import PROFILE, all_links, row

PLANT = ("office plant", "watered on", "monday")
LIVES = ("ann", "lives in")
ABSENT = ("", "", "")


def plan(rows: Sequence[Record], policy: Policy | None = None, cosine: float = 0.99) -> tuple[Proposal, ...]:
    return merge_proposals(rows, all_links(rows, cosine), profile=PROFILE, policy=policy or Policy())


def only(rows: Sequence[Record], policy: Policy | None = None) -> Proposal:
    [made] = plan(rows, policy)
    return made


def reworded(a: Record, b: Record) -> list[Record]:
    """Two rows whose texts no guard objects to, and which are not identical once normalised."""
    return [a, replace(b, normalised="worded differently")]


def twins(**second: object) -> list[Record]:
    """Two rows of one text and key, which merge by themselves unless the second is told otherwise."""
    text = "The office plant is watered on Mondays"
    return [row(1, text, PLANT), row(2, text, **{"key": PLANT, **second})]  # type: ignore[arg-type]


# --- kinds -----------------------------------------------------------------------------------------------------------


def test_rows_of_different_kinds_never_merge_by_themselves() -> None:
    """DESIGN 5: one scope, one kind; also where texts and keys are identical."""
    made = only(twins(kind=MemoryKind.STATE))
    assert made.approval is Approval.NEEDS_HUMAN
    assert "kinds differ" in made.reason


def test_a_kind_that_the_policy_does_not_list_is_merged_by_a_person_only() -> None:
    rows = [replace(record, kind=MemoryKind.NOTE) for record in twins()]
    assert only(rows).auto
    made = only(rows, Policy(mergeable=(MemoryKind.FACT,)))
    assert made.approval is Approval.NEEDS_HUMAN
    assert "kind not mergeable by policy" in made.reason


def test_an_untouchable_kind_is_in_no_proposal_at_all() -> None:
    """Neither merged nor asked about, and its rows count as no value of their key."""
    homes = [row(number, f"Ann lives in {place}", (*LIVES, place)) for number, place in ((1, "Oslo"), (2, "Bergen"))]
    for rows in (twins(), homes):
        rows[1] = replace(rows[1], kind=MemoryKind.IDENTITY)
        assert plan(rows, Policy(untouchable=(MemoryKind.IDENTITY,))) == ()
        assert plan(rows) != ()


def test_an_untouchable_kind_leaves_the_others_to_their_proposals() -> None:
    rows = [*twins(), row(3, "The office plant is watered on Mondays", PLANT, kind=MemoryKind.IDENTITY)]
    made = only(rows, Policy(untouchable=(MemoryKind.IDENTITY,)))
    assert (made.sources, made.auto) == ((1, 2), True)


def test_two_kinds_of_one_key_contradict_each_other_like_any_two_values() -> None:
    rows = [
        row(1, "Ann lives in Oslo", (*LIVES, "Oslo")),
        row(2, "Ann lives in Bergen", (*LIVES, "Bergen"), kind=MemoryKind.STATE),
    ]
    assert [proposal.sources for proposal in plan(rows) if proposal.kind is Kind.SUPERSEDE] == [(1, 2)]


def test_a_merged_row_is_of_its_keepers_kind() -> None:
    rows = [row(1, "x", kind=MemoryKind.PREFERENCE), row(2, "x", kind=MemoryKind.NOTE)]
    kept = [combine(rows, keeper=number).claim for number in (1, 2)]
    assert [(claim.kind, claim.half_life_days) for claim in kept] == [
        (MemoryKind.PREFERENCE, None),
        (MemoryKind.NOTE, 3),
    ]


# --- a policy without merging ----------------------------------------------------------------------------------------


def test_a_policy_can_switch_merging_off_and_contradictions_are_asked_about_all_the_same() -> None:
    rows = [
        *(row(number, "Ann lives in Oslo", (*LIVES, "Oslo")) for number in (1, 2)),
        row(3, "Ann lives in Bergen", (*LIVES, "Bergen")),
        row(4, "Ann does not live in Oslo"),
    ]
    [decision] = plan(rows, Policy(merge=False))
    assert (decision.kind, decision.sources, decision.appliable) == (Kind.SUPERSEDE, (1, 2, 3), True)
    assert {proposal.kind for proposal in plan(rows)} == {Kind.MERGE, Kind.SUPERSEDE}


# --- keys that a model gave ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", [("m", ""), ("", "m"), ("m", "m")])
def test_a_key_given_by_a_model_merges_nothing_by_itself(by: tuple[str, str]) -> None:
    """Equal keys and cosine 0.99: automatic when writers gave the keys, a question when a model gave either."""
    a, b = reworded(*twins())
    made = only([replace(a, key_by=by[0]), replace(b, key_by=by[1])])
    assert only([a, b]).auto
    assert made.approval is Approval.NEEDS_HUMAN
    assert "key given by a model" in made.reason


@pytest.mark.parametrize(
    ("one", "other", "auto"),
    [
        ({"key_by": "m"}, {"key_by": "m"}, True),  # both writers gave none
        ({"key_by": "m"}, {"key": ABSENT}, True),  # a model was asked about one of them only
        ({"key_by": "m", "own_key": ("office plant", "", "")}, {"key_by": "m"}, False),  # one writer named the subject
        ({"key_by": "m"}, {}, False),  # one writer gave the whole key: the model's guess does not stand in for another
    ],
)
def test_identical_texts_merge_by_what_their_writers_gave_whatever_a_model_added(
    one: dict[str, object], other: dict[str, object], auto: bool
) -> None:
    """I16: identical text, and subject, predicate and object each equal or absent on both sides."""
    rows = twins(**other)
    rows[0] = replace(rows[0], **one)  # type: ignore[arg-type]
    made = only(rows)
    assert made.auto is auto
    if not auto:
        assert "key given by a model" in made.reason


def test_two_readings_of_one_text_by_a_model_are_a_question() -> None:
    """A model's key takes nothing away from a person either: not two subjects, and no automatic merge."""
    rows = twins()
    rows = [replace(rows[0], key_by="m"), replace(rows[1], key_by="m", key=("the plant", "watered on", "monday"))]
    made = only(rows)
    assert made.approval is Approval.NEEDS_HUMAN
    assert "keys differ" in made.reason


def test_a_key_given_by_a_model_takes_part_in_contradictions() -> None:
    rows = [
        row(1, "Ann lives in Oslo", (*LIVES, "Oslo")),
        row(2, "Ann lives in Bergen", (*LIVES, "Bergen"), key_by="m"),
    ]
    [decision] = [proposal for proposal in plan(rows) if proposal.kind is Kind.SUPERSEDE]
    assert decision.sources == (1, 2)
    assert not any(proposal.appliable for proposal in plan(rows) if proposal.kind is Kind.MERGE)


def test_a_merge_makes_no_writers_key_of_a_models() -> None:
    rows = [row(1, "x", PLANT, key_by="m", own_key=("office plant", "", "")), row(2, "x")]
    claim = combine(rows, keeper=1).claim
    assert (claim.subject, claim.predicate, claim.object) == ("office plant", "", "")


# --- the key of a merged row -----------------------------------------------------------------------------------------


def key_of(rows: Sequence[Record], keeper: int) -> tuple[str, str, str]:
    claim = combine(rows, keeper=keeper).claim
    return claim.subject, claim.predicate, claim.object


def test_a_keeper_without_a_key_takes_over_the_one_that_the_others_give() -> None:
    """R72: the keeper's text, and the union of the rest; a value that lost its key would contradict nothing."""
    rows = [row(1, "Ann moved to Oslo for good"), row(2, "Ann lives in Oslo", ("Ann", "lives in", "Oslo"))]
    assert key_of(rows, keeper=1) == ("Ann", "lives in", "Oslo")
    assert key_of([replace(rows[0], key=("ann", "", ""), subject="Ann"), rows[1]], keeper=1) == (
        "Ann",
        "lives in",
        "Oslo",
    )


@pytest.mark.parametrize(
    "others",
    [
        [("Ann", "lives in", "Oslo"), ("Ann", "home town", "Oslo")],
        [("Ann", "lives in", "")],
        [],
    ],
)
def test_a_keeper_takes_over_no_key_that_is_not_one_and_whole(others: list[tuple[str, str, str]]) -> None:
    rows = [row(1, "x"), *(row(number, "x", key) for number, key in enumerate(others, start=2))]
    assert key_of(rows, keeper=1) == ABSENT


def test_a_keepers_own_part_of_a_key_is_not_overruled() -> None:
    rows = [row(1, "x", ("Bob", "", "")), row(2, "x", ("Ann", "lives in", "Oslo"))]
    assert key_of(rows, keeper=1) == ("Bob", "", "")


def test_an_embedder_that_nobody_measured_merges_nothing_by_key() -> None:
    """DESIGN 4: the threshold is a measured one; without it a person looks, and identical texts need no embedder."""
    unmeasured = replace(PROFILE, automatic=False)
    rows = reworded(*twins())
    links = all_links(rows, 0.99)
    assert merge_proposals(rows, links, profile=PROFILE, policy=Policy())[0].auto
    [made] = merge_proposals(rows, links, profile=unmeasured, policy=Policy())
    assert made.approval is Approval.NEEDS_HUMAN
    assert "embedder not calibrated" in made.reason
    assert merge_proposals(twins(), links, profile=unmeasured, policy=Policy())[0].auto


def test_what_is_one_subject_by_an_alias_needs_a_whole_key_to_merge_by_itself() -> None:
    """R46, I16: a person said that two names are one entity, not that two texts without a claim's key are one claim."""
    whole = [replace(record, renamed=True) for record in twins()]
    assert only(whole).auto
    partly = [replace(record, key=(record.key[0], "", ""), renamed=True) for record in twins()]
    made = only(partly)
    assert made.approval is Approval.NEEDS_HUMAN
    assert "one subject by an alias" in made.reason


def test_the_key_of_a_promoted_row_is_a_models_and_merges_nothing_by_itself() -> None:
    """Decision 0012: its fact was reviewed or rests on three witnesses; its key rests on a model."""
    a, b = reworded(*twins())
    made = only([replace(a, derivation="promote"), b])
    assert made.approval is Approval.NEEDS_HUMAN
    assert "key given by a model" in made.reason
    assert only([replace(record, derivation="promote") for record in twins()]).auto, "the same words are the same claim"
