"""OBSERVE: what comes into the store from files, and goes out into files. The only doorway here to the store."""

from observations.ingest.exporting import export_lines
from observations.ingest.importing import ImportReport, ImportStopped, import_lines
from observations.ingest.lines import MAX_LINE
from observations.ingest.vectors import embed_missing, embed_now, missing_vectors

__all__ = [
    "MAX_LINE",
    "ImportReport",
    "ImportStopped",
    "embed_missing",
    "embed_now",
    "export_lines",
    "import_lines",
    "missing_vectors",
]
