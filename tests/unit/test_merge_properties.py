"""Whatever the records, a plan of merges keeps its promises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations, product
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from consolidation.candidates import Link, Met
from consolidation.merge import combine, contradicts, judge, merge_proposals, overlap
from consolidation.operations import Approval, Kind, Proposal
from consolidation.policy import Policy
from observations.records import Claim, MemoryKind, Record, StatedBy
from tests.unit.rows import PROFILE, all_links, day, row

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
                kind=draw(st.sampled_from([MemoryKind.FACT, MemoryKind.FACT, MemoryKind.STATE])),
                key_by=draw(st.sampled_from(["", "", "a model"])),
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
    rows: list[Record],
    links: list[Link],
    distinct: frozenset[tuple[int, int]] = frozenset(),
    taught: Mapping[str, str] | None = None,
) -> tuple[Proposal, ...]:
    policy = Policy(cluster_cap=3)
    return merge_proposals(rows, links, profile=PROFILE, policy=policy, distinct=distinct, cardinality=taught or {})


TAUGHT = st.sampled_from([{}, {"lives in": "one"}, {"lives in": "many"}])


@settings(max_examples=60, deadline=None)
@given(scopes(), TAUGHT, st.randoms(use_true_random=False))
def test_a_plan_is_the_same_whatever_the_order_of_rows_and_links(
    scope: tuple[list[Record], list[Link]], taught: dict[str, str], random: Random
) -> None:
    """C4: metamorphic; the same operation ids at any number of workers (DESIGN 8)."""
    rows, links = scope
    distinct = frozenset((link.a, link.b) for link in links[::3])
    first = plan(rows, links, distinct, taught)
    random.shuffle(rows)
    random.shuffle(links)
    again = plan(rows, links, distinct, taught)
    assert repr(again) == repr(first)  # products and signals too, which equality leaves out where they are hashed


@settings(max_examples=60, deadline=None)
@given(scopes(), TAUGHT)
def test_every_proposal_is_of_the_scope_whose_rows_it_names(
    scope: tuple[list[Record], list[Link]], taught: dict[str, str]
) -> None:
    """C6, R90, R106."""
    rows, links = scope
    elsewhere = [replace(record, scope_id=7) for record in rows]
    for proposal in plan(elsewhere, links, taught=taught):
        assert proposal.scope_id == 7
        assert set(proposal.sources) <= {record.id for record in rows}


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
            assert a.key == b.key or not any(a.key) or not any(b.key)
            assert a.normalised == b.normalised or (all(a.key) and cosines[a.id, b.id] >= 0.95)
            assert overlap(a, b)
            assert a.stated_by is b.stated_by
            assert max(a.chain, b.chain) < 3 or a.normalised == b.normalised
            assert a.kind is b.kind
            assert a.normalised == b.normalised or not (a.key_by or b.key_by)
            assert a.written_key == b.written_key


@settings(max_examples=60, deadline=None)
@given(scopes(), TAUGHT)
def test_no_appliable_merge_holds_two_values_of_a_key(
    scope: tuple[list[Record], list[Link]], taught: dict[str, str]
) -> None:
    """I16, R88; of a many-valued predicate too."""
    by_id = {record.id: record for record in scope[0]}
    for proposal in plan(*scope, taught=taught):
        if proposal.appliable and proposal.kind is Kind.MERGE:
            assert not any(contradicts(by_id[a], by_id[b]) for a, b in combinations(proposal.sources, 2))


@settings(max_examples=60, deadline=None)
@given(scopes(), TAUGHT)
def test_every_change_of_value_is_proposed_whole_and_none_of_a_many_valued_predicate(
    scope: tuple[list[Record], list[Link]], taught: dict[str, str]
) -> None:
    """R71, also without any link: every key of two objects is one question with every row of it."""
    rows, links = scope
    several = {
        a.key[:2]: tuple(row.id for row in rows if row.has_key and row.key[:2] == a.key[:2])
        for a, b in combinations(rows, 2)
        if contradicts(a, b)
    }
    many = taught.get("lives in") == "many"
    for met in (links, []):
        asked = [proposal for proposal in plan(rows, met, taught=taught) if proposal.kind is Kind.SUPERSEDE]
        assert all(proposal.awaits_review for proposal in asked)
        assert sorted(proposal.sources for proposal in asked) == ([] if many else sorted(several.values()))


@st.composite
def homes(draw: st.DrawFn) -> tuple[list[Record], list[Link]]:
    """Values of one key, each said in one way, so that rows of one value merge when their periods meet."""
    rows = []
    for number in range(1, draw(st.integers(2, 6)) + 1):
        place = draw(st.sampled_from(["Oslo", "Bergen"]))
        start, end = sorted([draw(DAYS), draw(DAYS)], key=lambda moment: (moment is None, moment or day("2000-01-01")))
        key = ("ann", "lives in", place)
        rows.append(row(number, f"Ann lives in {place}", key, valid_from=start, valid_to=end))
    return rows, all_links(rows)


@settings(max_examples=200, deadline=None)
@given(homes() | scopes(), st.data())
def test_no_change_of_value_is_lost_when_a_pass_is_applied_and_the_next_one_planned(
    scope: tuple[list[Record], list[Link]], data: st.DataObject
) -> None:
    """Two passes: what people judged stays judged, also through merges, and whatever they did not is still asked."""
    rows, links = scope
    pairs = [(a.id, b.id) for a, b in combinations(rows, 2) if contradicts(a, b)]
    judged = frozenset(data.draw(st.sets(st.sampled_from(pairs)))) if pairs else frozenset[tuple[int, int]]()
    made = plan(rows, links, judged)
    before = {proposal.sources for proposal in made if proposal.kind is Kind.SUPERSEDE}
    now, into = applied(rows, made)
    carried = frozenset((min(into[a], into[b]), max(into[a], into[b])) for a, b in judged)
    after = {proposal.sources for proposal in plan(now, [], carried) if proposal.kind is Kind.SUPERSEDE}
    assert {tuple(sorted({into[source] for source in sources})) for sources in before} == after


def claim_key(claim: Claim) -> tuple[str, str, str]:
    """The key that a merged row is written with."""
    return claim.subject, claim.predicate, claim.object


def applied(rows: list[Record], made: tuple[Proposal, ...]) -> tuple[list[Record], dict[int, int]]:
    """The rows after the automatic merges, and which row each became."""
    by_id = {record.id: record for record in rows}
    into = {record.id: record.id for record in rows}
    for proposal in made:
        if proposal.auto and proposal.keeper is not None:
            kept, sources = by_id[proposal.keeper], [by_id[source] for source in proposal.sources]
            claim = combine(sources, keeper=proposal.keeper).claim
            number = 100 + proposal.keeper
            told = [one for one in (kept, *sources) if one.key_by and one.normalised == kept.normalised]
            said = max(
                told, key=lambda one: sum(map(bool, one.key)), default=kept
            )  # as the runner hands on a given key
            keyed = kept if all(claim_key(claim)) else said
            by_id[number] = replace(
                kept,
                id=number,
                valid_from=claim.valid_from,
                valid_to=claim.valid_to,
                **{
                    name: getattr(keyed, name)
                    for name in ("key", "subject", "predicate", "object", "key_by", "own_key")
                },
            )
            into |= dict.fromkeys(proposal.sources, number)
    return [by_id[number] for number in sorted(set(into.values()))], into


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
    policy = Policy(mergeable=(MemoryKind.FACT,))
    for link, many in product(links, (False, True)):
        one = judge(by_id[link.a], by_id[link.b], link=link, profile=PROFILE, policy=policy, many_valued=many)
        other = judge(by_id[link.b], by_id[link.a], link=link, profile=PROFILE, policy=policy, many_valued=many)
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
