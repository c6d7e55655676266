"""OBSERVE: what comes into the store from files, and goes out into files. The only doorway here to the store."""

from observations.ingest.exporting import export_lines
from observations.ingest.holding import hold, release
from observations.ingest.importing import ImportReport, ImportStopped, import_lines
from observations.ingest.keying import (
    AT_ONCE,
    GIVE_KEYS,
    Asked,
    KeysReport,
    ask_for_keys,
    give_keys,
    keys_later,
    lacking_keys,
    withdraw_key,
)
from observations.ingest.lines import MAX_LINE
from observations.ingest.vectors import EPISODES, Vectors, embed_missing, embed_now, missing_vectors
from observations.store import KeyNotGiven

__all__ = [
    "AT_ONCE",
    "EPISODES",
    "GIVE_KEYS",
    "MAX_LINE",
    "Asked",
    "ImportReport",
    "ImportStopped",
    "KeyNotGiven",
    "KeysReport",
    "Vectors",
    "ask_for_keys",
    "embed_missing",
    "embed_now",
    "export_lines",
    "give_keys",
    "hold",
    "import_lines",
    "keys_later",
    "lacking_keys",
    "missing_vectors",
    "release",
    "withdraw_key",
]
