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
_ANGLES: Final = str.maketrans({"<": "\u2039", ">": "\u203a"})  # what looks like an angle and is none


def plain(text: str) -> str:
    """A text as one line of data that holds no mark: angles are replaced, line ends and control characters become
    spaces.
    """
    return " ".join("".join(ch if ch.isprintable() else " " for ch in text.translate(_ANGLES)).split())


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
