"""The background pipeline: observe, extract, reconcile, store. Off until a person enables it for a scope (R121)."""

from observations.ingest.background.observing import EXTRACT, KEY, Extracting, Observed, observe, queue_due
from observations.ingest.background.running import SECONDS, Ran, RunReport, run_intake, run_taken
from observations.ingest.background.settings import (
    EVERY_TURNS,
    IntakeState,
    disable_intake,
    enable_intake,
    intake_of,
)
from observations.ingest.background.steering import (
    Waits,
    ask_again,
    given_up,
    keep_residue,
    run_later,
    waits,
    without_life,
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
    "Waits",
    "ask_again",
    "disable_intake",
    "enable_intake",
    "given_up",
    "intake_of",
    "keep_residue",
    "observe",
    "queue_due",
    "run_intake",
    "run_later",
    "run_taken",
    "waits",
    "without_life",
]
