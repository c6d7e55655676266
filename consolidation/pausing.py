"""Pausing one scope or everything: planning and applying refuse until somebody resumes; reads and writes go on."""

from __future__ import annotations

from typing import Final

from django.db import IntegrityError, transaction

from consolidation.models import Pause
from observations.models import Event, Scope

EVERYTHING: Final = "everything"


def pause(*, scope: Scope | None, by: str, reason: str = "") -> bool:
    """Pause a scope, or everything without one; False when it is paused already. The event says who, and where."""
    try:
        with transaction.atomic():
            Pause.objects.create(scope=scope, by=by, reason=reason)
            _event(scope, "paused", by)
    except IntegrityError:  # the unique key decides between two who pause at once
        return False
    return True


def resume(*, scope: Scope | None, by: str) -> bool:
    """End the pause of a scope, or the one of everything without one; False when there is none."""
    with transaction.atomic():
        lifted, _ = Pause.objects.filter(scope=scope).delete()
        if lifted:
            _event(scope, "resumed", by)
    return bool(lifted)


def _event(scope: Scope | None, action: str, by: str) -> None:
    subject = str(scope.pk) if scope else EVERYTHING
    Event.objects.append(scope_id=scope.pk if scope else None, action=action, actor=by, subject=subject)
