"""Calls on core memory: the few labelled texts that are always in the prompt."""

from __future__ import annotations

from dataclasses import asdict

from django.db import DatabaseError, InterfaceError

from observations import ingest
from observations.calls import schemas
from observations.calls.reading import after_cursor, dead
from observations.calls.rights import CallRefused, Code, Right, check, find_scope, refusals
from observations.ingest import Core
from observations.models import CoreRevision, Scope
from observations.records import Caller


def core_list(*, caller: Caller, asked: schemas.CoreList) -> schemas.CoreMemories:
    """All core memory of a scope, by label."""
    check(caller=caller, right=Right.READ, scope=asked.scope)
    try:
        scope = find_scope(asked.scope)
        found = ingest.core_of(scope=scope) if scope else []
    except (DatabaseError, InterfaceError) as error:
        dead("core_list", error)
        return schemas.CoreMemories(core=[], complete=False)
    return schemas.CoreMemories(core=[_told(core, caller) for core in found])


def core_get(*, caller: Caller, asked: schemas.CoreGet) -> schemas.CoreMemory:
    """One core memory, with the revision to name in an edit."""
    check(caller=caller, right=Right.READ, scope=asked.scope)
    with refusals():
        scope = _scope(asked)
        found = next((core for core in ingest.core_of(scope=scope) if core.label == asked.label), None)
        if found is None:
            raise ingest.NoCore(asked.label)
    return _told(found, caller)


def core_create(*, caller: Caller, asked: schemas.CoreCreate) -> schemas.CoreMemory:
    """Make a labelled text that is always in the prompt, with a limit in characters."""
    check(caller=caller, right=Right.WRITE, scope=asked.scope)
    with refusals():
        core = ingest.write_within(
            name=asked.scope,
            write=lambda scope: ingest.create_core(
                scope=scope,
                label=asked.label,
                value=asked.value,
                limit=asked.limit,
                description=asked.description,
                read_only=asked.read_only,
                by=caller.name,
            ),
            keeps=lambda _core: True,
        )
    return _told(core, caller)


def core_append(*, caller: Caller, asked: schemas.CoreAppend) -> schemas.CoreMemory:
    """Add a line at the end of a core memory."""
    check(caller=caller, right=Right.WRITE, scope=asked.scope)
    with refusals():
        core = ingest.append_core(
            scope=_scope(asked), label=asked.label, text=asked.text, by=caller.name, revision=asked.revision
        )
    return _told(core, caller)


def core_replace(*, caller: Caller, asked: schemas.CoreReplace) -> schemas.CoreMemory:
    """Replace the one occurrence of a string in a core memory, byte for byte. None, and more than one, are refused with
    different words.
    """
    check(caller=caller, right=Right.WRITE, scope=asked.scope)
    with refusals():
        core = ingest.replace_core(
            scope=_scope(asked),
            label=asked.label,
            old=asked.old,
            new=asked.new,
            by=caller.name,
            revision=asked.revision,
        )
    return _told(core, caller)


def core_rethink(*, caller: Caller, asked: schemas.CoreRethink) -> schemas.CoreMemory:
    """Write the whole text of a core memory anew; name the revision that was read, so that nobody's edit is lost."""
    check(caller=caller, right=Right.WRITE, scope=asked.scope)
    with refusals():
        core = ingest.rethink_core(
            scope=_scope(asked), label=asked.label, value=asked.value, by=caller.name, revision=asked.revision
        )
    return _told(core, caller)


def core_undo(*, caller: Caller, asked: schemas.CoreUndo) -> schemas.CoreMemory:
    """Take the newest edit of a core memory back; undoing an undo brings the edit back. Somebody else's edit needs its
    revision.
    """
    check(caller=caller, right=Right.WRITE, scope=asked.scope)
    with refusals():
        core = ingest.undo_core(scope=_scope(asked), label=asked.label, by=caller.name, revision=asked.revision)
    return _told(core, caller)


def core_revisions(*, caller: Caller, asked: schemas.CoreRevisions) -> schemas.CoreEdits:
    """The edits of a core memory, newest first: who, when, and what it then said."""
    check(caller=caller, right=Right.READ, scope=asked.scope)
    before = after_cursor(asked.cursor, prefix="rev")
    with refusals():
        rows = CoreRevision.objects.filter(scope__name=_scope(asked).name, core__label=asked.label)
        if before is not None:
            rows = rows.filter(number__lt=before)
        found = list(rows.order_by("-number")[: asked.limit + 1])
        if not found and before is None:
            raise ingest.NoCore(asked.label)
    shown = found[: asked.limit]
    more = f"rev_{shown[-1].number}" if len(found) > asked.limit else ""
    return schemas.CoreEdits(revisions=[_edit(row) for row in shown], next=more)


def _scope(asked: schemas.CoreGet) -> Scope:
    """The scope; where there is none, there is no core memory of that label either."""
    scope = find_scope(asked.scope)
    if scope is None:
        raise CallRefused(Code.NOT_FOUND, str(ingest.NoCore(asked.label)))
    return scope


def _told(core: Core, caller: Caller) -> schemas.CoreMemory:
    """Who may not read is told no text by an edit."""
    told = asdict(core) if caller.may_read else {**asdict(core), "value": "", "description": ""}
    return schemas.CoreMemory(**told, length=len(core.value))


def _edit(row: CoreRevision) -> schemas.CoreEdit:
    return schemas.CoreEdit(
        number=row.number, action=row.action, undoes=row.undoes, value=row.value, by=row.by, at=row.at
    )
