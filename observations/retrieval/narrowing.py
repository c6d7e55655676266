"""Which rows a read is narrowed to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from observations.models import Observation, ObservationQuerySet, Scope
from observations.records import MemoryKind, StatedBy


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowed:
    """Which rows a read is narrowed to. A field that is None or "" narrows nothing, and no field asks for rows that
    lack a value: a row without a subject is in no answer about a subject. Every field has to fit.

    Raises ValueError for `as_of` beside `include_history`: one asks for a moment, the other for all of them.
    """

    subject: str = ""  # read as keys are compared
    kind: MemoryKind | None = None
    stated_by: StatedBy | None = None
    said_from: datetime | None = None  # first said then or later
    said_before: datetime | None = None
    as_of: datetime | None = None  # what was believed at that moment, instead of what is current
    include_history: bool = False  # also what was replaced or archived

    def __post_init__(self) -> None:
        if self.as_of is not None and self.include_history:
            raise ValueError("Ask for as_of or for include_history, not for both.")

    @property
    def past(self) -> bool:
        """Whether rows are asked for that are not current."""
        return self.as_of is not None or self.include_history

    def rows(self, *, scope: Scope) -> ObservationQuerySet:
        """The rows of a scope that may be read so: the one place that decides it."""
        rows = Observation.objects.in_scope(scope)
        if self.as_of is not None:
            rows = rows.as_of(self.as_of)
        else:
            rows = rows.with_history() if self.include_history else rows.active()
        if self.subject:
            rows = rows.about(self.subject)
        asked = {
            "kind": self.kind,
            "stated_by": self.stated_by,
            "created_at__gte": self.said_from,
            "created_at__lt": self.said_before,
        }
        return rows.filter(**{name: value for name, value in asked.items() if value is not None})


EVERYTHING: Final = Narrowed()  # that is current


@dataclass(frozen=True, slots=True)
class Among:
    """The rows that a read is narrowed to, and the moment it looks from."""

    ids: list[int]
    past: bool  # some may not be current
    now: datetime | None  # None: the database's clock


def among_of(scope: Scope, narrowed: Narrowed) -> Among:
    """The rows that a read is narrowed to, by id. One query."""
    rows = narrowed.rows(scope=scope).order_by().values_list("pk", flat=True)
    return Among(list(rows), narrowed.past, narrowed.as_of)
