"""How many durable operations a second one worker applies and undoes, beside a naive applier that keeps none of the
promises.

    python -m benchmarks.applying [--operations 300]

The peer writes the derived row, archives the sources and marks the operation, in one transaction, and nothing else: no
digest, no evidence, no lineage, no consumption, no event, no locks. It is the floor of what the database must do
anyway.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

from benchmarks.stage import stage, table

COPIED = (
    "scope_id, text, content_hash, cleaned, subject, predicate, object, text_key, subject_key, sp_key, spo_key,"
    " confidence, kind, half_life_days, stated_by, written_by, created_at"
)


def _operations(count: int, prefix: str) -> list[int]:
    """Merges of two, each with two evidence rows and vectors, in one scope."""
    from consolidation.operations import Kind
    from observations.models import Observation
    from tests.building import observe, propose, scope

    within = scope(f"bench/{prefix}")
    made: list[int] = []
    for number in range(count):
        key = (f"shelf {number}", "holds", "cables")
        pair: list[Observation] = [observe(f"Shelf {number} holds cables", within=within, key=key) for _ in "ab"]
        made.append(propose(Kind.MERGE, pair).pk)
    return made


def _naive(pk: int) -> None:
    from django.db import connection, transaction

    from consolidation.models import Operation

    with transaction.atomic(), connection.cursor() as cursor:
        operation = Operation.objects.get(pk=pk)
        cursor.execute("SELECT observation_id FROM consolidation_operationsource WHERE operation_id = %s", [pk])
        ids = [row[0] for row in cursor.fetchall()]
        cursor.execute(
            f"INSERT INTO observations_observation ({COPIED}, external_id, chain, uses_inherited, status, version)"
            f" SELECT {COPIED}, %s, 0, 0, 'active', 1 FROM observations_observation WHERE id = %s RETURNING id",
            [f"naive {operation.op_id}", ids[0]],
        )
        row = cursor.fetchone()
        assert row is not None
        cursor.execute(
            "UPDATE observations_observation SET status = 'archived', superseded_by_id = %s, version = version + 1"
            " WHERE id = ANY (%s)",
            [row[0], ids],
        )


def _rate(pks: Sequence[int], act: Callable[[int], object]) -> float:
    began = time.perf_counter()
    for pk in pks:
        act(pk)
    return len(pks) / (time.perf_counter() - began)


def _apply(pk: int) -> None:
    from consolidation import runner
    from consolidation.models import Operation

    result = runner.apply(operation=Operation.objects.select_related("scope").get(pk=pk), by="bench")
    assert result.outcome == runner.Outcome.APPLIED, result.sentence


def _undo(pk: int) -> None:
    from consolidation import runner
    from consolidation.models import Operation

    result = runner.undo(operation=Operation.objects.select_related("scope").get(pk=pk), by="bench")
    assert result.outcome == runner.Outcome.UNDONE, result.sentence


def _statements(pk: int) -> int:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as queries:
        _apply(pk)
    return len(queries) - 1  # the benchmark's own look-up of the operation


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; exit status 0."""
    parser = argparse.ArgumentParser(description="Durable operations a second, ours and a naive applier's, in one run.")
    parser.add_argument("--operations", type=int, default=300, help="merges of two records each (default 300)")
    arguments = parser.parse_args(argv)
    with stage(durable=True, embedder="hashing"):
        ours, naive = _operations(arguments.operations, "ours"), _operations(arguments.operations, "naive")
        statements = _statements(_operations(1, "counted")[0])
        applied, undone, floor = _rate(ours, _apply), _rate(ours, _undo), _rate(naive, _naive)
    print(
        f"{arguments.operations} merges of 2 records, 256 dimensions, one scope of {2 * arguments.operations}, fsync on"
    )
    rows = [
        ["apply", f"{applied:.0f}/s", f"{statements} statements"],
        ["undo", f"{undone:.0f}/s", ""],
        ["naive applier", f"{floor:.0f}/s", "no digest, evidence, lineage, consumption, event or lock"],
        ["ours : naive", f"{applied / floor:.2f}", ""],
    ]
    print(table(["one worker", "rate", "note"], rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
