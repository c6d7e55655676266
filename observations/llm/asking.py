"""What is asked of a model and what comes back: values, the protocol, and how it can fail. Standard library only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Protocol, TypeAlias


class Answer(StrEnum):
    """How one call ended; a word of this list is what the record of the call keeps."""

    OK = "ok"
    NO_MODEL = "no model"  # none is configured: nothing was sent
    BUDGET = "budget spent"  # today's limit is reached: nothing was sent
    REFUSED = "refused"  # the model declined
    CUT_OFF = "cut off"  # the answer ended at max_tokens
    UNUSABLE = "unusable"  # an answer came, and it is not what was asked for
    UNREACHABLE = "unreachable"  # no connection, too slow, overloaded or limited after every retry
    DENIED = "denied"  # the endpoint refuses the request or the key: retrying cannot help
    HELD = "held"  # no call: money put aside for a batch under way, and given back by a second row


@dataclass(frozen=True, slots=True)
class Request:
    """One question. `system` is the same for every request of a purpose, so that it is cached where that pays."""

    purpose: str  # promote, compact, keys, ...: a word, for the record
    prompt_version: str  # changes whenever the wording does
    system: str
    text: str  # the question itself; memory text in it is data, never instructions
    schema: Mapping[str, Any]  # JSON schema of the answer (an object)
    max_tokens: int = 2_000
    scope_id: int | None = None  # whose budget and whose record


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that ended by itself. `text` is as it came and still has to be checked by whoever asked."""

    text: str
    model: str
    usage: Usage = field(default_factory=Usage)


class ModelFailed(Exception):
    """The model gave no answer; its text is one sentence that says what to do and holds no memory text."""

    answer: ClassVar[Answer] = Answer.UNREACHABLE


class NoModel(ModelFailed):
    """No model is configured."""

    answer: ClassVar[Answer] = Answer.NO_MODEL


class BudgetSpent(ModelFailed):
    """Today's budget is used up."""

    answer: ClassVar[Answer] = Answer.BUDGET


class Refused(ModelFailed):
    """The model declined to answer."""

    answer: ClassVar[Answer] = Answer.REFUSED


class CutOff(ModelFailed):
    """The answer was longer than it may be."""

    answer: ClassVar[Answer] = Answer.CUT_OFF


class Unusable(ModelFailed):
    """The answer cannot be read."""

    answer: ClassVar[Answer] = Answer.UNUSABLE


class NoMessage(Unusable):
    """What the endpoint sent is no answer of a model at all: something else speaks there."""


class Unreachable(ModelFailed):
    """The endpoint did not answer in time, or is overloaded."""

    answer: ClassVar[Answer] = Answer.UNREACHABLE


class Denied(ModelFailed):
    """The endpoint refuses the key or the request."""

    answer: ClassVar[Answer] = Answer.DENIED


Outcome: TypeAlias = "Reply | ModelFailed"


class Completer(Protocol):
    """What the product asks of a model. Fakes in tests implement this protocol."""

    @property
    def model(self) -> str:
        """The model's name, for the record and for what identifies a cached answer."""
        ...

    def complete(self, request: Request) -> Reply:
        """Answer one request. Raises ModelFailed (a subclass), never anything else."""
        ...

    def complete_all(self, requests: Sequence[Request]) -> list[Outcome]:
        """Answer many requests that can wait, in order; each fails for itself. Never raises ModelFailed."""
        ...

    def complete_each(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        """The same one after the other: each is asked when its answer is taken, so that it can be kept before the next
        is paid for.
        """
        ...
