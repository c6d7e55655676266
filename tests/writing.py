"""What tests of the admin's side of writing stand on: one scope with everything that programs write, `mark` in each."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.urls import reverse

from observations import access, ingest
from observations.models import (
    CoreMemory,
    CoreRevision,
    Episode,
    Extraction,
    IntakeItem,
    IntakeRun,
    Observation,
    Residue,
    Scope,
    Token,
    UnusableAnswer,
    database_now,
)
from tests.building import observe, scope, tell

Verdict = IntakeItem.Verdict


@dataclass(frozen=True, slots=True)
class Writing:
    """One scope. `pages` are the addresses of every page that shows some of it, by name."""

    scope: Scope
    run: IntakeRun
    failed: IntakeRun
    turns: tuple[Episode, ...]  # the last: answer unusable, given up; the one before: asked again
    rows: tuple[Observation, ...]
    token: Token
    core: CoreMemory
    pages: dict[str, str] = field(default_factory=dict)


def where(model: str, page: str = "changelist", *args: int) -> str:
    """An address of the store's part of the admin."""
    return reverse(f"admin:observations_{model}_{page}", args=list(args))


def writing(name: str = "team-a/u1", *, mark: str = "") -> Writing:
    """Runs with a claim of every verdict, an unusable answer, a token, core memory with three revisions, residue."""
    mark, within = (
        mark.replace("\0", "\ufffd"),
        scope(name),
    )  # no database holds it: the store replaces it on the way in
    ingest.enable_intake(scope=within, by="stella", residue=True)
    turns = tuple(tell(f"{text} {mark}", within=within, speaker="Ana", role="user") for text in "abcdef")
    rows = tuple(observe(f"Row {number} {mark}", within=within) for number in range(3))
    run = IntakeRun.objects.create(scope=within, trigger="turns", by="intake")
    _claims(run, turns, rows, mark)
    figures = {"turns": 6, "batches": 1, "added": 2, "updated": 1, "known": 1, "refused": 1, "review": 1}
    IntakeRun.objects.filter(pk=run.pk).update(state="done", finished_at=database_now(), figures=figures)
    run.refresh_from_db()
    failed = IntakeRun.objects.create(scope=within, trigger="hand", by="olga")
    IntakeRun.objects.filter(pk=failed.pk).update(
        state="failed", finished_at=database_now(), error=f"The model cannot be reached. {mark}"[:300]
    )
    failed.refresh_from_db()
    made = access.create_token(name="a program", scope_pattern=within.name, by="stella", may_write=True)
    core = _core(within, mark)
    residue(within, f"Noted {mark}")
    return Writing(within, run, failed, turns, rows, made.token, core, _pages(within, run, failed, rows, turns, core))


def _pages(
    within: Scope,
    run: IntakeRun,
    failed: IntakeRun,
    rows: tuple[Observation, ...],
    turns: tuple[Episode, ...],
    core: CoreMemory,
) -> dict[str, str]:
    return {
        "intake": where("intake"),
        "intake of a scope": where("intake", "change", within.pk),
        "runs": where("intakerun"),
        "run": where("intakerun", "change", run.pk),
        "failed run": where("intakerun", "change", failed.pk),
        "observation": where("observation", "change", rows[0].pk),
        "tokens": where("token"),
        "core memory": where("corememory"),
        "core page": where("corememory", "change", core.pk),
        "residue": where("residue"),
    }


def _claims(run: IntakeRun, turns: tuple[Episode, ...], rows: tuple[Observation, ...], mark: str) -> None:
    """A claim of every verdict in the first turn, what reading each turn brought, and one unusable answer."""
    for verdict in Verdict:
        IntakeItem.objects.create(
            scope=run.scope,
            run=run,
            episode=turns[0],
            text=f"claim {mark}",
            quote_start=0,
            quote_end=len(turns[0].text or ""),
            verdict=verdict,
            reason="" if verdict == Verdict.ADD else "as a test says",
            said=f"because {mark}",
            offered=[row.pk for row in rows],
            target=rows[1] if verdict not in (Verdict.ADD, Verdict.REFUSED) else None,
            observation=rows[0] if verdict != Verdict.REFUSED else None,
        )
    states = ["claims", "nothing", "claims", "passed", "unusable", "unusable"]
    for turn, state, attempts in zip(turns, states, [1, 1, 1, 1, 1, 3], strict=True):
        Extraction.objects.create(scope=run.scope, episode=turn, run=run, state=state, attempts=attempts)
    unusable(run, turns, reply=f"not JSON {mark}")


def unusable(run: IntakeRun, turns: tuple[Episode, ...], *, reply: str) -> UnusableAnswer:
    """An answer that could not be used."""
    return UnusableAnswer.objects.create(
        scope=run.scope,
        run=run,
        purpose="extract",
        episode_ids=[turn.pk for turn in turns[-2:]],
        reply=reply,
        reason="it is not JSON",
        model="claude-test",
        prompt_version="extract-1",
    )


def _core(within: Scope, mark: str) -> CoreMemory:
    ingest.create_core(scope=within, label="persona", value="Kind", description=f"who it is {mark}"[:500], by="stella")
    ingest.append_core(scope=within, label="persona", text=f"and brief {mark}", by="token:abc")
    ingest.rethink_core(scope=within, label="persona", value=f"Kind and short {mark}", by="rita")
    return CoreMemory.objects.get(scope=within, label="persona")


def residue(within: Scope, text: str, *, days_ago: float = 0.0) -> Residue:
    """One held item; older than it can be held, where days are given."""
    fields: dict[str, Any] = {"session": "s1", "by": "token:abc", "text_key": abs(hash((text, days_ago))) % 2**62}
    if days_ago:
        fields["first_held_at"] = database_now() - timedelta(days=days_ago)
    return Residue.objects.create(scope=within, text=text, **fields)


def revisions(core: CoreMemory) -> list[tuple[int, str, str | None]]:
    """Number, action and text of every revision, oldest first."""
    rows = CoreRevision.objects.filter(core=core).order_by("number")
    return list(rows.values_list("number", "action", "value"))
