"""RECONCILE: new claims beside what is stored already, and what becomes of each (R126, R127). Plain Python."""

from observations.reconciliation.asking import (
    EARLIER,
    LONGEST_TEXT,
    MAX_PROPOSALS,
    NEAREST,
    PROMPT_VERSION,
    PURPOSE,
    Near,
    Proposal,
    request,
)
from observations.reconciliation.reading import Decision, Reconciled, Refusal, Verdict, read
from observations.reconciliation.superseding import Rests, Waits, why_it_waits

__all__ = [
    "EARLIER",
    "LONGEST_TEXT",
    "MAX_PROPOSALS",
    "NEAREST",
    "PROMPT_VERSION",
    "PURPOSE",
    "Decision",
    "Near",
    "Proposal",
    "Reconciled",
    "Refusal",
    "Rests",
    "Verdict",
    "Waits",
    "read",
    "request",
    "why_it_waits",
]
