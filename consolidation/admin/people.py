"""People and their groups, for administrators: Django's own pages, in our words.

Nobody is deleted: what somebody decided names them, and Django's log of what they changed would go with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin import ShowFacets
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Permission, User
from django.db.models import ManyToManyField, Model, Q
from django.forms import CheckboxSelectMultiple
from django.http import HttpRequest

from consolidation.permissions import GROUPS
from observations.admin.worded import Worded, at

if TYPE_CHECKING:
    Accounts = UserAdmin[User]
else:
    Accounts = UserAdmin

_NAMED = ("username", "password")
_RIGHTS = ("is_active", "is_staff", "is_superuser", "groups")
_WHEN = (at("last_login"), at("date_joined", "added"))


class Boxes(Worded):
    """Several of something are chosen by a box each, which needs no script and no second list."""

    def formfield_for_manytomany(self, db_field: ManyToManyField[Any, Any], request: Any = None, **kwargs: Any) -> Any:
        """A box per row."""
        return super().formfield_for_manytomany(db_field, request, **{"widget": CheckboxSelectMultiple, **kwargs})


class PeopleAdmin(Boxes, Accounts):
    """Accounts. What they may do, their groups say; in which scopes, scope access. No right of one person alone."""

    list_title = "People"
    lead = "Who may sign in. What they may do, their groups say; in which scopes, scope access."
    nothing = "Nobody is in this list. Clear the filter, or add somebody."
    list_display = ("username", "email", "is_active", "is_staff", "is_superuser", _WHEN[0])
    list_filter = ("is_active", "is_superuser", "groups")
    show_facets = ShowFacets.NEVER
    search_fields = ()
    actions = None
    sortable_by = ()
    filter_horizontal = ()
    fieldsets = (
        (None, {"fields": _NAMED}),
        ("Name and address", {"fields": ("first_name", "last_name", "email")}),
        ("What they may do", {"fields": _RIGHTS}),
        ("When", {"fields": _WHEN}),
    )
    readonly_fields = _WHEN

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Never: whoever leaves is no longer active."""
        return False

    def get_urls(self) -> list[Any]:
        """No page to delete somebody on."""
        return [url for url in super().get_urls() if getattr(url, "name", None) != "auth_user_delete"]


class RolesAdmin(Boxes, GroupAdmin):
    """Groups. The four of ours get what they lack at each migrate. Offered is what some page asks for, and what a group
    has already: the rest of Django's permissions would change nothing.
    """

    list_title = "Groups"
    lead = "What people may do. Viewer, Reviewer, Operator and Steward get back at each migrate what they lack."
    nothing = "No group: run manage.py migrate, which makes ours."
    about = "A permission counts in the scopes that scope access gives."
    search_fields = ()
    actions = None
    sortable_by = ()
    filter_horizontal = ()

    def formfield_for_manytomany(self, db_field: ManyToManyField[Any, Any], request: Any = None, **kwargs: Any) -> Any:
        """One query."""
        asked_for = Q(codename__in={name.partition(".")[2] for names in GROUPS.values() for name in names})
        offered = Permission.objects.filter(asked_for | Q(group__isnull=False)).distinct()
        return super().formfield_for_manytomany(db_field, request, **{"queryset": offered, **kwargs})
