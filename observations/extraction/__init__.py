"""EXTRACT: what is worth remembering of some turns, blind to what is remembered already (R125). Plain Python."""

from observations.extraction.asking import (
    BEFORE,
    LONGEST_TURN,
    MAX_CHARACTERS,
    MAX_TURNS,
    PROMPT_VERSION,
    PURPOSE,
    batches,
    is_cut,
    passed,
    request,
)
from observations.extraction.believing import Said, says
from observations.extraction.claims import HOLDABLE, Dropped, Extracted, Proposed, Quoted, Refusal, Refused
from observations.extraction.reading import read

__all__ = [
    "BEFORE",
    "HOLDABLE",
    "LONGEST_TURN",
    "MAX_CHARACTERS",
    "MAX_TURNS",
    "PROMPT_VERSION",
    "PURPOSE",
    "Dropped",
    "Extracted",
    "Proposed",
    "Quoted",
    "Refusal",
    "Refused",
    "Said",
    "batches",
    "is_cut",
    "passed",
    "read",
    "request",
    "says",
]
