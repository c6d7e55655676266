"""One line of JSONL, understood or refused with a reason that names the field. Plain Python: no store, no clock.

The fields are those of the exports and of the usual data files; others are left alone. A reason never holds a text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, TypeVar

from observations.normalise import clean
from observations.records import (
    Claim,
    EvidenceRef,
    Given,
    KeyState,
    MemoryKind,
    Outcome,
    Past,
    SourceRef,
    StatedBy,
    Status,
    Turn,
    WrittenBy,
)

MAX_LINE: Final = 8 * 1024 * 1024  # bytes; longer lines are not even parsed
MAX_TEXT: Final = 100_000  # characters of one claim or turn
_MAX_URI_BYTES: Final = 2_000  # what an index of PostgreSQL holds in one entry, with room to spare
_MAX_INT: Final = 2**31 - 1
_CLOCKS_DIFFER: Final = timedelta(minutes=5)  # the database's own allowance for a writer's clock that runs ahead
_MONTH: Final = re.compile(r"(\d{4})(?:-(\d{2}))?", re.ASCII)
_EPISODE_FIELDS: Final = ("speaker", "source_uri", "query")
_CLAIM_FIELDS: Final = ("subject", "predicate", "object")


_NO_PAST: Final = Past()


class LineRefused(ValueError):
    """A line that cannot be stored. The message names the field and what it may be, never its text."""


@dataclass(frozen=True, slots=True)
class Line:
    """What one line asks for."""

    scope: str
    item: Claim | Turn
    past: Past = _NO_PAST
    supersedes: str = ""  # the external id of a current observation that this one replaces


def parse_line(raw: bytes | str, *, scope: str | None, scope_field: str | None, now: datetime) -> Line:
    """The line as a claim or a turn, with its scope: `scope` when given, else what the line has in `scope_field`.

    Without either, the line's own `scope` counts. `now` is the database's clock; nobody can have said anything later.
    Raises LineRefused.
    """
    fields = _Fields(_object(raw), now)
    name = scope or _scope(fields, scope_field or "scope")
    past = _past(fields)
    if _is_episode(fields):
        return Line(scope=name, item=_turn(fields))
    item = _claim(fields, erased=past.status == Status.ERASED)
    supersedes = fields.name("supersedes")
    if supersedes and past != replace(_NO_PAST, cleaned=past.cleaned):
        raise LineRefused("supersedes cannot stand beside a status, a derivation or a given key: give one or the other")
    if past.status != Status.ACTIVE and not item.external_id:
        raise LineRefused("id is missing: a line with a status needs one")
    if past.erased[0] and item.stated_by == StatedBy.USER and not past.erased[2].startswith("forget:"):
        raise LineRefused("erased.request must be a forget request: what a user said is erased by nothing else")  # I12
    if past.given:
        _refuse_what_no_model_gives(past.given, item)
    return Line(scope=name, item=item, past=past, supersedes=supersedes)


# --- from bytes to an object ----------------------------------------------------------------------------------------


def _object(raw: bytes | str) -> dict[str, object]:
    if len(raw) > MAX_LINE:
        raise LineRefused(f"the line is longer than {MAX_LINE // 2**20} MiB")
    try:
        # Half a pair written as bytes, and a bare NUL below, are one bad character that the store cleans (C1).
        text = raw if isinstance(raw, str) else raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise LineRefused(f"the line is not UTF-8 (byte {error.start + 1}): save the file as UTF-8") from None
    try:
        value = json.loads(
            text.lstrip("\ufeff"), strict=False, parse_constant=_no_constant, object_pairs_hook=_each_once
        )
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")  # the decoder's own words end so where they expect a place
        raise LineRefused(f"the line is not JSON: {what} at character {error.pos + 1}") from None
    except RecursionError:
        raise LineRefused("the line is nested too deeply") from None
    except LineRefused:
        raise
    except ValueError:
        raise LineRefused("a number in the line is too long") from None
    if not isinstance(value, dict):
        raise LineRefused("the line is not a JSON object: each line is one {...}")
    return value


def _no_constant(name: str) -> float:
    raise LineRefused(f"{name} is not JSON: leave the field out")


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise LineRefused(f"the field {twice[:40]!r} stands twice in the line")
    return values


# --- fields ---------------------------------------------------------------------------------------------------------

Choice = TypeVar("Choice", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class _Fields:
    """Typed access to a line's fields; null is the same as absent. Every method may raise LineRefused."""

    values: dict[str, object]
    now: datetime

    def __contains__(self, field: str) -> bool:
        return self.values.get(field) is not None

    def text(self, field: str, *, limit: int, bytes_limit: int = 0) -> str:
        """A string of at most `limit` characters; empty when absent."""
        return _string(field, self.values.get(field), limit=limit, bytes_limit=bytes_limit)

    def label(self, field: str, *, limit: int) -> str:
        """A short text that may be written as a whole number too, as sessions often are."""
        value = self.values.get(field)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        return _string(field, value, limit=limit)

    def name(self, field: str, *, limit: int = 200) -> str:
        """An id: never cleaned, because a changed id is another id."""
        value = self.label(field, limit=limit)
        if clean(value)[1]:
            raise LineRefused(f"{field} holds a character that cannot be stored in an id")
        return value

    def whole(self, field: str, *, least: int, most: int = _MAX_INT, default: int = 0) -> int:
        """A whole number within a range."""
        value = self.values.get(field)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise LineRefused(f"{field} must be a whole number from {least} to {most}")
        return value

    def share(self, field: str, *, default: float) -> float:
        """A number from 0 to 1."""
        value = self.values.get(field)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise LineRefused(f"{field} must be a number from 0 to 1")
        return float(value)

    def flag(self, field: str) -> bool:
        """True or false."""
        value = self.values.get(field)
        if value is not None and not isinstance(value, bool):
            raise LineRefused(f"{field} must be true or false")
        return bool(value)

    def choice(self, field: str, kind: type[Choice], default: Choice) -> Choice:
        """One of an enum's values."""
        value = self.values.get(field)
        if value is None:
            return default
        if not isinstance(value, str) or value not in list(kind):
            raise LineRefused(f"{field} must be one of {', '.join(kind)}")
        return kind(value)

    def moment(self, field: str) -> datetime | None:
        """A point in time; a date is its first moment, a month and a year too, and without a zone it is UTC."""
        value = self.values.get(field)
        if value is None:
            return None
        try:
            if not isinstance(value, str):
                raise TypeError
            month = _MONTH.fullmatch(value)
            read = datetime.fromisoformat(f"{month[1]}-{month[2] or '01'}-01" if month else value)
            return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, TypeError, OverflowError):
            raise LineRefused(f"{field} must be a time such as 2024-05-31 or 2024-05-31T10:00:00Z") from None

    def past_moment(self, field: str) -> datetime | None:
        """A point in time that is over: nobody can have said anything in the future."""
        moment = self.moment(field)
        if moment is not None and moment > self.now + _CLOCKS_DIFFER:
            raise LineRefused(f"{field} is in the future")
        return moment

    def items(self, field: str) -> list[object]:
        """A list; one bare value counts as a list of one, absent as an empty one."""
        value = self.values.get(field)
        if value is None:
            return []
        return value if isinstance(value, list) else [value]

    def parts(self, field: str) -> list[_Fields]:
        """A list of objects."""
        found = [_Fields(value, self.now) for value in self.items(field) if isinstance(value, dict)]
        if len(found) != len(self.items(field)):
            raise LineRefused(f"{field} must be a list of objects")
        return found


def _unstorable(value: object) -> bool:
    """Whether a value holds, however deep, a character no database can hold: also in fields that are not kept (C1)."""
    if isinstance(value, str):
        return clean(value)[1]
    if isinstance(value, dict):
        return any(map(_unstorable, (*value, *value.values())))
    return isinstance(value, list) and any(map(_unstorable, value))


def _string(field: str, value: object, *, limit: int, bytes_limit: int = 0) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise LineRefused(f"{field} must be a text, not {_kind_of(value)}")
    if len(value) > limit:
        raise LineRefused(f"{field} is longer than {limit:,} characters")
    if bytes_limit and len(value.encode("utf-8", "surrogatepass")) > bytes_limit:
        raise LineRefused(f"{field} is longer than {bytes_limit:,} bytes")
    return value


def _kind_of(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), "null")


# --- from fields to values ------------------------------------------------------------------------------------------


def _scope(fields: _Fields, field: str) -> str:
    name = fields.name(field)
    if not name:
        raise LineRefused(f"the line has no scope: give it a field {field!r}, or name one with --scope")
    return name


def _is_episode(fields: _Fields) -> bool:
    """The line's `kind`, else by its fields: only episodes have a speaker, one source or a question."""
    kind = fields.text("kind", limit=20)
    if kind:
        if kind not in ("observation", "episode"):
            raise LineRefused("kind must be observation or episode")
        return kind == "episode"
    return any(field in fields for field in _EPISODE_FIELDS) and not any(field in fields for field in _CLAIM_FIELDS)


_PEOPLE: Final = (StatedBy.USER, StatedBy.OPERATOR)
_SAID_BY_A_PERSON: Final = 0.9  # where a line gives no confidence: over whatever is promoted (R75)


def _required(text: str, field: str = "text") -> str:
    if not text.strip():
        raise LineRefused(f"{field} is missing or empty")
    return text


def _claim(fields: _Fields, *, erased: bool) -> Claim:
    text = fields.text("text", limit=MAX_TEXT)
    if erased and text:
        raise LineRefused("text cannot stand in an erased line")
    start, end = fields.moment("valid_from"), fields.moment("valid_to")
    if start and end and end < start:
        raise LineRefused("valid_to is before valid_from")
    origin = fields.choice("stated_by", StatedBy, StatedBy.AGENT)
    return Claim(
        text="" if erased else _required(text),
        external_id=fields.name("id"),
        subject=fields.text("subject", limit=500),
        predicate=fields.text("predicate", limit=500),
        object=fields.text("object", limit=1000),
        confidence=fields.share("confidence", default=_SAID_BY_A_PERSON if origin in _PEOPLE else 0.5),
        stated_by=origin,
        kind=fields.choice("memory_kind", MemoryKind, MemoryKind.FACT),
        half_life_days=fields.whole("half_life_days", least=1) if "half_life_days" in fields else None,
        created_at=fields.past_moment("created_at"),
        valid_from=start,
        valid_to=end,
        evidence=_evidence(fields),
    )


def _evidence(fields: _Fields) -> tuple[EvidenceRef, ...]:
    """What the line rests on: `evidence` as exports write it, `source_uris` and `source_uri` as data files do."""
    found = [
        EvidenceRef(
            source_uri=_required(_uri(part, "uri"), "evidence.uri"),
            root_source=_uri(part, "root"),
            quote=part.text("quote", limit=MAX_TEXT),
            quote_start=part.whole("start", least=0) if "start" in part else None,
            episode=part.name("episode"),
        )
        for part in fields.parts("evidence")
    ]
    for field in ("source_uris", "source_uri"):
        uris = [_string(field, uri, limit=1000, bytes_limit=_MAX_URI_BYTES) for uri in fields.items(field)]
        found += [EvidenceRef(source_uri=uri) for uri in uris if uri]
    return tuple({ref.source_uri: ref for ref in reversed(found)}.values())[::-1]


def _uri(fields: _Fields, field: str) -> str:
    return fields.text(field, limit=1000, bytes_limit=_MAX_URI_BYTES)


def _turn(fields: _Fields) -> Turn:
    status = fields.choice("status", Status, Status.ACTIVE)
    if status not in (Status.ACTIVE, Status.ARCHIVED):
        raise LineRefused("status of an episode must be active or archived")
    turn = Turn(
        text=fields.text("text", limit=MAX_TEXT),
        external_id=fields.name("id"),
        speaker=fields.text("speaker", limit=200),
        role=fields.text("role", limit=40),
        session=fields.label("session", limit=200),
        seq=fields.whole("seq", least=-_MAX_INT),
        happened_at=fields.past_moment("happened_at") or fields.past_moment("created_at"),
        source_uri=_uri(fields, "source_uri"),
        root_source=_uri(fields, "root_source"),
        outcome=fields.choice("outcome", Outcome, Outcome.UNKNOWN),
        cleaned=fields.flag("cleaned") or _unstorable(fields.values),
        status=status,
    )
    return turn if turn.text.strip() else replace(turn, text=_exchange(fields, turn.speaker))


def _exchange(fields: _Fields, speaker: str) -> str:
    """One question and its answer as one verbatim text, with who said what."""
    query, response = fields.text("query", limit=MAX_TEXT // 2), fields.text("response", limit=MAX_TEXT // 2)
    if not response.strip():
        raise LineRefused("text is missing or empty (or give query and response)")
    return f"{speaker or 'user'}: {_required(query, 'query')}\nassistant: {response}"


def _past(fields: _Fields) -> Past:
    past = Past(
        status=fields.choice("status", Status, Status.ACTIVE),
        superseded_by=fields.name("superseded_by"),
        written_by=fields.choice("written_by", WrittenBy, WrittenBy.IMPORT),
        reconciled_at=fields.past_moment("reconciled_at"),
        cleaned=fields.flag("cleaned") or _unstorable(fields.values),
        derivation=fields.name("derivation", limit=10),
        derived_at=fields.past_moment("derived_at"),
        produced_by=fields.name("produced_by", limit=80),
        chain=fields.whole("chain", least=0, most=1000),
        uses_inherited=fields.whole("uses_inherited", least=0),
        lineage=tuple(_source(part) for part in fields.parts("lineage")),
        erased=_erased(fields),
        given=_given(fields),
    )
    _refuse_half_a_past(past)
    return past


def _source(fields: _Fields) -> SourceRef:
    kind = fields.text("kind", limit=20)
    if kind not in ("observation", "episode"):
        raise LineRefused("lineage.kind must be observation or episode")
    return SourceRef(external_id=_required(fields.name("id"), "lineage.id"), episode=kind == "episode")


def _erased(fields: _Fields) -> tuple[str, str, str]:
    parts = fields.parts("erased")
    if not parts:
        return "", "", ""
    return (
        _required(parts[0].text("by", limit=150), "erased.by"),
        _required(parts[0].text("reason", limit=300), "erased.reason"),
        _required(parts[0].text("request", limit=80), "erased.request"),
    )


def _given(fields: _Fields) -> Given | None:
    """The key that a model gave in the store the line comes from, or why there is none."""
    parts = fields.parts("given_key")
    if not parts:
        return None
    if len(parts) > 1:
        raise LineRefused("given_key must be one object")
    key = _Fields({f"given_key.{name}": value for name, value in parts[0].values.items()}, fields.now)
    start, end = key.whole("given_key.start", least=0), key.whole("given_key.end", least=0)
    return Given(
        state=key.choice("given_key.state", KeyState, KeyState.GIVEN),
        model=_required(key.name("given_key.model", limit=80), "given_key.model"),
        prompt_version=key.name("given_key.prompt_version", limit=20),
        subject=clean(key.text("given_key.subject", limit=500))[0],
        predicate=clean(key.text("given_key.predicate", limit=500))[0],
        object=clean(key.text("given_key.object", limit=1000))[0],
        quote=(start, end) if "given_key.start" in key or "given_key.end" in key else None,
        attempts=key.whole("given_key.attempts", least=1, most=1000, default=1),
        at=key.past_moment("given_key.at"),
        withdrawn_by=key.name("given_key.withdrawn_by", limit=150),
    )


def _refuse_what_no_model_gives(given: Given, claim: Claim) -> None:
    """A given key fills in what its writer left out, and only where there is a text (B)."""
    parts = {name: getattr(given, name) for name in _CLAIM_FIELDS}
    if not claim.text:
        raise LineRefused("given_key cannot stand in an erased line")
    if any(parts.values()) != (given.state == KeyState.GIVEN):
        raise LineRefused("given_key has a subject, predicate or object when its state is given, and only then")
    for name, part in parts.items():
        if part and getattr(claim, name):
            raise LineRefused(f"given_key.{name} cannot stand beside the line's own {name}")
    if given.quote and not given.quote[0] < given.quote[1] <= len(clean(claim.text)[0]):
        raise LineRefused("given_key.start and given_key.end must be a part of the text")
    if given.withdrawn_by and given.state != KeyState.WITHDRAWN:
        raise LineRefused("given_key.withdrawn_by stands beside the state withdrawn only")


def _refuse_half_a_past(past: Past) -> None:
    """A row's past is told whole, as the database would demand it."""
    if past.status == Status.SUPERSEDED and not past.superseded_by:
        raise LineRefused("superseded_by is missing: a superseded row names its successor")
    if past.superseded_by and past.status not in (Status.SUPERSEDED, Status.ARCHIVED, Status.ERASED):
        raise LineRefused(f"superseded_by cannot stand beside the status {past.status}")
    if (past.status == Status.ERASED) != bool(past.erased[0]):
        raise LineRefused("erased stands in erased lines, and only there")
    derived = (past.derivation, past.derived_at, past.produced_by, past.lineage)
    if any(derived) and not all(derived):
        raise LineRefused("derivation, derived_at, produced_by and lineage stand together or not at all")
    if len(set(past.lineage)) < len(past.lineage):
        raise LineRefused("lineage names a source twice")
