"""Counting a plan's impact, and keeping the figures."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence

from django.db import transaction
from django.db.models import Q

from consolidation import probing
from consolidation.models import Operation, Plan, Projection, Suite
from consolidation.operations import Approval, State
from consolidation.probes import Figures, figures_json
from consolidation.probing import Progress, Stored
from consolidation.projecting.worlds import Projected, projected
from observations import retrieval
from observations.embedding import Embedder
from observations.models import Scope

_NOISE = 1e-9


def appliable(*, plan: Plan, scopes: Collection[Scope]) -> list[Operation]:
    """The plan's automatic and approved operations of some scopes that are not applied, in the plan's order. One
    query.
    """
    waiting = Q(status=State.APPROVED) | Q(status=State.PLANNED, approval=Approval.AUTO)
    items = Operation.objects.filter(waiting, plan_items__plan=plan, scope__in=scopes).select_related("scope")
    return list(items.order_by("plan_items__position", "plan_items__pk"))


def suites(*, scopes: Collection[Scope]) -> list[Suite]:
    """The suites in force of some scopes. One query."""
    return list(Suite.objects.in_force().filter(scope__in=scopes))


def automatic_of(operations: Collection[Operation]) -> list[Operation]:
    """Those that a schedule would apply."""
    return [row for row in operations if row.approval == Approval.AUTO and row.status == State.PLANNED]


def digest_of(*, operations: Collection[Operation], suite: Suite | None) -> str:
    """sha256 of which operations are meant, as decided, and of the suite they are measured by."""
    parts = sorted((row.op_id, row.generation, row.approved_digest) for row in operations)
    return hashlib.sha256(repr((suite.pk if suite else None, parts)).encode()).hexdigest()


def project(
    *,
    plan: Plan,
    by: str,
    scopes: Collection[Scope],
    automatic: bool = False,
    embedder: Embedder | None = None,
    progress: Progress | None = None,
) -> tuple[Projection, ...]:
    """Recall@5, distinct@5 and the size of each scope now and if the plan's operations there were applied; each is
    kept. `automatic` leaves out what a person approved. A scope of which nothing would be applied has none.

    Runs the suite in force twice per scope. Raises Refused where a policy cannot be read, and what the embedder raises.
    """
    operations = appliable(plan=plan, scopes=scopes)
    if automatic:
        operations = automatic_of(operations)
    by_scope: dict[Scope, list[Operation]] = {}
    for row in operations:
        by_scope.setdefault(row.scope, []).append(row)
    measured_by = {suite.scope_id: suite for suite in suites(scopes=by_scope)}
    return tuple(
        _projection(plan, by, scope, mine, measured_by.get(scope.pk), embedder, progress)
        for scope, mine in sorted(by_scope.items(), key=lambda each: each[0].name)
    )


def _projection(
    plan: Plan,
    by: str,
    scope: Scope,
    operations: Sequence[Operation],
    suite: Suite | None,
    embedder: Embedder | None,
    progress: Progress | None,
) -> Projection:
    with transaction.atomic():
        world = projected(scope=scope, operations=operations, embedder=embedder or retrieval.current_embedder())
        row = Projection(
            scope=scope,
            plan=plan,
            suite=suite,
            digest=digest_of(operations=operations, suite=suite),
            operations=len(operations) - len(world.refused),
            records_before=len(world.stored.rows()),
            records_after=len(world.rows()),
            why_not="" if suite else probing.NO_SUITE,
            by=by[:150],
        )
        if suite is not None:
            _measure(row, suite, world, progress)
        row.save(force_insert=True)
    return row


def _measure(row: Projection, suite: Suite, world: Projected, progress: Progress | None) -> None:
    """Fill in what the suite counts now and then."""
    asked = probing.probes_of(suite=suite)

    def counted(of: Stored | Projected) -> Figures:
        return probing.count(world=of, asked=asked, units=suite.units, progress=progress)

    before, after = counted(world.stored), counted(world)
    row.before, row.after = figures_json(before), figures_json(after)
    row.why_not = (before.why_not and f"is not measured: {before.why_not}")[:200]
    row.lost = lost(before=before, after=after)
    if not before.why_not:
        row.fell = bool(after.why_not) or after.recall < before.recall - _NOISE
        row.why_not = (after.why_not and f"could not be measured any more: {after.why_not}")[:200]


def lost(*, before: Figures, after: Figures) -> list[int]:
    """Numbers of the probes that would miss a record which comes now, or get one that must not come and does not."""
    failing = {number for number, missing in after.missing.items() if {*missing} - {*before.missing.get(number, ())}}
    leaking = {number for number, leaked in after.leaked.items() if {*leaked} - {*before.leaked.get(number, ())}}
    return sorted(failing | leaking)
