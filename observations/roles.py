"""What a person may do where: patterns of scopes, each with the most that the person may do there. No query, no clock.

Groups say what somebody may do; a role of a pattern says how much of it there. Which permissions a role has is handed
over when the program starts: the permissions of reviewing are not this app's to know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Role(StrEnum):
    """The most that somebody may do in the scopes of a pattern."""

    VIEWER = "Viewer"
    REVIEWER = "Reviewer"
    OPERATOR = "Operator"
    STEWARD = "Steward"


EVERYTHING: Final = "*"
_PERMISSIONS: dict[str, frozenset[str]] = {}


def declare(table: Mapping[str, Iterable[str]]) -> None:
    """Say which permissions each role has. A role that nobody declared has none."""
    _PERMISSIONS.update({role: frozenset(permissions) for role, permissions in table.items()})


@dataclass(frozen=True, slots=True)
class Access:
    """One pattern of scopes that a person was given; an empty role: everything their groups allow."""

    pattern: str
    role: str = ""

    def allows(self, permissions: Iterable[str]) -> bool:
        """Whether the role has every one of these permissions."""
        return not self.role or frozenset(permissions) <= _PERMISSIONS.get(self.role, frozenset())

    @property
    def rank(self) -> tuple[bool, int]:
        """Which of the patterns that mean a scope says what holds there: its exact name, then the longest prefix."""
        return (not self.pattern.endswith(EVERYTHING), len(self.pattern))


def means(*, pattern: str, what: str) -> bool:
    """Whether a pattern means every scope that `what` does: a scope's name, or itself a pattern."""
    if pattern in (EVERYTHING, what):
        return True
    return pattern.endswith("/*") and what.startswith(pattern[:-1])


def deciding(*, given: Iterable[Access], what: str) -> Access | None:
    """The access that says what holds for a scope's name or a pattern; None: none covers it."""
    return max(
        (each for each in given if means(pattern=each.pattern, what=what)), key=lambda each: each.rank, default=None
    )
