"""What acceptance tests do to operations, as an operator does it."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction

from consolidation import runner
from consolidation.models import Operation, Plan
from consolidation.operations import Kind
from observations import store
from observations.models import Observation, Scope
from observations.records import Claim, StatedBy, WrittenBy
from tests.building import LONG_AGO, observe, propose, scope
from tests.conftest import superuser

KEY = ("relay", "sits in", "rack 4")


def three(within: Scope) -> list[Observation]:
    return [
        observe(
            "The relay sits in rack 4",
            within=within,
            key=KEY,
            created_at=LONG_AGO + timedelta(days=days),
            confidence=0.6,
        )
        for days in (1500, 3, 900)
    ]


def fresh(operation: Operation) -> Operation:
    return Operation.objects.select_related("scope").get(pk=operation.pk)


def derived_of(operation: Operation) -> Observation:
    pk = fresh(operation).derived_id
    assert pk is not None
    return Observation.objects.select_related("scope").get(pk=pk)


def apply(operation: Operation) -> runner.Result:
    return runner.apply(operation=fresh(operation), by="operator")


def undo(operation: Operation) -> runner.Result:
    return runner.undo(operation=fresh(operation), by="operator")


def correct(row: Observation, text: str = "The relay sits in rack 7") -> int:
    with transaction.atomic():
        claim = Claim(text=text, external_id=f"correction of {row.pk}", stated_by=StatedBy.USER)
        written = store.replace(scope=row.scope, old_id=row.pk, claim=claim, written_by=WrittenBy.DELIBERATE)
    assert written.id is not None
    return written.id


def let_the_grace_pass(operation: Operation) -> None:
    """As if it had been applied 31 days ago. Only a superuser past every trigger can: an application is history."""
    with superuser() as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute(
            "UPDATE consolidation_operation SET applied_at = applied_at - interval '31 days' WHERE id = %s",
            (operation.pk,),
        )


def plan_of(count: int) -> Plan:
    within = scope()
    plan = Plan.objects.create(pattern=within.name, requested_by="test", trigger="command")
    for number in range(count):
        pair = [
            observe(f"Shelf {number} holds cables", within=within, key=("shelf", "holds", f"c{number}")) for _ in "ab"
        ]
        propose(Kind.MERGE, pair, plan=plan)
    return plan
