"""The store's small tables in Django's own lists: scopes, who may see which, work to be done, tombstones."""

from __future__ import annotations

from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import URLPattern

from observations.admin.base import Reach, ReadOnlyAdmin
from observations.admin.worded import Worded, at, number


class ScopeAdmin(ReadOnlyAdmin):
    """Scopes and their holds."""

    lead = "Whose memory it is: nothing crosses a scope. What is held there is neither pruned nor forgotten."
    nothing = "No scope that you may see. The first write makes one; an administrator gives people access to it."
    list_display = ("name", at("created_at"), at("held_at"), at("held_until"))
    fields = readonly_fields = ("name", at("created_at"), at("held_at"), at("held_until"), "hold_reason")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Model]:
        """Visible ones, by name."""
        mine: QuerySet[Model] = Reach.of(request).scopes.order_by("name")
        return mine


class OutboxAdmin(ReadOnlyAdmin):
    """Work to be done, and when it was."""

    list_title = "Outbox"
    lead = "Work that waits for a worker, and when it was done. What stopped says why."
    nothing = "No work waits and none was done. Writing and planning leave it here; a running worker takes it."
    list_display = ("__str__", "task", "scope", at("due_at"), at("done_at"), "attempts", "last_error")
    fields = readonly_fields = (
        *("scope", "task", "key", at("created_at"), at("due_at"), at("done_at"), "attempts", "last_error"),
    )
    list_select_related = ("scope",)


class TombstoneAdmin(ReadOnlyAdmin):
    """What was erased, without its text."""

    lead = "What was erased, by whom and why: never its text."
    nothing = "Nothing was erased. A request to forget leaves a tombstone here once it is applied."
    list_display = (
        "__str__",
        "scope",
        number("observation_id"),
        number("episode_id"),
        at("erased_at"),
        "erased_by",
        "request",
    )
    fields = readonly_fields = (
        *("scope", number("observation_id"), number("episode_id")),
        *(at("erased_at"), "erased_by", "reason", "request"),
    )
    list_select_related = ("scope",)


class ScopeAccessAdmin(Worded):
    """Who may see which scopes, and at most what they may do there; only superusers say so.

    Django's log names the row by id and pattern.
    """

    lead = "Who sees which scopes, and at most what they may do there. The most specific pattern says."
    nothing = "Only superusers see a scope. Add an entry: a person, a pattern such as team/*, and a role if it is less."
    about = "A scope by name, all below prefix/*, or everything by *. Without a role: what the person's groups allow."
    list_display = ("user", "pattern", "role")
    list_select_related = ("user",)
    fields = ("user", "pattern", "role")
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
