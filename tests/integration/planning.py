"""What tests of the planner share: a plan of every scope, and rows that make it propose something."""

from __future__ import annotations

from django.db import connection, transaction

from consolidation import planner
from consolidation.models import Operation, Plan, Policy
from consolidation.operations import Json, Kind
from observations import store
from observations.models import Observation, Scope
from tests.building import LONG_AGO, observe

LIVES = ("ann", "lives in")


def plan(*scopes: Scope, **more: object) -> Plan:
    wanted = scopes or tuple(Scope.objects.all())
    values = {"scopes": wanted, "pattern": "*", "by": "ann", "trigger": "command", **more}
    return planner.plan(**values)  # type: ignore[arg-type]


def operations(made: Plan, kind: Kind | None = None) -> list[Operation]:
    rows = Operation.objects.filter(plan_items__plan=made).order_by("plan_items__position")
    return list(rows if kind is None else rows.filter(kind=kind))


def one(made: Plan) -> Operation:
    [operation] = operations(made)
    return operation


def twins(within: Scope, text: str = "Standup moved to 09:30") -> tuple[Observation, Observation]:
    return observe(text, within=within), observe(f"{text.lower()}.", within=within)


def asked(within: Scope) -> tuple[Observation, Observation]:
    """Two rows that a person has to decide about."""
    return (
        observe("Maria volunteers at the homeless shelter downtown", within=within),
        observe("Maria volunteers at the homeless shelter downtown happily", within=within),
    )


def as_list(value: Json) -> list[dict[str, Json]]:
    """A list of objects inside a JSON document."""
    assert isinstance(value, list)
    return value


def memory() -> dict[str, object]:
    """A digest of every table of memory, with its rows in order."""
    tables = ("scope", "observation", "episode", "evidence", "embedding", "lineage", "transition", "use", "tombstone")
    with connection.cursor() as cursor:
        found: dict[str, object] = {}
        for table in tables:
            cursor.execute(f"SELECT count(*), md5(string_agg(t::text, '|' ORDER BY t.id)) FROM observations_{table} t")
            found[table] = cursor.fetchone()
    return found


def move(row: Observation) -> None:
    """Raise a row's version without changing what it says."""
    with transaction.atomic():
        store.set_validity(scope_id=row.scope_id, periods={row.pk: (LONG_AGO, None)})


def change_policy(_row: Observation) -> None:
    Policy.objects.create(pattern="*", body={"grace_days": 31})
