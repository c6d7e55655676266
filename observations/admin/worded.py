"""Django's own lists and forms in our words: what a list is called and is for, what an empty one says, its times."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Model]
else:
    ModelAdmin = admin.ModelAdmin


def at(field: str, name: str = "") -> Any:
    """A column with a moment of a row, which the page's script tells in the reader's zone; a dash where there is none.
    It is called `name`, or by its field. Any: the stubs know a form's fields by their names only.
    """

    @admin.display(description=name or field.removesuffix("_at").replace("_", " "))
    def shown(row: Model) -> str:
        moment: datetime | None = getattr(row, field)
        if moment is None:
            return "-"  # as Django says that of its own fields
        utc = moment.astimezone(UTC)
        return format_html('<time datetime="{}">{}</time>', utc.isoformat(), f"{utc.day} {utc:%b %Y, %H:%M}")

    shown.__name__ = field
    return shown


def number(field: str) -> Any:
    """A column with an id of another row; a dash where there is none."""

    @admin.display(description=field.removesuffix("_id"))
    def shown(row: Model) -> str:
        return str(getattr(row, field) or "-")

    shown.__name__ = field
    return shown


class Worded(ModelAdmin):
    """The pages that Django draws of a model, told in our words (templates/admin/change_list.html and beside it)."""

    list_title: ClassVar[str] = ""  # empty: the model's own plural
    lead: ClassVar[str] = ""  # what the list is for
    nothing: ClassVar[str] = "There is nothing here yet."  # what an empty list says, and what to do
    about: ClassVar[str] = ""  # what to know before the form is filled in

    def _words(self, given: dict[str, Any] | None) -> dict[str, Any]:
        called = self.list_title or str(self.opts.verbose_name_plural).capitalize()
        return {
            "list_title": called,
            "lead": self.lead,
            "nothing": self.nothing,
            "about": self.about,
            **(given or {}),
        }

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, by its name."""
        words = self._words(extra_context)
        return super().changelist_view(request, {"title": words["list_title"], **words})

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """The page of one row, and the form for a new one."""
        return super().changeform_view(request, object_id, form_url, self._words(extra_context))

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None) -> Any:
        """The question before a row is deleted."""
        return super().delete_view(request, object_id, self._words(extra_context))

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Who changed what of a row here."""
        return super().history_view(request, object_id, self._words(extra_context))
