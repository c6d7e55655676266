"""`memory import` and `memory export`."""

from __future__ import annotations

import json
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from django.core.management.base import OutputWrapper

from memory_site.management.memory.bars import bar
from memory_site.management.memory.errors import Error, Partly, scopes_matching
from observations import ingest
from observations.embedding import EmbeddingError
from observations.models import Scope

_REFUSALS_SHOWN = 20
_NONE = ingest.Vectors(0, 0)


def import_file(
    out: OutputWrapper, *, file: str, scope: str | None, scope_field: str | None, as_json: bool, embed: bool
) -> None:
    """Store a file's lines, say what became of them, compute their vectors. Raises Error and Partly."""
    if scope is not None and not scope.strip():
        raise Error("--scope is empty: give the scope's name, such as 'team/project'.")
    started = time.monotonic()
    with opened(file) as stream, bar("import", size_of(stream), "B") as shown:
        try:
            lines = read_lines(stream, shown.update)
            report = ingest.import_lines(lines, scope=scope, scope_field=scope_field)
        except ingest.ImportStopped as stopped:
            raise Error(str(stopped)) from stopped
        except OSError as error:
            raise Error(
                f"{file} cannot be read to its end ({error.strerror}): what was read before is stored."
            ) from error
    seconds = time.monotonic() - started
    embedded, failure = _embed(report.scopes) if embed else (_NONE, "")
    figures = _figures(report) | {"embedded": embedded.total, "embedded_episodes": embedded.episodes}
    figures |= {"seconds": round(seconds, 3)}
    out.write(json.dumps(figures, ensure_ascii=False) if as_json else _told(report, seconds))
    if embedded.total and not as_json:
        whose = f" ({embedded.observations:,} of observations, {embedded.episodes:,} of episodes)"
        out.write(f"{embedded.total:,} vectors computed{whose if embedded.episodes else ''}")
    if failure:
        raise Partly(failure)
    if report.refused:
        raise Partly(f"{len(report.refused):,} of {report.read:,} lines were refused.")


@contextmanager
def opened(file: str) -> Iterator[IO[bytes]]:
    """A file, or standard input for -. Raises Error."""
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = Path(file).open("rb")  # noqa: SIM115 - closed below, where errors are the reader's
    except OSError as error:
        raise Error(
            f"{file} cannot be read ({error.strerror}): give a file of JSON lines, or - for standard input."
        ) from error
    with stream:
        yield stream


def size_of(stream: IO[bytes]) -> int | None:
    """Bytes of a plain file; None for a pipe."""
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError):  # not a file of the system: a test's, a notebook's
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def read_lines(stream: IO[bytes], told: Callable[[int], object]) -> Iterator[bytes]:
    """Lines of a stream; of one that is too long only so much that it is recognised as such, never all of it."""
    limit = ingest.MAX_LINE + 2
    while line := stream.readline(limit):
        told(len(line))
        rest = line
        while len(rest) == limit and not rest.endswith(b"\n"):
            rest = stream.readline(limit)
            told(len(rest))
        yield line


def _embed(names: Iterable[str]) -> tuple[ingest.Vectors, str]:
    """How many vectors were computed, and what kept the rest from it."""
    scopes = list(Scope.objects.filter(name__in=list(names)).order_by("name"))
    missing = ingest.missing_vectors(scopes=scopes)
    try:
        with bar("embed", missing.total, "rows") as shown:
            return ingest.embed_now(scopes=scopes, on_progress=shown.update), ""
    except EmbeddingError as error:
        left = ingest.missing_vectors(scopes=scopes)
        done = ingest.Vectors(missing.observations - left.observations, missing.episodes - left.episodes)
        return done, f"The lines are stored, but not all of their vectors: {error} A worker tries again by itself."


def _figures(report: ingest.ImportReport) -> dict[str, object]:
    return {
        "read": report.read,
        "added": report.added,
        "already_there": report.already_there,
        "cleaned": report.cleaned,
        "refused": [{"line": number, "reason": reason} for number, reason in report.refused],
    }


def _told(report: ingest.ImportReport, seconds: float) -> str:
    lines = [
        f"{report.read:,} lines read: {report.added:,} added, {report.already_there:,} already there,"
        f" {len(report.refused):,} refused ({seconds:.1f} s)"
    ]
    if report.cleaned:
        lines.append(
            f"{report.cleaned:,} added lines held characters no database can keep; a visible mark stands for them"
        )
    lines += [f"  line {number}: {reason}" for number, reason in report.refused[:_REFUSALS_SHOWN]]
    if len(report.refused) > _REFUSALS_SHOWN:
        lines.append(f"  and {len(report.refused) - _REFUSALS_SHOWN:,} more (--json lists all)")
    return "\n".join(lines)


def export_file(out: OutputWrapper, *, pattern: str, output: str | None) -> None:
    """Write the scopes of a pattern as import lines, to `out` or to a file that appears whole or not at all."""
    lines = (
        json.dumps(row, ensure_ascii=False, separators=(", ", ": "))
        for row in ingest.export_lines(scopes=scopes_matching(pattern))
    )
    if output is None or output == "-":
        for line in lines:
            out.write(line)
        return
    try:
        count = _write_whole(Path(output), lines)
    except OSError as error:
        raise Error(f"{output} cannot be written ({error.strerror}): nothing was exported.") from error
    out.write(f"{count:,} rows exported to {output}")


def _write_whole(path: Path, lines: Iterable[str]) -> int:
    """Write beside the target and rename; readable by the owner only, because it holds memory."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        count = 0
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            for line in lines:
                file.write(f"{line}\n")
                count += 1
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
    return count
