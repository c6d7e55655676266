"""System checks of the review: stored policies and the schedule. Each has an id, a hint, and a test named after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from django.core.checks import CheckMessage, Tags, Warning, register
from django.db import DatabaseError
from django.db.models import QuerySet
from django_celery_beat.models import PeriodicTask

from consolidation.models import Policy
from consolidation.policy import Policy as Rules
from consolidation.policy import PolicyError

HOUSEKEEPING = (
    "observations.tasks.sweep",
    "observations.tasks.age_outbox",
    "consolidation.tasks.verify",
    "consolidation.tasks.plan_due",
)
WRITES_MEMORY = ("consolidation.tasks.apply_plan",)

Databases = Sequence[str] | None


@register(Tags.database)
def policies_can_be_read(*, databases: Databases = None, **_: Any) -> list[CheckMessage]:
    """palimpsest.W007: a scope whose policy cannot be read is neither planned nor applied."""
    found: list[CheckMessage] = []
    for pattern, body in _rows(Policy.objects.order_by("pattern").values_list("pattern", "body"), databases) or []:
        try:
            Rules.from_dict(body)
        except PolicyError as error:
            hint = "Correct the policy in the admin."
            found.append(Warning(f"The policy of {pattern} cannot be read: {error}", hint=hint, id="palimpsest.W007"))
    return found


@register(Tags.database)
def the_schedule_writes_no_memory(*, databases: Databases = None, **_: Any) -> list[CheckMessage]:
    """palimpsest.W008: what is applied, a person applies; a schedule may only by the policy of its scope (R94)."""
    entries = PeriodicTask.objects.filter(enabled=True, task__in=WRITES_MEMORY)
    hint = "Remove the entry; consolidation.tasks.apply_unattended is the one that asks the policy."
    return [
        Warning(f"The schedule entry {pk} would apply a plan.", hint=hint, id="palimpsest.W008")
        for pk in _rows(entries.values_list("pk", flat=True), databases) or []
    ]


@register(Tags.database)
def housekeeping_is_scheduled(*, databases: Databases = None, **_: Any) -> list[CheckMessage]:
    """palimpsest.W009: without the sweep, work whose wake-up was lost waits for ever."""
    entries = PeriodicTask.objects.filter(enabled=True, task__in=HOUSEKEEPING)
    on = _rows(entries.values_list("task", flat=True), databases)
    if on is None:
        return []
    hint = "Enable the housekeeping entries in the admin's periodic tasks; migrating adds those that are missing."
    return [
        Warning(f"{task} is not scheduled.", hint=hint, id="palimpsest.W009") for task in HOUSEKEEPING if task not in on
    ]


Row = TypeVar("Row")


def _rows(query: QuerySet[Any, Row], databases: Databases) -> list[Row] | None:
    """The rows; None where no database was asked about, or it has no tables yet: the command that needs it says so
    itself.
    """
    if "default" not in (databases or ()):
        return None
    try:
        return list(query)
    except DatabaseError:
        return None
