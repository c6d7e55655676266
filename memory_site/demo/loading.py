"""Loads the demo: its memory, its people and policies, what they did in an earlier week, a plan waiting for review, and
what an agent wrote since.

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

from consolidation import planner, probes, probing, review, revising, runner
from consolidation.aliases import request_alias
from consolidation.models import Operation, Plan, Policy
from consolidation.operations import Kind, State
from consolidation.policy import Policy as Rules
from memory_site import demo
from memory_site.demo import agents
from observations import ingest, retrieval
from observations.models import Observation, Scope, ScopeAccess, database_now
from observations.roles import Role

PEOPLE = (
    ("ana", "Reviewer", "reviews in every scope", ("*",)),
    ("bela", "Reviewer", "reviews in team/* and support/*", ("team/*", "support/*")),
    ("rena", "Reviewer", "reviews everywhere but in people/maya-okafor, which she reads", ("*", "people/*")),
    ("olga", "Operator", "also plans, applies, undoes and pauses, in every scope", ("*",)),
    ("omar", "Operator", "the same; what touches much takes two of them", ("*",)),
    ("dora", "Steward", "changes policies and enables calibrations, and decides nothing, in every scope", ("*",)),
)
LESS = {("rena", "people/*"): Role.VIEWER}  # at most this there, whatever the group allows
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # nothing that reads like something else


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the store holds now, for the printed summary."""

    observations: int
    episodes: int
    added: int
    plan: Plan
    policies: str  # a few lines for a person
    logins: str  # and a few more


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
    policies = _policies()
    logins = _people(home)
    say("Planning ...")
    plan = (_last_plan(scopes) if not report.added else None) or _planned(scopes)
    say("Writing as agents and people do ...")
    agents.write(scopes=scopes)  # once planned: what it asks for stands in no plan
    return Loaded(
        observations=Observation.objects.filter(scope__in=scopes).count(),
        episodes=sum(scope.episodes.count() for scope in scopes),
        added=report.added,
        plan=plan,
        policies=policies,
        logins=logins,
    )


def _policies() -> str:
    """What the steward set, where nobody has set anything before or since, and what for; as lines to print."""
    lines = ["Policies:"]
    known = Policy.objects.in_bulk(field_name="pattern")
    for one in demo.POLICIES:
        row = known.get(one.pattern)
        if row is None:
            rules = Rules.from_dict(one.body)
            row = revising.revise(pattern=one.pattern, policy=rules, by="dora", version=revising.NEW)
        changed = f"version {row.version}, changed by {row.updated_by}"
        lines.append(f"  {one.pattern:<22} {one.why if (row.version, row.updated_by) == (1, 'dora') else changed}")
    open_scopes = sorted(set(demo.SCOPES) - {one.pattern for one in demo.POLICIES} - known.keys())
    lines += [f"  {name:<22} none: four questions wait for an answer" for name in open_scopes]
    return "\n".join(lines)


def _last_plan(scopes: list[Scope]) -> Plan | None:
    return Plan.objects.filter(items__scope__in=scopes).order_by("-pk").first()


def _planned(scopes: list[Scope]) -> Plan:
    """The plan that waits today, after an earlier week when there was none in this store."""
    if not Operation.objects.filter(scope__in=scopes, status=State.APPLIED).exists():
        _measured(after=lambda: _earlier_week(scopes))
    return planner.plan(scopes=scopes, pattern="*", by="demo", trigger="command")


def _measured(*, after: Callable[[], None]) -> None:
    """What reading counts by the demo's own probes, before an earlier week and after it."""
    scope = Scope.objects.get(name=demo.PROBED)
    sheet = probes.read(demo.probe_lines())
    suite = scope.suites.first() or probing.import_suite(scope=scope, name="everyday", sheet=sheet, by="dora")[0]
    probing.run_suite(suite=suite, by="dora")
    after()
    ingest.embed_now(scopes=[scope], episodes=False)
    probing.run_suite(suite=suite, by="dora")


def _earlier_week(scopes: list[Scope]) -> None:
    """What agents were told, a plan, what people made of it, and a question that is still open."""
    for name, query in demo.READS:
        _read(name, query)
    earlier = planner.plan(scopes=scopes, pattern="*", by="demo", trigger="command")
    for merge in demo.EARLIER_MERGES:
        _apply(_operation(earlier, Kind.MERGE, merge.scope, merge.sources))
        _read(merge.scope, merge.query)
    _decide(earlier, Kind.SUPERSEDE, demo.LESSON, review.Decision(many_valued=True))
    _decide(earlier, Kind.PRUNE, demo.PRUNED, review.Decision())
    name, subject, other = demo.ALIAS
    request_alias(scope=Scope.objects.get(name=name), subject=subject, name=other, by="bela")


def _read(scope: str, query: str) -> None:
    retrieval.search(scope=Scope.objects.get(name=scope), query=query, k=5, call_site="search")


def _decide(plan: Plan, kind: Kind, deed: demo.Deed, decision: review.Decision) -> None:
    operation = _operation(plan, kind, deed.scope, deed.sources)
    decided = review.approve(operation=operation, by="ana", decision=decision, reason=deed.reason)
    _apply(review.second(operation=decided, by="bela") if decided.needs_second else decided)


def _apply(operation: Operation) -> None:
    """Raises LookupError when it was not applied: the demo's rows are not what they were written to be."""
    result = runner.apply(operation=operation, by="olga")
    if result.outcome is not runner.Outcome.APPLIED:
        raise LookupError(f"The demo's {operation.kind} was not applied: {result.sentence}")


def _operation(plan: Plan, kind: Kind, scope: str, sources: tuple[str, ...]) -> Operation:
    """The plan's operation of a kind on exactly these rows. Raises LookupError when the planner proposed none."""
    rows = Observation.objects.filter(scope__name=scope, external_id__in=sources)
    ids = set(rows.values_list("pk", flat=True))
    for operation in Operation.objects.filter(plan_items__plan=plan, kind=kind, scope__name=scope):
        if set(operation.sources.values_list("observation_id", flat=True)) == ids:
            return operation
    raise LookupError(f"The planner did not propose the demo's {kind} of {', '.join(sources)}.")


def _people(home: Path | None) -> str:
    """Everybody, made once; their passwords are made up here and kept only in the data folder."""
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
            less = {"role": LESS.get((name, pattern), "")}
            ScopeAccess.objects.get_or_create(user=user, pattern=pattern, defaults=less)
        lines.append(f"  {name:<6} {word:<16} {group}: {what}")
    text = "\n".join(lines)
    if kept:
        _keep(kept, text)
    return text


def _keep(path: Path, text: str) -> None:
    """Readable by its owner alone from the first byte on."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text + "\n")
