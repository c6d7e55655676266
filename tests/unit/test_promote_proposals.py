"""Who has to agree to a promotion: distinct roots decide, never the number of episodes (R45, R95, C8, F3)."""

from __future__ import annotations

from typing import Any

import pytest

from consolidation import promote
from consolidation.operations import Approval, Kind, Proposal, State
from consolidation.policy import Policy
from observations.normalise import normalised
from observations.records import Outcome, StatedBy
from tests.unit.promoting import QUOTED, SAID, TEA, cluster, episode, fact, planned, tea, tea_fact

KEY = {"subject": "Ann", "predicate": "drinks", "object": "green tea"}


def only(*args: Any, **fields: Any) -> Proposal:
    [proposal] = planned(*args, **fields)
    return proposal


# --- how many ---------------------------------------------------------------------------------------------------------


def test_three_independent_sources_promote_by_themselves_at_the_ceiling() -> None:
    """R45, R75, R77."""
    made = only(tea(), tea_fact(0, 1, 2, **KEY))
    assert (made.kind, made.approval, made.state) == (Kind.PROMOTE, Approval.AUTO, State.PLANNED)
    assert (made.sources, made.text, made.key) == ((1, 2, 3), TEA, ("Ann", "drinks", "green tea"))
    assert made.of_episodes
    assert made.product["confidence"] == 0.6


def test_exactly_two_wait_for_a_person() -> None:
    """R45 against R75, as settled."""
    made = only(tea(), tea_fact(0, 3))
    assert (made.approval, made.state, made.sources) == (Approval.NEEDS_HUMAN, State.NEEDS_HUMAN, (1, 4))


def test_one_supporter_is_skipped_with_the_count() -> None:
    """R76, R103."""
    made = only(tea(), tea_fact(2))
    assert (made.approval, made.state, made.sources) == (Approval.NEVER, State.SKIPPED, (3,))
    assert made.skipped_reason == "1 supporting, 2 needed"


@pytest.mark.parametrize(
    ("policy", "approvals"),
    [
        (Policy(), ["NEVER", "NEEDS_HUMAN", "AUTO", "AUTO"]),
        (Policy(min_support=3, auto_support=4), ["NEVER", "NEVER", "NEEDS_HUMAN", "AUTO"]),
        (Policy(min_support=2, auto_support=4), ["NEVER", "NEEDS_HUMAN", "NEEDS_HUMAN", "AUTO"]),
    ],
)
def test_the_policy_says_how_many_are_enough(policy: Policy, approvals: list[str]) -> None:
    made = [only(tea(), tea_fact(*range(count)), policy=policy).approval.value for count in (1, 2, 3, 4)]
    assert made == approvals


def test_a_policy_may_lower_the_confidence_and_never_raise_it_over_the_ceiling() -> None:
    """R104."""
    assert only(tea(), tea_fact(0, 1, 2), policy=Policy(promoted_confidence=0.4)).product["confidence"] == 0.4
    assert only(tea(), tea_fact(0, 1, 2, 3)).product["confidence"] == promote.CEILING == 0.6


# --- C8: one source is one witness -----------------------------------------------------------------------------------

DOCUMENT = "doc://handbook"
COPIES = (
    episode(1, "The build uses Python 3.12 on every runner", root=DOCUMENT),
    episode(2, "The build uses Python 3.12 on every runner", root=DOCUMENT, day=1.5),
    episode(3, "In short: the build uses Python 3.12", root=DOCUMENT),
)
LATER = episode(4, "Checked it: our build uses Python 3.12 now", root="log://runner-7")
REPEATS = tuple(episode(10 + n, COPIES[0].text, root=DOCUMENT) for n in range(10))
BUILD = "The build uses Python 3.12"


def build_fact(*labels: int) -> dict[str, Any]:
    return fact(BUILD, *((label, "build uses Python 3.12") for label in labels))


def test_copies_and_summaries_of_one_source_are_one_witness() -> None:
    """C8: e1 and e2 are one document twice, e3 a summary of it."""
    made = only(cluster(*COPIES), build_fact(0, 1, 2))
    assert (made.approval, made.skipped_reason) == (Approval.NEVER, "1 supporting, 2 needed")
    assert made.product["roots"] == 1
    assert made.reason.startswith("1 independent source in 3 episodes")


def test_another_source_makes_two_witnesses_for_a_person_unless_three_are_needed() -> None:
    """C8."""
    asked = cluster(*COPIES, LATER)
    made = only(asked, build_fact(0, 1, 2, 3))
    assert (made.approval, made.product["roots"], made.product["confidence"]) == (Approval.NEEDS_HUMAN, 2, 0.6)
    strict = only(asked, build_fact(0, 1, 2, 3), policy=Policy(min_support=3, auto_support=4))
    assert (strict.approval, strict.skipped_reason) == (Approval.NEVER, "2 supporting, 3 needed")


def test_ten_repeats_change_neither_confidence_nor_support() -> None:
    """C8."""
    before = only(cluster(*COPIES, LATER), build_fact(0, 1, 2, 3))
    after = only(cluster(*COPIES, LATER, *REPEATS), build_fact(*range(14)))
    assert [(one.approval, one.product["roots"], one.product["confidence"]) for one in (before, after)] == [
        (Approval.NEEDS_HUMAN, 2, 0.6)
    ] * 2


def test_counting_episodes_instead_would_promote_a_rumour() -> None:
    """The naive control: five copies are five episodes, and a count of them would need nobody."""
    made = only(cluster(*COPIES, *REPEATS[:2]), build_fact(0, 1, 2, 3, 4))
    assert len(made.sources) >= Policy().auto_support
    assert made.approval is Approval.NEVER


# --- whose word ------------------------------------------------------------------------------------------------------


def test_outside_text_alone_never_promotes_by_itself() -> None:
    """F3: at least one of the roots is not outside text."""
    made = only(tea(role="webpage"), tea_fact(0, 1, 2, 3))
    assert made.approval is Approval.NEEDS_HUMAN
    assert "outside text" in made.reason
    assert made.product["outside"] == 4


@pytest.mark.parametrize("role", ["tool", "function", "webpage"])
def test_what_a_tool_fetched_is_outside_text_to_an_automatic_promotion(role: str) -> None:
    """F3, R45: three pages that a tool fetched would otherwise promote what they say."""
    made = only(tea(role=role), tea_fact(0, 1, 2, 3))
    assert (made.approval, made.product["roots"]) == (Approval.NEEDS_HUMAN, 4)
    told = "outside text" if role == "webpage" else "outside text or a tool's output"
    assert made.reason.startswith(f"4 independent sources in 4 episodes, all of it {told}, ")


def by(*roles: str) -> promote.Cluster:
    """The episodes of `tea`, each by a role of its own."""
    said = enumerate(zip(SAID, roles, strict=False), start=1)
    return cluster(*(episode(number, text, speaker="Ann", role=role) for number, (text, role) in said))


@pytest.mark.parametrize(
    ("roles", "approval", "others"),
    [
        (["user", "operator", "assistant"], Approval.AUTO, 0),
        (["", "", ""], Approval.AUTO, 0),
        (["user", "user", "user", "tool"], Approval.AUTO, 1),
        (["user", "agent", "tool"], Approval.NEEDS_HUMAN, 1),
        (["user", "user", "webpage"], Approval.NEEDS_HUMAN, 1),
        (["tool", "tool", "tool", "assistant"], Approval.NEEDS_HUMAN, 3),
        (["tool", "mail", "user", "user"], Approval.NEEDS_HUMAN, 2),
    ],
)
def test_three_have_to_say_it_in_their_own_words(roles: list[str], approval: Approval, others: int) -> None:
    """R45, R95, F3: an agent that repeats what tools fetched does not make them three witnesses."""
    made = only(by(*roles), tea_fact(*range(len(roles)), text="Green tea every morning"))
    assert (made.approval, made.product["roots"]) == (approval, len(roles))
    assert (f", {others} of them only outside text or a tool's output, " in made.reason) is (others > 0)


def test_three_roots_of_any_kind_would_promote_three_fetched_pages() -> None:
    """The naive control: counted without their origin, the fetched pages are enough."""
    made = only(by("tool", "tool", "tool"), tea_fact(0, 1, 2))
    assert isinstance(made.product["roots"], int)
    assert made.product["roots"] >= Policy().auto_support
    assert made.approval is not Approval.AUTO


def test_a_root_that_somebody_and_a_tool_tell_is_somebodys_own() -> None:
    """R95: one root is one witness, and its best episode speaks for it."""
    told = [
        episode(number, text, role="tool", root=f"doc://{number}", speaker="Ann")
        for number, text in enumerate(SAID[:3], start=1)
    ]
    own = [
        episode(number + 3, text, role="user", root=f"doc://{number}", speaker="Ann")
        for number, text in enumerate(SAID[:3], start=1)
    ]
    quoted = tuple((label, QUOTED[label % 3]) for label in range(6))
    made = only(cluster(*told, *own), fact(TEA, *quoted))
    assert (made.approval, made.product["roots"]) == (Approval.AUTO, 3)
    assert "tool" not in made.reason


@pytest.mark.parametrize(
    ("roles", "lowest"),
    [
        (["user", "user"], StatedBy.AGENT),
        (["user", "operator", "assistant"], StatedBy.AGENT),
        (["user", "tool"], StatedBy.TOOL),
        (["tool", "mail", "user"], StatedBy.OUTSIDE),
        ([""], StatedBy.AGENT),
        ([], StatedBy.AGENT),
    ],
)
def test_a_promoted_row_is_the_agents_word_at_most_and_the_lowest_of_its_episodes(
    roles: list[str], lowest: StatedBy
) -> None:
    """I12: a summary cannot launder outside text into a preference."""
    assert promote.stated_by(episode(n, "text", role=role) for n, role in enumerate(roles, start=1)) is lowest


def test_the_product_names_whose_word_the_row_will_be() -> None:
    assert only(tea(role="user"), tea_fact(0, 1, 2)).product["stated_by"] == "agent"
    assert only(tea(role="webpage"), tea_fact(0, 1)).product["stated_by"] == "outside"


# --- what is shown ---------------------------------------------------------------------------------------------------


def test_verified_successes_are_counted_by_source_and_shown() -> None:
    """R53: claimed is not verified, and two successes of one root are one."""
    said = [
        episode(1, SAID[0], speaker="Ann", root="a", outcome=Outcome.SUCCESS),
        episode(2, SAID[1], speaker="Ann", root="a", outcome=Outcome.SUCCESS),
        episode(3, SAID[2], speaker="Ann", outcome=Outcome.CLAIMED),
        episode(4, SAID[3], speaker="Ann", outcome=Outcome.SUCCESS),
    ]
    made = only(cluster(*said), tea_fact(0, 1, 2, 3))
    assert (made.product["roots"], made.product["verified"], made.product["episodes"]) == (3, 2, 4)
    assert made.reason == (
        "3 independent sources in 4 episodes, 2 verified successes; confidence 0.60 (promoted, not user-stated)"
    )


def test_one_of_each_is_counted_in_the_singular() -> None:
    made = only(cluster(episode(1, SAID[0], speaker="Ann", outcome=Outcome.SUCCESS)), tea_fact(0))
    assert made.reason.startswith("1 independent source in 1 episode, 1 verified success;")


def test_the_support_says_where_the_words_stand() -> None:
    """C3: an accepted claim points at words that are really there."""
    made = only(tea(), tea_fact(0, 1))
    places = made.product["support"]
    assert isinstance(places, list)
    assert [(number, SAID[number - 1][start:end]) for number, start, end in places] == [
        (1, "drank my green tea this morning, as I do every morning"),
        (2, "Every morning I drink green tea"),
    ]


def test_nothing_but_the_text_and_the_key_of_a_proposal_holds_memory_text() -> None:
    made = planned(tea(), tea_fact(0, 1, 2, **KEY), tea_fact(1, text="Ann drinks green tea before work"))
    for proposal in made:
        told = repr((proposal.reason, proposal.skipped_reason, proposal.product, proposal.signals, proposal.id))
        assert "tea" not in told
        assert "Ann" not in told


# --- identity --------------------------------------------------------------------------------------------------------


def test_two_facts_of_the_same_episodes_are_two_operations() -> None:
    """E4, golden: these ids are stored."""
    made = planned(tea(), tea_fact(0, 1, 2), tea_fact(0, 1, 2, text="Ann has green tea in the morning"))
    assert [proposal.input_key for proposal in made] == ["op_f4ae94b4672faf80"] * 2
    assert [proposal.id for proposal in made] == [
        "op_9cb211080d7d4fe8e1ac1c2125f224c7",
        "op_025564e0300a476c94ad339f0b3f116e",
    ]
    assert [proposal.product["discriminator"] for proposal in made] == ["draft.7.0", "draft.7.1"]


def test_a_refused_item_does_not_renumber_the_facts_beside_it() -> None:
    """E4: the same fact of the same answer keeps its id, whatever is refused before it."""
    alone = planned(tea(), "a bare string", tea_fact(0, 1))
    beside = planned(tea(), tea_fact(2, 3, text="Ann drinks green tea"), tea_fact(0, 1))
    assert alone[0].id == beside[1].id


def test_another_answer_gives_another_id() -> None:
    one, other = (only(tea(), tea_fact(0, 1), discriminator=name) for name in ("draft.7", "draft.8"))
    assert one.id != other.id
    assert one.input_key == other.input_key


# --- what is known ---------------------------------------------------------------------------------------------------


def test_what_stands_in_the_same_words_is_skipped_by_its_id() -> None:
    made = only(tea(), tea_fact(0, 1, 2), known={normalised("ann drinks green tea, every morning!"): 12})
    assert (made.approval, made.skipped_reason) == (Approval.NEVER, "already known as obs_12")


def test_what_stands_under_the_same_full_key_is_skipped_by_its_id() -> None:
    known = {("ann", "drinks", "green tea"): 9}
    assert only(tea(), tea_fact(0, 1, 2, **KEY), known_keys=known).skipped_reason == "already known as obs_9"
    partly = {**KEY, "object": ""}
    assert only(tea(), tea_fact(0, 1, 2, **partly), known_keys=known).approval is Approval.AUTO


def test_too_little_support_is_said_before_what_is_known() -> None:
    """R103."""
    assert only(tea(), tea_fact(0), known={normalised(TEA): 12}).skipped_reason == "1 supporting, 2 needed"


def test_another_value_where_there_can_be_one_only_goes_to_a_person() -> None:
    """When in doubt, keep both and ask a person."""
    known = {("ann", "drinks", "coffee"): 9, ("ann", "drinks", "cocoa"): 5}
    single, many = Policy(single_valued=("drinks",)), Policy(many_valued=("drinks",))
    asked = only(tea(), tea_fact(0, 1, 2, **KEY), policy=single, known_keys=known)
    assert asked.approval is Approval.NEEDS_HUMAN
    assert asked.reason.endswith("; obs_5 has a value for this subject and predicate")
    for policy in (many, Policy()):
        assert only(tea(), tea_fact(0, 1, 2, **KEY), policy=policy, known_keys=known).approval is Approval.AUTO


# --- several clusters ------------------------------------------------------------------------------------------------


def test_a_fact_found_in_two_clusters_is_proposed_once_with_the_most_support() -> None:
    two = only(cluster(*tea().episodes[:2]), tea_fact(0, 1), discriminator="draft.1")
    three = only(tea(3), tea_fact(0, 1, 2), discriminator="draft.2")
    kept, left = promote.once(proposals=[three, two])
    assert kept == three
    assert (left.approval, left.skipped_reason) == (Approval.NEVER, f"said again: see {three.id}")
    assert promote.once(proposals=[two, three]) == (left, kept)


def test_a_fact_in_other_words_under_the_same_key_is_proposed_once() -> None:
    one = only(tea(3), tea_fact(0, 1, 2, **KEY), discriminator="draft.1")
    other = only(tea(3), tea_fact(1, 2, text="Ann drinks green tea", **KEY), discriminator="draft.2")
    assert [proposal.appliable for proposal in promote.once(proposals=[other, one])] == [False, True]


def test_what_is_skipped_already_stands_in_nobodys_way() -> None:
    thin = only(tea(), tea_fact(0), discriminator="draft.1")
    full = only(tea(), tea_fact(0, 1, 2), discriminator="draft.2")
    assert promote.once(proposals=[thin, full]) == (thin, full)


def test_different_facts_stay() -> None:
    made = planned(tea(), tea_fact(0, 1, 2), tea_fact(0, 1, 2, text="Ann has green tea in the morning"))
    assert promote.once(proposals=made) == made
