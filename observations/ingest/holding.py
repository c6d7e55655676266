"""Holds: while one stands, no operation is planned or applied against a scope, whoever asks. Reads and writes go on."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from observations import store
from observations.models import Event, Scope


@transaction.atomic
def hold(*, scope: Scope, by: str, reason: str, until: datetime | None = None) -> None:
    """Place a hold on a scope, open-ended without `until`; one that stands is changed. An event says who."""
    store.hold_scope(scope=scope, until=until, reason=reason)
    detail = {"until": until.isoformat() if until else None}
    Event.objects.append(scope_id=scope.pk, action="held", actor=by, subject=str(scope.pk), detail=detail)


@transaction.atomic
def release(*, scope: Scope, by: str) -> bool:
    """Lift a scope's hold; False when there is none. An event says who."""
    lifted = store.release_scope(scope=scope)
    if lifted:
        Event.objects.append(scope_id=scope.pk, action="released", actor=by, subject=str(scope.pk))
    return lifted
