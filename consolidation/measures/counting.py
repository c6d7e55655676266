"""All figures of some scopes: the board of the first page, and what only the command prints."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection
from django.db.models import Count

from consolidation.measures.gathering import board
from consolidation.measures.values import Month, Stats
from consolidation.models import Alias, Consumption
from consolidation.operations import Kind
from observations.models import Episode, GivenKey, Scope
from observations.records import KeyState, Status


def stats(*, scopes: Sequence[Scope]) -> Stats:
    """The figures of these scopes. Five queries besides those of the board, however much there is."""
    ids = [scope.pk for scope in scopes]
    said = GivenKey.objects.filter(scope__in=ids, observation__status=Status.ACTIVE)
    keys = said.values_list("state").annotate(n=Count("id"))
    return Stats(
        board=board(scopes=scopes),
        scopes=len(ids),
        episodes=Episode.objects.filter(scope__in=ids).count(),
        archived_by_decay=Consumption.objects.filter(scope__in=ids, operation__kind=Kind.ARCHIVE).count(),
        aliases=Alias.objects.filter(scope__in=ids, removed_at=None).count(),
        given_keys={str(state): 0 for state in KeyState} | dict(keys.order_by("state")),
        months=_months(ids),
    )


def _months(ids: list[int]) -> tuple[Month, ...]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM') AS month,"
            " count(*) FILTER (WHERE derivation IS NULL), count(*) FILTER (WHERE status = 'active')"
            " FROM observations_observation WHERE scope_id = ANY (%s) GROUP BY month ORDER BY month",
            [ids],
        )
        rows: list[tuple[str, int, int]] = cursor.fetchall()
    months, said_total, active_total = [], 0, 0
    for month, said, active in rows:
        said_total, active_total = said_total + said, active_total + active
        months.append(Month(month=month, said=said, said_total=said_total, active_total=active_total))
    return tuple(months)
