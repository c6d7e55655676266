"""Suites and their runs as a command prints them."""

from __future__ import annotations

from collections.abc import Sequence

from consolidation.models import Probe, ProbeRun, Suite
from consolidation.operations import counted, obs, visible
from consolidation.probes import Figures
from consolidation.probing import Draft, Resolved


def imported(suite: Suite, resolved: Resolved) -> str:
    """What became of a file's lines."""
    negatives = sum(probe.negative for probe in resolved.probes)
    dated = sum(probe.as_of is not None for probe in resolved.probes)
    lines = [
        f"Suite {visible(suite.name)} of {visible(suite.scope.name)}: {len(resolved.probes):,} probes, {negatives:,} of"
        " them negative. It is in force: every plan that is applied there is measured with it."
    ]
    lines += [f"{dated:,} are asked of what was believed at a date."] if dated else []
    return "\n".join([*lines, *left_out(resolved)])


def left_out(resolved: Resolved) -> list[str]:
    """Lines of a file that are no probes of the scope, and why."""
    lines = []
    if resolved.unknown:
        lines.append(f"{resolved.unknown:,} lines were left out: they name records that this scope does not hold.")
    if resolved.expect_nothing:
        lines.append(f"{resolved.expect_nothing:,} lines were left out: they expect no record.")
    return lines


def report(title: str, figures: Figures) -> str:
    """A run for people: the controls, and the numbers only where those failed."""
    controls = ", ".join(f"{control.name} {control.recall:.3f}" for control in figures.controls)
    asked = f"{figures.probes:,} probes, {figures.negatives:,} negative, {figures.left_out:,} left out"
    lines = [f"{visible(title)}: {asked}; {counted(figures.records, 'record')}", f"controls    {controls} (must fail)"]
    if not figures.why_not:
        lines += _measures(figures)
    return "\n".join([*lines, *(f"GATE FAILED  {gate}" for gate in figures.gates)])


def _measures(figures: Figures) -> list[str]:
    k, missed = figures.k, figures.missed
    more = f" and {len(missed) - 20:,} more" if len(missed) > 20 else ""
    optional = [
        ("stale", figures.stale, "share of the dated probes that got an outdated value"),
        ("mistaken", figures.mistaken, "share of the negative probes that got what they may be mistaken for"),
        ("separation", figures.separation, "a probe's best cosine above a negative one's; 0.5 is no difference"),
    ]
    return [
        f"recall@{k:<5}{figures.recall:.4f}  share of the expected records that came",
        f"hit@{k:<8}{figures.hit:.4f}  share of the probes that got at least one of them",
        f"MRR         {figures.mrr:.4f}",
        f"distinct@{k:<3}{figures.distinct:.2f}  different claims among {k} places; {figures.unmarked:.0%} of the hits"
        " have neither a claim key nor a label, and each of them counts as different",
        *(f"{name:<12}{value:.4f}  {words}" for name, value, words in optional if value is not None),
        f"leaks       {figures.leaks}",
        f"time        p50 {figures.p50:.1f} ms, p95 {figures.p95:.1f} ms",
        f"missed      {', '.join(map(str, missed[:20])) + more if missed else 'none'}",
    ]


def listing(suites: Sequence[Suite], newest: Sequence[ProbeRun], in_force: frozenset[int]) -> str:
    """A line per suite with its newest run."""
    if not suites:
        return "There is no suite yet: `manage.py probe import FILE --scope NAME --name NAME` makes one."
    runs = {run.suite_id: run for run in newest}
    return "\n".join(_listed(suite, runs.get(suite.pk), suite.pk in in_force) for suite in suites)


def _listed(suite: Suite, run: ProbeRun | None, holds: bool) -> str:
    name = f"{visible(suite.scope.name)}  {visible(suite.name)}  {'in force' if holds else 'replaced'}"
    if run is None:
        return f"{name}  never run"
    counted = "not measured" if run.recall is None else f"recall@{run.figures.get('k')} {run.recall:.4f}"
    return f"{name}  {counted}  {run.at:%Y-%m-%d %H:%M} ({run.cause})"


def shown(suite: Suite, probes: Sequence[Probe], runs: Sequence[ProbeRun]) -> str:
    """A suite whole: its probes, and its runs, the newest first."""
    lines = [f"{visible(suite.name)} of {visible(suite.scope.name)}, by {visible(suite.by)}"]
    for probe in probes:
        query = f'"{visible(probe.query)}"' if probe.query else "(erased)"
        kind = "negative" if probe.negative else visible(probe.category)
        lines.append(f"{probe.number:>5}  {query}  {kind}  expects {', '.join(map(obs, probe.expected)) or 'nothing'}")
    lines.append("RUNS" if runs else "RUNS  none yet")
    for run in runs:
        counted = "not measured" if run.recall is None else f"recall@{run.figures.get('k')} {run.recall:.4f}"
        plan = f" {run.plan}" if run.plan else ""
        lines.append(f"  {run.at:%Y-%m-%d %H:%M}  {counted}  {run.cause}{plan}  by {visible(run.by)}")
    return "\n".join(lines)


# --- documents --------------------------------------------------------------------------------------------------------


def import_document(suite: Suite, resolved: Resolved) -> dict[str, object]:
    """What became of a file's lines, as JSON."""
    return {
        "suite": suite.name,
        "scope": suite.scope.name,
        "probes": len(resolved.probes),
        "negative": sum(probe.negative for probe in resolved.probes),
        "unknown_records": resolved.unknown,
        "expect_nothing": resolved.expect_nothing,
    }


def suite_document(suite: Suite, run: ProbeRun | None, *, in_force: bool) -> dict[str, object]:
    """A suite in a list, as JSON."""
    newest = None if run is None else run_document(run)
    return {"suite": suite.name, "scope": suite.scope.name, "in_force": in_force, "newest_run": newest}


def run_document(run: ProbeRun) -> dict[str, object]:
    """A run that was kept, as JSON."""
    plan = str(run.plan) if run.plan else None
    return {"at": run.at.isoformat(), "cause": run.cause, "by": run.by, "plan": plan, **run.figures}


def draft_document(draft: Draft) -> dict[str, object]:
    """A proposed probe as JSON."""
    return {
        "query": draft.query,
        "expected": [draft.external_id],
        "observation": obs(draft.expected),
        "answers": draft.answers,
        "text": draft.text,
    }


def probe_document(probe: Probe) -> dict[str, object]:
    """A probe as JSON."""
    return {
        "number": probe.number,
        "query": probe.query,
        "category": probe.category,
        "negative": probe.negative,
        "expected": list(map(obs, probe.expected)),
        "forbidden": list(map(obs, probe.forbidden)),
        "outdated": list(map(obs, probe.outdated)),
        "as_of": probe.as_of.isoformat() if probe.as_of else None,
    }
