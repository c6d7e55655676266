"""The admin site: Django's own, under our name."""

from __future__ import annotations

from django.contrib.admin import AdminSite


class PalimpsestAdminSite(AdminSite):
    """Where people decide what the store may change about itself."""

    site_header = "Palimpsest"
    site_title = "Palimpsest"
    index_title = "Memory under review"
