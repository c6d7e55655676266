"""What may be merged, kept and removed, and who has to agree: the settings of one scope or a family of scopes.

A policy can only be stricter than the embedder's measured thresholds and the approval classes, never looser.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Final

from consolidation.operations import Approval, Json, Kind, canonical
from observations.records import StatedBy

_APPROVALS: Final[dict[Kind, Approval]] = {
    Kind.MERGE: Approval.AUTO,
    Kind.PROMOTE: Approval.AUTO,
    Kind.COMPACT: Approval.AUTO,
    Kind.ARCHIVE: Approval.AUTO,
    Kind.SUPERSEDE: Approval.NEEDS_HUMAN,
    Kind.PRUNE: Approval.NEEDS_HUMAN,
    Kind.ALIAS: Approval.NEEDS_HUMAN,
    Kind.FORGET: Approval.NEEDS_HUMAN,
}


def approval_of(kind: Kind) -> Approval:
    """The most that a kind may be approved by (R46, R62); a rule can only ask for more than this."""
    return _APPROVALS[kind]


class PolicyError(ValueError):
    """A policy holds a value that cannot be used; the message names the field and what it may be."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Rows of one origin may be proposed for pruning after some days. Never a user's own word (R47, C10)."""

    stated_by: StatedBy
    older_than_days: int  # since the earliest time anyone said it
    only_unused: bool = False  # only rows that no prompt was given

    def __post_init__(self) -> None:
        """Refuse what would let a schedule remove a user's word, or everything at once."""
        if self.stated_by is StatedBy.USER:
            raise PolicyError("retention cannot name stated_by 'user': what a user wrote leaves on request only.")
        if not 1 <= self.older_than_days <= 36_500:
            raise PolicyError("retention.older_than_days must be a whole number from 1 to 36500.")


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings a plan is made under. The default merges only near-identical rows and prunes nothing (R32)."""

    t_merge: float | None = None  # raises the profile's merge threshold; below it, it changes nothing
    block_cap: int = 200  # rows of one block; larger ones are split (R39)
    cluster_cap: int = 8  # rows of one merge that a person has to read
    confidence_cap: float = 0.99  # of a merged row (R72)
    chain_cap: int = 3  # merges of merges below a row before a person has to look
    many_values: int = 12  # more live values than this of one key: the predicate holds several at once
    blast_share: float = 0.10  # share of a scope that one plan may touch without a second confirmation
    blast_floor: int = 20  # rows that one plan may always touch
    approval_ttl_hours: int = 72  # an approval expires after this
    grace_days: int = 30  # an approved prune can be undone for this long
    unattended: bool = False  # AUTO items may be applied by a schedule; never by default (R94)
    retention: tuple[Retention, ...] = field(default=())  # none: nothing is ever pruned for its age

    def __post_init__(self) -> None:
        """Refuse figures outside their range, whichever way the policy was made."""
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise PolicyError(f"{name} must be from {low} to {high}, not {value}.")

    def merge_threshold(self, *, measured: float) -> float:
        """The cosine at which a merge may be automatic: the embedder's measured one, or the policy's when higher."""
        return measured if self.t_merge is None else max(measured, self.t_merge)

    @property
    def hash(self) -> str:
        """sha256, hex, of the policy in one spelling; part of what an approval covers."""
        return hashlib.sha256(canonical(self.to_dict())).hexdigest()

    def to_dict(self) -> dict[str, Json]:
        """The policy as JSON; `from_dict` reads it back."""
        plain: dict[str, Json] = {
            item.name: getattr(self, item.name) for item in fields(self) if item.name != "retention"
        }
        rules: list[Json] = [{**asdict(rule), "stated_by": rule.stated_by.value} for rule in self.retention]
        return {**plain, "retention": rules}

    @classmethod
    def from_dict(cls, values: Mapping[str, Json]) -> Policy:
        """A policy from JSON; what is left out keeps its default. Raises PolicyError with one sentence per fault."""
        _refuse_unknown(values, {item.name for item in fields(cls)}, "policy")
        whole = {name: _whole(name, values[name]) for name in _WHOLE & values.keys()}
        shares = {name: _number(name, values[name]) for name in _NUMBERS & values.keys()}
        raised = values.get("t_merge")
        return cls(
            t_merge=None if raised is None else _number("t_merge", raised),
            unattended=_flag("unattended", values.get("unattended", False)),
            retention=_retention(values.get("retention", ())),
            **whole,
            **shares,  # type: ignore[arg-type]  # the names of both are those of fields of their type
        )


_RANGES: Final[dict[str, tuple[float, float]]] = {
    "t_merge": (0.5, 1.0),
    "block_cap": (2, 200),
    "cluster_cap": (2, 50),
    "confidence_cap": (0.0, 0.99),
    "chain_cap": (0, 10),
    "many_values": (2, 50),
    "blast_share": (0.0, 1.0),
    "blast_floor": (0, 1_000_000),
    "approval_ttl_hours": (1, 720),
    "grace_days": (1, 3_650),
}
_NUMBERS: Final = frozenset({"confidence_cap", "blast_share"})
_WHOLE: Final = frozenset(_RANGES) - _NUMBERS - {"t_merge"}


def _refuse_unknown(values: Mapping[str, Json], known: set[str], what: str) -> None:
    unknown = sorted(set(values) - known)
    if unknown:
        raise PolicyError(f"{what} has no field {unknown[0]!r}; it may have {', '.join(sorted(known))}.")


def _whole(name: str, value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise PolicyError(f"{name} must be a whole number.")
    return value


def _number(name: str, value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PolicyError(f"{name} must be a number.")
    return float(value)


def _flag(name: str, value: Json) -> bool:
    if not isinstance(value, bool):
        raise PolicyError(f"{name} must be true or false.")
    return value


def _retention(value: Json) -> tuple[Retention, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise PolicyError("retention must be a list of rules; an empty list prunes nothing.")
    return tuple(_rule(rule) for rule in value)


def _rule(value: Json) -> Retention:
    if not isinstance(value, Mapping):
        raise PolicyError("each retention rule must be an object with stated_by and older_than_days.")
    _refuse_unknown(value, {item.name for item in fields(Retention)}, "a retention rule")
    origin = value.get("stated_by")
    if not isinstance(origin, str) or origin not in set(StatedBy):
        raise PolicyError(f"retention.stated_by must be one of {', '.join(StatedBy)}.")
    return Retention(
        stated_by=StatedBy(origin),
        older_than_days=_whole("retention.older_than_days", value.get("older_than_days")),
        only_unused=_flag("retention.only_unused", value.get("only_unused", False)),
    )


# --- which policy holds for a scope ----------------------------------------------------------------------------------


def matches(*, pattern: str, scope: str) -> bool:
    """Whether a scope's name is meant: '*' is every scope, 'prefix/*' all below the prefix, else the exact name."""
    if pattern == "*":
        return True
    if pattern.endswith("/*"):
        return scope.startswith(pattern[:-1]) and len(scope) > len(pattern) - 1
    return pattern == scope


def most_specific(*, patterns: Iterable[str], scope: str) -> str | None:
    """The pattern that holds for a scope: its exact name before the longest prefix before '*'; None: none does."""
    ranked = [
        (pattern == scope, len(pattern), pattern) for pattern in patterns if matches(pattern=pattern, scope=scope)
    ]
    return max(ranked)[2] if ranked else None
