"""Proposals, review and application as a Django app."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class ConsolidationConfig(AppConfig):
    """Plans, operations, verdicts."""

    name = "consolidation"
    verbose_name = "Review"

    def ready(self) -> None:
        """The checks of policies and of the schedule; the groups, declared after each migrate, once their permissions
        exist.
        """
        import consolidation.checks  # noqa: F401
        from consolidation.permissions import declare_groups

        post_migrate.connect(declare_groups, sender=self, dispatch_uid="palimpsest.groups")
