"""What naming one entity by two subjects does: an alias, and nothing else. No observation is rewritten (R46)."""

from __future__ import annotations

from consolidation.models import Alias
from consolidation.runner.work import Effect, Work, stamp
from observations import store


def alias(work: Work, by: str) -> Effect:
    """Remember that one subject is compared as another. One query.

    The database refuses a second name for a subject, and a name for itself.
    """
    operation = work.operation
    subject, name = operation.claim_subject, operation.claim_object
    Alias.objects.create(
        scope_id=operation.scope_id,
        subject=subject,
        name=name,
        subject_key=store.key64(subject),
        name_key=store.key64(name),
        by=operation.decided_by,
        operation=stamp(operation),
    )
    return Effect(moved=())


def take_back(work: Work) -> None:
    """Remove the alias an operation made; what was merged under it stays merged. One query."""
    made = Alias.objects.filter(scope_id=work.operation.scope_id, operation=stamp(work.operation), removed_at=None)
    made.update(removed_at=work.now)
