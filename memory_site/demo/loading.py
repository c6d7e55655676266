"""Loads the demo: its memory, its people, four merges of an earlier week, and a plan waiting for review.

Loading it again adds nothing and changes no password: people's decisions since then stand.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from django.contrib.auth.models import Group, User

from consolidation import planner, runner
from consolidation.models import Operation, Plan, Policy
from consolidation.operations import Kind
from memory_site import demo
from observations import ingest, retrieval
from observations.models import Observation, Scope, ScopeAccess, database_now

PEOPLE = (
    ("ana", "Reviewer", "reviews in every scope", ("*",)),
    ("bela", "Reviewer", "reviews in team/relay-platform and support/harbor-desk", ("team/*", "support/*")),
    ("olga", "Operator", "also plans, applies, undoes and pauses, in every scope", ("*",)),
)
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # nothing that reads like something else


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the store holds now, for the printed summary."""

    observations: int
    episodes: int
    added: int
    plan: Plan
    logins: str  # a few lines for a person


def load(*, say: Callable[[str], None], home: Path | None = None) -> Loaded:
    """Bring the demo's memory, people and plan into the store; `say` is told each step. `home` keeps the printed
    logins.
    """
    say("Loading four scopes of memory ...")
    report = ingest.import_lines(json.dumps(line) for line in demo.lines(now=database_now()))
    if report.refused:
        number, reason = report.refused[0]
        raise ValueError(f"The demo's line {number} was refused: {reason}")
    scopes = list(Scope.objects.filter(name__in=demo.SCOPES))
    say("Computing vectors ...")
    ingest.embed_now(scopes=scopes, episodes=False)  # the worker computes those of the episodes
    _declare_retention()
    logins = _people(home)
    say("Planning ...")
    plan = _last_plan(scopes) if not report.added else None
    return Loaded(
        observations=Observation.objects.filter(scope__in=scopes).count(),
        episodes=sum(scope.episodes.count() for scope in scopes),
        added=report.added,
        plan=plan or _planned(scopes),
        logins=logins,
    )


def _declare_retention() -> None:
    """The scopes of the demo may prune: by its one retention rule, and what an earlier merge has used up."""
    rule = demo.RETENTION
    retention = {rule.scope_pattern: [{"stated_by": rule.stated_by, "older_than_days": rule.days}]}
    for pattern in sorted({rule.scope_pattern, *(merge.scope for merge in demo.EARLIER_MERGES)}):
        body = {"prune": True, "retention": retention.get(pattern, [])}
        Policy.objects.get_or_create(pattern=pattern, defaults={"body": body, "updated_by": "demo"})


def _last_plan(scopes: list[Scope]) -> Plan | None:
    return Plan.objects.filter(items__scope__in=scopes).order_by("-pk").first()


def _planned(scopes: list[Scope]) -> Plan:
    """An earlier week's plan, four merges of which were applied and used, and the plan that waits today."""
    earlier = planner.plan(scopes=scopes, pattern="*", by="demo", trigger="command")
    for merge in demo.EARLIER_MERGES:
        operation = _merging(earlier, merge)
        runner.apply(operation=operation, by="olga")
        scope = Scope.objects.get(name=merge.scope)
        retrieval.search(scope=scope, query=merge.query, k=5, call_site="search")
    return planner.plan(scopes=scopes, pattern="*", by="demo", trigger="command")


def _merging(plan: Plan, merge: demo.EarlierMerge) -> Operation:
    """The plan's operation that merges exactly these rows. Raises LookupError when the planner proposed none."""
    ids = set(
        Observation.objects.filter(scope__name=merge.scope, external_id__in=merge.sources).values_list("pk", flat=True)
    )
    for operation in Operation.objects.filter(plan_items__plan=plan, kind=Kind.MERGE, scope__name=merge.scope):
        if set(operation.sources.values_list("observation_id", flat=True)) == ids:
            return operation
    raise LookupError(f"The planner did not propose the demo's merge of {', '.join(merge.sources)}.")


def _people(home: Path | None) -> str:
    """Two reviewers and an operator, made once; their passwords are made up here and kept only in the data folder."""
    known = set(User.objects.filter(username__in=[name for name, *_ in PEOPLE]).values_list("username", flat=True))
    kept = home / "logins.txt" if home else None
    if len(known) == len(PEOPLE) and kept and kept.exists():
        return kept.read_text(encoding="utf-8")
    lines = ["Log in as:"]
    for name, group, what, patterns in PEOPLE:
        word = "-".join("".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(3))
        user, _ = User.objects.get_or_create(username=name)
        user.is_staff = True
        user.set_password(word)
        user.save(update_fields=["is_staff", "password"])
        user.groups.set([Group.objects.get(name=group)])
        for pattern in patterns:
            ScopeAccess.objects.get_or_create(user=user, pattern=pattern)
        lines.append(f"  {name:<6} {word:<16} {group}: {what}")
    text = "\n".join(lines)
    if kept:
        _keep(kept, text)
    return text


def _keep(path: Path, text: str) -> None:
    """Readable by its owner alone from the first byte on."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text + "\n")
