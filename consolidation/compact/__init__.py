"""Episodes to a summary: which belong together, what a model is asked, what its answer is worth, what may be done.

A summary is trust low. It stands in for its episodes in the reads; they are archived, never deleted, and stay readable.
At most ten episodes go into one (R81). A summary that lost a number, a date, an identifier, a name or a whole episode,
or that turned names or a denial round, waits for a person, with the places listed (C9). No answer, and an answer that
is no summary, are seen as such.
"""

from consolidation.compact.answering import Said, Written, failed, read
from consolidation.compact.asking import PROMPT_VERSION, request
from consolidation.compact.covering import Coverage, Invented, Lost, coverage
from consolidation.compact.finding import Sort
from consolidation.compact.grouping import Group, groups, over_limit
from consolidation.compact.proposing import CONFIDENCE, checked, noted, proposal
from consolidation.compact.turning import Turn, Turned

__all__ = [
    "CONFIDENCE",
    "PROMPT_VERSION",
    "Coverage",
    "Group",
    "Invented",
    "Lost",
    "Said",
    "Sort",
    "Turn",
    "Turned",
    "Written",
    "checked",
    "coverage",
    "failed",
    "groups",
    "noted",
    "over_limit",
    "proposal",
    "read",
    "request",
]
