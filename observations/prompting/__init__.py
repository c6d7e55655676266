"""PROMPT: what an agent's prompt is given of a scope, in one fence, each line labelled with how far it can be trusted.

A section is empty when it fails (R133): a dead store is a thinner prompt, never a crash. A label comes from the kind of
record and is written before its text, which is one line of plain data, so that no text can claim one (C15).
"""

from observations.prompting.composing import Prompt, get_episodic_context, prompt
from observations.prompting.fitting import BYTES_PER_TOKEN, LONGEST, tokens
from observations.prompting.labels import OUTDATED, citation, label, span
from observations.prompting.observed import observation_lines, observation_section
from observations.prompting.sections import (
    CLEAN,
    LAST_TURNS,
    RESIDUE_DAYS,
    Clean,
    Line,
    Section,
    Undeclared,
    core_lines,
    declared,
    residue_lines,
    verbatim_lines,
)

__all__ = [
    "BYTES_PER_TOKEN",
    "CLEAN",
    "LAST_TURNS",
    "LONGEST",
    "OUTDATED",
    "RESIDUE_DAYS",
    "Clean",
    "Line",
    "Prompt",
    "Section",
    "Undeclared",
    "citation",
    "core_lines",
    "declared",
    "get_episodic_context",
    "label",
    "observation_lines",
    "observation_section",
    "prompt",
    "residue_lines",
    "span",
    "tokens",
    "verbatim_lines",
]
