"""What may be merged, kept and removed, and who has to agree: the settings of one scope or a family of scopes.

A policy can only be stricter than the embedder's measured thresholds and the approval classes, never looser.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Final, TypeVar

from consolidation.operations import Approval, Json, Kind, Risk, canonical
from observations.normalise import key_part
from observations.records import MemoryKind, StatedBy

_Member = TypeVar("_Member", bound=StrEnum)

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
    """A policy holds a value that cannot be used; the message names the field and what it may be.

    `field` is the field at fault, "pattern" for where it should hold, or empty for the policy as a whole.
    """

    def __init__(self, sentence: str, *, field: str = "") -> None:
        super().__init__(sentence)
        self.field = field


class Trigger(StrEnum):
    """When a scope is planned (R33)."""

    MANUAL = "manual"  # when a person asks; the default
    RECORDS = "records"  # when so many records are new since the last plan
    SCHEDULE = "schedule"  # at the times of the schedule


@dataclass(frozen=True, slots=True)
class Retention:
    """Rows of one origin may be proposed for pruning after some days. Never a user's own word (R47, C10)."""

    stated_by: StatedBy
    older_than_days: int  # since the earliest time anyone said it
    only_unused: bool = False  # only rows that no prompt was given
    kind: MemoryKind | None = None  # only rows of this kind; None: of every kind

    def __post_init__(self) -> None:
        """Refuse what would let a schedule remove a user's word, or everything at once."""
        if self.stated_by is StatedBy.USER:
            raise PolicyError(
                "retention cannot name stated_by 'user': what a user wrote leaves on request only.", field="retention"
            )
        if not 1 <= self.older_than_days <= 36_500:
            raise PolicyError(
                "retention.older_than_days must be a whole number from 1 to 36500.", field="retention.older_than_days"
            )


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings a plan is made under. The default merges near-identical rows and promotes; it compacts, archives and
    prunes nothing until somebody says so (R32).
    """

    # What may be done, and to what
    merge: bool = True
    promote: bool = True
    compact: bool = False
    archive: bool = False
    prune: bool = False  # by retention, and archived sources that are used up (R51)
    mergeable: tuple[MemoryKind, ...] = tuple(MemoryKind)  # what may be merged without a person
    untouchable: tuple[MemoryKind, ...] = ()  # never part of any proposal
    keep_days: int = 0  # a retention duty: younger rows and episodes are not compacted, archived or pruned
    retention: tuple[Retention, ...] = field(default=())  # none: nothing is ever pruned for its age
    # When
    trigger: Trigger = Trigger.MANUAL
    every_records: int = 500  # new records that make a plan, with the trigger `records`
    # Merging and contradictions
    t_merge: float | None = None  # raises the profile's merge threshold; below it, it is refused
    block_cap: int = 200  # rows of one block; larger ones are split (R39)
    cluster_cap: int = 8  # rows of one merge that a person has to read
    confidence_cap: float = 0.99  # of a merged row (R72)
    chain_cap: int = 3  # merges of merges below a row before a person has to look
    single_valued: tuple[str, ...] = ()  # predicates with one value at a time
    many_valued: tuple[str, ...] = ()  # predicates that hold several values at once: two hobbies contradict nothing
    # Promoting and compacting
    min_support: int = 2  # independent sources below which nothing is promoted (R75)
    auto_support: int = 3  # independent sources from which no person is asked (R45)
    promoted_confidence: float = 0.6  # the ceiling of what is promoted (R75)
    session_hours: int = 24  # turns without a session belong together within this time
    max_compression: float = 10.0  # episodes per summary (R81, R89)
    compact_after_days: int = 30  # episodes younger than this stay as they are
    # Decay
    archive_below: float = 0.10  # strength under which a row is archived: 3.3 half-lives
    # People
    review_budget: int | None = 50  # items a day that a scope may ask people about; None: no limit
    blast_share: float = 0.10  # share of a scope that one plan may touch without a second confirmation
    blast_floor: int = 20  # rows that one plan may always touch
    approval_ttl_hours: int = 72  # an approval expires after this
    grace_days: int = 30  # an approved prune can be undone for this long
    two_person_kinds: tuple[Kind, ...] = (Kind.PRUNE, Kind.FORGET)  # a second person agrees to these
    two_person_wide: bool = True  # and to what touches more of a scope than its blast radius
    age_high_hours: int = 24  # how long an item of high risk may wait before people are told
    age_medium_hours: int = 72
    age_low_hours: int = 168
    waiting_ttl_days: int = 30  # an item that nobody decided goes stale after this; it is never approved by time
    unattended: bool = False  # AUTO items may be applied by a schedule; never by default (R94)
    # Measured error: how many of what was applied without a decision people are asked about, and how many may be wrong
    sample_first: int = 20  # the first of a band are all asked about
    sample_share: float = 0.05  # then this share
    error_limit_per_1000: float = 5.0  # a band known to be wrong more often decides nothing alone any more

    def __post_init__(self) -> None:
        """Refuse figures outside their range, whichever way the policy was made."""
        for name in RANGES:
            _in_range(name, getattr(self, name))
        if self.auto_support <= self.min_support:
            sentence = "auto_support must be larger than min_support: between them a person is asked."
            raise PolicyError(sentence, field="auto_support")
        if both := set(map(key_part, self.single_valued)) & set(map(key_part, self.many_valued)):
            sentence = f"{min(both)!r} cannot hold one value and many: leave it out of one list."
            raise PolicyError(sentence, field="many_valued")

    def merge_threshold(self, *, measured: float) -> float:
        """The cosine at which a merge may be automatic: the embedder's measured one, or the policy's when higher."""
        return measured if self.t_merge is None else max(measured, self.t_merge)

    @property
    def hash(self) -> str:
        """sha256, hex, of the policy in one spelling; part of what an approval covers. What is measured afterwards is
        no part of it.
        """
        covered = {name: value for name, value in self.to_dict().items() if name not in _AFTERWARDS}
        return hashlib.sha256(canonical(covered)).hexdigest()

    def to_dict(self) -> dict[str, Json]:
        """The policy as JSON; `from_dict` reads it back."""
        plain: dict[str, Json] = {
            item.name: list(value) if isinstance(value := getattr(self, item.name), tuple) else value
            for item in fields(self)
            if item.name != "retention"
        }
        rules: list[Json] = [
            {**asdict(rule), "stated_by": rule.stated_by.value, "kind": rule.kind} for rule in self.retention
        ]
        return {**plain, "retention": rules}

    @classmethod
    def from_dict(cls, values: Mapping[str, Json]) -> Policy:
        """A policy from JSON; what is left out keeps its default. Raises PolicyError with one sentence per fault."""
        if not isinstance(values, Mapping):
            raise PolicyError("a policy must be an object with a value per field.")
        _refuse_unknown(values, {item.name for item in fields(cls)}, "policy")
        return cls(**{name: _read(name, value) for name, value in values.items()})  # type: ignore[arg-type]

    @classmethod
    def salvaged(cls, values: Mapping[str, Json]) -> Policy:
        """What can be read of a policy that cannot be read whole, the rest at its default: for the form that repairs
        it.
        """
        known = {item.name for item in fields(cls)}
        wrong = faults(values)
        kept = {name: value for name, value in values.items() if name in known and name not in wrong}
        try:
            return cls.from_dict(kept)
        except PolicyError:  # two fields that do not go together
            return cls()

    def blast_limit(self, *, size: int) -> int:
        """How many records one person may have touched at once in a scope of `size` current ones."""
        return max(self.blast_floor, int(size * self.blast_share))

    def age_hours(self, risk: Risk) -> int:
        """How many hours an item of this risk may wait before people are told."""
        return {Risk.LOW: self.age_low_hours, Risk.MEDIUM: self.age_medium_hours, Risk.HIGH: self.age_high_hours}[risk]

    def value_count(self, predicate: str) -> str:
        """What the policy says of a predicate: "one", "many", or "" where it says nothing. The words are normalised."""
        if predicate in map(key_part, self.many_valued):
            return "many"
        return "one" if predicate in map(key_part, self.single_valued) else ""


RANGES: Final[dict[str, tuple[float, float]]] = {
    "keep_days": (0, 36_500),
    "every_records": (1, 1_000_000),
    "t_merge": (0.5, 1.0),
    "block_cap": (2, 200),
    "cluster_cap": (2, 50),
    "confidence_cap": (0.0, 0.99),
    "chain_cap": (0, 10),
    "min_support": (2, 50),
    "auto_support": (3, 50),
    "promoted_confidence": (0.0, 0.6),
    "session_hours": (1, 720),
    "max_compression": (1.0, 10.0),
    "compact_after_days": (1, 36_500),
    "archive_below": (0.0, 0.5),
    "review_budget": (1, 100_000),
    "blast_share": (0.0, 1.0),
    "blast_floor": (0, 1_000_000),
    "approval_ttl_hours": (1, 720),
    "grace_days": (1, 3_650),
    "age_high_hours": (1, 8_760),
    "age_medium_hours": (1, 8_760),
    "age_low_hours": (1, 8_760),
    "waiting_ttl_days": (1, 3_650),
    "sample_first": (1, 10_000),
    "sample_share": (0.01, 1.0),
    "error_limit_per_1000": (0.1, 50.0),
}
_NUMBERS: Final = frozenset(
    {
        *("confidence_cap", "blast_share", "promoted_confidence", "max_compression", "archive_below"),
        *("sample_share", "error_limit_per_1000"),
    }
)
# They say what is looked at afterwards, not what may be done: what was proposed or approved stays as it is.
_AFTERWARDS: Final = (
    *("sample_first", "sample_share", "error_limit_per_1000"),
    # Who agrees and how long people take is looked at when it is applied, whatever held when it was proposed
    *("two_person_kinds", "two_person_wide", "age_high_hours", "age_medium_hours", "age_low_hours", "waiting_ttl_days"),
)
_OPTIONAL: Final = frozenset({"t_merge", "review_budget"})
_FLAGS: Final = frozenset({"merge", "promote", "compact", "archive", "prune", "two_person_wide", "unattended"})


def faults(values: Mapping[str, Json]) -> dict[str, str]:
    """A sentence for every field of a policy as JSON that cannot be used, by field; empty when `from_dict` reads it."""
    known = {item.name for item in fields(Policy)}
    found: dict[str, str] = {}
    for name, value in values.items():
        try:
            _refuse_unknown({name: value}, known, "policy")
            _in_range(name, _read(name, value))
        except PolicyError as fault:
            found[name] = str(fault)
    if not found:  # what no field says alone
        try:
            Policy.from_dict(values)
        except PolicyError as fault:
            found[fault.field] = str(fault)
    return found


def refuse_below(*, t_merge: float | None, measured: float, embedder: str) -> None:
    """Raises PolicyError for a merge threshold under the one that was measured for the embedder (R42)."""
    if t_merge is not None and t_merge < measured:
        raise PolicyError(
            f"t_merge {t_merge:g} is below {measured:g}, the threshold measured for {embedder}: raise it, or leave it "
            "empty.",
            field="t_merge",
        )


def _in_range(name: str, value: object) -> None:
    if name not in RANGES or value is None:
        return
    low, high = RANGES[name]
    if not isinstance(value, int | float) or not low <= value <= high:
        raise PolicyError(f"{name} must be from {low} to {high}, not {value}.", field=name)


def _read(name: str, value: Json) -> object:
    """One field's value as the policy holds it. Raises PolicyError."""
    if name in _OPTIONAL and value is None:
        return None
    if name in _FLAGS:
        return _flag(name, value)
    if name in _NUMBERS or name == "t_merge":
        return _number(name, value)
    if name in ("mergeable", "untouchable"):
        named = {_member(name, word, MemoryKind) for word in _list(name, value)}
        return tuple(kind for kind in MemoryKind if kind in named)  # in one order: the same policy has one hash
    if name == "two_person_kinds":
        chosen = {_member(name, word, Kind) for word in _list(name, value)}
        return tuple(kind for kind in Kind if kind in chosen)
    if name in ("single_valued", "many_valued"):
        return _predicates(name, value)
    if name == "trigger":
        return _member(name, value, Trigger)
    return _retention(value) if name == "retention" else _whole(name, value)


def _list(name: str, value: Json) -> list[Json]:
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise PolicyError(f"{name} must be a list.", field=name)
    return list(value)


def _predicates(name: str, value: Json) -> tuple[str, ...]:
    words = _list(name, value)
    if not all(isinstance(word, str) and key_part(word) for word in words):
        raise PolicyError(f"{name} must be a list of predicates, each a word or a few.", field=name)
    return tuple(dict.fromkeys(str(word) for word in words))


def _member(name: str, value: Json, enum: type[_Member]) -> _Member:
    if not isinstance(value, str) or value not in set(enum):
        raise PolicyError(f"{name} may hold {', '.join(enum)}; {str(value)[:40]!r} is none of them.", field=name)
    return enum(value)


def _refuse_unknown(values: Mapping[str, Json], known: set[str], what: str) -> None:
    unknown = sorted(set(values) - known)
    if unknown:
        sentence = f"{what} has no field {unknown[0][:40]!r}; it may have {', '.join(sorted(known))}."
        raise PolicyError(sentence, field=unknown[0])


def _whole(name: str, value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise PolicyError(f"{name} must be a whole number.", field=name)
    return value


def _number(name: str, value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PolicyError(f"{name} must be a number.", field=name)
    return float(value)


def _flag(name: str, value: Json) -> bool:
    if not isinstance(value, bool):
        raise PolicyError(f"{name} must be true or false.", field=name)
    return value


def _retention(value: Json) -> tuple[Retention, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise PolicyError("retention must be a list of rules; an empty list prunes nothing.", field="retention")
    return tuple(_rule(rule) for rule in value)


def _rule(value: Json) -> Retention:
    if not isinstance(value, Mapping):
        sentence = "each retention rule must be an object with stated_by and older_than_days."
        raise PolicyError(sentence, field="retention")
    _refuse_unknown(value, {item.name for item in fields(Retention)}, "a retention rule")
    origin = value.get("stated_by")
    if not isinstance(origin, str) or origin not in set(StatedBy):
        raise PolicyError(f"retention.stated_by must be one of {', '.join(StatedBy)}.", field="retention.stated_by")
    return Retention(
        stated_by=StatedBy(origin),
        older_than_days=_whole("retention.older_than_days", value.get("older_than_days")),
        only_unused=_flag("retention.only_unused", value.get("only_unused", False)),
        kind=None if value.get("kind") is None else _member("retention.kind", value["kind"], MemoryKind),
    )


# --- which policy holds for a scope ----------------------------------------------------------------------------------

_PATH: Final = re.compile(r"[^\x01-\x1f*/\s]([^\x01-\x1f*]*[^\x01-\x1f*/\s])?")  # as the database checks scope names
PATTERN_LENGTH: Final = 200


def check_pattern(*, pattern: str) -> None:
    """Raises PolicyError unless a pattern is '*', the name of a scope ('a/b'), or all below one ('a/*')."""
    name = pattern.removesuffix("/*")
    good = _PATH.fullmatch(name) and "//" not in name and pattern.isprintable() and len(pattern) <= PATTERN_LENGTH
    if pattern != "*" and not good:
        sentence = "pattern must be the name of a scope such as 'team/anna', 'team/*' for all below it, or '*' for all."
        raise PolicyError(sentence, field="pattern")


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
