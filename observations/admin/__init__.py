"""The store in the admin. One register list; screens of memory text are the review's, which can show it."""

from __future__ import annotations

from django.contrib import admin

from observations.admin.tables import OutboxAdmin, ScopeAccessAdmin, ScopeAdmin, TombstoneAdmin
from observations.models import Outbox, Scope, ScopeAccess, Tombstone

REGISTERED = {
    Scope: ScopeAdmin,
    ScopeAccess: ScopeAccessAdmin,
    Outbox: OutboxAdmin,
    Tombstone: TombstoneAdmin,
}

for model, screen in REGISTERED.items():
    admin.site.register(model, screen)
