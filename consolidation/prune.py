"""What may be proposed for pruning: rows past an explicit retention, and archived sources that are no longer needed.

Without a retention rule no row is ever proposed for its age, and an idle scope is not an empty one (C10). What a user
said is never proposed, by any rule, without a request (R47, I12). Every proposal waits for a person; nothing here
removes anything.

Proposals stay the same from pass to pass, so that a rejected one is not asked again under another id: one per row for
retention, one per derived row for its sources.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from consolidation.operations import Approval, Json, Kind, Proposal, obs
from consolidation.policy import Policy, Retention
from observations.records import Record, StatedBy, Status


@dataclass(frozen=True, slots=True)
class Spent:
    """A derived row with its archived sources, and how often it was given to a prompt since it was derived (I13).

    `uses` is the row's own counter, which starts at 0 with the derivation; never the sum it inherited (E6).
    """

    derived: Record
    sources: tuple[Record, ...]
    uses: int


def prune_proposals(
    records: Iterable[Record],
    spent: Iterable[Spent],
    *,
    policy: Policy,
    now: datetime,
    protected: frozenset[int] = frozenset(),
    taken: frozenset[int] = frozenset(),
) -> tuple[Proposal, ...]:
    """The prunes of ONE scope, each for a person (R51, R62), in the order of their first source.

    `protected`: rows that carry a user's word further down their lineage. `taken`: rows of other appliable proposals
    of the same plan; they wait for the next pass and are shown as skipped.
    """
    aged = [
        _aged(record, rule, taken)
        for record in records
        if record.id not in protected and (rule := _rule_for(record, policy, now)) is not None
    ]
    used = [proposal for row in spent if (proposal := _used_up(row, protected)) is not None]
    return tuple(sorted([*aged, *used], key=lambda proposal: proposal.sources))


def _rule_for(record: Record, policy: Policy, now: datetime) -> Retention | None:
    """The retention rule a live row is past; none for a user's own word, whatever the rules say."""
    if record.status is not Status.ACTIVE or record.stated_by is StatedBy.USER:
        return None
    for rule in policy.retention:
        past = record.created_at < now - timedelta(days=rule.older_than_days)
        if rule.stated_by is record.stated_by and past and not (rule.only_unused and record.uses):
            return rule
    return None


def _aged(record: Record, rule: Retention, taken: frozenset[int]) -> Proposal:
    unused = " that no prompt was given" if rule.only_unused else ""
    product: dict[str, Json] = {"older_than_days": rule.older_than_days, "only_unused": rule.only_unused}
    return Proposal(
        kind=Kind.PRUNE,
        scope_id=record.scope_id,
        sources=(record.id,),
        approval=Approval.NEVER if record.id in taken else Approval.NEEDS_HUMAN,
        reason=f"retention: rows stated by {rule.stated_by.value}, older than {rule.older_than_days} days{unused}",
        skipped_reason="waits for the next pass: another operation of this plan takes the row"
        if record.id in taken
        else "",
        product=product,
        signals={"first_said_at": record.created_at.isoformat(), "uses": record.uses},
    )


def _used_up(spent: Spent, protected: frozenset[int]) -> Proposal | None:
    """Archived sources whose derived row is live and has been used since (R51); a user's own words stay."""
    if spent.derived.status is not Status.ACTIVE or spent.uses < 1:
        return None
    archived = [source for source in spent.sources if source.status is Status.ARCHIVED]
    leaving = sorted(
        source.id for source in archived if source.stated_by is not StatedBy.USER and source.id not in protected
    )
    if not leaving:
        return None
    staying = len(archived) - len(leaving)
    kept = f"; {staying} stated by the user stay" if staying else ""
    return Proposal(
        kind=Kind.PRUNE,
        scope_id=spent.derived.scope_id,
        sources=tuple(leaving),
        approval=Approval.NEEDS_HUMAN,
        reason=f"archived sources of {obs(spent.derived.id)}, which has been used since it was derived{kept}",
        product={"derived": spent.derived.id},
        signals={"uses_since_derivation": spent.uses},
    )
