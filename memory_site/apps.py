"""The composition root as a Django app: it brings the `migrate` that runs as the owner, the grants and the admin
site.
"""

from __future__ import annotations

from django.apps import AppConfig, apps
from django.contrib.admin.apps import AdminConfig
from django.db.models.signals import post_migrate


class MemorySiteConfig(AppConfig):
    """Listed first, so that its commands win over Django's."""

    name = "memory_site"

    def ready(self) -> None:
        """Grants are declared once per migrate, after the last table exists (this app has no models, so it is sent no
        signal).
        """
        import memory_site.celery  # noqa: F401  the queue's settings hold in every process, not only in workers
        from memory_site.grants import declare_grants

        post_migrate.connect(
            declare_grants, sender=apps.get_app_config("consolidation"), dispatch_uid="palimpsest.grants"
        )


class PalimpsestAdminConfig(AdminConfig):
    """Django's admin with our site: titles, the review desk, no app that lets anyone write memory."""

    default_site = "memory_site.site.PalimpsestAdminSite"
