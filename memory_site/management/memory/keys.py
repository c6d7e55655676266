"""`memory keys`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Final

from django.core.management.base import OutputWrapper

from consolidation.operations import visible
from memory_site.management.memory.bars import bar
from memory_site.management.memory.errors import Error, Partly, scopes_matching
from observations import ingest
from observations.ingest import Asked, KeysReport
from observations.llm import Answer, NoModel
from observations.models import Scope

# Failures that every further scope would meet too; a budget may be one scope's own.
_EVERYWHERE: Final = (Answer.NO_MODEL, Answer.DENIED, Answer.UNREACHABLE)
NOTHING: Final = "nothing to do: every observation has a key, or was asked about"
Reports = list[tuple[Scope, KeysReport]]


def give_keys(out: OutputWrapper, *, pattern: str, as_json: bool) -> None:
    """Ask the model for missing keys, scope by scope, and say what came of it. Raises Error and Partly."""
    reports = _given(scopes_matching(pattern))
    failures = [report.not_run for _, report in reports if report.not_run]
    sums = _sums(reports)
    if failures and not sums["asked"]:
        raise Error(f"No key was given to {sums['left']:,} observations that lack one: {failures[0]}")
    out.write(json.dumps(_document(reports), ensure_ascii=False) if as_json else _told(reports))
    if failures:
        raise Partly(f"{sums['left']:,} observations were not asked about: {failures[0]}")
    if sums["unusable"]:
        raise Partly(f"{sums['unusable']:,} observations got an answer that cannot be used: run this again.")


def ask_later(out: OutputWrapper, *, pattern: str, as_json: bool) -> None:
    """Leave missing keys to a worker, and say what it will do in each scope. Raises Error without a model."""
    scopes = scopes_matching(pattern)
    lacking = sum(ingest.lacking_keys(scope=scope) for scope in scopes)
    try:
        asked = ingest.ask_for_keys(scopes=scopes) if lacking else []
    except NoModel as none:
        raise Error(f"Nothing is queued for {lacking:,} observations that lack a key: {none}") from None
    if as_json:
        rows = [{"scope": one.scope.name, "lacking": one.lacking, "queued": not one.before} for one in asked]
        out.write(json.dumps({"lacking": lacking, "scopes": rows}, ensure_ascii=False))
    else:
        out.write("\n".join(map(_promised, asked)) or NOTHING)


def _promised(asked: Asked) -> str:
    """One line of what a worker will do in a scope."""
    what = "a worker was asked before and is not at its end" if asked.before else "a worker will ask the model"
    return f"{visible(asked.scope.name)}: {asked.lacking:,} observations lack a key; {what}"


def _given(scopes: Sequence[Scope]) -> Reports:
    """One report for each scope that lacks keys; after a failure that all would meet, the rest are not tried."""
    waiting = {scope: count for scope in scopes if (count := ingest.lacking_keys(scope=scope))}
    reports: Reports = []
    stopped = ""
    with bar("keys", sum(waiting.values()), "rows") as shown:
        for scope, count in waiting.items():
            if stopped:
                reports.append((scope, KeysReport(left=count, not_run=stopped)))
                continue
            report = ingest.give_keys(scope=scope, progress=shown.update)
            reports.append((scope, report))
            stopped = report.not_run if report.failure in _EVERYWHERE else ""
    return reports


_FIGURES: Final = ("asked", "given", "none", "refused", "unusable", "changed", "left")


def _document(reports: Reports) -> dict[str, object]:
    rows = [
        {
            "scope": scope.name,
            **{name: getattr(report, name) for name in _FIGURES},
            "refusals": dict(report.refusals),
            "not_run": report.not_run or None,
        }
        for scope, report in reports
    ]
    return {**_sums(reports), "scopes": rows}


def _sums(reports: Reports) -> dict[str, int]:
    return {name: sum(getattr(report, name) for _, report in reports) for name in _FIGURES}


def _told(reports: Reports) -> str:
    if not reports:
        return NOTHING
    sums = _sums(reports)
    lines = [
        f"{sums['asked']:,} observations asked about: {sums['given']:,} keys given, {sums['none']:,} hold none,"
        f" {sums['refused']:,} refused, {sums['unusable']:,} answered unusably, {sums['changed']:,} changed meanwhile"
    ]
    refusals: Counter[str] = Counter()
    for _, report in reports:
        refusals.update(report.refusals)
    lines += [f"  {count:,} refused: {reason}" for reason, count in refusals.most_common()]
    return "\n".join(lines)
