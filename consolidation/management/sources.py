"""The sources of one operation as `explain` prints them: text, key, whose word, when, and what each rests on.

In the words of the admin's item page. Everything is memory text: one line each, hostile characters made visible.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from consolidation.models import Operation, OperationSource
from consolidation.operations import Json, Kind, visible
from observations.models import Episode, Evidence, Observation
from observations.records import Outcome

EVIDENCE_SHOWN: Final = 6  # of one source; the rest is counted
_LONGEST: Final = 180  # characters of an address or a quote
_OUTCOMES: Final[Mapping[str, str]] = {
    Outcome.SUCCESS: "verified success",
    Outcome.CLAIMED: "success claimed, not verified",
    Outcome.PARTIAL: "partly worked",
    Outcome.FAILURE: "failed",
}
_Rests = Mapping[int, Sequence[Evidence]]


def source_lines(operation: Operation) -> list[str]:
    """Every source in the operation's order. Two queries."""
    sources = _sources(operation)
    rests = _evidence(operation, sources)
    quoted = _quoted(operation.product.get("support"))
    lines = ["  sources"]
    for source in sources:
        if (row := source.observation) is not None:
            lines += _observation(operation, row, rests.get(row.pk, ()))
        elif (turn := source.episode) is not None:
            lines += _episode(turn, quoted.get(turn.pk, ()))
    return lines


def source_documents(operation: Operation, listed: Json) -> list[Json]:
    """The sources as the plan's JSON lists them, each with what it rests on and how it was written. Two queries."""
    sources = _sources(operation)
    rests = _evidence(operation, sources)
    more = {str(source.observation or source.episode): _document(source, rests) for source in sources}
    rows = listed if isinstance(listed, list) else []
    return [{**one, **more.get(str(one["id"]), {})} for one in rows if isinstance(one, Mapping)]


def _document(source: OperationSource, rests: _Rests) -> dict[str, Json]:
    if (turn := source.episode) is not None:
        return {name: getattr(turn, name) for name in ("role", "session", "source_uri", "root_source")}
    row = source.observation
    assert row is not None
    evidence: list[Json] = [
        {"source_uri": one.source_uri, "root_source": one.root_source, "quote": one.quote}
        for one in rests.get(row.pk, ())
    ]
    return {"written_by": row.derivation or row.written_by, "evidence": evidence}


def _sources(operation: Operation) -> list[OperationSource]:
    return list(operation.sources.select_related("observation", "episode").order_by("position"))


def _evidence(operation: Operation, sources: Sequence[OperationSource]) -> _Rests:
    ids = [source.observation_id for source in sources if source.observation_id]
    found: defaultdict[int, list[Evidence]] = defaultdict(list)
    for one in Evidence.objects.filter(scope_id=operation.scope_id, observation__in=ids).order_by("id"):
        found[one.observation_id].append(one)
    return found


# --- observations ---------------------------------------------------------------------------------------------------


def _observation(operation: Operation, row: Observation, rests: Sequence[Evidence]) -> list[str]:
    lines = [f"    {row} [{visible(row.external_id)}] {row.status}{_standing(operation, row.pk)}  {_text(row.text)}"]
    if row.subject:
        lines.append(f"      key         {' / '.join(map(visible, (row.subject, row.predicate, row.object)))}")
    lines.append(f"      said by     {row.stated_by} via {visible(row.derivation or row.written_by)}")
    lines.append(f"      first said  {_when(row.created_at)}")
    if row.valid_from or row.valid_to or operation.kind == Kind.SUPERSEDE:
        lines.append(f"      true        {_period(row.valid_from, row.valid_to)}")
    lines.append(f"      confidence  {row.confidence:.2f}")
    roots = len({one.root_source for one in rests})
    lines.append(f"      evidence    {len(rests)} source{'s' * (len(rests) != 1)}, {roots} independent")
    lines += [f"        {_witness(one)}" for one in rests[:EVIDENCE_SHOWN]]
    more = len(rests) - EVIDENCE_SHOWN
    return [*lines, f"        and {more} more"] if more > 0 else lines


def _standing(operation: Operation, pk: int) -> str:
    """What stands beside a row: kept, for the one a person chose or a merge keeps; before that a claim is suggested."""
    decision = operation.decision
    if keep := decision.get("keep"):
        return " (kept)" if pk == keep else ""
    if pk != operation.keeper_id or any(decision.values()):
        return ""
    return " (kept)" if operation.kind == Kind.MERGE else " (suggested)"


def _witness(one: Evidence) -> str:
    root = "" if one.root_source == one.source_uri else f" from {_cut(one.root_source)}"
    return _cut(one.source_uri) + root + (f'  "{_cut(one.quote)}"' if one.quote else "")


# --- episodes -------------------------------------------------------------------------------------------------------


def _episode(turn: Episode, places: Sequence[tuple[int, int]]) -> list[str]:
    lines = [f"    {turn} [{visible(turn.external_id)}] {turn.status}  {_text(turn.text)}"]
    if who := " ".join(filter(None, (visible(turn.speaker), f"({visible(turn.role)})" if turn.role else ""))):
        lines.append(f"      said by     {who}")
    session = f", session {_cut(turn.session)}" if turn.session else ""
    lines.append(f"      said        {_when(turn.happened_at)}{session}")
    if turn.outcome in _OUTCOMES:
        lines.append(f"      outcome     {_OUTCOMES[turn.outcome]}")
    root = "" if turn.root_source in ("", turn.source_uri) else f" from {_cut(turn.root_source)}"
    quotes = [f'  "{_cut(words)}"' for start, end in places if (words := (turn.text or "")[start:end])]
    return [*lines, f"      evidence    {_cut(turn.source_uri)}{root}{''.join(quotes)}"]


def _quoted(support: object) -> Mapping[int, Sequence[tuple[int, int]]]:
    """The words of episodes that say what is promoted: [[episode id, start, end], ...]; other forms are left out."""
    found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for item in support if isinstance(support, list) else ():
        if isinstance(item, list) and len(item) == 3 and all(isinstance(part, int) for part in item):
            found[item[0]].append((item[1], item[2]))
    return found


# --- words ----------------------------------------------------------------------------------------------------------


def _text(text: str | None) -> str:
    return "erased" if text is None else f'"{visible(text)}"'


def _cut(text: str) -> str:
    return visible(text) if len(text) <= _LONGEST else f"{visible(text[:_LONGEST])}…"


def _when(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _period(start: datetime | None, end: datetime | None) -> str:
    if start and end:
        return f"{start:%Y-%m-%d} to {end:%Y-%m-%d}"
    if start:
        return f"from {start:%Y-%m-%d}"
    return f"until {end:%Y-%m-%d}" if end else "no period given"
