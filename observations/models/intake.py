"""The background pipeline's own rows: whether a scope is read, what each turn brought, what became of each claim."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint

from observations.models.base import EDGE, ClockTimestamp
from observations.models.memory import Scope


class Intake(models.Model):
    """Whether a scope's turns are read in the background, and when. No row: they are not (off until enabled)."""

    scope = models.OneToOneField(Scope, on_delete=models.PROTECT, related_name="intake")
    enabled = models.BooleanField(default=False)
    every_turns = models.PositiveSmallIntegerField(default=5)  # turns that wait before a worker is asked
    since = models.DateTimeField(db_default=ClockTimestamp())  # turns recorded before stay unread
    residue = models.BooleanField(default=False)  # keep what an agent hands in at the end of a run, for three days
    updated_at = models.DateTimeField(db_default=ClockTimestamp())
    updated_by = models.CharField(max_length=150)

    class Meta:
        verbose_name_plural = "intake"
        permissions = [
            ("set_intake", "Can set whether turns are read in the background"),
            ("run_intake", "Can have the turns that wait read now"),
        ]
        constraints = [
            CheckConstraint(name="intake_every_turns", condition=Q(every_turns__gte=1, every_turns__lte=1000))
        ]

    def __str__(self) -> str:
        return f"intake of scope {self.scope_id}"


class IntakeRun(models.Model):
    """One pass over the turns of one scope that nobody had read yet."""

    class State(models.TextChoices):
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"  # what was stored before stays; the rest is asked for again
        INTERRUPTED = "interrupted"  # its process died; the next run took over

    class Trigger(models.TextChoices):
        TURNS = "turns"  # enough turns had come
        SCHEDULE = "schedule"
        HAND = "hand"

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    trigger = models.CharField(max_length=8, choices=Trigger.choices)
    state = models.CharField(max_length=11, choices=State.choices, default=State.RUNNING)
    started_at = models.DateTimeField(db_default=ClockTimestamp())
    finished_at = models.DateTimeField(null=True, blank=True)
    error = models.CharField(max_length=300, blank=True, default="")  # one sentence, never memory text
    by = models.CharField(max_length=150, blank=True, default="")
    figures = models.JSONField(default=dict)  # turns, batches, claims, and how many of each verdict

    class Meta:
        indexes = [models.Index(name="intake_run_by_scope", fields=["scope", "-id"])]  # the runs page

    def __str__(self) -> str:
        return f"intake run {self.pk}"


class Extraction(models.Model):
    """What reading one turn brought. The durable cursor: a turn without a row has not been read (R124).

    Written in the transaction that stores what came of it, so a late commit or a crash can leave out no turn.
    """

    class State(models.TextChoices):
        CLAIMS = "claims"  # at least one claim was found, whatever became of it
        NOTHING = "nothing"  # read, and there is nothing to remember in it
        UNUSABLE = "unusable"  # the model's answer could not be used; asked again a limited number of times
        PASSED = "passed"  # not sent to the model: only our own context block, or nothing left to read

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    episode = models.ForeignKey("observations.Episode", related_name="extractions", **EDGE)
    run = models.ForeignKey(IntakeRun, on_delete=models.PROTECT, related_name="extractions")
    state = models.CharField(max_length=8, choices=State.choices)
    attempts = models.SmallIntegerField(default=1)
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        constraints = [UniqueConstraint(name="extraction_once", fields=["scope", "episode"])]

    def __str__(self) -> str:
        return f"extraction {self.pk}"


class UnusableAnswer(models.Model):
    """An answer that could not be used, as it came, for whoever wants to know why. Never read by the pipeline."""

    class Purpose(models.TextChoices):
        EXTRACT = "extract"
        RECONCILE = "reconcile"

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    run = models.ForeignKey(IntakeRun, on_delete=models.PROTECT, related_name="answers")
    purpose = models.CharField(max_length=9, choices=Purpose.choices)
    episode_ids = ArrayField(models.BigIntegerField())  # the turns it was asked about
    reply = models.TextField(blank=True, default="")  # empty once one of the turns is erased
    reason = models.CharField(max_length=200)  # why it could not be used, in our words
    model = models.CharField(max_length=80)
    prompt_version = models.CharField(max_length=20)
    at = models.DateTimeField(db_default=ClockTimestamp())

    def __str__(self) -> str:
        return f"unusable answer {self.pk}"


class IntakeItem(models.Model):
    """One claim that the pipeline considered and what became of it: stored, known already, refused, or for a person."""

    class Verdict(models.TextChoices):
        ADD = "add"
        UPDATE = "update"
        DELETE = "delete"  # with a replacement: the old row is superseded and the new one's sources start fresh
        NOOP = "noop"  # known already; new evidence is attached
        REFUSED = "refused"  # the claim or the decision about it is not believed; see the reason
        REVIEW = "review"  # waits for a person
        HELD = "held"  # its turn says something like it and not all of it: quarantined until a person looks

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    run = models.ForeignKey(IntakeRun, on_delete=models.PROTECT, related_name="items")
    episode = models.ForeignKey("observations.Episode", related_name="+", null=True, blank=True, **EDGE)
    text = models.TextField(blank=True, default="")  # the claim; empty where a secret was refused
    quote_start = models.IntegerField(null=True, blank=True)  # the words of the turn it rests on, in code points
    quote_end = models.IntegerField(null=True, blank=True)
    verdict = models.CharField(max_length=7, choices=Verdict.choices)
    reason = models.CharField(max_length=200, blank=True, default="")  # ours: a closed list, with ids and labels
    said = models.TextField(blank=True, default="")  # the model's own reason for its verdict
    offered = ArrayField(models.BigIntegerField(), default=list)  # the rows it was compared with, in order
    target = models.ForeignKey("observations.Observation", related_name="+", null=True, blank=True, **EDGE)
    observation = models.ForeignKey(
        "observations.Observation", related_name="intake_items", null=True, blank=True, **EDGE
    )
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        permissions = [("decide_held", "Can release or discard claims that are held back")]
        indexes = [
            models.Index(name="intake_item_by_row", fields=["scope", "observation"]),  # how a row came to be
            models.Index(name="intake_item_by_run", fields=["run", "id"]),  # the run's page
        ]

    def __str__(self) -> str:
        return f"intake item {self.pk}"
