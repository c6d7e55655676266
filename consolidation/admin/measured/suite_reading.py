"""Suites as their pages show them: each probe with what came of it in the newest run, and the runs as a picture."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from consolidation.admin.texts import day, snippet, told, when
from consolidation.charts import Chart, Drawing, Form, Series, draw
from consolidation.models import Probe, ProbeRun, Suite
from consolidation.operations import obs, visible
from consolidation.probes import K
from observations.models import Observation

RUNS: Final = 60  # runs of a suite that its page shows
CAUSES: Final[Mapping[str, str]] = {
    ProbeRun.Cause.COMMAND: "by command",
    ProbeRun.Cause.BEFORE: "before",
    ProbeRun.Cause.AFTER: "after",
    ProbeRun.Cause.BUTTON: "by a person here",
    ProbeRun.Cause.TASK: "by schedule",
}
NONE: Final = "—"


@dataclass(frozen=True, slots=True)
class Named:
    """A record that a probe names."""

    pk: int
    name: str
    text: str  # empty in lists that show ids only


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run, its numbers as they are read; those that may not be shown are a dash, with the reason."""

    at: str
    cause: str
    plan: int | None
    by: str
    k: str
    recall: str
    mrr: str
    distinct: str
    stale: str
    leaks: str
    leaked: bool
    p95: str
    records: str
    why_not: str


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """One suite in the list."""

    pk: int
    name: str
    scope: str
    in_force: bool
    made: str
    probes: int
    run: RunRow | None


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """One probe, and what came of it."""

    number: int
    query: str  # empty: erased
    category: str
    negative: bool
    as_of: str
    expected: tuple[Named, ...]
    forbidden: tuple[Named, ...]
    outcome: str
    tone: str
    rows: tuple[Named, ...]  # that the outcome is about


def suite_row(suite: Suite, *, run: ProbeRun | None, in_force: bool, probes: int) -> SuiteRow:
    """A suite in the list. No query."""
    return SuiteRow(
        pk=suite.pk,
        name=visible(suite.name),
        scope=visible(suite.scope.name),
        in_force=in_force,
        made=told("{} by {}", when(suite.created_at), visible(suite.by)),
        probes=probes,
        run=run_row(run) if run else None,
    )


def run_row(run: ProbeRun) -> RunRow:
    """A run with its plan at hand. No query."""
    figures: Mapping[str, Any] = run.figures
    measures: Mapping[str, Any] = figures.get("measures") or {}
    leaks = figures.get("leaks", 0)
    return RunRow(
        at=when(run.at),
        cause=CAUSES.get(run.cause, visible(run.cause)),
        plan=run.plan_id,
        by=visible(run.by),
        k=str(figures.get("k", K)),
        recall=_number(measures.get("recall"), 4),
        mrr=_number(measures.get("mrr"), 3),
        distinct=_number(measures.get("distinct"), 2),
        stale=_number(measures.get("stale"), 3),
        leaks=f"{leaks:,}",
        leaked=bool(leaks),
        p95=f"{measures['p95_ms']:g} ms" if "p95_ms" in measures else NONE,
        records=f"{figures.get('records', 0):,}",
        why_not=visible(str(figures.get("not_measured", ""))),
    )


def _number(value: float | None, digits: int) -> str:
    return NONE if value is None else f"{value:.{digits}f}"


# --- probes -----------------------------------------------------------------------------------------------------------


def probe_rows(probes: Sequence[Probe], *, run: ProbeRun | None) -> list[ProbeRow]:
    """Probes with what came of each in a run. One query, for the texts of the records they name."""
    named = {pk for probe in probes for pk in (*probe.expected, *probe.forbidden)}
    came = {pk for probe in probes for pk in _outcome(probe, run)[2]}
    texts = texts_of(probes[0].scope_id, named | came) if probes else {}
    return [_probe_row(probe, run, texts) for probe in probes]


def texts_of(scope_id: int, ids: Collection[int]) -> dict[int, str]:
    """The beginnings of rows of a scope, by id. One query."""
    rows = Observation.objects.filter(scope_id=scope_id, pk__in=ids).values_list("pk", "text")
    return {pk: snippet(text, limit=120) for pk, text in rows}


def _probe_row(probe: Probe, run: ProbeRun | None, texts: Mapping[int, str]) -> ProbeRow:
    outcome, tone, about = _outcome(probe, run)
    return ProbeRow(
        number=probe.number,
        query=snippet(probe.query, limit=400) if probe.query else "",
        category=visible(probe.category),
        negative=probe.negative,
        as_of=when(probe.as_of),
        expected=named_rows(probe.expected, texts),
        forbidden=named_rows(probe.forbidden, texts),
        outcome=outcome,
        tone=tone,
        rows=named_rows(about, texts),
    )


def named_rows(ids: Iterable[int], texts: Mapping[int, str]) -> tuple[Named, ...]:
    """Records by their ids; one that is no row of the scope has no text."""
    return tuple(Named(pk, obs(pk), texts.get(pk, "not a record of this scope")) for pk in ids)


def _outcome(probe: Probe, run: ProbeRun | None) -> tuple[str, str, list[int]]:
    """In words, with a colour, and the rows it is about. What may not be shown of a run is not shown here either."""
    if not probe.query:
        return "erased, not asked", "quiet", []
    if run is None:
        return "not run yet", "quiet", []
    figures: Mapping[str, Any] = run.figures
    measures: Mapping[str, Any] | None = figures.get("measures")
    number = str(probe.number)
    if leaked := figures.get("leaked", {}).get(number):
        return "leaked", "bad", leaked
    if probe.number in figures.get("incomplete", []):
        return "answer not complete", "warn", []
    if measures is None:
        return "not measured", "warn", []
    if probe.number in measures.get("missed", []):
        missing = measures.get("missing", {}).get(number, [])
        part = "missing" if len(missing) == len(probe.expected) or not missing else "partly found, missing"
        return part, "no", missing
    if staled := measures.get("staled", {}).get(number):
        return "found, with an outdated value", "warn", staled
    if probe.negative:
        confused = probe.number in measures.get("confused", [])
        return ("mistaken", "warn", []) if confused else ("negative", "quiet", [])
    return ("found", "done", []) if probe.expected else ("nothing forbidden came", "done", [])


# --- the picture ------------------------------------------------------------------------------------------------------


def picture(runs: Sequence[ProbeRun], *, k: int) -> Drawing | None:
    """Recall, MRR and distinct claims over the runs of one suite at one k, oldest first; None for fewer than two."""
    if len(runs) < 2:
        return None
    measures: list[Mapping[str, Any]] = [run.figures.get("measures") or {} for run in runs]
    named = (f"recall@{k}", "MRR", f"distinct/{k}")
    values = (
        tuple(_share(found.get("recall")) for found in measures),
        tuple(_share(found.get("mrr")) for found in measures),
        tuple(_share(found.get("distinct"), k) for found in measures),
    )
    last = values[0][-1]
    same_days = runs[-1].at - runs[0].at < timedelta(days=2)  # days alone would not tell these runs apart
    ends = "the newest was not measured" if last is None else f"the newest recall is {last:.3f}"
    return draw(
        Chart(
            key="runs",
            title="Runs over time",
            about=f"Recall, MRR and the share of different claims over {len(runs)} runs of this suite; {ends}.",
            form=Form.LINES,
            unit="share",
            along="run (UTC)",
            labels=tuple(str(when(run.at)) if same_days else day(run.at) for run in runs),
            series=tuple(Series(name, row) for name, row in zip(named, values, strict=True)),
            top=1.0,
            say=lambda number: f"{number:.3g}",
        )
    )


def _share(value: float | None, of: int = 1) -> float | None:
    return None if value is None else value / of
