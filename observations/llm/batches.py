"""Many questions at once through Message Batches, at half the price: started, waited for, read in order.

Every question of a batch ends for itself: answered, failed, expired, or not ended at the deadline.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from observations.llm import provider
from observations.llm.answers import Asked, read
from observations.llm.asking import Unreachable

log = logging.getLogger(__name__)

LARGEST: Final = 1_000  # questions of one batch; the provider takes 100,000 or 256 MB
_NAME: Final = re.compile(r"[A-Za-z0-9_.:-]{1,100}")
_LONGEST_PAUSE: Final = 20.0
_GROWTH: Final = 1.5
_AFTER_STOPPING: Final = 0.1  # of the whole wait: for the questions that were under way when the batch was stopped


class NoBatches(Exception):
    """The endpoint has no Message Batches; ask one question after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """How long a batch is waited for."""

    seconds: float
    first_pause: float


def run(
    endpoint: provider.Endpoint, questions: Sequence[Mapping[str, Any]], *, model: str, waiting: Waiting
) -> list[Asked]:
    """How each of the questions (parameters of a message) ended, in their order. Raises NoBatches, and nothing else.

    A batch that has not ended at the deadline is stopped; its answers that were ready are used.
    """
    named = [{"custom_id": f"q{number}", "params": question} for number, question in enumerate(questions)]
    try:
        batch_id = _id(endpoint.start_batch(named))
    except Exception as error:
        if provider.interrupts(error):
            raise
        if provider.has_no_batches(error):
            raise NoBatches from None
        unseen = provider.unseen(error, attempts=1)
        return [Asked(provider.failure(error, model=model), unseen=unseen) for _ in questions]
    try:
        found = _found(endpoint, batch_id, model=model, waiting=waiting)
    except BaseException:
        _stop(endpoint, batch_id)
        raise
    return [found.get(f"q{number}") or _lost() for number in range(len(questions))]


def _id(batch: Any) -> str:
    """The batch's name, which becomes part of addresses and of lines of the log. Raises ValueError."""
    if not _NAME.fullmatch(str(batch.id)):
        raise ValueError("the endpoint's name for the batch is none")
    return str(batch.id)


def _found(endpoint: provider.Endpoint, batch_id: str, *, model: str, waiting: Waiting) -> dict[str, Asked]:
    """The answers by the question's name; without those that did not arrive."""
    found: dict[str, Asked] = {}
    ended = _wait(endpoint, batch_id, seconds=waiting.seconds, pause=waiting.first_pause)
    if not ended:
        log.warning("model batch %s did not end in %d s and is stopped", batch_id, waiting.seconds)
        _stop(endpoint, batch_id)
        ended = _wait(endpoint, batch_id, seconds=waiting.seconds * _AFTER_STOPPING, pause=waiting.first_pause)
    if ended:
        _collect(endpoint, batch_id, found, model=model)
    return found


def _wait(endpoint: provider.Endpoint, batch_id: str, *, seconds: float, pause: float) -> bool:
    """Whether the batch ended in that time. A look that fails is followed by another one."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if endpoint.batch(batch_id).processing_status == "ended":
                return True
        except Exception as error:
            if provider.interrupts(error):
                raise
            log.warning("model batch %s cannot be looked at (%s)", batch_id, type(error).__name__)
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause, left))
        pause = min(pause * _GROWTH, _LONGEST_PAUSE)


def _collect(endpoint: provider.Endpoint, batch_id: str, found: dict[str, Asked], *, model: str) -> None:
    """Add the results, in whatever order they come; what was read before an outage stays."""
    try:
        for result in endpoint.results(batch_id):
            found.setdefault(str(result.custom_id), _asked(result.result, model=model))
    except Exception as error:
        if provider.interrupts(error):
            raise
        log.warning("model batch %s: its results end early (%s)", batch_id, type(error).__name__)


def _asked(result: Any, *, model: str) -> Asked:
    if result.type == "succeeded":
        return read(result.message, model=model)
    if result.type == "errored":
        return Asked(provider.by_kind(getattr(result.error.error, "type", ""), model=model))
    return Asked(Unreachable(f"The question was not answered in time ({_word(result.type)}); run this again later."))


def _word(kind: object) -> str:
    return "expired" if kind == "expired" else "stopped"


def _lost() -> Asked:
    """A question without a result. It may have been answered, and then it is billed."""
    return Asked(Unreachable("The batch of questions did not answer this one in time; run this again later."), unseen=1)


def _stop(endpoint: provider.Endpoint, batch_id: str) -> None:
    """Ask for an end of the batch; one that cannot be stopped expires by itself after a day."""
    try:
        endpoint.stop_batch(batch_id)
    except Exception as error:
        if provider.interrupts(error):
            raise
        log.warning("model batch %s cannot be stopped (%s)", batch_id, type(error).__name__)
