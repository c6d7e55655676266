"""`memory held`: claims whose turn says only a part of them, until a person releases or discards them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Final

from django.core.management.base import OutputWrapper

from consolidation.management.who import operating_user
from consolidation.operations import visible
from memory_site.management.memory.calling import Options, scope_of
from memory_site.management.memory.errors import Error, Partly, scope_named, scopes_matching
from observations.ingest import held
from observations.ingest.held import Decided
from observations.models import Evidence, Observation

_IMPORTED: Final = "held back when it was imported"


def listed(out: OutputWrapper, options: Options) -> None:
    """Print what is held back in some scopes, the longest waiting first. Raises Error."""
    scopes = scopes_matching(options["scope"])
    rows = list(held.waiting(scopes=scopes).select_related("scope")[: options["limit"]])
    quotes = _quotes(rows)
    if options["json"]:
        out.write(json.dumps({"held": [_document(row, quotes) for row in rows]}, ensure_ascii=False))
        return
    for row in rows:
        out.write("\n".join(_lines(row, quotes)))
    if not rows:
        out.write("nothing is held back")


def release(out: OutputWrapper, options: Options) -> None:
    """Put claims into the reads. Raises Error, and Partly when one cannot be."""
    _decide(out, options, held.release)


def discard(out: OutputWrapper, options: Options) -> None:
    """Take claims off the list for good. Raises Error, and Partly when one cannot be."""
    _decide(out, options, held.discard)


def again(out: OutputWrapper, options: Options) -> None:
    """Take releases back. Raises Error, and Partly when one cannot be."""
    _decide(out, options, held.hold_again)


def _decide(out: OutputWrapper, options: Options, act: Callable[..., list[Decided]]) -> None:
    by_scope: dict[str, list[int]] = {}
    for given in options["observations"]:
        name, row = scope_of(given)
        by_scope.setdefault(name, []).append(int(row.removeprefix("obs_")))
    try:
        done = [
            one for name, ids in by_scope.items() for one in act(scope=scope_named(name), ids=ids, by=operating_user())
        ]
    except (held.NotAPerson, held.TooMany) as refused:
        raise Error(str(refused)) from refused
    if options["json"]:
        out.write(json.dumps({"decided": [asdict(one) for one in done]}, ensure_ascii=False))
    else:
        out.write("\n".join(one.sentence for one in done))
    if left := sum(not one.done for one in done):
        raise Partly(f"{left} of {len(done)} were not decided.")


def _quotes(rows: Sequence[Observation]) -> dict[int, list[Evidence]]:
    found: dict[int, list[Evidence]] = {}
    for one in Evidence.objects.filter(observation__in=[row.pk for row in rows]).order_by("pk"):
        found.setdefault(one.observation_id, []).append(one)
    return found


def _why(row: Observation) -> str:
    return getattr(row, "doubt", None) or _IMPORTED


def _lines(row: Observation, quotes: dict[int, list[Evidence]]) -> Iterator[str]:
    yield f"obs_{row.pk}  {visible(row.scope.name)}  {row.recorded_at:%Y-%m-%d}  {visible(row.text or '')}"
    yield f"  doubted: {visible(_why(row))}"
    yield from (f"  {visible(one.source_uri)}: {visible(one.quote or '')}" for one in quotes.get(row.pk, []))


def _document(row: Observation, quotes: dict[int, list[Evidence]]) -> dict[str, object]:
    return {
        "id": f"obs_{row.pk}",
        "scope": row.scope.name,
        "text": row.text,
        "doubt": _why(row),
        "since": row.recorded_at.isoformat(),
        "evidence": [{"source_uri": one.source_uri, "quote": one.quote or ""} for one in quotes.get(row.pk, [])],
    }
