"""The types that what calls take and answer is made of.

Words keep every character they came with, also those no database can hold: the store replaces those and says so (C1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Self

from pydantic import (
    AfterValidator,
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
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue, WithJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from observations.ingest.checking import beyond
from observations.records import MemoryKind, StatedBy

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


def _held(value: datetime) -> datetime:
    """Refuses a time whose year has no number in UTC: a database may hold it, and nobody can read it back."""
    if beyond(value):
        raise PydanticCustomError("moment", "Give a time from year 1 to 9999 in UTC.")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_moment), AfterValidator(_held)]
ObservationId = Annotated[int, _number("obs"), Field(ge=1, le=_MOST_ID), _shown("obs"), _id_schema("obs")]
EpisodeId = Annotated[int, _number("ep"), Field(ge=1, le=_MOST_ID), _shown("ep"), _id_schema("ep")]

ScopeName = Annotated[str, Words(200, 1), Field(description="Whose memory: a path such as team/project.")]
Text = Annotated[str, Words(MOST_TEXT)]
KeyWords = Annotated[str, Words(500)]
ObjectWords = Annotated[str, Words(1000)]
Address = Annotated[str, Words(1000)]
Name = Annotated[str, Words(200)]
Label = Annotated[str, Words(50, 1), Field(description="Lower-case letters, digits, - and _.")]


class Shape(BaseModel):
    """Unknown fields are refused: a misspelt one would be a silent loss."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Faulty(Shape):
    """An item of a list that is not what it should be: refused by itself, never with the items beside it."""

    fault: str  # names the field and what it may be, never its text


@dataclass(frozen=True, slots=True)
class Alone:
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
            field = ".".join(_field(part) for part in first["loc"]) or "the item"
            return Faulty(fault=f"{field}: {first['msg']}"[:200])


_FIELD: Final = re.compile(r"\w{1,40}", re.ASCII)


def _field(part: int | str) -> str:
    """How a field is named to whoever sent it; what is no name of a field may be anybody's words, and is not kept."""
    return str(part) if _FIELD.fullmatch(str(part)) else "a field of it"


class EvidenceIn(Shape):
    """What a claim rests on. A quote of a stored turn of the user makes the claim the user's own word."""

    source_uri: Address = ""
    root_source: Address = ""
    quote: Text = ""
    episode: Name = ""  # the external id of the turn that the quote stands in, where it is one


class ClaimIn(Shape):
    """A claim as a caller gives it."""

    text: Text = Field(description="The claim, in the words it is to be kept in.")
    subject: KeyWords = Field(default="", description="Whom or what it is about, such as Ana.")
    predicate: KeyWords = Field(default="", description="What is said of it, such as drinks.")
    object: ObjectWords = Field(default="", description="The value, such as oat milk; another one is a contradiction.")
    kind: MemoryKind = Field(default=MemoryKind.FACT, description="How fast it fades: a state soon, an identity never.")
    stated_by: StatedBy = Field(default=StatedBy.AGENT, description="Whose word it is: agent for your own conclusion.")
    confidence: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    half_life_days: Annotated[int, Field(ge=1, le=36_500)] | None = None
    said_at: Moment | None = Field(default=None, description="When it was first said; by default now.")
    valid_from: Moment | None = Field(default=None, description="Since when it is true, where that is known.")
    valid_to: Moment | None = Field(default=None, description="Until when it was true.")
    evidence: Annotated[list[EvidenceIn], Field(max_length=20)] = []
    external_id: Name = Field(default="", description="Your own id; the same id and text is the same row.")


class Narrowing(Shape):
    """Which rows a search is narrowed to. What is null or empty narrows nothing, and every filter has to fit: a row
    without a subject fits no subject.
    """

    subject: KeyWords = Field(default="", description="Only what is about this subject, such as Ana.")
    kind: MemoryKind | None = Field(default=None, description="Only claims of this kind.")
    stated_by: StatedBy | None = Field(default=None, description="Only the word of this origin.")
    said_from: Moment | None = Field(default=None, description="Only what was first said then or later.")
    said_before: Moment | None = Field(default=None, description="Only what was first said earlier.")
    as_of: Moment | None = Field(default=None, description="What was believed then, instead of what is current.")
    include_history: bool = Field(default=False, description="Also what was replaced or archived.")

    @model_validator(mode="after")
    def _one_past(self) -> Self:
        if self.as_of is not None and self.include_history:
            raise PydanticCustomError("past", "Give as_of or include_history, not both.")
        return self


class InScope(Shape):
    """Names the scope, whose memory it is."""

    scope: ScopeName


class OneObservation(InScope):
    """Names one exact row."""

    id: ObservationId
