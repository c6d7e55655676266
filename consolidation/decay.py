"""What may be proposed for archiving: rows that have faded and that no prompt was given lately (DESIGN 4, R25, R62).

Fading changes rank in every search; only a policy that says so changes status, and never that of a user's word. An
archived row is kept whole and can be restored, so a person applies these with the plan, not item by item.

One proposal per row. A group's id would change with every row that fades into it, so that a rejected one came back
under another id, and rejecting it would keep rows that nobody looked at. For the same reason a proposal's reason holds
only figures that no later day changes: the day it fell below the threshold, not today's age. Today's are signals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from consolidation.operations import Approval, Json, Kind, Proposal
from consolidation.policy import Policy, approval_of
from consolidation.sparing import WAITS, kept, spared
from observations.fading import falls_below_at, strength
from observations.records import Record, Status


def archive_proposals(
    records: Iterable[Record],
    *,
    policy: Policy,
    now: datetime,
    used_since: Mapping[int, datetime],
    protected: frozenset[int] = frozenset(),
    taken: frozenset[int] = frozenset(),
) -> tuple[Proposal, ...]:
    """The archives of ONE scope, by row; none unless the policy archives.

    `used_since`: when a prompt was last given the row, for rows that were used at all. `protected`: rows that carry a
    user's word further down their lineage. `taken`: rows of other appliable proposals of the same plan, prunes
    included; they are shown as skipped.
    """
    if not policy.archive:
        return ()
    faded = [
        record
        for record in records
        if _faded(record, policy, now)
        and not spared(record, policy=policy, protected=protected)
        and not kept(record, policy=policy, now=now)
        and not _in_use(record, used_since.get(record.id), now)
    ]
    return tuple(
        _proposal(record, policy, now, used_since.get(record.id), taken=record.id in taken)
        for record in sorted(faded, key=lambda record: record.id)
    )


def _faded(record: Record, policy: Policy, now: datetime) -> bool:
    """Below the threshold by its bare strength: the floor is there for rank, and must not keep rows for good."""
    return record.status is Status.ACTIVE and _strength(record, now) < policy.archive_below


def _strength(record: Record, now: datetime) -> float:
    return strength(created_at=record.created_at, half_life_days=record.half_life_days, now=now, floor=0.0)


def _in_use(record: Record, last_used: datetime | None, now: datetime) -> bool:
    """A prompt was given it within its last half-life: however old, somebody needs it."""
    return last_used is not None and last_used > now - timedelta(days=record.half_life_days or 0)


def _proposal(record: Record, policy: Policy, now: datetime, last_used: datetime | None, *, taken: bool) -> Proposal:
    half_life = record.half_life_days or 0  # never 0: a row without a half-life does not fade
    since = falls_below_at(created_at=record.created_at, half_life_days=half_life, below=policy.archive_below)
    signals: dict[str, Json] = {
        "first_said_at": record.created_at.isoformat(),
        "age_days": (now - record.created_at).days,
        "half_life_days": half_life,
        "strength": round(_strength(record, now), 4),
        "last_used_at": last_used.isoformat() if last_used is not None else None,
    }
    return Proposal(
        kind=Kind.ARCHIVE,
        scope_id=record.scope_id,
        sources=(record.id,),
        approval=Approval.NEVER if taken else approval_of(Kind.ARCHIVE),
        reason=(
            f"decay: first said on {record.created_at:%Y-%m-%d} with a half-life of {_days(half_life)}, weaker than"
            f" {policy.archive_below:g} since {since:%Y-%m-%d}, and in no prompt for the last {_days(half_life)}"
        ),
        skipped_reason=WAITS if taken else "",
        signals=signals,
    )


def _days(number: int) -> str:
    return "1 day" if number == 1 else f"{number} days"
