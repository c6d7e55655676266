"""Policies and verdicts, to look at."""

from __future__ import annotations

from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest

from observations.admin.base import Reach, ReadOnlyAdmin


class PolicyAdmin(ReadOnlyAdmin):
    """What may be proposed and applied where. Only the patterns that concern this person's scopes."""

    list_display = ("pattern", "version", "updated_at", "updated_by")
    fields = ("pattern", "body", "version", "updated_at", "updated_by")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Model]:
        """Patterns that a person was given, the scopes they may see, and the one for everything."""
        reach = Reach.of(request)
        found = self.model._default_manager.order_by("pattern")
        mine = Q(pattern="*") | Q(pattern__in=reach.patterns) | Q(pattern__in=reach.scopes.values("name"))
        return found if reach.everything else found.filter(mine)


class VerdictAdmin(ReadOnlyAdmin):
    """Pairs that people told apart."""

    list_display = ("__str__", "scope", "low_id", "high_id", "by", "at", "operation")
    fields = ("scope", "low_id", "high_id", "by", "at", "operation")
    list_select_related = ("scope",)
