"""Which rows of one scope say one thing, and which contradict each other: records and links in, proposals out.

Similarity is a hint, the key is the gate (DESIGN 5). Every pair of a cluster is judged, keys included, so no keyless
row bridges two others and no cluster is a star (E2). A guard can send a pair to a person, never wave it through.

One record, one appliable proposal of a plan, in this order: an automatic merge takes its rows first; then a
contradiction takes its rows for a SUPERSEDE, unless a merge took one of them, in which case it is shown as waiting for
that merge; then merges for a person, strongest first. What is left of a chain is a skip that says it waits for the next
pass. A possible contradiction is a skip that a person still sees (C7), so it takes no rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import combinations
from typing import Final, Literal, TypeAlias

from consolidation import guards
from consolidation.candidates import Link, Met
from consolidation.guards import Objection
from consolidation.operations import Approval, Json, Kind, Proposal, obs
from consolidation.policy import Policy
from observations.embedding import Profile
from observations.records import Claim, Record, StatedBy

Objector: TypeAlias = Callable[[str, str], tuple[Objection, ...]]
Refiner: TypeAlias = Callable[[str, str], Literal["a", "b"] | None]
Pair: TypeAlias = tuple[int, int]

_PAIRS_SHOWN: Final = 28  # pairs listed in an operation's signals: all of 8 rows; of more rows, those of the keeper
# In texts that are worded differently anyway, another order or tense says little, unless specifics differ too: a person
# is asked all the same, without the alarm.
_WEAK: Final = frozenset({"order", "tense"})
_SPECIFICS: Final = frozenset({"number", "date", "identifier", "name", "quantifier"})
_WAITS: Final = "waits for the next pass"


class Verdict(StrEnum):
    """What one pair is to each other."""

    SAME = "same"  # one claim: an automatic merge, if every other pair of the cluster is too
    ASK = "ask"  # perhaps one claim: a person decides
    POSSIBLE = "possible contradiction"  # a guard sees opposite claims in similar words (C7)
    CONTRADICTION = "contradiction"  # one subject and predicate, different objects at one time (R71)
    PERIODS = "different periods"  # true at different times: two terms of an office, two values in turn
    SUBJECTS = "different subjects"  # about two subjects; only an alias could make them one claim (R46)
    FAR = "far"  # met through a key only; not similar, nothing to merge


@dataclass(frozen=True, slots=True)
class Judged:
    """One pair with its verdict; the same whichever record is named first."""

    link: Link
    verdict: Verdict
    failed: tuple[str, ...] = ()  # what stands against an automatic merge: rule and guard names, figures

    @property
    def pair(self) -> Pair:
        """The row ids, lower first."""
        return self.link.a, self.link.b

    @property
    def strength(self) -> float:
        """What the strongest pairs are taken first by: the cosine; 1 for identical texts, even without vectors."""
        return 1.0 if Met.TEXT in self.link.met else self.link.cosine

    def signals(self) -> dict[str, Json]:
        """The pair as an operation stores it."""
        known = self.link.cosine == self.link.cosine  # not nan
        return {
            "a": self.link.a,
            "b": self.link.b,
            "cosine": round(self.link.cosine, 4) if known else None,
            "met": list(self.link.met.names),
            "verdict": self.verdict.value,
            "failed": list(self.failed),
        }


def overlap(a: Record, b: Record) -> bool:
    """Whether two validity periods share a moment; None is open. Periods that only touch do not (they follow)."""
    return _before(a.valid_from, b.valid_to) and _before(b.valid_from, a.valid_to)


def _gap(a: Record, b: Record) -> bool:
    """Whether time passes between the two periods: united, they would claim that too."""
    return any(
        end is not None and start is not None and end < start
        for end, start in ((a.valid_to, b.valid_from), (b.valid_to, a.valid_from))
    )


def _before(start: datetime | None, end: datetime | None) -> bool:
    return start is None or end is None or start < end


def judge(
    a: Record, b: Record, *, link: Link, profile: Profile, policy: Policy, objections: Objector = guards.objections
) -> Judged:
    """What two records of one scope are to each other. Symmetric in a and b. Raises ValueError across scopes (C6)."""
    if a.scope_id != b.scope_id:
        raise ValueError("Records of two scopes are never compared.")
    identical = a.normalised == b.normalised and a.normalised != ""
    if not identical and not link.cosine >= profile.t_candidate:
        return Judged(link, Verdict.FAR)
    if a.key[0] and b.key[0] and a.key[0] != b.key[0]:
        return Judged(link, Verdict.SUBJECTS)
    if contradicts(a, b) and overlap(a, b):
        return Judged(link, Verdict.CONTRADICTION)
    if contradicts(a, b) or _gap(a, b):
        return Judged(link, Verdict.PERIODS)
    objected = objections(a.text, b.text)
    failed = _failed(a, b, link, identical, policy.merge_threshold(measured=profile.t_merge), policy.chain_cap)
    failed += tuple(sorted({f"guard {objection.guard}" for objection in objected}))
    if _opposed(objected):
        return Judged(link, Verdict.POSSIBLE, failed)
    return Judged(link, Verdict.ASK if failed else Verdict.SAME, failed)


def _opposed(objected: Sequence[Objection]) -> bool:
    """Whether the guards see opposite claims, not just two texts that each say something of their own."""
    named = {objection.guard for objection in objected}
    reworded = any(objection.guard == "wording" and not objection.possible_contradiction for objection in objected)
    weak = _WEAK if reworded and named.isdisjoint(_SPECIFICS) else frozenset[str]()
    return any(objection.possible_contradiction and objection.guard not in weak for objection in objected)


def contradicts(a: Record, b: Record) -> bool:
    """R71: the same non-empty subject and predicate, and different objects; periods are another question."""
    same_key = a.key[:2] == b.key[:2] and all(a.key[:2])
    return same_key and bool(a.key[2]) and bool(b.key[2]) and a.key[2] != b.key[2]


def _failed(a: Record, b: Record, link: Link, identical: bool, threshold: float, chain_cap: int) -> tuple[str, ...]:
    """The conditions of an automatic merge, guards apart, that a pair does not meet (DESIGN 4, R42, I16)."""
    failed = []
    if a.key != b.key:
        failed.append("keys differ")
    elif not identical and not a.has_key:
        failed.append("no key")
    if not identical and not link.cosine >= threshold:
        failed.append(f"similarity under {threshold:g}")
    if not overlap(a, b):
        failed.append("periods do not overlap")
    if a.stated_by is not b.stated_by:
        failed.append("different origins")  # a derived row takes the lowest: a person decides to lower a word (I12)
    if max(a.chain, b.chain) >= chain_cap:
        failed.append(f"merged {chain_cap} times already")
    return tuple(failed)


# --- clusters --------------------------------------------------------------------------------------------------------


def cliques(judged: Iterable[Judged], *, cap: int) -> list[tuple[int, ...]]:
    """Complete-link clusters of 2 to `cap` rows: strongest pair first, each row in one at most."""
    edges = sorted(judged, key=lambda pair: (-pair.strength, pair.pair))
    partners: defaultdict[int, set[int]] = defaultdict(set)
    for edge in edges:
        a, b = edge.pair
        partners[a].add(b)
        partners[b].add(a)
    cluster_of = {row: frozenset({row}) for row in partners}
    shared = {frozenset({row}): frozenset(others) for row, others in partners.items()}  # partners of every member
    for edge in edges:
        one, other = cluster_of[edge.link.a], cluster_of[edge.link.b]
        if one is other or len(one) + len(other) > cap or not other <= shared[one]:
            continue
        joined = one | other
        shared[joined] = shared.pop(one) & shared.pop(other)
        cluster_of.update(dict.fromkeys(joined, joined))
    return sorted(tuple(sorted(cluster)) for cluster in set(cluster_of.values()) if len(cluster) > 1)


def cover(judged: Iterable[Judged], *, cap: int) -> list[tuple[int, ...]]:
    """Cliques until every row with a pair is in one. Pairs whose rows are both shown already wait for the next pass."""
    left = list(judged)
    found: list[tuple[int, ...]] = []
    covered: set[int] = set()
    while left:
        new = cliques(left, cap=cap)
        found += new
        covered.update(row for cluster in new for row in cluster)
        left = [pair for pair in left if not covered.issuperset(pair.pair)]
    return found


# --- proposals -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Pass:
    """What one scope's pass knows while it decides; `taken` names, per row, what already took it."""

    records: Mapping[int, Record]
    judged: Mapping[Pair, Judged]
    policy: Policy
    refines: Refiner
    distinct: frozenset[Pair]
    taken: dict[int, Proposal] = field(default_factory=dict)
    proposals: list[Proposal] = field(default_factory=list)

    def of(self, *verdicts: Verdict) -> list[Judged]:
        """The pairs with one of these verdicts."""
        return [pair for pair in self.judged.values() if pair.verdict in verdicts]

    def add(self, proposal: Proposal) -> None:
        """Keep a proposal; an appliable one takes its rows."""
        self.proposals.append(proposal)
        if proposal.appliable:
            self.taken.update(dict.fromkeys(proposal.sources, proposal))

    def within(self, rows: Sequence[int]) -> list[Judged]:
        """The judged pairs of some rows, in order."""
        return [self.judged[pair] for pair in combinations(sorted(rows), 2) if pair in self.judged]


def merge_proposals(
    records: Iterable[Record],
    links: Iterable[Link],
    *,
    profile: Profile,
    policy: Policy,
    distinct: frozenset[Pair] = frozenset(),
    objections: Objector = guards.objections,
    refines: Refiner = guards.is_refinement,
) -> tuple[Proposal, ...]:
    """The merges, contradictions and skips of ONE scope's active records, the same in any order of rows and links.

    `distinct` holds the pairs (low id, high id) that a person judged to be different: never proposed together again.
    Raises ValueError when the records are of several scopes.
    """
    known = {record.id: record for record in records}
    if len({record.scope_id for record in known.values()}) > 1:
        raise ValueError("A pass plans one scope; its records are of several.")
    judged = {
        (link.a, link.b): judge(
            known[link.a], known[link.b], link=link, profile=profile, policy=policy, objections=objections
        )
        for link in sorted(links)
        if (link.a, link.b) not in distinct
    }
    state = _Pass(records=known, judged=judged, policy=policy, refines=refines, distinct=distinct)
    for cluster in cliques(state.of(Verdict.SAME), cap=policy.block_cap):
        state.add(_merge(state, cluster, Approval.AUTO))
    _contradictions(state)
    _for_a_person(state)
    _skips(state)
    return tuple(
        sorted(state.proposals, key=lambda proposal: (proposal.kind, proposal.sources, proposal.skipped_reason))
    )


def _merge(
    state: _Pass,
    cluster: tuple[int, ...],
    approval: Approval,
    skipped: str = "",
    pairs: Sequence[Judged] | None = None,
) -> Proposal:
    rows = [state.records[row] for row in cluster]
    pairs = state.within(cluster) if pairs is None else pairs
    richer = _richer(state, rows) if approval is Approval.NEEDS_HUMAN else {}
    kept = keeper(rows, poorer=frozenset(richer))
    shown = pairs if len(pairs) <= _PAIRS_SHOWN else [pair for pair in pairs if kept.id in pair.pair]
    signals: dict[str, Json] = {"pairs": [pair.signals() for pair in shown], "pairs_judged": len(pairs)}
    if richer:
        signals["refinements"] = [[poor, rich] for poor, rich in sorted(richer.items())]
    return Proposal(
        kind=Kind.MERGE,
        scope_id=rows[0].scope_id,
        sources=cluster,
        approval=approval,
        reason=_reason(len(rows), pairs, richer),
        score=_score(kept.id, pairs),
        skipped_reason=skipped,
        keeper=kept.id,
        signals=signals,
    )


def _richer(state: _Pass, rows: Sequence[Record]) -> dict[int, int]:
    """Rows that another row of the cluster only adds to, each with that row: the richer text is the one to keep."""
    richer: dict[int, int] = {}
    for a, b in combinations(rows, 2):
        side = state.refines(a.text, b.text)
        if side is not None:
            poor, rich = (b.id, a.id) if side == "a" else (a.id, b.id)
            richer.setdefault(poor, rich)
    return richer


def keeper(rows: Sequence[Record], *, poorer: frozenset[int] = frozenset()) -> Record:
    """R67: whose text stays: the highest origin, confidence and created_at; a `poorer` row only if all are.

    A user's word is kept as its user said it when any row is one (I12).
    """
    said = [row for row in rows if row.stated_by is StatedBy.USER] or list(rows)
    rich = [row for row in said if row.id not in poorer] or said
    return max(rich, key=lambda row: (row.stated_by.rank, row.confidence, row.created_at, -row.id))


def _score(kept: int, pairs: Sequence[Judged]) -> float | None:
    """R70: the lowest similarity to the keeper; None when a row has no vector."""
    cosines = [pair.link.cosine for pair in pairs if kept in pair.pair]
    return round(min(cosines), 4) if cosines and all(cosine == cosine for cosine in cosines) else None


def _reason(size: int, pairs: Sequence[Judged], richer: Mapping[int, int]) -> str:
    failed = sorted({name for pair in pairs for name in pair.failed})
    cosines = [pair.link.cosine for pair in pairs if pair.link.cosine == pair.link.cosine]
    lowest = f", similarity from {min(cosines):.3f}" if cosines else ", no vectors"
    if not failed and all(Met.TEXT in pair.link.met for pair in pairs):
        return f"{size} rows with identical normalised text and equal keys, no guard objects{lowest}"
    if not failed and pairs:
        return f"{size} rows with the same subject, predicate and object, no guard objects{lowest}"
    adds = "".join(f"; {obs(rich)} adds to {obs(poor)}" for poor, rich in sorted(richer.items())[:3])
    return f"{size} similar rows{lowest}; not automatic: {', '.join(failed) or 'see the pairs'}{adds}"[:480]


def _for_a_person(state: _Pass) -> None:
    """Merges that a person decides, strongest first, of rows that nothing else of this plan takes."""
    free = [pair for pair in state.of(Verdict.ASK, Verdict.SAME) if state.taken.keys().isdisjoint(pair.pair)]
    for cluster in cliques(free, cap=state.policy.cluster_cap):
        state.add(_merge(state, cluster, Approval.NEEDS_HUMAN))


def _skips(state: _Pass) -> None:
    """Every other pair, as few items as show each row: a skip is a result with a reason."""
    cap = state.policy.cluster_cap
    for cluster in cover(state.of(Verdict.POSSIBLE), cap=cap):
        named = sorted({name for pair in state.within(cluster) for name in pair.failed if name.startswith("guard ")})
        reason = f"{Verdict.POSSIBLE.value}: {', '.join(named)}"
        state.add(_merge(state, cluster, Approval.NEEDS_HUMAN, reason[:480]))
    for verdict in (Verdict.SUBJECTS, Verdict.PERIODS):
        for cluster in cover(state.of(verdict), cap=cap):
            state.add(_merge(state, cluster, Approval.NEVER, verdict.value))
    clustered = {
        pair for proposal in state.proposals if proposal.appliable for pair in combinations(proposal.sources, 2)
    }
    left = [pair for pair in state.of(Verdict.ASK, Verdict.SAME) if pair.pair not in clustered]
    for cluster in cover(left, cap=cap):
        ids = sorted({state.taken[row].id for row in cluster if row in state.taken})
        state.add(_merge(state, cluster, Approval.NEVER, f"{_WAITS}, after {', '.join(ids[:3])}"))


# --- contradictions --------------------------------------------------------------------------------------------------


def _contradictions(state: _Pass) -> None:
    """One SUPERSEDE per subject and predicate with every live value, and the skipped MERGE that says why (R97)."""
    by_key: defaultdict[tuple[str, str], list[Record]] = defaultdict(list)
    similar: defaultdict[tuple[str, str], list[Judged]] = defaultdict(list)
    for record in state.records.values():
        if record.has_key:
            by_key[record.key[:2]].append(record)
    for pair in state.of(Verdict.CONTRADICTION):
        similar[state.records[pair.link.a].key[:2]].append(pair)
    for key in sorted(by_key):
        rows = _live(by_key[key], state.distinct)
        decision = _supersede(state, rows) if rows else None
        if decision is not None:
            state.add(decision)
        if similar[key]:
            state.add(_refused(state, similar[key], decision))


def _live(rows: Sequence[Record], distinct: frozenset[Pair]) -> list[Record]:
    """The rows of one key that stand against another: different objects, periods that overlap, not judged before."""

    def stands_against(a: Record, b: Record) -> bool:
        judged = (min(a.id, b.id), max(a.id, b.id)) in distinct
        return a.key[2] != b.key[2] and not judged and overlap(a, b)

    ordered = sorted(rows, key=lambda row: row.id)
    return [row for row in ordered if any(stands_against(row, other) for other in ordered)]


def _supersede(state: _Pass, rows: Sequence[Record]) -> Proposal:
    values = len({row.key[2] for row in rows})
    waiting = sorted({state.taken[row.id].id for row in rows if row.id in state.taken})
    approval, skipped = Approval.NEEDS_HUMAN, ""
    if values > state.policy.many_values:
        approval, skipped = Approval.NEVER, f"{values} live values of one key: read as several at once, not as one"
    elif waiting:
        skipped = f"contradiction; {_WAITS}, after {', '.join(waiting[:3])}"
    newest = _newest(rows)
    return Proposal(
        kind=Kind.SUPERSEDE,
        scope_id=rows[0].scope_id,
        sources=tuple(row.id for row in rows),
        approval=approval,
        reason=f"contradiction: {len(rows)} rows hold {values} different objects for one subject and predicate",
        skipped_reason=skipped,
        keeper=newest.id,
        product={"suggested_keep": newest.id, "why": "newer is suggested, never assumed"},
        signals={
            "values": values,
            "pairs": [pair.signals() for pair in state.within([row.id for row in rows])[:_PAIRS_SHOWN]],
        },
    )


def _newest(rows: Sequence[Record]) -> Record:
    """The latest value: by the start of its period where every row has one, else by when it was first said."""
    dated = all(row.valid_from is not None for row in rows)
    return max(rows, key=lambda row: ((row.valid_from if dated else None) or row.created_at, row.created_at, row.id))


def _refused(state: _Pass, similar: Sequence[Judged], decision: Proposal | None) -> Proposal:
    """The merge that similarity alone would have made (R68, R69, R88)."""
    rows = tuple(sorted({row for pair in similar for row in pair.pair}))
    see = f"; see {decision.id}" if decision is not None else ""
    reason = f"contradiction: same subject and predicate, different object{see}"
    return _merge(state, rows, Approval.NEVER, reason, pairs=similar)


# --- what a merge makes ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Combined:
    """The row that an applied merge writes; evidence is united by the store."""

    claim: Claim  # without evidence
    uses_inherited: int  # for ranking only; clean-up counts uses since the derivation, which start at 0 (E6)
    chain: int
    derived_from: tuple[int, ...]  # sorted (R96)


def combine(records: Sequence[Record], *, keeper: int, policy: Policy | None = None) -> Combined:
    """The merged row: the keeper's text and key, everything else united (R72, R73, R95, I12, I14).

    Confidence rises by 0.01 per further distinct root, to the policy's cap, and never over the best of the user's own
    statements when one is among the sources. Raises KeyError when the keeper is not one of the records.
    """
    kept = {record.id: record for record in records}[keeper]
    starts = [record.valid_from for record in records]
    ends = [record.valid_to for record in records]
    claim = Claim(
        text=kept.text,
        subject=kept.subject,
        predicate=kept.predicate,
        object=kept.object,
        confidence=_confidence(records, (policy or Policy()).confidence_cap),
        stated_by=min((record.stated_by for record in records), key=lambda origin: origin.rank),
        created_at=min(record.created_at for record in records),
        valid_from=None if None in starts else min(start for start in starts if start is not None),
        valid_to=None if None in ends else max(end for end in ends if end is not None),
    )
    return Combined(
        claim=claim,
        uses_inherited=sum(record.uses for record in records),
        chain=max(record.chain for record in records) + 1,
        derived_from=tuple(sorted(record.id for record in records)),
    )


def _confidence(records: Sequence[Record], cap: float) -> float:
    roots = frozenset[str]().union(*(record.roots for record in records))
    best = max(record.confidence for record in records)
    raised = min(cap, best + 0.01 * (max(1, len(roots)) - 1))
    said = [record.confidence for record in records if record.stated_by is StatedBy.USER]
    return min(raised, max(said)) if said else raised


# --- blast radius ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Blast:
    """How much of a scope a plan would touch (DESIGN 4)."""

    rows: int  # distinct rows in appliable proposals
    limit: int  # rows that need no second confirmation

    @property
    def exceeded(self) -> bool:
        """True when applying it needs a second confirmation."""
        return self.rows > self.limit


def blast(proposals: Iterable[Proposal], *, scope_size: int, policy: Policy) -> Blast:
    """The blast radius of one scope's proposals among `scope_size` active rows."""
    touched = {row for proposal in proposals if proposal.appliable for row in proposal.sources}
    return Blast(rows=len(touched), limit=max(policy.blast_floor, int(policy.blast_share * scope_size)))
