"""What calls that read take and answer: rows, their history, searches, prompts, and how turns are read."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from observations.calls.shapes import (
    MOST_TEXT,
    EpisodeId,
    InScope,
    Moment,
    Name,
    Narrowing,
    ObservationId,
    Shape,
    Words,
)
from observations.records import MemoryKind, StatedBy, Status

MaxTokens = Annotated[int, Field(ge=200, le=100_000)]


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


class ListObservations(InScope):
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


class Search(InScope, Narrowing):
    """Find rows by meaning and by words: current ones, unless the past is asked for by name."""

    query: Annotated[str, Words(MOST_TEXT)]
    k: Annotated[int, Field(ge=1, le=50)] = 5


class Known(InScope):
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
    place_by_words: int | None = None  # 1 for the largest share of the query's words; null where it shares none
    place_by_meaning: int | None = None  # 1 for the nearest; null where it is not among the nearest


class Found(Shape):
    """Rows, best first. Not `complete` when a part of the search failed: not the same as nothing there."""

    hits: list[HitOut]
    complete: bool
    answer: str = ""  # under which get_answer finds it for 90 days


class PromptFor(InScope):
    """What a prompt is given of a scope."""

    about: Annotated[str, Words(MOST_TEXT)] = Field(default="", description="What the agent is asked just now.")
    session: Name = Field(default="", description="Show the last turns of this session.")
    goals: Annotated[str, Words(MOST_TEXT)] = Field(
        default="", description="What the agent is for; with goals, episodes and summaries are in the block."
    )
    k: Annotated[int, Field(ge=1, le=50)] = 10
    longest: Annotated[int, Field(ge=500, le=100_000, description="Characters at most.")] = 12_000
    max_tokens: MaxTokens | None = Field(default=None, description="Tokens at most, counted as three bytes each.")
    as_of: Moment | None = Field(default=None, description="What would have been told then, instead of now.")


class EpisodicContext(InScope):
    """What was said and summarised before, for a query."""

    query: Annotated[str, Words(MOST_TEXT)] = Field(description="What the agent is asked just now.")
    goals: Annotated[str, Words(MOST_TEXT)] = Field(default="", description="What the agent is for.")
    k: Annotated[int, Field(ge=1, le=50)] = 10
    longest: Annotated[int, Field(ge=500, le=100_000, description="Characters at most.")] = 12_000
    max_tokens: MaxTokens | None = Field(default=None, description="Tokens at most, counted as three bytes each.")
    as_of: Moment | None = Field(default=None, description="What would have been told then, instead of now.")


class Prompt(Shape):
    """The memory block for a prompt; "" when there is nothing to say.

    What is left out for want of room is named. Not `complete`: a part named in `failed` could not be read.
    """

    text: str
    ids: list[ObservationId] = []
    left_out: list[ObservationId] = []
    complete: bool = True
    answer: str = ""  # under which get_answer finds it for 90 days
    episodes: list[EpisodeId] = []
    episodes_left_out: list[EpisodeId] = []
    residue_left_out: int = 0
    outdated: list[str] = []  # of all that is shown: marked so, as obs_12 or ep_12
    failed: list[str] = []  # sections
    chosen_by: str = ""  # the model that selected among episodes and summaries; "": the rule
    tokens: int = 0  # about


class GetAnswer(InScope):
    """What an agent was told: by the answer's id, or the last one that was given by a moment."""

    answer: Annotated[str, Words(40)] = Field(default="", description="The id that a prompt or a search came with.")
    at: Moment | None = Field(default=None, description="A moment: the last answer given by then.")


class Told(Shape):
    """One row of an answer, as it stands now."""

    id: str  # obs_12 or ep_12
    text: str | None  # None: erased since, or held back until a person looks
    status: str
    shown: bool  # false: found, and left out
    outdated: bool = False


class AnswerGiven(Shape):
    """What one answer handed out, its rows as they stand now: those shown in their order, then those left out."""

    answer: str
    at: datetime
    call_site: str
    chosen_by: str = ""
    failed: list[str] = []
    rows: list[Told]


class IntakeStatus(InScope):
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
