"""What each call takes and answers: one shape for the API, MCP, the command and the client.

In lists, an item that is not what it should be becomes `Faulty` and is refused by itself; the items beside it count.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from observations.calls.shapes import (
    MOST_ITEMS,
    MOST_TEXT,
    Address,
    Alone,
    ClaimIn,
    EpisodeId,
    Faulty,
    KeyWords,
    Label,
    Moment,
    Name,
    Narrowing,
    ObjectWords,
    ObservationId,
    ScopeName,
    Shape,
    Text,
    Words,
)
from observations.records import Action, MemoryKind, Outcome, StatedBy, Status

# --- claims and turns ------------------------------------------------------------------------------------------------


class _InScope(Shape):
    scope: ScopeName


class Remember(_InScope, ClaimIn):
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


class StoreFacts(_InScope):
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


class Observe(_InScope):
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


class OneObservation(_InScope):
    """Names one exact row."""

    id: ObservationId


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


class Forget(_InScope):
    """Ask that something be forgotten for good. A person decides."""

    ids: Annotated[list[ObservationId], Field(max_length=MOST_ITEMS)] = []
    subject_of: ObservationId | None = Field(default=None, description="Everything about the subject of this row.")
    everything: bool = Field(default=False, description="All that the scope holds.")


class Propose(_InScope):
    """Put a change of rows before a person."""

    kind: Literal["retire", "forget", "supersede"]
    ids: Annotated[list[ObservationId], Field(min_length=1, max_length=MOST_ITEMS)]
    by_id: ObservationId | None = Field(default=None, description="supersede: the row that is right.")
    why: Why = "other"


class Requested(Shape):
    """A request that waits for a person."""

    request: str
    action: Action = Action.ASKED


# --- reads -----------------------------------------------------------------------------------------------------------


class EvidenceOut(Shape):
    """One source of a row."""

    source_uri: str
    root_source: str
    quote: str = ""
    episode: EpisodeId | None = None


class Observation(Shape):
    """One stored row."""

    id: ObservationId
    text: str
    subject: str = ""
    predicate: str = ""
    object: str = ""
    kind: MemoryKind
    stated_by: StatedBy
    written_by: str
    confidence: float
    status: Status
    version: int
    created_at: datetime
    recorded_at: datetime
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    external_id: str = ""
    cleaned: bool = False
    sources: int  # distinct root sources
    evidence: list[EvidenceOut] = []  # only where one row was asked for


class ListObservations(_InScope):
    """Current rows, newest first."""

    cursor: Annotated[str, Words(40)] = Field(default="", description="`next` of the page before.")
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class Page(Shape):
    """Some rows, and where the next page begins; "" on the last."""

    observations: list[Observation]
    next: str = ""
    complete: bool = True


class Moved(Shape):
    """One change of a row's state."""

    at: datetime
    from_status: str
    to_status: str
    why: str  # the doorway or the operation
    successor: ObservationId | None = None


class Link(Shape):
    """One row of a chain: what it said, who wrote it, when it took whose place."""

    id: ObservationId
    text: str | None  # None: erased, or held back until a person looks
    status: Status
    written_by: str
    stated_by: StatedBy
    recorded_at: datetime
    by: str = ""  # who made the call that wrote it, where that is known
    replaced_by: ObservationId | None = None
    moves: list[Moved] = []


class History(Shape):
    """How a row came to be and what became of it, oldest first."""

    links: list[Link]


class Search(_InScope, Narrowing):
    """Find rows by meaning and by words: current ones, unless the past is asked for by name."""

    query: Annotated[str, Words(MOST_TEXT)]
    k: Annotated[int, Field(ge=1, le=50)] = 5


class Known(_InScope):
    """Whether something is known already: the two nearest rows (R23)."""

    query: Annotated[str, Words(MOST_TEXT)]


class HitOut(Shape):
    """One row that was found."""

    id: ObservationId
    text: str
    trust: str
    why: str
    score: float
    external_id: str = ""
    status: Status = Status.ACTIVE  # now; also of a row that was asked for as of another time


class Found(Shape):
    """Rows, best first. Not `complete` when a part of the search failed: not the same as nothing there."""

    hits: list[HitOut]
    complete: bool


class PromptFor(_InScope):
    """What a prompt is given of a scope."""

    about: Annotated[str, Words(MOST_TEXT)] = Field(default="", description="What the agent is asked just now.")
    session: Name = Field(default="", description="Show the last turns of this session.")
    k: Annotated[int, Field(ge=1, le=50)] = 10
    longest: Annotated[int, Field(ge=500, le=100_000)] = 12_000


class Prompt(Shape):
    """The memory block for a prompt; "" when there is nothing to say."""

    text: str
    ids: list[ObservationId] = []
    left_out: list[ObservationId] = []
    complete: bool = True


# --- core memory -----------------------------------------------------------------------------------------------------


class CoreList(_InScope):
    """All core memory of a scope."""


class CoreGet(_InScope):
    """One core memory."""

    label: Label


class CoreCreate(CoreGet):
    """Make a labelled text that is always in the prompt."""

    value: Annotated[str, Words(20_000)] = ""
    limit: Annotated[int, Field(ge=1, le=20_000)] = 2_000
    description: Annotated[str, Words(500)] = ""
    read_only: bool = False


Revision = Annotated[int, Field(ge=1, le=2**31 - 1, description="The revision that was read; another is a conflict.")]


class CoreAppend(CoreGet):
    """Add a line at the end."""

    text: Annotated[str, Words(20_000, 1)]
    revision: Revision | None = None


class CoreReplace(CoreGet):
    """Replace the one occurrence of `old`, byte for byte."""

    old: Annotated[str, Words(20_000, 1)]
    new: Annotated[str, Words(20_000)]
    revision: Revision | None = None


class CoreRethink(CoreGet):
    """Write the whole text anew."""

    value: Annotated[str, Words(20_000)]
    revision: Revision | None = None


class CoreUndo(CoreGet):
    """Take the newest edit back; with `revision` given, also one that somebody else made."""

    revision: Revision | None = None


class CoreRevisions(CoreGet):
    """The edits, newest first."""

    cursor: Annotated[str, Words(40)] = ""
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class CoreMemory(Shape):
    """One core memory."""

    label: str
    value: str
    description: str
    limit: int
    length: int
    read_only: bool
    revision: int
    updated_at: datetime
    cleaned: bool = False


class CoreMemories(Shape):
    """All of a scope, by label."""

    core: list[CoreMemory]
    complete: bool = True


class CoreEdit(Shape):
    """One revision."""

    number: int
    action: str
    undoes: int | None = None
    value: str | None  # None: erased
    by: str
    at: datetime


class CoreEdits(Shape):
    """Revisions, newest first."""

    revisions: list[CoreEdit]
    next: str = ""


# --- residue and intake ----------------------------------------------------------------------------------------------


class HoldResidue(_InScope):
    """Hand in what an agent noticed in a run: shown in prompts for three days, never remembered."""

    items: Annotated[list[Text], Field(min_length=1, max_length=50)]
    session: Name = ""


class ResidueItem(Shape):
    """What became of one item."""

    held: bool
    reason: str = ""
    first_held_at: datetime | None = None
    cleaned: bool = False


class ResidueHeld(Shape):
    """What became of the items, in order."""

    held: int
    refused: int
    gave_way: int = 0  # items of earlier runs that made room
    items: list[ResidueItem]


class IntakeStatus(_InScope):
    """Whether a scope's turns are read in the background."""


class IntakeRunOut(Shape):
    """The last pass."""

    state: str
    started_at: datetime
    finished_at: datetime | None = None
    error: str = ""


class Intake(Shape):
    """What happens to the turns of a scope."""

    enabled: bool
    model: bool = False  # whether a language model is configured: without one, turns wait
    every: int = 0
    waiting: int = 0
    stuck: int = 0  # turns whose answers could not be used as often as they may be asked about
    residue: bool = False
    last_run: IntakeRunOut | None = None
    complete: bool = True
