"""Observations as lists show them: the beginning of each text, its key, its status, and what stands in its place."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import QuerySet
from django.db.models.functions import Left

from consolidation.admin.reading import Chip
from consolidation.admin.telling import status_chip
from consolidation.admin.texts import SNIPPET, day, period, snippet
from consolidation.operations import obs, visible
from observations.models import Observation


@dataclass(frozen=True, slots=True)
class Row:
    """One observation in a list."""

    pk: int
    name: str
    text: str
    key: str
    status: Chip
    successor: int | None  # the row that stands in its place
    by: str
    via: str
    confidence: str
    said: str
    iso: str  # when it was said, for a machine
    valid: str
    scope: str


def light(found: QuerySet[Observation]) -> QuerySet[Observation]:
    """Without whole texts: a list shows the beginning of each, as `start`. No query."""
    wanted = ("scope__name", "external_id", "subject", "predicate", "object", "status", "stated_by", "written_by")
    dates = ("created_at", "valid_from", "valid_to")
    return (
        found.select_related("scope")
        .only(*wanted, *dates, "confidence", "derivation", "superseded_by")
        .annotate(start=Left("text", SNIPPET + 1))
    )


def holding(found: QuerySet[Observation], query: str) -> QuerySet[Observation]:
    """Rows whose text holds every word, by PostgreSQL's full text. No query."""
    return found.extra(
        where=[
            "to_tsvector('simple', coalesce(observations_observation.text, '')) @@ websearch_to_tsquery('simple', %s)"
        ],
        params=[query],
    )


def row_of(row: Observation) -> Row:
    """One observation as a list shows it."""
    parts = [visible(part) for part in (row.subject, row.predicate, row.object) if part]
    return Row(
        pk=row.pk,
        name=obs(row.pk),
        text=snippet(getattr(row, "start", None)),
        key=" · ".join(parts),
        status=status_chip(row.status),
        successor=row.superseded_by_id,
        by=row.stated_by,
        via=row.derivation or row.written_by,
        confidence=f"{row.confidence:.2f}",
        said=day(row.created_at),
        iso=row.created_at.isoformat(),
        valid=period(row.valid_from, row.valid_to),
        scope=visible(row.scope.name),
    )
