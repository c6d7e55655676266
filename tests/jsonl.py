"""Lines to import, and what came of them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from observations import ingest
from observations.ingest import ImportReport
from observations.models import Observation, Scope

DATA = Path(os.environ.get("PALIMPSEST_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def lines(*rows: object) -> list[str]:
    """Rows as lines; a text is a line already."""
    return [row if isinstance(row, str) else json.dumps(row) for row in rows]


def imported(*rows: object, scope: str | None = "team-a/u1") -> ImportReport:
    """Import rows as the lines of one file."""
    return ingest.import_lines(lines(*rows), scope=scope)


def exported(*names: str) -> list[str]:
    """The lines of some scopes, or of all."""
    scopes = Scope.objects.filter(name__in=names) if names else Scope.objects.all()
    return [json.dumps(row) for row in ingest.export_lines(scopes=scopes)]


def observation(external_id: str) -> Observation:
    """The row of that external id."""
    return Observation.objects.get(external_id=external_id)


def past(name: str, status: str, **fields: object) -> dict[str, object]:
    """A line with a status."""
    return {"id": name, "text": f"text of {name}", "status": status, **fields}


def derived(name: str, *sources: str, **fields: object) -> dict[str, object]:
    """A line of a merged row."""
    lineage = [{"kind": "observation", "id": source} for source in sources]
    made = {"derivation": "merge", "derived_at": "2024-01-01", "produced_by": "op_1#1", "lineage": lineage}
    return {"id": name, "text": f"text of {name}", **made, **fields}


def real(name: str) -> Path:
    """A file of real data; skips loudly where it is missing."""
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"SKIPPED LOUDLY: {name} is not there; set PALIMPSEST_DATA to the folder of the data files")
    return path
