"""What calls on core memory take and answer."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from observations.calls.shapes import (
    InScope,
    Label,
    Shape,
    Words,
)


class CoreList(InScope):
    """All core memory of a scope."""


class CoreGet(InScope):
    """One core memory."""

    label: Label


class CoreCreate(CoreGet):
    """Make a labelled text that is always in the prompt."""

    value: Annotated[str, Words(20_000)] = ""
    limit: Annotated[int, Field(ge=1, le=20_000)] = 2_000
    description: Annotated[str, Words(500)] = ""
    read_only: bool = False


Revision = Annotated[int, Field(ge=1, le=2**31 - 1, description="The revision that was read; another is a conflict.")]


class CoreAppend(CoreGet):
    """Add a line at the end."""

    text: Annotated[str, Words(20_000, 1)]
    revision: Revision | None = None


class CoreReplace(CoreGet):
    """Replace the one occurrence of `old`, byte for byte."""

    old: Annotated[str, Words(20_000, 1)]
    new: Annotated[str, Words(20_000)]
    revision: Revision | None = None


class CoreRethink(CoreGet):
    """Write the whole text anew."""

    value: Annotated[str, Words(20_000)]
    revision: Revision | None = None


class CoreUndo(CoreGet):
    """Take the newest edit back; with `revision` given, also one that somebody else made."""

    revision: Revision | None = None


class CoreRevisions(CoreGet):
    """The edits, newest first."""

    cursor: Annotated[str, Words(40)] = ""
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class CoreMemory(Shape):
    """One core memory."""

    label: str
    value: str
    description: str
    limit: int
    length: int
    read_only: bool
    revision: int
    updated_at: datetime
    cleaned: bool = False


class CoreMemories(Shape):
    """All of a scope, by label."""

    core: list[CoreMemory]
    complete: bool = True


class CoreEdit(Shape):
    """One revision."""

    number: int
    action: str
    undoes: int | None = None
    value: str | None  # None: erased
    by: str
    at: datetime


class CoreEdits(Shape):
    """Revisions, newest first."""

    revisions: list[CoreEdit]
    next: str = ""
