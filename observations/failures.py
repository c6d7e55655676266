"""COUNT: which parts of reads failed in this process, by name. A read that failed gives less, and somebody has to see
it (R133). Names and figures only, never a word of memory.
"""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import Final

_LOCK: Final = Lock()
_COUNTS: Final[Counter[str]] = Counter()


def count(part: str) -> None:
    """One more failure of a part, such as "prompt: Observations"."""
    with _LOCK:
        _COUNTS[part] += 1


def counted() -> dict[str, int]:
    """Failures by part since this process began, by name. No query."""
    with _LOCK:
        return dict(sorted(_COUNTS.items()))
