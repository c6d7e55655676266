"""`memory intake`: whether the turns of a scope are read in the background, and reading them now."""

from __future__ import annotations

import json
from dataclasses import asdict

from django.core.management.base import OutputWrapper

from consolidation.management.who import operating_user
from consolidation.operations import visible
from memory_site.management.memory.bars import bar
from memory_site.management.memory.calling import Options, make, tell
from memory_site.management.memory.errors import Error, Partly, scope_named
from observations import ingest, spending
from observations.calls import schemas
from observations.ingest import Ran, RunReport


def status(out: OutputWrapper, options: Options) -> None:
    """Print how a scope stands. Raises Error."""
    scope = scope_named(options["scope"]).name
    _tell_status(out, scope, as_json=options["json"])


def enable(out: OutputWrapper, options: Options) -> None:
    """Have the turns of a scope read from now on; a scope of a new name is made. Raises Error."""
    try:
        passed_over = ingest.write_within(
            name=options["scope"],
            write=lambda scope: ingest.enable_intake(
                scope=scope,
                by=operating_user(),
                every_turns=options["every"],
                from_start=options["from_start"],
                residue=options["residue"],
            ),
            keeps=lambda _passed_over: True,
        )
    except (ingest.ScopeNameRefused, ValueError) as error:
        raise Error(str(error)) from error
    state = make("intake_status", schemas.Intake, scope=options["scope"])
    if options["json"]:
        out.write(json.dumps({**state.model_dump(mode="json"), "passed_over": passed_over}, ensure_ascii=False))
        return
    out.write("\n".join(_standing(options["scope"], state)))
    if passed_over:
        turns = "1 turn that was recorded before stays" if passed_over == 1 else f"{passed_over:,} turns that were"
        turns += "" if passed_over == 1 else " recorded before stay"
        out.write(f"  {turns} unread; enable it with --from-start to have them read too")


def ask_again(out: OutputWrapper, options: Options) -> None:
    """Have the turns wait again that were given up for want of a usable answer. Raises Error."""
    scope = scope_named(options["scope"])
    opened = ingest.ask_again(scope=scope, by=operating_user())
    if options["json"]:
        out.write(json.dumps({"scope": scope.name, "turns": opened}, ensure_ascii=False))
    elif opened:
        out.write(f"{opened:,} turns wait again; `manage.py memory intake run` asks about them now")
    else:
        out.write("no turn was given up: nothing to ask again")


def disable(out: OutputWrapper, options: Options) -> None:
    """Stop reading a scope's turns; what was read stays. Raises Error."""
    scope = scope_named(options["scope"])
    ingest.disable_intake(scope=scope, by=operating_user())
    _tell_status(out, scope.name, as_json=options["json"])


def run(out: OutputWrapper, options: Options) -> None:
    """Read now what waits, and say what came of it. Raises Error when nothing was read, Partly when some was not."""
    scope = scope_named(options["scope"])
    waiting = ingest.intake_of(scope=scope).waiting
    most = waiting if options["limit"] is None else min(waiting, options["limit"])
    with bar("intake", most, "turns") as shown:
        report = ingest.run_intake(scope=scope, by=operating_user(), limit=options["limit"], progress=shown.update)
    if report.not_run and not report.turns:
        raise Error(f"Nothing was read: {report.not_run}")
    out.write(json.dumps(asdict(report), ensure_ascii=False) if options["json"] else _ran(report))
    if report.not_run:
        raise Partly(f"{report.left:,} turns still wait: {report.not_run}" if report.left else report.not_run)
    if report.unusable:
        raise Partly(f"{report.unusable:,} turns got an answer that cannot be used: run this again.")


def _tell_status(out: OutputWrapper, scope: str, *, as_json: bool) -> None:
    state = make("intake_status", schemas.Intake, scope=scope)
    tell(out, state, as_json=as_json, text="\n".join(_standing(scope, state)))


def _standing(scope: str, state: schemas.Intake) -> list[str]:
    read = f"turns are read when {state.every} wait" if state.enabled else "turns are not read"
    kept = "kept" if state.residue else "not kept"
    lines = [f"{visible(scope)}: {read}; {state.waiting:,} wait; residue is {kept}"]
    if state.enabled and not spending.configured():
        lines.append("  no model is configured: they wait until there is one (set ANTHROPIC_API_KEY)")
    if state.stuck:
        lines.append(
            f"  {state.stuck:,} turns were asked about as often as they may be; the admin shows the answers,"
            " and `memory intake ask-again` has them wait again"
        )
    if run := state.last_run:
        lines.append(f"  last run {run.started_at:%Y-%m-%d %H:%M}: {run.state}{f'. {run.error}' if run.error else ''}")
    return lines


def _ran(report: RunReport) -> str:
    if report.state is Ran.NOTHING:
        return "nothing to do: no turn waits"
    stored = f"{report.added:,} added, {report.known:,} known, {report.updated:,} updated, {report.replaced:,} replaced"
    return (
        f"{report.turns:,} turns read: {report.claims:,} claims ({stored}, {report.refused:,} refused,"
        f" {report.review:,} left to a person, {report.held:,} held back); {report.unusable:,} turns answered unusably,"
        f" {report.left:,} still wait"
    )
