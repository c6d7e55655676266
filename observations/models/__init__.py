"""What is remembered: the rows, their QuerySets and the constraints Django can declare.

What Django cannot declare (composite foreign keys that carry the scope, triggers, grants, the erasing function) is SQL
in `migrations/0002_integrity.py`. Only `store` writes these tables; `Use` is telemetry and is written by
`retrieval`.
"""

from observations.models.access import Receipt, ScopeAccess, Token, TokenQuerySet
from observations.models.base import ClockTimestamp, database_now
from observations.models.core import CoreMemory, CoreRevision, Residue
from observations.models.history import (
    Event,
    EventQuerySet,
    GivenAnswer,
    ModelCall,
    Outbox,
    OutboxQuerySet,
    Tombstone,
    Transition,
    Use,
)
from observations.models.intake import Extraction, Intake, IntakeItem, IntakeRun, UnusableAnswer
from observations.models.memory import (
    Embedding,
    Episode,
    Evidence,
    GivenKey,
    Lineage,
    Observation,
    ObservationQuerySet,
    Scope,
    ScopeQuerySet,
)

__all__ = [
    "ClockTimestamp",
    "CoreMemory",
    "CoreRevision",
    "Embedding",
    "Episode",
    "Event",
    "EventQuerySet",
    "Evidence",
    "Extraction",
    "GivenAnswer",
    "GivenKey",
    "Intake",
    "IntakeItem",
    "IntakeRun",
    "Lineage",
    "ModelCall",
    "Observation",
    "ObservationQuerySet",
    "Outbox",
    "OutboxQuerySet",
    "Receipt",
    "Residue",
    "Scope",
    "ScopeAccess",
    "ScopeQuerySet",
    "Token",
    "TokenQuerySet",
    "Tombstone",
    "Transition",
    "UnusableAnswer",
    "Use",
    "database_now",
]
