"""REQUESTS: what programs, the pipeline and people ask for that a person has to decide, made into operations.

The store never decides these: it writes an outbox row in the transaction that causes it, and this makes the operation.
Nothing is planned anew here and nothing is swept by a plan: a request waits until somebody decides it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.db import connection, transaction
from django.db.models import Q

from consolidation.models import OPEN, Operation, OperationSource
from consolidation.operations import Approval, Json, Kind, Proposal, obs
from consolidation.review import policy_of
from observations.models import Event, Observation, Scope

SHOWN_OF_FORGET: Final = 1_000  # rows of a request to forget that are listed; the others are counted


def retire(*, scope: Scope, ids: Sequence[int], by: str, request: str, why: str) -> list[Operation]:
    """Ask that rows leave the reads, whole, one question each; those that left meanwhile are passed over.

    `request` names what asks (an outbox row's key): the same request makes the same operations. `why` is ours, without
    memory text.
    """
    rows = Observation.objects.active().in_scope(scope).filter(pk__in=ids).order_by("pk")
    return [
        _asked(
            _proposal(Kind.ARCHIVE, scope, [row], request=request, reason=f"asked for: {why}", product={"asked": why}),
            scope=scope,
            rows=[row],
            by=by,
        )
        for row in rows
    ]


def settle(*, scope: Scope, ids: Sequence[int], by: str, request: str, why: str) -> Operation | None:
    """Ask which of several claims is right, newer suggested and never assumed; None when fewer than two are current."""
    rows = list(Observation.objects.active().in_scope(scope).filter(pk__in=ids).order_by("pk"))
    if len(rows) < 2:
        return None
    newest = max(rows, key=lambda row: (row.created_at, row.pk))
    order: list[Json] = [row.pk for row in sorted(rows, key=lambda row: (row.created_at, row.pk))]
    suggested: dict[str, Json] = {"suggested": "newest", "suggested_keep": newest.pk, "order": order}
    reason = f"asked for: {why}; {obs(newest.pk)} would take the place of {_others(rows, newest)}"
    product = {"asked": why, **suggested, "why": "newer is suggested, never assumed"}
    proposal = _proposal(Kind.SUPERSEDE, scope, rows, request=request, reason=reason, product=product)
    return _asked(proposal, scope=scope, rows=rows, by=by)


def forget(*, scope: Scope, ids: Sequence[int] | None, by: str, request: str) -> Operation | None:
    """Ask that rows are erased with everything derived from them; `ids` None: everything in the scope.

    None when there is nothing left to forget. Its rows are every status but erased; a request for more than
    SHOWN_OF_FORGET rows lists the oldest and counts the rest.
    """
    found = closure(scope_id=scope.pk, ids=ids)
    if not found:
        return None
    rows = list(Observation.objects.in_scope(scope).filter(pk__in=found[:SHOWN_OF_FORGET]).order_by("pk"))
    what = "everything in the scope" if ids is None else f"{len(ids)} row{'s'[: len(ids) > 1]}"
    reason = f"asked to forget: {what}, {len(found)} with all that was derived from them"
    product: dict[str, Json] = {"rows": len(found), "all": ids is None, "asked": "forget"}
    proposal = _proposal(Kind.FORGET, scope, rows, request=request, reason=reason, product=product)
    return _asked(proposal, scope=scope, rows=rows, by=by)


# What was derived from a row holds its words: merged rows, promoted facts, summaries, and so on down. No lineage leads
# from a row that was merged with repeats of it to the later versions (decision 0014): the merges that took it in do,
# undone ones too, and in an imported store its successor.
_CLOSURE: Final = """
WITH RECURSIVE held (id) AS (
  SELECT id FROM observations_observation
  WHERE scope_id = %(scope)s AND status <> 'erased' AND (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s::bigint[]))
  UNION
  SELECT d.id FROM held JOIN LATERAL (
    SELECT l.derived_id AS id FROM observations_lineage l
    WHERE l.scope_id = %(scope)s AND l.source_observation_id = held.id
    UNION ALL
    SELECT p.derived_id FROM consolidation_operationsource s
    JOIN consolidation_operation p ON p.scope_id = s.scope_id AND p.id = s.operation_id
    WHERE s.scope_id = %(scope)s AND s.observation_id = held.id AND p.kind = 'merge' AND p.derived_id IS NOT NULL
    UNION ALL
    SELECT o.superseded_by_id FROM observations_observation o
    WHERE o.scope_id = %(scope)s AND o.id = held.id AND o.derivation = 'merge' AND o.status IN ('archived', 'erased')
      AND o.superseded_by_id IS NOT NULL
  ) d ON true
)
SELECT held.id FROM held JOIN observations_observation o ON o.id = held.id AND o.scope_id = %(scope)s
WHERE o.status <> 'erased' ORDER BY held.id
"""


def closure(*, scope_id: int, ids: Sequence[int] | None) -> list[int]:
    """These rows of a scope (None: all) and everything derived from them that still has words, ascending. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_CLOSURE, {"scope": scope_id, "ids": None if ids is None else list(ids)})
        return [int(pk) for (pk,) in cursor.fetchall()]


# --- storing ---------------------------------------------------------------------------------------------------------


def _others(rows: Sequence[Observation], newest: Observation) -> str:
    return ", ".join(obs(row.pk) for row in rows if row.pk != newest.pk)


def _proposal(
    kind: Kind,
    scope: Scope,
    rows: Sequence[Observation],
    *,
    request: str,
    reason: str,
    product: dict[str, Json],
) -> Proposal:
    return Proposal(
        kind=kind,
        scope_id=scope.pk,
        sources=tuple(row.pk for row in rows),
        approval=Approval.NEEDS_HUMAN,
        reason=reason[:500],
        product={**product, "discriminator": f"asked {request}"},
    )


@transaction.atomic
def _asked(proposal: Proposal, *, scope: Scope, rows: Sequence[Observation], by: str) -> Operation:
    """The operation of a request: the one it made before, one that asks the same and is open, or a new one."""
    Scope.objects.select_for_update(no_key=True).get(pk=scope.pk)  # one question at a time, and no writer waits for it
    if known := _known(proposal, scope):
        return known
    operation = Operation.objects.create(
        op_id=proposal.id,
        input_key=proposal.input_key,
        scope=scope,
        kind=proposal.kind,
        approval=proposal.approval,
        status=proposal.state,
        reason=proposal.reason,
        product=dict(proposal.product),
        requested_by=by[:150],
        risk=proposal.risk,
        uncertainty=proposal.uncertainty,
        n_sources=len(rows),
        policy_hash=policy_of(scope.name).hash,
    )
    OperationSource.objects.bulk_create(
        OperationSource(
            scope=scope,
            operation=operation,
            observation=row,
            position=position,
            planned_version=row.version,
            planned_hash=row.content_hash,
        )
        for position, row in enumerate(rows)
    )
    detail = {"kind": str(proposal.kind)}
    Event.objects.append(
        scope_id=scope.pk, action="requested", actor=by[:150], subject=operation.op_id, generation=1, detail=detail
    )
    return operation


def _known(proposal: Proposal, scope: Scope) -> Operation | None:
    """What the request made before, whatever became of it, or an open request for the same of the same rows."""
    same = Operation.objects.filter(scope=scope, kind=proposal.kind)
    alike = same.filter(status__in=OPEN, input_key=proposal.input_key, n_sources=len(proposal.sources))
    again = same.filter(op_id=proposal.id).first()
    return again or alike.exclude(Q(requested_by="")).first()
