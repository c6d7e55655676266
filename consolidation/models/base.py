"""What the models of proposals share: states, choices and edges."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import models

from consolidation.operations import State

# The states an operation may be applied, rejected or go stale from.
OPEN = (State.PLANNED, State.NEEDS_HUMAN, State.SKIPPED, State.APPROVED)


def choices(enum: Iterable[str]) -> list[tuple[str, str]]:
    """What a column may hold, as Django's choices."""
    return [(str(member), str(member).replace("_", " ")) for member in enum]


# A foreign key whose constraint is the composite (id, scope) one of 0002_integrity, so that no edge can cross scopes
# (I5).
EDGE: Any = {"on_delete": models.DO_NOTHING, "db_constraint": False}
