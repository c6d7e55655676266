"""Proposals and what became of them. Transitions are conditional updates; a trigger refuses every other (DESIGN 4,
Life).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint

from consolidation.models.base import EDGE, OPEN, choices
from consolidation.operations import Approval, Kind, Risk, State
from consolidation.operations import plan as plan_label
from observations.models import ClockTimestamp, Scope

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User


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
    )  # what a worker makes once: a plan is unique by (pattern, window)
    state = models.CharField(max_length=10, choices=State.choices, default=State.COMPLETE)
    figures = models.JSONField(
        default=dict
    )  # records read, pairs compared, blocks, missed estimate, seconds: numbers only
    failures = models.JSONField(default=list)  # [{"scope": name, "error": one sentence}]
    policies = models.JSONField(default=dict)  # scope id -> policy hash
    snapshots = models.JSONField(default=dict)  # policy hash -> the policy the plan was made under, whole
    explained_at = models.DateTimeField(null=True, blank=True)  # when somebody listed its skips
    # Over the blast radius two people agree: who asked first, and to exactly what
    asked_by = models.CharField(max_length=150, blank=True, default="")
    asked_at = models.DateTimeField(null=True, blank=True)
    asked_digest = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        permissions = [("make_plan", "Can plan now")]
        constraints = [
            UniqueConstraint(name="one_plan_per_window", fields=["pattern", "window"], condition=~Q(window="")),
        ]
        indexes = [models.Index(name="plan_newest", fields=["-id"])]

    def __str__(self) -> str:
        return plan_label(self.pk)


class Planning(models.Model):
    """One planning pass that a person asked a worker for, and how far it is."""

    by = models.CharField(max_length=150)
    pattern = models.CharField(max_length=200)
    scopes = ArrayField(models.BigIntegerField())
    asked_at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    done = models.IntegerField(default=0)  # signs of progress: a scope that was read, a batch of answers
    doing = models.CharField(max_length=200, blank=True, default="")  # the last one, in the planner's words
    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    error = models.CharField(max_length=300, blank=True, default="")  # one sentence of ours

    def __str__(self) -> str:
        return f"planning {self.pk}"


# What a person has to decide: needs_human, and skips that were skipped for a person (C7)
WAITS = Q(status=State.NEEDS_HUMAN) | Q(status=State.SKIPPED, approval=Approval.NEEDS_HUMAN)


class OperationQuerySet(models.QuerySet["Operation"]):
    """Reads of operations."""

    def awaiting_review(self) -> Self:
        """What a person has to decide: needs_human, and skips that were skipped for a person (C7)."""
        return self.filter(WAITS)

    def by_risk(self) -> Self:
        """The riskiest first, then what the rule is least sure of, then the oldest."""
        return self.order_by("-risk", "-uncertainty", "pk")

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
    kind = models.CharField(max_length=10, choices=choices(Kind))
    approval = models.CharField(max_length=11, choices=choices(Approval))
    status = models.CharField(max_length=11, choices=choices(State))
    reason = models.CharField(max_length=500)  # figures, ids and guard names; never memory text
    skipped_reason = models.CharField(max_length=500, blank=True, default="")
    score = models.FloatField(null=True)
    keeper = models.ForeignKey("observations.Observation", related_name="+", null=True, blank=True, **EDGE)
    product = models.JSONField(default=dict)  # what the rule proposes: ids and figures
    signals = models.JSONField(default=dict)  # keys that met, cosine per pair, guard verdicts: ids and figures
    # What the product will say where no source says it (promote, compact), or what is one (alias): memory text
    text = models.TextField(blank=True, default="")
    claim_subject = models.CharField(max_length=500, blank=True, default="")
    claim_predicate = models.CharField(max_length=500, blank=True, default="")
    claim_object = models.CharField(max_length=1000, blank=True, default="")
    # Whose judgement it is, so that its errors can be counted: consolidation.accuracy names rules and bands
    rule = models.CharField(max_length=40, blank=True, default="")
    band = models.CharField(max_length=20, blank=True, default="")
    requested_by = models.CharField(max_length=150, blank=True, default="")  # who asked; empty: the planner proposed it
    # A reviewer's edit is a new operation, in the place of the one it names
    edited_from = models.ForeignKey("self", related_name="edits", null=True, blank=True, **EDGE)
    edited_by = models.CharField(max_length=150, blank=True, default="")
    risk = models.SmallIntegerField(choices=[(int(risk), risk.name.lower()) for risk in Risk], default=Risk.MEDIUM)
    uncertainty = models.FloatField(default=0.5)  # 0 (sure) to 1, by the rule's own figure
    n_sources = models.IntegerField()
    policy_hash = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)
    # The decision
    decision = models.JSONField(
        default=dict
    )  # {"keep": id} | {"keep_both": [[id, from, to], ...]} | {"both_true": true}
    decision_text = models.TextField(blank=True, default="")  # the right claim, when neither stays: memory text
    # The value of that claim, which a later claim of the same key is questioned against: memory text
    decision_object = models.CharField(max_length=1000, blank=True, default="")
    decision_reason = models.CharField(max_length=500, blank=True, default="")
    decided_by = models.CharField(max_length=150, blank=True, default="")
    decided_at = models.DateTimeField(null=True, blank=True)
    approved_digest = models.CharField(max_length=64, blank=True, default="")
    approval_expires_at = models.DateTimeField(null=True, blank=True)
    # Where the policy wants two people: set with the approval, and who agreed
    needs_second = models.BooleanField(default=False)
    seconded_by = models.CharField(max_length=150, blank=True, default="")
    seconded_at = models.DateTimeField(null=True, blank=True)
    # What became of it
    derived = models.ForeignKey("observations.Observation", related_name="+", null=True, blank=True, **EDGE)
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
            CheckConstraint(
                name="two_agreed",
                condition=~Q(status="applied")
                | Q(needs_second=False)
                | (Q(seconded_at__isnull=False) & ~Q(seconded_by="") & ~Q(seconded_by=F("decided_by"))),
            ),
            CheckConstraint(
                name="a_proposer_never_approves",
                condition=~Q(status__in=["approved", "applied"])
                | Q(requested_by="")
                | (~Q(requested_by=F("decided_by")) & ~Q(requested_by=F("seconded_by"))),
            ),
            CheckConstraint(name="an_edit_has_an_editor", condition=Q(edited_from__isnull=True) | ~Q(edited_by="")),
            CheckConstraint(name="operation_uncertainty", condition=Q(uncertainty__gte=0, uncertainty__lte=1)),
        ]
        indexes = [
            models.Index(name="operation_queue", fields=["scope", "status", "kind", "-id"]),  # the review queue
            models.Index(  # what waits for a person, the riskiest and least certain first
                fields=["-risk", "-uncertainty", "id"], name="operation_waiting", condition=WAITS
            ),
            models.Index(  # the last decisions, and how many were made in a day
                fields=["scope", "-decided_at"], name="operation_decided", condition=Q(decided_at__isnull=False)
            ),
            models.Index(name="operation_op_id", fields=["op_id", "-generation"]),  # commands name one by its id
            models.Index(name="operation_derived", fields=["scope", "derived"]),  # what produced this row
        ]

    def __str__(self) -> str:
        return self.op_id


class OperationSource(models.Model):
    """One record an operation takes in: as it was when planned, and as it stood just before it was applied."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    operation = models.ForeignKey("consolidation.Operation", related_name="sources", **EDGE)
    observation = models.ForeignKey(
        "observations.Observation", related_name="operation_sources", null=True, blank=True, **EDGE
    )
    episode = models.ForeignKey("observations.Episode", related_name="operation_sources", null=True, blank=True, **EDGE)
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
            UniqueConstraint(name="source_episode_once", fields=["scope", "operation", "episode"]),
            CheckConstraint(
                name="source_is_one_row",
                condition=Q(observation__isnull=True, episode__isnull=False)
                | Q(observation__isnull=False, episode__isnull=True),
            ),
        ]
        indexes = [  # what touched this row
            models.Index(name="source_by_observation", fields=["scope", "observation"]),
            models.Index(name="source_by_episode", fields=["scope", "episode"], condition=Q(episode__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"source {self.pk}"

    @property
    def row_id(self) -> int:
        """The id of the observation or episode it is."""
        return self.observation_id or self.episode_id or 0


class PlanItem(models.Model):
    """One operation in one plan. `opened_at` is when a person first opened the item in that plan (R94, R116)."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="items")
    operation = models.ForeignKey("consolidation.Operation", related_name="plan_items", **EDGE)
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
    operation = models.ForeignKey("consolidation.Operation", related_name="consumptions", **EDGE)
    observation = models.ForeignKey(
        "observations.Observation", related_name="consumptions", null=True, blank=True, **EDGE
    )
    episode = models.ForeignKey("observations.Episode", related_name="consumptions", null=True, blank=True, **EDGE)

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


class Draft(models.Model):
    """What a model answered for some episodes, kept by what it was asked: planning twice asks once."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=10, choices=choices((Kind.PROMOTE, Kind.COMPACT)))
    input_key = models.CharField(max_length=40)  # over the episodes' ids and versions, the prompt and the model
    episode_ids = ArrayField(models.BigIntegerField())
    reply = models.TextField(blank=True, default="")  # as it came: memory text
    answer = models.CharField(max_length=12)  # a word of observations.llm.Answer
    attempts = models.SmallIntegerField(default=1)
    model = models.CharField(max_length=80)
    prompt_version = models.CharField(max_length=20)
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        constraints = [UniqueConstraint(name="draft_once", fields=["scope", "input_key"])]

    def __str__(self) -> str:
        return f"draft {self.pk}"
