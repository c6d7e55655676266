"""What stands in the prompt by itself: core memory, always; the residue of a run, for three days."""

from __future__ import annotations

from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Length

from observations.models.base import EDGE, ClockTimestamp
from observations.models.memory import Scope


class CoreMemory(models.Model):
    """A labelled text that is always in the prompt. Every edit is a revision; the value here is the newest one's."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="core_memory")
    label = models.CharField(max_length=50)
    description = models.CharField(max_length=500, blank=True, default="")  # what it is for, told to the agent
    value = models.TextField(blank=True, default="")
    limit = models.PositiveIntegerField(default=2000)  # characters (code points)
    read_only = models.BooleanField(default=False)  # agents may not edit it; people may
    revision = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)
    updated_at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        verbose_name_plural = "core memory"
        permissions = [
            ("edit_core", "Can edit core memory"),
            ("set_core", "Can make core memory and set its limits"),
        ]
        ordering = ["label"]
        constraints = [
            UniqueConstraint(name="core_memory_label", fields=["scope", "label"]),
            UniqueConstraint(name="core_memory_scope_id", fields=["id", "scope"]),
            CheckConstraint(name="core_memory_label_is_a_word", condition=Q(label__regex=r"^[a-z0-9][a-z0-9_-]*$")),
            CheckConstraint(name="core_memory_limit", condition=Q(limit__gte=1, limit__lte=20_000)),
            CheckConstraint(name="core_memory_fits", condition=Q(limit__gte=Length(F("value")))),
        ]

    def __str__(self) -> str:
        return f"core memory {self.pk}"


class CoreRevision(models.Model):
    """One edit of a core memory, with what it then said. Append-only; undoing is a revision of its own."""

    class Action(models.TextChoices):
        CREATE = "create"
        APPEND = "append"
        REPLACE = "replace"
        RETHINK = "rethink"
        UNDO = "undo"

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    core = models.ForeignKey("observations.CoreMemory", related_name="revisions", **EDGE)
    number = models.PositiveIntegerField()
    value = models.TextField(null=True)  # empty: erased
    action = models.CharField(max_length=7, choices=Action.choices)
    undoes = models.PositiveIntegerField(null=True, blank=True)  # the revision whose edit this takes back
    by = models.CharField(max_length=150)
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        ordering = ["-number"]
        constraints = [UniqueConstraint(name="core_revision_once", fields=["scope", "core", "number"])]

    def __str__(self) -> str:
        return f"core revision {self.pk}"


class Residue(models.Model):
    """What an agent handed in at the end of a run: descriptive, in the prompt for three days, never an observation."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    text = models.TextField()
    text_key = models.BigIntegerField()  # hash of the normalised text: held again, it keeps its first time
    session = models.CharField(max_length=200, blank=True, default="")
    first_held_at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)
    held_at = models.DateTimeField(db_default=ClockTimestamp())
    by = models.CharField(max_length=150)

    class Meta:
        verbose_name_plural = "residue"
        constraints = [UniqueConstraint(name="residue_once", fields=["scope", "text_key"])]

    def __str__(self) -> str:
        return f"residue {self.pk}"
