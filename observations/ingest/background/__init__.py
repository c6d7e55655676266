"""The background pipeline: observe, extract, reconcile, store. Off until a person enables it for a scope (R121)."""

from observations.ingest.background.observing import EXTRACT, KEY, Extracting, Observed, observe
from observations.ingest.background.running import SECONDS, Ran, RunReport, run_intake, run_taken
from observations.ingest.background.settings import (
    EVERY_TURNS,
    IntakeState,
    disable_intake,
    due_scopes,
    enable_intake,
    intake_of,
)

__all__ = [
    "EVERY_TURNS",
    "EXTRACT",
    "KEY",
    "SECONDS",
    "Extracting",
    "IntakeState",
    "Observed",
    "Ran",
    "RunReport",
    "disable_intake",
    "due_scopes",
    "enable_intake",
    "intake_of",
    "observe",
    "run_intake",
    "run_taken",
]
