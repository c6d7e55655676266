"""One decision over many items: exactly those listed when it was asked for, each in its own transaction.

What may be approved together was shown in full, with a digest of each, and so was what a second person agrees to
together; what is refused or put off may be a whole list of one sort, in one scope. What arrives after the asking is no
part of it (D2). Every item keeps what became of it, in the transaction that decided it, so that a killed worker's
successor goes on with those that still wait.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from django.contrib.auth.models import User
from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.models import Count

from consolidation.models import BulkDecision, BulkItem, Operation, OperationQuerySet
from consolidation.operations import Kind
from consolidation.review.deciding import (
    NOT_CARRIED_OUT,
    TELLS_APART,
    AlreadyDecided,
    Refused,
    approve,
    distinct,
    refuse_changed,
    reject,
)
from consolidation.review.reopening import defer
from consolidation.review.reviewers import reviewed_by
from consolidation.review.seconding import second
from consolidation.review.together import scopes_over
from observations import outbox
from observations.models import Outbox, database_now

BULK_DECIDE: Final = "bulk_decide"
AT_ONCE: Final = 50  # the most that may be approved or agreed to together, and that a request decides itself
CONFIRMED_WITHIN: Final = timedelta(hours=12)  # what was listed may be decided this long afterwards
# Undo puts all of it back, and nothing has to be chosen. A supersede asks which claim stays.
APPROVED_TOGETHER: Final = (Kind.MERGE, Kind.PROMOTE, Kind.COMPACT, Kind.ARCHIVE, Kind.ALIAS)

log = logging.getLogger(__name__)


class Verb(StrEnum):
    """What may be done to many items at once."""

    APPROVE = "approve"
    REJECT = "reject"
    DISTINCT = "distinct"
    DEFER = "defer"
    SECOND = "second"  # agree, as another person, to what was approved


# What needs every item shown whole, with the digest of what was shown; and what is said of it.
WHOLE: Final[Mapping[Verb, str]] = {Verb.APPROVE: "approved", Verb.SECOND: "agreed to"}


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one is: items by what became of them."""

    total: int
    done: int
    refused: int
    started: bool
    finished: bool
    trouble: str = ""  # why a worker could not go on, when the last one could not

    @property
    def ended(self) -> int:
        """Items that were decided or refused."""
        return self.done + self.refused

    @property
    def waiting(self) -> int:
        """Items nobody has come to yet."""
        return self.total - self.done - self.refused


# --- asking ---------------------------------------------------------------------------------------------------------


@transaction.atomic
def ask(
    *,
    verb: Verb,
    among: OperationQuerySet,
    by: str,
    shown: Mapping[int, str] | None = None,
    until: datetime | None = None,
) -> BulkDecision:
    """List what one decision is to cover; nothing is decided before `start`.

    `among` holds what the person may see. `shown`: these of it, id -> digest of what the page showed; without it, all
    of `among`, which must be of one kind, rule and band in one scope. Raises Refused. Three queries at most.
    """
    if verb is Verb.DEFER and (until is None or until <= database_now()):
        raise Refused("Say until when: a time that is still to come.")
    if shown is None:
        return _ask_alike(verb, among, by, until)
    rows = list(among.filter(pk__in=shown).order_by("pk").values_list("pk", "scope_id", "kind"))
    _refuse_unfit(verb, {Kind(kind) for _, _, kind in rows}, len(rows))
    scopes = sorted({scope for _, scope, _ in rows})
    bulk = BulkDecision.objects.create(verb=verb, by=by, until=until, scopes=scopes, total=len(rows))
    order = {pk: position for position, pk in enumerate(shown)}
    BulkItem.objects.bulk_create(
        [
            BulkItem(bulk=bulk, scope_id=scope, operation_id=pk, position=order[pk], digest=shown[pk])
            for pk, scope, _ in rows
        ],
        batch_size=1_000,
    )
    return bulk


def _refuse_unfit(verb: Verb, kinds: set[Kind], number: int) -> None:
    """Refuse what this verb cannot do to items of these kinds, or to so many."""
    if not number:
        raise Refused("Nothing of it is there any more: look at the list again.")
    if done := WHOLE.get(verb):
        if number > AT_ONCE:
            raise Refused(f"At most {AT_ONCE} are {done} together, each shown in full: {number:,} were chosen.")
        if Kind.FORGET in kinds:
            raise Refused(f"A forget is not approved: {NOT_CARRIED_OUT}")
        if alone := sorted(kinds - set(APPROVED_TOGETHER)):
            raise Refused(f"A {alone[0]} is {done} by itself, on its own page. Leave it out of the selection.")
    if verb is Verb.DISTINCT and (other := sorted(kinds - set(TELLS_APART))):
        raise Refused(f"A {other[0]} holds no two claims to tell apart. Leave it out, or reject it.")


# One statement, so one moment: the items, and how many they are.
_LIST = """
WITH found AS MATERIALIZED ({found}),
made AS (
  INSERT INTO consolidation_bulkdecision (verb, by, reason, until, scopes, total)
  SELECT %s, %s, '', %s, ARRAY[%s]::bigint[], count(*) FROM found HAVING count(*) > 0
  RETURNING id
), listed AS (
  INSERT INTO consolidation_bulkitem (scope_id, bulk_id, operation_id, position, digest, outcome, sentence)
  SELECT found.scope_id, made.id, found.id, row_number() OVER (ORDER BY risk DESC, uncertainty DESC, found.id),
         '', 'waiting', ''
  FROM found, made
)
SELECT id FROM made
"""


def _ask_alike(verb: Verb, among: OperationQuerySet, by: str, until: datetime | None) -> BulkDecision:
    if done := WHOLE.get(verb):
        raise Refused(f"Only what was shown is {done}: choose the rows on the page.")
    sorts = list(among.order_by().values_list("kind", "scope_id", "rule", "band").distinct()[:2])
    if len(sorts) > 1:
        raise Refused("These are not all of one sort: choose one kind, one scope and one rule first.")
    _refuse_unfit(verb, {Kind(kind) for kind, _, _, _ in sorts}, len(sorts))
    [(kind, scope_id, rule, band)] = sorts
    alike = among.filter(kind=kind, scope_id=scope_id, rule=rule, band=band).order_by()
    found, values = alike.values_list("id", "scope_id", "risk", "uncertainty").query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(_LIST.format(found=found), [*values, verb, by, until, scope_id])
        row = cursor.fetchone()
    if row is None:
        raise Refused("Nothing of it is there any more: look at the list again.")
    return BulkDecision.objects.get(pk=row[0])


# --- starting and stopping ------------------------------------------------------------------------------------------


def start(*, bulk: BulkDecision, by: str, reason: str = "") -> None:
    """Confirm it: at most AT_ONCE items are decided now, more by a worker. Raises Refused; a second time is harmless.

    A process that dies on the way leaves the rest to a worker.
    """
    _confirm(bulk, by, reason)
    if bulk.total > AT_ONCE:
        return
    with outbox.taken(task=BULK_DECIDE, scope_id=None, key=str(bulk.pk), payload={"bulk": bulk.pk}) as job:
        if job is not None:
            carry_out(bulk=bulk)


@transaction.atomic
def _confirm(bulk: BulkDecision, by: str, reason: str) -> None:
    locked = BulkDecision.objects.select_for_update().get(pk=bulk.pk)
    if locked.by != by:
        raise Refused(f"{locked.by} asked for it, and decides it: choose your own.")
    if progress(bulk=locked).started:
        raise AlreadyDecided("It was confirmed before: its page shows how far it is.")
    if locked.at + CONFIRMED_WITHIN <= database_now():
        raise Refused("It was listed more than 12 hours ago. Look at the queue again, and choose anew.")
    if locked.verb == Verb.REJECT and not reason.strip():
        raise Refused("A rejection needs a reason: say why in one line.")
    wide = scopes_over(bulk=locked) if locked.verb == Verb.APPROVE else None
    BulkDecision.objects.filter(pk=locked.pk).update(reason=reason.strip()[:500], wide=wide)
    outbox.enqueue(task=BULK_DECIDE, scope_id=None, key=str(locked.pk), payload={"bulk": locked.pk})


def stop(*, bulk: BulkDecision, by: str) -> int:
    """Leave what nobody has come to yet as it is; how many items that were. What was decided stays decided."""
    sentence = f"stopped by {by}: nothing was decided"[:500]
    waiting = BulkItem.objects.filter(bulk=bulk, outcome=BulkItem.Outcome.WAITING)
    left = waiting.update(outcome=BulkItem.Outcome.REFUSED, sentence=sentence)
    _finish(bulk)
    return left


def progress(*, bulk: BulkDecision) -> Progress:
    """How far it is. Two queries at most."""
    counts = dict(BulkItem.objects.filter(bulk=bulk).order_by().values_list("outcome").annotate(n=Count("pk")))
    done, refused = counts.get(BulkItem.Outcome.DONE, 0), counts.get(BulkItem.Outcome.REFUSED, 0)
    work = Outbox.objects.filter(scope=None, task=BULK_DECIDE, key=str(bulk.pk), done_at=None).first()
    return Progress(
        total=bulk.total,
        done=done,
        refused=refused,
        started=bool(done or refused or bulk.finished_at or work),
        finished=bulk.finished_at is not None,
        trouble=work.last_error if work else "",
    )


# --- carrying out ---------------------------------------------------------------------------------------------------


def carry_out(
    *, bulk: BulkDecision, seconds: float = float("inf"), told: Callable[[BulkItem], None] | None = None
) -> int:
    """Decide the items that still wait, one transaction each, for so many seconds; how many are left.

    What cannot be decided is refused with a sentence and stops nothing else. Whoever asked must still be allowed to
    review, and to see the scope, when an item's turn comes. Raises OperationalError when the database is gone.
    """
    deadline = time.monotonic() + seconds
    waiting = BulkItem.objects.filter(bulk=bulk, outcome=BulkItem.Outcome.WAITING).order_by("position", "pk")
    reached = 0  # what ended before it is not read again, however long the list is
    while batch := list(waiting.filter(position__gte=reached)[:AT_ONCE]):
        allowed, reached = _allowed(bulk), batch[-1].position
        for item in batch:
            if time.monotonic() > deadline:
                return waiting.count()
            _one(item, allowed)
            if told is not None:
                told(item)
    _finish(bulk)
    return 0


def _allowed(bulk: BulkDecision) -> frozenset[int]:
    """The scopes in which the person who asked may decide now; empty once they may not review any more. Few queries."""
    person = User.objects.filter(username=bulk.by).first()
    if person is None:
        return frozenset()
    return frozenset(reviewed_by(person).filter(pk__in=bulk.scopes).values_list("pk", flat=True))


def _one(item: BulkItem, allowed: frozenset[int]) -> None:
    try:
        with transaction.atomic():
            _settle(item, allowed)
    except OperationalError:
        raise
    except DatabaseError as error:  # a rule of the database; its own text may quote memory
        code = getattr(error.__cause__, "sqlstate", None) or type(error).__name__
        _note(item, BulkItem.Outcome.REFUSED, f"the database refused it ({code}): nothing of it was written")


def _settle(item: BulkItem, allowed: frozenset[int]) -> None:
    """Decide one item and say so, together or not at all; another worker's item is left alone."""
    locked = BulkItem.objects.select_for_update(of=("self",)).select_related("bulk").get(pk=item.pk)
    if locked.outcome != BulkItem.Outcome.WAITING:
        return
    try:
        with transaction.atomic():
            said = _decided(locked, allowed)
    except Refused as refusal:
        _note(locked, BulkItem.Outcome.REFUSED, str(refusal))
    else:
        _note(locked, BulkItem.Outcome.DONE, said)


def _decided(item: BulkItem, allowed: frozenset[int]) -> str:
    """Decide one item; in a word what it is now. Raises Refused."""
    bulk = item.bulk
    if item.scope_id not in allowed:
        raise Refused(f"{bulk.by} may not decide here any more.")
    operation = Operation.objects.select_related("scope").get(pk=item.operation_id, scope_id=item.scope_id)
    if item.digest and bulk.verb not in WHOLE:  # these look themselves
        refuse_changed(operation=operation, digest=item.digest)
    match Verb(bulk.verb):
        case Verb.APPROVE:
            wide = bulk.wide is None or item.scope_id in bulk.wide  # None: confirmed before anybody counted this
            done = approve(operation=operation, by=bulk.by, digest=item.digest, reason=bulk.reason, wide=wide)
            return "approved; it waits for a second person" if done.needs_second else "approved"
        case Verb.SECOND:
            second(operation=operation, by=bulk.by, digest=item.digest)
            return "agreed to; it can be applied"
        case Verb.REJECT:
            reject(operation=operation, by=bulk.by, reason=bulk.reason)
            return "rejected"
        case Verb.DISTINCT:
            distinct(operation=operation, by=bulk.by, reason=bulk.reason)
            return "different claims"
        case Verb.DEFER:
            put_off = defer(operation=operation, by=bulk.by, until=bulk.until or database_now())
            return f"put off until {put_off.until:%Y-%m-%d}"


def _note(item: BulkItem, outcome: BulkItem.Outcome, sentence: str) -> None:
    """What became of an item, unless it ended already."""
    waiting = BulkItem.objects.filter(pk=item.pk, outcome=BulkItem.Outcome.WAITING)
    waiting.update(outcome=outcome, sentence=sentence[:500])


def _finish(bulk: BulkDecision) -> None:
    """Say that it is over; the reason, which may quote memory, stands with each decision and leaves here."""
    if not BulkItem.objects.filter(bulk=bulk, outcome=BulkItem.Outcome.WAITING).exists():
        BulkDecision.objects.filter(pk=bulk.pk, finished_at=None).update(finished_at=database_now(), reason="")
