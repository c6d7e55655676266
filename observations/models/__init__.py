"""What is remembered: the rows, their QuerySets and the constraints Django can declare.

What Django cannot declare (composite foreign keys that carry the scope, triggers, grants, the erasing function) is SQL
in `migrations/0002_integrity.py`. Only `store` writes these tables; `Use` is telemetry and is written by
`retrieval.py`.
"""

from observations.models.base import ClockTimestamp, database_now
from observations.models.history import (
    Event,
    EventQuerySet,
    ModelCall,
    Outbox,
    OutboxQuerySet,
    Tombstone,
    Transition,
    Use,
)
from observations.models.memory import (
    Embedding,
    Episode,
    Evidence,
    GivenKey,
    Lineage,
    Observation,
    ObservationQuerySet,
    Scope,
    ScopeAccess,
    ScopeQuerySet,
)

__all__ = [
    "ClockTimestamp",
    "Embedding",
    "Episode",
    "Event",
    "EventQuerySet",
    "Evidence",
    "GivenKey",
    "Lineage",
    "ModelCall",
    "Observation",
    "ObservationQuerySet",
    "Outbox",
    "OutboxQuerySet",
    "Scope",
    "ScopeAccess",
    "ScopeQuerySet",
    "Tombstone",
    "Transition",
    "Use",
    "database_now",
]
