"""What happened to memory, who read it, and what is still to be done: append-only, and never memory text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint

from observations.models.base import EDGE, ClockTimestamp
from observations.models.memory import Scope


class Transition(models.Model):
    """One change of one row's state, written by the transition trigger itself, so that it cannot be forgotten (I7)."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    observation = models.ForeignKey(
        "observations.Observation", related_name="transitions", null=True, blank=True, **EDGE
    )
    episode = models.ForeignKey("observations.Episode", related_name="transitions", null=True, blank=True, **EDGE)
    version = models.IntegerField()
    from_status = models.CharField(max_length=12)
    to_status = models.CharField(max_length=12)
    superseded_by_id = models.BigIntegerField(null=True)
    at = models.DateTimeField(db_default=ClockTimestamp())
    cause = models.CharField(max_length=120, blank=True, default="")  # the operation or doorway, from palimpsest.cause

    class Meta:
        constraints = [
            UniqueConstraint(name="transition_once", fields=["scope", "observation", "version"]),
            UniqueConstraint(name="transition_of_episode_once", fields=["scope", "episode", "version"]),
            CheckConstraint(
                name="transition_of_one_row",
                condition=Q(observation__isnull=True, episode__isnull=False)
                | Q(observation__isnull=False, episode__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"transition {self.pk}"


class Use(models.Model):
    """One read that handed one observation out. Telemetry, insert-only, counted outside the observation's row (R51)."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    observation = models.ForeignKey("observations.Observation", related_name="uses", **EDGE)
    used_at = models.DateTimeField(db_default=ClockTimestamp())
    call_site = models.CharField(max_length=40)
    answer = models.UUIDField()

    class Meta:
        indexes = [
            models.Index(name="use_by_observation", fields=["scope", "observation", "used_at"])
        ]  # uses since derivation

    def __str__(self) -> str:
        return f"use {self.pk}"


class GivenAnswer(models.Model):
    """What one read handed to an agent, by ids and without words: "what was it told" can be answered for 90 days.

    Telemetry, insert-only; rows older than that are deleted.
    """

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    answer = models.UUIDField()  # the id that the caller was given; Use rows carry it too
    at = models.DateTimeField(db_default=ClockTimestamp())
    call_site = models.CharField(max_length=40)
    shown = ArrayField(models.BigIntegerField(), default=list)  # in their order; below zero an episode's
    left_out = ArrayField(models.BigIntegerField(), default=list)  # found, and not shown: irrelevant, twice, no room
    outdated = ArrayField(models.BigIntegerField(), default=list)  # of those shown: marked so
    failed = ArrayField(models.CharField(max_length=40), default=list)  # sections that could not be read
    chosen_by = models.CharField(max_length=80, blank=True, default="")  # the model that selected; empty: the rule

    class Meta:
        constraints = [UniqueConstraint(name="answer_once", fields=["scope", "answer"])]
        indexes = [
            models.Index(name="answer_by_time", fields=["scope", "-at"]),  # what was the agent told then
            models.Index(name="answer_age", fields=["at"]),  # those that are too old
        ]

    def __str__(self) -> str:
        return f"answer {self.answer}"


class Tombstone(models.Model):
    """What was erased, without its text. Written only by the erasing function."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    observation = models.ForeignKey(
        "observations.Observation", related_name="tombstones", null=True, blank=True, **EDGE
    )
    episode = models.ForeignKey("observations.Episode", related_name="tombstones", null=True, blank=True, **EDGE)
    erased_at = models.DateTimeField(db_default=ClockTimestamp())
    erased_by = models.CharField(max_length=150)
    reason = models.CharField(max_length=300)
    request = models.CharField(max_length=80)  # the operation that asked for it
    fingerprint = models.CharField(max_length=64, blank=True, default="")  # keyed; empty: re-learning is allowed

    def __str__(self) -> str:
        return f"tombstone {self.pk}"


class EventQuerySet(models.QuerySet["Event"]):
    """The audit, read and appended to."""

    def append(
        self,
        *,
        scope_id: int | None,
        action: str,
        actor: str,
        subject: str,
        generation: int | None = None,
        detail: Mapping[str, object] | None = None,
    ) -> None:
        """Append one event: ids and figures, never memory text. One query."""
        self.create(
            scope_id=scope_id,
            action=action,
            actor=actor,
            subject=subject,
            generation=generation,
            detail=dict(detail or {}),
        )


class Event(models.Model):
    """Append-only audit. It names rows by id and never holds their text, and it outlives the people it names."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, null=True, related_name="+", db_index=False)
    at = models.DateTimeField(db_default=ClockTimestamp())
    action = models.CharField(max_length=40)
    actor = models.CharField(max_length=150)
    subject = models.CharField(max_length=80)  # op_…, plan_…, obs_…, or a scope's id
    generation = models.IntegerField(null=True)
    detail = models.JSONField(default=dict)  # ids, figures, old and new state; never memory text

    objects = EventQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(name="event_by_subject", fields=["scope", "subject", "id"]),  # the item page
            models.Index(name="event_by_scope", fields=["scope", "-id"]),  # the events page
        ]

    def __str__(self) -> str:
        return f"event {self.pk}"


class OutboxQuerySet(models.QuerySet["Outbox"]):
    """Work to be done."""

    def due(self, *, now: datetime) -> Self:
        """Rows nobody has finished and whose time has come, oldest first."""
        return self.filter(done_at=None, due_at__lte=now).order_by("due_at", "id")


class Outbox(models.Model):
    """Work to be done, written in the transaction that causes it; a Celery message is only a wake-up."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, null=True, related_name="+")
    task = models.CharField(max_length=40)
    key = models.CharField(max_length=120)  # one open row per (scope, task, key)
    payload = models.JSONField(default=dict)  # ids only
    created_at = models.DateTimeField(db_default=ClockTimestamp())
    due_at = models.DateTimeField(db_default=ClockTimestamp())
    done_at = models.DateTimeField(null=True, blank=True)
    attempts = models.IntegerField(default=0)
    last_error = models.CharField(max_length=200, blank=True, default="")

    objects = OutboxQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "outbox"
        constraints = [
            UniqueConstraint(
                name="outbox_one_open_row",
                fields=["scope", "task", "key"],
                condition=Q(done_at=None),
                nulls_distinct=False,
            )
        ]
        indexes = [models.Index(name="outbox_due", fields=["due_at"], condition=Q(done_at=None))]  # the sweeper

    def __str__(self) -> str:
        return f"outbox {self.pk}"


class ModelCall(models.Model):
    """One call of a language model, also a failed one: what for, what it took, how it ended. Never its text."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, null=True, related_name="+")
    at = models.DateTimeField(db_default=ClockTimestamp())
    purpose = models.CharField(max_length=20)
    model = models.CharField(max_length=80)
    prompt_version = models.CharField(max_length=20)
    answer = models.CharField(max_length=12)  # a word of observations.llm.Answer
    input_tokens = models.IntegerField(default=0)
    output_tokens = models.IntegerField(default=0)
    cache_read_tokens = models.IntegerField(default=0)
    cache_write_tokens = models.IntegerField(default=0)
    cost_microdollars = models.BigIntegerField(default=0)
    latency_ms = models.IntegerField(default=0)
    batch = models.BooleanField(default=False)

    class Meta:
        indexes = [
            models.Index(name="model_call_by_day", fields=["at", "scope"]),  # what today's budget has left
        ]

    def __str__(self) -> str:
        return f"model call {self.pk}"
