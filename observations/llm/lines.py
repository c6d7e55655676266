"""Hostile text in a question: one thing, one line of JSON, and nothing in it can end the line or its fence (C15)."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from typing import Any

from observations.fencing import hidden


def data_line(fields: Mapping[str, Any]) -> str:
    r"""Some named values as one line of JSON; what could make a mark, end the line, hide or turn text round is \uXXXX.

    JSON reads both as the same character, so words copied from the line are still the source's own.
    """
    return "".join(map(_harmless, json.dumps(fields, ensure_ascii=False)))


def _harmless(character: str) -> str:
    odd = character in "<>\x7f" or (not character.isascii() and unicodedata.category(character)[0] in "CZ")
    if not odd and not hidden(character):
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
