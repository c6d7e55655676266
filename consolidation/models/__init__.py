"""Proposals, what people decided about them, what was learnt from that, and how reading is measured."""

from consolidation.models.base import OPEN
from consolidation.models.learnt import Alias, Cardinality, Verdict
from consolidation.models.probing import Probe, ProbeRun, Suite
from consolidation.models.proposals import (
    Consumption,
    Draft,
    Operation,
    OperationQuerySet,
    OperationSource,
    Plan,
    PlanItem,
)
from consolidation.models.settings import (
    Calibration,
    Pause,
    Policy,
    PolicyQuerySet,
    PolicyRevision,
    chosen,
    held,
    waits,
)

__all__ = [
    "OPEN",
    "Alias",
    "Calibration",
    "Cardinality",
    "Consumption",
    "Draft",
    "Operation",
    "OperationQuerySet",
    "OperationSource",
    "Pause",
    "Plan",
    "PlanItem",
    "Policy",
    "PolicyQuerySet",
    "PolicyRevision",
    "Probe",
    "ProbeRun",
    "Suite",
    "Verdict",
    "chosen",
    "held",
    "waits",
]
