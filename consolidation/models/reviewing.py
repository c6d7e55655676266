"""What reviewing leaves behind beside the decisions: comments, deferrals, drills, decisions over many items."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint

from consolidation.models.base import EDGE
from observations.models import ClockTimestamp, Scope

_ASKED = ("approve", "reject", "distinct", "defer", "second")  # what may be done to many items at once


class Comment(models.Model):
    """One remark of a person on an operation. Written once; its words leave with the records they are about."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    operation = models.ForeignKey("consolidation.Operation", related_name="comments", **EDGE)
    by = models.CharField(max_length=150)
    at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)
    text = models.CharField(max_length=2000)  # memory text: a reviewer quotes

    class Meta:
        permissions = [("comment", "Can comment on operations")]
        indexes = [models.Index(name="comments_of", fields=["scope", "operation", "id"])]

    def __str__(self) -> str:
        return f"comment {self.pk}"


class Deferral(models.Model):
    """One reviewer puts an item off; it stays in everybody else's queue. Putting it off again moves the time."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    operation = models.ForeignKey("consolidation.Operation", related_name="deferrals", **EDGE)
    by = models.CharField(max_length=150)
    at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)
    until = models.DateTimeField()

    class Meta:
        constraints = [UniqueConstraint(name="deferred_once", fields=["scope", "operation", "by"])]
        indexes = [models.Index(name="deferrals_of", fields=["by", "until"])]

    def __str__(self) -> str:
        return f"deferral {self.pk}"


class Drill(models.Model):
    """A planted question with a known answer: two rows that are different claims, shown as if a rule would merge them.

    It is no operation, so nothing can approve it into memory, and no figure of measured error counts it.
    """

    class Answer(models.TextChoices):
        WAITING = "waiting"  # shown, not answered yet
        CAUGHT = "caught"  # rejected, or called different claims
        MISSED = "missed"  # approved
        PASSED = "passed"  # deferred or left: says nothing

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    by = models.CharField(max_length=150)  # the reviewer it was planted for
    low = models.ForeignKey("observations.Observation", related_name="+", **EDGE)
    high = models.ForeignKey("observations.Observation", related_name="+", **EDGE)
    at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)
    answer = models.CharField(max_length=7, choices=Answer.choices, default=Answer.WAITING)
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            CheckConstraint(name="a_drill_tells_two_apart", condition=Q(low__lt=F("high"))),
            CheckConstraint(name="drill_answer", condition=Q(answer__in=["waiting", "caught", "missed", "passed"])),
            CheckConstraint(
                name="an_answer_is_whole",
                condition=Q(answer="waiting", answered_at__isnull=True)
                | (~Q(answer="waiting") & Q(answered_at__isnull=False)),
            ),
        ]
        indexes = [models.Index(name="drills_of", fields=["by", "-id"])]

    def __str__(self) -> str:
        return f"drill {self.pk}"


class BulkDecision(models.Model):
    """One decision over many items: exactly those that were listed when it was asked for, carried out by a worker."""

    verb = models.CharField(max_length=8, choices=[(word, word) for word in _ASKED])
    by = models.CharField(max_length=150)
    reason = models.CharField(max_length=500, blank=True, default="")  # memory text; empty once it is finished
    until = models.DateTimeField(null=True, blank=True)  # of a deferral
    scopes = ArrayField(models.BigIntegerField())  # whose items it holds: who may see it
    # Of an approval, since it was confirmed: those of the scopes in which another person has to agree to all of it
    wide = ArrayField(models.BigIntegerField(), null=True, blank=True)
    total = models.IntegerField()
    at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [CheckConstraint(name="bulk_verb", condition=Q(verb__in=_ASKED))]
        indexes = [models.Index(name="bulk_newest", fields=["by", "-id"])]

    def __str__(self) -> str:
        return f"bulk decision {self.pk}"


class BulkItem(models.Model):
    """One operation of a bulk decision: what was shown of it, and what became of it."""

    class Outcome(models.TextChoices):
        WAITING = "waiting"
        DONE = "done"
        REFUSED = "refused"

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    bulk = models.ForeignKey(BulkDecision, on_delete=models.PROTECT, related_name="items")
    operation = models.ForeignKey("consolidation.Operation", related_name="bulk_items", **EDGE)
    position = models.IntegerField()
    digest = models.CharField(max_length=64, blank=True, default="")  # of what was shown; empty: it was only listed
    outcome = models.CharField(max_length=7, choices=Outcome.choices, default=Outcome.WAITING)
    sentence = models.CharField(max_length=500, blank=True, default="")  # ids, names and states; never memory text

    class Meta:
        constraints = [
            UniqueConstraint(name="bulk_item_once", fields=["bulk", "operation"]),
            CheckConstraint(name="bulk_outcome", condition=Q(outcome__in=["waiting", "done", "refused"])),
        ]
        indexes = [models.Index(name="bulk_items_in_order", fields=["bulk", "position"])]

    def __str__(self) -> str:
        return f"bulk item {self.pk}"


class Overdue(models.Model):
    """People were told that an item has waited past its age. One row per generation of an operation: told once."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    operation = models.ForeignKey("consolidation.Operation", related_name="overdue", **EDGE)
    at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)
    told = models.IntegerField()  # people, each by a mail that is tried until it is sent

    class Meta:
        constraints = [UniqueConstraint(name="overdue_once", fields=["scope", "operation"])]

    def __str__(self) -> str:
        return f"overdue {self.pk}"
