"""What a message of the provider is: an answer that ended by itself, or a failure. Nothing in it is trusted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from observations.llm.asking import CutOff, ModelFailed, NoMessage, Outcome, Refused, Reply, Unusable, Usage

_ENDED: Final = frozenset({"end_turn", "stop_sequence"})
_TOO_LONG: Final = frozenset({"max_tokens", "model_context_window_exceeded"})
_MOST_TOKENS: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Asked:
    """How one question ended and what it used; `unseen` answers may have been billed without saying what they used."""

    outcome: Outcome
    usage: Usage = field(default_factory=Usage)
    unseen: int = 0
    reply: str = field(default="", repr=False)  # the text, also of an answer that is not to be used


def read(message: Any, *, model: str) -> Asked:
    """Read a message: why it stopped first, then its text. Refusals and cut-off answers are paid for as well."""
    text = _text(getattr(message, "content", None))
    usage = _usage(getattr(message, "usage", None))
    failed = _failure(message, text)
    outcome = failed if failed is not None else Reply(text=text, model=model, usage=usage or Usage())
    return Asked(outcome, usage or Usage(), unseen=int(usage is None), reply=text)


def _failure(message: Any, text: str) -> ModelFailed | None:
    stopped = getattr(message, "stop_reason", None)
    if stopped == "refusal":
        return Refused("The model declined to answer; look at its sources and decide by hand.")
    if stopped in _TOO_LONG:
        return CutOff("The model's answer was longer than it may be and is not used; ask for less at once.")
    if not isinstance(getattr(message, "content", None), list):
        return NoMessage("What the endpoint sent is no message; check that ANTHROPIC_BASE_URL is a Messages API.")
    if stopped not in _ENDED:
        return Unusable("The model's answer did not end by itself and is not used; run this again later.")
    if not text.strip():
        return Unusable("The model's answer is empty; run this again later.")
    return None


def _text(content: object) -> str:
    """The blocks of text, joined; thinking and anything else is not the answer."""
    blocks: Iterable[Any] = content if isinstance(content, list) else ()
    texts = (block.text for block in blocks if getattr(block, "type", None) == "text")
    return "".join(text for text in texts if isinstance(text, str))


def _usage(found: Any) -> Usage | None:
    """Tokens as the provider counts them, None when it does not say."""
    if found is None or not isinstance(getattr(found, "output_tokens", None), int):
        return None
    return Usage(
        input_tokens=_count(getattr(found, "input_tokens", 0)),
        output_tokens=_count(found.output_tokens),
        cache_read_tokens=_count(getattr(found, "cache_read_input_tokens", 0)),
        cache_write_tokens=_count(getattr(found, "cache_creation_input_tokens", 0)),
    )


def _count(value: object) -> int:
    return min(max(value, 0), _MOST_TOKENS) if isinstance(value, int) else 0
