"""What must not be remembered whoever says it: keys, passwords, and numbers of cards and papers. Plain Python."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret in a text: what it is and where it stands. The text itself is not held."""

    kind: str
    start: int
    end: int


_KEY = re.compile(r"\b(?:sk-[A-Za-z0-9_-]{20,}|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36,})")


def secret_in(text: str) -> Secret | None:
    """The first secret in a text, or None."""
    found = _KEY.search(text)
    return Secret("key", *found.span()) if found else None
