"""What a model's reply says: the one JSON value in it, and where the words it quotes stand in their source (C2, C3).

A reply is hostile text. Nothing of it enters an error: `Unusable` names a reason of `Unread` and no more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final

from observations.llm.asking import Unusable
from observations.llm.quoting import find_quote
from observations.normalise import clean

__all__ = ["MAX_CHARACTERS", "MAX_DEPTH", "Unread", "find_quote", "json_in"]

MAX_CHARACTERS: Final = 200_000  # many times what the largest max_tokens can say; refused before it is parsed
MAX_DEPTH: Final = 64  # of objects and lists in each other


class Unread(StrEnum):
    """Why a reply cannot be read; completes the sentence "The model's answer cannot be used: ..."."""

    EMPTY = "it is empty"
    TOO_LONG = "it is longer than an answer can be"
    TOO_DEEP = "its JSON is nested too deeply"
    NO_JSON = "it holds no JSON object or list"
    BROKEN = "its JSON is malformed"
    CUT_OFF = "it ends in the middle of its JSON"
    TWICE = "an object in it names one field twice"
    NOT_FINITE = "a number in it is not finite"
    TWO_ANSWERS = "it holds two different answers"


def unusable(why: Unread) -> Unusable:
    """The error for this reason."""
    return Unusable(f"The model's answer cannot be used: {why}; nothing was taken from it, ask again later.")


def json_in(text: str) -> Any:
    """The one JSON object or list in a model's reply. Raises Unusable, and nothing else.

    The reply may be the JSON itself, or hold it in a fence or bare between sentences. In a fence every object and list
    counts. Bare between sentences only what cannot be prose counts: an object with a quoted name, a list of objects,
    lists or strings; '[0] and [1]', '[]' and '{x}' are prose. The same value twice is one answer; two different values
    are none, because one of them may be quoted from hostile memory (the prompt's own words prove nothing either).
    Characters that cannot be stored become U+FFFD (C1).
    """
    if len(text) > MAX_CHARACTERS:
        raise unusable(Unread.TOO_LONG)
    text = text.strip("\ufeff \t\r\n")
    if not text:
        raise unusable(Unread.EMPTY)
    try:
        value = _parsed(text)
    except ValueError:
        return _only(_found(text))
    return _cleaned(_object_or_list(value))


def _found(text: str) -> Iterator[Any]:
    """Every value that counts as an answer: of the fences, then of the prose around them."""
    fences, prose = _split(text)
    for block in fences:
        try:
            yield _object_or_list(_parsed(block))
        except ValueError:
            raise unusable(_flaw(block)) from None
    yield from _bare(prose, fenced=bool(fences))


def _only(values: Iterator[Any]) -> Any:
    found = {json.dumps(value, sort_keys=True): value for value in map(_cleaned, values)}
    if len(found) > 1:
        raise unusable(Unread.TWO_ANSWERS)
    if not found:
        raise unusable(Unread.NO_JSON)
    return found.popitem()[1]


# --- one value -------------------------------------------------------------------------------------------------------


def _parsed(text: str) -> Any:
    """Strict JSON: ValueError for what is none; Unusable for what JSON leaves open and readers read differently."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_not_finite, parse_float=_finite)
    except RecursionError:
        raise unusable(Unread.TOO_DEEP) from None


def _object_or_list(value: Any) -> Any:
    if not isinstance(value, dict | list):
        raise unusable(Unread.NO_JSON)
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names differ also after cleaning."""
    found = {clean(name)[0]: value for name, value in pairs}
    if len(found) < len(pairs):
        raise unusable(Unread.TWICE)
    return found


def _not_finite(_word: str) -> float:
    raise unusable(Unread.NOT_FINITE)


def _finite(digits: str) -> float:
    value = float(digits)
    if value in {float("inf"), float("-inf")}:
        raise unusable(Unread.NOT_FINITE)
    return value


def _cleaned(value: Any, depth: int = 1) -> Any:
    """The value with strings that PostgreSQL and UTF-8 can hold. Raises Unusable below MAX_DEPTH."""
    if isinstance(value, str):
        return clean(value)[0]
    if not isinstance(value, dict | list):
        return value
    if depth > MAX_DEPTH:
        raise unusable(Unread.TOO_DEEP)
    if isinstance(value, list):
        return [_cleaned(item, depth + 1) for item in value]
    return {name: _cleaned(item, depth + 1) for name, item in value.items()}


# --- finding it ------------------------------------------------------------------------------------------------------

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)[ \t]*\r?")
# What begins an object or list that cannot be prose.
_BEGINS = re.compile(r'\{\s*"|\[\s*(?:\{\s*["}]|"|\[\s*["{\[])')
_BRACKET = re.compile(r"[\[{]")
_STEP = re.compile(r'"(?:[^"\\\n]|\\.)*+("?)|[\[\]{}]')  # an unclosed string ends with its line; never goes back
_CLOSES: Final = {"[": "]", "{": "}"}


def _split(text: str) -> tuple[list[str], str]:
    """The contents of the fences that hold JSON or say so, and everything else; an unclosed fence ends with the text.

    A line of JSON never begins with a fence: line ends inside its strings are escaped.
    """
    fences: list[str] = []
    prose: list[str] = []
    lines: list[str] = []
    mark = language = ""
    for line in [*text.split("\n"), None]:
        fence = _FENCE.fullmatch(line) if line is not None else None
        closes = line is None or (fence is not None and not fence[2] and fence[1].startswith(mark))
        if not mark and fence:
            mark, language = fence[1], fence[2].lower()
        elif not mark:
            prose.append(line or "")
        elif closes:
            kept = fences if _holds_json("\n".join(lines), language) else prose
            kept.append("\n".join(lines))
            mark, lines = "", []
        else:
            lines.append(line or "")
    return fences, "\n".join(prose)


def _holds_json(block: str, language: str) -> bool:
    return language.startswith("json") or (not language and block.lstrip()[:1] in ("{", "["))


def _bare(text: str, *, fenced: bool) -> Iterator[Any]:
    """The values that stand between sentences. Beside a fence, what is no JSON is prose; without one it is an error.

    An object inside a broken or cut-off one is never taken for the answer: what begins as JSON has to end as JSON.
    """
    at = 0
    while start := _BRACKET.search(text, at):
        at, flaw = _end(text, start.start())
        begun = _BEGINS.match(text, start.start()) is not None
        if begun and flaw is None:
            try:
                yield _parsed(text[start.start() : at])
            except ValueError:
                flaw = Unread.BROKEN
        if flaw and (flaw is Unread.TOO_DEEP or not fenced):
            raise unusable(flaw)
        if flaw:
            at = start.end()


def _end(text: str, start: int) -> tuple[int, Unread | None]:
    """Where the bracket at `start` closes, or what is wrong with it. Linear: no more than MAX_DEPTH begin again."""
    open_brackets: list[str] = []
    for step in _STEP.finditer(text, start):
        mark = step[0]
        if mark in _CLOSES:
            open_brackets.append(_CLOSES[mark])
        elif mark[0] == '"':
            if not step[1] and text[step.end() :].strip():
                return start, Unread.BROKEN
        elif open_brackets.pop() != mark:
            return start, Unread.BROKEN
        if len(open_brackets) > MAX_DEPTH:
            return start, Unread.TOO_DEEP
        if not open_brackets:
            return step.end(), None
    return start, Unread.CUT_OFF


def _flaw(block: str) -> Unread:
    """Why the content of a fence is no JSON."""
    block = block.strip()
    if block[:1] not in ("{", "["):
        return Unread.BROKEN if block else Unread.EMPTY
    return _end(block, 0)[1] or Unread.BROKEN
