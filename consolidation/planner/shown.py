"""A stored plan as it is printed and as JSON: one reading for the command, the pages and the API."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from django.db.models import Prefetch, QuerySet, prefetch_related_objects

from consolidation.models import Operation, OperationSource, Plan
from consolidation.operations import Approval, Json, Kind, State, counted, obs
from consolidation.operations import plan as plan_label
from consolidation.rendering import PrintedOperation, PrintedPlan, PrintedSource
from observations.models import ScopeQuerySet

UNTOUCHABLE: Final = "untouchable"  # in a plan's figures: scope id -> records that its policy lets no proposal touch
UNRECONCILED: Final = "unreconciled"  # scope id -> records that the background wrote without comparing them
COVERED: Final = "unreconciled_covered"  # scope id -> those of them that the plan's operations take up

_WAITING: Final = re.compile(r" \d+ groups of episodes wait\.$")


def printed(plan: Plan, *, operations: Sequence[Operation] | None = None) -> PrintedPlan:
    """The plan for `rendering.render`, or these operations of it, read with their scope. Two queries, or one."""
    figures = plan.figures
    rows = _operations(plan) if operations is None else operations
    prefetch_related_objects(rows, Prefetch("sources", _ordered_sources()))
    return PrintedPlan(
        operations=tuple(_printed(operation) for operation in rows),
        records=int(figures.get("store", figures.get("records", 0))),
        id=plan.pk,
        notes=notes(plan),
        left_out=tuple(f"{item['scope']}: {item['error']}" for item in plan.failures),
        figures=_figures_line(plan),
        held_back=int(figures.get("held_back", 0)),
        untouchable=sum(figures.get(UNTOUCHABLE, {}).values()),
        unreconciled=sum(figures.get(UNRECONCILED, {}).values()),
        covered=sum(figures.get(COVERED, {}).values()),
    )


def notes(plan: Plan) -> dict[Kind, str]:
    """Why a kind may hold nothing, or not all there is (R53). No query."""
    found: dict[Kind, list[str]] = {}
    for item in plan.failures:
        if item.get("step"):
            said = item["error"].partition(": ")[2]
            found.setdefault(Kind(item["step"]), []).append(_WAITING.sub("", said))  # counts differ from scope to scope
    off = _off_everywhere(plan)
    for kind in off:
        found.setdefault(kind, []).insert(0, "off by policy")
    if Kind.PROMOTE not in found and not plan.figures.get("model"):
        found[Kind.PROMOTE] = ["needs a model; none configured"]
    if not plan.figures.get("retention_rules"):
        found[Kind.PRUNE] = ["retention policy: none configured"]
    return {kind: "; ".join(dict.fromkeys(said)) for kind, said in found.items()}


def _off_everywhere(plan: Plan) -> list[Kind]:
    """Kinds that a reader expects (R53) and no policy of the plan allows."""
    policies = [snapshot["body"] for snapshot in plan.snapshots.values()]
    expected = (Kind.MERGE, Kind.PROMOTE, Kind.PRUNE)
    return [kind for kind in expected if policies and not any(policy.get(kind, True) for policy in policies)]


def plan_json(plan: Plan, *, scopes: ScopeQuerySet | None = None) -> dict[str, Json]:
    """The plan as JSON: id, counts, figures, what was left out, and every operation whole. Three queries.

    With `scopes` it holds nothing of others: their operations, failures, policies and the figures of all are left out.
    """
    operations = _operations(plan, scopes)
    whole = _whole(plan, operations)
    if scopes is None:
        return whole
    seen = dict(scopes.filter(pk__in=[int(pk) for pk in plan.policies]).values_list("pk", "name"))
    hashes = {hashed for pk, hashed in plan.policies.items() if int(pk) in seen}
    return whole | {
        "figures": {},
        "left_out": [item for item in plan.failures if item.get("scope") in seen.values()],
        "policies": {hashed: kept for hashed, kept in plan.snapshots.items() if hashed in hashes},
    }


def _whole(plan: Plan, operations: Sequence[Operation]) -> dict[str, Json]:
    return {
        "id": plan_label(plan.pk),
        "state": str(plan.state),
        "pattern": plan.pattern,
        "requested_by": plan.requested_by,
        "trigger": plan.trigger,
        "created_at": plan.created_at.isoformat(),
        "counts": _counts(operations),
        "figures": plan.figures,
        "left_out": plan.failures,
        "notes": {kind.value: said for kind, said in notes(plan).items()},
        "policies": plan.snapshots,
        "operations": [operation_json(operation) for operation in operations],
    }


def operation_json(operation: Operation) -> dict[str, Json]:
    """One operation as JSON: what it is, where it stands, what it takes in and why. One query, none when prefetched."""
    sources = [_source_json(source) for source in _sources(operation)]
    return {
        "id": operation.op_id,
        "input_key": operation.input_key,
        "generation": operation.generation,
        "kind": operation.kind,
        "approval": operation.approval,
        "status": operation.status,
        "skipped_reason": operation.skipped_reason,
        "reason": operation.reason,
        "score": operation.score,
        "scope": operation.scope.name,
        "keeper": obs(operation.keeper_id) if operation.keeper_id else None,
        "sources": sources,
        "text": operation.text or None,
        "subject": operation.claim_subject or None,
        "predicate": operation.claim_predicate or None,
        "object": operation.claim_object or None,
        "requested_by": operation.requested_by or None,
        "product": operation.product,
        "signals": operation.signals,
    }


def _operations(plan: Plan, scopes: ScopeQuerySet | None = None) -> list[Operation]:
    rows = (
        Operation.objects.filter(plan_items__plan=plan).select_related("scope").order_by("plan_items__position", "pk")
    )
    rows = rows if scopes is None else rows.filter(scope__in=scopes)
    return list(rows.prefetch_related(Prefetch("sources", _ordered_sources())))


def _ordered_sources() -> QuerySet[OperationSource]:
    return OperationSource.objects.select_related("observation", "episode").order_by("operation_id", "position")


def _sources(operation: Operation) -> Iterable[OperationSource]:
    prefetched = getattr(operation, "_prefetched_objects_cache", {})
    if "sources" in prefetched:
        return operation.sources.all()
    return _ordered_sources().filter(operation=operation)


def _counts(operations: Sequence[Operation]) -> dict[str, Json]:
    """By kind what is proposed, then the skips, and what has to happen to them (R79)."""
    kinds = Counter(operation.kind for operation in operations if operation.status != State.SKIPPED)
    skipped = [operation for operation in operations if operation.status == State.SKIPPED]
    shown_for_review = sum(operation.approval == Approval.NEEDS_HUMAN for operation in skipped)
    states = Counter(operation.status for operation in operations)
    return {
        **{kind.value: kinds[kind] for kind in (Kind.MERGE, Kind.PROMOTE, Kind.SUPERSEDE, Kind.PRUNE)},
        **dict(sorted(kinds.items())),
        "skipped": len(skipped),
        "automatic": states[State.PLANNED],
        "awaiting_review": states[State.NEEDS_HUMAN] + shown_for_review,
        "total": len(operations),
    }


def _printed(operation: Operation) -> PrintedOperation:
    cosines = {
        frozenset((pair["a"], pair["b"])): pair["cosine"]
        for pair in operation.signals.get("pairs", [])
        if pair.get("cosine") is not None
    }
    return PrintedOperation(
        id=operation.op_id,
        kind=Kind(operation.kind),
        approval=Approval(operation.approval),
        state=State(operation.status),
        scope=operation.scope.name,
        reason=operation.reason,
        skipped_reason=operation.skipped_reason,
        keeper=operation.keeper_id,
        text=operation.text,
        support=support_line(operation),
        names=(operation.claim_subject, operation.claim_object) if operation.kind == Kind.ALIAS else None,
        sources=tuple(
            _printed_source(source, cosines.get(frozenset((source.observation_id, operation.keeper_id))))
            for source in _sources(operation)
        ),
    )


def support_line(operation: Operation) -> str:
    """What a promotion rests on, in figures (R53); empty for other kinds. No query."""
    if operation.kind != Kind.PROMOTE:
        return ""
    product = operation.product
    roots, verified = int(product.get("roots", 0)), int(product.get("verified", 0))
    word = "success" if verified == 1 else "successes"
    sources = f"{roots} independent {'source' if roots == 1 else 'sources'}"
    confidence = float(product.get("confidence", 0.0))
    return f"{sources}, {verified} verified {word}, confidence {confidence:.2f} (promoted, not user-stated)"


def _printed_source(source: OperationSource, similarity: float | None) -> PrintedSource:
    if (turn := source.episode) is not None:
        text = "(erased)" if turn.text is None else turn.text
        said_at, who = turn.happened_at, turn.speaker or turn.role
        return PrintedSource(id=turn.pk, text=text, external_id=turn.external_id, said_at=said_at, trust=who)
    row = source.observation
    assert row is not None
    return PrintedSource(
        id=row.pk,
        text="(erased)" if row.text is None else row.text,
        external_id=row.external_id,
        similarity=similarity,
        said_at=row.created_at,
        trust=row.stated_by,
        period=_period(row.valid_from, row.valid_to),
    )


def _period(start: datetime | None, end: datetime | None) -> str:
    return " ".join(
        part for part in (f"from {start:%Y-%m-%d}" if start else "", f"to {end:%Y-%m-%d}" if end else "") if part
    )


def _source_json(source: OperationSource) -> dict[str, Json]:
    if (turn := source.episode) is not None:
        return {
            "id": str(turn),
            "external_id": turn.external_id,
            "text": turn.text,
            "speaker": turn.speaker,
            "status": turn.status,
            "version": turn.version,
            "outcome": turn.outcome,
            "happened_at": turn.happened_at.isoformat(),
        }
    row = source.observation
    assert row is not None
    return {
        "id": obs(row.pk),
        "external_id": row.external_id,
        "text": row.text,
        "subject": row.subject,
        "predicate": row.predicate,
        "object": row.object,
        "status": row.status,
        "version": row.version,
        "confidence": row.confidence,
        "stated_by": row.stated_by,
        "created_at": row.created_at.isoformat(),
        "valid_from": row.valid_from.isoformat() if row.valid_from else None,
        "valid_to": row.valid_to.isoformat() if row.valid_to else None,
    }


def _figures_line(plan: Plan) -> str:
    figures = plan.figures
    if not figures.get("records") and not figures.get("episodes"):
        return ""
    parts = [
        f"{counted(figures['records'], 'record')} in {counted(figures['scopes'], 'scope')}",
        f"{counted(figures['compared'], 'pair')} compared in {counted(figures['blocks'], 'block')}"
        f" ({figures['split']:,} split)",
        f"{figures['pairs']:,} judged",
        f"about {counted(figures['missed_estimate'], 'pair')} missed"
        f" (audit of {counted(figures['audited'], 'record')})",
    ]
    if figures.get("without_vector"):
        parts.append(f"{counted(figures['without_vector'], 'record')} without a vector yet")
    if figures.get("episodes"):
        asked = counted(figures.get("asked", 0), "question")
        parts.append(f"{counted(figures['episodes'], 'episode')} read, {asked} to the model")
    if settled := figures.get("refused", 0) + figures.get("done", 0):
        parts.append(f"{settled:,} already decided before")
    return ", ".join([*parts, f"{figures['seconds']:.1f} s"])
