"""The store as a Django app."""

from django.apps import AppConfig


class ObservationsConfig(AppConfig):
    """Scopes, episodes, observations and what they rest on."""

    name = "observations"
    verbose_name = "Memory"

    def ready(self) -> None:
        """The checks of the store and of how it is run."""
        import observations.checks  # noqa: F401
