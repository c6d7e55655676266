"""What the tests of the queue build with: many items of one sort, and items that have waited."""

from __future__ import annotations

from datetime import timedelta

from consolidation.models import Operation, OperationSource, Plan, Policy
from consolidation.operations import Approval, Kind, Proposal, risk_of
from observations.models import Observation, Scope, database_now
from tests.building import observe


def rows_in(within: Scope, number: int = 2) -> list[Observation]:
    """Some observations to propose things about."""
    return [observe(f"Tea, {n} sugars", within=within) for n in range(number)]


def ask_many(
    rows: list[Observation],
    number: int,
    *,
    kind: Kind = Kind.MERGE,
    hours: float = 0,
    rule: tuple[str, str] = ("same key", "0.98-0.99"),
    by: str = "",
    skipped_reason: str = "",
) -> list[Operation]:
    """So many items about the same rows, each with an id of its own, proposed so many hours ago; in two statements."""
    within = rows[0].scope
    before = Operation.objects.count()
    proposal = Proposal(
        kind=kind,
        scope_id=within.pk,
        sources=tuple(row.pk for row in rows),
        approval=Approval.NEEDS_HUMAN,
        reason="made by a test",
        skipped_reason=skipped_reason,
        keeper=rows[0].pk if kind == Kind.MERGE else None,
    )
    policy = Policy.objects.effective(scope=within.name).hash
    made = Operation.objects.bulk_create(
        [
            Operation(
                op_id=f"op_{before + n:032x}",
                input_key=proposal.input_key,
                scope=within,
                kind=kind,
                approval=proposal.approval,
                status=proposal.state,
                reason=proposal.reason,
                skipped_reason=skipped_reason,
                keeper_id=proposal.keeper,
                rule=rule[0],
                band=rule[1],
                requested_by=by,
                risk=risk_of(kind),
                n_sources=len(rows),
                policy_hash=policy,
                created_at=database_now() - timedelta(hours=hours),
            )
            for n in range(number)
        ]
    )
    OperationSource.objects.bulk_create(
        [
            OperationSource(
                scope=within,
                operation=operation,
                observation=row,
                position=position,
                planned_version=row.version,
                planned_hash=row.content_hash,
            )
            for operation in made
            for position, row in enumerate(rows)
        ]
    )
    return made


def plan_of(within: Scope) -> Plan:
    """A plan to put items into."""
    return Plan.objects.create(scope=within, pattern=within.name, requested_by="test", trigger="command")
