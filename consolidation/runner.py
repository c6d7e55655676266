"""APPLY and UNDO, side by side: one transaction per operation, its preconditions checked under lock, its event written last.

Locks are always taken in this order: the scope (exclusive, so one applier per scope), the operation, the memory rows in id order,
the consumptions. Killed anywhere, an operation is wholly done or not done (R56, R82); doing it twice is doing it once (I8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from django.db import DatabaseError, OperationalError, transaction
from django.db.models import F

from consolidation import merge, review
from consolidation.models import Consumption, Operation, OperationSource, Policy, held
from consolidation.operations import Approval, Json, Kind, State, obs
from consolidation.policy import Policy as Rules
from observations import outbox, store
from observations.models import Event, Evidence, Observation, Outbox, Transition, Use, database_now
from observations.records import Claim, Record, StatedBy, Status, WrittenBy

ERASE_PRUNED = "erase_pruned"  # the outbox task that erases after the grace period
REVERSIBLE = (Kind.MERGE, Kind.SUPERSEDE, Kind.ARCHIVE)  # approve-and-apply in one step is offered for these only


class Outcome(StrEnum):
    """What became of one attempt to apply or undo."""

    APPLIED = "applied"
    UNDONE = "undone"
    ALREADY = "already"  # it was done before: nothing changed
    STALE = "stale"  # its sources or the policy changed since planning: nothing of it was written
    REFUSED = "refused"  # not approved, expired, held, paused, or something was built on top
    FAILED = "failed"  # the database refused it: nothing of it was written


@dataclass(frozen=True, slots=True)
class Result:
    """One attempt, for a person to read."""

    operation: str
    kind: str
    outcome: Outcome
    sentence: str


@dataclass(frozen=True, slots=True)
class UndoPreview:
    """What an undo would do, or what stands in its way (C13)."""

    restores: tuple[int, ...]  # observations that become what they were
    retracts: int | None  # the derived row that leaves the reads
    blockers: tuple[str, ...]  # a sentence each; not empty: the undo is refused


@dataclass(frozen=True, slots=True)
class _Work:
    """One operation under lock, with everything apply and undo look at."""

    operation: Operation
    sources: list[OperationSource]
    rows: dict[int, Observation]
    policy: Rules
    now: datetime  # the database's clock, read when the lock was had

    @property
    def ids(self) -> list[int]:
        return [source.observation_id or 0 for source in self.sources]


@dataclass(frozen=True, slots=True)
class _Effect:
    """What carrying out one kind did: the row it wrote, and the sources it moved or gave a period."""

    moved: tuple[int, ...]  # these left the reads, and are consumed
    derived: int | None = None
    dated: tuple[int, ...] = ()  # these stay, with a period of validity

    @property
    def touched(self) -> frozenset[int]:
        """Sources that stand one version higher than before."""
        return frozenset(self.moved) | frozenset(self.dated)


# --- apply ----------------------------------------------------------------------------------------------------------


def apply(*, operation: Operation, by: str) -> Result:
    """Carry out exactly what was reviewed, or say why not. Never raises for a stale, refused or failed operation.

    Raises django.db.OperationalError when the database itself is unreachable or out of space; nothing is written then.
    """
    try:
        with transaction.atomic():
            return _apply_under_lock(operation, by)
    except OperationalError:
        raise
    except DatabaseError as error:
        return _failed(operation, by, error)


def _apply_under_lock(operation: Operation, by: str) -> Result:
    work = _lock(operation, cause="apply")
    if done := _refusal_to_apply(work):
        return done
    if moved := _moved_since_review(work):
        return _stale(work, by, moved)
    effect = _EFFECTS[Kind(work.operation.kind)](work, by)
    _record_priors(work, effect)
    _consume(work, effect.moved)
    return _applied(work, by, effect)


def _refusal_to_apply(work: _Work) -> Result | None:
    operation = work.operation
    if operation.status == State.APPLIED:
        return _result(operation, Outcome.ALREADY, f"{operation.op_id} is already applied.")
    if operation.status == State.STALE:
        return _result(operation, Outcome.STALE, f"{operation.op_id} is stale: {operation.outcome}.")
    allowed = operation.status == State.APPROVED or (
        operation.status == State.PLANNED and operation.approval == Approval.AUTO
    )
    if not allowed:
        return _result(operation, Outcome.REFUSED, f"{operation.op_id} is {operation.status.replace('_', ' ')}, not approved.")
    if operation.status == State.APPROVED and review.expired(operation, now=work.now):
        sentence = f"The approval of {operation.op_id} by {operation.decided_by} has expired: approve it again."
        return _result(operation, Outcome.REFUSED, sentence)
    if reason := held(scope=operation.scope, now=work.now):
        return _result(operation, Outcome.REFUSED, f"{operation.op_id} waits: {reason}.")
    return None


def _moved_since_review(work: _Work) -> str:
    """What changed since the operation was planned or approved; empty when its digest still holds (I18, C11)."""
    moved = review.changes(operation=work.operation, sources=work.sources, rows=work.rows)
    if moved:
        return "; ".join(moved)
    if work.operation.status == State.APPROVED:
        return "" if _digest(work) == work.operation.approved_digest else "the policy changed since it was approved"
    return "" if work.policy.hash == work.operation.policy_hash else "the policy changed since it was planned"


def _digest(work: _Work) -> str:
    rows = [work.rows[pk] for pk in work.ids]
    return review.digest_of(operation=work.operation, rows=rows, policy_hash=work.policy.hash)


def _stale(work: _Work, by: str, moved: str) -> Result:
    operation = work.operation
    operation.status, operation.outcome = State.STALE, moved[:500]
    operation.save(update_fields=["status", "outcome"])
    _event(operation, State.STALE, by, {"changed": moved[:500]})
    return _result(operation, Outcome.STALE, f"{operation.op_id} is stale: {moved}. Nothing of it was written; plan again.")


def _failed(operation: Operation, by: str, error: DatabaseError) -> Result:
    """Record a refusal by the database itself; the reason is PostgreSQL's code, because its text may quote memory."""
    code = getattr(error.__cause__, "sqlstate", None) or type(error).__name__
    sentence = f"the database refused it ({code})"
    with transaction.atomic():
        locked = Operation.objects.select_for_update(of=("self",)).get(pk=operation.pk)
        if locked.status in (State.PLANNED, State.APPROVED):
            locked.status, locked.outcome = State.FAILED, sentence
            locked.save(update_fields=["status", "outcome"])
            _event(locked, State.FAILED, by, {"sqlstate": code})
    return _result(operation, Outcome.FAILED, f"{operation.op_id} failed: {sentence}. Nothing of it was written.")


def _applied(work: _Work, by: str, effect: _Effect) -> Result:
    operation = work.operation
    operation.applied_digest = operation.approved_digest or _digest(work)
    operation.status, operation.applied_by, operation.applied_at = State.APPLIED, by, work.now
    operation.derived_id = effect.derived
    operation.save(update_fields=["status", "applied_by", "applied_at", "applied_digest", "derived"])
    _event(operation, State.APPLIED, by, {"derived": effect.derived, "moved": list(effect.moved), "digest": operation.applied_digest})
    product = f" into {obs(effect.derived)}" if effect.derived else ""
    return _result(operation, Outcome.APPLIED, f"{operation.kind} of {operation.n_sources}{product} applied.")


# What each kind does to memory. One function each; undo below takes all of them back alike, from what was recorded.


def _merge(work: _Work, by: str) -> _Effect:
    """A new row with the keeper's text and everybody's evidence; the sources leave the reads, whole (R58, R72, R73, R96, R101)."""
    operation = work.operation
    keep: int = operation.decision.get("keep") or operation.keeper_id
    combined = merge.combine(_records(work), keeper=keep, policy=work.policy)
    derived = store.write_derived(
        scope=operation.scope,
        derived=store.Derived(
            claim=replace(combined.claim, external_id=_stamp(operation)),
            sources=tuple(work.ids),
            derivation=Kind.MERGE,
            operation=_stamp(operation),
            chain=combined.chain,
            uses_inherited=combined.uses_inherited,
            same_text_as=keep,
            at=work.now,
        ),
    )
    store.move(scope_id=operation.scope_id, ids=work.ids, to=Status.ARCHIVED, successor=derived)
    return _Effect(moved=tuple(work.ids), derived=derived)


def _supersede(work: _Work, by: str) -> _Effect:
    """One claim stays, or all do, or the reviewer's own words replace them; what loses is superseded, never changed."""
    operation, chosen = work.operation, work.operation.decision
    if chosen.get("many_valued") or chosen.get("both"):
        review.remember_distinct(operation=operation, ids=work.ids, by=by)
        periods = {pk: (_moment(start), _moment(end)) for pk, start, end in chosen.get("both", [])}
        dated = store.set_validity(scope_id=operation.scope_id, periods=periods)
        return _Effect(moved=(), dated=tuple(dated))
    winner, written = chosen.get("keep"), None
    if winner is None:
        winner = written = _right_claim(work, by)
    losers = [pk for pk in work.ids if pk != winner]
    store.move(scope_id=operation.scope_id, ids=losers, to=Status.SUPERSEDED, successor=winner)
    return _Effect(moved=tuple(losers), derived=written)


def _right_claim(work: _Work, by: str) -> int:
    """Write the claim a reviewer gave instead of all live ones: an operator's word, not a derived row."""
    operation = work.operation
    newest = max(work.rows.values(), key=lambda row: (row.created_at, row.pk))
    claim = Claim(
        text=operation.decision_text,
        external_id=_stamp(operation),
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


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _archive(work: _Work, by: str) -> _Effect:
    """Rows leave the reads, whole and without a successor."""
    store.move(scope_id=work.operation.scope_id, ids=work.ids, to=Status.ARCHIVED)
    return _Effect(moved=tuple(work.ids))


def _prune(work: _Work, by: str) -> _Effect:
    """Rows leave the reads now and are erased after the grace period, in which undo still works."""
    operation = work.operation
    live = [pk for pk in work.ids if work.rows[pk].status == Status.ACTIVE]
    store.move(scope_id=operation.scope_id, ids=live, to=Status.ARCHIVED)
    outbox.enqueue(
        task=ERASE_PRUNED,
        scope_id=operation.scope_id,
        key=_stamp(operation),
        payload={"operation": operation.pk},
        due_at=work.now + timedelta(days=work.policy.grace_days),
    )
    return _Effect(moved=tuple(live))


_EFFECTS = {Kind.MERGE: _merge, Kind.SUPERSEDE: _supersede, Kind.ARCHIVE: _archive, Kind.PRUNE: _prune}


def _record_priors(work: _Work, effect: _Effect) -> None:
    """Keep how every source stood, and the version the application left behind. One query."""
    for source in work.sources:
        row = work.rows[source.observation_id or 0]
        source.prior_status, source.prior_superseded_by_id = row.status, row.superseded_by_id
        source.prior_valid_from, source.prior_valid_to = row.valid_from, row.valid_to
        source.applied_version = row.version + (row.pk in effect.touched)
    fields = ["prior_status", "prior_superseded_by_id", "prior_valid_from", "prior_valid_to", "applied_version"]
    OperationSource.objects.bulk_update(work.sources, fields)


def _consume(work: _Work, ids: Sequence[int]) -> None:
    """Use the moved sources up: the unique key lets one applied operation have each (I4). One query."""
    Consumption.objects.bulk_create(
        Consumption(scope_id=work.operation.scope_id, operation=work.operation, observation_id=pk) for pk in ids
    )


# --- undo -----------------------------------------------------------------------------------------------------------


def undo(*, operation: Operation, by: str) -> Result:
    """Put back exactly what was there, or say what stands in the way. Never raises for a refused or failed undo."""
    try:
        with transaction.atomic():
            return _undo_under_lock(operation, by)
    except OperationalError:
        raise
    except DatabaseError as error:
        code = getattr(error.__cause__, "sqlstate", None) or type(error).__name__
        return _result(operation, Outcome.FAILED, f"Undoing {operation.op_id} failed: the database refused it ({code}).")


def _undo_under_lock(operation: Operation, by: str) -> Result:
    work = _lock(operation, cause="undo")
    if done := _refusal_to_undo(work):
        return done
    if blockers := _blockers(work):
        return _result(work.operation, Outcome.REFUSED, " ".join(blockers))
    _restore(work)
    _release(work)
    return _undone(work, by)


def undo_preview(*, operation: Operation) -> UndoPreview:
    """What undo would do, without doing it: the page shows it first (promise 5). Reads only."""
    sources = review.sources_of(operation)
    ids = [source.observation_id or 0 for source in sources] + [operation.derived_id or 0]
    rows = Observation.objects.filter(scope_id=operation.scope_id).in_bulk(ids)
    work = _Work(operation, sources, rows, Rules(), database_now())
    refused = _refusal_to_undo(work)
    blockers = (refused.sentence,) if refused else tuple(_blockers(work))
    restores = tuple(source.observation_id or 0 for source in sources if rows[source.observation_id or 0].version != source.planned_version)
    return UndoPreview(restores=restores, retracts=operation.derived_id, blockers=blockers)


def _refusal_to_undo(work: _Work) -> Result | None:
    operation = work.operation
    if operation.status == State.UNDONE:
        return _result(operation, Outcome.ALREADY, f"{operation.op_id} is already undone.")
    if operation.status != State.APPLIED:
        return _result(operation, Outcome.REFUSED, f"{operation.op_id} is {operation.status.replace('_', ' ')}: only an applied operation can be undone.")
    if reason := held(scope=operation.scope, now=work.now):
        return _result(operation, Outcome.REFUSED, f"{operation.op_id} waits: {reason}.")
    return None


def _blockers(work: _Work) -> list[str]:
    """A sentence for everything that moved since: what was built on the result, erased, or changed by hand (C13)."""
    watched = {source.observation_id or 0: source.applied_version for source in work.sources}
    if work.operation.derived_id:
        watched[work.operation.derived_id] = 1
    later = _later_operations(work, list(watched))
    found = [f"{op_id} was built on it: undo {op_id} first." for op_id in later]
    if found:
        return found
    for pk, version in watched.items():
        row = work.rows[pk]
        if row.status == Status.ERASED:
            found.append(f"{obs(pk)} is erased and cannot come back.")
        elif row.version != version and not _taken_back(work, pk, since=version or 0):
            found.append(f"{obs(pk)} {review.MOVED.get(Status(row.status), 'changed')} since.")
    return found


def _taken_back(work: _Work, pk: int, *, since: int) -> bool:
    """True when everything that moved a row since was an operation that has been undone, so that it stands as it was left."""
    moves = Transition.objects.filter(scope_id=work.operation.scope_id, observation_id=pk, version__gt=since)
    stamps = {cause.partition(" ")[2] for cause in moves.values_list("cause", flat=True)}
    undone = Operation.objects.filter(scope_id=work.operation.scope_id, status=State.UNDONE)
    names = {stamp.partition("#")[0] for stamp in stamps}
    return stamps <= {_stamp(row) for row in undone.filter(op_id__in=names)}


def _later_operations(work: _Work, ids: list[int]) -> list[str]:
    """Applied operations that took in one of these rows after this one did, newest first. One query."""
    touching = OperationSource.objects.filter(
        scope_id=work.operation.scope_id,
        observation_id__in=ids,
        operation__status=State.APPLIED,
        operation__applied_at__gt=work.operation.applied_at,
    ).exclude(operation=work.operation)
    return list(dict.fromkeys(touching.order_by("-operation__applied_at").values_list("operation__op_id", flat=True)))


def _restore(work: _Work) -> None:
    """Sources as they stood; the row the operation wrote is retracted, not deleted."""
    operation = work.operation
    priors = [
        store.Prior(
            id=source.observation_id or 0,
            status=Status(source.prior_status),
            superseded_by_id=source.prior_superseded_by_id,
            valid_from=source.prior_valid_from,
            valid_to=source.prior_valid_to,
        )
        for source in work.sources
        if source.applied_version != source.planned_version
    ]
    store.restore(scope_id=operation.scope_id, priors=priors)
    # The version undo leaves behind is how the planner knows that nothing moved since (and does not ask again).
    moved = OperationSource.objects.filter(scope_id=operation.scope_id, operation=operation)
    moved.exclude(applied_version=F("planned_version")).update(applied_version=F("applied_version") + 1)
    if operation.derived_id:
        store.move(scope_id=operation.scope_id, ids=[operation.derived_id], to=Status.RETRACTED)


def _release(work: _Work) -> None:
    """Give the sources back, and remember that these were told apart, so that the next pass does not ask again."""
    operation = work.operation
    Consumption.objects.filter(scope_id=operation.scope_id, operation=operation).delete()
    Outbox.objects.filter(scope_id=operation.scope_id, task=ERASE_PRUNED, key=_stamp(operation), done_at=None).update(
        done_at=work.now
    )
    if operation.kind in (Kind.MERGE, Kind.SUPERSEDE):
        review.remember_distinct(operation=operation, ids=work.ids, by=operation.op_id)


def _undone(work: _Work, by: str) -> Result:
    operation = work.operation
    operation.status, operation.undone_by, operation.undone_at = State.UNDONE, by, work.now
    operation.save(update_fields=["status", "undone_by", "undone_at"])
    _event(operation, State.UNDONE, by, {"restored": work.ids, "retracted": operation.derived_id})
    return _result(operation, Outcome.UNDONE, f"{operation.kind} of {operation.n_sources} undone: its sources are as they were.")


# --- the end of a prune ---------------------------------------------------------------------------------------------


def erase_pruned(*, scope_id: int, operation_id: int) -> int:
    """Erase what an applied prune took out of the reads, once its grace period is over; returns how many rows.

    Does nothing when the prune was undone or already carried through, so a second delivery is harmless.
    """
    with transaction.atomic():
        operation = Operation.objects.select_related("scope").get(pk=operation_id, scope_id=scope_id)
        work = _lock(operation, cause="erase")
        if work.operation.kind != Kind.PRUNE or work.operation.status != State.APPLIED:
            return 0
        if held(scope=operation.scope, now=work.now):
            raise review.Refused(f"{operation.op_id} waits: the scope is on hold or paused.")
        erased = store.erase(
            scope_id=scope_id, ids=work.ids, by=operation.applied_by, reason="prune", request=operation.op_id
        )
        if erased:
            _event(work.operation, "erased", "system", {"erased": erased})
        return erased


# --- shared ---------------------------------------------------------------------------------------------------------


def _lock(operation: Operation, *, cause: str) -> _Work:
    """Take every lock, in the one order that cannot deadlock, and read what stands under it."""
    now = store.lock_scope(scope_id=operation.scope_id, exclusive=True, cause=f"{cause} {_stamp(operation)}")
    locked = Operation.objects.select_for_update(of=("self",)).select_related("scope").get(pk=operation.pk)
    sources = review.sources_of(locked)
    ids = [source.observation_id or 0 for source in sources]
    if locked.derived_id:
        ids.append(locked.derived_id)
    rows = store.lock_rows(scope_id=locked.scope_id, ids=ids)
    return _Work(locked, sources, rows, Policy.objects.effective(scope=locked.scope.name), now)


def _records(work: _Work) -> list[Record]:
    """The locked sources as the rules see them, with the roots of their evidence and their uses. Two queries."""
    scope_id = work.operation.scope_id
    roots: dict[int, set[str]] = {}
    for pk, root in Evidence.objects.filter(scope_id=scope_id, observation_id__in=work.ids).values_list(
        "observation_id", "root_source"
    ):
        roots.setdefault(pk, set()).add(root)
    uses: dict[int, int] = {}
    for pk in Use.objects.filter(scope_id=scope_id, observation_id__in=work.ids).values_list("observation_id", flat=True):
        uses[pk] = uses.get(pk, 0) + 1
    return [work.rows[pk].record(roots=frozenset(roots.get(pk, ())), uses=uses.get(pk, 0)) for pk in work.ids]


def _stamp(operation: Operation) -> str:
    """How rows name the operation that made them: its id and generation."""
    return f"{operation.op_id}#{operation.generation}"


def _event(operation: Operation, action: str, by: str, detail: dict[str, Json]) -> None:
    Event.objects.append(
        scope_id=operation.scope_id,
        action=action,
        actor=by,
        subject=operation.op_id,
        generation=operation.generation,
        detail=detail,
    )


def _result(operation: Operation, outcome: Outcome, sentence: str) -> Result:
    return Result(operation=operation.op_id, kind=operation.kind, outcome=outcome, sentence=sentence)
