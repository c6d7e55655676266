"""`manage.py calibrate`: measure the current embedder on labelled pairs, and say which cosines mean something.

Exit status: 0 done, 1 measured without the lines that cannot be used (each is named), 2 nothing measured or enabled.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from tqdm import tqdm

from consolidation import calibrating, calibration
from consolidation.calibrating import Counted, Line, NotEnabled
from consolidation.management import measured
from consolidation.management.failing import NOT_DONE, Incomplete, OneSentence
from consolidation.management.who import operating_user
from consolidation.models import Calibration
from consolidation.operations import visible
from observations.embedding import EmbeddingError
from observations.retrieval import current_embedder

PAIRS = """
Each line of a pairs file is one JSON object: `a` and `b`, two texts, and `label`: duplicate, or one of different,
contradiction, refinement, related_distinct, changed_or_other_event, which all mean that they are not one claim. Other
fields are left alone. A pair that is given twice counts once. Only numbers are stored, never a text.
"""


class Command(OneSentence):
    """Measures, stores what was measured, enables; each in one call."""

    help = "Measures the embedder of the settings on labelled pairs and proposes its thresholds (see --pairs)."

    def add_arguments(self, parser: CommandParser) -> None:
        """The words of the command line."""
        parser.epilog = " ".join(PAIRS.split())
        parser.add_argument(
            "--pairs",
            action="append",
            default=[],
            metavar="FILE",
            help="a JSONL file of labelled pairs; may be repeated",
        )
        parser.add_argument(
            "--enable",
            nargs="?",
            const="",
            default=None,
            metavar="NAME",
            help="let the embedder merge by key without a person: the newest calibration of NAME, or what --pairs gave",
        )
        parser.add_argument("--list", action="store_true", help="list what was measured, the newest first")
        parser.add_argument("--by", metavar="WHO", help="in whose name; the user of this machine when left out")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:  # Django's own signature
        """Does what was asked; CommandError carries the exit status."""
        by = (options["by"] or operating_user())[:150]
        if options["list"]:
            rows = list(Calibration.objects.order_by("-id"))
            self._say(options, measured.listing(rows), {"calibrations": [measured.document(row) for row in rows]})
        elif options["pairs"]:
            self._measure(options, by)
        elif options["enable"] is not None:
            self._enable(options, by)
        else:
            raise CommandError("Say what to measure: --pairs FILE (see --help), or --list.", returncode=NOT_DONE)

    def _measure(self, options: dict[str, Any], by: str) -> None:
        embedder = current_embedder()
        counted = self._counted(options["pairs"])
        if not counted.cosines:
            raise CommandError(_nothing(counted), returncode=NOT_DONE)
        found = counted.measured
        proposed = calibration.propose(measured=found)
        row = calibrating.store(profile=embedder.profile, measured=found, proposed=proposed, by=by)
        refused = ""
        if options["enable"] is not None:
            row, refused = self._enabled(row, by)
        text = measured.report(row, found, counted, in_force=calibrating.in_force(profile=embedder.profile))
        self._say(options, text, {**measured.document(row), **measured.lines(counted)})
        if refused or counted.unusable:
            raise Incomplete(refused or f"{len(counted.unusable)} lines could not be used.", returncode=1)

    def _counted(self, names: Sequence[str]) -> Counted:
        files = [Path(name) for name in names]
        try:
            total = sum(path.stat().st_size for path in files)
            with tqdm(
                total=total, unit="B", unit_scale=True, disable=not self.stderr.isatty(), leave=False, file=self.stderr
            ) as bar:
                return calibrating.count(lines=_lines(files, bar), embedder=current_embedder())
        except OSError as error:
            name = visible(Path(str(error.filename or "?")).name)
            raise CommandError(f"The file {name} cannot be read: {error.strerror}.", returncode=NOT_DONE) from error
        except EmbeddingError as error:
            raise CommandError(str(error), returncode=NOT_DONE) from error

    def _enabled(self, row: Calibration, by: str) -> tuple[Calibration, str]:
        try:
            return calibrating.enable(calibration=row, by=by), ""
        except NotEnabled as refusal:
            return row, str(refusal)

    def _enable(self, options: dict[str, Any], by: str) -> None:
        name = options["enable"] or current_embedder().profile.name
        row = calibrating.named(profile=name)
        if row is None:
            shown = visible(name[:80])
            raise CommandError(
                f"No calibration of {shown!r} is stored: measure it with --pairs first.", returncode=NOT_DONE
            )
        row, refused = self._enabled(row, by)
        if refused:
            raise CommandError(refused, returncode=NOT_DONE)
        self._say(options, measured.enabled(row), measured.document(row))

    def _say(self, options: dict[str, Any], text: str, document: dict[str, object]) -> None:
        self.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) if options["json"] else text)


def _lines(files: Sequence[Path], bar: tqdm[Any]) -> Iterator[Line]:
    for path in files:
        with path.open("rb") as opened:
            for number, line in enumerate(opened, 1):
                bar.update(len(line))
                yield visible(path.name), number, line


def _nothing(counted: Counted) -> str:
    if not counted.unusable:
        return "There is no pair in these files: each line needs a, b and label."
    first = counted.unusable[0]
    return f"No line of these files can be used ({len(counted.unusable)} were tried); {first}."
