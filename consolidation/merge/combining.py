"""What a merge makes of its sources, and how much of a scope a plan would touch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from consolidation.merge.editing import KEY, UNEDITED, Edits
from consolidation.operations import Kind, Proposal
from consolidation.policy import Policy
from observations.records import Claim, Record, StatedBy


@dataclass(frozen=True, slots=True)
class Combined:
    """The row that an applied merge writes; evidence is united by the store."""

    claim: Claim  # without evidence
    uses_inherited: int  # for ranking only; clean-up counts uses since the derivation, which start at 0 (E6)
    chain: int  # merges below it, one after the other, that joined different words or keys
    derived_from: tuple[int, ...]  # what its lineage names, sorted (R96)


_UNDERIVED: Final[Mapping[int, Sequence[int]]] = MappingProxyType({})


def combine(
    records: Sequence[Record],
    *,
    keeper: int,
    policy: Policy | None = None,
    came_from: Mapping[int, Sequence[int]] = _UNDERIVED,
    edits: Edits = UNEDITED,
) -> Combined:
    """The merged row: the keeper's text, kind and key, everything else united (R72, R73, R95, I12, I14).

    Confidence rises from the surest source by 0.01 per distinct root that it does not have, to the policy's cap, and
    never over the best of the user's own statements when one is among the sources. Periods are united unless time lies
    between them, which no source claims: then the keeper's own stays. A keeper without a whole key takes over the one
    that the others give: it is one claim. `came_from` is what the lineage of a merged row among them names. What a
    reviewer edited says what they chose; own words are no source's, so the sources corroborate nothing by them, and
    they count as an operator's at most.

    Raises KeyError when the keeper, or a source whose value is taken, is not one of the records.
    """
    return Combined(
        claim=_claim(records, keeper, policy or Policy(), edits),
        uses_inherited=sum(record.uses for record in records),
        chain=max(record.chain for record in records) + 1 if edits else _chain(records),
        derived_from=tuple(sorted(record.id for record in records)) if edits else _named(records, came_from),
    )


def _claim(records: Sequence[Record], keeper: int, policy: Policy, edits: Edits) -> Claim:
    by_id = {record.id: record for record in records}
    kept, sort = by_id[keeper], by_id[edits.take.get("kind", keeper)]
    subject, predicate, object_ = (
        edits.value(name, rule=rule, records=by_id) for name, rule in zip(KEY, _key(kept, records), strict=True)
    )
    start, end = (kept.valid_from, kept.valid_to) if _apart_in_time(records) else _union(records)
    return Claim(
        text=edits.value("text", rule=kept.text, records=by_id),
        subject=subject,
        predicate=predicate,
        object=object_,
        confidence=_confidence(records, policy.confidence_cap, own=bool(edits.own)),
        stated_by=_stated_by(records, own=bool(edits.own)),
        kind=sort.kind,
        half_life_days=sort.half_life_days,
        created_at=min(record.created_at for record in records),
        valid_from=start,
        valid_to=end,
    )


def _stated_by(records: Sequence[Record], *, own: bool) -> StatedBy:
    """Never above the lowest source (I12), nor above an operator for words that an operator wrote."""
    origins = [record.stated_by for record in records] + ([StatedBy.OPERATOR] if own else [])
    return min(origins, key=lambda origin: origin.rank)


def _key(kept: Record, records: Sequence[Record]) -> tuple[str, str, str]:
    """The keeper's key as written, completed by the one whole key of the sources; what a model gave stays out of it."""
    whole = {
        row.written_key: row for row in sorted(records, key=lambda row: row.id, reverse=True) if all(row.written_key)
    }
    own = kept.written_key
    if not all(own) and len(whole) == 1:
        [(key, row)] = whole.items()
        if all(mine in ("", theirs) for mine, theirs in zip(own, key, strict=True)):
            return row.subject, row.predicate, row.object
    given = not kept.key_by
    return (
        kept.subject if given or own[0] else "",
        kept.predicate if given or own[1] else "",
        kept.object if given or own[2] else "",
    )


def _union(records: Sequence[Record]) -> tuple[datetime | None, datetime | None]:
    starts = [record.valid_from for record in records]
    ends = [record.valid_to for record in records]
    return (
        None if None in starts else min(start for start in starts if start is not None),
        None if None in ends else max(end for end in ends if end is not None),
    )


_EVER, _NEVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def _apart_in_time(records: Sequence[Record]) -> bool:
    """Whether some time between the first start and the last end is in none of the periods."""
    reached: datetime | None = None
    for start, end in sorted((record.valid_from or _EVER, record.valid_to or _NEVER) for record in records):
        if reached is not None and start > reached:
            return True
        reached = end if reached is None else max(reached, end)
    return False


def _chain(records: Sequence[Record]) -> int:
    """How long the chain of merges is now. A repeat, the same words with the same key, does not lengthen it: what the
    chain guards against is meaning that drifts from one keeper to the next.
    """
    longest = max(record.chain for record in records)
    return max(longest, 1) if _repeats(records) else longest + 1


def _repeats(records: Sequence[Record]) -> bool:
    return len({(record.normalised, record.written_key) for record in records}) == 1 and records[0].normalised != ""


def _named(records: Sequence[Record], came_from: Mapping[int, Sequence[int]]) -> tuple[int, ...]:
    """What the lineage of the merged row names: its sources; of repeats, instead of one that a merge made, what that
    one came from, so that a fact said in every session is as deep as its chain is long, however often it is merged.
    """
    named: set[int] = set()
    for record in records:
        below = came_from.get(record.id) if record.derivation == Kind.MERGE and _repeats(records) else None
        named.update(below or [record.id])
    # An import may say of a merged row that it came from one: then the sources themselves are named, two at least.
    return tuple(sorted(named if len(named) > 1 else {record.id for record in records}))


def _confidence(records: Sequence[Record], cap: float, *, own: bool) -> float:
    roots = frozenset[str]().union(*(record.roots for record in records))
    best = max(records, key=lambda record: (record.confidence, len(record.roots)))
    new = len(roots) - max(1, len(best.roots))  # what a merged row was raised by already raises it no second time (R93)
    raised = min(cap, best.confidence + (0.0 if own else 0.01 * max(0, new)))
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
