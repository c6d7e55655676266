"""What `manage.py consolidate` prints: plans, results and single operations, as text and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from consolidation import asking, planner, review, rollout
from consolidation.management.checking import notice_lines
from consolidation.management.sources import source_documents, source_lines
from consolidation.models import Operation, Plan
from consolidation.operations import Approval, Kind, State, counted, ep, obs, visible
from consolidation.probes import Impact, falling_lines, impact_json, impact_lines
from consolidation.rendering import render
from consolidation.rollout import Applied
from consolidation.runner import Outcome, Result, UndoPreview
from observations import ingest
from observations.models import Episode, Event, Scope

Document = dict[str, object]


# --- plans ----------------------------------------------------------------------------------------------------------


def plan_text(plan: Plan | None, *, scopes: Sequence[Scope], explain: bool) -> str:
    """The printed plan; what failed stands first, and what the planner could not see last."""
    if plan is None:
        return "nothing to do"
    parts = [*_failures(plan), render(planner.printed(plan), explain=explain)]
    if without := ingest.missing_vectors(scopes=scopes).observations:
        parts += [
            "",
            f"NOTE  {counted(without, 'record')} without a vector yet, compared by words alone:"
            " let the worker compute what is missing, and plan again.",
        ]
    if asked := asking.question_lines(scopes):
        parts += ["", *asked]
    if fell := notice_lines():
        parts += ["", *fell]
    return "\n".join(parts)


def _failures(plan: Plan) -> list[str]:
    word = "PARTIAL" if plan.state == Plan.State.PARTIAL else "FAILED"
    lines = [f"  {visible(failure['scope'])}: {visible(failure['error'])}" for failure in failed_scopes(plan)]
    if not lines:
        return []
    return [f"{word}  {failures_line(plan)}; what follows leaves them out.", *lines, ""]


def failures_line(plan: Plan) -> str:
    """How many scopes and steps failed: one clause, or empty."""
    failed = failed_scopes(plan)
    steps = sum("step" in failure for failure in failed)
    scopes = len(failed) - steps
    parts = [f"{scopes} scope{'s' * (scopes != 1)} could not be planned"] if scopes else []
    parts += [f"{steps} step{'s' * (steps != 1)} could not be finished"] if steps else []
    return " and ".join(parts)


def failed_scopes(plan: Plan) -> list[dict[str, str]]:
    """The scopes that were tried and did not work; those on hold or paused are not among them."""
    return [failure for failure in plan.failures if failure.get("failed", True)]


def plan_document(plan: Plan | None, *, scopes: Sequence[Scope], applied: Applied | None) -> Document:
    """A plan as JSON, with what became of it when it was applied at once."""
    if plan is None:
        return {"id": None, "counts": {}, "operations": []}
    document: Document = dict(planner.plan_json(plan))
    document["without_vector"] = ingest.missing_vectors(scopes=scopes).observations
    if applied is not None:
        document["applied"] = results_document(applied.results, plan=plan, impact=applied.impact)
    return document


# --- results --------------------------------------------------------------------------------------------------------


def results_document(
    results: Sequence[Result],
    *,
    plan: Plan | None = None,
    scopes: Sequence[Scope] | None = None,
    impact: Impact | None = None,
) -> Document:
    """What became of each operation; `skipped` are those that had been done before (R99). `plan` adds what of it was
    left, in those scopes.
    """
    counts = Counter(result.outcome for result in results)
    document: Document = {
        "plan": str(plan) if plan else None,
        "planned": len(results),
        "applied": counts[Outcome.APPLIED],
        "undone": counts[Outcome.UNDONE],
        "skipped": counts[Outcome.ALREADY],
        **{str(outcome): counts[outcome] for outcome in (Outcome.STALE, Outcome.REFUSED, Outcome.FAILED)},
        "results": [
            {"operation": r.operation, "kind": r.kind, "outcome": str(r.outcome), "sentence": r.sentence}
            for r in results
        ],
    }
    if plan is not None:
        document |= _left(plan, scopes)
    if impact is not None:
        document["impact"] = impact_json(impact)
    return document


def _left(plan: Plan, scopes: Sequence[Scope] | None) -> Document:
    """What of a plan nobody asked to be applied: it waits for a person, or a rule skipped it. One query."""
    items = Operation.objects.filter(plan_items__plan=plan)
    if scopes is not None:
        items = items.filter(scope__in=scopes)
    rows = list(items.values_list("status", "approval"))
    waiting = [s for s, a in rows if s == State.NEEDS_HUMAN or (s == State.SKIPPED and a == Approval.NEEDS_HUMAN)]
    return {"waiting_for_a_person": len(waiting), "skipped_by_rule": sum(s == State.SKIPPED for s, _ in rows)}


def results_text(
    results: Sequence[Result],
    *,
    plan: Plan | None = None,
    scopes: Sequence[Scope] | None = None,
    undone: bool = False,
    impact: Impact | None = None,
) -> str:
    """A line per operation and a summary: planned, applied, skipped, and what was not done (R99, R117); then the
    three numbers, but a fall of recall first (R115, R118).
    """
    counts = Counter(result.outcome for result in results)
    falling = falling_lines(impact) if impact else []
    lines = [
        f"{r.outcome.upper():<8}  {r.operation}  {visible(r.sentence.removeprefix(f'{r.operation} '))}" for r in results
    ]
    done = f"undone {counts[Outcome.UNDONE]}" if undone else f"applied {counts[Outcome.APPLIED]}"
    parts = [f"planned {len(results)}", done, f"skipped {counts[Outcome.ALREADY]} (done before)"]
    parts += [
        f"{outcome} {counts[outcome]}"
        for outcome in (Outcome.STALE, Outcome.REFUSED, Outcome.FAILED)
        if counts[outcome]
    ]
    if not results:
        lines.append("nothing to undo" if undone else "nothing to apply")
    summary = [f"{plan}: {', '.join(parts)}" if plan else ", ".join(parts)]
    if plan is not None and not undone:
        left = _left(plan, scopes)
        summary.append(f"{left['waiting_for_a_person']} wait for a person, {left['skipped_by_rule']} skipped by rule")
        summary += [f"  {line}" for line in rollout.skip_reasons(plan=plan, scopes=scopes)]
    summary += impact_lines(impact) if impact else []
    return "\n".join([*falling, *lines, "", *summary] if lines else [*falling, *summary])


def undo_text(preview: UndoPreview) -> str:
    """What an undo is about to do."""
    restored = ", ".join(map(ep if preview.of_episodes else obs, preview.restores)) or "nothing"
    return f"RESTORES  {restored}" + (f"\nRETRACTS  {obs(preview.retracts)}" if preview.retracts else "")


# --- one operation --------------------------------------------------------------------------------------------------


def operation_document(operation: Operation) -> Document:
    """One operation whole: as its newest plan shows it, what its sources rest on, the decision, and its events."""
    document = planner.operation_json(operation)
    events = Event.objects.filter(scope=operation.scope, subject=operation.op_id).order_by("id")
    return {
        **document,
        "sources": source_documents(operation, document["sources"]),
        "generation": operation.generation,
        "reason": operation.reason,
        "outcome": operation.outcome,
        "decision": operation.decision,
        "decision_text": operation.decision_text,
        "decision_object": operation.decision_object,
        "decision_reason": operation.decision_reason,
        "decided_by": operation.decided_by,
        "decided_at": operation.decided_at.isoformat() if operation.decided_at else None,
        "needs_second": operation.needs_second,
        "seconded_by": operation.seconded_by,
        "seconded_at": operation.seconded_at.isoformat() if operation.seconded_at else None,
        "derived": obs(operation.derived_id) if operation.derived_id else None,
        "events": [
            {"at": event.at.isoformat(), "action": event.action, "by": event.actor, "generation": event.generation}
            for event in events
        ],
        "comments": [
            {"at": one.at.isoformat(), "by": one.by, "text": one.text}
            for one in review.comments_on(operation=operation)
        ],
    }


def operation_text(operation: Operation, document: Mapping[str, object]) -> str:
    """The same as text for a person, hostile characters made visible."""
    lines = [
        f"{operation.kind.upper()}  {operation.op_id}  in {visible(operation.scope.name)}",
        f"  state     {operation.status.replace('_', ' ')} ({operation.approval})",
        f"  reason    {visible(operation.reason)}",
    ]
    lines += [f"  skipped   {visible(operation.skipped_reason)}"] if operation.skipped_reason else []
    lines += [f"  outcome   {visible(operation.outcome)}"] if operation.outcome else []
    if operation.decided_by:
        why = f": {visible(operation.decision_reason)}" if operation.decision_reason else ""
        lines.append(f"  decided   {operation.decided_at:%Y-%m-%d %H:%M} UTC by {visible(operation.decided_by)}{why}")
    lines += _second(operation)
    lines += _right_claim(operation)
    lines += _says(operation)
    lines += _losses(operation)
    lines += source_lines(operation)
    lines += _signals(operation.signals)
    lines += ["  history", *_history(document["events"])]
    lines += _remarks(document["comments"])
    return "\n".join(lines)


def _second(operation: Operation) -> list[str]:
    """Who agreed as second person, or which rule waits for one. One query at most."""
    if operation.seconded_at:
        who = visible(operation.seconded_by)
        return [f"  agreed    {operation.seconded_at:%Y-%m-%d %H:%M} UTC by {who}, as second person"]
    if operation.status not in (*review.DECIDABLE, State.APPROVED):
        return []
    try:
        why = review.needs_second(operation=operation, policy=review.policy_of(operation.scope.name))
    except review.Refused:
        return []  # the policy cannot be read: planning and applying say so
    return [f"  two       {why or review.WANTED_THEN}"] if why or operation.needs_second else []


def _remarks(comments: object) -> list[str]:
    """What people left on it, in their words."""
    if not isinstance(comments, list) or not comments:
        return []
    said = ((one["at"][:16].replace("T", " "), visible(one["by"]), visible(one["text"])) for one in comments)
    return ["  comments", *(f"    {at} UTC  {by}: {text}" for at, by, text in said)]


def _right_claim(operation: Operation) -> list[str]:
    """What a reviewer wrote instead of the values, and its object."""
    lines = [f'  right claim  "{visible(operation.decision_text)}"'] if operation.decision_text else []
    return [*lines, f'  its object   "{visible(operation.decision_object)}"'] if operation.decision_object else lines


def _says(operation: Operation) -> list[str]:
    """What the product says where no source does, and what an alias joins."""
    if operation.kind == Kind.ALIAS:
        return [f"  alias     {visible(operation.claim_subject)} is compared as {visible(operation.claim_object)}"]
    key = (operation.claim_subject, operation.claim_predicate, operation.claim_object)
    lines = [f'  says      "{visible(operation.text)}"'] if operation.text else []
    lines += [f"  key       {' / '.join(map(visible, key))}"] if any(key) else []
    if support := planner.support_line(operation):
        lines.append(f"  support   {support}")
    if by := operation.product.get("stated_by"):
        lines.append(f"  trust     counts as said by {visible(str(by))}")
    return lines


def _losses(operation: Operation) -> list[str]:
    """The words of the episodes that a summary would lose, for whoever decides about it (C9)."""
    places = operation.signals.get("lost_at", []) if operation.kind == Kind.COMPACT else []
    texts = dict(Episode.objects.filter(operation_sources__operation=operation).values_list("pk", "text"))
    lines = []
    for place in places:
        words = (texts.get(place["episode"]) or "")[place["start"] : place["end"]]
        if words:
            lines.append(f'    {ep(place["episode"])}  "{visible(words)}"  ({place["sort"]}, {place["how"]})')
    return ["  would lose", *lines] if lines else []


def _signals(signals: Mapping[str, object]) -> list[str]:
    """Why they met, a line per signal: ids, figures and guard names."""
    lines = [f"    {name}: {json.dumps(value, ensure_ascii=False)}" for name, value in sorted(signals.items())]
    return ["  signals", *map(visible, lines)] if lines else []


def _history(events: object) -> list[str]:
    return [
        f"    {event['at'][:16].replace('T', ' ')}  {event['action']}  by {visible(event['by'])}"
        for event in (events if isinstance(events, list) else [])
    ] or ["    nothing decided yet"]
