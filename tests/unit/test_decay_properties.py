"""Whatever the policy and the rows: what a user said leaves at a person's request only (C10, R47, I12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from random import Random

from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from consolidation.decay import archive_proposals
from consolidation.operations import Approval, Kind, Proposal
from consolidation.policy import Policy, Retention
from consolidation.prune import Spent, prune_proposals
from observations.records import MemoryKind, Record, StatedBy, Status
from tests.unit.rows import day, row

NOW = day("2025-06-01")
KINDS = st.sampled_from(MemoryKind)
OTHERS = st.sampled_from([origin for origin in StatedBy if origin is not StatedBy.USER])
DAYS = st.integers(1, 2_000)
ANY = settings(phases=[Phase.generate], max_examples=5_000, deadline=None)  # an example, not the smallest one


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Any policy, the greediest among them."""
    rules = st.builds(Retention, OTHERS, DAYS, st.booleans(), st.none() | KINDS)
    return Policy(
        archive=draw(st.booleans() | st.just(True)),
        prune=draw(st.booleans() | st.just(True)),
        untouchable=tuple(draw(st.sets(KINDS, max_size=2))),
        keep_days=draw(st.sampled_from([0, 0, 30, 500])),
        retention=tuple(draw(st.lists(rules, max_size=4))),
        archive_below=draw(st.sampled_from([0.0, 0.02, 0.10, 0.5])),
    )


@st.composite
def records(draw: st.DrawFn, first: int, statuses: Sequence[Status]) -> list[Record]:
    """Up to six rows, from an id on."""
    found = []
    for number in range(first, first + draw(st.integers(0, 6))):
        made = row(
            number,
            "x",
            created_at=NOW - timedelta(days=draw(st.integers(-2, 3_000))),
            stated_by=draw(st.sampled_from(StatedBy)),
            status=draw(st.sampled_from(statuses)),
            uses=draw(st.sampled_from([0, 0, 3])),
        )
        half_life = draw(st.sampled_from([None, 1, 3, 7, 30, 180]))
        found.append(replace(made, kind=draw(KINDS), half_life_days=half_life))
    return found


@dataclass(frozen=True)
class Case:
    """One scope, as the planner hands it to the rules."""

    live: list[Record]
    decayed: list[Record]
    spent: list[Spent]
    protected: frozenset[int]
    taken: frozenset[int]
    used_days_ago: dict[int, int]
    policy: Policy
    now: datetime = NOW

    @property
    def rows(self) -> dict[int, Record]:
        sources = [source for spent in self.spent for source in spent.sources]
        return {record.id: record for record in (*self.live, *self.decayed, *sources)}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    live = draw(records(1, [Status.ACTIVE, Status.ACTIVE, Status.QUARANTINED]))
    decayed = draw(records(100, [Status.ARCHIVED]))
    sources = draw(records(200, [Status.ARCHIVED, Status.ARCHIVED, Status.ACTIVE]))
    spent = [Spent(row(300, "x"), tuple(sources), draw(st.integers(0, 2)))]
    ids = [record.id for record in (*live, *decayed, *sources)]
    some = st.frozensets(st.sampled_from(ids), max_size=3) if ids else st.just(frozenset[int]())
    used = draw(st.dictionaries(st.sampled_from(ids), st.integers(-1, 400), max_size=3)) if ids else {}
    return Case(live, decayed, spent, draw(some), draw(some), used, draw(policies()))


def proposals(case: Case) -> tuple[Proposal, ...]:
    archives = archive_proposals(
        case.live,
        policy=case.policy,
        now=case.now,
        used_since={pk: NOW - timedelta(days=days) for pk, days in case.used_days_ago.items()},
        protected=case.protected,
        taken=case.taken,
    )
    prunes = prune_proposals(
        case.live,
        case.spent,
        policy=case.policy,
        now=case.now,
        decayed=case.decayed,
        protected=case.protected,
        taken=case.taken,
    )
    return (*archives, *prunes)


def sources(made: Sequence[Proposal], kind: Kind | None = None) -> set[int]:
    return {source for proposal in made if kind in (None, proposal.kind) for source in proposal.sources}


@settings(max_examples=400, deadline=None)
@given(cases())
def test_no_user_stated_row_is_ever_proposed_for_archive_or_prune(case: Case) -> None:
    """C10, R47, I12: not by half-life, retention, or as a used-up source; nor a row that carries a user's word."""
    rows = case.rows
    for source in sources(proposals(case)):
        assert rows[source].stated_by is not StatedBy.USER
        assert source not in case.protected


def test_the_same_rows_said_by_a_tool_would_be_proposed() -> None:
    """The control of the property above: rules that did not look at the origin would propose users' rows each way."""

    def disguised(case: Case, kind: Kind) -> bool:
        users = {pk for pk, record in case.rows.items() if record.stated_by is StatedBy.USER}
        blind = replace(
            case,
            live=[replace(record, stated_by=StatedBy.TOOL) for record in case.live],
            decayed=[],
            spent=[
                replace(one, sources=tuple(replace(source, stated_by=StatedBy.TOOL) for source in one.sources))
                for one in case.spent
            ],
        )
        return bool(users & sources(proposals(blind), kind))

    for kind in (Kind.ARCHIVE, Kind.PRUNE):
        assert find(cases(), lambda case, kind=kind: disguised(case, kind), settings=ANY) is not None  # type: ignore[misc]


@settings(max_examples=200, deadline=None)
@given(cases())
def test_what_the_policy_keeps_is_not_proposed(case: Case) -> None:
    """R32: kinds that are not to be touched, and the years of a retention duty."""
    rows, made = case.rows, proposals(case)
    for source in sources(made):
        assert rows[source].kind not in case.policy.untouchable
        assert rows[source].created_at <= NOW - timedelta(days=case.policy.keep_days)
    assert case.policy.archive or not sources(made, Kind.ARCHIVE)
    assert case.policy.prune or not sources(made, Kind.PRUNE)


@settings(max_examples=200, deadline=None)
@given(cases())
def test_every_prune_waits_for_a_person_and_every_archive_is_one_live_row(case: Case) -> None:
    """R62, C10."""
    for made in proposals(case):
        if made.kind is Kind.PRUNE:
            assert made.approval is not Approval.AUTO
        else:
            [source] = made.sources
            assert case.rows[source].status is Status.ACTIVE
            assert made.auto == (source not in case.taken)


@settings(max_examples=100, deadline=None)
@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing(case: Case, random: Random) -> None:
    """C12: planning twice gives the same items in the same order."""
    shuffled = replace(case, live=random.sample(case.live, len(case.live)), spent=[*reversed(case.spent)])
    assert proposals(shuffled) == proposals(case)


# --- C10, night by night ---------------------------------------------------------------------------------------------


def idle() -> Case:
    """C10's scope as it stands today, all of it said 200 days ago."""

    def said(number: int, stated_by: StatedBy, status: Status = Status.ACTIVE) -> Record:
        record = row(number, "x", stated_by=stated_by, status=status, created_at=NOW - timedelta(days=200))
        return replace(record, half_life_days=MemoryKind.FACT.half_life_days)

    used, unused = (
        [said(number, StatedBy.AGENT, Status.ARCHIVED) for number in numbers]
        for numbers in ((21, 22, 23), (24, 25, 26))
    )
    users = [said(number, StatedBy.USER) for number in range(1, 9)]
    extracted = [said(number, StatedBy.AGENT) for number in range(11, 17)]
    spent = [
        *(Spent(said(30 + number, StatedBy.AGENT), (source,), 1) for number, source in enumerate(used)),
        *(Spent(said(40 + number, StatedBy.AGENT), (source,), 0) for number, source in enumerate(unused)),
    ]
    return Case([*users, *extracted], [], spent, frozenset(), frozenset(), {}, Policy())


def nightly(policy: Policy, nights: int = 200) -> list[tuple[Proposal, ...]]:
    """What is proposed night after night while nobody reads or decides anything."""
    case = replace(idle(), policy=policy)
    return [proposals(replace(case, now=NOW + timedelta(days=night))) for night in range(nights)]


def test_by_default_two_hundred_nights_propose_nothing() -> None:
    """C10: an idle account is not an empty account."""
    assert set(nightly(Policy())) == {()}


def test_with_prune_on_the_sources_of_used_rows_are_proposed_and_nothing_else() -> None:
    """C10: the three sources whose derived row was never used stay, and so does every fact."""
    every = nightly(Policy(prune=True))
    assert {frozenset(sources(night)) for night in every} == {frozenset({21, 22, 23})}
    assert {proposal.approval for night in every for proposal in night} == {Approval.NEEDS_HUMAN}


def test_with_everything_on_extracted_facts_go_one_day_and_a_users_never() -> None:
    """C10, from the first night to the four hundredth: what is proposed once is proposed alike ever after."""
    rule = Retention(StatedBy.AGENT, older_than_days=300)
    every = nightly(Policy(archive=True, prune=True, retention=(rule,)), nights=401)
    for night, later in pairwise(every):
        assert sources(night) <= sources(later)
        assert {(one.id, one.reason) for one in night} <= {(one.id, one.reason) for one in later}
    assert sources(every[0]) == {21, 22, 23}
    assert sources(every[-1], Kind.ARCHIVE) == set(range(11, 17))
    assert sources(every[-1], Kind.PRUNE) == {*range(11, 17), 21, 22, 23}
