"""Who may see what: people scope by scope, and programs by bearer tokens with what they were answered."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint

from observations.models.base import ClockTimestamp, choices
from observations.roles import Role


class ScopeAccess(models.Model):
    """One person may see the scopes of one pattern. What they may do there, their groups say; how much of it, `role`.

    Where several patterns mean a scope, the most specific one says.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="scope_access")
    pattern = models.CharField(max_length=200)
    role = models.CharField(  # at most this there; empty: everything the person's groups allow
        max_length=10, choices=choices(Role), blank=True, default=""
    )

    class Meta:
        verbose_name_plural = "scope access"
        constraints = [
            UniqueConstraint(name="scope_access_once", fields=["user", "pattern"]),
            CheckConstraint(name="scope_access_role", condition=Q(role__in=["", *Role])),
        ]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.pattern}{f' as {self.role}' if self.role else ''}"


class TokenQuerySet(models.QuerySet["Token"]):
    """Tokens, and which of them still open a door."""

    def valid(self, *, now: datetime) -> Self:
        """Neither revoked nor expired."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)


class Token(models.Model):
    """A program's key to the scopes of one pattern. Of its secret a hash is kept; it can never approve anything."""

    name = models.CharField(max_length=100)
    key_id = models.CharField(max_length=16, unique=True)  # the public part, by which a token is found and named
    secret_hash = models.CharField(max_length=64)  # sha256 of 256 random bits
    scope_pattern = models.CharField(max_length=200)  # `prefix/*`, or one exact name
    may_read = models.BooleanField(default=True)
    may_write = models.BooleanField(default=False)
    may_propose = models.BooleanField(default=False)
    speaks_for_user = models.BooleanField(default=False)  # what it calls the user's word is believed without a quote
    created_at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)
    created_by = models.CharField(max_length=150)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = models.CharField(max_length=150, blank=True, default="")
    last_used_at = models.DateTimeField(null=True, blank=True)

    objects = TokenQuerySet.as_manager()

    class Meta:
        permissions = [("make_token", "Can make and revoke tokens")]
        constraints = [
            CheckConstraint(
                name="token_may_something", condition=Q(may_read=True) | Q(may_write=True) | Q(may_propose=True)
            ),
            CheckConstraint(name="token_scope_pattern", condition=~Q(scope_pattern="") & ~Q(scope_pattern="*")),
        ]

    def __str__(self) -> str:
        return f"token {self.key_id}"


class Receipt(models.Model):
    """What a request with an idempotency key was answered, so that sending it again does nothing. Kept for a day."""

    token = models.ForeignKey(Token, on_delete=models.PROTECT, related_name="+")
    key = models.CharField(max_length=200)
    request_hash = models.CharField(max_length=64)  # keyed: no text can be guessed from it
    answer = models.JSONField(default=dict)  # ids, figures, words of closed lists; texts are read from the rows
    status = models.PositiveSmallIntegerField()
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        constraints = [UniqueConstraint(name="receipt_once", fields=["token", "key"])]
        indexes = [models.Index(name="receipt_by_age", fields=["at"])]  # housekeeping

    def __str__(self) -> str:
        return f"receipt {self.pk}"
