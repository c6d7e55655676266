"""Whatever the records, a plan of merges keeps its promises."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from consolidation.candidates import Link, Met
from consolidation.merge import contradicts, judge, merge_proposals, overlap
from consolidation.operations import Approval, Kind, Proposal
from consolidation.policy import Policy
from observations.records import Record, StatedBy
from tests.unit.rows import PROFILE, day, row

TEXTS = st.sampled_from(
    [
        "Ann lives in Oslo",
        "ann lives in oslo.",
        "Ann does not live in Oslo",
        "Ann lives in Bergen",
        "Ann has lived in Oslo since 2019",
        "The client makes 3 retries",
        "The client makes 5 retries",
        "",
    ]
)
PARTS = st.sampled_from(["", "ann", "bob"]), st.sampled_from(["", "lives in"]), st.sampled_from(["", "oslo", "bergen"])
DAYS = st.none() | st.sampled_from([day(f"20{year}-01-01") for year in (10, 12, 14, 16)])


@st.composite
def records(draw: st.DrawFn) -> list[Record]:
    found = []
    for number in range(1, draw(st.integers(2, 9)) + 1):
        start, end = sorted([draw(DAYS), draw(DAYS)], key=lambda moment: (moment is None, moment or day("2000-01-01")))
        found.append(
            row(
                number,
                draw(TEXTS),
                draw(st.tuples(*PARTS)),
                confidence=draw(st.sampled_from([0.3, 0.9])),
                stated_by=draw(st.sampled_from([StatedBy.USER, StatedBy.AGENT])),
                chain=draw(st.sampled_from([0, 3])),
                valid_from=start,
                valid_to=end,
            )
        )
    return found


@st.composite
def scopes(draw: st.DrawFn) -> tuple[list[Record], list[Link]]:
    rows = draw(records())
    links = []
    for a, b in combinations(rows, 2):
        same = a.normalised == b.normalised != ""
        cosine = draw(st.sampled_from([0.2, 0.87, 0.94, 0.95, 0.99, float("nan")]))
        if same or cosine >= 0.86 or draw(st.booleans()):
            links.append(Link(a.id, b.id, cosine, Met.TEXT if same else Met.NEIGHBOUR))
    return rows, links


def plan(
    rows: list[Record], links: list[Link], distinct: frozenset[tuple[int, int]] = frozenset()
) -> tuple[Proposal, ...]:
    return merge_proposals(rows, links, profile=PROFILE, policy=Policy(cluster_cap=3), distinct=distinct)


@settings(max_examples=60, deadline=None)
@given(scopes(), st.randoms(use_true_random=False))
def test_a_plan_is_the_same_whatever_the_order_of_rows_and_links(
    scope: tuple[list[Record], list[Link]], random: Random
) -> None:
    """C4: metamorphic; the same operation ids at any number of workers (DESIGN 8)."""
    rows, links = scope
    first = plan(rows, links)
    random.shuffle(rows)
    random.shuffle(links)
    assert plan(rows, links) == first


@settings(max_examples=60, deadline=None)
@given(scopes())
def test_a_record_is_in_at_most_one_appliable_proposal_and_every_id_is_there_once(
    scope: tuple[list[Record], list[Link]],
) -> None:
    """DESIGN 4, I4."""
    made = plan(*scope)
    taken = Counter(source for proposal in made if proposal.appliable for source in proposal.sources)
    assert all(times == 1 for times in taken.values())
    assert len({proposal.id for proposal in made}) == len(made)


@settings(max_examples=100, deadline=None)
@given(scopes())
def test_every_pair_of_an_automatic_merge_meets_every_condition(scope: tuple[list[Record], list[Link]]) -> None:
    """DESIGN 4 and 5, I12, I16: cliques, keys included."""
    rows, links = scope
    by_id = {record.id: record for record in rows}
    cosines = {(link.a, link.b): link.cosine for link in links}
    for proposal in plan(rows, links):
        if not proposal.auto:
            continue
        assert proposal.kind is Kind.MERGE
        for a, b in combinations([by_id[source] for source in proposal.sources], 2):
            assert a.key == b.key
            assert a.normalised == b.normalised or (all(a.key) and cosines[a.id, b.id] >= 0.95)
            assert overlap(a, b)
            assert a.stated_by is b.stated_by
            assert max(a.chain, b.chain) < 3


@settings(max_examples=60, deadline=None)
@given(scopes())
def test_no_appliable_merge_holds_a_contradiction(scope: tuple[list[Record], list[Link]]) -> None:
    """I16, R88."""
    by_id = {record.id: record for record in scope[0]}
    for proposal in plan(*scope):
        if proposal.appliable and proposal.kind is Kind.MERGE:
            assert not any(contradicts(by_id[a], by_id[b]) for a, b in combinations(proposal.sources, 2))


@settings(max_examples=60, deadline=None)
@given(scopes())
def test_nothing_is_dropped_without_a_word(scope: tuple[list[Record], list[Link]]) -> None:
    """STYLE 9: a skip is a result. Every row of a similar pair is in some proposal, and every skip has its reason."""
    rows, links = scope
    by_id = {record.id: record for record in rows}
    similar = {
        source
        for link in links
        if link.cosine >= 0.86 or by_id[link.a].normalised == by_id[link.b].normalised != ""
        for source in (link.a, link.b)
    }
    made = plan(rows, links)
    assert similar <= {source for proposal in made for source in proposal.sources}
    assert all(proposal.skipped_reason for proposal in made if proposal.approval is Approval.NEVER)
    assert all(len(proposal.reason) <= 500 and len(proposal.skipped_reason) <= 500 for proposal in made)


@settings(max_examples=60, deadline=None)
@given(scopes())
def test_verdicts_are_symmetric(scope: tuple[list[Record], list[Link]]) -> None:
    rows, links = scope
    by_id = {record.id: record for record in rows}
    for link in links:
        one = judge(by_id[link.a], by_id[link.b], link=link, profile=PROFILE, policy=Policy())
        other = judge(by_id[link.b], by_id[link.a], link=link, profile=PROFILE, policy=Policy())
        assert repr(one) == repr(other)


@settings(max_examples=60, deadline=None)
@given(scopes())
def test_a_distinct_pair_is_in_no_proposal_together_except_beside_a_new_value(
    scope: tuple[list[Record], list[Link]],
) -> None:
    """A SUPERSEDE shows every live value of its key, also two that were judged before, when a third one came."""
    rows, links = scope
    distinct = frozenset((link.a, link.b) for link in links[::2])
    for proposal in plan(rows, links, distinct=distinct):
        if proposal.kind is Kind.MERGE and proposal.appliable:
            assert distinct.isdisjoint(combinations(proposal.sources, 2))
