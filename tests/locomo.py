"""Real dialogue, and a model that would extract of it what its annotators did: one claim per observation and turn.

The data is read where it lies and never copied (see its README). What a script says depends on the turns of the request
only, so that any batching gives the same claims.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from observations.llm import Request
from observations.llm.quoting import find_quote
from observations.normalise import tokens
from observations.records import Turn
from tests.jsonl import real

_CLAUSES = re.compile(
    r"(?<=[.!?\u2026])\s+|\n+|(?<=[,;:])\s+(?=(?:and|but|so|because|which|I|it|we|my)\b)|\s+[-\u2013\u2014]+\s+"
)
_SENTENCES = re.compile(r"(?<=[.!?\u2026])\s+|\n+")


@dataclass(frozen=True)
class Noted:
    """One observation of the annotators, with the turn that it is quoted from here."""

    id: str
    text: str
    subject: str
    turn: str  # the turn's source
    speaker: str
    quote: str


@dataclass(frozen=True)
class Conversation:
    """One conversation: its turns in order, and what was observed in them."""

    name: str
    turns: tuple[Turn, ...]
    noted: tuple[Noted, ...]


@cache
def _rows(name: str) -> tuple[dict[str, Any], ...]:
    with real(name).open(encoding="utf-8") as lines:
        return tuple(json.loads(line) for line in lines)


@cache
def conversations() -> tuple[Conversation, ...]:
    """All conversations of the data; skips loudly without it. Both speakers are people: their role is user."""
    turns: dict[str, dict[str, Turn]] = defaultdict(dict)
    for row in _rows("locomo_episodes.jsonl"):
        turns[row["conversation"]][row["source_uri"]] = Turn(
            text=row["text"],
            external_id=row["id"],
            speaker=row["speaker"],
            role="user",
            session=f"{row['conversation']}/{row['session']}",
            seq=row["seq"],
            happened_at=datetime.fromisoformat(row["created_at"]),
            source_uri=row["source_uri"],
        )
    noted: dict[str, list[Noted]] = defaultdict(list)
    for row in _rows("locomo_observations.jsonl"):
        said = turns[row["conversation"]]
        speakers = _words(" ".join({turn.speaker for turn in said.values()}))
        noted[row["conversation"]].append(_noted(row, [said[uri] for uri in row["source_uris"]], speakers))
    return tuple(Conversation(name, tuple(said.values()), tuple(noted[name])) for name, said in turns.items())


def script_for(conversation: Conversation) -> Callable[[Request], Mapping[str, Any]]:
    """What a model that works as the annotators did answers to a request of extraction about turns of it.

    For `ScriptedCompleter(by_purpose={"extract": script_for(conversation)})`.
    """
    turns = {turn.source_uri: turn for turn in conversation.turns}
    found: dict[tuple[str, str, str], list[Noted]] = defaultdict(list)
    for noted in conversation.noted:
        found[_key(turns[noted.turn])].append(noted)

    def answer(request: Request) -> Mapping[str, Any]:
        return {
            "claims": [
                {
                    "text": noted.text,
                    "subject": noted.subject,
                    "predicate": "",
                    "object": "",
                    "kind": "fact",
                    "turn": shown["label"],
                    "quote": noted.quote,
                }
                for shown in shown_in(request)
                for noted in found.get((shown["speaker"], shown["date"][-10:], _squeezed(shown["text"])), [])
            ]
        }

    return answer


def shown_in(request: Request) -> list[dict[str, Any]]:
    """The turns of a request, as a model reads them: label, date, role, speaker and text of each."""
    lines = request.text.partition("<turns>\n")[2].partition("\n</turns>")[0]
    return [json.loads(line) for line in lines.split("\n")]


def _key(turn: Turn) -> tuple[str, str, str]:
    assert turn.happened_at is not None
    return turn.speaker, f"{turn.happened_at:%Y-%m-%d}", _squeezed(turn.text)


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _noted(row: Mapping[str, Any], turns: Sequence[Turn], speakers: frozenset[str]) -> Noted:
    """The observation with the clause of its turns that shares most words with it; questions come last."""
    wanted = _words(row["text"]) - speakers
    offered = [(turn, piece) for turn in turns for piece in pieces(turn.text)]
    turn, quote = max(offered, key=lambda pair: _fits(pair[1], wanted))
    return Noted(
        id=row["id"], text=row["text"], subject=row["subject"], turn=turn.source_uri, speaker=turn.speaker, quote=quote
    )


def _fits(piece: str, wanted: frozenset[str]) -> tuple[float, float]:
    """More shared words first, a question for two less; then the piece with fewer others, or the longest."""
    said = _words(piece)
    shared = len(said & wanted)
    return shared - 2 * piece.endswith("?"), shared / max(1, len(said)) if shared else len(piece)


def _words(text: str) -> frozenset[str]:
    """The words that tell two texts apart, without most of their endings."""
    return frozenset(word.removesuffix("'s")[:5] for word in tokens(text) if len(word) > 3)


def pieces(text: str) -> list[str]:
    """What of a turn can be quoted: its sentences, their clauses, or all of it where each is too short."""
    found = [piece.strip() for split in (_SENTENCES, _CLAUSES) for piece in split.split(text)]
    return [piece for piece in found if find_quote(piece, text)] or [text]
