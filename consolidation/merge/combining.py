"""What a merge makes of its sources, and how much of a scope a plan would touch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from consolidation.operations import Proposal
from consolidation.policy import Policy
from observations.records import Claim, Record, StatedBy


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
