"""What reading some turns comes to: claims to store, and what is not believed with its reason. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from observations.records import MemoryKind, StatedBy
from observations.screening import Secret


class Refusal(StrEnum):
    """Why a claim is not believed; completes the sentence "The claim is refused: ...". It holds no memory text."""

    # what the answer looks like
    NO_ENTRY = "it is no object with a text, a turn and a quote"
    NO_TEXT = "it has no text"
    TOO_LONG = "its text is longer than one claim"
    TOO_MANY = "the answer holds more claims than can be checked"
    TWICE = "the answer holds it twice"
    NO_LABEL = "it names no turn by its number"
    UNKNOWN_LABEL = "it names a turn that was not shown"
    NO_QUOTE = "it quotes no words of the turn"
    # where it comes from
    NOT_FOUND = "not found in the source: the quoted words do not stand in the turn it names"
    OUR_BLOCK = "not found in the source: the quoted words stand in our own context block"
    OUR_WORDS = "not found in the source: it is made of the words of our own question"
    NOT_SAID = "not found in the source: what it says is not what the turn speaks of"
    NUMBER = "not found in the source: a number in it does not stand in the turn"
    NAME = "not found in the source: a name in it does not stand in the turns around"
    DATE = "a date in it neither stands in the turn nor follows from it"
    # what the words do
    QUESTION = "the quoted words ask and assert nothing"
    UNSURE = "the quoted words wish, suppose or ask for something, and it asserts"
    DENIED = "the quoted words deny and it does not, or the other way round"
    # whose words they are
    SUBJECT = "it speaks of somebody whom the turn does not speak of"
    NOT_THE_USER = "it has the user say what somebody else said"
    SECRET = "it holds a secret"  # noqa: S105


# What a claim may be held back for: its turn says something like it and not all of it, so a person may look.
HOLDABLE: Final = (
    *(Refusal.NOT_SAID, Refusal.NUMBER, Refusal.NAME, Refusal.DATE),
    *(Refusal.QUESTION, Refusal.UNSURE, Refusal.DENIED, Refusal.SUBJECT),
)


class Dropped(StrEnum):
    """Why a part of a claim was left out while the claim stays; completes "A part of it is left out: ..."."""

    SUBJECT = "its subject is not who or what it speaks of"
    PREDICATE = "its predicate is no short name of a relation"
    OBJECT = "its object does not stand in it"
    MOOD = "it denies or supposes, and its predicate and object do not, or the other way round"


@dataclass(frozen=True, slots=True)
class Quoted:
    """Words of a turn that a claim rests on."""

    episode: int  # id of the turn
    start: int  # code points of the turn's text
    end: int


@dataclass(frozen=True, slots=True)
class Proposed:
    """A claim whose words were checked against its turn. Nothing stored was looked at."""

    text: str
    kind: MemoryKind
    evidence: tuple[Quoted, ...]  # the turn that decides whose word it is, then others in which it is said again
    stated_by: StatedBy  # by the role of that turn
    speaker: str
    happened_at: datetime  # of that turn
    subject: str = ""
    predicate: str = ""
    object: str = ""
    valid_from: datetime | None = None  # where the claim says since when, or when it happened; never after the turn
    dropped: tuple[Dropped, ...] = ()
    doubt: Refusal | None = None  # why it is held back until a person looks; None: it is believed

    @property
    def episode(self) -> int:
        """The id of the turn it is quoted from."""
        return self.evidence[0].episode

    @property
    def quote(self) -> tuple[int, int]:
        """Start and end of the quoted words in that turn, in code points."""
        return self.evidence[0].start, self.evidence[0].end


@dataclass(frozen=True, slots=True)
class Refused:
    """A claim that is not believed. `text` is "" where it holds a secret, or no text at all."""

    refusal: Refusal
    text: str = ""
    episode: int | None = None  # the turn it names, where it names one that was shown
    quote: tuple[int, int] | None = None  # where the quoted words stand, where they do
    secret: Secret | None = None  # with SECRET: its kind

    @property
    def reason(self) -> str:
        """Why, in words that hold no memory text and complete "The claim is refused: ..."."""
        return f"{self.refusal.value} ({self.secret})" if self.secret else self.refusal.value


@dataclass(frozen=True, slots=True)
class Extracted:
    """What one answer comes to. Neither claims nor refusals: the turns hold nothing to remember."""

    claims: tuple[Proposed, ...] = ()
    held: tuple[Proposed, ...] = ()  # with a doubt each: nothing may read them until a person looks
    refused: tuple[Refused, ...] = ()

    @property
    def astray(self) -> bool:
        """Whether the answer holds something, and none of it names a turn that was shown: not 'nothing found'."""
        return (
            bool(self.refused) and not (self.claims or self.held) and all(each.episode is None for each in self.refused)
        )
