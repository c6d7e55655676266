"""APPLY and UNDO, side by side: one transaction each, its preconditions checked under lock, its event written last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.models import F, Q

from consolidation import learning, review, sampling
from consolidation.models import Consumption, Operation, OperationSource, held
from consolidation.operations import OF_EPISODES, Approval, Json, Kind, State, obs
from consolidation.policy import Policy as Rules
from consolidation.runner import naming
from consolidation.runner.effects import EFFECTS, ERASE_PRUNED
from consolidation.runner.work import Effect, Outcome, Result, Work, lock, record, result, stamp
from observations import ingest, store
from observations.models import Episode, Observation, Outbox, Transition, Use, database_now
from observations.records import Status

_LEAVES_ITS_SOURCES = (Kind.PROMOTE, Kind.ALIAS)  # what happens to their sources later is not their business


@dataclass(frozen=True, slots=True)
class UndoPreview:
    """What an undo would do, or what stands in its way (C13)."""

    restores: tuple[int, ...]  # observations, or episodes, that become what they were
    retracts: int | None  # the derived row that leaves the reads
    blockers: tuple[str, ...]  # a sentence each; not empty: the undo is refused
    of_episodes: bool = False  # what it restores are episodes
    instead: tuple[int, ...] = ()  # observations that took the place of its rows since, and block it


@dataclass(frozen=True, slots=True)
class _Blocker:
    """One thing that stands in the way of an undo."""

    sentence: str
    instead: int | None = None  # the observation that took the place of one of its rows


# --- apply ----------------------------------------------------------------------------------------------------------


def apply(*, operation: Operation, by: str, agreed: bool = False, shown: str = "") -> Result:
    """Carry out exactly what was reviewed, or say why not. Never raises for a stale, refused or failed operation.

    `agreed`: two people agreed on the whole plan that it is part of, so nobody is asked again for how much it touches.
    `shown`: the digest of what the one who applies was shown, an approval's or a proposal's; another decision that was
    made meanwhile is not theirs (D2). Without one, what stands is applied.

    Raises django.db.OperationalError when the database itself is unreachable or out of space; nothing is written then.
    """
    try:
        with transaction.atomic():
            return _apply_under_lock(operation, by, agreed, shown)
    except review.Refused as refusal:
        return result(operation, Outcome.REFUSED, str(refusal))
    except OperationalError:
        raise
    except DatabaseError as error:
        return _failed(operation, by, error)


def _apply_under_lock(operation: Operation, by: str, agreed: bool, shown: str) -> Result:
    work = lock(operation, cause="apply")
    if done := refusal_to_apply(work, agreed=agreed):
        return done
    if moved := moved_since_review(work):
        return _stale(work, by, moved)
    if shown and shown != (work.operation.approved_digest or _digest(work)):
        sentence = f"{operation.op_id} was decided again after it was shown: look at what it would do now."
        return result(operation, Outcome.REFUSED, sentence)
    effect = EFFECTS[Kind(work.operation.kind)](work, by)
    _record_sources(work, effect)
    return _applied(work, by, effect)


def refusal_to_apply(work: Work, *, agreed: bool = False) -> Result | None:
    """Why it may not be applied as it stands now, or that it is done; None when it may. `agreed` as in `apply`."""
    operation = work.operation
    if operation.status == State.APPLIED:
        return result(operation, Outcome.ALREADY, f"{operation.op_id} is already applied.")
    if operation.status == State.STALE:
        return result(operation, Outcome.STALE, f"{operation.op_id} is stale: {operation.outcome}.")
    allowed = operation.status == State.APPROVED or (
        operation.status == State.PLANNED and operation.approval == Approval.AUTO
    )
    if not allowed:
        return result(operation, Outcome.REFUSED, f"{operation.op_id} is {_spoken(operation)}, not approved.")
    if operation.status == State.APPROVED and review.expired(operation, now=work.now):
        sentence = f"The approval of {operation.op_id} by {operation.decided_by} has expired: approve it again."
        return result(operation, Outcome.REFUSED, sentence)
    if never := _never(work):
        return result(operation, Outcome.REFUSED, never)
    if waits := review.unseconded(operation=operation, policy=work.policy, agreed=agreed):
        return result(operation, Outcome.REFUSED, waits)
    if operation.status == State.PLANNED and work.demoted:
        sentence = f"{operation.op_id} waits for a person to decide it: {work.demoted}."
        return result(operation, Outcome.REFUSED, sentence)
    if work.held:
        return result(operation, Outcome.REFUSED, f"{operation.op_id} waits: {work.held}.")
    return None


def _never(work: Work) -> str:
    """Why nobody's approval could have it applied; empty when one could."""
    operation = work.operation
    if operation.kind not in EFFECTS:
        return f"{operation.op_id}: {review.NOT_CARRIED_OUT}"
    if operation.kind == Kind.COMPACT and operation.n_sources > work.policy.max_compression:  # R81, R107
        return f"{operation.op_id} is over the limit of {work.policy.max_compression:g} episodes to one summary."
    return ""


def _spoken(operation: Operation) -> str:
    return operation.status.replace("_", " ")


def moved_since_review(work: Work) -> str:
    """What changed since the operation was planned or approved; empty when its digest still holds (I18, C11)."""
    moved = review.changes(operation=work.operation, sources=work.sources, rows=work.standing())
    if moved:
        return "; ".join(moved)
    if other := naming.moved(work) or _used_since(work):
        return other
    if work.operation.status == State.APPROVED:
        return "" if _digest(work) == work.operation.approved_digest else "the policy changed since it was approved"
    return "" if work.policy.hash == work.operation.policy_hash else "the policy changed since it was planned"


def _used_since(work: Work) -> str:
    """Which sources a prompt was given since they were planned to leave because none is (C10, I13). One query, for
    archives and for prunes of what nobody uses.
    """
    operation = work.operation
    unasked = operation.kind == Kind.ARCHIVE and not operation.requested_by  # a person who asks does so all the same
    if not unasked and not (operation.kind == Kind.PRUNE and operation.product.get("only_unused")):
        return ""
    given = Use.objects.filter(
        scope_id=operation.scope_id, observation_id__in=work.ids, used_at__gt=operation.created_at
    )
    rows = given.order_by("observation_id").values_list("observation_id", flat=True).distinct()
    return "; ".join(f"{obs(pk)} was used" for pk in rows)


def _digest(work: Work) -> str:
    standing = work.standing()
    rows = [standing[pk] for pk in work.ids]
    return review.digest_of(operation=work.operation, rows=rows, policy_hash=work.policy.hash)


def _stale(work: Work, by: str, moved: str) -> Result:
    operation = work.operation
    operation.status, operation.outcome = State.STALE, moved[:500]
    operation.save(update_fields=["status", "outcome"])
    record(operation, State.STALE, by, {"changed": moved[:500]})
    sentence = f"{operation.op_id} is stale: {moved}. Nothing of it was written; plan again."
    return result(operation, Outcome.STALE, sentence)


def _failed(operation: Operation, by: str, error: DatabaseError) -> Result:
    """Record a refusal by the database itself; the reason is PostgreSQL's code, because its text may quote memory."""
    code = getattr(error.__cause__, "sqlstate", None) or type(error).__name__
    sentence = f"the database refused it ({code})"
    with transaction.atomic():
        locked = Operation.objects.select_for_update(of=("self",)).get(pk=operation.pk)
        if locked.status in (State.PLANNED, State.APPROVED):
            locked.status, locked.outcome = State.FAILED, sentence
            locked.save(update_fields=["status", "outcome"])
            record(locked, State.FAILED, by, {"sqlstate": code})
    return result(operation, Outcome.FAILED, f"{operation.op_id} failed: {sentence}. Nothing of it was written.")


def _applied(work: Work, by: str, effect: Effect) -> Result:
    operation = work.operation
    operation.applied_digest = operation.approved_digest or _digest(work)
    operation.status, operation.applied_by, operation.applied_at = State.APPLIED, by, work.now
    operation.derived_id = effect.derived
    operation.save(update_fields=["status", "applied_by", "applied_at", "applied_digest", "derived"])
    detail: dict[str, Json] = {"derived": effect.derived, "moved": list(effect.moved)}
    record(operation, State.APPLIED, by, detail | {"digest": operation.applied_digest})
    product = f" into {obs(effect.derived)}" if effect.derived else ""
    return result(operation, Outcome.APPLIED, f"{operation.kind} of {operation.n_sources}{product} applied.")


# Set-based: Django's bulk_update takes ten times as long, inside the locks. What moved is used up: the unique key lets
# one applied operation have each source (I4).
_RECORD: Final = """
WITH stood (id, row_id, status, successor, valid_from, valid_to, version, moved) AS (
  SELECT * FROM unnest(%(sources)s::bigint[], %(rows)s::bigint[], %(status)s::text[], %(successor)s::bigint[],
    %(valid_from)s::timestamptz[], %(valid_to)s::timestamptz[], %(version)s::int[], %(moved)s::bool[])
), kept AS (
  UPDATE consolidation_operationsource s SET prior_status = p.status, prior_superseded_by_id = p.successor,
    prior_valid_from = p.valid_from, prior_valid_to = p.valid_to, applied_version = p.version
  FROM stood p WHERE s.scope_id = %(scope)s AND s.id = p.id
)
INSERT INTO consolidation_consumption (scope_id, operation_id, observation_id, episode_id)
SELECT %(scope)s, %(operation)s, CASE WHEN NOT %(of_episodes)s THEN row_id END,
  CASE WHEN %(of_episodes)s THEN row_id END
FROM stood WHERE moved ORDER BY row_id
"""


def _record_sources(work: Work, effect: Effect) -> None:
    """Keep how every source stood and the version the application left behind, and use up those that moved. One
    query.
    """
    standing, moved = work.standing(), frozenset(effect.moved)
    before = [standing[pk] for pk in work.ids]
    claims = [row if isinstance(row, Observation) else None for row in before]
    values: dict[str, Any] = {
        "scope": work.operation.scope_id,
        "operation": work.operation.pk,
        "of_episodes": work.of_episodes,
        "sources": [source.pk for source in work.sources],
        "rows": work.ids,
        "status": [row.status for row in before],
        "successor": [row and row.superseded_by_id for row in claims],
        "valid_from": [row and row.valid_from for row in claims],
        "valid_to": [row and row.valid_to for row in claims],
        "version": [row.version + (row.pk in effect.touched) for row in before],
        "moved": [row.pk in moved for row in before],
    }
    with connection.cursor() as cursor:
        cursor.execute(_RECORD, values)


# --- undo -----------------------------------------------------------------------------------------------------------


def undo(*, operation: Operation, by: str, along_with: str = "") -> Result:
    """Put back exactly what was there, or say what stands in the way. Never raises for a refused or failed undo.

    What was applied without a decision and is undone counts as wrong, unless it goes `along_with` something: a whole
    plan, or an operation that it was built on.
    """
    try:
        with transaction.atomic():
            undone = _undo_under_lock(operation, by, along_with)
    except review.Refused as refusal:
        return result(operation, Outcome.REFUSED, str(refusal))
    except OperationalError:
        raise
    except DatabaseError as error:
        code = getattr(error.__cause__, "sqlstate", None) or type(error).__name__
        return result(operation, Outcome.FAILED, f"Undoing {operation.op_id} failed: the database refused it ({code}).")
    if undone.outcome == Outcome.UNDONE and not along_with:  # committed: counting its band holds no lock of its scope
        sampling.count_undone(operation=operation)
    return undone


def _undo_under_lock(operation: Operation, by: str, along_with: str) -> Result:
    work = lock(operation, cause="undo")
    if done := _refusal_to_undo(work):
        return done
    if blockers := _blockers(work):
        return result(work.operation, Outcome.REFUSED, " ".join(found.sentence for found in blockers))
    _restore(work)
    _release(work)
    return _undone(work, by, along_with)


def undo_preview(*, operation: Operation) -> UndoPreview:
    """What undo would do, without doing it: the page shows it first (promise 5). Reads only."""
    sources = review.sources_of(operation)
    ids = [source.row_id for source in sources]
    of_episodes = operation.kind in OF_EPISODES
    watched = ([] if of_episodes else ids) + ([operation.derived_id] if operation.derived_id else [])
    rows = Observation.objects.filter(scope_id=operation.scope_id).in_bulk(watched)
    turns = Episode.objects.filter(scope_id=operation.scope_id).in_bulk(ids if of_episodes else [])
    now = database_now()
    work = Work(operation, sources, rows, Rules(), now, held(scope=operation.scope, now=now), turns)
    refused = _refusal_to_undo(work)
    found = [_Blocker(refused.sentence)] if refused else _blockers(work)
    moved = [source for source in sources if source.applied_version not in (None, source.planned_version)]
    restores = tuple(source.row_id for source in moved)
    return UndoPreview(
        restores=restores,
        retracts=operation.derived_id,
        blockers=tuple(each.sentence for each in found),
        of_episodes=of_episodes,
        instead=tuple(dict.fromkeys(each.instead for each in found if each.instead)),
    )


def _refusal_to_undo(work: Work) -> Result | None:
    operation = work.operation
    if operation.status == State.UNDONE:
        return result(operation, Outcome.ALREADY, f"{operation.op_id} is already undone.")
    if operation.status != State.APPLIED:
        sentence = f"{operation.op_id} is {_spoken(operation)}: only an applied operation can be undone."
        return result(operation, Outcome.REFUSED, sentence)
    if work.held:
        return result(operation, Outcome.REFUSED, f"{operation.op_id} waits: {work.held}.")
    return None


def _blockers(work: Work) -> list[_Blocker]:
    """A sentence for everything that moved since: what was built on the result, erased, or changed by hand (C13)."""
    watched = (
        {}
        if work.operation.kind in _LEAVES_ITS_SOURCES
        else {source.row_id: source.applied_version for source in work.sources}
    )
    derived = work.operation.derived_id
    rows = ([] if work.of_episodes else list(watched)) + ([derived] if derived else [])
    turns = list(watched) if work.of_episodes else []
    if later := _later_operations(work, rows, turns):
        return [_Blocker(f"{op_id} was built on it: undo {op_id} first.") for op_id in later]
    standing = work.standing()
    moved = [(standing[pk], version) for pk, version in watched.items()] + (
        [(work.rows[derived], 1)] if derived else []
    )
    found = [_moved(work, row, since=version) for row, version in moved]
    return _hanging_on(work) + [blocker for blocker in found if blocker]


def _hanging_on(work: Work) -> list[_Blocker]:
    """Rows that a writer has replaced by the result since: without it they would lead nowhere (I2). One query."""
    if work.operation.derived_id is None:
        return []
    rows = Observation.objects.filter(scope_id=work.operation.scope_id, superseded_by_id=work.operation.derived_id)
    later = rows.exclude(pk__in=work.ids).order_by("pk").values_list("pk", flat=True)
    return [_Blocker(f"{obs(pk)} was replaced by its result since.") for pk in later]


def _moved(work: Work, row: Observation | Episode, *, since: int | None) -> _Blocker | None:
    """What a row's moves since a version put in the way; None when all of them were undone or taken back. Two queries,
    for a row that moved.
    """
    if row.status == Status.ERASED:
        return _Blocker(f"{row} is erased and cannot come back.")
    if row.version == since:
        return None
    moves = Transition.objects.filter(scope_id=work.operation.scope_id, version__gt=since or 0)
    moves = moves.filter(observation=row) if isinstance(row, Observation) else moves.filter(episode=row)
    causes = ingest.standing_moves(causes=moves.order_by("version").values_list("cause", flat=True))
    if _all_undone(work, causes):
        return None
    if not isinstance(row, Observation) or row.superseded_by_id is None:
        return _Blocker(f"{row} {review.MOVED.get(Status(row.status), 'changed')} since.")
    return _replaced(row, by=row.superseded_by_id, cause=causes[-1] if causes else "")


def _replaced(row: Observation, *, by: int, cause: str) -> _Blocker:
    """Names the row that took the place; only the background's are taken back, so nothing else is asked for."""
    sentence = f"{row} was superseded by {obs(by)} since"
    if ingest.put_by_background(cause=cause):
        return _Blocker(f"{sentence}: take that back first, on its page.", instead=by)
    stays = f", and not in the background, so this stays applied: correct or retire {obs(by)} instead."
    return _Blocker(sentence + stays, instead=by)


def _all_undone(work: Work, causes: Sequence[str]) -> bool:
    """True when operations that were undone made all of these moves, so that the row stands as it was left."""
    stamps = {cause.partition(" ")[2] for cause in causes}
    undone = Operation.objects.filter(scope_id=work.operation.scope_id, status=State.UNDONE)
    names = {cause.partition("#")[0] for cause in stamps}
    return stamps <= {stamp(row) for row in undone.filter(op_id__in=names)}


def _later_operations(work: Work, rows: list[int], turns: list[int]) -> list[str]:
    """Applied operations that took in one of these rows after this one did, newest first; an alias takes none. One
    query.
    """
    touching = OperationSource.objects.filter(
        Q(observation_id__in=rows) | Q(episode_id__in=turns),
        scope_id=work.operation.scope_id,
        operation__status=State.APPLIED,
        operation__applied_at__gt=work.operation.applied_at,
    ).exclude(Q(operation=work.operation) | Q(operation__kind=Kind.ALIAS))
    return list(dict.fromkeys(touching.order_by("-operation__applied_at").values_list("operation__op_id", flat=True)))


def _restore(work: Work) -> None:
    """Sources as they stood; the row the operation wrote is retracted, not deleted."""
    operation = work.operation
    moved = [source for source in work.sources if source.applied_version != source.planned_version]
    if work.of_episodes:
        ids = [source.row_id for source in moved]  # compacted episodes were active: no rule takes any other
        store.move_episodes(scope_id=operation.scope_id, ids=ids, to=Status.ACTIVE)
    else:
        _restore_observations(work, moved)
    # The version undo leaves behind is how the planner knows that nothing moved since (and does not ask again).
    left = OperationSource.objects.filter(scope_id=operation.scope_id, operation=operation)
    left.exclude(applied_version=F("planned_version")).update(applied_version=F("applied_version") + 1)
    if operation.derived_id:
        store.move(scope_id=operation.scope_id, ids=[operation.derived_id], to=Status.RETRACTED)


def _restore_observations(work: Work, moved: Sequence[OperationSource]) -> None:
    priors = [
        store.Prior(
            id=source.row_id,
            status=Status(source.prior_status),
            superseded_by_id=source.prior_superseded_by_id,
            valid_from=source.prior_valid_from,
            valid_to=source.prior_valid_to,
        )
        for source in moved
    ]
    scope = work.operation.scope
    store.restore(scope_id=scope.pk, priors=priors)
    store.ask_for_vectors(scope=scope, ids=[prior.id for prior in priors if prior.status == Status.ACTIVE])


def _release(work: Work) -> None:
    """Give the sources back, and remember that merged rows were told apart, so that the next pass does not ask again.

    A contradiction taken back is one still: it is asked again once its sources or the policy changed.
    """
    operation = work.operation
    Consumption.objects.filter(scope_id=operation.scope_id, operation=operation).delete()
    if operation.kind == Kind.PRUNE:
        due = Outbox.objects.filter(scope_id=operation.scope_id, task=ERASE_PRUNED, key=stamp(operation), done_at=None)
        due.update(done_at=work.now)
    if operation.kind == Kind.SUPERSEDE:
        learning.unteach(scope_id=operation.scope_id, operation=stamp(operation), at=work.now)
    if operation.kind == Kind.ALIAS:
        naming.take_back(work)
    if operation.kind == Kind.MERGE:
        review.remember_distinct(operation=operation, ids=work.ids, by=operation.op_id)


def _undone(work: Work, by: str, along_with: str) -> Result:
    operation = work.operation
    operation.status, operation.undone_by, operation.undone_at = State.UNDONE, by, work.now
    operation.save(update_fields=["status", "undone_by", "undone_at"])
    whole: dict[str, Json] = {"with": along_with} if along_with else {}
    record(operation, State.UNDONE, by, {"restored": work.ids, "retracted": operation.derived_id, **whole})
    sentence = f"{operation.kind} of {operation.n_sources} undone: its sources are as they were."
    return result(operation, Outcome.UNDONE, sentence)


# --- the end of a prune ---------------------------------------------------------------------------------------------


def erase_pruned(*, scope_id: int, operation_id: int) -> int:
    """Erase what an applied prune took out of the reads, once its grace period is over; returns how many rows.

    Does nothing when the prune was undone or already carried through, so a second delivery is harmless. Raises Refused
    within the grace period, on hold and while paused: erasing cannot be taken back.
    """
    with transaction.atomic():
        operation = Operation.objects.select_related("scope").get(pk=operation_id, scope_id=scope_id)
        work = lock(operation, cause="erase")
        if work.operation.kind != Kind.PRUNE or work.operation.status != State.APPLIED:
            return 0
        if reason := work.held or _grace(work):
            raise review.Refused(f"{operation.op_id} waits: {reason}.")
        erased = store.erase(
            scope_id=scope_id, ids=work.ids, by=operation.applied_by, reason="prune", request=operation.op_id
        )
        if erased:
            record(work.operation, "erased", "system", {"erased": erased})
        return erased


def _grace(work: Work) -> str:
    """Why it is too early to erase: the grace period of the policy as it is now, whatever woke this up."""
    assert work.operation.applied_at is not None
    ends = work.operation.applied_at + timedelta(days=work.policy.grace_days)
    return f"its grace period ends on {ends:%Y-%m-%d %H:%M} UTC" if work.now < ends else ""
