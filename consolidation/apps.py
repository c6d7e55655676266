"""Proposals, review and application as a Django app."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class ConsolidationConfig(AppConfig):
    """Plans, operations, verdicts."""

    name = "consolidation"
    verbose_name = "Review"

    def ready(self) -> None:
        """The checks of policies and of the schedule; the groups, declared after each migrate, once their permissions
        exist; and what a role may do in a scope, which is what its group may do.
        """
        import consolidation.checks  # noqa: F401
        from consolidation.permissions import GROUPS, declare_groups
        from observations import roles

        roles.declare(GROUPS)
        post_migrate.connect(declare_groups, sender=self, dispatch_uid="palimpsest.groups")
