"""When a scope is planned though nobody asked: at the times of the schedule, after so many records, or never (R33)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

from django.db import connection

from consolidation.models import Pause, Policy
from consolidation.operations import Json
from consolidation.policy import Policy as Rules
from consolidation.policy import PolicyError, Trigger, most_specific
from observations.models import Scope

COUNTED: Final = (
    "counted"  # in a plan's figures: scope id -> observations and episodes in the snapshot it was made from
)


def by_schedule(*, scopes: Iterable[Scope]) -> list[Scope]:
    """Those that an enabled schedule plans: whose policy says so, or of which no policy says when. One query.

    Somebody enabled the schedule for what nobody spoke about; a policy that says "by hand" or "after so many records"
    takes its scopes out. One that cannot be read stays in, so that its fault is shown on a plan.
    """
    spoken = _Spoken()
    return [scope for scope in scopes if spoken.trigger(scope.name) in (None, Trigger.SCHEDULE)]


def due_by_records(*, now: datetime) -> list[int]:
    """Ids of the scopes with the trigger RECORDS that gained as many observations and episodes as their policy asks for
    since the last plan that covered them. Five queries; two where no policy has that trigger.

    Counts are compared, not times: a row that was written before the plan and committed after it is new (M2). Scopes on
    hold or paused are left out.
    """
    spoken = _Spoken()
    if Trigger.RECORDS not in spoken.triggers() or Pause.standing():
        return []
    asked: dict[int, int] = {}
    for scope in Scope.objects.filter(pause=None):
        rules = spoken.rules(scope.name)
        if rules is not None and rules.trigger is Trigger.RECORDS and not scope.held(now=now):
            asked[scope.pk] = rules.every_records
    have, had = counted(scope_ids=asked), _planned(asked)
    return sorted(pk for pk, enough in asked.items() if have[pk] - had.get(pk, 0) >= enough)


class _Spoken:
    """What the stored policies say, read once."""

    def __init__(self) -> None:
        self._bodies: dict[str, Mapping[str, Json]] = dict(Policy.objects.values_list("pattern", "body"))
        self._read: dict[str, Rules | None] = {}

    def rules(self, scope: str) -> Rules | None:
        """The policy that holds for a scope; None where there is none, or it cannot be read."""
        pattern = most_specific(patterns=self._bodies, scope=scope)
        return None if pattern is None else self._rules(pattern)

    def trigger(self, scope: str) -> Trigger | None:
        """What the policy of a scope says of when it is planned; None where it says nothing or cannot be read."""
        pattern = most_specific(patterns=self._bodies, scope=scope)
        rules = self._rules(pattern) if pattern is not None else None
        return rules.trigger if rules is not None and "trigger" in self._bodies[pattern or ""] else None

    def triggers(self) -> set[Trigger]:
        """All that are in use."""
        return {rules.trigger for pattern in self._bodies if (rules := self._rules(pattern)) is not None}

    def _rules(self, pattern: str) -> Rules | None:
        if pattern not in self._read:
            try:
                self._read[pattern] = Rules.from_dict(self._bodies[pattern])
            except PolicyError:  # said by the system check and by every plan
                self._read[pattern] = None
        return self._read[pattern]


# --- counting ---------------------------------------------------------------------------------------------------------

# Nothing is ever deleted, so a scope's count only grows, and the largest one a plan saw is that of the last plan.
_COUNT: Final = """
SELECT wanted.id, (SELECT count(*) FROM observations_observation o WHERE o.scope_id = wanted.id)
                + (SELECT count(*) FROM observations_episode e WHERE e.scope_id = wanted.id)
FROM unnest(%(ids)s::bigint[]) AS wanted (id)
"""
_LAST: Final = """
SELECT seen.key::bigint, max(seen.value::bigint) FROM consolidation_plan p
CROSS JOIN LATERAL jsonb_each_text(p.figures -> %(counted)s) AS seen (key, value)
WHERE (p.scope_id = ANY (%(ids)s::bigint[]) OR p.scope_id IS NULL) AND seen.key = ANY (%(keys)s::text[]) GROUP BY 1
"""


def counted(*, scope_ids: Collection[int]) -> dict[int, int]:
    """How many observations and episodes of any status each scope holds, as this transaction sees it. One query.

    A planner stores it with the plan (COUNTED), from its own snapshot and for the scopes it planned.
    """
    return dict(_pairs(_COUNT, scope_ids))


def _planned(scope_ids: Collection[int]) -> dict[int, int]:
    """The same as the last plan of each scope saw it; scopes that no plan covered are left out. One query."""
    return dict(_pairs(_LAST, scope_ids))


def _pairs(query: str, scope_ids: Collection[int]) -> Iterator[tuple[int, int]]:
    ids = sorted(scope_ids)
    if not ids:
        return
    with connection.cursor() as cursor:
        cursor.execute(query, {"ids": ids, "keys": list(map(str, ids)), "counted": COUNTED})
        yield from cursor.fetchall()
