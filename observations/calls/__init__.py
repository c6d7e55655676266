"""CALLS: what a program or a person may ask of memory. One function per call, whatever the doorway.

Every function is `call(*, caller, asked)`: it checks the caller first, then makes one domain call, and raises nothing
but CallRefused. Reads answer for a dead store too, emptily and as incomplete (R133); writes are refused as unavailable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from pydantic import BaseModel

from observations.calls import receipts, schemas
from observations.calls.core import (
    core_append,
    core_create,
    core_get,
    core_list,
    core_replace,
    core_rethink,
    core_revisions,
    core_undo,
)
from observations.calls.reading import (
    episodic_context,
    get_answer,
    get_observation,
    history_of_observation,
    intake_status,
    known,
    list_observations,
    prompt,
    search,
)
from observations.calls.rights import CallRefused, Code, Right, has_right
from observations.calls.writing import (
    correct,
    forget,
    observe,
    propose,
    remember,
    residue_hold,
    restore,
    retire,
    store_facts,
    take_back,
)
from observations.records import Caller


@dataclass(frozen=True, slots=True)
class Call:
    """A call as a doorway offers it."""

    run: Callable[..., Any]  # (*, caller: Caller, asked: takes) -> gives
    takes: type[BaseModel]
    gives: type[BaseModel]
    right: Right

    @property
    def says(self) -> str:
        """What it does, in a sentence or two for whoever chooses a call."""
        return " ".join((self.run.__doc__ or "").split())


CALLS: Final[Mapping[str, Call]] = MappingProxyType(
    {
        "observe": Call(observe, schemas.Observe, schemas.Observed, Right.WRITE),
        "remember": Call(remember, schemas.Remember, schemas.Remembered, Right.WRITE),
        "store_facts": Call(store_facts, schemas.StoreFacts, schemas.FactsStored, Right.WRITE),
        "correct": Call(correct, schemas.Correct, schemas.Remembered, Right.WRITE),
        "retire": Call(retire, schemas.Retire, schemas.Remembered, Right.WRITE),
        "restore": Call(restore, schemas.Restore, schemas.Remembered, Right.WRITE),
        "take_back": Call(take_back, schemas.TakeBack, schemas.TakenBack, Right.WRITE),
        "forget": Call(forget, schemas.Forget, schemas.Requested, Right.PROPOSE),
        "propose": Call(propose, schemas.Propose, schemas.Requested, Right.PROPOSE),
        "residue_hold": Call(residue_hold, schemas.HoldResidue, schemas.ResidueHeld, Right.WRITE),
        "get_observation": Call(get_observation, schemas.OneObservation, schemas.Observation, Right.READ),
        "history_of_observation": Call(history_of_observation, schemas.OneObservation, schemas.History, Right.READ),
        "list_observations": Call(list_observations, schemas.ListObservations, schemas.Page, Right.READ),
        "search": Call(search, schemas.Search, schemas.Found, Right.READ),
        "known": Call(known, schemas.Known, schemas.Found, Right.READ),
        "prompt": Call(prompt, schemas.PromptFor, schemas.Prompt, Right.READ),
        "episodic_context": Call(episodic_context, schemas.EpisodicContext, schemas.Prompt, Right.READ),
        "get_answer": Call(get_answer, schemas.GetAnswer, schemas.AnswerGiven, Right.READ),
        "intake_status": Call(intake_status, schemas.IntakeStatus, schemas.Intake, Right.READ),
        "core_list": Call(core_list, schemas.CoreList, schemas.CoreMemories, Right.READ),
        "core_get": Call(core_get, schemas.CoreGet, schemas.CoreMemory, Right.READ),
        "core_create": Call(core_create, schemas.CoreCreate, schemas.CoreMemory, Right.WRITE),
        "core_append": Call(core_append, schemas.CoreAppend, schemas.CoreMemory, Right.WRITE),
        "core_replace": Call(core_replace, schemas.CoreReplace, schemas.CoreMemory, Right.WRITE),
        "core_rethink": Call(core_rethink, schemas.CoreRethink, schemas.CoreMemory, Right.WRITE),
        "core_undo": Call(core_undo, schemas.CoreUndo, schemas.CoreMemory, Right.WRITE),
        "core_revisions": Call(core_revisions, schemas.CoreRevisions, schemas.CoreEdits, Right.READ),
    }
)

__all__ = [
    "CALLS",
    "Call",
    "CallRefused",
    "Caller",
    "Code",
    "Right",
    "core_append",
    "core_create",
    "core_get",
    "core_list",
    "core_replace",
    "core_rethink",
    "core_revisions",
    "core_undo",
    "correct",
    "episodic_context",
    "forget",
    "get_answer",
    "get_observation",
    "has_right",
    "history_of_observation",
    "intake_status",
    "known",
    "list_observations",
    "observe",
    "prompt",
    "propose",
    "receipts",
    "remember",
    "residue_hold",
    "restore",
    "retire",
    "schemas",
    "search",
    "store_facts",
    "take_back",
]
