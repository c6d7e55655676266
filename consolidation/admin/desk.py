"""The front page: what waits, what is approved, what went wrong, how large each scope is, and how memory is doing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.db import connection
from django.http import HttpRequest

from consolidation.admin.desk_figures import figures
from consolidation.admin.item.deciding import APPLY, REVIEW
from consolidation.admin.plan.planning import MAKE
from consolidation.admin.plan.reading import summaries, visible_plans
from consolidation.admin.queue.reading import ordered, part
from consolidation.admin.reading import rows_of
from consolidation.models import Operation, Pause
from consolidation.operations import visible
from observations.admin.base import Reach

COUNTED: Final = 1_000  # what waits is counted this far
SIZED: Final = 10_000  # a scope's rows are counted this far
SCOPES: Final = 12
NEXT: Final = 5  # items offered to begin with


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure that asks for something."""

    label: str
    count: str
    any: bool
    show: str  # the queue's tab
    tone: str
    hint: str


@dataclass(frozen=True, slots=True)
class Size:
    """One scope with its current rows."""

    pk: int
    name: str
    active: str
    waiting: str
    share: int  # of the largest shown, in percent
    held: bool
    paused: bool


TILES: Final = (
    ("waiting", "need a person", "wait", "Contradictions, prunes and doubtful merges"),
    ("automatic", "automatic", "auto", "Applied when a person applies their plan"),
    ("approved", "approved, not applied", "go", "Decided; memory has not changed yet"),
    ("trouble", "stale or failed", "warn", "The world moved, or the database refused"),
)


def desk(request: HttpRequest) -> dict[str, Any]:
    """What the front page shows. A fixed number of queries, each of them capped."""
    reach = Reach.of(request)
    mine = Operation.objects.filter(scope__in=reach.scopes)
    plans = list(visible_plans(reach).order_by("-pk")[:NEXT])
    waiting = ordered(part("waiting", mine).select_related("scope"))[:NEXT]
    return {
        "tiles": [
            _tile(show, label, tone, hint, part(show, mine).order_by()[: COUNTED + 1].count())
            for show, label, tone, hint in TILES
        ],
        "next": rows_of(list(waiting)),
        "plans": summaries(plans, reach=reach),
        "sizes": _sizes(reach),
        "figures": figures(request, reach=reach),
        "may_review": reach.may(REVIEW),
        "may_apply": reach.may(APPLY),
        "may_plan": reach.may(MAKE),
        "reads": reach.may("consolidation.view_operation"),
    }


def _tile(show: str, label: str, tone: str, hint: str, count: int) -> Tile:
    shown = f"{COUNTED:,}+" if count > COUNTED else f"{count:,}"
    return Tile(label=label, count=shown, any=count > 0, show=show, tone=tone, hint=hint)


_COUNTS: Final = """
SELECT s.id,
       (SELECT count(*) FROM (SELECT 1 FROM observations_observation o
                              WHERE o.scope_id = s.id AND o.status = 'active' LIMIT %(sized)s) a),
       (SELECT count(*) FROM (SELECT 1 FROM consolidation_operation p
                              WHERE p.scope_id = s.id AND p.status = 'needs_human' LIMIT %(sized)s) b)
FROM unnest(%(ids)s::bigint[]) AS s (id)
"""


def _sizes(reach: Reach) -> list[Size]:
    """The first scopes by name with their current rows, counted from the index up to SIZED. Three queries."""
    scopes = list(reach.scopes.order_by("name")[:SCOPES])
    paused = set(Pause.objects.filter(scope__in=[row.pk for row in scopes]).values_list("scope_id", flat=True))
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS, {"ids": [row.pk for row in scopes], "sized": SIZED + 1})
        counted = {pk: (active, waiting) for pk, active, waiting in cursor.fetchall()}
    largest = max((active for active, _ in counted.values()), default=0) or 1
    return [
        Size(
            pk=row.pk,
            name=visible(row.name),
            active=_count(counted[row.pk][0]),
            waiting=_count(counted[row.pk][1]) if counted[row.pk][1] else "",
            share=max(1, round(100 * counted[row.pk][0] / largest)) if counted[row.pk][0] else 0,
            held=row.held_at is not None,
            paused=row.pk in paused,
        )
        for row in scopes
    ]


def _count(number: int) -> str:
    return f"{SIZED:,}+" if number > SIZED else f"{number:,}"
