"""Whose memory it is, what is remembered, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Self

from django.db import models
from django.db.models import CheckConstraint, Exists, F, OuterRef, Q, Subquery, UniqueConstraint
from django.db.models.functions import Coalesce
from pgvector.django import VectorField

from observations.models.access import ScopeAccess
from observations.models.base import EDGE, ClockTimestamp, choices
from observations.normalise import key64, key_part, normalised, witness
from observations.records import EpisodeRecord, MemoryKind, Outcome, Record, StatedBy, Status, WrittenBy
from observations.roles import Access, means

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User


class ScopeQuerySet(models.QuerySet["Scope"]):
    """The one place that decides which scopes a person or a pattern reaches."""

    def matching(self, pattern: str) -> Self:
        """`prefix/*` (everything below the prefix), `*` (everything), or one exact name."""
        if pattern == "*":
            return self.all()
        if pattern.endswith("/*"):
            return self.filter(name__startswith=pattern[:-1])
        return self.filter(name=pattern)

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """The scopes a signed-in person may see: all for a superuser, else those a ScopeAccess row names."""
        if not user.is_authenticated or not user.is_active:
            return self.none()
        if user.is_superuser:
            return self.all()
        return self.meant_by(ScopeAccess.objects.filter(user_id=user.pk).values_list("pattern", flat=True))

    def meant_by(self, patterns: Iterable[str]) -> Self:
        """The scopes that any of these patterns means; none means none."""
        given = set(patterns)
        if "*" in given:
            return self.all()
        below = {pattern for pattern in given if pattern.endswith("/*")}
        meant = Q(name__in=sorted(given - below))
        for pattern in sorted(below):
            meant |= Q(name__startswith=pattern[:-1])
        return self.filter(meant)

    def where(self, *, given: Sequence[Access], permissions: Iterable[str]) -> Self:
        """The scopes whose most telling access (an exact name before the longest prefix) allows all of this. No
        query.
        """
        wanted = tuple(permissions)
        if all(access.allows(wanted) for access in given):
            return self.meant_by(access.pattern for access in given)
        allowed = self.none()
        for access in given:
            if access.allows(wanted):
                narrower = [
                    other.pattern
                    for other in given
                    if not other.allows(wanted) and means(pattern=access.pattern, what=other.pattern)
                ]
                meant = self.model.objects.matching(access.pattern)
                for pattern in narrower:
                    meant = meant.exclude(pk__in=self.model.objects.matching(pattern).values("pk"))
                allowed = allowed | meant
        return self.filter(pk__in=allowed.values("pk"))


class Scope(models.Model):
    """Whose memory this is. Nothing crosses it; a row without one cannot exist (C6)."""

    name = models.CharField(max_length=200, unique=True)
    created_at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)
    held_at = models.DateTimeField(null=True, blank=True)
    held_until = models.DateTimeField(null=True, blank=True)
    hold_reason = models.CharField(max_length=200, blank=True, default="")
    # The profile of whose vectors an approximate index stands for this scope; empty: it is scanned exactly
    index_profile = models.CharField(max_length=80, blank=True, default="", editable=False)

    objects = ScopeQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            CheckConstraint(
                name="scope_name_is_a_path",
                condition=Q(name__regex=r"^[^\x01-\x1f*/\s]([^\x01-\x1f*]*[^\x01-\x1f*/\s])?$")
                & ~Q(name__contains="//"),
            ),
            CheckConstraint(name="scope_held_until_needs_held_at", condition=Q(held_until=None) | ~Q(held_at=None)),
        ]

    def __str__(self) -> str:
        return self.name

    def held(self, *, now: datetime) -> bool:
        """True while a hold stands: no operation may be planned or applied against this scope."""
        return self.held_at is not None and (self.held_until is None or self.held_until > now)


class Episode(models.Model):
    """Verbatim record of what happened. Immutable, trust high, idempotent by scope + source uri + content."""

    # Without an index of its own: others lead with the scope, and this one was taken to check foreign keys by
    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="episodes", db_index=False)
    external_id = models.CharField(max_length=200)
    text = models.TextField(null=True)
    content_hash = models.CharField(max_length=64)
    cleaned = models.BooleanField(default=False)
    speaker = models.CharField(max_length=200, blank=True, default="")
    role = models.CharField(max_length=40, blank=True, default="")
    session = models.CharField(max_length=200, blank=True, default="")
    seq = models.IntegerField(default=0)
    happened_at = models.DateTimeField()
    recorded_at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)
    source_uri = models.CharField(max_length=1000, blank=True, default="")
    root_source = models.CharField(max_length=1000, blank=True, default="")
    outcome = models.CharField(max_length=10, choices=choices(Outcome), default=Outcome.UNKNOWN)
    status = models.CharField(max_length=12, choices=choices(Status), default=Status.ACTIVE)
    version = models.IntegerField(default=1)

    class Meta:
        constraints = [
            UniqueConstraint(name="episode_external_id", fields=["scope", "external_id"]),
            UniqueConstraint(
                name="episode_once", fields=["scope", "source_uri", "content_hash"], condition=~Q(content_hash="")
            ),
            UniqueConstraint(name="episode_scope_id", fields=["id", "scope"]),
            CheckConstraint(name="episode_status", condition=Q(status__in=["active", "archived", "erased"])),
            CheckConstraint(name="episode_outcome", condition=Q(outcome__in=list(Outcome))),
            CheckConstraint(
                name="episode_erased_text",
                condition=Q(text__isnull=True, status="erased") | Q(text__isnull=False) & ~Q(status="erased"),
            ),
            CheckConstraint(name="episode_version", condition=Q(version__gte=1)),
        ]
        indexes = [models.Index(name="episode_by_time", fields=["scope", "happened_at", "seq"])]  # the episodes page

    def __str__(self) -> str:
        return f"ep_{self.pk}"

    def record(self) -> EpisodeRecord:
        """This turn as the rules see it. No query. Raises ValueError for an erased one."""
        if self.text is None:
            raise ValueError(f"{self} is erased.")
        return EpisodeRecord(
            id=self.pk,
            scope_id=self.scope_id,
            text=self.text,
            happened_at=self.happened_at,
            source_uri=self.source_uri,
            root_source=self.root_source,
            content_hash=self.content_hash,
            version=self.version,
            status=Status(self.status),
            external_id=self.external_id,
            speaker=self.speaker,
            role=self.role,
            session=self.session,
            seq=self.seq,
            outcome=Outcome(self.outcome),
        )


_READ_ONCE = (Status.ACTIVE, Status.SUPERSEDED, Status.ARCHIVED)  # what reads hold, or held


class ObservationQuerySet(models.QuerySet["Observation"]):
    """Reads of observations. `active()` is the filter every reader for an agent goes through (R13, I21)."""

    def active(self) -> Self:
        """Current rows only."""
        return self.filter(status=Status.ACTIVE)

    def as_of(self, moment: datetime) -> Self:
        """Rows that were believed at a moment, and whose own period holds it (both ends included).

        Of a row that was there by then the journal says how it stood. One that was written later, by an import or of
        what was said before, counts from when it was said; where the scope itself is younger than the moment, from when
        its period begins, since such a scope knows no other past. It counts until what replaced it does, and not at all
        where it replaced a row that was there by then. What is held back or erased now is never shown.
        """
        told = Q(created_at__lte=moment) | Q(scope__created_at__gt=moment, valid_from__lte=moment)
        replaced = self.model.objects.filter(told, pk=OuterRef("superseded_by"))
        replaces = self.model.objects.filter(superseded_by=OuterRef("pk"), recorded_at__lte=moment)
        there = Q(recorded_at__lte=moment, stood=Status.ACTIVE)
        later = Q(recorded_at__gt=moment, status__in=_READ_ONCE) & told & ~Exists(replaced) & ~Exists(replaces)
        begun, not_over = Q(valid_from=None) | Q(valid_from__lte=moment), Q(valid_to=None) | Q(valid_to__gte=moment)
        rows = self.alias(stood=self._status_at(moment)).filter(begun, not_over, there | later)
        return rows.exclude(status__in=(Status.QUARANTINED, Status.ERASED))

    def _status_at(self, moment: datetime) -> Coalesce:
        """What the journal says of a row at a moment; before its first entry, what that entry found."""
        moves = self.model.objects.filter(pk=OuterRef("pk"))
        before = moves.filter(transitions__at__lte=moment).order_by("-transitions__version")
        after = moves.filter(transitions__at__gt=moment).order_by("transitions__version")
        return Coalesce(
            Subquery(before.values("transitions__to_status")[:1]),
            Subquery(after.values("transitions__from_status")[:1]),
            F("status"),
        )

    def with_history(self) -> Self:
        """Rows that are current, and those that were: superseded and archived ones."""
        return self.filter(status__in=_READ_ONCE)

    def about(self, subject: str) -> Self:
        """Rows whose subject, a writer's or a model's, reads as this one; a row without a subject is about nobody."""
        named = key64(key_part(subject))
        given = GivenKey.objects.filter(scope=OuterRef("scope"), observation=OuterRef("pk"), subject_key=named)
        return (
            self.filter(Q(subject_key=named) | Exists(given.filter(state=GivenKey.State.GIVEN)))
            if named
            else self.none()
        )

    def in_scope(self, scope: Scope) -> Self:
        """Rows of one scope."""
        return self.filter(scope=scope)

    def in_scopes_of(self, user: User | AnonymousUser) -> Self:
        """Rows a signed-in person may see."""
        return self.filter(scope__in=Scope.objects.visible_to(user))


class Observation(models.Model):
    """One claim or one summary. Its text never changes; a change is a new row (R12, I11)."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="observations", db_index=False)  # as above
    external_id = models.CharField(max_length=200)
    text = models.TextField(null=True)
    content_hash = models.CharField(max_length=64)
    cleaned = models.BooleanField(default=False)
    subject = models.CharField(max_length=500, blank=True, default="")
    predicate = models.CharField(max_length=500, blank=True, default="")
    object = models.CharField(max_length=1000, blank=True, default="")
    # 64-bit hashes of the normalised text and key, so that planning reads numbers and never texts; 0 where absent or
    # erased
    text_key = models.BigIntegerField()
    subject_key = models.BigIntegerField(default=0)
    sp_key = models.BigIntegerField(default=0)
    spo_key = models.BigIntegerField(default=0)
    confidence = models.FloatField(default=0.5)
    kind = models.CharField(max_length=10, choices=choices(MemoryKind), default=MemoryKind.FACT)
    half_life_days = models.IntegerField(null=True, blank=True)  # set at write; empty: it never fades
    stated_by = models.CharField(max_length=8, choices=choices(StatedBy))
    written_by = models.CharField(max_length=13, choices=choices(WrittenBy))
    created_at = models.DateTimeField()
    recorded_at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)
    reconciled_at = models.DateTimeField(null=True, blank=True)
    valid_from = models.DateTimeField(null=True, blank=True)
    valid_to = models.DateTimeField(null=True, blank=True)
    superseded_by = models.ForeignKey("self", related_name="supersedes", null=True, blank=True, **EDGE)
    derivation = models.CharField(max_length=10, null=True, blank=True)
    derived_at = models.DateTimeField(null=True, blank=True)
    produced_by = models.CharField(max_length=80, null=True, blank=True)
    chain = models.SmallIntegerField(default=0)
    uses_inherited = models.IntegerField(default=0)
    status = models.CharField(max_length=12, choices=choices(Status), default=Status.ACTIVE)
    version = models.IntegerField(default=1)

    objects = ObservationQuerySet.as_manager()

    class Meta:
        constraints = [
            UniqueConstraint(name="observation_external_id", fields=["scope", "external_id"]),
            UniqueConstraint(name="observation_scope_id", fields=["id", "scope"]),
            CheckConstraint(name="observation_status", condition=Q(status__in=list(Status))),
            CheckConstraint(name="observation_kind", condition=Q(kind__in=list(MemoryKind))),
            CheckConstraint(
                name="observation_half_life", condition=Q(half_life_days__isnull=True) | Q(half_life_days__gte=1)
            ),
            CheckConstraint(name="observation_stated_by", condition=Q(stated_by__in=list(StatedBy))),
            CheckConstraint(name="observation_written_by", condition=Q(written_by__in=list(WrittenBy))),
            CheckConstraint(name="observation_confidence", condition=Q(confidence__gte=0, confidence__lte=1)),
            CheckConstraint(name="observation_version", condition=Q(version__gte=1)),
            CheckConstraint(
                name="superseded_names_a_successor", condition=~Q(status="superseded") | Q(superseded_by__isnull=False)
            ),
            CheckConstraint(
                name="a_successor_means_superseded_or_archived",
                condition=Q(superseded_by__isnull=True) | Q(status__in=["superseded", "archived", "erased"]),
            ),
            CheckConstraint(name="no_row_supersedes_itself", condition=~Q(superseded_by=F("id"))),
            CheckConstraint(
                name="derivation_is_whole",
                condition=Q(derivation__isnull=True, derived_at__isnull=True, produced_by__isnull=True)
                | Q(derivation__isnull=False, derived_at__isnull=False, produced_by__isnull=False),
            ),
            CheckConstraint(
                name="observation_erased_text",
                condition=Q(text__isnull=True, status="erased") | Q(text__isnull=False) & ~Q(status="erased"),
            ),
            CheckConstraint(
                name="validity_runs_forward",
                condition=Q(valid_from__isnull=True) | Q(valid_to__isnull=True) | Q(valid_from__lte=F("valid_to")),
            ),
        ]
        indexes = [
            models.Index(name="observation_list", fields=["scope", "status", "-id"]),  # the admin's list, filtered
            models.Index(name="observation_active", fields=["scope"], condition=Q(status="active")),  # planner, search
            models.Index(name="observation_text_key", fields=["scope", "text_key"]),  # is this text known
            models.Index(
                name="observation_sp_key", fields=["scope", "sp_key"], condition=~Q(sp_key=0)
            ),  # live values of a key
            models.Index(  # the chain on the observation page, walked backwards
                name="observation_successor",
                fields=["scope", "superseded_by"],
                condition=Q(superseded_by__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"obs_{self.pk}"

    def record(self, *, roots: frozenset[str], uses: int, given: GivenKey | None = None) -> Record:
        """This row as the rules see it; `uses` are those counted in Use, the inherited ones are added. No query.

        `given` fills in what the row's own key lacks, and nothing else.

        Raises ValueError for an erased row, which has nothing left to compare.
        """
        if self.text is None:
            raise ValueError(f"{self} is erased.")
        subject, predicate, object_ = self.key_with(given)
        return Record(
            id=self.pk,
            scope_id=self.scope_id,
            text=self.text,
            normalised=normalised(self.text),
            key=(key_part(subject), key_part(predicate), key_part(object_)),
            confidence=self.confidence,
            stated_by=StatedBy(self.stated_by),
            created_at=self.created_at,
            status=Status(self.status),
            version=self.version,
            content_hash=self.content_hash,
            external_id=self.external_id,
            subject=subject,
            predicate=predicate,
            object=object_,
            valid_from=self.valid_from,
            valid_to=self.valid_to,
            kind=MemoryKind(self.kind),
            half_life_days=self.half_life_days,
            key_by=given.model if given is not None else "",
            own_key=(key_part(self.subject), key_part(self.predicate), key_part(self.object)),
            derivation=self.derivation or "",
            roots=frozenset(map(witness, roots)),
            uses=uses + self.uses_inherited,
            chain=self.chain,
        )

    def key_with(self, given: GivenKey | None) -> tuple[str, str, str]:
        """Subject, predicate and object: the writer's own, and a model's where the writer gave none. No query."""
        if given is None:
            return self.subject, self.predicate, self.object
        return self.subject or given.subject, self.predicate or given.predicate, self.object or given.object


class GivenKey(models.Model):
    """The parts of an observation's key that its writer left out and a model gave; a trigger refuses any other part.

    One row per observation, also where the model found no key, so that it is not asked again.
    """

    class State(models.TextChoices):
        GIVEN = "given"
        NONE = "none"  # the model found nothing that could be a key
        UNUSABLE = "unusable"  # its answer could not be used; asked again a limited number of times
        WITHDRAWN = "withdrawn"  # a person took it back; never asked again

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    observation = models.ForeignKey("observations.Observation", related_name="given_keys", **EDGE)
    state = models.CharField(max_length=9, choices=State.choices)
    subject = models.CharField(max_length=500, blank=True, default="")
    predicate = models.CharField(max_length=500, blank=True, default="")
    object = models.CharField(max_length=1000, blank=True, default="")
    # hashes of the whole key, the writer's parts included, as on the observation
    subject_key = models.BigIntegerField(default=0)
    sp_key = models.BigIntegerField(default=0)
    spo_key = models.BigIntegerField(default=0)
    quote_start = models.IntegerField(null=True, blank=True)  # the words of the text that the key rests on
    quote_end = models.IntegerField(null=True, blank=True)
    model = models.CharField(max_length=80)
    prompt_version = models.CharField(max_length=20)
    attempts = models.SmallIntegerField(default=1)
    at = models.DateTimeField(db_default=ClockTimestamp())
    withdrawn_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        constraints = [
            UniqueConstraint(name="one_given_key", fields=["scope", "observation"]),
            CheckConstraint(
                name="only_a_given_key_has_parts",
                condition=Q(state="given") | Q(subject="", predicate="", object="", sp_key=0, spo_key=0),
            ),
        ]

    def __str__(self) -> str:
        return f"given key {self.pk}"


class Evidence(models.Model):
    """What an observation rests on. Corroboration counts distinct roots, never rows (R95, C8)."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+", db_index=False)
    observation = models.ForeignKey("observations.Observation", related_name="evidence", **EDGE)
    episode = models.ForeignKey("observations.Episode", related_name="+", null=True, blank=True, **EDGE)
    source_uri = models.CharField(max_length=1000)
    root_source = models.CharField(max_length=1000)
    quote = models.TextField(null=True, blank=True)
    quote_start = models.IntegerField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "evidence"
        constraints = [UniqueConstraint(name="evidence_once", fields=["scope", "observation", "source_uri"])]

    def __str__(self) -> str:
        return f"evidence {self.pk}"


class Embedding(models.Model):
    """A row's vector under one profile, with the MinHash bands planning blocks by. `active` is kept by a trigger."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    observation = models.ForeignKey(
        "observations.Observation", related_name="embeddings", null=True, blank=True, **EDGE
    )
    episode = models.ForeignKey("observations.Episode", related_name="embeddings", null=True, blank=True, **EDGE)
    profile = models.CharField(max_length=80)
    dimensions = models.SmallIntegerField()
    vector = VectorField(null=True)
    bands = models.BinaryField(null=True)  # 16 int64, little-endian
    active = models.BooleanField(default=True)

    class Meta:
        constraints = [
            UniqueConstraint(name="embedding_of_observation", fields=["scope", "observation", "profile"]),
            UniqueConstraint(name="embedding_of_episode", fields=["scope", "episode", "profile"]),
            CheckConstraint(
                name="embedding_of_one_row",
                condition=Q(observation__isnull=True, episode__isnull=False)
                | Q(observation__isnull=False, episode__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"embedding {self.pk}"


class Lineage(models.Model):
    """Edge from a derived row to one of its sources (R49): derivation, when, and by which operation."""

    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="+")
    derived = models.ForeignKey("observations.Observation", related_name="lineage", **EDGE)
    source_observation = models.ForeignKey(
        "observations.Observation", related_name="derivatives", null=True, blank=True, **EDGE
    )
    source_episode = models.ForeignKey(
        "observations.Episode", related_name="derivatives", null=True, blank=True, **EDGE
    )
    derivation = models.CharField(max_length=10)
    derived_at = models.DateTimeField()
    operation = models.CharField(max_length=80)
    imported = models.BooleanField(default=False)  # written by an import: its operation lives in another store

    class Meta:
        verbose_name_plural = "lineage"
        constraints = [
            UniqueConstraint(name="lineage_observation_once", fields=["scope", "derived", "source_observation"]),
            UniqueConstraint(name="lineage_episode_once", fields=["scope", "derived", "source_episode"]),
            CheckConstraint(
                name="lineage_of_one_source",
                condition=Q(source_observation__isnull=True, source_episode__isnull=False)
                | Q(source_observation__isnull=False, source_episode__isnull=True),
            ),
            CheckConstraint(name="nothing_derives_from_itself", condition=~Q(derived=F("source_observation"))),
        ]
        indexes = [
            models.Index(name="lineage_by_source", fields=["scope", "source_observation"])
        ]  # what was built on it

    def __str__(self) -> str:
        return f"lineage {self.pk}"
