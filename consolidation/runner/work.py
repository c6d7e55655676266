"""One operation under lock: what apply, undo and the end of a prune look at, and how they speak of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from django.db import connection

from consolidation import review
from consolidation.accuracy import Demoted
from consolidation.models import Operation, OperationSource, chosen, waits
from consolidation.operations import OF_EPISODES, Json
from consolidation.policy import Policy as Rules
from consolidation.policy import PolicyError
from observations import store
from observations.models import Episode, Event, Observation


class Outcome(StrEnum):
    """What became of one attempt to apply or undo."""

    APPLIED = "applied"
    UNDONE = "undone"
    ALREADY = "already"  # it was done before: nothing changed
    STALE = "stale"  # its sources or the policy changed since planning: nothing of it was written
    REFUSED = "refused"  # not approved, expired, held, paused, or something was built on top
    FAILED = "failed"  # the database refused it: nothing of it was written


@dataclass(frozen=True, slots=True)
class Result:
    """One attempt, for a person to read."""

    operation: str
    kind: str
    outcome: Outcome
    sentence: str


@dataclass(frozen=True, slots=True)
class Work:
    """One operation under lock, with everything apply and undo look at."""

    operation: Operation
    sources: list[OperationSource]
    rows: dict[int, Observation]  # its observations: sources and derived row
    policy: Rules
    now: datetime  # the database's clock, read when the lock was had
    held: str  # why nothing may be done in its scope now; empty: nothing stands against it
    turns: dict[int, Episode] = field(default_factory=dict)  # its episodes
    name_taken: bool = False  # a row that it did not write bears the name of its product
    demoted: str = ""  # why its band may not decide alone; empty: it may

    @property
    def of_episodes(self) -> bool:
        """Whether the sources are episodes."""
        return self.operation.kind in OF_EPISODES

    @property
    def ids(self) -> list[int]:
        """The sources' ids, in the operation's order."""
        return [source.row_id for source in self.sources]

    def standing(self) -> dict[int, Observation] | dict[int, Episode]:
        """The sources as they stand, by id (the derived row among them when they are observations)."""
        return self.turns if self.of_episodes else self.rows


@dataclass(frozen=True, slots=True)
class Effect:
    """What carrying out one kind did: the row it wrote, and the sources it moved or gave a period."""

    moved: tuple[int, ...]  # these left the reads, and are consumed
    derived: int | None = None
    dated: tuple[int, ...] = ()  # these stay, with a period of validity

    @property
    def touched(self) -> frozenset[int]:
        """Sources that stand one version higher than before."""
        return frozenset(self.moved) | frozenset(self.dated)


def lock(operation: Operation, *, cause: str) -> Work:
    """Take every lock, in the one order that cannot deadlock, and read what stands under it."""
    now = store.lock_scope(scope_id=operation.scope_id, exclusive=True, cause=f"{cause} {stamp(operation)}")
    locked = Operation.objects.select_for_update(of=("self",)).select_related("scope").get(pk=operation.pk)
    beside = around(locked)
    sources = review.sources_of(locked)
    ids = [source.row_id for source in sources]
    of_episodes = locked.kind in OF_EPISODES
    watched = ([] if of_episodes else ids) + ([locked.derived_id] if locked.derived_id else [])
    return Work(
        operation=locked,
        sources=sources,
        rows=store.lock_rows(scope_id=locked.scope_id, ids=watched) if watched else {},
        policy=beside.policy,
        now=now,
        held=waits(scope=locked.scope, now=now, paused=beside.paused),
        turns=store.lock_episodes(scope_id=locked.scope_id, ids=ids) if of_episodes else {},
        name_taken=beside.name_taken,
        demoted=beside.demoted,
    )


@dataclass(frozen=True, slots=True)
class Around:
    """What stands around an operation under its scope's lock."""

    policy: Rules
    paused: str  # by whom, of the scope or of everything; empty: nobody
    name_taken: bool
    demoted: str  # why its band may not decide alone; empty: it may


# As Policy.objects.effective, Pause.standing, sampling.demoted and a look for the name: through the ORM, those take as
# long as all that a merge writes.
_AROUND: Final = """
SELECT (SELECT jsonb_agg(jsonb_build_array(pattern, version, body)) FROM consolidation_policy),
  (SELECT by FROM consolidation_pause WHERE scope_id IS NULL OR scope_id = %(scope)s
   ORDER BY scope_id NULLS FIRST LIMIT 1),
  EXISTS (SELECT 1 FROM observations_observation WHERE scope_id = %(scope)s AND external_id = %(name)s),
  (SELECT jsonb_build_array(judged, wrong, lower, "limit") FROM consolidation_demotion
   WHERE (kind, rule, band) = (%(kind)s, %(rule)s, %(band)s) AND lifted_at IS NULL)
"""


def around(operation: Operation) -> Around:
    """Raises review.Refused where the policy cannot be read. One query."""
    with connection.cursor() as cursor:
        own = {"kind": operation.kind, "rule": operation.rule, "band": operation.band}
        cursor.execute(_AROUND, {"scope": operation.scope_id, "name": stamp(operation), **own})
        policies, paused, name_taken, fell = cursor.fetchone() or ("", "", True, "")
    stored = {pattern: (version, body) for pattern, version, body in json.loads(policies or "[]")}
    try:
        rules = chosen(stored, scope=operation.scope.name).rules
    except PolicyError as fault:
        raise review.unreadable(operation.scope.name, fault) from fault
    demoted = Demoted(operation.kind, operation.rule, operation.band, *json.loads(fell)).sentence if fell else ""
    return Around(rules, paused or "", name_taken, demoted)


def stamp(operation: Operation) -> str:
    """How rows name the operation that made them: its id and generation."""
    return f"{operation.op_id}#{operation.generation}"


def free_name(work: Work) -> str:
    """The external id of the row an operation writes: its stamp, unless an import or a writer has taken that already.

    A store that was exported and imported again makes the same ids, beside the rows of its former operations. One query
    when it is taken, else none.
    """
    name = stamp(work.operation)
    if not work.name_taken:
        return name
    others = [f"{name}~{number}" for number in range(2, 100)]
    rows = Observation.objects.filter(scope_id=work.operation.scope_id, external_id__in=others)
    taken = set(rows.values_list("external_id", flat=True))
    return next((other for other in others if other not in taken), name)


def record(operation: Operation, action: str, by: str, detail: dict[str, Json]) -> None:
    """Append the event of a change of state; the last statement of its transaction. One query."""
    Event.objects.append(
        scope_id=operation.scope_id,
        action=action,
        actor=by,
        subject=operation.op_id,
        generation=operation.generation,
        detail=detail,
    )


def result(operation: Operation, outcome: Outcome, sentence: str) -> Result:
    """One attempt's result, for a person to read."""
    return Result(operation=operation.op_id, kind=operation.kind, outcome=outcome, sentence=sentence)
