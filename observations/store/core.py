"""Core memory and residue: what stands in a prompt by itself. Every edit of a core memory is a revision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from django.db import connection
from django.db.models import Q

from observations.models import ClockTimestamp, CoreMemory, CoreRevision, Residue, Scope, database_now
from observations.store.scopes import lock_scope

RESIDUE_LASTS: Final = timedelta(days=3)  # after it was first held


def add_core(
    *, scope: Scope, label: str, value: str, limit: int, description: str, read_only: bool, by: str
) -> CoreMemory:
    """A new core memory with its first revision. Raises django.db.IntegrityError where the label is taken."""
    lock_scope(scope_id=scope.pk, cause=f"core memory by {by}")
    core = CoreMemory(scope=scope, label=label, value=value, limit=limit, description=description, read_only=read_only)
    core.save(force_insert=True)
    _revise(core, action=CoreRevision.Action.CREATE, by=by)
    core.refresh_from_db()
    return core


def lock_core(*, scope: Scope, label: str) -> CoreMemory:
    """A core memory, locked until the transaction ends: whoever edits it next sees this edit. Two queries.

    Raises CoreMemory.DoesNotExist.
    """
    lock_scope(scope_id=scope.pk, cause="core memory")
    return CoreMemory.objects.select_for_update(of=("self",)).get(scope=scope, label=label)


def edit_core(
    *, core: CoreMemory, value: str, action: CoreRevision.Action, by: str, undoes: int | None = None
) -> CoreMemory:
    """Give a locked core memory a new text, under the next revision. Three queries."""
    number = core.revision + 1
    CoreMemory.objects.filter(pk=core.pk).update(value=value, revision=number, updated_at=ClockTimestamp())
    core.refresh_from_db()
    _revise(core, action=action, by=by, undoes=undoes)
    return core


def set_core(*, core: CoreMemory, changes: Mapping[str, str | int | bool]) -> CoreMemory:
    """Change what a locked core memory is for, how long it may be, or who may edit it; its text stays. Two queries."""
    allowed = {name: value for name, value in changes.items() if name in ("description", "limit", "read_only")}
    CoreMemory.objects.filter(pk=core.pk).update(**allowed, updated_at=ClockTimestamp())
    core.refresh_from_db()
    return core


def _revise(core: CoreMemory, *, action: CoreRevision.Action, by: str, undoes: int | None = None) -> None:
    CoreRevision.objects.create(
        scope_id=core.scope_id,
        core=core,
        number=core.revision,
        value=core.value,
        action=action,
        by=by[:150],
        undoes=undoes,
    )


def erase_core(*, scope_id: int, core_id: int, by: str, reason: str, request: str) -> int:
    """Empty a core memory and each of its revisions for good; returns how many revisions lost their text.

    Raises django.db.DatabaseError (PA004) for anything but a request that begins with "forget:".
    """
    lock_scope(scope_id=scope_id, exclusive=True, cause=request)
    with connection.cursor() as cursor:
        cursor.execute("SELECT palimpsest_erase_core(%s, %s, %s, %s, %s)", [scope_id, core_id, by, reason, request])
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def hold_residue(
    *, scope: Scope, texts: Mapping[int, str], session: str, by: str, places: int
) -> tuple[dict[int, Residue], int]:
    """Hold residue, by the hash of its normalised text; what is held already keeps its first time.

    At most `places` rows of a scope are held at a time: those held longest ago that are not among these give way.
    Returns the rows by hash, and how many gave way. Takes the scope's lock alone. Six queries at most.
    """
    lock_scope(scope_id=scope.pk, exclusive=True, cause="residue")
    drop_residue(scope=scope)
    Residue.objects.filter(scope=scope, text_key__in=list(texts)).update(
        held_at=ClockTimestamp(), session=session, by=by[:150]
    )
    there = set(Residue.objects.filter(scope=scope, text_key__in=list(texts)).values_list("text_key", flat=True))
    new = {key: text for key, text in texts.items() if key not in there}
    Residue.objects.bulk_create(
        Residue(scope=scope, text=text, text_key=key, session=session, by=by[:150]) for key, text in new.items()
    )
    gone = _give_way(scope, texts, places)
    rows = Residue.objects.filter(scope=scope, text_key__in=list(texts))
    return {row.text_key: row for row in rows}, gone


def _give_way(scope: Scope, texts: Mapping[int, str], places: int) -> int:
    others = Residue.objects.filter(scope=scope).exclude(text_key__in=list(texts)).order_by("-held_at", "-pk")
    leaving: Sequence[int] = list(others.values_list("pk", flat=True)[max(0, places - len(texts)) :])
    return Residue.objects.filter(pk__in=leaving).delete()[0] if leaving else 0


def drop_residue(*, scope: Scope | None = None) -> int:
    """Delete the residue that was first held three days ago or earlier, by the database's clock; returns how much."""
    which = Q(first_held_at__lte=database_now() - RESIDUE_LASTS)
    if scope is not None:
        which &= Q(scope=scope)
    return Residue.objects.filter(which).delete()[0]
