"""Which rows stay, whatever a policy proposes to take out of the reads."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from consolidation.policy import Policy
from observations.records import Record, StatedBy

WAITS: Final = "waits for the next pass: another operation of this plan takes the row"  # why a row is skipped


def spared(record: Record, *, policy: Policy, protected: frozenset[int]) -> bool:
    """True for a user's own word, a row that carries one (`protected`), and a kind that is not to be touched.

    No setting of a policy reaches the first two (R47, I12, C10): they leave the reads at a person's request only.
    """
    return record.stated_by is StatedBy.USER or record.id in protected or record.kind in policy.untouchable


def kept(record: Record, *, policy: Policy, now: datetime) -> bool:
    """True while a retention duty keeps the row where it is: it was first said less than `keep_days` ago (R32)."""
    return record.created_at > now - timedelta(days=policy.keep_days)
