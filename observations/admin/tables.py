"""The store's small tables in Django's own lists: scopes, who may see which, work to be done, tombstones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import URLPattern

from observations.admin.base import Reach, ReadOnlyAdmin

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Model]
else:
    ModelAdmin = admin.ModelAdmin


class ScopeAdmin(ReadOnlyAdmin):
    """Scopes and their holds."""

    list_display = ("name", "created_at", "held_at", "held_until")
    fields = ("name", "created_at", "held_at", "held_until", "hold_reason")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Model]:
        """Visible ones, by name."""
        mine: QuerySet[Model] = Reach.of(request).scopes.order_by("name")
        return mine


class OutboxAdmin(ReadOnlyAdmin):
    """Work to be done, and when it was."""

    list_display = ("__str__", "task", "scope", "due_at", "done_at", "attempts", "last_error")
    fields = ("scope", "task", "key", "created_at", "due_at", "done_at", "attempts", "last_error")
    list_select_related = ("scope",)


class TombstoneAdmin(ReadOnlyAdmin):
    """What was erased, without its text."""

    list_display = ("__str__", "scope", "observation_id", "episode_id", "erased_at", "erased_by", "request")
    fields = ("scope", "observation_id", "episode_id", "erased_at", "erased_by", "reason", "request")
    list_select_related = ("scope",)


class ScopeAccessAdmin(ModelAdmin):
    """Who may see which scopes; only superusers say so. Django's log names the row by id and pattern."""

    list_display = ("user", "pattern")
    list_select_related = ("user",)
    fields = ("user", "pattern")
    view_on_site = False
    actions = None
    change_form_template = "admin/palimpsest/plain_form.html"

    def get_urls(self) -> list[URLPattern]:
        """No history view."""
        return [url for url in super().get_urls() if not str(getattr(url, "name", None)).endswith("_history")]

    def _superuser(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)  # asked on the login page too

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Superusers only."""
        return self._superuser(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Superusers only."""
        return self._superuser(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Superusers only."""
        return self._superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Superusers only."""
        return self._superuser(request)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Superusers only."""
        return self._superuser(request)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """None."""
        return False
