"""What people set: policies with their revisions, pauses, and what an embedder was measured to mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint

from consolidation import policy as rules
from consolidation.operations import Json
from observations.models import ClockTimestamp, Scope


@dataclass(frozen=True, slots=True)
class InForce:
    """The policy that holds somewhere, and where it comes from."""

    rules: rules.Policy
    pattern: str = ""  # empty: nobody set one, and the defaults hold
    version: int = 0

    def snapshot(self) -> dict[str, Json]:
        """What a plan keeps of it."""
        return {"pattern": self.pattern, "version": self.version, "body": self.rules.to_dict()}


class PolicyQuerySet(models.QuerySet["Policy"]):
    """Which policy holds where."""

    def effective(self, *, scope: str) -> rules.Policy:
        """The policy that holds for a scope's name; the defaults where no pattern matches. One query.

        Raises rules.PolicyError when the stored body is not valid.
        """
        return self.in_force(scope=scope).rules

    def in_force(self, *, scope: str) -> InForce:
        """The same with its pattern and version, which are "" and 0 where no pattern matches. One query."""
        rows = self.values_list("pattern", "version", "body")
        return chosen({pattern: (version, body) for pattern, version, body in rows}, scope=scope)


def chosen(stored: Mapping[str, tuple[int, Mapping[str, Json]]], *, scope: str) -> InForce:
    """The policy that holds for a scope's name among all that are stored: pattern -> version and body. No query.

    Raises rules.PolicyError when the body that would hold is not valid.
    """
    pattern = rules.most_specific(patterns=stored, scope=scope)
    if pattern is None:
        return InForce(rules.Policy())
    version, body = stored[pattern]
    return InForce(rules.Policy.from_dict(body), pattern=pattern, version=version)


class Policy(models.Model):
    """What the planner may propose and the runner may do in the scopes of one pattern; the most specific pattern
    wins.
    """

    pattern = models.CharField(max_length=200, unique=True)
    body = models.JSONField(default=dict)  # consolidation.policy.Policy.to_dict(); absent fields take their defaults
    version = models.IntegerField(default=1)
    updated_at = models.DateTimeField(auto_now=True)
    updated_by = models.CharField(max_length=150, blank=True, default="")

    objects = PolicyQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "policies"

    def __str__(self) -> str:
        return self.pattern


class PolicyRevision(models.Model):
    """One version of a policy, written by a trigger, so that what a plan was made under can always be read."""

    pattern = models.CharField(max_length=200)
    version = models.IntegerField()
    body = models.JSONField(null=True)  # empty: the policy was removed
    at = models.DateTimeField(db_default=ClockTimestamp())
    by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        constraints = [UniqueConstraint(name="policy_revision_once", fields=["pattern", "version"])]

    def __str__(self) -> str:
        return f"{self.pattern} version {self.version}"


class Calibration(models.Model):
    """What an embedder's vectors were measured to mean on labelled pairs; the newest one of a profile holds.

    Automatic merging stays off until a person enables it.
    """

    profile = models.CharField(max_length=80)
    space = models.CharField(max_length=200)  # what makes its vectors comparable: model, weights, dimensions
    t_candidate = models.FloatField()
    t_merge = models.FloatField()
    figures = models.JSONField(default=dict)  # per band: pairs, false merges, recall, intervals; numbers only
    at = models.DateTimeField(db_default=ClockTimestamp())
    by = models.CharField(max_length=150)
    enabled_at = models.DateTimeField(null=True, blank=True)  # automatic merging, from then on
    enabled_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        permissions = [("enable_calibration", "Can let a measured embedder merge automatically")]
        indexes = [models.Index(name="calibration_newest", fields=["profile", "-id"])]
        constraints = [
            CheckConstraint(
                name="calibration_thresholds",
                condition=Q(t_candidate__gte=0, t_merge__lte=1) & Q(t_candidate__lte=F("t_merge")),
            ),
        ]

    def __str__(self) -> str:
        return f"calibration {self.pk}"


class Pause(models.Model):
    """While a row stands, planning and applying refuse in its scope (or everywhere, without one); reads and writes go
    on.
    """

    scope = models.OneToOneField(Scope, on_delete=models.PROTECT, null=True, blank=True, related_name="pause")
    at = models.DateTimeField(db_default=ClockTimestamp())
    by = models.CharField(max_length=150)
    reason = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        permissions = [("pause", "Can pause and resume planning and applying")]
        constraints = [UniqueConstraint(name="one_pause_everywhere", fields=["scope"], nulls_distinct=False)]

    def __str__(self) -> str:
        return f"pause of {self.scope_id or 'everything'}"

    @classmethod
    def standing(cls, *, scope_id: int | None = None) -> Pause | None:
        """The pause that covers a scope (the global one first), or the global one; None when work may go on."""
        return (
            cls.objects.filter(Q(scope=None) | Q(scope_id=scope_id)).order_by(F("scope").asc(nulls_first=True)).first()
        )


def held(*, scope: Scope, now: datetime) -> str:
    """Why nothing may be planned or applied in a scope right now: one clause, or empty. One query, or none."""
    if scope.held(now=now):
        return waits(scope=scope, now=now, paused="")
    pause = Pause.standing(scope_id=scope.pk)
    return waits(scope=scope, now=now, paused=pause.by if pause else "")


def waits(*, scope: Scope, now: datetime, paused: str) -> str:
    """The same when it is known who paused it. No query."""
    if scope.held(now=now):
        until = f" until {scope.held_until:%Y-%m-%d}" if scope.held_until else ""
        return f"scope is on hold{until}"
    return f"paused by {paused}" if paused else ""
