"""Whole plans: applied item by item, undone in reverse order, and unattended only where people have earned it (R94,
R116).
"""

from __future__ import annotations

import hashlib
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType

from django.db import OperationalError, transaction
from django.db.models import Count, Min, Q, QuerySet

from consolidation import probing, projecting, review, runner, sampling
from consolidation.models import Operation, OperationSource, Pause, Plan, PlanItem, ProbeRun, Suite
from consolidation.operations import Approval, State, visible
from consolidation.probes import Impact, Numbers
from consolidation.review import Refused
from consolidation.runner import Outcome, Result
from observations import ingest
from observations.embedding import EmbeddingError
from observations.models import Event, Observation, Scope, database_now

log = logging.getLogger(__name__)

Progress = Callable[[Result], None]
Shown = Mapping[int, str]  # operation -> digest of what whoever confirms was shown of it: the approval's, else its own
_REASONS = 5  # why something was skipped, in a summary
TRIAL_DAYS = 7  # a scope's plans are applied by people for at least this long before any schedule may (R94)


class TooWide(Refused):
    """The plan would touch more of a scope than one confirmation covers; the text gives the figures."""


class SecondWanted(Refused):
    """The plan is confirmed by one person, and the policy wants two; the text says who is asked for, and for what."""


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
    agreed: str = "",
    shown: Shown | None = None,
    progress: Progress | None = None,
    scopes: Collection[Scope] | None = None,
) -> Applied:
    """`apply_plan`, with the probe suites of its scopes run before and after (R112). Raises what that raises, before
    anything is measured.
    """
    taken = _confirmed(plan, scopes, by=by, confirmed=confirmed, agreed=agreed, shown=shown)
    waiting = {row.scope for row in taken.operations if row.status != State.APPLIED}
    seen = waiting or _scopes(plan, scopes)  # where nothing waits, what is measured before holds after
    before = probing.numbers(scopes=seen, by=by, plan=plan, cause=ProbeRun.Cause.BEFORE)
    return _after(before, waiting, plan, by, lambda: _taken_on(taken, by, progress))


def apply_one(*, operation: Operation, by: str) -> Applied:
    """Apply one operation, with the probe suite of its scope run before and after."""
    scopes = [operation.scope]
    before = probing.numbers(scopes=scopes, by=by, plan=None, cause=ProbeRun.Cause.BEFORE)
    return _after(before, scopes, None, by, lambda: _carried_out([operation], by, None))


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
        _put_vectors(waiting)
        after = probing.numbers(scopes=waiting, by=by, plan=plan, cause=ProbeRun.Cause.AFTER)
    return Applied(results=results, impact=Impact(before=before, after=after))


def _put_vectors(scopes: Collection[Scope]) -> None:
    """What was just written is measured as agents will find it, vectors and all: a worker has none of them yet."""
    measured = [suite.scope for suite in Suite.objects.in_force().filter(scope__in=scopes).select_related("scope")]
    try:
        ingest.embed_now(scopes=measured, episodes=False)
    except EmbeddingError as error:
        log.warning("no vectors for what was just applied: %s", error)


def apply_plan(
    *,
    plan: Plan,
    by: str,
    confirmed: bool = False,
    agreed: str = "",
    shown: Shown | None = None,
    progress: Progress | None = None,
    scopes: Collection[Scope] | None = None,
) -> list[Result]:
    """Apply a plan's automatic and approved items, one transaction each, a result per item; what was done before is
    `already`. `scopes` leaves the plan's other items alone. `shown`: what the confirmation covered; any other item is
    left and said, and each is looked at again under its lock (D2). Without it, what stands is applied.

    Raises Refused while everything is paused, TooWide unless `confirmed`, and SecondWanted for the first of two people
    who confirm; `agreed` is what `agree` returned when both had. A stale or failed item stops no other one.
    """
    taken = _confirmed(plan, scopes, by=by, confirmed=confirmed, agreed=agreed, shown=shown)
    return _taken_on(taken, by, progress)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taken:
    """What one confirmation covers of a plan as it stands now."""

    operations: list[Operation]  # done, or may be done now
    left: list[Result]  # a sentence for each other item of those that wait or were shown
    two: bool  # two people agreed on it
    shown: Shown


def _taken_on(taken: _Taken, by: str, progress: Progress | None) -> list[Result]:
    done = _carried_out(taken.operations, by, progress, agreed=taken.two, shown=taken.shown)
    return [*done, *taken.left]


def _confirmed(
    plan: Plan, scopes: Collection[Scope] | None, *, by: str, confirmed: bool, agreed: str, shown: Shown | None
) -> _Taken:
    """What may be applied now, and whether two people agreed on it. Raises Refused, TooWide and SecondWanted."""
    if pause := Pause.standing():
        raise Refused(f"Everything is paused by {pause.by}: nothing is applied until `manage.py memory resume`.")
    standing = _appliable(plan, scopes)
    operations = [row for row in standing if shown is None or row.status == State.APPLIED or row.pk in shown]
    left = [] if shown is None else _left(plan, standing, shown)
    wide = _widths(operations)
    if wide and not confirmed:
        raise TooWide(_told(wide))
    two = any(one.two for one in wide)
    if two and not agreed:
        agree(plan=plan, by=by, scopes=scopes, shown=shown)
    elif two and agreed != _digest(operations):
        raise Refused(f"What applying {plan} would do changed since two people agreed on it: confirm it again.")
    return _Taken(operations=operations, left=left, two=two, shown=shown or {})


def _left(plan: Plan, standing: Sequence[Operation], shown: Shown) -> list[Result]:
    """A sentence for what waits and was not shown, and for what was shown and waits no more. One query at most."""
    late = [row for row in standing if row.status != State.APPLIED and row.pk not in shown]
    gone = set(shown) - {row.pk for row in standing}
    lost = Operation.objects.filter(plan_items__plan=plan, pk__in=gone).order_by("pk") if gone else []
    return [
        *(_refused(row, "was not among what was confirmed, and was left: confirm it too.") for row in late),
        *(_refused(row, f"is {row.status.replace('_', ' ')} now, and was left.") for row in lost),
    ]


def _refused(row: Operation, why: str) -> Result:
    return Result(row.op_id, row.kind, Outcome.REFUSED, f"{row.op_id} {why}")


def packed(shown: Shown) -> str:
    """What was shown as one word of a payload: ids and digests."""
    return ",".join(f"{pk}:{digest}" for pk, digest in shown.items())


def unpacked(text: str) -> Shown | None:
    """`packed` read again; None where nothing was said of it. Raises ValueError for anything else."""
    if not text:
        return None
    pairs = (part.partition(":") for part in text.split(","))
    return {int(pk): digest for pk, _, digest in pairs}


def undo_plan(
    *,
    plan: Plan,
    by: str,
    shown: Collection[int] | None = None,
    progress: Progress | None = None,
    scopes: Collection[Scope] | None = None,
) -> list[Result]:
    """Undo a plan's applied items, the last applied first, a result per item; what is blocked is left and said.
    `scopes` leaves the plan's other items alone. `shown`: only these operations; the others stay, and what was applied
    after the last of these is said (D2).
    """
    applied = Operation.objects.filter(plan_items__plan=plan, status=State.APPLIED)
    if scopes is not None:
        applied = applied.filter(scope__in=scopes)
    ordered = list(applied.select_related("scope").order_by("-applied_at", "-id"))
    meant = [row for row in ordered if shown is None or row.pk in shown]
    late = itertools.takewhile(lambda row: row != meant[0], ordered) if meant else ()
    left = [_refused(row, "was applied after this was shown, and stays: look again to undo it.") for row in late]
    done = _each(meant, lambda operation: runner.undo(operation=operation, by=by, along_with=str(plan)), progress)
    return [*done, *left]


def apply_unattended(*, plan: Plan, by: str = "schedule", override_by: str = "", override_reason: str = "") -> Applied:
    """Apply a plan's automatic items without a person, where the policy says so, the trial is over, and recall is
    measured and has not fallen (R94, R112, R116).

    Nor where a projection says that it would cost recall, until a person signed that off. A named person may override
    all but the policy, with a reason; that is an event. Raises NotUnattended and, over the blast radius, TooWide:
    unattended application never goes past the cap, whoever overrides.
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
    unproven = _unproven(before, plan=plan, scopes=scopes, by=by)
    missing = {scope: "; ".join(filter(None, (what, *unproven[scope]))) for scope, what in missing.items()}
    _refuse(missing, unless=named)
    for scope, what in missing.items():
        if what:
            detail = {"missing": what, "reason": override_reason[:300]}
            Event.objects.append(
                scope_id=scope.pk, action="unattended_override", actor=named, subject=str(plan), detail=detail
            )
    automatic = [row for row in _appliable(plan) if row.approval == Approval.AUTO and row.status == State.PLANNED]
    return _after(before, scopes, plan, by, lambda: _carried_out(automatic, by, None))


def _unproven(
    now: Sequence[Numbers], *, plan: Plan, scopes: Collection[Scope], by: str
) -> dict[Scope, tuple[str, str]]:
    """What is not known, or gets worse, about reading each scope once the plan's automatic items are applied."""
    unknown = {each.scope: f"recall: not measured, it {each.why_not}" for each in now if each.figures is None}
    measured = [scope for scope in scopes if scope.name not in unknown]
    falls = projecting.fallen(projections=projecting.project(plan=plan, by=by, scopes=measured, automatic=True))
    return {scope: (unknown.get(scope.name, ""), falls.get(scope.pk, "")) for scope in scopes}


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


@dataclass(frozen=True, slots=True)
class _Wide:
    """One scope of which a plan touches more than one confirmation covers."""

    scope_id: int
    sentence: str
    two: bool  # its policy wants another person to confirm, too
    hours: int  # how long the first one's confirmation holds


def width(*, plan: Plan, scopes: Collection[Scope] | None = None) -> str:
    """Why the plan (or its part in `scopes`) needs a second confirmation, with its figures per scope; empty when it is
    narrow (DESIGN 4, blast radius).
    """
    return _told(_widths(_appliable(plan, scopes)))


def _told(wide: Iterable[_Wide]) -> str:
    return " ".join(one.sentence for one in wide)


def _widths(operations: Sequence[Operation]) -> list[_Wide]:
    """The scopes of which these would touch too much. A query, and one or two per scope."""
    touched = (
        OperationSource.objects.filter(operation__in=[row.pk for row in operations if row.status != State.APPLIED])
        .values_list("scope_id", "scope__name")
        .annotate(rows=Count("id"))
    )
    return [wide for scope_id, name, rows in touched if (wide := _wide(scope_id, name, rows))]


def _wide(scope_id: int, name: str, rows: int) -> _Wide | None:
    size = Observation.objects.active().filter(scope_id=scope_id).count()
    policy = review.policy_of(name)
    limit = policy.blast_limit(size=size)
    if rows <= limit:
        return None
    how = "two people confirm it (two_person_wide in the policy)" if policy.two_person_wide else "confirm a second time"
    sentence = f"Applying touches {rows} of {size} records of {name}, over the limit of {limit}: {how}."
    return _Wide(scope_id=scope_id, sentence=sentence, two=policy.two_person_wide, hours=policy.approval_ttl_hours)


def agree(*, plan: Plan, by: str, scopes: Collection[Scope] | None = None, shown: Shown | None = None) -> str:
    """Confirm what applying a wide plan would do, where two people have to: the first one asks, and the second, another
    one who confirms exactly the same, makes it good. Returns what both agreed to, for `apply_plan`; empty where nobody
    else has to agree.

    Raises SecondWanted for the first one, and for the same one again. What would be applied changed meanwhile, or the
    first confirmation is older than an approval lasts: it starts anew. Raises Refused when something waits that was
    not `shown` so.
    """
    operations = _appliable(plan, scopes)
    if shown is not None and not all(_as_shown(row, shown) for row in operations):
        raise Refused(f"What applying {plan} would do changed since you looked: read it again, then confirm.")
    two = [one for one in _widths(operations) if one.two]
    if not two:
        return ""
    digest = _digest(operations)
    with transaction.atomic():
        first, anew = review.agree_on_plan(plan=plan, by=by, digest=digest, hours=min(one.hours for one in two))
        for one in two if first or anew else []:
            action, detail = ("plan_agreed", {"asked_by": first}) if first else ("plan_asked", {})
            whole = {**detail, "digest": digest}
            Event.objects.append(scope_id=one.scope_id, action=action, actor=by, subject=str(plan), detail=whole)
    if first:
        return digest
    waits = f"{by} confirmed {plan}; nothing is applied until another person confirms the same."
    raise SecondWanted(f"{_told(two)} {waits}")


def _as_shown(row: Operation, shown: Shown) -> bool:
    return row.status == State.APPLIED or (row.pk in shown and row.approved_digest in ("", shown[row.pk]))


def asked(*, plan: Plan) -> str:
    """Who confirmed what applying a plan would do now, and waits for a second person; empty: nobody. One query at
    most.
    """
    return plan.asked_by if plan.asked_by and plan.asked_digest == _digest(_appliable(plan)) else ""


def _digest(operations: Iterable[Operation]) -> str:
    """sha256 of which operations it is about and what was approved of each; what is applied of them meanwhile leaves it
    as it is, so that a run that was broken off goes on.
    """
    parts = sorted(f"{row.pk}:{row.approved_digest}" for row in operations)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _appliable(plan: Plan, scopes: Collection[Scope] | None = None) -> list[Operation]:
    """The plan's items (of `scopes`) that are done, or may be done now, in the plan's order. One query."""
    items = PlanItem.objects.filter(plan=plan).filter(
        Q(operation__status__in=[State.APPLIED, State.APPROVED])
        | Q(operation__status=State.PLANNED, operation__approval=Approval.AUTO)
    )
    if scopes is not None:
        items = items.filter(scope__in=scopes)
    return [item.operation for item in items.select_related("operation__scope").order_by("position")]


def _carried_out(
    operations: Sequence[Operation],
    by: str,
    progress: Progress | None,
    *,
    agreed: bool = False,
    shown: Shown = MappingProxyType({}),
) -> list[Result]:
    """Apply them one by one, and have people asked afterwards about a share of those that nobody decided."""
    results = _each(
        operations,
        lambda row: runner.apply(operation=row, by=by, agreed=agreed, shown=shown.get(row.pk, "")),
        progress,
    )
    sampling.choose_of(operations=operations)
    return results


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
