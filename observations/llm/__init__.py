"""The only door to a language model. No Django: the budget and the recorder are passed in."""

from observations.llm.asking import (
    Answer,
    BudgetSpent,
    Completer,
    CutOff,
    Denied,
    ModelFailed,
    NoModel,
    Outcome,
    Refused,
    Reply,
    Request,
    Unreachable,
    Unusable,
    Usage,
)

__all__ = [
    "Answer",
    "BudgetSpent",
    "Completer",
    "CutOff",
    "Denied",
    "ModelFailed",
    "NoModel",
    "Outcome",
    "Refused",
    "Reply",
    "Request",
    "Unreachable",
    "Unusable",
    "Usage",
]
