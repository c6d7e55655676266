"""What each kind of operation does to memory, one function each. Undo takes all back alike, from what was recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import DatabaseError

from consolidation import merge, review
from consolidation.models import Operation
from consolidation.operations import Kind
from consolidation.runner.work import Work, stamp
from observations import outbox, store
from observations.models import Evidence, Observation, Use
from observations.records import Claim, Record, StatedBy, Status, WrittenBy

ERASE_PRUNED = "erase_pruned"  # the outbox task that erases after the grace period


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


def _merge(work: Work, by: str) -> Effect:
    """A new row with the keeper's text and everybody's evidence; the sources leave the reads, whole (R58, R72, R96,
    R101).
    """
    operation = work.operation
    keep = int(operation.decision.get("keep") or operation.keeper_id or 0)
    combined = merge.combine(_records(work), keeper=keep, policy=work.policy)
    name = _free_name(operation)
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
    return Effect(moved=tuple(work.ids), derived=derived)


def _supersede(work: Work, by: str) -> Effect:
    """One claim stays, or all do, or the reviewer's own words replace them; what loses is superseded, never changed."""
    operation, chosen = work.operation, work.operation.decision
    if chosen.get("many_valued") or chosen.get("both"):
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
    newest = max(work.rows.values(), key=lambda row: (row.created_at, row.pk))
    claim = Claim(
        text=operation.decision_text,
        external_id=_free_name(operation),
        subject=newest.subject,
        predicate=newest.predicate,
        confidence=0.9,
        stated_by=StatedBy.OPERATOR,
        created_at=operation.decided_at,
    )
    [written] = store.add_observations(scope=operation.scope, claims=[claim], written_by=WrittenBy.DELIBERATE)
    if written.id is None:
        raise DatabaseError(written.reason)
    store.copy_evidence(scope_id=operation.scope_id, into=written.id, sources=work.ids)
    return written.id


def _free_name(operation: Operation) -> str:
    """The external id of the row an operation writes: its stamp, unless an import or a writer has taken that already.

    A store that was exported and imported again makes the same ids, beside the rows of its former operations. One
    query.
    """
    names = [stamp(operation), *(f"{stamp(operation)}~{number}" for number in range(2, 100))]
    rows = Observation.objects.filter(scope_id=operation.scope_id, external_id__in=names)
    taken = set(rows.values_list("external_id", flat=True))
    return next((name for name in names if name not in taken), stamp(operation))


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


EFFECTS = {Kind.MERGE: _merge, Kind.SUPERSEDE: _supersede, Kind.ARCHIVE: _archive, Kind.PRUNE: _prune}


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
