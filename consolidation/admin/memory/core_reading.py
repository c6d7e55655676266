"""Core memory as values: a label's text, its revisions as a timeline of edits, and both sides of a lost race."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from consolidation.admin.reading import Chip
from consolidation.admin.texts import Edit, Text, Words, edited, snippet, when, whole
from consolidation.operations import visible
from observations.admin.listing import Listing
from observations.models import CoreMemory, CoreRevision

REVISIONS: Final = 10  # on a page
_ACTIONS: Final = {
    CoreRevision.Action.CREATE: Chip("created", "done"),
    CoreRevision.Action.APPEND: Chip("added to", "go"),
    CoreRevision.Action.REPLACE: Chip("a part replaced", "go"),
    CoreRevision.Action.RETHINK: Chip("written anew", "auto"),
    CoreRevision.Action.UNDO: Chip("undone", "back"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One label in the list."""

    pk: int
    label: str
    scope: str
    text: str
    description: str
    length: str
    limit: str
    share: str  # of a hundred, for the picture
    read_only: bool
    revision: int
    updated: str


@dataclass(frozen=True, slots=True)
class Revision:
    """One edit."""

    number: int
    action: Chip
    undoes: int | None
    by: str
    at: str
    edit: Edit
    erased: bool
    newest: bool


@dataclass(frozen=True, slots=True)
class Form:
    """What the form of an edit holds."""

    way: str
    text: str  # what is added, or the whole text
    old: str
    new: str
    whole: str  # the whole text as it may be edited by hand
    hidden: bool  # characters that cannot be seen are escapes in it


@dataclass(frozen=True, slots=True)
class Race:
    """Somebody was faster: who, and what both wrote."""

    revision: int
    by: str
    at: str
    theirs: Text
    mine: Text
    what: str  # what "mine" is


def row_of(row: CoreMemory) -> Row:
    """One label, whose scope was selected with it. No query."""
    length = len(row.value)
    return Row(
        pk=row.pk,
        label=visible(row.label),
        scope=visible(row.scope.name),
        text=snippet(row.value.replace("\n", " ")),
        description=visible(row.description),
        length=f"{length:,}",
        limit=f"{row.limit:,}",
        share=f"{100 * length / row.limit:.1f}",
        read_only=row.read_only,
        revision=row.revision,
        updated=when(row.updated_at),
    )


def revisions_of(core: CoreMemory, page: Listing[CoreRevision]) -> tuple[Revision, ...]:
    """The revisions of a page, each beside the one before it. One query."""
    before = (
        CoreRevision.objects.filter(scope_id=core.scope_id, core=core, number=page.rows[-1].number - 1).first()
        if page.rows
        else None
    )
    older: Sequence[CoreRevision | None] = [*page.rows[1:], before]
    return tuple(_revision(row, other, core) for row, other in zip(page.rows, older, strict=True))


def _revision(row: CoreRevision, before: CoreRevision | None, core: CoreMemory) -> Revision:
    return Revision(
        number=row.number,
        action=_ACTIONS.get(CoreRevision.Action(row.action)) or Chip(visible(row.action), "quiet"),
        undoes=row.undoes,
        by=visible(row.by),
        at=when(row.at),
        edit=edited(before.value if before else "", row.value),
        erased=row.value is None,
        newest=row.number == core.revision,
    )


def form_of(core: CoreMemory, given: Mapping[str, str]) -> Form:
    """The form as it was filled in, or as the text stands. What a reader could not see is an escape in it (F5)."""
    shown = whole(core.value)
    return Form(
        way=given.get("way", ""),
        text=given.get("text", ""),
        old=given.get("old", ""),
        new=given.get("new", ""),
        whole=given.get("value", shown.plain),
        hidden=shown.plain != core.value.replace("\r\n", "\n") or bool(shown.left_out),
    )


def race_of(core: CoreMemory, given: Mapping[str, str]) -> Race | None:
    """Both sides, when somebody edited it since the form was loaded. One query."""
    newest = CoreRevision.objects.filter(scope_id=core.scope_id, core=core, number=core.revision).first()
    if newest is None:
        return None
    whats = {"append": "What you would have added", "replace": "What you would have put there"}
    mine = given.get({"append": "text", "replace": "new"}.get(given.get("way", ""), "value"), "")
    between = edited(core.value, mine) if given.get("way") == "rethink" else None
    return Race(
        revision=core.revision,
        by=visible(newest.by),
        at=when(newest.at),
        theirs=_side(between, "removed") if between and between.compared else whole(core.value),
        mine=_side(between, "added") if between and between.compared else whole(mine),
        what=whats.get(given.get("way", ""), "What you wrote"),
    )


def _side(edit: Edit, mine: str) -> Text:
    """One of the two texts of an edit, what only it has marked."""
    return Text(words=tuple(Words(run.text, run.sort == mine) for run in edit.runs if run.sort in ("same", mine)))
