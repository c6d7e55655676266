"""What calls that write take and answer: claims, turns, one exact row, requests, residue.

In lists, an item that is not what it should be becomes `Faulty` and is refused by itself; the items beside it count.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from observations.calls.shapes import (
    MOST_ITEMS,
    Address,
    Alone,
    ClaimIn,
    EpisodeId,
    Faulty,
    InScope,
    KeyWords,
    Moment,
    Name,
    ObjectWords,
    ObservationId,
    OneObservation,
    Shape,
    Text,
    Words,
)
from observations.records import Action, MemoryKind, Outcome

# --- claims and turns ------------------------------------------------------------------------------------------------


class Remember(InScope, ClaimIn):
    """Keep one claim."""


class Author(Shape):
    """Who said a fact. Only people are believed: agents, bots, tools and nobody are refused."""

    name: Name = ""
    role: Name = Field(default="", description="user, human or operator")


class Fact(Shape):
    """One fact about a user."""

    text: Text
    author: Author | None = Field(default=None, description="By default the author of the call.")
    subject: KeyWords = ""
    predicate: KeyWords = ""
    object: ObjectWords = ""
    kind: MemoryKind = MemoryKind.FACT
    said_at: Moment | None = None
    quote: Text = ""
    episode: Name = ""
    source_uri: Address = ""
    external_id: Name = ""


FactIn = Annotated[Fact | Faulty, Alone(Fact)]


class StoreFacts(InScope):
    """Keep a list of facts about one user."""

    about: Name = Field(description="The user whom the facts are about.")
    author: Author | None = None
    facts: Annotated[list[FactIn], Field(min_length=1, max_length=MOST_ITEMS)]


class TurnIn(Shape):
    """One turn of a conversation, or anything else that happened, word for word."""

    text: Text = Field(description="What was said, verbatim.")
    speaker: Name = Field(default="", description="Who said it, by name.")
    role: Annotated[str, Words(40)] = Field(default="", description="user, assistant, tool ...")
    session: Name = Field(default="", description="The conversation it is part of.")
    seq: Annotated[int, Field(ge=-(2**31), le=2**31 - 1)] = Field(default=0, description="Its place in the session.")
    happened_at: Moment | None = Field(default=None, description="When it was said; by default now.")
    source_uri: Address = ""
    root_source: Address = ""
    outcome: Outcome = Outcome.UNKNOWN
    external_id: Name = ""


class Observe(InScope):
    """Record what happened."""

    turns: Annotated[
        list[Annotated[TurnIn | Faulty, Alone(TurnIn)]],
        Field(min_length=1, max_length=MOST_ITEMS),
    ]


# --- answers of writes -----------------------------------------------------------------------------------------------


class Remembered(Shape):
    """What became of one claim."""

    action: Action
    id: ObservationId | None = None
    text: str = ""  # as it is stored
    evidence: int = 0  # distinct sources after the write
    reason: str = ""
    cleaned: bool = False
    replaced: ObservationId | None = None
    external_id: str = ""


class FactsStored(Shape):
    """What became of a list of facts; `facts` has one entry per fact, in order."""

    stored: int
    duplicates: int
    refused: int
    facts: list[Remembered]


class TurnKept(Shape):
    """What became of one turn."""

    fate: Literal["added", "already there", "refused"]
    id: EpisodeId | None = None
    reason: str = ""
    cleaned: bool = False


class Observed(Shape):
    """What became of the turns, and what will become of extraction."""

    added: int
    already_there: int
    refused: int
    turns: list[TurnKept]
    extraction: str  # queued, waiting, off, no model: what happens next
    waiting: int = 0  # turns of the scope that nobody has read yet
    every: int = 0  # at how many waiting turns they are read


# --- one exact row ---------------------------------------------------------------------------------------------------

Why = Literal["wrong", "outdated", "unwanted", "duplicate", "other"]


class Correct(OneObservation, ClaimIn):
    """Put a new claim in the place of one exact row."""

    union: bool = Field(default=True, description="Take over the old row's evidence; false: start fresh.")
    version: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = Field(
        default=None, description="The version that was read; another one is a conflict."
    )


class Retire(OneObservation):
    """Take one exact row out of the reads; nothing is lost."""

    why: Why = "other"


class Restore(OneObservation):
    """Bring one retired row back."""


class TakeBack(OneObservation):
    """Undo what the background put in another row's place; the row is the new one or an old one."""


class TakenBack(Shape):
    """Which row was archived, and which are current again."""

    id: ObservationId = Field(description="The row that had taken the others' place.")
    back: list[ObservationId] = Field(description="The rows that are current again.")
    done_before: bool = Field(default=False, description="It was taken back before; nothing changed now.")


class Forget(InScope):
    """Ask that something be forgotten for good. A person decides."""

    ids: Annotated[list[ObservationId], Field(max_length=MOST_ITEMS)] = []
    subject_of: ObservationId | None = Field(default=None, description="Everything about the subject of this row.")
    everything: bool = Field(default=False, description="All that the scope holds.")


class Propose(InScope):
    """Put a change of rows before a person."""

    kind: Literal["retire", "forget", "supersede"]
    ids: Annotated[list[ObservationId], Field(min_length=1, max_length=MOST_ITEMS)]
    by_id: ObservationId | None = Field(default=None, description="supersede: the row that is right.")
    why: Why = "other"


class Requested(Shape):
    """A request that waits for a person."""

    request: str
    action: Action = Action.ASKED


# --- residue ---------------------------------------------------------------------------------------------------------


class HoldResidue(InScope):
    """Hand in what an agent noticed in a run: shown in prompts for three days, never remembered."""

    items: Annotated[list[Text], Field(min_length=1, max_length=50)]
    session: Name = ""


class ResidueItem(Shape):
    """What became of one item."""

    held: bool
    reason: str = ""
    first_held_at: datetime | None = None
    cleaned: bool = False
    judged: bool = Field(
        default=True, description="False: it does not look English, so nobody judged whether it describes or commands."
    )


class ResidueHeld(Shape):
    """What became of the items, in order."""

    held: int
    refused: int
    gave_way: int = 0  # items of earlier runs that made room
    items: list[ResidueItem]
