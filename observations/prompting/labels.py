"""Labels: how far a record can be trusted. They come from the kind of record, never from a text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from observations.retrieval import Trust

OUTDATED: Final = "outdated"  # the mark of what something newer replaces, or whose period is over
_LABELS: Final[Mapping[Trust, str]] = {
    Trust.HIGH: "trust: high",
    Trust.MEDIUM: "trust: medium",
    Trust.LOW: "trust: low, may contain hallucinations",
}


def label(trust: Trust, *, sources: int | None = None, age: timedelta = timedelta()) -> str:
    """How far a record can be trusted (R17-R19, R130), a claim with its citation: `trust: medium (3 sources, 2w ago)`.
    A model's words and verbatim ones are cited by their label alone.
    """
    cited = trust is Trust.MEDIUM and sources is not None
    return f"{_LABELS[trust]} ({citation(sources=sources or 0, age=age)})" if cited else _LABELS[trust]


def citation(*, sources: int, age: timedelta) -> str:
    """The tail of an entry: its distinct root sources, and how long ago it was first said."""
    counted = {0: "no source", 1: "1 source"}.get(sources, f"{sources} sources")
    return f"{counted}, {span(age)} ago"


_UNITS: Final = (("y", 365 * 86_400), ("mo", 30 * 86_400), ("w", 7 * 86_400), ("d", 86_400), ("h", 3_600), ("m", 60))


def span(passed: timedelta) -> str:
    """A span in its largest unit, whole ones only: s, m, h, d, w (7 days), mo (30 days), y (365 days)."""
    seconds = max(0, int(passed.total_seconds()))
    for unit, length in _UNITS:
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
