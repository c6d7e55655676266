"""Beat's entries: operators say when and whether a task runs; which task, and with what, is not theirs to change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.db.models import Field, Model, QuerySet
from django.forms import MultiWidget
from django.http import HttpRequest
from django.urls import URLPattern
from django_celery_beat.models import PeriodicTask, PeriodicTasks

from observations.admin.base import Reach
from observations.admin.worded import Worded, at

WHEN = ("enabled", "interval", "crontab", "start_time", "expire_seconds")
WHAT = ("name", "task", "description", at("last_run_at"), "total_run_count")


class Everybodys(Worded):
    """What belongs to no scope: whoever may change it in one scope may change it."""

    def _may(self, request: HttpRequest, what: str) -> bool:
        return Reach.seen_by(request).may(f"{self.opts.app_label}.{what}_{self.opts.model_name}")

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """By Django's own permission, where a role allows it."""
        return self._may(request, "view") or self._may(request, "change")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """By Django's own permission, where a role allows it."""
        return self._may(request, "add")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """By Django's own permission, where a role allows it."""
        return self._may(request, "change")


class ScheduleAdmin(Everybodys):
    """A periodic task. Nothing is added, removed or run by hand: a task with arguments of one's own writes memory."""

    list_title = "Schedule"
    lead = "What runs by itself, and when. Which task, and with what, is not changed here."
    nothing = "No entry. They come with a migration: run manage.py migrate."
    list_display = ("name", "what_it_does", "enabled", "interval", "crontab", at("last_run_at"))
    list_select_related = ("interval", "crontab")
    fields = (*WHAT, *WHEN)
    readonly_fields = WHAT
    actions = ("enable", "disable")
    view_on_site = False
    change_form_template = "admin/palimpsest/plain_form.html"

    @admin.display(description="What it does")
    def what_it_does(self, entry: PeriodicTask) -> str:
        """The sentence that its migration gave it."""
        return str(entry.description)

    def formfield_for_dbfield(self, db_field: Field[Any, Any], request: HttpRequest, **kwargs: Any) -> Any:
        """Django's own; the two boxes of a moment are named, which its template leaves out."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and isinstance(field.widget, MultiWidget):
            for box, part in zip(field.widget.widgets, ("date", "time"), strict=True):
                box.attrs["aria-label"] = f"{db_field.verbose_name}: {part}"
        return field

    def get_urls(self) -> list[URLPattern]:
        """The list and the page of one entry: no history, no add, no delete."""
        kept = {f"{self.opts.app_label}_{self.opts.model_name}_{page}" for page in ("changelist", "change")}
        return [url for url in super().get_urls() if getattr(url, "name", None) in kept]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """None."""
        return False

    def get_actions(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Ours, without `delete_selected`."""
        offered: dict[str, Any] = super().get_actions(request, *args, **kwargs)
        return {name: action for name, action in offered.items() if name in self.actions}

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Never: entries come with a migration."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Never: an entry is disabled."""
        return False

    @admin.action(description="Enable the selected entries", permissions=["change"])
    def enable(self, request: HttpRequest, queryset: QuerySet[Model]) -> None:
        """Let them run."""
        self._set(request, queryset, enabled=True)

    @admin.action(description="Disable the selected entries", permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[Model]) -> None:
        """Keep them from running."""
        self._set(request, queryset, enabled=False)

    def _set(self, request: HttpRequest, queryset: QuerySet[Model], *, enabled: bool) -> None:
        picked: Sequence[int] = list(queryset.values_list("pk", flat=True))
        changed = PeriodicTask.objects.filter(pk__in=picked).update(enabled=enabled)
        PeriodicTasks.update_changed()
        messages.success(request, f"{changed} {'enabled' if enabled else 'disabled'}.")


class TimesAdmin(Everybodys):
    """Intervals and crontabs that entries may use."""

    lead = "When an entry of the schedule may run. One that an entry stands on is not deleted."
    nothing = "None yet. Add one, then choose it in an entry of the schedule."
    sortable_by = ()

    view_on_site = False
    change_form_template = "admin/palimpsest/plain_form.html"

    def get_urls(self) -> list[URLPattern]:
        """No history, no delete: an entry may stand on it."""
        kept = {f"{self.opts.app_label}_{self.opts.model_name}_{page}" for page in ("changelist", "change", "add")}
        return [url for url in super().get_urls() if getattr(url, "name", None) in kept]

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Never."""
        return False

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """None."""
        return False
