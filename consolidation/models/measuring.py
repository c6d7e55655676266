"""What is measured about proposals: what a plan would do to reading, and how often each rule was wrong."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint

from consolidation.models.base import EDGE, choices
from consolidation.models.proposals import Plan
from consolidation.operations import Kind
from observations.models import ClockTimestamp, Scope


class Projection(models.Model):
    """What reading one scope would count if some operations of a plan were applied, without applying them (R112).

    It holds for exactly the operations of its digest; the newest of a plan and scope is the one that is shown.
    """

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="projections")
    suite = models.ForeignKey("consolidation.Suite", related_name="+", null=True, blank=True, **EDGE)
    digest = models.CharField(max_length=64)  # of the operations it takes as applied, and of the rows that are read
    operations = models.IntegerField()
    before = models.JSONField(default=dict)  # consolidation.probes.figures_json: numbers only
    after = models.JSONField(default=dict)
    records_before = models.IntegerField()
    records_after = models.IntegerField()
    lost = ArrayField(models.IntegerField(), default=list)  # numbers of probes that would newly fail
    fell = models.BooleanField(default=False)  # recall would be lower, or could not be measured any more
    why_not = models.CharField(max_length=200, blank=True, default="")  # why recall is not known: a clause
    at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)
    by = models.CharField(max_length=150)
    # A person who saw that recall would fall, and lets it be applied unattended all the same
    signed_off_at = models.DateTimeField(null=True, blank=True)
    signed_off_by = models.CharField(max_length=150, blank=True, default="")
    sign_off_reason = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        permissions = [("sign_off", "Can sign off a plan that loses recall")]
        constraints = [
            CheckConstraint(
                name="a_sign_off_is_whole",
                condition=Q(signed_off_at__isnull=True, signed_off_by="")
                | (Q(signed_off_at__isnull=False) & ~Q(signed_off_by="")),
            ),
        ]
        indexes = [models.Index(name="projection_newest", fields=["plan", "scope", "-id"])]

    def __str__(self) -> str:
        return f"projection {self.pk}"


class Sample(models.Model):
    """An automatic operation that a person is asked about after it was applied: how the error of its rule is known."""

    class Judged(models.TextChoices):
        WAITING = "waiting"
        RIGHT = "right"
        WRONG = "wrong"

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    operation = models.ForeignKey("consolidation.Operation", related_name="samples", **EDGE)
    kind = models.CharField(max_length=10, choices=choices(Kind))
    rule = models.CharField(max_length=40)
    band = models.CharField(max_length=20)
    chosen_at = models.DateTimeField(db_default=ClockTimestamp())
    judged = models.CharField(max_length=7, choices=Judged.choices, default=Judged.WAITING)
    judged_at = models.DateTimeField(null=True, blank=True)
    judged_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        constraints = [
            UniqueConstraint(name="sample_once", fields=["scope", "operation"]),
            CheckConstraint(
                name="a_judgement_is_whole",
                condition=Q(judged="waiting", judged_at__isnull=True, judged_by="")
                | (~Q(judged="waiting") & Q(judged_at__isnull=False) & ~Q(judged_by="")),
            ),
        ]
        indexes = [
            models.Index(name="sample_of_band", fields=["kind", "rule", "band"]),
            models.Index(name="sample_waiting", fields=["scope", "-id"], condition=Q(judged="waiting")),
        ]

    def __str__(self) -> str:
        return f"sample {self.pk}"


class Demotion(models.Model):
    """A band of a rule that was wrong too often: from then on its operations wait for a person, until one lifts it."""

    kind = models.CharField(max_length=10, choices=choices(Kind))
    rule = models.CharField(max_length=40)
    band = models.CharField(max_length=20)
    at = models.DateTimeField(db_default=ClockTimestamp())
    judged = models.IntegerField()  # labels there were then
    wrong = models.IntegerField()
    lower = models.FloatField()  # of the interval of its error, 0 to 1
    limit = models.FloatField()
    lifted_at = models.DateTimeField(null=True, blank=True)
    lifted_by = models.CharField(max_length=150, blank=True, default="")
    lifted_reason = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        permissions = [("lift_demotion", "Can let a demoted rule decide again")]
        constraints = [
            UniqueConstraint(
                name="one_standing_demotion", fields=["kind", "rule", "band"], condition=Q(lifted_at__isnull=True)
            ),
            CheckConstraint(
                name="a_lift_is_whole",
                condition=Q(lifted_at__isnull=True, lifted_by="") | (Q(lifted_at__isnull=False) & ~Q(lifted_by="")),
            ),
        ]

    def __str__(self) -> str:
        return f"demotion {self.pk}"
