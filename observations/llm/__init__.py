"""The only door to a language model. No Django: the budget and the recorder are passed in."""

from observations.llm.adapter import BATCH_FROM, AnthropicCompleter
from observations.llm.asking import (
    Answer,
    BudgetSpent,
    Completer,
    CutOff,
    Denied,
    ModelFailed,
    NoMessage,
    NoModel,
    Outcome,
    Refused,
    Reply,
    Request,
    Unreachable,
    Unusable,
    Usage,
)
from observations.llm.calls import Budget, Call, Cost, Hold
from observations.llm.pricing import DEFAULT_MODEL, Price
from observations.llm.reading import find_quote, json_in

__all__ = [
    "BATCH_FROM",
    "DEFAULT_MODEL",
    "Answer",
    "AnthropicCompleter",
    "Budget",
    "BudgetSpent",
    "Call",
    "Completer",
    "Cost",
    "CutOff",
    "Denied",
    "Hold",
    "ModelFailed",
    "NoMessage",
    "NoModel",
    "Outcome",
    "Price",
    "Refused",
    "Reply",
    "Request",
    "Unreachable",
    "Unusable",
    "Usage",
    "find_quote",
    "json_in",
]
