"""Who may have said a fact about a user: people who are named. Bots, agents, tools and nobody may not (R119)."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from observations.records import StatedBy

_PEOPLE: Final = {
    "user": StatedBy.USER,
    "human": StatedBy.USER,
    "operator": StatedBy.OPERATOR,
    "operator-person": StatedBy.OPERATOR,
}
_NOBODY: Final = frozenset(
    {
        *("unknown", "anonymous", "nobody", "none", "null", "undefined", "n/a", "na", "?", "-", "agent", "ai"),
        *("assistant", "chatbot", "dependabot", "function", "llm", "machine", "model", "script", "service"),
        *("slackbot", "system", "tool", "webhook"),
    }
)
_BOT: Final = re.compile(r"(?<![^\W_])(?:(?:chat|ro)?bot|assistant)\d*(?![^\W_])")  # "review-bot", and no Talbot
_UNSEEN: Final = frozenset({"Cf", "Cc"})  # marks and controls: a name made of them is none, and one with them lies


def origin_of(role: str) -> StatedBy | None:
    """Whose word a person of that role gives; None for a role that is no person's."""
    return _PEOPLE.get(_folded(role))


def fault_of_author(*, name: str, role: str) -> str:
    """Why an author is not believed; "" for a person with a name."""
    if origin_of(role) is None:
        return "the author's role is not a person's: give user, human or operator, and the name of whoever said it"
    known = _folded(name)
    if not known or known in _NOBODY:
        return "the author is unknown: name the person who said it"
    if _BOT.search(known):
        return "the author is a bot: name the person who said it"
    return ""


def source_of(*, name: str, role: str) -> str:
    """The source that a fact rests on where none is given: its author, one witness however often."""
    return f"{origin_of(role) or 'nobody'}:{_folded(name)}"


def _folded(word: str) -> str:
    seen = (
        sign
        for sign in unicodedata.normalize("NFKC", word)
        if sign.isspace() or unicodedata.category(sign) not in _UNSEEN
    )
    return " ".join("".join(seen).casefold().split())
