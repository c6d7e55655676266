"""Core memory: a few labelled texts that are always in the prompt, edited by agents and people (R120).

Edits are byte for byte: nothing is trimmed, folded or put into another form, so what was found is what was there.
Lengths are in characters (code points). Programs may not edit what is read-only; people may.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import IntegrityError, transaction

from observations import store
from observations.ingest.checking import fault_of_text
from observations.models import CoreMemory, CoreRevision, Event, Scope
from observations.normalise import clean
from observations.records import is_program

LABEL: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,49}", re.ASCII)
MAX_LIMIT: Final = 20_000
DEFAULT_LIMIT: Final = 2_000
MOST_OF_PROGRAMS: Final = 20  # core memories of a scope from which on only people add one: all are in every prompt
_Edit = CoreRevision.Action


class CoreRefused(ValueError):
    """The core memory cannot be edited so; the message is one sentence that says what to do."""


class NoCore(CoreRefused):
    """No core memory has this label."""

    def __init__(self, label: str) -> None:
        super().__init__(f"There is no core memory {label!r} in this scope: list those there are, or create it.")


class Taken(CoreRefused):
    """The label is taken."""

    def __init__(self, label: str) -> None:
        super().__init__(f"There is a core memory {label!r} already: edit it, or take another label.")


class NoMatch(CoreRefused):
    """The string to be replaced does not stand there."""

    def __init__(self) -> None:
        super().__init__("What is to be replaced does not stand there, byte for byte: read the core memory again.")


class ManyMatches(CoreRefused):
    """The string to be replaced stands there more than once."""

    def __init__(self, count: int) -> None:
        super().__init__(f"What is to be replaced stands there {count} times: give more of what is around it.")
        self.count = count


class OverLimit(CoreRefused):
    """The text would be longer than its limit."""

    def __init__(self, limit: int, length: int) -> None:
        super().__init__(f"The text would have {length:,} characters and may have {limit:,}: shorten it.")
        self.limit = limit
        self.length = length


class ReadOnly(CoreRefused):
    """Programs may not edit it."""

    def __init__(self, label: str) -> None:
        super().__init__(f"The core memory {label!r} is read-only for programs: a person edits it.")


class Moved(CoreRefused):
    """Somebody else edited it since it was read."""

    def __init__(self, current: int) -> None:
        super().__init__(f"It was edited since: it is at revision {current} now, read it again.")
        self.current = current


class NothingToUndo(CoreRefused):
    """There is no earlier text."""


class NotYours(CoreRefused):
    """The newest edit is somebody else's; it is taken back only by its number."""

    def __init__(self, current: int) -> None:
        super().__init__(f"Somebody else made the newest edit: name its revision, {current}, to take it back.")
        self.current = current


@dataclass(frozen=True, slots=True)
class Core:
    """A core memory as it stands."""

    label: str
    value: str
    description: str
    limit: int
    read_only: bool
    revision: int
    updated_at: datetime
    cleaned: bool = False  # a character no database can hold was replaced (C1)


def create_core(
    *,
    scope: Scope,
    label: str,
    value: str = "",
    limit: int = DEFAULT_LIMIT,
    description: str = "",
    read_only: bool = False,
    by: str,
) -> Core:
    """Make a core memory. Raises Taken, OverLimit, and CoreRefused for a label or a text that may not be."""
    if not LABEL.fullmatch(label):
        raise CoreRefused("A label has 1 to 50 lower-case letters, digits, - and _, and begins with none of these two.")
    if not 1 <= limit <= MAX_LIMIT or len(description) > 500:
        raise CoreRefused(f"A limit is 1 to {MAX_LIMIT:,} characters, a description at most 500 characters long.")
    if read_only and is_program(by):
        raise CoreRefused("A program cannot make core memory read-only: a person does.")
    value, cleaned = _taken_in(value, description)
    _refuse_over(limit, value)
    if is_program(by) and CoreMemory.objects.filter(scope=scope).count() >= MOST_OF_PROGRAMS:
        raise CoreRefused(f"A scope has {MOST_OF_PROGRAMS} core memories: edit one, or ask a person for another.")
    try:
        with transaction.atomic():
            core = store.add_core(
                scope=scope,
                label=label,
                value=value,
                limit=limit,
                description=clean(description)[0],
                read_only=read_only,
                by=by,
            )
            _note(core, "core created", by)
    except IntegrityError:
        raise Taken(label) from None
    return _told(core, cleaned)


def append_core(*, scope: Scope, label: str, text: str, by: str, revision: int | None = None) -> Core:
    """Add a text at the end, after a line end where something stands there. Raises CoreRefused, see `Core`."""
    text, cleaned = _taken_in(text)
    return _edited(
        scope, label, by, revision, _Edit.APPEND, lambda value: f"{value}\n{text}" if value else text, cleaned
    )


def replace_core(*, scope: Scope, label: str, old: str, new: str, by: str, revision: int | None = None) -> Core:
    """Replace the one occurrence of `old`. Raises NoMatch for none and ManyMatches for more, overlapping ones too."""
    old, _ = clean(old)
    new, cleaned = _taken_in(new)
    return _edited(scope, label, by, revision, _Edit.REPLACE, lambda value: _replaced(value, old, new), cleaned)


def rethink_core(*, scope: Scope, label: str, value: str, by: str, revision: int | None = None) -> Core:
    """Write the whole text anew."""
    value, cleaned = _taken_in(value)
    return _edited(scope, label, by, revision, _Edit.RETHINK, lambda _value: value, cleaned)


@transaction.atomic
def undo_core(*, scope: Scope, label: str, by: str, revision: int | None = None) -> Core:
    """Take the newest edit back, as an edit of its own: undoing an undo brings the edit back.

    The newest edit of somebody else is taken back only when its number is given. Raises NotYours, NothingToUndo for
    the first revision or an erased one, and what any edit raises.
    """
    core = _locked(scope, label, by, revision)
    rows = {row.number: row for row in CoreRevision.objects.filter(core=core, number__gte=core.revision - 1)}
    newest, before = rows[core.revision], rows.get(core.revision - 1)
    if revision is None and newest.by != by[:150]:
        raise NotYours(core.revision)
    if before is None or before.value is None or newest.value is None:
        raise NothingToUndo("There is no earlier text to go back to.")
    _refuse_over(core.limit, before.value)
    core = store.edit_core(core=core, value=before.value, action=_Edit.UNDO, by=by, undoes=newest.number)
    _note(core, "core undone", by)
    return _told(core)


@transaction.atomic
def set_core(
    *,
    scope: Scope,
    label: str,
    by: str,
    description: str | None = None,
    limit: int | None = None,
    read_only: bool | None = None,
) -> Core:
    """Change what it is for, how long it may be, or whether programs may edit it; what is None stays. For people.

    Raises NoCore, OverLimit for a limit under the text's length, and ReadOnly for a program.
    """
    core = _locked(scope, label, by, None)
    if is_program(by):
        raise ReadOnly(label)
    if limit is not None:
        if not 1 <= limit <= MAX_LIMIT:
            raise CoreRefused(f"A limit is 1 to {MAX_LIMIT:,} characters.")
        _refuse_over(limit, core.value)
    if description is not None:
        description = _taken_in(description)[0]
        if len(description) > 500:
            raise CoreRefused("A description has at most 500 characters.")
    given = {"description": description, "limit": limit, "read_only": read_only}
    core = store.set_core(core=core, changes={name: value for name, value in given.items() if value is not None})
    _note(core, "core set", by)
    return _told(core)


def core_of(*, scope: Scope) -> list[Core]:
    """All core memory of a scope, by label. One query."""
    return [_told(core) for core in CoreMemory.objects.filter(scope=scope).order_by("label")]


# --- one edit --------------------------------------------------------------------------------------------------------


@transaction.atomic
def _edited(
    scope: Scope,
    label: str,
    by: str,
    revision: int | None,
    action: CoreRevision.Action,
    edit: Callable[[str], str],
    cleaned: bool,
) -> Core:
    """Edit under the row's lock, so that the newest text is edited. What changes nothing is no edit."""
    core = _locked(scope, label, by, revision)
    value = edit(core.value)
    _refuse_over(core.limit, value)
    if value != core.value:
        _taken_in(value)  # what is refused as a whole is not put together from pieces
        core = store.edit_core(core=core, value=value, action=action, by=by)
        _note(core, f"core {action}", by)
    return _told(core, cleaned)


def _locked(scope: Scope, label: str, by: str, revision: int | None) -> CoreMemory:
    try:
        core = store.lock_core(scope=scope, label=label)
    except CoreMemory.DoesNotExist:
        raise NoCore(label) from None
    if core.read_only and is_program(by):
        raise ReadOnly(label)
    if revision is not None and revision != core.revision:
        raise Moved(core.revision)
    return core


def _replaced(value: str, old: str, new: str) -> str:
    count = _occurrences(value, old)
    if count == 0:
        raise NoMatch
    if count > 1:
        raise ManyMatches(count)
    return value.replace(old, new, 1)


def _occurrences(value: str, old: str) -> int:
    """How often a string stands in a text, overlapping itself too: "aa" stands twice in "aaa". An empty one nowhere."""
    count, at = 0, value.find(old) if old else -1
    while at >= 0:
        count, at = count + 1, value.find(old, at + 1)
    return count


def _taken_in(*texts: str) -> tuple[str, bool]:
    """The first of some texts as a database can hold it, and whether it was cleaned. Raises CoreRefused for a secret,
    or for what our own context block said.
    """
    if fault := fault_of_text(*texts):
        raise CoreRefused(f"{fault[0].upper()}{fault[1:]}.")
    return clean(texts[0])


def _refuse_over(limit: int, value: str) -> None:
    if len(value) > limit:
        raise OverLimit(limit, len(value))


def _told(core: CoreMemory, cleaned: bool = False) -> Core:
    return Core(
        label=core.label,
        value=core.value,
        description=core.description,
        limit=core.limit,
        read_only=core.read_only,
        revision=core.revision,
        updated_at=core.updated_at,
        cleaned=cleaned,
    )


def _note(core: CoreMemory, action: str, by: str) -> None:
    detail = {"revision": core.revision}
    Event.objects.append(
        scope_id=core.scope_id, action=action, actor=by[:150], subject=f"core_{core.pk}", detail=detail
    )
