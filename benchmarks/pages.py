"""How long the admin's pages take with a large store behind them: the bar is 300 ms a page at 100,000 observations.

    python -m benchmarks.pages [--observations 100000] [--report-only]

Rows are loaded in bulk by the application's role, in 40 scopes of very different sizes; the plan on the plan page holds
400 operations. A person who may see 30 of the scopes looks, through the whole stack but for the network: session,
permissions, scopes, queries, template. Cold is the first look after the server's statistics were made.
"""

from __future__ import annotations

import argparse
import os
from datetime import timedelta
from typing import Any

from benchmarks.bars import Bar, status, take_option
from benchmarks.stage import stage, table, timed

SCOPES = 40
OPERATIONS = 400
BAR_MS = 300.0

# Half of the rows are in the first scope, a quarter in the second, and so on; the rest is spread over all.
_LOAD = """
INSERT INTO observations_observation
  (scope_id, external_id, text, content_hash, cleaned, subject, predicate, object, text_key, subject_key, sp_key,
   spo_key, confidence, kind, stated_by, written_by, created_at, recorded_at, chain, uses_inherited, status, version)
SELECT (%(scopes)s::bigint[])[1 + least(floor(-log(2, 1 - random()::numeric))::int, %(last)s)],
       'bench-' || n, words, encode(sha256(words::bytea), 'hex'), false, 'subject ' || n %% 5000, 'holds', 'v ' || n,
       hashtextextended(words, 0), n %% 5000 + 1, n %% 5000 + 1, n, 0.5, 'fact',
       (ARRAY['user', 'agent', 'tool'])[1 + n %% 3], 'import', now() - n * interval '5 minutes',
       now() - n * interval '5 minutes', 0, 0, 'active', 1
FROM (SELECT n, 'Shelf ' || n || ' of aisle ' || n %% 97 || ' holds ' ||
             (ARRAY['cables', 'lamps', 'paper', 'bolts', 'glass'])[1 + n %% 5] || ' since week ' || n %% 52 AS words
      FROM generate_series(1, %(rows)s) n) made
"""


def _load(rows: int) -> None:
    import psycopg
    from django.db import connection, transaction

    from observations import store

    scopes = [store.open_scope(name=f"bench/s{number:02}").pk for number in range(SCOPES)]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOAD, {"scopes": scopes, "last": SCOPES - 1, "rows": rows})
    with psycopg.connect(os.environ["MIGRATE_DATABASE_URL"], autocommit=True) as owner:
        owner.execute("ANALYZE")  # what autovacuum does in a store that was not loaded a moment ago


def _plan() -> Any:
    """A plan of merges for a person in the largest scope, and one applied merge, whose result is looked at."""
    from consolidation import runner
    from consolidation.models import Operation, Plan
    from consolidation.operations import Approval, Kind
    from observations.models import Observation, Scope
    from tests.building import embed, propose

    within = Scope.objects.get(name="bench/s00")
    rows = list(Observation.objects.filter(scope=within).order_by("pk")[: 2 * OPERATIONS])
    rows += Observation.objects.filter(scope=within, subject_key=rows[0].subject_key).order_by("-pk")[
        :2
    ]  # of one subject
    plan = Plan.objects.create(scope=within, pattern=within.name, requested_by="bench", trigger="command")
    for number in range(OPERATIONS):
        pair = rows[2 * number : 2 * number + 2]
        propose(Kind.MERGE, pair, approval=Approval.NEEDS_HUMAN, plan=plan)
    embed([row.pk for row in rows[-2:]], within=within)
    done = propose(Kind.MERGE, rows[-2:], plan=plan)
    result = runner.apply(operation=done, by="bench")
    assert result.outcome == "applied", result
    return plan, Operation.objects.get(pk=done.pk)


def _person() -> Any:
    from django.contrib.auth.models import Group, User
    from django.test import Client

    from observations.models import ScopeAccess

    user = User.objects.create_user("bench", is_staff=True)
    user.groups.add(Group.objects.get(name="Operator"))
    for number in range(30):
        ScopeAccess.objects.create(user=user, pattern=f"bench/s{number:02}")
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def _addresses(plan: Any, done: Any) -> dict[str, tuple[str, dict[str, str] | None]]:
    from django.urls import reverse
    from django.utils.timezone import now

    from observations.models import Observation

    row = Observation.objects.get(pk=done.derived_id)
    then = now() - timedelta(days=30)
    queue, listed = "admin:consolidation_operation_changelist", "admin:observations_observation_changelist"
    return {
        "desk": (reverse("admin:index"), None),
        "queue": (reverse(queue), None),
        "queue, 200 rows": (reverse(queue) + "?size=200", None),
        "plan (400 items, 50 shown)": (reverse("admin:consolidation_plan_change", args=[plan.pk]), None),
        "item": (reverse("admin:consolidation_operation_change", args=[done.pk]), None),
        "observation": (reverse("admin:observations_observation_change", args=[done.derived_id]), None),
        "observations": (reverse(listed), None),
        "observations, page 200": (reverse(listed) + "?page=200", None),
        "observations, said by users, all": (reverse(listed) + "?status=all&stated_by=user", None),
        "search, two words": (reverse("admin:observations_observation_search"), {"q": "glass 97"}),
        "search, one common word": (reverse("admin:observations_observation_search"), {"q": "lamps"}),
        "search of history, two words": (reverse("admin:observations_observation_history"), {"q": "glass 97"}),
        "search of history, one common word": (reverse("admin:observations_observation_history"), {"q": "lamps"}),
        "the largest scope as of a month ago": (
            reverse("admin:observations_observation_asof") + f"?scope={plan.scope_id}&at={then:%Y-%m-%d}",
            None,
        ),
        "one subject": (reverse("admin:observations_observation_subject", args=[row.scope_id, row.subject_key]), None),
        "events": (reverse("admin:observations_event_changelist"), None),
    }


def _measure(rows: int) -> list[Bar]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    _load(rows)
    plan, done = _plan()
    client, lines, bars = _person(), [], list[Bar]()
    for name, (address, data) in _addresses(plan, done).items():

        def look(address: str = address, data: dict[str, str] | None = data) -> None:
            answer = client.post(address, data) if data else client.get(address)
            assert answer.status_code == 200, (address, answer.status_code)

        taken = timed(look, runs=12)
        with CaptureQueriesContext(connection) as captured:
            look()
        bars.append(Bar(f"a warm look at {name}", taken.warm * 1000, BAR_MS, "ms"))
        lines.append((name, len(captured), f"{taken.cold * 1000:.0f}", f"{taken.warm * 1000:.0f}"))
    print(f"{rows:,} observations in {SCOPES} scopes, {OPERATIONS + 1} operations\n")
    print(table(("page", "queries", "cold, ms", "warm, ms (median of 11)"), lines))
    return bars


def main() -> int:
    """Exit status 1 when a warm page takes longer than the bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--observations", type=int, default=100_000)
    take_option(parser)
    options = parser.parse_args()
    with stage(embedder="hashing"):
        from django.conf import settings

        settings.ALLOWED_HOSTS = ["testserver"]
        return status(_measure(options.observations), report_only=options.report_only)


if __name__ == "__main__":
    raise SystemExit(main())
