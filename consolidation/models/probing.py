"""Probe suites and what their runs counted: how recall is known before and after memory is changed (R26, R112)."""

from __future__ import annotations

from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint

from consolidation.models.base import EDGE
from observations.models import ClockTimestamp, Scope


class SuiteQuerySet(models.QuerySet["Suite"]):
    """Reads of suites."""

    def in_force(self) -> Self:
        """The newest suite of each scope: what a plan's application is measured with. No query."""
        return self.order_by("scope_id", "-id").distinct("scope_id")


class Suite(models.Model):
    """A named set of probes of one scope. It is never changed, so that its runs can be compared: import another one."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="suites")
    name = models.CharField(max_length=80)
    units = models.JSONField(default=dict)  # observation id -> number of the unit that it says: labelled, not computed
    created_at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)
    by = models.CharField(max_length=150)

    objects = SuiteQuerySet.as_manager()

    class Meta:
        permissions = [("make_suite", "Can make probe suites"), ("run_suite", "Can run probe suites")]
        constraints = [
            UniqueConstraint(name="suite_once", fields=["scope", "name"]),
            UniqueConstraint(name="suite_scope_id", fields=["id", "scope"]),
        ]
        indexes = [models.Index(name="suite_newest", fields=["scope", "-id"])]  # the one in force

    def __str__(self) -> str:
        return f"suite {self.pk}"


class ProbeQuerySet(models.QuerySet["Probe"]):
    """Reads of probes."""

    def asked(self) -> Self:
        """Those that a run asks: not erased."""
        return self.exclude(query="")


class Probe(models.Model):
    """One question and the records it should bring. Its query is memory text: an erase of a record it names empties
    it.
    """

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    suite = models.ForeignKey("consolidation.Suite", related_name="probes", **EDGE)
    number = models.IntegerField()
    query = models.TextField(blank=True)  # empty: erased
    category = models.CharField(max_length=40, blank=True, default="")
    expected = ArrayField(models.BigIntegerField(), default=list)  # of a negative one: what it may be mistaken for
    forbidden = ArrayField(models.BigIntegerField(), default=list)
    outdated = ArrayField(models.BigIntegerField(), default=list)
    negative = models.BooleanField(default=False)
    as_of = models.DateTimeField(null=True, blank=True)  # asked of what was believed then; empty: of what is current

    objects = ProbeQuerySet.as_manager()

    class Meta:
        constraints = [
            UniqueConstraint(name="probe_once", fields=["scope", "suite", "number"]),
            CheckConstraint(name="probe_number", condition=Q(number__gte=1)),
        ]

    def __str__(self) -> str:
        return f"probe {self.pk}"


class ProbeRun(models.Model):
    """What one run of a suite counted; those before and after an application carry its plan (R115)."""

    class Cause(models.TextChoices):
        COMMAND = "command"
        BEFORE = "before"  # a plan was applied
        AFTER = "after"
        BUTTON = "button"
        TASK = "task"

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    suite = models.ForeignKey("consolidation.Suite", related_name="runs", **EDGE)
    cause = models.CharField(max_length=7, choices=Cause.choices)
    plan = models.ForeignKey("consolidation.Plan", on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    recall = models.FloatField(null=True, blank=True)  # empty: no number of it may be shown
    figures = models.JSONField(default=dict)  # consolidation.probes.figures_json: numbers only
    at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)
    by = models.CharField(max_length=150)

    class Meta:
        indexes = [models.Index(name="probe_run_newest", fields=["scope", "suite", "-id"])]

    def __str__(self) -> str:
        return f"probe run {self.pk}"
