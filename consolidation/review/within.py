"""The scopes that somebody may decide in, as every statement of one request needs them: looked up once, not by each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.core.exceptions import EmptyResultSet

from observations.models import ScopeQuerySet

MANY: Final = 1_000  # more scopes than that stay a query: their ids would cost each statement more than a look-up

Scopes = ScopeQuerySet | Sequence[int]


def few(scopes: ScopeQuerySet) -> Scopes:
    """The ids of these scopes, or, of more than MANY, the query for them. One query."""
    ids = list(scopes.order_by().values_list("pk", flat=True)[: MANY + 1])
    return ids if len(ids) <= MANY else scopes


def condition(scopes: Scopes) -> tuple[str, dict[str, Any]]:
    """What stands behind "scope_id" in a statement of ours, with the values it names. No query."""
    if not isinstance(scopes, ScopeQuerySet):
        return "= ANY (%(scopes)s)", {"scopes": list(scopes)}
    try:
        statement, values = scopes.order_by().values("pk").query.sql_with_params()
    except EmptyResultSet:
        return "= ANY (%(scopes)s)", {"scopes": []}
    named = {f"scope_{number}": value for number, value in enumerate(values)}
    return f"IN ({statement % tuple(f'%({name})s' for name in named)})", named
