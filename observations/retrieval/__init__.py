"""RETRIEVE: what an agent may read, by meaning and by words, active rows of one scope only (R13, I21).

What has faded ranks behind what is equally relevant and fresh, and is never left out for it (docs/decisions/0010).
A read never raises for a dead store or embedder: it returns what it found and says that it is incomplete (promise 9).
"""

from observations.retrieval.answers import Answer, Hit, Trust, Why, trust_of
from observations.retrieval.asking import current_embedder
from observations.retrieval.core import look, nearest, note_uses, search, sharing
from observations.retrieval.narrowing import EVERYTHING, Narrowed
from observations.retrieval.overlay import Overlay, Standing
from observations.retrieval.ranking import Weights
from observations.retrieval.sites import CALL_SITES, LONGEST_QUERY, fades

__all__ = [
    "CALL_SITES",
    "EVERYTHING",
    "LONGEST_QUERY",
    "Answer",
    "Hit",
    "Narrowed",
    "Overlay",
    "Standing",
    "Trust",
    "Weights",
    "Why",
    "current_embedder",
    "fades",
    "look",
    "nearest",
    "note_uses",
    "search",
    "sharing",
    "trust_of",
]
