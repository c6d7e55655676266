"""`manage.py simulate`: does consolidation keep memory small and findable? Two stores grow from one seed.

It runs in a database of its own that is thrown away; that of DATABASE_URL is never touched. Exit status: 0 done, 1
consolidation lost recall, 2 it cannot be run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from consolidation import simulation
from consolidation.management.failing import Incomplete, OneSentence
from consolidation.simulation import NotThrowaway, Point

LOST: Final = 1
NOT_RUN: Final = 2
_MOST: Final = 5_000


class Command(OneSentence):
    """One call: simulate, print, draw."""

    help = (
        "Writes sessions into two stores that are thrown away afterwards, consolidates one of them as a person would,"
        " and compares recall, size and time."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """The same numbers come out for the same seed, but for times."""
        parser.add_argument("--sessions", type=int, default=200, metavar="N", help="how many are written (200)")
        parser.add_argument("--seed", type=int, default=7, metavar="N", help="what everything is drawn from (7)")
        parser.add_argument("--every", type=int, default=20, metavar="N", help="sessions between two passes (20)")
        parser.add_argument("--out", metavar="FILE.svg", help="where the picture is written")
        parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")

    def handle(self, *args: Any, **options: Any) -> None:  # Django's own signature
        """Progress goes to standard error; CommandError carries the exit status."""
        sessions, every = options["sessions"], options["every"]
        if not 1 <= sessions <= _MOST or every < 1:
            raise CommandError(f"--sessions is 1 to {_MOST:,}, and --every at least 1.", returncode=NOT_RUN)
        out = _writable(options["out"])
        try:
            simulated = simulation.simulate(sessions=sessions, seed=options["seed"], every=every, told=self._tell)
        except NotThrowaway as refusal:
            raise CommandError(str(refusal), returncode=NOT_RUN) from refusal
        if out:
            out.write_text(simulation.picture(simulated), encoding="utf-8")
        document = {**simulation.document(simulated), "picture": str(out) if out else None}
        text = simulation.table(simulated) + (f"\nThe picture is in {out}." if out else "")
        self.stdout.write(json.dumps(document, indent=2) if options["json"] else text)
        if simulated.lost:
            raise Incomplete("Consolidation lost recall.", returncode=LOST)

    def _tell(self, sessions: int, without: Point, kept: Point) -> None:
        self.stderr.write(
            f"{sessions} sessions: {without.size:,} rows left alone, {kept.size:,} consolidated"
            f" ({kept.decisions} decisions)"
        )


def _writable(name: str | None) -> Path | None:
    """Where the picture goes; asked before the minutes that it takes. Raises CommandError."""
    if not name:
        return None
    path = Path(name)
    try:
        path.open("a", encoding="utf-8").close()
    except OSError as error:
        raise CommandError(f"{name} cannot be written: {error.strerror}.", returncode=NOT_RUN) from error
    return path
