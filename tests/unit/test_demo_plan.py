"""What the rules propose of the demo's rows, with the real embedder: what a visitor should find in the plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from functools import lru_cache
from hashlib import sha256
from itertools import combinations

from consolidation.candidates import Link, Met
from consolidation.decay import archive_proposals
from consolidation.merge import merge_proposals
from consolidation.operations import Approval, Kind, Proposal
from consolidation.prune import prune_proposals
from memory_site.demo import EARLIER_MERGES, LESSON, PRUNED, SCOPES
from observations.embedding import Matrix, MiniLM
from observations.normalise import key_part, normalised
from observations.records import MemoryKind, Record, StatedBy, Status
from tests.unit.demo_rows import (
    NOW,
    Row,
    active,
    by_place,
    deed_rows,
    moment,
    place,
    plain,
    policy_of,
    taken,
)


def as_record(number: int, row: Row) -> Record:
    text = taken(row, "text", str)
    return Record(
        id=number,
        scope_id=SCOPES.index(taken(row, "scope", str)) + 1,
        text=text,
        normalised=normalised(text),
        key=(part(row, "subject"), part(row, "predicate"), part(row, "object")),
        confidence=taken(row, "confidence", float),
        stated_by=StatedBy(taken(row, "stated_by", str)),
        created_at=moment(row),
        status=Status.ACTIVE,
        version=1,
        content_hash=sha256(text.encode()).hexdigest(),
        external_id=taken(row, "id", str),
        valid_from=moment(row, "valid_from") if "valid_from" in row else None,
        valid_to=moment(row, "valid_to") if "valid_to" in row else None,
        roots=frozenset(taken(row, "source_uris", list)),
        kind=(kind := MemoryKind(str(row.get("memory_kind", "fact")))),
        half_life_days=kind.half_life_days,
    )


def part(row: Row, name: str) -> str:
    return key_part(taken(row, name, str)) if name in row else ""


def met_by(a: Record, b: Record, cosine: float) -> Met:
    met = Met(0)
    if a.normalised == b.normalised:
        met |= Met.TEXT
    if a.has_key and a.key[:2] == b.key[:2]:
        met |= Met.SUBJECT_PREDICATE
    return met | Met.NEIGHBOUR if cosine >= MiniLM.profile.t_candidate else met


def planned_for(records: list[Record], vectors: Matrix) -> Iterator[Proposal]:
    """One scope's proposals, every pair compared."""
    links = []
    for (i, a), (j, b) in combinations(enumerate(records), 2):
        cosine = float(vectors[i] @ vectors[j])
        if met := met_by(a, b, cosine):
            links.append(Link(a.id, b.id, cosine, met))
    policy = policy_of(SCOPES[records[0].scope_id - 1])
    lessons = {plain(deed_rows(LESSON)[0], "predicate"): "many"}
    yield from merge_proposals(records, links, profile=MiniLM.profile, policy=policy, cardinality=lessons)
    yield from archive_proposals(records, policy=policy, now=NOW, used_since={})
    yield from prune_proposals(records, (), policy=policy, now=NOW)


@lru_cache(maxsize=1)
def records_by_number() -> dict[int, Record]:
    """The live rows, but for those that the earlier week took."""
    gone = {(done.scope, source) for done in (*EARLIER_MERGES, PRUNED) for source in done.sources}
    return {number: as_record(number, row) for number, row in enumerate(active(), 1) if place(row) not in gone}


@lru_cache(maxsize=1)
def planned() -> tuple[Proposal, ...]:
    """What the rules propose, with the real embedder, once the earlier week has taken its rows."""
    records = list(records_by_number().values())
    vectors = MiniLM().embed([record.text for record in records])
    found: list[Proposal] = []
    for scope_id in range(1, len(SCOPES) + 1):
        mine = [at for at, record in enumerate(records) if record.scope_id == scope_id]
        found += planned_for([records[at] for at in mine], vectors[mine])
    return tuple(found)


def counted(kind: Kind, approval: Approval, *, skipped: str = "") -> int:
    """Proposals of one kind and approval, skipped for a reason that starts like this, or not skipped."""
    return sum(
        proposal.kind is kind
        and proposal.approval is approval
        and bool(proposal.skipped_reason) == bool(skipped)
        and proposal.skipped_reason.startswith(skipped)
        for proposal in planned()
    )


def test_fifteen_to_twenty_five_merges_are_safe_and_as_many_wait_for_a_person() -> None:
    """R42: a visitor sees both what the rules may do alone and what they may not."""
    assert 15 <= counted(Kind.MERGE, Approval.AUTO) <= 25
    assert 10 <= counted(Kind.MERGE, Approval.NEEDS_HUMAN) <= 25


def test_guards_stop_pairs_that_similarity_alone_would_merge() -> None:
    """C7: numbers, versions, negations and directions; at least six of the pairs have one key."""
    assert counted(Kind.MERGE, Approval.NEEDS_HUMAN, skipped="possible contradiction") >= 12
    for scope, first, second in (
        ("team/relay-platform", "relay-o072", "relay-o073"),
        ("team/relay-platform", "relay-o020", "relay-o021"),
        ("team/relay-platform", "relay-o099", "relay-o100"),
        ("support/harbor-desk", "harbor-o043", "harbor-o044"),
        ("people/maya-okafor", "maya-o068", "maya-o069"),
        ("research/tidewater-lab", "tidewater-o048", "tidewater-o049"),
        ("research/tidewater-lab", "tidewater-o082", "tidewater-o083"),
    ):
        a, b = by_place()[scope, first], by_place()[scope, second]
        assert all(plain(a, name) == plain(b, name) for name in ("subject", "predicate", "object")), first
        assert frozenset((first, second)) not in merged_alone(), first


def merged_alone() -> set[frozenset[str]]:
    """Pairs of external ids that an automatic merge would unite."""
    ids = {number: taken(row, "id", str) for number, row in enumerate(active(), 1)}
    return {
        frozenset((ids[a], ids[b]))
        for proposal in planned()
        if proposal.approval is Approval.AUTO and not proposal.skipped_reason
        for a, b in combinations(proposal.sources, 2)
    }


def test_every_contradiction_waits_for_a_person_and_so_does_every_prune() -> None:
    """R43, R62."""
    assert 10 <= counted(Kind.SUPERSEDE, Approval.NEEDS_HUMAN) <= 16
    assert 5 <= counted(Kind.PRUNE, Approval.NEEDS_HUMAN) <= 8


def of(kind: Kind) -> list[Proposal]:
    return [proposal for proposal in planned() if proposal.kind is kind]


def test_what_is_suggested_of_several_values_is_once_the_newest_once_each_period_once_that_all_are_true() -> None:
    """Decision 0009: three ways out, each to be seen."""
    suggested = Counter(proposal.product["suggested"] for proposal in of(Kind.SUPERSEDE))
    assert suggested["newest"] >= 8
    assert (suggested["periods"], suggested["many"]) == (1, 1)


def test_what_was_taught_is_not_asked_again() -> None:
    """The lesson's rows are in no proposal."""
    ids = {number for number, record in records_by_number().items() if record.external_id in LESSON.sources}
    assert len(ids) == len(LESSON.sources)
    assert not any(ids & set(proposal.sources) for proposal in planned())


def test_seven_remarks_and_a_few_old_claims_have_faded_and_no_users_word_among_them() -> None:
    """DESIGN 4, decay: by its half-life a row is weaker than the policy's share; a user's word stays however weak."""
    faded = [records_by_number()[proposal.sources[0]] for proposal in of(Kind.ARCHIVE) if proposal.appliable]
    kinds = Counter(record.kind for record in faded)
    assert kinds[MemoryKind.NOTE] + kinds[MemoryKind.STATE] == 7
    assert 1 <= kinds[MemoryKind.FACT] <= 6
    assert not any(record.stated_by is StatedBy.USER for record in faded)
    weak = [row for row in active() if row.get("memory_kind") == "state" and row["stated_by"] == "user"]
    assert all(NOW - moment(row) > timedelta(days=30) for row in weak)
    assert len(weak) == 1


def test_a_preference_waits_for_a_person_and_who_somebody_is_is_left_alone() -> None:
    """R32: what may be merged, and what must never be touched, as the four answers say."""
    waiting = [proposal for proposal in of(Kind.MERGE) if "kind not mergeable by policy" in proposal.reason]
    assert len(waiting) == 1
    untouchable = {number for number, record in records_by_number().items() if record.kind is MemoryKind.IDENTITY}
    assert len(untouchable) >= 5
    assert not any(untouchable & set(proposal.sources) for proposal in planned())


def test_people_are_asked_more_than_the_small_budget_allows() -> None:
    """Some questions are held back."""
    place_of = SCOPES.index("team/relay-platform") + 1
    asked = [one for one in planned() if one.scope_id == place_of and one.awaits_review]
    assert (policy_of("team/relay-platform").review_budget or 0) < len(asked)
