"""System checks of the review: stored policies, the embedder's thresholds, the schedule. Each has an id, a hint, and a
test named after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from django.core.checks import CheckMessage, Tags, Warning, register
from django.db import DatabaseError
from django.db.models import QuerySet
from django_celery_beat.models import PeriodicTask

from consolidation.calibrating import in_force
from consolidation.models import Policy
from consolidation.policy import Policy as Rules
from consolidation.policy import PolicyError
from observations.embedding import Profile, UnknownEmbedder
from observations.retrieval import current_embedder

HOUSEKEEPING = (
    "observations.tasks.sweep",
    "observations.tasks.age_outbox",
    "observations.tasks.observe_due",
    "consolidation.tasks.verify",
    "consolidation.tasks.measure",
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


@register(Tags.database)
def embedder_may_merge(*, databases: Databases = None, **_: Any) -> list[CheckMessage]:
    """palimpsest.W010: with an embedder that nobody measured and enabled, merges by key wait for a person (R42)."""
    held = _held(databases)
    if held is None or held.automatic:
        return []
    hint = "Run `manage.py calibrate --pairs FILE`, read what it prints, and enable it."
    said = (
        f"The embedder {held.name} has no enabled calibration with a safe threshold: nothing merges by key by itself."
    )
    return [Warning(said, hint=hint, id="palimpsest.W010")]


@register(Tags.database)
def policies_ask_for_what_was_measured(*, databases: Databases = None, **_: Any) -> list[CheckMessage]:
    """palimpsest.W011: a threshold under the measured one has no effect; a calibration can leave it behind (R42)."""
    held = _held(databases)
    if held is None:
        return []
    found: list[CheckMessage] = []
    for pattern, body in _rows(Policy.objects.order_by("pattern").values_list("pattern", "body"), databases) or []:
        asked = Rules.salvaged(body).t_merge if isinstance(body, dict) else None
        if asked is not None and asked < held.t_merge:
            said = f"The policy of {pattern} merges from {asked:g} on; {held.t_merge:g} was measured for {held.name}."
            hint = "Raise its t_merge, or leave it empty, in the admin; until then the measured one holds."
            found.append(Warning(said, hint=hint, id="palimpsest.W011"))
    return found


def _held(databases: Databases) -> Profile | None:
    """The current embedder with the thresholds that hold; None where no database may be asked, or E005 says why."""
    if "default" not in (databases or ()):
        return None
    try:
        return in_force(profile=current_embedder().profile)
    except (DatabaseError, UnknownEmbedder):
        return None


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
