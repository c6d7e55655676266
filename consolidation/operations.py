"""What a rule may propose, how it is identified, and how a plan is printed.

Plain values: nothing here reads a store, a clock or a policy. An operation is data with one interpreter, the runner.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Final, TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


class Kind(StrEnum):
    """What an operation does (DESIGN 4, R61)."""

    MERGE = "merge"  # several rows that say one thing become one new row; the sources are archived
    PROMOTE = "promote"  # what independent episodes agree on becomes an observation
    COMPACT = "compact"  # episodes become a summary; the episodes are archived
    SUPERSEDE = "supersede"  # a person decides between the live values of one subject and predicate
    ARCHIVE = "archive"  # decayed rows leave the reads
    PRUNE = "prune"  # rows are erased after a grace period, by explicit retention or as used-up sources
    ALIAS = "alias"  # two subjects are one entity
    FORGET = "forget"  # a person asked for it; erases the closure


OF_EPISODES: Final = (Kind.PROMOTE, Kind.COMPACT)  # their sources are episodes


class Approval(StrEnum):
    """Who has to agree before an operation may be applied."""

    AUTO = "AUTO"  # nobody item by item: applied when a person applies the plan
    NEEDS_HUMAN = "NEEDS_HUMAN"  # a person, item by item
    NEVER = "NEVER"  # nobody can: shown with its reason, never applied


class State(StrEnum):
    """Where an operation stands (DESIGN 4, Life). A decision that changed no memory may be reopened; what was applied
    can only be undone, and undone, stale and edited are the end of a generation.
    """

    PLANNED = "planned"  # AUTO, waiting for a person to apply the plan
    NEEDS_HUMAN = "needs_human"  # waiting for a decision
    SKIPPED = "skipped"  # a rule refused it; the reason is kept. Still decidable when its approval is NEEDS_HUMAN (C7)
    APPROVED = "approved"  # decided, not applied yet
    APPLIED = "applied"  # done, can be undone
    REJECTED = "rejected"  # a person said no
    DISTINCT = "distinct"  # a person said: these are different; remembered for good
    UNDONE = "undone"  # applied and taken back
    STALE = "stale"  # its sources or the policy changed since planning
    FAILED = "failed"  # applying it failed and nothing was written
    EDITED = "edited"  # a reviewer's edit of it took its place


class Risk(IntEnum):
    """How much a wrong yes would cost; the review queue is ordered by it."""

    LOW = 1  # undo puts everything back, and a reader would hardly notice
    MEDIUM = 2  # undo puts everything back; until then agents read something else
    HIGH = 3  # words are gone for good once the grace period is over


_RISKS: Final[dict[Kind, Risk]] = {
    Kind.MERGE: Risk.LOW,
    Kind.PROMOTE: Risk.LOW,
    Kind.ARCHIVE: Risk.LOW,
    Kind.COMPACT: Risk.MEDIUM,
    Kind.SUPERSEDE: Risk.MEDIUM,
    Kind.ALIAS: Risk.MEDIUM,
    Kind.PRUNE: Risk.HIGH,
    Kind.FORGET: Risk.HIGH,
}


def risk_of(kind: Kind) -> Risk:
    """How much a wrong yes to an operation of this kind would cost."""
    return _RISKS[kind]


def uncertainty_of(*, score: float | None) -> float:
    """From 0 (sure) to 1: how little the rule's own figure says; one half where the rule gives none."""
    return 0.5 if score is None else round(1.0 - min(1.0, max(0.0, score)), 6)


class Prefix(StrEnum):
    """The display prefixes of ids; the stored ids are plain numbers."""

    OBSERVATION = "obs"
    EPISODE = "ep"
    PLAN = "plan"


def obs(number: int) -> str:
    """How an observation's id is shown."""
    return f"{Prefix.OBSERVATION}_{number}"


def ep(number: int) -> str:
    """How an episode's id is shown."""
    return f"{Prefix.EPISODE}_{number}"


def plan(number: int) -> str:
    """How a plan's id is shown."""
    return f"{Prefix.PLAN}_{number}"


def number_of(*, shown: str, prefix: Prefix) -> int:
    """The plain id behind a shown one; the bare number is understood too.

    Raises ValueError with a sentence for anything else.
    """
    found = re.fullmatch(rf"(?:{prefix}_)?([1-9][0-9]{{0,18}})", shown.strip(), re.ASCII)
    if found is None:
        raise ValueError(f"{visible(shown)!r} is not an id of the form {prefix}_123.")
    return int(found.group(1))


@dataclass(frozen=True, slots=True)
class Proposal:
    """A rule's output, not stored yet. `reason` and `signals` hold ids, figures and guard names, never memory text."""

    kind: Kind
    scope_id: int
    sources: tuple[int, ...]  # ids of the rows it consumes: unique, ascending
    approval: Approval
    reason: str
    score: float | None = None  # merge: the lowest similarity to the keeper (R70)
    skipped_reason: str = ""  # not empty: a rule refused it, and why
    keeper: int | None = None  # the source whose text the product carries
    product: Mapping[str, Json] = field(default_factory=dict, hash=False)
    signals: Mapping[str, Json] = field(default_factory=dict, hash=False)
    text: str = ""  # what the product will say, where no source says it: memory text, in a column of its own
    key: tuple[str, str, str] = ("", "", "")  # the product's subject, predicate and object: memory text too

    def __post_init__(self) -> None:
        """Refuse a proposal that no runner could interpret: a rule that builds one has a bug."""
        if not self.sources or list(self.sources) != sorted(set(self.sources)):
            raise ValueError("A proposal needs its source ids, each once and in ascending order.")
        if self.keeper is not None and self.keeper not in self.sources:
            raise ValueError("The keeper of a proposal must be one of its sources.")
        if self.approval is Approval.NEVER and not self.skipped_reason:
            raise ValueError("A proposal that may never be applied must say why it is skipped.")

    @property
    def of_episodes(self) -> bool:
        """True when the sources are episodes, not observations."""
        return self.kind in OF_EPISODES

    @property
    def auto(self) -> bool:
        """R64: automatic by its approval class and not skipped."""
        return self.approval is Approval.AUTO and not self.skipped_reason

    @property
    def state(self) -> State:
        """The state it is first stored in."""
        if self.skipped_reason:
            return State.SKIPPED
        return State.PLANNED if self.approval is Approval.AUTO else State.NEEDS_HUMAN

    @property
    def appliable(self) -> bool:
        """True when it would change memory as it stands. A plan holds at most one such proposal per record."""
        return not self.skipped_reason

    @property
    def awaits_review(self) -> bool:
        """True when a person is asked: needs_human, or skipped but still for a person to see (C7)."""
        return self.approval is Approval.NEEDS_HUMAN

    @property
    def risk(self) -> Risk:
        """How much a wrong yes would cost."""
        return risk_of(self.kind)

    @property
    def uncertainty(self) -> float:
        """How little the rule's own figure says, from 0 to 1."""
        return uncertainty_of(score=self.score)

    @property
    def input_key(self) -> str:
        """The sources' own id (R59, golden): blake2b over kind and the sorted display ids. Not unique per product."""
        shown = ep if self.of_episodes else obs
        return input_key(kind=self.kind, sources=[shown(source) for source in self.sources])

    @property
    def id(self) -> str:
        """The operation's id: kind, scope, sorted sources and the product's discriminator, no versions (DESIGN 4)."""
        parts = [self.kind.value, str(self.scope_id), *map(str, self.sources)]
        return operation_id(parts=[*parts, str(self.product.get("discriminator", ""))])


def input_key(*, kind: Kind, sources: Iterable[str]) -> str:
    """R59: "op_" and 8 bytes of blake2b over kind and sorted sources, joined by '|', in hex."""
    joined = "|".join([kind.value, *sorted(sources)])
    return "op_" + hashlib.blake2b(joined.encode(), digest_size=8).hexdigest()


def operation_id(*, parts: Sequence[str]) -> str:
    """128 bits of blake2b over length-prefixed parts: no two lists of parts read the same (R59 joined by '|' can)."""
    hashed = hashlib.blake2b(digest_size=16)
    for part in parts:
        raw = part.encode()
        hashed.update(len(raw).to_bytes(8, "big") + raw)
    return "op_" + hashed.hexdigest()


def canonical(value: Json) -> bytes:
    """JSON in one spelling: sorted keys, no spaces, UTF-8. Raises ValueError on NaN and infinity."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class Shown:
    """One source as the reviewer saw it."""

    id: int
    version: int
    status: str
    content_hash: str  # sha256 of the text, hex


def digest(
    *, operation: str, generation: int, kind: Kind, decision: Mapping[str, Json], sources: Iterable[Shown], policy: str
) -> str:
    """sha256, hex, of exactly what was shown; apply computes it again under lock (DESIGN 4, I17, I18).

    `decision` is the product and what the person chose, `policy` the policy's hash. The order of sources is irrelevant.
    """
    rows: list[Json] = [
        [source.id, source.version, source.status, source.content_hash]
        for source in sorted(sources, key=lambda source: source.id)
    ]
    shown: dict[str, Json] = {
        "operation": operation,
        "generation": generation,
        "kind": kind.value,
        "decision": decision,
        "sources": rows,
        "policy": policy,
    }
    return hashlib.sha256(canonical(shown)).hexdigest()


# --- words for a reader ----------------------------------------------------------------------------------------------


def counted(number: float, one: str) -> str:
    """A number of things as a reader expects it: "1 record", "1,200 records". The word takes an s, nothing else."""
    shown = f"{number:,.0f}"
    return f"{shown} {one}" if shown == "1" else f"{shown} {one}s"


# --- text that may be hostile ----------------------------------------------------------------------------------------

# Printable to Python, invisible or blank to a reader: fillers, variation selectors, joiners, the braille blank.
_BLANK: Final = frozenset(
    map(chr, [0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2800, 0x3164, 0xFFA0])
) | frozenset(map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
_MARKS_SHOWN: Final = 3  # more combining marks than that on one letter paint over the lines around it
_WORD: Final = re.compile(r"\w+")


def visible(text: str) -> str:
    r"""The text with every character a reader cannot see, or could be misled by, as an escape such as \u202e (F5).

    Control, format, bidirectional, zero-width, tag and private characters, line breaks, odd spaces, blank letters,
    piles of combining marks, and Greek or Cyrillic letters inside a Latin word. One line comes back.
    """
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    marks = 0
    for character in _WORD.sub(_unmixed, text):
        marks = marks + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        hidden = not character.isprintable() or character in _BLANK or marks > _MARKS_SHOWN
        shown.append(_escape(character) if hidden else character)
    return "".join(shown)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _unmixed(word: re.Match[str]) -> str:
    """A word of Latin letters with its Greek and Cyrillic look-alikes escaped; other words as they are."""
    text = word.group()
    if text.isascii() or not re.search("[A-Za-z]", text):
        return text
    return "".join(
        _escape(letter) if unicodedata.name(letter, "").startswith(("CYRILLIC ", "GREEK ")) else letter
        for letter in text
    )
