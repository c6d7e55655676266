"""Proposals and what became of them. Transitions are conditional updates; a trigger refuses every other (DESIGN 4,
Life).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from django.db import connection, models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint

from consolidation import policy as rules
from consolidation.operations import Approval, Json, Kind, State
from consolidation.operations import plan as plan_label
from observations.models import ClockTimestamp, Scope

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

# The states an operation may be applied, rejected or go stale from.
OPEN = (State.PLANNED, State.NEEDS_HUMAN, State.SKIPPED, State.APPROVED)


def _choices(enum: Iterable[str]) -> list[tuple[str, str]]:
    return [(str(member), str(member).replace("_", " ")) for member in enum]


# A foreign key whose constraint is the composite (id, scope) one of 0002_integrity, so that no edge can cross scopes
# (I5).
_EDGE: Any = {"on_delete": models.DO_NOTHING, "db_constraint": False}


class PolicyQuerySet(models.QuerySet["Policy"]):
    """Which policy holds where."""

    def effective(self, *, scope: str) -> rules.Policy:
        """The policy that holds for a scope's name; the defaults where no pattern matches. One query.

        Raises rules.PolicyError when the stored body is not valid.
        """
        bodies: dict[str, dict[str, Json]] = dict(self.values_list("pattern", "body"))
        pattern = rules.most_specific(patterns=bodies, scope=scope)
        return rules.Policy.from_dict(bodies[pattern] if pattern else {})


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


class Plan(models.Model):
    """The set of operations reviewed together: what one planning pass proposed for the scopes of a pattern."""

    class State(models.TextChoices):
        COMPLETE = "complete"  # every scope was planned
        PARTIAL = "partial"  # at least one scope failed; `failures` says which and why
        FAILED = "failed"  # no scope could be planned

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, null=True, blank=True, related_name="plans")
    pattern = models.CharField(max_length=200)
    created_at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)
    requested_by = models.CharField(max_length=150)
    trigger = models.CharField(max_length=20)  # command, admin, schedule
    window = models.CharField(
        max_length=40, blank=True, default=""
    )  # schedule only: a run is unique by (pattern, window)
    state = models.CharField(max_length=10, choices=State.choices, default=State.COMPLETE)
    figures = models.JSONField(
        default=dict
    )  # records read, pairs compared, blocks, missed estimate, seconds: numbers only
    failures = models.JSONField(default=list)  # [{"scope": name, "error": one sentence}]
    policies = models.JSONField(default=dict)  # scope id -> policy hash, the snapshot the plan was made under
    explained_at = models.DateTimeField(null=True, blank=True)  # when somebody listed its skips

    class Meta:
        permissions = [("make_plan", "Can plan now")]
        constraints = [
            UniqueConstraint(name="one_plan_per_window", fields=["pattern", "window"], condition=~Q(window="")),
        ]
        indexes = [models.Index(name="plan_newest", fields=["-id"])]

    def __str__(self) -> str:
        return plan_label(self.pk)


class OperationQuerySet(models.QuerySet["Operation"]):
    """Reads of operations."""

    def awaiting_review(self) -> Self:
        """What a person has to decide: needs_human, and skips that were skipped for a person (C7)."""
        return self.filter(Q(status=State.NEEDS_HUMAN) | Q(status=State.SKIPPED, approval=Approval.NEEDS_HUMAN))

    def open(self) -> Self:
        """Everything that is not yet applied, refused or stale."""
        return self.filter(status__in=OPEN)

    def approved_not_applied(self) -> Self:
        """Decided by a person, not yet carried out."""
        return self.filter(status=State.APPROVED)

    def in_scopes_of(self, user: User | AnonymousUser) -> Self:
        """Operations of the scopes a signed-in person may see."""
        return self.filter(scope__in=Scope.objects.visible_to(user))


class Operation(models.Model):
    """One proposal and its life. Unique by (scope, op_id, generation): the same proposal planned again is the same
    row.
    """

    op_id = models.CharField(max_length=40)
    generation = models.IntegerField(default=1)
    input_key = models.CharField(max_length=20)
    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="operations")
    kind = models.CharField(max_length=10, choices=_choices(Kind))
    approval = models.CharField(max_length=11, choices=_choices(Approval))
    status = models.CharField(max_length=11, choices=_choices(State))
    reason = models.CharField(max_length=500)  # figures, ids and guard names; never memory text
    skipped_reason = models.CharField(max_length=500, blank=True, default="")
    score = models.FloatField(null=True)
    keeper = models.ForeignKey("observations.Observation", related_name="+", null=True, blank=True, **_EDGE)
    product = models.JSONField(default=dict)  # what the rule proposes: ids and figures
    signals = models.JSONField(default=dict)  # keys that met, cosine per pair, guard verdicts: ids and figures
    n_sources = models.IntegerField()
    policy_hash = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)
    # The decision
    decision = models.JSONField(
        default=dict
    )  # {"keep": id} | {"keep_both": [[id, from, to], ...]} | {"both_true": true}
    decision_text = models.TextField(blank=True, default="")  # the right claim, when neither stays: memory text
    decision_reason = models.CharField(max_length=500, blank=True, default="")
    decided_by = models.CharField(max_length=150, blank=True, default="")
    decided_at = models.DateTimeField(null=True, blank=True)
    approved_digest = models.CharField(max_length=64, blank=True, default="")
    approval_expires_at = models.DateTimeField(null=True, blank=True)
    # What became of it
    derived = models.ForeignKey("observations.Observation", related_name="+", null=True, blank=True, **_EDGE)
    applied_at = models.DateTimeField(null=True, blank=True)
    applied_by = models.CharField(max_length=150, blank=True, default="")
    applied_digest = models.CharField(max_length=64, blank=True, default="")
    undone_at = models.DateTimeField(null=True, blank=True)
    undone_by = models.CharField(max_length=150, blank=True, default="")
    outcome = models.CharField(max_length=500, blank=True, default="")  # why it is stale or failed: ids and figures

    objects = OperationQuerySet.as_manager()

    class Meta:
        permissions = [
            ("review_operation", "Can approve, reject and tell apart"),
            ("apply_operation", "Can apply and undo"),
        ]
        constraints = [
            UniqueConstraint(name="operation_once", fields=["scope", "op_id", "generation"]),
            UniqueConstraint(name="operation_scope_id", fields=["id", "scope"]),
            CheckConstraint(name="operation_kind", condition=Q(kind__in=list(Kind))),
            CheckConstraint(name="operation_approval", condition=Q(approval__in=list(Approval))),
            CheckConstraint(name="operation_status", condition=Q(status__in=list(State))),
            CheckConstraint(name="operation_generation", condition=Q(generation__gte=1)),
            CheckConstraint(
                name="an_approval_is_whole",
                condition=~Q(status="approved")
                | (Q(decided_at__isnull=False) & ~Q(decided_by="") & ~Q(approved_digest="")),
            ),
            CheckConstraint(
                name="an_application_is_whole",
                condition=~Q(status="applied")
                | (Q(applied_at__isnull=False) & ~Q(applied_by="") & ~Q(applied_digest="")),
            ),
            CheckConstraint(
                name="a_person_decided",  # I17: nothing that needs a human is applied without one
                condition=~Q(status="applied") | Q(approval="AUTO") | ~Q(decided_by=""),
            ),
        ]
        indexes = [
            models.Index(name="operation_queue", fields=["scope", "status", "kind", "-id"]),  # the review queue
            models.Index(name="operation_op_id", fields=["op_id", "-generation"]),  # commands name one by its id
            models.Index(name="operation_derived", fields=["scope", "derived"]),  # what produced this row
        ]

    def __str__(self) -> str:
        return self.op_id


class OperationSource(models.Model):
    """One record an operation takes in: as it was when planned, and as it stood just before it was applied."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    operation = models.ForeignKey("consolidation.Operation", related_name="sources", **_EDGE)
    observation = models.ForeignKey(
        "observations.Observation", related_name="operation_sources", null=True, blank=True, **_EDGE
    )
    episode = models.ForeignKey(
        "observations.Episode", related_name="operation_sources", null=True, blank=True, **_EDGE
    )
    position = models.IntegerField()
    planned_version = models.IntegerField()
    planned_hash = models.CharField(max_length=64)
    # Recorded at apply, restored by undo, never guessed
    prior_status = models.CharField(max_length=12, blank=True, default="")
    prior_superseded_by_id = models.BigIntegerField(null=True, blank=True)
    prior_valid_from = models.DateTimeField(null=True, blank=True)
    prior_valid_to = models.DateTimeField(null=True, blank=True)
    applied_version = models.IntegerField(null=True, blank=True)  # the version the application left behind

    class Meta:
        constraints = [
            UniqueConstraint(name="source_position", fields=["scope", "operation", "position"]),
            UniqueConstraint(name="source_observation_once", fields=["scope", "operation", "observation"]),
            CheckConstraint(
                name="source_is_one_row",
                condition=Q(observation__isnull=True, episode__isnull=False)
                | Q(observation__isnull=False, episode__isnull=True),
            ),
        ]
        indexes = [models.Index(name="source_by_observation", fields=["scope", "observation"])]  # what touched this row

    def __str__(self) -> str:
        return f"source {self.pk}"


class PlanItem(models.Model):
    """One operation in one plan. `opened_at` is when a person first opened the item in that plan (R94, R116)."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="items")
    operation = models.ForeignKey("consolidation.Operation", related_name="plan_items", **_EDGE)
    position = models.IntegerField()
    opened_at = models.DateTimeField(null=True, blank=True)
    opened_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        constraints = [UniqueConstraint(name="plan_item_once", fields=["scope", "plan", "operation"])]
        indexes = [models.Index(name="plan_items_in_order", fields=["plan", "position"])]  # the plan page

    def __str__(self) -> str:
        return f"item {self.pk}"


class Consumption(models.Model):
    """A source used up by one applied operation. The unique key is what lets only one of two appliers win (I4)."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    operation = models.ForeignKey("consolidation.Operation", related_name="consumptions", **_EDGE)
    observation = models.ForeignKey(
        "observations.Observation", related_name="consumptions", null=True, blank=True, **_EDGE
    )
    episode = models.ForeignKey("observations.Episode", related_name="consumptions", null=True, blank=True, **_EDGE)

    class Meta:
        constraints = [
            UniqueConstraint(name="an_observation_is_consumed_once", fields=["scope", "observation"]),
            UniqueConstraint(name="an_episode_is_consumed_once", fields=["scope", "episode"]),
            CheckConstraint(
                name="consumption_of_one_row",
                condition=Q(observation__isnull=True, episode__isnull=False)
                | Q(observation__isnull=False, episode__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"consumption {self.pk}"


_APART = """
WITH RECURSIVE judged AS (
  SELECT v.low_id, v.high_id FROM consolidation_verdict v WHERE v.scope_id = %(scope)s AND NOT EXISTS (
    SELECT 1 FROM consolidation_operation o
    WHERE o.scope_id = v.scope_id AND o.op_id = v.operation AND o.kind = 'supersede'
    HAVING bool_or(o.status = 'undone') AND NOT bool_or(o.status IN ('applied', 'distinct')))
), carries (claim, id) AS (
  SELECT low_id, low_id FROM judged UNION SELECT high_id, high_id FROM judged
  UNION
  SELECT c.claim, l.derived_id FROM carries c JOIN observations_lineage l
    ON l.scope_id = %(scope)s AND l.source_observation_id = c.id AND l.derivation = 'merge'
)
SELECT DISTINCT least(a.id, b.id), greatest(a.id, b.id) FROM judged
JOIN carries a ON a.claim = low_id JOIN carries b ON b.claim = high_id WHERE a.id <> b.id
"""


class VerdictQuerySet(models.QuerySet["Verdict"]):
    """Pairs people have judged."""

    def pairs(self, *, scope_id: int) -> frozenset[tuple[int, int]]:
        """The (low id, high id) pairs of a scope that are never proposed together again. One query.

        What a claim was merged into says the same, so the verdict holds for that row too, however often it was merged:
        a third copy of one claim must not carry it over to the other. "All are true" that was undone counts no more.
        """
        with connection.cursor() as cursor:
            cursor.execute(_APART, {"scope": scope_id})
            return frozenset((low, high) for low, high in cursor.fetchall())


class Verdict(models.Model):
    """Two records are not the same claim: remembered for good, whatever is planned later."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    low = models.ForeignKey("observations.Observation", related_name="+", **_EDGE)
    high = models.ForeignKey("observations.Observation", related_name="+", **_EDGE)
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


def held(*, scope: Scope, now: datetime) -> str:
    """Why nothing may be planned or applied in a scope right now: one clause, or empty."""
    if scope.held(now=now):
        until = f" until {scope.held_until:%Y-%m-%d}" if scope.held_until else ""
        return f"scope is on hold{until}"
    pause = Pause.standing(scope_id=scope.pk)
    return f"paused by {pause.by}" if pause else ""
