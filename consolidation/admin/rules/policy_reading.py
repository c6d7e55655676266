"""What the pages of policies show: which of them concern a person, which one holds where and why, and older ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Q, QuerySet

from consolidation.admin.rules.policy_words import TRIGGERS, Difference, Setting, differences, settings
from consolidation.admin.texts import when
from consolidation.models import Policy, PolicyRevision
from consolidation.operations import visible
from consolidation.policy import Policy as Rules
from consolidation.policy import PolicyError, matches, most_specific
from observations.admin.base import Reach
from observations.models import Scope

NAMED: Final = 20  # scopes a policy's page names
VERSIONS: Final = 100  # versions the history shows
_SWITCHES: Final = ("merge", "promote", "compact", "archive", "prune", "unattended")


def concerning(reach: Reach) -> QuerySet[Policy]:
    """The policies of a person's patterns, of what is below them, and those around them that hold there too. No query.

    A pattern around one's own is no secret: it is the beginning of a name that this person knows.
    """
    if reach.everything:
        return Policy.objects.all()
    mine = Q(pattern="*") | Q(pattern__in=reach.patterns)
    for pattern in reach.patterns:
        if pattern.endswith("/*"):
            mine |= Q(pattern__startswith=pattern[:-1])
        parts = pattern.split("/")
        mine |= Q(pattern__in=["/".join([*parts[:length], "*"]) for length in range(1, len(parts))])
    return Policy.objects.filter(mine)


@dataclass(frozen=True, slots=True)
class Row:
    """One policy in the list."""

    pk: int
    pattern: str
    version: int
    at: str
    by: str
    on: str  # what it lets be done
    trigger: str
    broken: str  # why it cannot be read; empty when it can
    yours: bool  # this person may change it


def row_of(policy: Policy, *, yours: bool) -> Row:
    """One policy as the list shows it. No query."""
    rules, broken = read(policy)
    return Row(
        pk=policy.pk,
        pattern=visible(policy.pattern),
        version=policy.version,
        at=when(policy.updated_at),
        by=visible(policy.updated_by),
        on=", ".join(name for name in _SWITCHES if getattr(rules, name)) or "nothing",
        trigger=TRIGGERS[rules.trigger],
        broken=broken,
        yours=yours,
    )


def read(policy: Policy) -> tuple[Rules, str]:
    """A stored policy, and why it cannot be read; then what of it can be. No query."""
    try:
        return Rules.from_dict(policy.body), ""
    except PolicyError as fault:
        return Rules.salvaged(policy.body), visible(str(fault))


# --- which one holds --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Holds:
    """Which policy holds for one scope."""

    scope: int
    name: str
    policy: int | None  # None: no policy matches, and the defaults hold
    pattern: str


def holding(scopes: Iterable[Scope]) -> list[Holds]:
    """The policy that holds for each scope. One query."""
    known = dict(Policy.objects.values_list("pattern", "pk"))
    found = []
    for scope in scopes:
        pattern = most_specific(patterns=known, scope=scope.name)
        found.append(Holds(scope.pk, visible(scope.name), known[pattern] if pattern else None, visible(pattern or "")))
    return found


@dataclass(frozen=True, slots=True)
class Match:
    """One policy that means a scope."""

    pk: int
    pattern: str
    version: int
    why: str
    holds: bool


def matching(scope: Scope) -> list[Match]:
    """Every policy that means a scope, the one that holds first. One query."""
    rows = [row for row in Policy.objects.all() if matches(pattern=row.pattern, scope=scope.name)]
    best = most_specific(patterns=[row.pattern for row in rows], scope=scope.name)
    rows.sort(key=lambda row: (row.pattern != best, -len(row.pattern)))
    return [
        Match(row.pk, visible(row.pattern), row.version, _why(row.pattern, scope.name), row.pattern == best)
        for row in rows
    ]


def _why(pattern: str, scope: str) -> str:
    if pattern == scope:
        return "its exact name, which goes before every pattern"
    if pattern == "*":
        return "every scope, which comes last"
    return "everything below a part of its name; the longer part goes first"


def meant(policy: Policy, *, reach: Reach) -> tuple[list[Holds], int]:
    """The visible scopes for which a policy holds, some of them by name, and how many there are. Two queries."""
    scopes = reach.scopes.filter(pk__in=Scope.objects.matching(policy.pattern)).order_by("name")
    held = [one for one in holding(scopes) if one.policy == policy.pk]
    return held[:NAMED], len(held)


# --- what was before --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a policy, with what it changed."""

    number: int
    at: str
    by: str
    removed: bool
    changed: list[Difference]
    first: bool


def versions(pattern: str) -> list[Version]:
    """The versions of a policy, newest first, each with its differences from the one before. One query."""
    rows = list(PolicyRevision.objects.filter(pattern=pattern).order_by("-version")[: VERSIONS + 1])
    return [_version(row, rows[at + 1 : at + 2]) for at, row in enumerate(rows[:VERSIONS])]


def _version(row: PolicyRevision, before: Sequence[PolicyRevision]) -> Version:
    old = before[0].body if before and before[0].body is not None else Rules().to_dict()
    return Version(
        number=row.version,
        at=when(row.at),
        by=visible(row.by),
        removed=row.body is None,
        changed=[] if row.body is None else differences(old, row.body),
        first=not before,
    )


def page(policy: Policy) -> tuple[list[tuple[str, list[Setting]]], str]:
    """Every setting of a policy under its heading, and why it cannot be read, if so. No query."""
    rules, broken = read(policy)
    return settings(rules), broken
