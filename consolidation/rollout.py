"""Whole plans: applied item by item, undone in reverse order, and unattended only where people have earned it (R94,
R116).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.db import OperationalError
from django.db.models import Count, Min, Q, QuerySet

from consolidation import probing, review, runner
from consolidation.models import Operation, OperationSource, Pause, Plan, PlanItem, ProbeRun
from consolidation.operations import Approval, State, visible
from consolidation.probes import Impact, Numbers
from consolidation.review import Refused
from consolidation.runner import Outcome, Result
from observations.models import Event, Observation, Scope, database_now

Progress = Callable[[Result], None]
_REASONS = 5  # why something was skipped, in a summary
TRIAL_DAYS = 7  # a scope's plans are applied by people for at least this long before any schedule may (R94)


class TooWide(Refused):
    """The plan would touch more of a scope than one confirmation covers; the text gives the figures."""


class NotUnattended(Refused):
    """No schedule may apply this plan; the text says what is missing and that a named person may override it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What became of each operation, and of recall@5, distinct@5 and the size of the store (R115, R117)."""

    results: list[Result]
    impact: Impact


def apply_measured(
    *,
    plan: Plan,
    by: str,
    confirmed: bool = False,
    progress: Progress | None = None,
    scopes: Collection[Scope] | None = None,
) -> Applied:
    """`apply_plan`, with the probe suites of its scopes run before and after (R112). Raises what that raises, before
    anything is measured.
    """
    operations = _confirmed(plan, scopes, confirmed=confirmed)
    waiting = {row.scope for row in operations if row.status != State.APPLIED}
    seen = waiting or _scopes(plan, scopes)  # where nothing waits, what is measured before holds after
    before = probing.numbers(scopes=seen, by=by, plan=plan, cause=ProbeRun.Cause.BEFORE)
    return _after(
        before, waiting, plan, by, lambda: _each(operations, lambda one: runner.apply(operation=one, by=by), progress)
    )


def apply_one(*, operation: Operation, by: str) -> Applied:
    """Apply one operation, with the probe suite of its scope run before and after."""
    scopes = [operation.scope]
    before = probing.numbers(scopes=scopes, by=by, plan=None, cause=ProbeRun.Cause.BEFORE)
    return _after(before, scopes, None, by, lambda: [runner.apply(operation=operation, by=by)])


def _scopes(plan: Plan, among: Collection[Scope] | None) -> list[Scope]:
    """The scopes that a plan holds items of. One query."""
    scopes = list(Scope.objects.filter(operations__plan_items__plan=plan).distinct())
    return scopes if among is None else [scope for scope in scopes if scope in among]


def _after(
    before: tuple[Numbers, ...], waiting: Collection[Scope], plan: Plan | None, by: str, act: Callable[[], list[Result]]
) -> Applied:
    results = act()
    changed = any(result.outcome == Outcome.APPLIED for result in results)
    after = before
    if changed:
        after = probing.numbers(scopes=waiting, by=by, plan=plan, cause=ProbeRun.Cause.AFTER)
    return Applied(results=results, impact=Impact(before=before, after=after))


def apply_plan(
    *,
    plan: Plan,
    by: str,
    confirmed: bool = False,
    progress: Progress | None = None,
    scopes: Collection[Scope] | None = None,
) -> list[Result]:
    """Apply a plan's automatic and approved items, one transaction each, a result per item; what was done before is
    `already`. `scopes` leaves the plan's other items alone.

    Raises Refused while everything is paused, and TooWide unless `confirmed`. A stale or failed item stops no other
    one.
    """
    operations = _confirmed(plan, scopes, confirmed=confirmed)
    return _each(operations, lambda operation: runner.apply(operation=operation, by=by), progress)


def _confirmed(plan: Plan, scopes: Collection[Scope] | None, *, confirmed: bool) -> list[Operation]:
    """What may be applied now. Raises Refused and TooWide."""
    if pause := Pause.standing():
        raise Refused(f"Everything is paused by {pause.by}: nothing is applied until `manage.py memory resume`.")
    operations = _appliable(plan, scopes)
    if not confirmed and (wide := width(plan=plan, scopes=scopes)):
        raise TooWide(wide)
    return operations


def undo_plan(
    *, plan: Plan, by: str, progress: Progress | None = None, scopes: Collection[Scope] | None = None
) -> list[Result]:
    """Undo a plan's applied items, the last applied first, a result per item; what is blocked is left and said.
    `scopes` leaves the plan's other items alone.
    """
    applied = Operation.objects.filter(plan_items__plan=plan, status=State.APPLIED)
    if scopes is not None:
        applied = applied.filter(scope__in=scopes)
    ordered = list(applied.select_related("scope").order_by("-applied_at", "-id"))
    return _each(ordered, lambda operation: runner.undo(operation=operation, by=by), progress)


def apply_unattended(*, plan: Plan, by: str = "schedule", override_by: str = "", override_reason: str = "") -> Applied:
    """Apply a plan's automatic items without a person, where the policy says so, the trial is over, and recall is
    measured and has not fallen (R94, R112, R116).

    A named person may override the last three, with a reason; that is an event. Raises NotUnattended and, over the
    blast radius, TooWide: unattended application never goes past the cap, whoever overrides.
    """
    scopes = _scopes(plan, None)
    if forbidden := next((scope for scope in scopes if not review.policy_of(scope.name).unattended), None):
        raise NotUnattended(f"The policy of {forbidden.name} does not allow unattended application.")
    named = override_by if override_reason.strip() else ""
    missing = {scope: trial(scope=scope) or probing.fallen(scope=scope) for scope in scopes}
    _refuse(missing, unless=named)
    if wide := width(plan=plan):
        raise TooWide(wide)
    before = probing.numbers(scopes=scopes, by=by, plan=plan, cause=ProbeRun.Cause.BEFORE)
    unknown = {each.scope: f"recall: not measured, it {each.why_not}" for each in before if each.figures is None}
    missing = {scope: "; ".join(filter(None, (what, unknown.get(scope.name)))) for scope, what in missing.items()}
    _refuse(missing, unless=named)
    for scope, what in missing.items():
        if what:
            detail = {"missing": what, "reason": override_reason[:300]}
            Event.objects.append(
                scope_id=scope.pk, action="unattended_override", actor=named, subject=str(plan), detail=detail
            )
    automatic = [row for row in _appliable(plan) if row.approval == Approval.AUTO and row.status == State.PLANNED]
    return _after(
        before, scopes, plan, by, lambda: _each(automatic, lambda one: runner.apply(operation=one, by=by), None)
    )


def _refuse(missing: Mapping[Scope, str], *, unless: str) -> None:
    """Raises NotUnattended where a scope lacks something and no named person answers for it."""
    for scope, what in missing.items():
        if what and not unless:
            raise NotUnattended(f"{scope.name} is not ready for unattended application: {what}.")


def skip_reasons(*, plan: Plan, scopes: Collection[Scope] | QuerySet[Scope] | None = None) -> list[str]:
    """Why rules skipped items of a plan, each with how often, the most frequent first (R117). One query."""
    skipped = Operation.objects.filter(plan_items__plan=plan, status=State.SKIPPED)
    if scopes is not None:
        skipped = skipped.filter(scope__in=scopes)
    counts = Counter(skipped.values_list("skipped_reason", flat=True)).most_common()
    lines = [f"{number} skipped: {visible(reason)}" for reason, number in counts[:_REASONS]]
    more = sum(number for _, number in counts[_REASONS:])
    return [*lines, f"{more} more skipped (`manage.py consolidate plan --explain` lists them)"] if more else lines


def trial(*, scope: Scope) -> str:
    """What a scope still lacks before a schedule may apply its plans; empty when nothing (R94, R116). Two queries."""
    plans = Plan.objects.filter(items__scope=scope)
    first = plans.aggregate(first=Min("created_at"))["first"]
    if first is None or database_now() - first < timedelta(days=TRIAL_DAYS):
        return f"its first plan is less than {TRIAL_DAYS} days old"
    unread = Count("items", filter=Q(items__scope=scope, items__opened_at=None))
    if not plans.annotate(unread=unread).filter(unread=0).exists():
        return "no plan has had every item opened by a person"
    return ""


def width(*, plan: Plan, scopes: Collection[Scope] | None = None) -> str:
    """Why the plan (or its part in `scopes`) needs a second confirmation, with its figures per scope; empty when it is
    narrow (DESIGN 4, blast radius).
    """
    touched = (
        OperationSource.objects.filter(
            operation__in=[row.pk for row in _appliable(plan, scopes) if row.status != State.APPLIED]
        )
        .values_list("scope_id", "scope__name")
        .annotate(rows=Count("id"))
    )
    wide = [line for scope_id, name, rows in touched if (line := _wide(scope_id, name, rows))]
    return " ".join(wide)


def _wide(scope_id: int, name: str, rows: int) -> str:
    size = Observation.objects.active().filter(scope_id=scope_id).count()
    policy = review.policy_of(name)
    limit = max(policy.blast_floor, int(size * policy.blast_share))
    if rows <= limit:
        return ""
    return f"Applying touches {rows} of {size} records of {name}, over the limit of {limit}: confirm a second time."


def _appliable(plan: Plan, scopes: Collection[Scope] | None = None) -> list[Operation]:
    """The plan's items (of `scopes`) that are done, or may be done now, in the plan's order. One query."""
    items = PlanItem.objects.filter(plan=plan).filter(
        Q(operation__status__in=[State.APPLIED, State.APPROVED])
        | Q(operation__status=State.PLANNED, operation__approval=Approval.AUTO)
    )
    if scopes is not None:
        items = items.filter(scope__in=scopes)
    return [item.operation for item in items.select_related("operation__scope").order_by("position")]


def _each(
    operations: Iterable[Operation], act: Callable[[Operation], Result], progress: Progress | None
) -> list[Result]:
    """One result per operation. A database that cannot go on ends the run with a failed result: the rest is untouched
    (R56).
    """
    results = []
    for operation in operations:
        try:
            result = act(operation)
        except OperationalError as error:
            cause = type(error.__cause__).__name__
            sentence = f"The database could not go on ({cause}); nothing of it was written. Run it again."
            results.append(Result(operation.op_id, operation.kind, Outcome.FAILED, sentence))
            break
        results.append(result)
        if progress:
            progress(result)
    return results
