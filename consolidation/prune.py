"""What may be proposed for pruning: rows past an explicit retention, and archived sources that are no longer needed.

Without a retention rule no row is ever proposed for its age, and an idle scope is not an empty one (C10); a policy that
does not prune proposes nothing at all. What a user said is never proposed, by any rule, without a request (R47, I12).
Every proposal waits for a person; nothing here removes anything.

Proposals stay the same from pass to pass, so that a rejected one is not asked again under another id: one per row for
retention, one per derived row for its sources.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from consolidation.operations import Approval, Json, Kind, Proposal, obs
from consolidation.policy import Policy, Retention, approval_of
from consolidation.sparing import WAITS, kept, spared
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
    decayed: Iterable[Record] = (),
    protected: frozenset[int] = frozenset(),
    taken: frozenset[int] = frozenset(),
) -> tuple[Proposal, ...]:
    """The prunes of ONE scope, each for a person (R51, R62), in the order of their first source.

    `records` are live rows, `decayed` those that left the reads without a successor: archiving a row does not end its
    retention. Archived sources belong in `spent` only. `protected`: rows that carry a user's word further down their
    lineage. `taken`: rows of other appliable proposals of the same plan; they wait for the next pass and are shown as
    skipped.
    """
    if not policy.prune:
        return ()
    live = [record for record in records if record.status is Status.ACTIVE]
    archived = [record for record in decayed if record.status is Status.ARCHIVED]
    aged = [
        _aged(record, rule, taken)
        for record in (*live, *archived)
        if not spared(record, policy=policy, protected=protected)
        and not kept(record, policy=policy, now=now)
        and (rule := _rule_for(record, policy, now)) is not None
    ]
    used = [proposal for row in spent if (proposal := _used_up(row, policy, now, protected)) is not None]
    return tuple(sorted([*aged, *used], key=lambda proposal: proposal.sources))


def _rule_for(record: Record, policy: Policy, now: datetime) -> Retention | None:
    """The shortest rule a row is past: once past it always past it, so its reason does not change with its age."""
    past = [
        rule
        for rule in policy.retention
        if rule.stated_by is record.stated_by
        and rule.kind in (None, record.kind)
        and record.created_at < now - timedelta(days=rule.older_than_days)
        and not (rule.only_unused and record.uses)
    ]
    return min(past, key=lambda rule: rule.older_than_days, default=None)


def _aged(record: Record, rule: Retention, taken: frozenset[int]) -> Proposal:
    kind = f" of kind {rule.kind}" if rule.kind is not None else ""
    unused = " that no prompt was given" if rule.only_unused else ""
    product: dict[str, Json] = {"older_than_days": rule.older_than_days, "only_unused": rule.only_unused}
    if rule.kind is not None:
        product["kind"] = rule.kind.value
    return Proposal(
        kind=Kind.PRUNE,
        scope_id=record.scope_id,
        sources=(record.id,),
        approval=Approval.NEVER if record.id in taken else approval_of(Kind.PRUNE),
        reason=f"retention: rows{kind} stated by {rule.stated_by}, older than {rule.older_than_days} days{unused}",
        skipped_reason=WAITS if record.id in taken else "",
        product=product,
        signals={"first_said_at": record.created_at.isoformat(), "uses": record.uses},
    )


def _used_up(spent: Spent, policy: Policy, now: datetime, protected: frozenset[int]) -> Proposal | None:
    """Archived sources whose derived row is live and has been used since (R51); a user's own words stay.

    While a retention duty keeps one of them, all wait: a set that grew would be another operation from day to day.
    """
    if spent.derived.status is not Status.ACTIVE or spent.uses < 1:
        return None
    archived = [source for source in spent.sources if source.status is Status.ARCHIVED]
    leaving = [source for source in archived if not spared(source, policy=policy, protected=protected)]
    if not leaving or any(kept(source, policy=policy, now=now) for source in leaving):
        return None
    return Proposal(
        kind=Kind.PRUNE,
        scope_id=spent.derived.scope_id,
        sources=tuple(sorted(source.id for source in leaving)),
        approval=approval_of(Kind.PRUNE),
        reason=f"archived sources of {obs(spent.derived.id)}, which has been used since it was derived"
        + _staying(archived, leaving, protected),
        product={"derived": spent.derived.id},
        signals={"uses_since_derivation": spent.uses},
    )


def _staying(archived: list[Record], leaving: list[Record], protected: frozenset[int]) -> str:
    """How many sources stay, and for whose sake."""
    gone = {source.id for source in leaving}
    staying = [source for source in archived if source.id not in gone]
    users = sum(source.stated_by is StatedBy.USER or source.id in protected for source in staying)
    parts = [
        f"{users} stated by the user stay" if users else "",
        f"{len(staying) - users} of kinds that are never touched stay" if len(staying) > users else "",
    ]
    return "".join(f"; {part}" for part in parts if part)
