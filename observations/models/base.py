"""What the models of the store are made with."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import connection, models


class ClockTimestamp(models.Func):
    """PostgreSQL's clock_timestamp(): the wall clock of the database, not the start of the transaction."""

    template = "clock_timestamp()"
    output_field = models.DateTimeField()


def database_now() -> datetime:
    """The database's clock. Order, age and expiry come from it, whatever a worker's says. One query."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        row = cursor.fetchone()
    assert row is not None
    moment: datetime = row[0]
    return moment


def choices(enum: Iterable[str]) -> list[tuple[str, str]]:
    """An enum as a field's choices, under its own words."""
    return [(str(member), str(member)) for member in enum]


# A foreign key whose constraint is the composite (id, scope) one of 0002_integrity, so that no edge can cross scopes
# (I5).
EDGE: Any = {"on_delete": models.DO_NOTHING, "db_constraint": False}
