"""What each kind of operation does to memory, one function each. Undo takes all back alike, from what was recorded."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from django.db import DatabaseError

from consolidation import learning, merge, review
from consolidation.operations import Kind
from consolidation.runner.distilling import compact, promote
from consolidation.runner.naming import alias
from consolidation.runner.work import Effect, Work, free_name, stamp
from observations import outbox, store
from observations.models import Evidence, GivenKey, Use
from observations.records import Claim, Record, StatedBy, Status, WrittenBy

ERASE_PRUNED = "erase_pruned"  # the outbox task that erases after the grace period


def _merge(work: Work, by: str) -> Effect:
    """A new row with the keeper's text and everybody's evidence; the sources leave the reads, whole (R58, R72, R96,
    R101).
    """
    operation = work.operation
    keep = int(operation.decision.get("keep") or operation.keeper_id or 0)
    combined = merge.combine(_records(work), keeper=keep, policy=work.policy)
    name = free_name(operation)
    derived = store.write_derived(
        scope=operation.scope,
        derived=store.Derived(
            claim=replace(combined.claim, external_id=name),
            sources=tuple(work.ids),
            derivation=Kind.MERGE,
            operation=stamp(operation),
            chain=combined.chain,
            uses_inherited=combined.uses_inherited,
            same_text_as=keep,
            at=work.now,
        ),
    )
    store.move(scope_id=operation.scope_id, ids=work.ids, to=Status.ARCHIVED, successor=derived)
    store.copy_key(scope_id=operation.scope_id, into=derived, source=keep)  # what a model gave the text holds here too
    return Effect(moved=tuple(work.ids), derived=derived)


def _supersede(work: Work, by: str) -> Effect:
    """One claim stays, or all do, or the reviewer's own words replace them; what loses is superseded, never changed."""
    operation, chosen = work.operation, work.operation.decision
    many = bool(chosen.get("many_valued"))
    if many or not chosen.get("both"):
        _teach(work, many=many)
    if many or chosen.get("both"):
        review.remember_distinct(operation=operation, ids=work.ids, by=by)
        periods = {pk: (_moment(start), _moment(end)) for pk, start, end in chosen.get("both", [])}
        dated = store.set_validity(scope_id=operation.scope_id, periods=periods)
        return Effect(moved=(), dated=tuple(dated))
    winner, written = chosen.get("keep"), None
    if winner is None:
        winner = written = _right_claim(work, by)
    losers = [pk for pk in work.ids if pk != winner]
    store.move(scope_id=operation.scope_id, ids=losers, to=Status.SUPERSEDED, successor=winner)
    return Effect(moved=tuple(losers), derived=written)


def _right_claim(work: Work, by: str) -> int:
    """Write the claim a reviewer gave instead of all live ones: an operator's word, not a derived row."""
    operation = work.operation
    subject, predicate = _key(work)
    claim = Claim(
        text=operation.decision_text,
        external_id=free_name(operation),
        subject=subject,
        predicate=predicate,
        confidence=0.9,
        stated_by=StatedBy.OPERATOR,
        created_at=operation.decided_at,
    )
    [written] = store.add_observations(scope=operation.scope, claims=[claim], written_by=WrittenBy.DELIBERATE)
    if written.id is None:
        raise DatabaseError(written.reason)
    store.copy_evidence(scope_id=operation.scope_id, into=written.id, sources=work.ids)
    return written.id


def _teach(work: Work, *, many: bool) -> None:
    """What the decision says about the predicate, for the next time."""
    operation, (_, predicate) = work.operation, _key(work)
    scope_id, by = operation.scope_id, operation.decided_by
    learning.teach(scope_id=scope_id, predicate=predicate, many=many, operation=stamp(operation), by=by)


def _key(work: Work) -> tuple[str, str]:
    """Subject and predicate of the values in question, in the newest one's words, its given key included. One query."""
    newest = max(work.rows.values(), key=lambda row: (row.created_at, row.pk))
    given = GivenKey.objects.filter(scope_id=newest.scope_id, observation=newest, state=GivenKey.State.GIVEN).first()
    return newest.key_with(given)[:2]


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _archive(work: Work, by: str) -> Effect:
    """Rows leave the reads, whole and without a successor."""
    store.move(scope_id=work.operation.scope_id, ids=work.ids, to=Status.ARCHIVED)
    return Effect(moved=tuple(work.ids))


def _prune(work: Work, by: str) -> Effect:
    """Rows leave the reads now and are erased after the grace period, in which undo still works."""
    operation = work.operation
    live = [pk for pk in work.ids if work.rows[pk].status == Status.ACTIVE]
    store.move(scope_id=operation.scope_id, ids=live, to=Status.ARCHIVED)
    outbox.enqueue(
        task=ERASE_PRUNED,
        scope_id=operation.scope_id,
        key=stamp(operation),
        payload={"operation": operation.pk},
        due_at=work.now + timedelta(days=work.policy.grace_days),
    )
    return Effect(moved=tuple(live))


EFFECTS = {
    Kind.MERGE: _merge,
    Kind.SUPERSEDE: _supersede,
    Kind.ARCHIVE: _archive,
    Kind.PRUNE: _prune,
    Kind.PROMOTE: promote,
    Kind.COMPACT: compact,
    Kind.ALIAS: alias,
}


def _records(work: Work) -> list[Record]:
    """The locked sources as the rules see them, with the roots of their evidence and their uses. Two queries."""
    scope_id = work.operation.scope_id
    roots: dict[int, set[str]] = {}
    for pk, root in Evidence.objects.filter(scope_id=scope_id, observation_id__in=work.ids).values_list(
        "observation_id", "root_source"
    ):
        roots.setdefault(pk, set()).add(root)
    uses: dict[int, int] = {}
    counted = Use.objects.filter(scope_id=scope_id, observation_id__in=work.ids)
    for pk in counted.values_list("observation_id", flat=True):
        uses[pk] = uses.get(pk, 0) + 1
    return [work.rows[pk].record(roots=frozenset(roots.get(pk, ())), uses=uses.get(pk, 0)) for pk in work.ids]
