"""Turns, claims and replies by hand, for tests of extraction: no database, no model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from observations import extraction
from observations.extraction import Extracted, Proposed
from observations.llm import Reply
from observations.records import EpisodeRecord

MONDAY = datetime(2024, 4, 8, 9, tzinfo=UTC)


def turn(
    text: str,
    *,
    number: int = 1,
    speaker: str = "Ana",
    role: str = "user",
    session: str = "",
    at: datetime | None = None,
) -> EpisodeRecord:
    """One turn of scope 1; turns are a minute apart, from Monday 8 April 2024 on."""
    return EpisodeRecord(
        id=number,
        scope_id=1,
        text=text,
        happened_at=at or MONDAY + timedelta(minutes=number),
        source_uri=f"test://{number}",
        root_source=f"test://{number}",
        content_hash=sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        version=1,
        speaker=speaker,
        role=role,
        session=session,
        seq=number,
    )


def turns(*said: str | tuple[str, str], **fields: Any) -> list[EpisodeRecord]:
    """Turns of Ana, or of the role named with them, in order."""
    made = []
    for number, each in enumerate(said, start=1):
        text, role = (each, "user") if isinstance(each, str) else each
        speaker = "Ana" if role == "user" else ""
        made.append(turn(text, number=number, role=role, speaker=speaker, **fields))
    return made


def claim(text: Any, quote: Any, *, label: Any = 0, **fields: Any) -> dict[str, Any]:
    """A claim as a model gives it."""
    return {
        "text": text,
        "subject": "",
        "predicate": "",
        "object": "",
        "kind": "fact",
        "turn": label,
        "quote": quote,
        **fields,
    }


def reply(*claims: Any) -> str:
    """A reply that holds these claims."""
    return json.dumps({"claims": list(claims)})


def said_back(text: str) -> Reply:
    """A reply of this text."""
    return Reply(text=text, model="scripted")


def extracted(said: Sequence[EpisodeRecord], *claims: Any) -> Extracted:
    """What a reply with these claims comes to."""
    return extraction.read(reply=said_back(reply(*claims)), turns=said)


def verdict(words: str, text: str, *, quote: str | None = None, **fields: Any) -> str:
    """Of one claim about one turn: "" when it is believed, otherwise the name of the doubt, held back or refused."""
    names = ("speaker", "role", "at")
    about = turn(words, **{name: fields.pop(name) for name in names if name in fields})
    read = extracted([about], claim(text, words if quote is None else quote, **fields))
    assert len(read.claims) + len(read.held) + len(read.refused) == 1
    if read.held:
        assert read.held[0].doubt is not None
        return read.held[0].doubt.name
    return read.refused[0].refusal.name if read.refused else ""


def held(words: str, text: str, *, quote: str | None = None, **fields: Any) -> Proposed | None:
    """The one claim about one turn where it is held back; None where it is believed or refused."""
    names = ("speaker", "role", "at")
    about = turn(words, **{name: fields.pop(name) for name in names if name in fields})
    return next(iter(extracted([about], claim(text, words if quote is None else quote, **fields)).held), None)


def believed(words: str, text: str, *, quote: str | None = None, **fields: Any) -> Proposed:
    """The one claim about one turn that is believed."""
    names = ("speaker", "role", "at")
    about = turn(words, **{name: fields.pop(name) for name in names if name in fields})
    read = extracted([about], claim(text, words if quote is None else quote, **fields))
    assert not read.refused, read.refused[0].refusal
    assert not read.held, read.held[0].doubt
    return read.claims[0]
