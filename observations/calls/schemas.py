"""What each call takes and answers: one shape for the API, MCP, the command and the client.

Words keep every character they came with, also those no database can hold: the store replaces those and says so (C1).
In lists, an item that is not what it should be becomes `Faulty` and is refused by itself; the items beside it count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    ValidationError,
    ValidatorFunctionWrapHandler,
)
from pydantic.json_schema import JsonSchemaValue, WithJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from observations.records import Action, MemoryKind, Outcome, StatedBy, Status

MOST_ITEMS: Final = 500  # facts or turns of one call
MOST_TEXT: Final = 100_000  # characters of one claim or turn
_MOST_ID: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Words:
    """A string of at most so many characters. Unlike pydantic's own it lets lone surrogates pass, for the store."""

    longest: int
    shortest: int = 0

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._checked)

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        least = {"minLength": self.shortest} if self.shortest else {}
        return {"type": "string", "maxLength": self.longest, **least}

    def _checked(self, value: object) -> str:
        if not isinstance(value, str):
            raise PydanticCustomError("string_type", "Give a string.")
        if not self.shortest <= len(value) <= self.longest:
            span = {"shortest": self.shortest, "longest": self.longest}
            raise PydanticCustomError("string_length", "Give {shortest} to {longest} characters.", span)
        return value


def _number(prefix: str) -> BeforeValidator:
    """Reads "obs_12" as 12; a number passes."""
    shape = re.compile(rf"{prefix}_([0-9]{{1,19}})", re.ASCII)

    def read(value: object) -> object:
        match = shape.fullmatch(value) if isinstance(value, str) else None
        if match is not None:
            return int(match[1])
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise PydanticCustomError("id", "Give an id such as {example}.", {"example": f"{prefix}_12"})

    return BeforeValidator(read)


def _shown(prefix: str) -> PlainSerializer:
    return PlainSerializer(lambda value: f"{prefix}_{value}", return_type=str, when_used="json")


def _id_schema(prefix: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^{prefix}_[0-9]{{1,18}}$", "examples": [f"{prefix}_12"]})


_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*", re.ASCII)


def _moment(value: object) -> object:
    """Refuses numbers: "2020" is a year to whoever wrote it, and seconds since 1970 to a parser."""
    if isinstance(value, str) and not _ISO.fullmatch(value):
        raise PydanticCustomError("moment", "Give a time such as 2026-05-31T09:30:00Z.")
    if not isinstance(value, str | datetime):
        raise PydanticCustomError("moment", "Give a time such as 2026-05-31T09:30:00Z.")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_moment)]
ObservationId = Annotated[int, _number("obs"), Field(ge=1, le=_MOST_ID), _shown("obs"), _id_schema("obs")]
EpisodeId = Annotated[int, _number("ep"), Field(ge=1, le=_MOST_ID), _shown("ep"), _id_schema("ep")]

ScopeName = Annotated[str, Words(200, 1), Field(description="Whose memory: a path such as team/project.")]
Text = Annotated[str, Words(MOST_TEXT)]
KeyWords = Annotated[str, Words(500)]
ObjectWords = Annotated[str, Words(1000)]
Address = Annotated[str, Words(1000)]
Name = Annotated[str, Words(200)]
Label = Annotated[str, Words(50, 1), Field(description="Lower-case letters, digits, - and _.")]


class _Shape(BaseModel):
    """Unknown fields are refused: a misspelt one would be a silent loss."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Faulty(_Shape):
    """An item of a list that is not what it should be: refused by itself, never with the items beside it."""

    fault: str  # names the field and what it may be, never its text


@dataclass(frozen=True, slots=True)
class _Alone:
    """An item of a list, read by itself: what `shape` refuses becomes `Faulty`."""

    shape: type[BaseModel]

    def __get_pydantic_core_schema__(self, _source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(self._read, handler.generate_schema(self.shape))

    @staticmethod
    def _read(value: object, read: ValidatorFunctionWrapHandler) -> object:
        try:
            return read(value)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
            field = ".".join(str(part)[:40] for part in first["loc"]) or "the item"
            return Faulty(fault=f"{field}: {first['msg']}"[:200])


# --- claims and turns ------------------------------------------------------------------------------------------------


class EvidenceIn(_Shape):
    """What a claim rests on. A quote of a stored turn of the user makes the claim the user's own word."""

    source_uri: Address = ""
    root_source: Address = ""
    quote: Text = ""
    episode: Name = ""  # the external id of the turn that the quote stands in, where it is one


class _ClaimIn(_Shape):
    text: Text = Field(description="The claim, in the words it is to be kept in.")
    subject: KeyWords = ""
    predicate: KeyWords = ""
    object: ObjectWords = ""
    kind: MemoryKind = MemoryKind.FACT
    stated_by: StatedBy = StatedBy.AGENT
    confidence: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    half_life_days: Annotated[int, Field(ge=1, le=36_500)] | None = None
    said_at: Moment | None = Field(default=None, description="When it was first said; by default now.")
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    evidence: Annotated[list[EvidenceIn], Field(max_length=20)] = []
    external_id: Name = Field(default="", description="Your own id; the same id and text is the same row.")


class _InScope(_Shape):
    scope: ScopeName


class Remember(_InScope, _ClaimIn):
    """Keep one claim."""


class Author(_Shape):
    """Who said a fact. Only people are believed: agents, bots, tools and nobody are refused."""

    name: Name = ""
    role: Name = Field(default="", description="user, human or operator")


class Fact(_Shape):
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


FactIn = Annotated[Fact | Faulty, _Alone(Fact)]


class StoreFacts(_InScope):
    """Keep a list of facts about one user."""

    about: Name = Field(description="The user whom the facts are about.")
    author: Author | None = None
    facts: Annotated[list[FactIn], Field(min_length=1, max_length=MOST_ITEMS)]


class TurnIn(_Shape):
    """One turn of a conversation, or anything else that happened, word for word."""

    text: Text
    speaker: Name = ""
    role: Annotated[str, Words(40)] = ""
    session: Name = ""
    seq: Annotated[int, Field(ge=-(2**31), le=2**31 - 1)] = 0
    happened_at: Moment | None = None
    source_uri: Address = ""
    root_source: Address = ""
    outcome: Outcome = Outcome.UNKNOWN
    external_id: Name = ""


class Observe(_InScope):
    """Record what happened."""

    turns: Annotated[
        list[Annotated[TurnIn | Faulty, _Alone(TurnIn)]],
        Field(min_length=1, max_length=MOST_ITEMS),
    ]


# --- answers of writes -----------------------------------------------------------------------------------------------


class Remembered(_Shape):
    """What became of one claim."""

    action: Action
    id: ObservationId | None = None
    text: str = ""  # as it is stored
    evidence: int = 0  # distinct sources after the write
    reason: str = ""
    cleaned: bool = False
    replaced: ObservationId | None = None
    external_id: str = ""


class FactsStored(_Shape):
    """What became of a list of facts; `facts` has one entry per fact, in order."""

    stored: int
    duplicates: int
    refused: int
    facts: list[Remembered]


class TurnKept(_Shape):
    """What became of one turn."""

    fate: Literal["added", "already there", "refused"]
    id: EpisodeId | None = None
    reason: str = ""
    cleaned: bool = False


class Observed(_Shape):
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


class Correct(OneObservation, _ClaimIn):
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


class Requested(_Shape):
    """A request that waits for a person."""

    request: str
    action: Action = Action.ASKED


# --- reads -----------------------------------------------------------------------------------------------------------


class EvidenceOut(_Shape):
    """One source of a row."""

    source_uri: str
    root_source: str
    quote: str = ""
    episode: EpisodeId | None = None


class Observation(_Shape):
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


class Page(_Shape):
    """Some rows, and where the next page begins; "" on the last."""

    observations: list[Observation]
    next: str = ""
    complete: bool = True


class Moved(_Shape):
    """One change of a row's state."""

    at: datetime
    from_status: str
    to_status: str
    why: str  # the doorway or the operation
    successor: ObservationId | None = None


class Link(_Shape):
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


class History(_Shape):
    """How a row came to be and what became of it, oldest first."""

    links: list[Link]


class Search(_InScope):
    """Find rows by meaning and by words."""

    query: Annotated[str, Words(MOST_TEXT)]
    k: Annotated[int, Field(ge=1, le=50)] = 5


class Known(_InScope):
    """Whether something is known already: the two nearest rows (R23)."""

    query: Annotated[str, Words(MOST_TEXT)]


class HitOut(_Shape):
    """One row that was found."""

    id: ObservationId
    text: str
    trust: str
    why: str
    score: float
    external_id: str = ""


class Found(_Shape):
    """Rows, best first. Not `complete` when a part of the search failed: not the same as nothing there."""

    hits: list[HitOut]
    complete: bool


class PromptFor(_InScope):
    """What a prompt is given of a scope."""

    about: Annotated[str, Words(MOST_TEXT)] = Field(default="", description="What the agent is asked just now.")
    session: Name = Field(default="", description="Show the last turns of this session.")
    k: Annotated[int, Field(ge=1, le=50)] = 10
    longest: Annotated[int, Field(ge=500, le=100_000)] = 12_000


class Prompt(_Shape):
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


class CoreMemory(_Shape):
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


class CoreMemories(_Shape):
    """All of a scope, by label."""

    core: list[CoreMemory]
    complete: bool = True


class CoreEdit(_Shape):
    """One revision."""

    number: int
    action: str
    undoes: int | None = None
    value: str | None  # None: erased
    by: str
    at: datetime


class CoreEdits(_Shape):
    """Revisions, newest first."""

    revisions: list[CoreEdit]
    next: str = ""


# --- residue and intake ----------------------------------------------------------------------------------------------


class HoldResidue(_InScope):
    """Hand in what an agent noticed in a run: shown in prompts for three days, never remembered."""

    items: Annotated[list[Text], Field(min_length=1, max_length=50)]
    session: Name = ""


class ResidueItem(_Shape):
    """What became of one item."""

    held: bool
    reason: str = ""
    first_held_at: datetime | None = None
    cleaned: bool = False


class ResidueHeld(_Shape):
    """What became of the items, in order."""

    held: int
    refused: int
    items: list[ResidueItem]


class IntakeStatus(_InScope):
    """Whether a scope's turns are read in the background."""


class IntakeRunOut(_Shape):
    """The last pass."""

    state: str
    started_at: datetime
    finished_at: datetime | None = None
    error: str = ""


class Intake(_Shape):
    """What happens to the turns of a scope."""

    enabled: bool
    every: int = 0
    waiting: int = 0
    residue: bool = False
    last_run: IntakeRunOut | None = None
    complete: bool = True
