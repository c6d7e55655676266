"""Frozen values that cross layers. Standard library only; no ORM, no clock, no network."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final


class Status(StrEnum):
    """Where a row stands. Every reader for an agent sees ACTIVE and nothing else (R13)."""

    ACTIVE = "active"  # current; the only status that reads return
    SUPERSEDED = "superseded"  # a newer row replaces it; always names a successor
    ARCHIVED = "archived"  # left the reads, kept whole; may name a successor
    RETRACTED = "retracted"  # a derived row whose operation was undone
    QUARANTINED = "quarantined"  # held back until a person looks
    ERASED = "erased"  # text, key, quotes and vector are gone; the shell and its edges stay


class StatedBy(StrEnum):
    """Whose word a row is (the origin lattice of DESIGN 3); a derived row takes the lowest of its sources."""

    USER = "user"  # the person the memory is about said so
    OPERATOR = "operator"  # a person who runs the system said so
    AGENT = "agent"  # the agent concluded it
    TOOL = "tool"  # a tool's output said so
    OUTSIDE = "outside"  # text from the world: pages, mails, documents

    @property
    def rank(self) -> int:
        """5 for a user's own word, down to 1 for outside text."""
        return _RANKS[self]


_RANKS = {
    StatedBy.USER: 5,
    StatedBy.OPERATOR: 4,
    StatedBy.AGENT: 3,
    StatedBy.TOOL: 2,
    StatedBy.OUTSIDE: 1,
}


class WrittenBy(StrEnum):
    """Which path wrote a row (R122)."""

    DELIBERATE = "deliberate"  # an agent called a tool
    BACKGROUND = "background"  # extract and reconcile
    IMPORT = "import"  # a file
    CONSOLIDATION = "consolidation"  # an applied operation


class MemoryKind(StrEnum):
    """What sort of thing a claim is; it says how fast the claim fades (DESIGN 8, decay)."""

    PREFERENCE = "preference"  # what somebody likes or wants; never fades
    IDENTITY = "identity"  # who somebody is; never fades
    FACT = "fact"  # what is so; the default
    STATE = "state"  # what is so just now
    EPISODE = "episode"  # what happened once; summaries of episodes are of this kind
    NOTE = "note"  # a remark for the next days

    @property
    def half_life_days(self) -> int | None:
        """Days after which half of its strength is left; None: it never fades."""
        return _HALF_LIVES[self]


_HALF_LIVES: dict[MemoryKind, int | None] = {
    MemoryKind.PREFERENCE: None,
    MemoryKind.IDENTITY: None,
    MemoryKind.FACT: 180,
    MemoryKind.STATE: 7,
    MemoryKind.EPISODE: 30,
    MemoryKind.NOTE: 3,
}


class Outcome(StrEnum):
    """How what an episode tells of ended."""

    SUCCESS = "success"  # verified
    CLAIMED = "claimed"  # said to have worked, nobody checked
    PARTIAL = "partial"  # some of it worked
    FAILURE = "failure"  # it did not work
    UNKNOWN = "unknown"  # nobody said


@dataclass(frozen=True, slots=True)
class EvidenceRef:
    """One thing an observation rests on. `root_source` is what counts as one witness (R95, C8)."""

    source_uri: str
    root_source: str = ""  # empty: the source is its own root
    quote: str = ""  # words of the source, as they stand there
    quote_start: int | None = None  # position of the quote in the source, in code points
    episode: str = ""  # the external id of the episode that the source is, where it is one

    @property
    def root(self) -> str:
        """The independent witness behind this source."""
        return self.root_source or self.source_uri


@dataclass(frozen=True, slots=True)
class Claim:
    """A text with its optional key, not yet stored."""

    text: str
    external_id: str = ""  # the caller's own id, unique in its scope; empty: derived from the content
    subject: str = ""
    predicate: str = ""
    object: str = ""
    confidence: float = 0.5
    stated_by: StatedBy = StatedBy.AGENT
    kind: MemoryKind = MemoryKind.FACT
    half_life_days: int | None = None  # None: the kind's own; set once, when the row is written
    created_at: datetime | None = None  # the earliest time anyone said it; None: the database's clock
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    evidence: tuple[EvidenceRef, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceRef:
    """A source of a derived row, named as files name it."""

    external_id: str
    episode: bool = False


class Action(StrEnum):
    """What a deliberate write, or a verdict of the pipeline, did with one claim."""

    ADDED = "added"
    KNOWN = "known"  # stored before in the same words; new evidence is attached to that row
    UPDATED = "updated"  # supersedes a row and takes over its evidence (R15)
    REPLACED = "replaced"  # supersedes a row and starts its evidence fresh (R16)
    RETIRED = "retired"  # left the reads, whole
    RESTORED = "restored"
    REFUSED = "refused"
    ASKED = "asked for review"  # a person decides


@dataclass(frozen=True, slots=True)
class Kept:
    """The answer of one deliberate write."""

    action: Action
    id: int | None  # the stored row; None where nothing is stored
    text: str  # as it is stored; "" where nothing is
    evidence: int  # distinct root sources after the write (R95)
    reason: str = ""  # why refused, downgraded or left to a person: one sentence without memory text
    cleaned: bool = False  # a character no database can hold was replaced (C1)
    replaced: int | None = None  # the row that this one supersedes
    external_id: str = ""


PROGRAM: Final = "token:"  # how the name of a program begins; what follows is its token's key id
PIPELINE: Final = "intake"  # the name of the background pipeline


def is_program(name: str) -> bool:
    """Whether a name is a program's or the pipeline's; any other is a person's."""
    return name.startswith(PROGRAM) or name == PIPELINE


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a call and what they may do, whatever the doorway. A token's are fixed when it is made."""

    name: str  # "token:<key id>" for a program, "<account>@command" for a person
    pattern: str  # the scopes it reaches: `prefix/*`, one exact name, or `*` for a person who may see all
    may_read: bool = False
    may_write: bool = False
    may_propose: bool = False
    speaks_for_user: bool = False  # what it calls the user's word is believed without a quote
    person: bool = False

    def reaches(self, scope: str) -> bool:
        """Whether a scope of that name is within the pattern, by the rule of Scope.objects.matching; a scope need not
        exist. Names are compared as they are: `team/*` reaches neither `team` nor `team-b/x`.
        """
        if self.pattern.endswith("/*"):
            return scope.startswith(self.pattern[:-1])
        return scope == self.pattern or (self.pattern == "*" and self.person)


class KeyState(StrEnum):
    """What became of asking a model for the key of an observation; the words of GivenKey.State."""

    GIVEN = "given"
    NONE = "none"  # the model found nothing that could be a key
    UNUSABLE = "unusable"  # its answer could not be used; asked again a limited number of times
    WITHDRAWN = "withdrawn"  # a person took it back; never asked again


@dataclass(frozen=True, slots=True)
class Given:
    """The parts of a key that a model gave, "" where the writer's own stand, or why there are none."""

    state: KeyState
    model: str
    prompt_version: str
    subject: str = ""
    predicate: str = ""
    object: str = ""
    quote: tuple[int, int] | None = None  # start and end of the words of the text that it rests on, in code points
    attempts: int = 1
    at: datetime | None = None  # None: the database's clock
    withdrawn_by: str = ""


@dataclass(frozen=True, slots=True)
class Past:
    """What another store knows of an observation beyond its claim: an export carries it, an import takes it over."""

    status: Status = Status.ACTIVE
    superseded_by: str = ""  # the successor's external id
    written_by: WrittenBy = WrittenBy.IMPORT
    reconciled_at: datetime | None = None
    cleaned: bool = False
    derivation: str = ""
    derived_at: datetime | None = None
    produced_by: str = ""  # the operation, which lives in the other store
    chain: int = 0
    uses_inherited: int = 0
    lineage: tuple[SourceRef, ...] = ()
    erased: tuple[str, str, str] = ("", "", "")  # who erased it, why, by which request
    given: Given | None = None  # the key that a model gave in the other store


@dataclass(frozen=True, slots=True)
class Turn:
    """A verbatim episode, not yet stored."""

    text: str
    external_id: str = ""
    speaker: str = ""
    role: str = ""
    session: str = ""
    seq: int = 0  # order inside a session whose turns share one time
    happened_at: datetime | None = None
    source_uri: str = ""
    root_source: str = ""
    outcome: Outcome = Outcome.UNKNOWN
    cleaned: bool = False  # known to have been cleaned before it came here
    status: Status = Status.ACTIVE  # or archived, in an import


@dataclass(frozen=True, slots=True)
class Record:
    """A stored observation as the rules of consolidation see it: a value, read once, never a live row."""

    id: int
    scope_id: int
    text: str
    normalised: str  # observations.normalise.normalised(text)
    key: tuple[str, str, str]  # (subject, predicate, object), each through normalise.key_part; "" where absent
    confidence: float
    stated_by: StatedBy
    created_at: datetime
    status: Status
    version: int
    content_hash: str  # sha256 of the text, hex
    external_id: str = ""
    subject: str = ""  # as given
    predicate: str = ""
    object: str = ""
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    derivation: str = ""  # empty: not derived
    roots: frozenset[str] = field(default_factory=frozenset)  # distinct root sources of its evidence
    kind: MemoryKind = MemoryKind.FACT
    half_life_days: int | None = None  # as it was set at write; None: it never fades
    key_by: str = ""  # the model that gave the key, where a writer gave none; empty: the writer's own, or no key
    own_key: tuple[str, str, str] = ("", "", "")  # with `key_by`: the parts of the key that are the writer's own
    renamed: bool = False  # a person's alias: the key's subject is the name it is compared as
    uses: int = 0  # uses inherited and counted; ranking only, never clean-up
    chain: int = 0  # merges of merges below it; 0 for a row nobody merged

    @property
    def has_key(self) -> bool:
        """True when subject, predicate and object are all given."""
        return all(self.key)

    @property
    def written_key(self) -> tuple[str, str, str]:
        """The key as its writer gave it: "" where a model gave the part, or nobody did."""
        return self.own_key if self.key_by else self.key


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """A stored episode as the rules of consolidation see it: verbatim, read once, never a live row."""

    id: int
    scope_id: int
    text: str
    happened_at: datetime
    source_uri: str
    root_source: str  # what counts as one witness (C8)
    content_hash: str  # sha256 of the text, hex
    version: int
    status: Status = Status.ACTIVE
    external_id: str = ""
    speaker: str = ""
    role: str = ""
    session: str = ""
    seq: int = 0  # order inside a session whose turns share one time
    outcome: Outcome = Outcome.UNKNOWN

    @property
    def stated_by(self) -> StatedBy:
        """Whose word the turn is, by its role; a turn without one is the agent's own log."""
        return _ROLES.get(self.role.strip().casefold(), StatedBy.OUTSIDE if self.role.strip() else StatedBy.AGENT)


_ROLES: dict[str, StatedBy] = {
    "user": StatedBy.USER,
    "human": StatedBy.USER,
    "operator": StatedBy.OPERATOR,
    "system": StatedBy.OPERATOR,
    "assistant": StatedBy.AGENT,
    "agent": StatedBy.AGENT,
    "tool": StatedBy.TOOL,
    "function": StatedBy.TOOL,
}


def roles_of(origin: StatedBy) -> tuple[str, ...]:
    """The roles, folded, whose turns are the word of an origin."""
    return tuple(role for role, stated_by in _ROLES.items() if stated_by is origin)
