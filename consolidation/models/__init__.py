"""Proposals, what people decided about them, what was learnt from that, and how reading is measured."""

from consolidation.models.base import OPEN
from consolidation.models.learnt import Alias, Cardinality, Verdict
from consolidation.models.measuring import Demotion, Projection, Sample
from consolidation.models.probing import Probe, ProbeRun, Suite
from consolidation.models.proposals import (
    Consumption,
    Draft,
    Operation,
    OperationQuerySet,
    OperationSource,
    Plan,
    PlanItem,
    Planning,
)
from consolidation.models.reviewing import BulkDecision, BulkItem, Comment, Deferral, Drill, Overdue
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
    "BulkDecision",
    "BulkItem",
    "Calibration",
    "Cardinality",
    "Comment",
    "Consumption",
    "Deferral",
    "Demotion",
    "Draft",
    "Drill",
    "Operation",
    "OperationQuerySet",
    "OperationSource",
    "Overdue",
    "Pause",
    "Plan",
    "PlanItem",
    "Planning",
    "Policy",
    "PolicyQuerySet",
    "PolicyRevision",
    "Probe",
    "ProbeRun",
    "Projection",
    "Sample",
    "Suite",
    "Verdict",
    "chosen",
    "held",
    "waits",
]
