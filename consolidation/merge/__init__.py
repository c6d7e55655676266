"""Which rows of one scope say one thing, and which contradict each other: records and links in, proposals out.

Similarity is a hint, the key is the gate (DESIGN 5). Every pair of a cluster is judged, keys included, so no keyless
row bridges two others and no cluster is a star (E2). A guard can send a pair to a person, never wave it through.

One record, one appliable proposal of a plan, in this order. A contradiction takes its rows first where a merge would
carry a verdict over to a row that nobody judged: the change would never be asked about. Else an automatic merge takes
its rows first, because one row a value is easier to decide between, and the SUPERSEDE is shown as waiting for it: it is
in the queue all the same, and a person who decides it lets the merge wait. Then contradictions take their rows, then
merges for a person, strongest first. What is left of a chain is a skip that says it waits for the next pass. A possible
contradiction is a skip that a person still sees (C7), so it takes no rows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from consolidation import guards
from consolidation.candidates import Link, Met
from consolidation.merge.clusters import cliques, cover
from consolidation.merge.combining import Blast, Combined, blast, combine
from consolidation.merge.editing import FIELDS, KEY, OWN, UNEDITED, Edits, edits_of, written
from consolidation.merge.judging import Judged, Objector, Pair, Verdict, contradicts, judge, overlap
from consolidation.merge.values import Key, Standing, beside, holds, several, standing, suggestion
from consolidation.operations import Approval, Json, Kind, Proposal, obs
from consolidation.policy import Policy
from observations.embedding import Profile
from observations.records import Record, StatedBy

__all__ = [
    "FIELDS",
    "KEY",
    "OWN",
    "UNEDITED",
    "Blast",
    "Combined",
    "Edits",
    "Judged",
    "Verdict",
    "blast",
    "cliques",
    "combine",
    "contradicts",
    "cover",
    "edits_of",
    "judge",
    "keeper",
    "merge_proposals",
    "overlap",
    "unasked",
    "written",
]

Refiner: TypeAlias = Callable[[str, str], Literal["a", "b"] | None]

_PAIRS_SHOWN: Final = 28  # pairs listed in an operation's signals: all of 8 rows; of more rows, those of the keeper
_WAITS: Final = "waits for the next pass"
_SEE: Final = "; see "
_NAMED: Final = re.compile("op_[0-9a-f]{32}")
_HELD_BACK: Final = "a question that the review budget holds back"
_UNTAUGHT: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(slots=True)
class _Pass:
    """What one scope's pass knows while it decides; `taken` names, per row, what already took it."""

    records: Mapping[int, Record]
    judged: dict[Pair, Judged]  # in ascending order of pairs
    policy: Policy
    refines: Refiner
    cardinality: Mapping[str, str]
    places: Mapping[int, int] = field(default_factory=dict)  # per row, its place by what it says and when
    held: dict[str, str] = field(default_factory=dict)  # per predicate, how many values it has at a time
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

    def free(self, *verdicts: Verdict) -> list[Judged]:
        """The pairs with one of these verdicts whose rows nothing of this plan takes."""
        return [pair for pair in self.of(*verdicts) if self.taken.keys().isdisjoint(pair.pair)]

    def together(self, pair: Judged) -> bool:
        """Whether one appliable proposal takes both rows of a pair, and so shows it."""
        one, other = (self.taken.get(row) for row in pair.pair)
        return one is not None and one is other

    def holds(self, record: Record) -> str:
        """How many values the predicate of a record has at a time; "" while nobody said."""
        predicate = record.key[1]
        if predicate not in self.held:
            self.held[predicate] = holds(predicate, policy=self.policy, cardinality=self.cardinality)
        return self.held[predicate]

    def within(self, rows: Sequence[int]) -> list[Judged]:
        """The judged pairs of some rows, in order; of thousands of rows, by looking at the pairs there are."""
        if len(rows) * (len(rows) - 1) // 2 <= len(self.judged):
            return [self.judged[pair] for pair in combinations(sorted(rows), 2) if pair in self.judged]
        chosen = set(rows)
        return [judged for pair, judged in self.judged.items() if chosen.issuperset(pair)]


def merge_proposals(
    records: Iterable[Record],
    links: Iterable[Link],
    *,
    profile: Profile,
    policy: Policy,
    distinct: frozenset[Pair] = frozenset(),
    rejected: Mapping[Kind, frozenset[Pair]] | None = None,
    cardinality: Mapping[str, str] = _UNTAUGHT,
    objections: Objector = guards.objections,
    refines: Refiner = guards.is_refinement,
) -> tuple[Proposal, ...]:
    """The merges, contradictions and skips of ONE scope's active records, the same in any order of rows and links.

    `records` holds the rows of all links, and every row of a key with several objects (candidates.contradicting).
    `distinct` holds the pairs (low id, high id) that a person judged to be different: never proposed together again.
    `rejected` holds, per kind, the pairs of refused operations whose sources and policy did not change since: not asked
    again, and no longer in the way of other operations on their rows.
    `cardinality` says "one" or "many" of normalised predicates, as reviewers taught it here; the policy's word wins.
    Raises ValueError when the records are of several scopes.
    """
    rows = list(records)
    if len({record.scope_id for record in rows}) > 1:
        raise ValueError("A pass plans one scope; its records are of several.")
    refused = rejected or {}
    known = {record.id: record for record in rows if record.kind not in policy.untouchable}
    state = _Pass(known, {}, policy, refines, cardinality, _places(known.values()))
    _judge(state, links, distinct | refused.get(Kind.MERGE, frozenset()), profile, objections)
    keys = _keys(state, distinct | refused.get(Kind.SUPERSEDE, frozenset()))
    _contradictions(state, [values for values, stands in keys if stands.first])
    if policy.merge:
        for cluster in cliques(state.free(Verdict.SAME), cap=policy.block_cap, places=state.places):
            state.add(_merge(state, cluster, Approval.AUTO))
    _contradictions(state, [values for values, stands in keys if not stands.first])
    if policy.merge:
        _for_a_person(state)
        _skips(state)
    return tuple(
        sorted(state.proposals, key=lambda proposal: (proposal.kind, proposal.sources, proposal.skipped_reason))
    )


def _judge(state: _Pass, links: Iterable[Link], apart: frozenset[Pair], profile: Profile, objections: Objector) -> None:
    """Judge every pair that the pass may see and nobody told apart."""
    for link in sorted(links):
        a, b = state.records.get(link.a), state.records.get(link.b)
        if a is None or b is None or (link.a, link.b) in apart:
            continue
        many = contradicts(a, b) and state.holds(a) == "many"
        state.judged[link.a, link.b] = judge(
            a, b, link=link, profile=profile, policy=state.policy, many_valued=many, objections=objections
        )


def _places(rows: Iterable[Record]) -> dict[int, int]:
    """Rows in an order that does not depend on when they were written; ids decide between what looks the same only."""
    ordered = sorted(rows, key=lambda row: (row.created_at, row.normalised, row.key, row.text, row.id))
    return {row.id: place for place, row in enumerate(ordered)}


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
    one_claim = all(pair.verdict is Verdict.SAME for pair in pairs)
    if not failed and one_claim and all(Met.TEXT in pair.link.met for pair in pairs):
        return f"{size} rows with identical normalised text and equal keys, no guard objects{lowest}"
    if not failed and one_claim and pairs:
        return f"{size} rows with the same subject, predicate and object, no guard objects{lowest}"
    adds = "".join(f"; {obs(rich)} adds to {obs(poor)}" for poor, rich in sorted(richer.items())[:3])
    return f"{size} similar rows{lowest}; not automatic: {', '.join(failed) or _not_one(pairs)}{adds}"[:480]


def _not_one(pairs: Sequence[Judged]) -> str:
    """Why rows that nothing else stands against are not one claim."""
    verdicts = {pair.verdict.value for pair in pairs if pair.verdict is not Verdict.SAME}
    return ", ".join(sorted(verdicts)) or "see the pairs"


def _for_a_person(state: _Pass) -> None:
    """Merges that a person decides, strongest first, of rows that nothing else of this plan takes."""
    for cluster in cliques(state.free(Verdict.ASK, Verdict.SAME), cap=state.policy.cluster_cap, places=state.places):
        state.add(_merge(state, cluster, Approval.NEEDS_HUMAN))


def _skips(state: _Pass) -> None:
    """Every other pair, as few items as show each row: a skip is a result with a reason."""
    cap = state.policy.cluster_cap
    for cluster in cover(state.of(Verdict.POSSIBLE), cap=cap, places=state.places):
        named = sorted({name for pair in state.within(cluster) for name in pair.failed if name.startswith("guard ")})
        reason = f"{Verdict.POSSIBLE.value}: {', '.join(named)}"
        state.add(_merge(state, cluster, Approval.NEEDS_HUMAN, reason[:480]))
    for verdict in (Verdict.SUBJECTS, Verdict.PERIODS):
        for cluster in cover(state.of(verdict), cap=cap, places=state.places):
            state.add(_merge(state, cluster, Approval.NEVER, verdict.value))
    _values_apart(state)
    left = [pair for pair in state.of(Verdict.ASK, Verdict.SAME) if not state.together(pair)]
    for cluster in cover(left, cap=cap, places=state.places):
        ids = sorted({state.taken[row].id for row in cluster if row in state.taken})
        state.add(_merge(state, cluster, Approval.NEVER, f"{_WAITS}, after {', '.join(ids[:3])}"))


# --- contradictions --------------------------------------------------------------------------------------------------


def _keys(state: _Pass, settled: frozenset[Pair]) -> list[tuple[list[Record], Standing]]:
    """The rows of each key that a person has to decide between: several objects, not all judged, not known as many."""
    judged = beside(state.records, settled)
    found = [(rows, standing(rows, judged)) for rows in several(state.records.values()).values()]
    return [(rows, stands) for rows, stands in found if stands.asked and state.holds(rows[0]) != "many"]


def _contradictions(state: _Pass, keys: Sequence[Sequence[Record]]) -> None:
    """One SUPERSEDE per key with every live value (R71, R97)."""
    for rows in keys:
        state.add(_supersede(state, rows))


def _supersede(state: _Pass, rows: Sequence[Record]) -> Proposal:
    known = state.holds(rows[0])
    waiting = sorted({state.taken[row.id].id for row in rows if row.id in state.taken})
    product = suggestion(rows, known=known)
    keep = product.get("suggested_keep")
    values = len({row.key[2] for row in rows})
    each = ", each in its own period" if product["suggested"] == "periods" else ""
    return Proposal(
        kind=Kind.SUPERSEDE,
        scope_id=rows[0].scope_id,
        sources=tuple(row.id for row in rows),
        approval=Approval.NEEDS_HUMAN,
        reason=f"contradiction: {len(rows)} rows hold {values} different objects for one subject and predicate{each}",
        skipped_reason=f"contradiction; {_WAITS}, after {', '.join(waiting[:3])}" if waiting else "",
        keeper=keep if isinstance(keep, int) else None,
        product=product,
        signals={
            "values": values,
            "holds": known or "unknown",
            "pairs": [pair.signals() for pair in state.within([row.id for row in rows])[:_PAIRS_SHOWN]],
        },
    )


def _values_apart(state: _Pass) -> None:
    """The merges that similarity alone would have made of different values: one skip per key (R68, R69, R88)."""
    asked = {
        state.records[proposal.sources[0]].key[:2]: proposal
        for proposal in state.proposals
        if proposal.kind is Kind.SUPERSEDE
    }
    similar: defaultdict[tuple[Verdict, Key], list[Judged]] = defaultdict(list)
    for pair in state.of(Verdict.CONTRADICTION, Verdict.VALUES):
        similar[pair.verdict, state.records[pair.link.a].key[:2]].append(pair)
    for (verdict, key), pairs in similar.items():
        rows = tuple(sorted({row for pair in pairs for row in pair.pair}))
        reason = verdict.value
        if verdict is Verdict.CONTRADICTION:
            see = f"{_SEE}{asked[key].id}" if key in asked else ""
            reason = f"contradiction: same subject and predicate, different object{see}"
        state.add(_merge(state, rows, Approval.NEVER, reason, pairs=pairs))


# --- after the budget ------------------------------------------------------------------------------------------------


def unasked(proposal: Proposal, *, held_back: Collection[str]) -> Proposal:
    """The same, naming no question that the review budget holds back: nothing is stored under such an id."""
    reason = proposal.skipped_reason
    if not any(name in held_back for name in _NAMED.findall(reason)):
        return proposal
    first, _, name = reason.partition(_SEE)
    if name in held_back:
        return replace(proposal, skipped_reason=f"{first}; it is {_HELD_BACK}")
    before, after, names = reason.partition(", after ")
    kept = [name for name in names.split(", ") if name not in held_back]
    return replace(proposal, skipped_reason=f"{before}{after}{', '.join([*kept, _HELD_BACK])}")
