"""Core memory as resources, so that a host can put it before a model without a tool call."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from observations.mcp.answering import Answer, Refused, Who, call_tool
from observations.mcp.tools import default_scope

TEMPLATE: Final = "palimpsest://core/{scope}/{label}"
_URI: Final = re.compile(r"palimpsest://core/([^/?#]{1,2000})/([^/?#]{1,200})")


@dataclass(frozen=True, slots=True)
class Listed:
    """One core memory that can be read."""

    uri: str
    label: str
    description: str


def list_core(*, who: Who, scope: str) -> list[Listed]:
    """The core memory of the scope that need not be named; none where there is none, or who asks may not see it."""
    try:
        default = default_scope(caller=who(), scope=scope)
    except Refused:
        return []
    if not default:
        return []
    answer = call_tool(who=who, name="core_list", arguments={"scope": default}, scope="")
    found = answer.content["core"] if answer.content else []
    return [Listed(_uri(default, core["label"]), core["label"], core["description"]) for core in found]


def read_core(*, who: Who, uri: str) -> str:
    """The text of one core memory. Raises Refused."""
    match = _URI.fullmatch(uri)
    if match is None:
        raise Refused("not_found", f"There is no such resource: an address reads {TEMPLATE}.")
    scope, label = unquote(match[1]), unquote(match[2])
    answer = call_tool(who=who, name="core_get", arguments={"scope": scope, "label": label}, scope="")
    return _text(answer)


def _text(answer: Answer) -> str:
    if answer.content is None:
        code, _, sentence = answer.text.partition(": ")
        raise Refused(code, sentence)
    return str(answer.content["value"])


def _uri(scope: str, label: str) -> str:
    return f"palimpsest://core/{quote(scope, safe='')}/{quote(label, safe='')}"
