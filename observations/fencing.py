"""The fence around memory in a prompt: nothing inside can close it, and what it held is recognised when it comes back.

Memory is hostile text (C15). It is put between two marks as plain data, one line per entry; a text that holds the marks
loses them. The same marks tell the pipeline which words of a turn are our own, so that memory is never learnt from
memory.
"""

from __future__ import annotations

import re
from typing import Final

OPENING: Final = "<memory>"
CLOSING: Final = "</memory>"
# A block, one whose marks a page has escaped, and a single line of it: a label is written by us alone.
_OWN: Final = re.compile(
    r"<memory\b[^<>]*>.*?(?:</memory\s*>|\Z)"
    r"|&lt;memory\b[^<>&]*&gt;.*?(?:&lt;/memory\s*&gt;|\Z)"
    r"|(?:- )?\[trust: (?:high|medium|low)\b[^\]\n]{0,60}\][^\n]*",
    re.DOTALL | re.IGNORECASE,
)
# What looks like an angle and is none, also for the wide and the small one, which a reader may take for the same.
_ANGLES: Final = str.maketrans(dict.fromkeys("<\uff1c\ufe64", "\u2039") | dict.fromkeys(">\uff1e\ufe65", "\u203a"))
_CLAIMED: Final = re.compile(r"\[(?=\s*trust\s*:)", re.IGNORECASE)  # the beginning of a label, which we alone write
# Printable to Python, and seen by nobody: fillers, joiners and variation selectors, in which words can be hidden.
_HIDDEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)


def hidden(character: str) -> bool:
    """Whether a character is printable to Python and seen by nobody."""
    return _HIDDEN.fullmatch(character) is not None


def seen(text: str) -> str:
    """The text without what nobody sees: hidden characters are gone; those that end lines, control, or turn text round
    are spaces. One line.
    """
    printed = "".join(ch if ch.isprintable() else " " for ch in _HIDDEN.sub("", text))
    return " ".join(printed.split())


def plain(text: str) -> str:
    """A text as one line of data that holds no mark and begins no label: angles are replaced, and the bracket of what
    looks like a label is a round one (C15).
    """
    return _CLAIMED.sub("(", seen(text).translate(_ANGLES))


def fenced(lines: list[str]) -> str:
    """The lines between the two marks; "" when there is none, so that nothing is injected (R7). Lines are `plain`."""
    return "\n".join([OPENING, *lines, CLOSING]) if lines else ""


def own_blocks(text: str) -> list[tuple[int, int]]:
    """Start and end, in code points, of every block that our own fence encloses, and of single lines that our own label
    begins; a block that is not closed ends with the text.
    """
    return [match.span() for match in _OWN.finditer(text)]


def without_own(text: str) -> str:
    """The text with our own blocks blanked, of the same length, so that positions in it stay true."""
    return _OWN.sub(lambda match: " " * len(match[0]), text)
