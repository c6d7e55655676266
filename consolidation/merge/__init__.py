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
from itertools import combinations
from typing import Final, Literal, TypeAlias

from consolidation import guards
from consolidation.candidates import Link, Met
from consolidation.merge.clusters import cliques, cover
from consolidation.merge.combining import Blast, Combined, blast, combine
from consolidation.merge.judging import Judged, Objector, Pair, Verdict, contradicts, judge, overlap
from consolidation.operations import Approval, Json, Kind, Proposal, obs
from consolidation.policy import Policy
from observations.embedding import Profile
from observations.records import Record, StatedBy

__all__ = [
    "Blast",
    "Combined",
    "Judged",
    "Verdict",
    "blast",
    "cliques",
    "combine",
    "contradicts",
    "cover",
    "judge",
    "keeper",
    "merge_proposals",
    "overlap",
]

Refiner: TypeAlias = Callable[[str, str], Literal["a", "b"] | None]

_PAIRS_SHOWN: Final = 28  # pairs listed in an operation's signals: all of 8 rows; of more rows, those of the keeper
_WAITS: Final = "waits for the next pass"


@dataclass(slots=True)
class _Pass:
    """What one scope's pass knows while it decides; `taken` names, per row, what already took it."""

    records: Mapping[int, Record]
    judged: Mapping[Pair, Judged]
    policy: Policy
    refines: Refiner
    settled: frozenset[Pair]  # pairs that no SUPERSEDE asks about again
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
    rejected: Mapping[Kind, frozenset[Pair]] | None = None,
    objections: Objector = guards.objections,
    refines: Refiner = guards.is_refinement,
) -> tuple[Proposal, ...]:
    """The merges, contradictions and skips of ONE scope's active records, the same in any order of rows and links.

    `distinct` holds the pairs (low id, high id) that a person judged to be different: never proposed together again.
    `rejected` holds, per kind, the pairs of refused operations whose sources and policy did not change since: not asked
    again, and no longer in the way of other operations on their rows.
    Raises ValueError when the records are of several scopes.
    """
    known = {record.id: record for record in records}
    if len({record.scope_id for record in known.values()}) > 1:
        raise ValueError("A pass plans one scope; its records are of several.")
    refused = rejected or {}
    apart = distinct | refused.get(Kind.MERGE, frozenset())
    settled = distinct | refused.get(Kind.SUPERSEDE, frozenset())
    judged = {
        (link.a, link.b): judge(
            known[link.a], known[link.b], link=link, profile=profile, policy=policy, objections=objections
        )
        for link in sorted(links)
        if (link.a, link.b) not in apart
    }
    state = _Pass(records=known, judged=judged, policy=policy, refines=refines, settled=settled)
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
        rows = _live(by_key[key], state.settled)
        decision = _supersede(state, rows) if rows else None
        if decision is not None:
            state.add(decision)
        if similar[key]:
            state.add(_refused(state, similar[key], decision))


def _live(rows: Sequence[Record], settled: frozenset[Pair]) -> list[Record]:
    """The rows of one key that stand against another: different objects, periods that overlap, not judged before."""

    def stands_against(a: Record, b: Record) -> bool:
        judged = (min(a.id, b.id), max(a.id, b.id)) in settled
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
