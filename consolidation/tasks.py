"""What a worker does for the review: planning, applying what was approved, and looking whether the invariants hold.

Planning runs only where a schedule was enabled or a person asked. A schedule never applies, but where a policy says so
(R94).
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final

from celery import Task, shared_task
from django.contrib.auth.models import User
from django.db import IntegrityError, connection
from django.db.models import Count, Max

from consolidation import invariants, planner, probing, projecting, requests, rollout, runner, sampling, triggering
from consolidation.models import BulkDecision, Calibration, Pause, Plan, Planning, Policy, ProbeRun, Suite
from consolidation.operations import plan as plan_label
from consolidation.review import Refused, ageing, bulk
from consolidation.runner import Outcome
from observations import ingest, outbox
from observations.llm import NoModel
from observations.models import Scope, database_now

PLAN_SCOPE: Final = "plan_scope"
PLAN_NOW: Final = "plan_now"
APPLY_PLAN: Final = "apply_plan"
REVIEW_RETIRE: Final = "review_retire"  # written by the store where a person has to decide
REVIEW_CONTRADICTION: Final = "review_contradiction"
REVIEW_FORGET: Final = "review_forget"
SCHEDULE: Final = "schedule"
ADMIN: Final = "admin"
SEEN: Final = "seen"  # in a plan's figures: how its scope stood just before it was read
PLANNED_AGAIN_AFTER = timedelta(days=7)  # a quiet scope too: retention and first uses need no change of a row

TELL_OVERDUE: Final = "tell_overdue"
_A_WHILE: Final = 120.0  # seconds of one turn at what may take longer: a worker's task ends after ten minutes

_MOST_ASKED: Final = 60  # questions to the model per kind: a worker's task ends after ten minutes, whatever it does
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
        made = planner.plan(
            scopes=[scope],
            pattern=scope.name,
            by=SCHEDULE,
            trigger=SCHEDULE,
            window=window,
            most_asked=_MOST_ASKED,
        )
    except Refused as refusal:
        raise outbox.NotYet("everything is paused") from refusal
    except IntegrityError:
        if _planned(scope, window):  # another delivery stored it first: one plan per (pattern, window)
            return outbox.ALREADY_DONE
        raise
    # Read before the planner's snapshot: what was committed in between counts as unseen, and is planned again.
    Plan.objects.filter(pk=made.pk).update(figures={**made.figures, SEEN: dict(seen)})
    return plan_label(made.pk)


@outbox.handles(PLAN_NOW)
def _plan_now(job: outbox.Job) -> str:
    """A pass that a person asked for in the admin: one plan, however often it is delivered, and its progress."""
    asked = Planning.objects.get(pk=job.number("planning"))
    if asked.finished_at:
        return outbox.ALREADY_DONE
    row, window = Planning.objects.filter(pk=asked.pk), str(asked)
    row.update(started_at=database_now(), done=0)
    scopes = Scope.objects.filter(pk__in=asked.scopes)
    made = Plan.objects.filter(pattern=asked.pattern, window=window).first()  # its worker died before it said so
    try:
        with _told_to(asked) as told:
            made = made or planner.plan(
                scopes=scopes, pattern=asked.pattern, by=asked.by, trigger=ADMIN, window=window, progress=told
            )
    except Refused as refusal:
        row.update(finished_at=database_now(), error=str(refusal)[:300])
        raise outbox.Hopeless(str(refusal)) from refusal
    except Exception as fault:
        if job.attempts >= outbox.MAX_ATTEMPTS:
            row.update(finished_at=database_now(), error=f"It failed {job.attempts} times ({type(fault).__name__}).")
        raise
    row.update(finished_at=database_now(), plan=made)
    return plan_label(made.pk)


@contextmanager
def _told_to(asked: Planning) -> Iterator[Callable[[str], None]]:
    """Where a pass writes how far it is: a connection of its own, for the planner reads in a transaction that may write
    nothing.
    """
    beside = connection.copy()

    def told(what: str) -> None:
        with beside.cursor() as cursor:
            cursor.execute(_TOLD, [what[:200], asked.pk])

    try:
        yield told
    finally:
        beside.close()


_TOLD: Final = "UPDATE consolidation_planning SET done = done + 1, doing = %s WHERE id = %s"


def _planned(scope: Scope, window: str) -> bool:
    return bool(window) and Plan.objects.filter(pattern=scope.name, window=window).exists()


# Every change of memory adds a row or raises a version by one and nothing is ever deleted, so these counts grow with
# each change that becomes visible, in whatever order the writers commit. A sequence or a time would miss a late commit
# (M2). What may be taken back counts again when it is. A refusal changes no row, but what waited for it may follow.
_STANDING = """
SELECT scope_id, name, figure
FROM (SELECT scope_id, count(*) AS n, sum(version) AS v FROM observations_observation {where} GROUP BY scope_id) o,
  LATERAL (VALUES ('rows', n), ('versions', v)) AS f (name, figure)
UNION ALL SELECT scope_id, name, figure
FROM (SELECT scope_id, count(*) AS n, sum(version) AS v FROM observations_episode {where} GROUP BY scope_id) e,
  LATERAL (VALUES ('episodes', n), ('episode versions', v)) AS f (name, figure)
UNION ALL SELECT scope_id, 'vectors', count(vector) FROM observations_embedding {where} GROUP BY scope_id
UNION ALL SELECT scope_id, 'given keys',
  count(*) FILTER (WHERE state IN ('given', 'withdrawn')) + count(*) FILTER (WHERE state = 'withdrawn')
  FROM observations_givenkey {where} GROUP BY scope_id
UNION ALL SELECT scope_id, 'aliases', count(*) + count(removed_at) FROM consolidation_alias {where} GROUP BY scope_id
UNION ALL SELECT scope_id, 'lessons', count(*) + count(withdrawn_at) FROM consolidation_cardinality {where}
  GROUP BY scope_id
UNION ALL SELECT scope_id, 'refusals', count(*) FILTER (WHERE status IN ('rejected', 'distinct'))
  FROM consolidation_operation {where} GROUP BY scope_id
"""
_FIGURES: Final = (
    *("rows", "versions", "episodes", "episode versions", "vectors", "given keys", "aliases", "lessons", "refusals"),
)


def standing(*, scope_id: int | None = None) -> dict[int, Seen]:
    """How every scope with memory (or one) stands now: figures that differ after any change a planner could see. Three
    queries.
    """
    policies = Policy.objects.aggregate(policies=Count("pk"), policy=Max("updated_at"))
    calibrations = Calibration.objects.aggregate(calibrations=Count("pk"), enabled=Count("enabled_at"))
    everywhere = {
        **calibrations,
        "policies": policies["policies"],
        "policy": int(policies["policy"].timestamp() * 1_000_000) if policies["policy"] else 0,
    }
    found: defaultdict[int, dict[str, int]] = defaultdict(lambda: {**dict.fromkeys(_FIGURES, 0), **everywhere})
    with connection.cursor() as cursor:
        where = "" if scope_id is None else "WHERE scope_id = %(scope)s"
        cursor.execute(_STANDING.format(where=where), {"scope": scope_id})
        for scope, name, figure in cursor.fetchall():
            found[scope][name] = int(figure)
    return {scope: figures for scope, figures in found.items() if figures["rows"] or figures["episodes"]}


def changed_scopes(*, older_than: timedelta) -> list[int]:
    """Ids of the scopes that moved since their last scheduled plan, had none, or had it longer ago than that; and those
    whose last one was not carried to the end, or held questions back on another day. Six queries.
    """
    now = database_now()
    since, midnight = now - older_than, now.replace(hour=0, minute=0, second=0, microsecond=0)
    plans = Plan.objects.filter(trigger=SCHEDULE, created_at__gt=since).exclude(state=Plan.State.FAILED)
    newest = plans.order_by("pattern", "-id").distinct("pattern")
    last = {plan.pattern: plan.figures.get(SEEN) for plan in newest if not _unfinished(plan, midnight)}
    names = dict(Scope.objects.values_list("pk", "name"))
    return [pk for pk, seen in standing().items() if last.get(names[pk]) != seen]


def _unfinished(plan: Plan, midnight: datetime) -> bool:
    """Whether a plan left something to the next one, though nothing changes: a step that failed or was not done to its
    end, or questions over the budget of a day (of UTC) that is over.
    """
    waits = plan.state == Plan.State.PARTIAL or any(item.get("waits") for item in plan.failures)
    return waits or (bool(plan.figures.get("held_back")) and plan.created_at < midnight)


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
        applied = rollout.apply_measured(
            plan=plan,
            by=by,
            confirmed=bool(job.payload.get("confirmed")),
            agreed=job.word("agreed"),
            shown=rollout.unpacked(job.word("shown")),
        )
    except Refused as refusal:
        raise outbox.Hopeless(str(refusal)) from refusal
    for result in applied.results:
        if result.outcome == Outcome.REFUSED:  # nobody is in front of it: the item's page and this say why it was left
            log.warning("%s: %s", plan, result.sentence)
    counts = Counter(result.outcome for result in applied.results)
    _warn_of_a_fall(plan, applied)
    if counts[Outcome.FAILED]:
        raise Unfinished
    return ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items())) or outbox.ALREADY_DONE


def _warn_of_a_fall(plan: Plan, applied: rollout.Applied) -> None:
    """A worker has nobody in front of it: a fall of recall is logged, and refuses what would be applied unattended."""
    for sentence in applied.impact.fell:
        log.warning("%s: %s", plan, sentence)


@outbox.handles(planner.PROJECT)
def _project_plan(job: outbox.Job) -> str:
    """Measure what applying a plan would do; one that falls is shown in red and not applied unattended (R112)."""
    plan = Plan.objects.get(pk=job.number("plan"))
    scopes = Scope.objects.filter(operations__plan_items__plan=plan).distinct()
    try:
        made = projecting.project(plan=plan, by=_asker(job), scopes=list(scopes))
    except Refused as refusal:
        raise outbox.Hopeless(str(refusal)) from refusal
    for row in made:
        if row.fell:
            log.warning("%s would cost recall in scope %s: %s probes lost", plan, row.scope_id, len(row.lost))
    return f"{len(made)} scopes"


@shared_task(ignore_result=True)
def apply_unattended() -> str:
    """Apply the newest scheduled plan of every scope whose policy allows it. No schedule holds this until a person adds
    it.

    The rollout refuses it for scopes still in their trial, whose recall is not measured or has fallen, over the blast
    radius, on hold or paused (R94, R112, R116).
    """
    plans = Plan.objects.filter(trigger=SCHEDULE).exclude(state=Plan.State.FAILED)
    counts: Counter[str] = Counter()
    for plan in plans.order_by("pattern", "-id").distinct("pattern"):
        if not Policy.objects.effective(scope=plan.pattern).unattended:
            continue
        try:
            applied = rollout.apply_unattended(plan=plan)
            counts.update(str(result.outcome) for result in applied.results)
            _warn_of_a_fall(plan, applied)
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


# --- keys -----------------------------------------------------------------------------------------------------------


@shared_task(ignore_result=True)
def keys_due() -> str:
    """Have a model asked for the keys that observations lack, in every scope but those on hold or paused. Its schedule
    is off until a person enables it. Writes outbox rows only; harmless when sent twice.

    It is here and not beside `give_keys`, because the store does not know of pauses.
    """
    if Pause.standing():
        return "paused"
    now = database_now()
    scopes = [scope for scope in Scope.objects.filter(pause=None) if not scope.held(now=now)]
    try:
        asked = ingest.ask_for_keys(scopes=scopes)
    except NoModel as none:
        return f"Nothing is queued: {none}"
    return f"{sum(not one.before for one in asked)} scopes"


# --- probes ---------------------------------------------------------------------------------------------------------


@shared_task(ignore_result=True)
def run_suites() -> str:
    """Have every suite in force asked (R26). Its schedule is off until a person enables it. Writes outbox rows only; a
    suite that waits already is asked once.
    """
    suites = list(Suite.objects.in_force())
    for suite in suites:
        probing.run_later(suite=suite, by=SCHEDULE, cause=ProbeRun.Cause.TASK)
    return f"{len(suites)} suites"


@outbox.handles(probing.RUN_SUITE)
def _run_suite(job: outbox.Job) -> str:
    figures = probing.run_asked(job=job).figures
    for gate in figures.gates:
        log.warning("suite %s: %s", job.number("suite"), gate)
    return f"{figures.probes} probes"


# --- the queue ------------------------------------------------------------------------------------------------------


@outbox.handles(bulk.BULK_DECIDE)
def _bulk_decide(job: outbox.Job) -> str:
    """Go on with one decision over many items; a killed worker's row comes here again, and finds those that wait."""
    asked = BulkDecision.objects.get(pk=job.number("bulk"))
    if bulk.carry_out(bulk=asked, seconds=_A_WHILE):
        raise outbox.Again
    return f"{asked.total} items"


@shared_task(ignore_result=True)
def tell_overdue() -> str:
    """Have reviewers mailed what waits past its age, once per item. Each mail has its own row, which is tried again."""
    return outbox.perform(task=TELL_OVERDUE, scope_id=None, key=TELL_OVERDUE, payload={})


@outbox.handles(TELL_OVERDUE)
def _tell_overdue(job: outbox.Job) -> str:
    told = ageing.tell()
    if told.why:
        log.info("%s overdue items, and nobody is mailed: %s", told.items, told.why)
    return f"{told.told} of {told.items} overdue items are told to {told.people} people"


@outbox.handles(ageing.MAIL_OVERDUE)
def _mail_overdue(job: outbox.Job) -> str:
    return ageing.mail(person=job.number("person"), first=job.number("first"), last=job.number("last"))


@shared_task(ignore_result=True)
def expire_waiting() -> str:
    """Make stale what nobody decided for as long as its policy lets it wait; it never approves. Harmless when sent
    twice.
    """
    return f"{ageing.expire(by=SCHEDULE, seconds=_A_WHILE)} went stale"


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


@shared_task(ignore_result=True)
def measure() -> str:
    """Have people asked about what was applied without a decision and nobody looked at, as after a crash; and take its
    automatic status from every band that is known to be wrong too often. Harmless when sent twice.
    """
    chosen, fell = sampling.choose(), sampling.demote()
    return f"{chosen} to check, {len(fell)} demoted"


# --- what is asked of people ----------------------------------------------------------------------------------------


@outbox.handles(REVIEW_RETIRE)
def _review_retire(job: outbox.Job) -> str:
    scope = Scope.objects.get(pk=job.scope)
    why = job.word("why") or "it is said to hold no longer"
    asked = requests.retire(scope=scope, ids=job.numbers("observations"), by=_asker(job), request=job.key, why=why)
    return f"{len(asked)} asked" if asked else "nothing of it is current any more"


@outbox.handles(REVIEW_CONTRADICTION)
def _review_contradiction(job: outbox.Job) -> str:
    scope, ids = Scope.objects.get(pk=job.scope), [job.number("old"), job.number("new")]
    why = job.word("why") or "a claim from elsewhere says otherwise"
    asked = requests.settle(scope=scope, ids=ids, by=_asker(job), request=job.key, why=why)
    return asked.op_id if asked else "one of the two is not current any more"


@outbox.handles(REVIEW_FORGET)
def _review_forget(job: outbox.Job) -> str:
    scope = Scope.objects.get(pk=job.scope)
    ids = None if job.payload.get("all") else job.numbers("observations")
    asked = requests.forget(scope=scope, ids=ids, by=_asker(job), request=job.key)
    return asked.op_id if asked else "there is nothing left to forget"


def _asker(job: outbox.Job) -> str:
    return job.word("by") or "intake"
