"""What a worker does for the review: planning, applying what was approved, and looking whether the invariants hold.

Planning runs only where a schedule was enabled or a person asked. A schedule never applies, but where a policy says so
(R94).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from celery import Task, shared_task
from django.contrib.auth.models import User
from django.db import IntegrityError, connection

from consolidation import invariants, planner, rollout, runner, triggering
from consolidation.models import Pause, Plan, Policy
from consolidation.operations import plan as plan_label
from consolidation.review import Refused
from consolidation.runner import Outcome
from observations import outbox
from observations.models import Scope, database_now

PLAN_SCOPE: Final = "plan_scope"
APPLY_PLAN: Final = "apply_plan"
SCHEDULE: Final = "schedule"
SEEN: Final = "seen"  # in a plan's figures: how its scope stood just before it was read
PLANNED_AGAIN_AFTER = timedelta(days=7)  # a quiet scope too: retention and first uses need no change of a row

VERIFY: Final = "consolidation.tasks.verify"

log = logging.getLogger(__name__)
Seen = Mapping[str, int]


class Unfinished(Exception):
    """Not every item of the plan could be applied; the rest is tried again."""


# --- planning -------------------------------------------------------------------------------------------------------


@shared_task(ignore_result=True)
def plan_all() -> str:
    """Have every scope planned that changed since its last scheduled plan, unless its policy says that it is planned by
    hand or by its records. Writes outbox rows only; harmless when sent twice.
    """
    if Pause.standing():
        return "paused"
    now = database_now()
    window = f"{now:%Y-%m-%dT%H}"
    changed = Scope.objects.filter(pk__in=changed_scopes(older_than=PLANNED_AGAIN_AFTER), pause=None)
    scopes = [scope.pk for scope in triggering.by_schedule(scopes=changed) if not scope.held(now=now)]
    outbox.enqueue_in_scopes(task=PLAN_SCOPE, scope_ids=scopes, key=SCHEDULE, payload={"window": window})
    return f"{len(scopes)} scopes"


@shared_task(ignore_result=True)
def plan_due() -> str:
    """Have the scopes planned that gained as many records as their policy asks for (R33). Writes outbox rows only; a
    scope with one number of records is planned once.
    """
    due = triggering.due_by_records(now=database_now())
    for pk, records in triggering.counted(scope_ids=due).items():
        outbox.enqueue(task=PLAN_SCOPE, scope_id=pk, key=SCHEDULE, payload={"window": f"records {records}"})
    return f"{len(due)} scopes"


@shared_task(ignore_result=True)
def plan_scope(scope_id: int, window: str) -> str:
    """Plan one scope for one window (at most 40 characters); of any number of deliveries one makes the plan (C17)."""
    return outbox.perform(task=PLAN_SCOPE, scope_id=scope_id, key=SCHEDULE, payload={"window": window})


@outbox.handles(PLAN_SCOPE)
def _plan_scope(job: outbox.Job) -> str:
    scope, window = Scope.objects.get(pk=job.scope), job.word("window")
    if _planned(scope, window):
        return outbox.ALREADY_DONE
    seen = standing(scope_id=scope.pk).get(scope.pk, {})
    try:
        made = planner.plan(scopes=[scope], pattern=scope.name, by=SCHEDULE, trigger=SCHEDULE, window=window)
    except Refused as refusal:
        raise outbox.NotYet("everything is paused") from refusal
    except IntegrityError:
        if _planned(scope, window):  # another delivery stored it first: one plan per (pattern, window)
            return outbox.ALREADY_DONE
        raise
    # Read before the planner's snapshot: what was committed in between counts as unseen, and is planned again.
    Plan.objects.filter(pk=made.pk).update(figures={**made.figures, SEEN: dict(seen)})
    return plan_label(made.pk)


def _planned(scope: Scope, window: str) -> bool:
    return bool(window) and Plan.objects.filter(pattern=scope.name, window=window).exists()


# Every change of memory adds a row or raises a version by one and nothing is ever deleted, so these counts grow with
# each change that becomes visible, in whatever order the writers commit. A sequence or a time would miss a late commit
# (M2).
_STANDING = """
SELECT o.scope_id, o.rows, o.versions, coalesce(e.vectors, 0) FROM (SELECT scope_id, count(*) AS rows, sum(version) AS
versions FROM observations_observation WHERE %(scope)s::bigint IS NULL OR scope_id = %(scope)s GROUP BY scope_id) o LEFT
JOIN (SELECT scope_id, count(*) AS vectors FROM observations_embedding WHERE vector IS NOT NULL AND (%(scope)s::bigint
IS NULL OR scope_id = %(scope)s) GROUP BY scope_id) e USING (scope_id)
"""


def standing(*, scope_id: int | None = None) -> dict[int, Seen]:
    """How every scope with memory (or one) stands now: figures that differ after any change a planner could see. Two
    queries.
    """
    policies = Policy.objects.order_by("-updated_at").values_list("updated_at", flat=True)
    newest = int(policies[0].timestamp() * 1_000_000) if policies else 0
    with connection.cursor() as cursor:
        cursor.execute(_STANDING, {"scope": scope_id})
        rows = cursor.fetchall()
    return {
        scope: {"rows": n, "versions": int(versions), "vectors": vectors, "policies": len(policies), "policy": newest}
        for scope, n, versions, vectors in rows
    }


def changed_scopes(*, older_than: timedelta) -> list[int]:
    """Ids of the scopes that moved since their last scheduled plan, had none, or had it longer ago than that. Five
    queries.
    """
    since = database_now() - older_than
    plans = Plan.objects.filter(trigger=SCHEDULE, created_at__gt=since).exclude(state=Plan.State.FAILED)
    last = dict(plans.order_by("pattern", "-id").distinct("pattern").values_list("pattern", f"figures__{SEEN}"))
    names = dict(Scope.objects.values_list("pk", "name"))
    return [pk for pk, seen in standing().items() if last.get(names[pk]) != seen]


# --- applying -------------------------------------------------------------------------------------------------------


@shared_task(bind=True, ignore_result=True)
def apply_plan(self: Task[Any, Any], plan_id: int, by: str, confirmed: bool = False) -> str:
    """Apply a plan's automatic and approved items in the name of the person who asked; items done before stay as they
    are.
    """
    if getattr(self.request, "periodic_task_name", None):
        return "refused: nothing that writes memory runs from the schedule; see apply_unattended"
    payload: dict[str, int | str] = {"plan": plan_id, "by": by, "confirmed": int(confirmed)}
    return outbox.perform(task=APPLY_PLAN, scope_id=None, key=plan_label(plan_id), payload=payload)


@outbox.handles(APPLY_PLAN)
def _apply_plan(job: outbox.Job) -> str:
    by, plan = job.word("by"), Plan.objects.get(pk=job.number("plan"))
    if not by or User.objects.filter(username=by, is_active=False).exists():
        raise outbox.Hopeless("the person who asked may not apply plans any more")
    try:
        results = rollout.apply_plan(plan=plan, by=by, confirmed=bool(job.payload.get("confirmed")))
    except Refused as refusal:
        raise outbox.Hopeless(str(refusal)) from refusal
    counts = Counter(result.outcome for result in results)
    if counts[Outcome.FAILED]:
        raise Unfinished
    return ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items())) or outbox.ALREADY_DONE


@shared_task(ignore_result=True)
def apply_unattended() -> str:
    """Apply the newest scheduled plan of every scope whose policy allows it. No schedule holds this until a person adds
    it.

    The rollout refuses it for scopes still in their trial, over the blast radius, on hold or paused (R94, R116).
    """
    plans = Plan.objects.filter(trigger=SCHEDULE).exclude(state=Plan.State.FAILED)
    counts: Counter[str] = Counter()
    for plan in plans.order_by("pattern", "-id").distinct("pattern"):
        if not Policy.objects.effective(scope=plan.pattern).unattended:
            continue
        try:
            counts.update(str(result.outcome) for result in rollout.apply_unattended(plan=plan))
        except Refused:
            counts["plans refused"] += 1
    return ", ".join(f"{number} {what}" for what, number in sorted(counts.items())) or "no scope allows it"


@outbox.handles(runner.ERASE_PRUNED)
def _erase_pruned(job: outbox.Job) -> str:
    try:
        erased = runner.erase_pruned(scope_id=job.scope, operation_id=job.number("operation"))
    except Refused as refusal:
        raise outbox.NotYet(str(refusal)) from refusal
    return f"{erased} rows erased" if erased else outbox.ALREADY_DONE


# --- housekeeping ---------------------------------------------------------------------------------------------------


@shared_task(ignore_result=True)
def verify() -> str:
    """Look whether the invariants hold (I1-I23, those a query can see). /healthz says which do not; nothing is
    repaired.
    """
    broken = invariants.check()
    for found in broken:
        log.error("invariant %s does not hold: %s (%s)", found.id, found.sentence, ", ".join(found.rows))
    outbox.note_run(task=VERIFY, error=", ".join(found.id for found in broken))
    return f"{len(broken)} broken"
