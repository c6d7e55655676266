"""Proposals, review and application as a Django app."""

from django.apps import AppConfig


class ConsolidationConfig(AppConfig):
    """Plans, operations, verdicts."""

    name = "consolidation"
    verbose_name = "Review"

    def ready(self) -> None:
        """The checks of policies and of the schedule."""
        import consolidation.checks  # noqa: F401
