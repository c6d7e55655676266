"""How long the server takes for one decision in the focus view: the bar is 150 ms at the 95th percentile, with 100,000
observations and 10,000 items in the queue.

    python -m benchmarks.review_desk [--observations 100000] [--queued 10000] [--decisions 200] [--report-only]

Rows are loaded in bulk by the application's role, in 12 scopes of very different sizes, of which a reviewer may decide
in nine. Each decision goes through the whole stack but for the network: session, permissions, scopes, the decision, the
next item with its texts and evidence, the side list, and the JSON that carries both. Cold is the first one after the
server's statistics were made.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import time
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.bars import Bar, status, take_option
from benchmarks.pages import _LOAD
from benchmarks.stage import stage, table

SCOPES: Final = 12
MINE: Final = 9
BAR_MS: Final = 150.0
PERCENT: Final = 95
FOCUS: Final = "/admin/consolidation/operation/focus/"
# Half of the queue are merges, the rest contradictions and prunes, each of two records of one scope (a prune of one).
_MIX: Final = ("merge", "supersede", "merge", "prune")

_EVIDENCE: Final = """
INSERT INTO observations_evidence (scope_id, observation_id, source_uri, root_source, quote)
SELECT scope_id, id, 'bench://' || id, 'bench://' || id, '' FROM observations_observation WHERE id % 2 = 0
"""


@dataclass(frozen=True)
class Decided:
    """One decision: its verb, and how long its answer took."""

    verb: str
    seconds: float
    cpu: float  # seconds of this process: what is left is the database, and whatever else the machine does
    queries: int


def _load(rows: int, queued: int) -> None:
    import psycopg
    from django.db import connection, transaction

    from observations import store

    scopes = [store.open_scope(name=f"bench/s{number:02}").pk for number in range(SCOPES)]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOAD, {"scopes": scopes, "last": SCOPES - 1, "rows": rows})
        cursor.execute(_EVIDENCE)
    _propose(queued)
    with psycopg.connect(os.environ["MIGRATE_DATABASE_URL"], autocommit=True) as owner:
        owner.execute("ANALYZE")  # what autovacuum does in a store that was not loaded a moment ago


def _propose(queued: int) -> None:
    """That many operations that need a person, as the planner stores them, without planning."""
    from django.db import transaction

    from consolidation.models import Operation, OperationSource, Plan, PlanItem
    from observations.models import Observation

    taken = Observation.objects.order_by("scope_id", "pk").only("scope_id", "version", "content_hash")
    rows = list(taken[: 2 * queued + SCOPES])
    pairs = [pair for pair in zip(rows[::2], rows[1::2], strict=False) if pair[0].scope_id == pair[1].scope_id]
    plan = Plan.objects.create(pattern="bench/*", requested_by="bench", trigger="command")
    with transaction.atomic():
        made = Operation.objects.bulk_create(_operation(number, pair) for number, pair in enumerate(pairs[:queued]))
        OperationSource.objects.bulk_create(
            OperationSource(
                scope_id=operation.scope_id,
                operation=operation,
                observation=row,
                position=position,
                planned_version=row.version,
                planned_hash=row.content_hash,
            )
            for operation, pair in zip(made, pairs, strict=False)
            for position, row in enumerate(pair[: operation.n_sources])
        )
        PlanItem.objects.bulk_create(
            PlanItem(scope_id=operation.scope_id, plan=plan, operation=operation, position=position)
            for position, operation in enumerate(made)
        )


def _operation(number: int, pair: tuple[Any, Any]) -> Any:
    from consolidation.models import Operation
    from consolidation.operations import Approval, Kind, Proposal
    from consolidation.policy import Policy

    kind = Kind(_MIX[number % len(_MIX)])
    ids = tuple(row.pk for row in pair)[: 1 if kind == Kind.PRUNE else 2]
    proposal = Proposal(
        kind=kind,
        scope_id=pair[0].scope_id,
        sources=ids,
        approval=Approval.NEEDS_HUMAN,
        reason=f"{len(ids)} similar rows, similarity from 0.{900 + number % 90}; not automatic: number",
        score=0.9 + (number % 90) / 1000,
        keeper=None if kind == Kind.PRUNE else ids[0],
    )
    return Operation(
        op_id=proposal.id,
        input_key=proposal.input_key,
        scope_id=proposal.scope_id,
        kind=proposal.kind,
        approval=proposal.approval,
        status=proposal.state,
        reason=proposal.reason,
        score=proposal.score,
        keeper_id=proposal.keeper,
        n_sources=len(ids),
        policy_hash=Policy().hash,
        risk=proposal.risk,
        uncertainty=proposal.uncertainty,
    )


def _person() -> Any:
    from django.contrib.auth.models import Group, User
    from django.test import Client

    from observations.models import ScopeAccess

    user = User.objects.create_user("bench", is_staff=True)
    user.groups.add(Group.objects.get(name="Reviewer"))
    for number in range(MINE):
        ScopeAccess.objects.create(user=user, pattern=f"bench/s{number:02}")
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def _field(card: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', card)
    assert found, f"the card has no {name}"
    return found[1]


def _verb(card: str, number: int) -> dict[str, str]:
    """What a reviewer does with it: approve, reject, put off and tell apart in turn, as far as the card offers it."""
    offered = set(re.findall(r'name="verb" value="([^"]*)"', card))
    yes = next((verb for verb in sorted(offered) if verb.startswith("approve")), "reject")
    wish = (yes, "reject", yes, "distinct", yes, "defer")[number % 6]
    verb = wish if wish in offered else "reject"
    return {"verb": verb, "preset_approve": "1", "preset_reject": "2"}


def _decide(client: Any, decisions: int) -> list[Decided]:
    """The decisions one after the other, each on the item that the one before brought."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    headers = {"accept": "application/json"}
    card = json.loads(client.get(FOCUS, headers=headers).content)["card"]
    made = []
    for number in range(decisions):
        data = {"item": _field(card, "item"), "digest": _field(card, "digest"), **_verb(card, number)}
        counting = number == decisions - 1
        queries = CaptureQueriesContext(connection)
        if counting:
            queries.__enter__()
        began, cpu = time.perf_counter(), time.process_time()
        answer = client.post(f"{FOCUS}decide/", data, headers=headers)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        if counting:
            queries.__exit__(None, None, None)
        body = json.loads(answer.content)
        assert answer.status_code == 200, (answer.status_code, body)
        made.append(Decided(data["verb"].partition("|")[0], seconds, cpu, len(queries) if counting else 0))
        card = body["card"]
    return made


def _percentile(seconds: list[float], percent: int) -> float:
    return statistics.quantiles(seconds, n=100, method="inclusive")[percent - 1]


def _measure(rows: int, queued: int, decisions: int) -> list[Bar]:
    from consolidation.models import Drill, Operation

    began = time.perf_counter()
    _load(rows, queued)
    loaded = time.perf_counter() - began
    client = _person()
    waiting = Operation.objects.awaiting_review().count()
    made = _decide(client, decisions)
    warm = [one.seconds * 1000 for one in made[1:]]
    p50, p95 = (_percentile(warm, percent) for percent in (50, PERCENT))
    print(
        f"{rows:,} observations and {waiting:,} waiting items in {SCOPES} scopes ({loaded:.0f} s to load);"
        f" {decisions} decisions, {Drill.objects.count()} drills, {made[-1].queries} queries for the last;"
        f" {1000 * statistics.median(one.cpu for one in made[1:]):.0f} ms of a processor each without the database;"
        f" load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors\n"
    )
    lines = [("all", len(warm), f"{made[0].seconds * 1000:.0f}", f"{p50:.0f}", f"{p95:.0f}", f"{max(warm):.0f}")]
    for verb in sorted({one.verb for one in made}):
        mine = [one.seconds * 1000 for one in made[1:] if one.verb == verb]
        if len(mine) > 1:
            half, most = (f"{_percentile(mine, percent):.0f}" for percent in (50, PERCENT))
            lines.append((verb, len(mine), "", half, most, f"{max(mine):.0f}"))
    print(table(("decision", "warm", "cold, ms", "p50, ms", f"p{PERCENT}, ms", "longest, ms"), lines))
    return [Bar("the server's answer to a decision, at the 95th percentile", p95, BAR_MS, "ms")]


def main() -> int:
    """Exit status 1 when the 95th percentile is over the bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--observations", type=int, default=100_000)
    parser.add_argument("--queued", type=int, default=10_000)
    parser.add_argument("--decisions", type=int, default=200)
    take_option(parser)
    options = parser.parse_args()
    with stage(embedder="hashing"):
        from django.conf import settings

        settings.ALLOWED_HOSTS = ["testserver"]
        measured = _measure(options.observations, options.queued, options.decisions)
        return status(measured, report_only=options.report_only)


if __name__ == "__main__":
    raise SystemExit(main())
