"""Calls on core memory."""

from __future__ import annotations

from observations.calls import schemas
from observations.records import Caller


def core_list(*, caller: Caller, asked: schemas.CoreList) -> schemas.CoreMemories:
    """All core memory of a scope, by label."""
    raise NotImplementedError


def core_get(*, caller: Caller, asked: schemas.CoreGet) -> schemas.CoreMemory:
    """One core memory."""
    raise NotImplementedError


def core_create(*, caller: Caller, asked: schemas.CoreCreate) -> schemas.CoreMemory:
    """Make a labelled text that is always in the prompt."""
    raise NotImplementedError


def core_append(*, caller: Caller, asked: schemas.CoreAppend) -> schemas.CoreMemory:
    """Add a line at the end of a core memory."""
    raise NotImplementedError


def core_replace(*, caller: Caller, asked: schemas.CoreReplace) -> schemas.CoreMemory:
    """Replace the one occurrence of a string in a core memory, byte for byte."""
    raise NotImplementedError


def core_rethink(*, caller: Caller, asked: schemas.CoreRethink) -> schemas.CoreMemory:
    """Write a core memory anew."""
    raise NotImplementedError


def core_undo(*, caller: Caller, asked: schemas.CoreUndo) -> schemas.CoreMemory:
    """Take the newest edit of a core memory back."""
    raise NotImplementedError


def core_revisions(*, caller: Caller, asked: schemas.CoreRevisions) -> schemas.CoreEdits:
    """The edits of a core memory, newest first."""
    raise NotImplementedError
