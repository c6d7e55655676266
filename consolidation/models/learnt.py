"""What decisions taught for good: claims told apart, how many values a predicate holds, who is who."""

from __future__ import annotations

from django.db import connection, models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint

from consolidation.models.base import EDGE
from observations.models import ClockTimestamp, Scope

_APART = """
WITH RECURSIVE judged AS (
  -- a verdict holds while its operation still says so: told apart, or a merge undone, or all of its claims true
  SELECT v.low_id, v.high_id FROM consolidation_verdict v WHERE v.scope_id = %(scope)s AND NOT EXISTS (
    SELECT 1 FROM consolidation_operation o
    WHERE o.scope_id = v.scope_id AND o.op_id = v.operation
    HAVING count(*) > 0 AND NOT bool_or(o.status = 'distinct' OR (o.kind = 'supersede' AND o.status = 'applied')
      OR (o.kind = 'merge' AND o.status = 'undone')))
), said (claim, id) AS (  -- also by what came back in the same words when the merge that made the row was undone
  SELECT low_id, low_id FROM judged UNION SELECT high_id, high_id FROM judged
  UNION
  SELECT w.claim, s.id FROM said w
  JOIN observations_observation d ON d.scope_id = %(scope)s AND d.id = w.id
  JOIN observations_lineage l ON l.scope_id = %(scope)s AND l.derived_id = d.id
  JOIN observations_observation s ON s.scope_id = %(scope)s AND s.id = l.source_observation_id
  WHERE d.derivation = 'merge' AND d.status = 'retracted' AND s.text_key = d.text_key AND s.text_key <> 0
), carries (claim, id) AS (
  SELECT claim, id FROM said
  UNION
  SELECT c.claim, m.id FROM carries c JOIN LATERAL (
    SELECT l.derived_id AS id FROM observations_lineage l
    WHERE l.scope_id = %(scope)s AND l.source_observation_id = c.id AND l.derivation = 'merge'
    UNION ALL  -- the lineage of what it was merged into may name what it came from instead of it
    SELECT o.derived_id FROM consolidation_operationsource s
    JOIN consolidation_operation o ON o.scope_id = s.scope_id AND o.id = s.operation_id
    WHERE s.scope_id = %(scope)s AND s.observation_id = c.id AND o.kind = 'merge' AND o.derived_id IS NOT NULL
  ) m ON true
)
SELECT DISTINCT least(a.id, b.id), greatest(a.id, b.id) FROM judged
JOIN carries a ON a.claim = low_id JOIN carries b ON b.claim = high_id WHERE a.id <> b.id
"""


class VerdictQuerySet(models.QuerySet["Verdict"]):
    """Pairs people have judged."""

    def pairs(self, *, scope_id: int) -> frozenset[tuple[int, int]]:
        """The (low id, high id) pairs of a scope that are never proposed together again. One query.

        What a claim was merged into says the same, so the verdict holds for that row too, however often it was merged:
        a third copy of one claim must not carry it over to the other; and for what an undone merge gave back that is in
        the same words. "All are true" that was undone counts no more.
        """
        with connection.cursor() as cursor:
            cursor.execute(_APART, {"scope": scope_id})
            return frozenset((low, high) for low, high in cursor.fetchall())


class Verdict(models.Model):
    """Two records are not the same claim: remembered for good, whatever is planned later."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    low = models.ForeignKey("observations.Observation", related_name="+", **EDGE)
    high = models.ForeignKey("observations.Observation", related_name="+", **EDGE)
    at = models.DateTimeField(db_default=ClockTimestamp())
    by = models.CharField(max_length=150)
    operation = models.CharField(max_length=80)

    objects = VerdictQuerySet.as_manager()

    class Meta:
        constraints = [
            UniqueConstraint(name="verdict_once", fields=["scope", "low", "high", "operation"]),
            CheckConstraint(name="verdict_in_order", condition=Q(low__lt=F("high"))),
        ]

    def __str__(self) -> str:
        return f"verdict {self.pk}"


class Cardinality(models.Model):
    """How many values a predicate holds at a time in one scope, as a reviewer's decision taught it."""

    class Values(models.TextChoices):
        ONE = "one"
        MANY = "many"

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    predicate = models.CharField(max_length=500)  # normalised
    holds = models.CharField(max_length=4, choices=Values.choices)
    at = models.DateTimeField(db_default=ClockTimestamp())
    by = models.CharField(max_length=150)
    operation = models.CharField(max_length=80)  # the decision that taught it
    withdrawn_at = models.DateTimeField(null=True, blank=True)  # that decision was undone

    class Meta:
        verbose_name_plural = "cardinalities"
        indexes = [models.Index(name="cardinality_newest", fields=["scope", "predicate", "-id"])]

    def __str__(self) -> str:
        return f"cardinality {self.pk}"


class Alias(models.Model):
    """Two subjects of one scope are one entity, because a person said so; no observation is rewritten for it."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    subject = models.CharField(max_length=500)  # normalised: memory text
    name = models.CharField(max_length=500)  # normalised: what it is compared as
    subject_key = models.BigIntegerField()
    name_key = models.BigIntegerField()
    at = models.DateTimeField(db_default=ClockTimestamp())
    by = models.CharField(max_length=150)
    operation = models.CharField(max_length=80)
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "aliases"
        constraints = [
            UniqueConstraint(
                name="one_name_for_a_subject", fields=["scope", "subject_key"], condition=Q(removed_at=None)
            ),
            CheckConstraint(
                name="an_alias_is_of_another", condition=~Q(subject_key=F("name_key")) | Q(removed_at__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"alias {self.pk}"
