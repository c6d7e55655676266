"""What tests of measured error share: applied operations of one band, and people's words on them."""

from __future__ import annotations

from consolidation import accuracy, rollout, sampling
from consolidation.models import Operation, Sample
from consolidation.operations import Approval, Kind
from observations.models import Scope
from tests.acceptance.acting import fresh
from tests.building import observe, propose

RULE, BAND = "same key", "0.98-0.99"
KEY: sampling.Key = ("merge", RULE, BAND)


def planned(
    within: Scope, number: int = 1, *, rule: str = RULE, band: str = BAND, approval: Approval = Approval.AUTO
) -> list[Operation]:
    """Merges of two rows each, of one band, as a plan stores them."""
    made = []
    for _ in range(number):
        at = Operation.objects.count()
        rows = [observe(f"Relay {at} sits in rack 4{end}", within=within) for end in ("", ".")]
        made.append(propose(Kind.MERGE, rows, approval=approval, judgement=(rule, band)))
    return [fresh(operation) for operation in made]


def applied(within: Scope, number: int = 1, *, rule: str = RULE, band: str = BAND) -> list[Operation]:
    """The same, applied without a decision, and asked about as after every rollout."""
    made = planned(within, number, rule=rule, band=band)
    for operation in made:
        rollout.apply_one(operation=operation, by="operator")
    return [fresh(operation) for operation in made]


def counted(rule: str = RULE, band: str = BAND, kind: str = "merge") -> accuracy.Band:
    """What is known of one band of the whole store."""
    [found] = [row for row in sampling.bands() if (row.kind, row.rule, row.band) == (kind, rule, band)]
    return found


def judge(operation: Operation, *, right: bool, by: str = "ines", correcting: bool = False) -> Sample:
    """A person's word on what was applied."""
    sample = sampling.sample_of(operation=operation)
    return sampling.judge(sample=sample, right=right, by=by, correcting=correcting)
