"""Asking a model which entries matter, and giving up before whoever waits for the prompt does (R3, R132).

The question goes out in a thread of its own: an attempt that hangs, an SDK that is loaded for the first time, a slow
budget query are all given up at the deadline, and the rule answers. What was asked is still recorded when it ends.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from threading import BoundedSemaphore, Thread
from typing import Final

from django.conf import settings
from django.db import connections

from observations import choosing, failures, spending
from observations.choosing import Offered, Picked
from observations.llm import ModelFailed, Unreachable

log = logging.getLogger(__name__)

_LEAST: Final = 0.05  # seconds; with less left nothing is asked
_AT_ONCE: Final = BoundedSemaphore(8)  # questions under way in this process; past that the rule answers


class _Question:
    """One question under way, and what came of it."""

    def __init__(self, *, goals: str, query: str, offered: Sequence[Offered], scope_id: int, ends: float) -> None:
        self.picked: Picked | None = None
        self.model = ""
        self.failed: ModelFailed | None = None
        self._request = choosing.request(goals=goals, query=query, offered=offered, scope_id=scope_id)
        self._offered = offered
        self._ends = ends

    def run(self) -> None:
        """Ask, and close the connection that this thread opened. Never raises."""
        try:
            left = max(_LEAST, self._ends - time.monotonic())
            door = spending.door(scope_id=self._request.scope_id, model=settings.PALIMPSEST_SELECT_MODEL, seconds=left)
            self.model = door.model
            self.picked = choosing.read(text=door.complete(self._request).text, offered=self._offered)
        except ModelFailed as failure:
            self.failed = failure
        except Exception as error:  # whatever a driver raises: the rule answers
            self.failed = Unreachable(f"The model could not be asked ({type(error).__name__}).")
        finally:
            connections.close_all()
            _AT_ONCE.release()


def pick(
    *, goals: str, query: str, offered: Sequence[Offered], scope_id: int, ends: float
) -> tuple[Picked, str] | None:
    """What the model picked, and its name; None where none is configured, where it failed, and where it is not back by
    `ends` (of time.monotonic): then the rule decides. Never raises.
    """
    if not offered or not spending.configured() or ends - time.monotonic() < _LEAST:
        return None
    if not _AT_ONCE.acquire(blocking=False):
        _passed_over("too many questions are under way")
        return None
    question = _Question(goals=goals, query=query, offered=offered, scope_id=scope_id, ends=ends)
    thread = Thread(target=question.run, name="palimpsest-select", daemon=True)
    thread.start()
    thread.join(max(0.0, ends - time.monotonic()))
    if question.picked is not None:
        if question.picked.refused:
            log.warning("select: %d labels of the answer were never offered; refused", question.picked.refused)
        return question.picked, question.model
    _passed_over(str(question.failed.answer) if question.failed else "it did not answer in time")
    return None


def _passed_over(why: str) -> None:
    failures.count("select: the model")
    log.warning("select: the model chose nothing (%s); the rule decides", why)
