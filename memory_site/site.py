"""The admin site: Django's own, under our name, opening on what waits."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver

# Pages that would look rows up by names from the address.
LEFT_OUT = ("view_on_site", "autocomplete")


class PalimpsestAdminSite(AdminSite):
    """Where people decide what the store may change about itself."""

    site_header = "Palimpsest"
    site_title = "Palimpsest"
    index_title = "Memory under review"
    enable_nav_sidebar = False
    site_url = None

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """The desk, for people who may read operations; Django's list of tables for the rest."""
        from consolidation.admin.desk import desk  # registers on this very site: not while it is being made

        if not request.user.has_perm("consolidation.view_operation"):
            return super().index(request, extra_context)
        context = {**self.each_context(request), "title": self.index_title, **desk(request), **(extra_context or {})}
        return TemplateResponse(request, "admin/desk.html", context)

    def app_index(
        self, request: HttpRequest, app_label: str, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Django's list of one app's tables, by the app's name."""
        title = next((app.verbose_name for app in apps.get_app_configs() if app.label == app_label), app_label)
        return super().app_index(request, app_label, {"title": title, **(extra_context or {})})

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Django's own, without the look-ups."""
        return [url for url in super().get_urls() if getattr(url, "name", None) not in LEFT_OUT]
