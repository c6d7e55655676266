"""One exact row: put right, retired, brought back. A program's hand does not reach what a person wrote: that is asked
for, and a person decides.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.db import IntegrityError, OperationalError, transaction

from observations import outbox, store
from observations.ingest.checking import Checked, check_claims
from observations.ingest.deliberate import evidence_of, keep, note, refusal, state_of
from observations.models import Event, Observation, Outbox, Scope, Transition
from observations.normalise import key_part, normalised
from observations.records import Action, Claim, Kept, StatedBy, Status, WrittenBy, is_program

REVIEW_CONTRADICTION: Final = "review_contradiction"  # outbox tasks: a person decides between two rows,
REVIEW_RETIRE: Final = "review_retire"  # or whether a row leaves the reads
_RETIRED: Final = "retire: "  # how the journal's cause of such a move begins
TAKEN_BACK: Final = "take back, "  # and of what the background had put in another row's place
_WROTE: Final = ("remembered", "corrected")  # events that say who wrote a row


class WriteRefused(ValueError):
    """The row cannot be changed so; the message says what to do."""


class NotHere(WriteRefused):
    """No observation of this scope has that id."""

    def __init__(self, pk: int) -> None:
        super().__init__(f"There is no obs_{pk} in this scope: list or search its observations.")


class NotCurrent(WriteRefused):
    """The row left the reads; the message names what it gave way to, or the operation to undo."""


class Changed(WriteRefused):
    """The row is not as it was read."""

    def __init__(self, pk: int, current: int) -> None:
        super().__init__(f"obs_{pk} is at version {current} now: read it again before changing it.")
        self.current = current


def correct(
    *,
    scope: Scope,
    observation_id: int,
    claim: Claim,
    by: str,
    union: bool = True,
    version: int | None = None,
    speaks_for_user: bool = False,
) -> Kept:
    """Put a claim in the place of one exact current row, which is superseded and keeps its text (R12).

    With `union` the new row takes over its evidence (R15), without it starts fresh (R16). A claim without a key is of
    the old row's subject and predicate; the same words with another key are a correction of the key. Doing it twice is
    doing it once. Where the row is a person's and a program corrects it, both stay current and a person is asked which
    is right. Raises NotHere, NotCurrent, and Changed for another version than `version`.
    """
    [item] = check_claims(scope=scope, claims=[claim], by=by, speaks_for_user=speaks_for_user)
    if item.refused:
        return refusal(item)
    asked = _Correction(scope, observation_id, item, by, union)
    try:
        with transaction.atomic():
            return _correct(asked, version)
    except (IntegrityError, OperationalError, Observation.DoesNotExist) as error:
        if isinstance(error, OperationalError) and not state_of(error).startswith("40"):
            raise
    with transaction.atomic():  # once more: another writer added the same id, moved a row or crossed our way just now
        return _correct(asked, version)


@dataclass(frozen=True, slots=True)
class _Correction:
    scope: Scope
    id: int
    item: Checked
    by: str
    union: bool


def _correct(asked: _Correction, version: int | None) -> Kept:
    scope, by = asked.scope, asked.by
    store.lock_scope(scope_id=scope.pk, cause=f"correct by {by}")
    store.lock_texts(scope_id=scope.pk, text_keys=[asked.item.text_key])
    old = _row(scope, asked.id)
    if done := _done_before(asked, old):
        return done
    _refuse_what_left(scope, old)
    if version is not None and version != old.version:
        raise Changed(old.pk, old.version)
    item = _of_the_same(asked.item, old)
    [kept] = keep(scope=scope, items=[item], by=by, instead_of=old if _gives_a_key(item, old) else None)
    if kept.id is None or kept.id == old.pk or kept.replaced == old.pk:
        return kept
    if _waits_for_a_person(asked, old):
        return _asked_which(asked, old, kept)
    if asked.union:
        store.copy_evidence(scope_id=scope.pk, into=kept.id, sources=[old.pk])
    store.lock_scope(scope_id=scope.pk, cause=f"correct by {by}")
    store.move(scope_id=scope.pk, ids=[old.pk], to=Status.SUPERSEDED, successor=kept.id)
    note(scope=scope, action="corrected", ids=[kept.id], by=by)
    evidence = evidence_of(scope=scope, ids=[kept.id]).get(kept.id, 0)
    action = Action.UPDATED if asked.union else Action.REPLACED
    return replace(kept, action=action, evidence=evidence, replaced=old.pk)


def _row(scope: Scope, pk: int) -> Observation:
    """One row of the scope, locked. Raises NotHere, for rows of other scopes too."""
    row = store.lock_rows(scope_id=scope.pk, ids=[pk]).get(pk)
    if row is None or row.status == Status.ERASED:
        raise NotHere(pk)
    return row


def _done_before(asked: _Correction, old: Observation) -> Kept | None:
    """The answer when the same claim took the row's place before."""
    if old.status != Status.SUPERSEDED or old.superseded_by_id is None:
        return None
    successor = Observation.objects.active().in_scope(asked.scope).filter(pk=old.superseded_by_id).first()
    if successor is None or not _says(asked.item, successor):
        return None
    evidence = evidence_of(scope=asked.scope, ids=[successor.pk]).get(successor.pk, 0)
    return Kept(
        Action.KNOWN,
        successor.pk,
        successor.text or "",
        evidence,
        cleaned=asked.item.cleaned,
        replaced=old.pk,
        external_id=successor.external_id,
    )


def _says(item: Checked, row: Observation) -> bool:
    return item.says_the_same(
        normalised(row.text or ""), (key_part(row.subject), key_part(row.predicate), key_part(row.object))
    )


def _of_the_same(item: Checked, old: Observation) -> Checked:
    """A correction without a key is of the old row's subject and predicate; its object is for the caller to say."""
    if item.normalised == normalised(old.text or ""):
        return _with_the_rest(item, old) if any(item.key) else item
    if any(item.key) or not (old.subject or old.predicate):
        return item
    claim = replace(item.claim, subject=old.subject, predicate=old.predicate)
    return replace(item, claim=claim, key=(key_part(old.subject), key_part(old.predicate), ""))


def _with_the_rest(item: Checked, old: Observation) -> Checked:
    """The same words with a key: parts that it leaves out are the old row's."""
    given, there = item.claim, (old.subject, old.predicate, old.object)
    parts = [mine or theirs for mine, theirs in zip((given.subject, given.predicate, given.object), there, strict=True)]
    claim = replace(given, subject=parts[0], predicate=parts[1], object=parts[2])
    return replace(item, claim=claim, key=(key_part(parts[0]), key_part(parts[1]), key_part(parts[2])))


def _gives_a_key(item: Checked, old: Observation) -> bool:
    """Whether a correction in the old row's words has another key: the row is not what it is kept in then."""
    there = (key_part(old.subject), key_part(old.predicate), key_part(old.object))
    return any(item.key) and item.normalised == normalised(old.text or "") and item.key != there


def _refuse_what_left(scope: Scope, row: Observation) -> None:
    """Raises NotCurrent for a row that is not active, naming what it gave way to or what took it away."""
    if row.status == Status.ACTIVE:
        return
    cause = _cause(scope, row)
    if row.status == Status.SUPERSEDED:
        raise NotCurrent(f"obs_{row.pk} was superseded by obs_{row.superseded_by_id}: correct or retire that one.")
    if operation := _operation(cause):
        raise NotCurrent(f"obs_{row.pk} was taken in by {operation}: undo {operation} to have it back.")
    if row.status == Status.ARCHIVED and cause.startswith(_RETIRED):
        raise NotCurrent(f"obs_{row.pk} is retired: restore it first.")
    if row.status == Status.ARCHIVED and cause.startswith(TAKEN_BACK):
        raise NotCurrent(f"obs_{row.pk} was taken back: its history names the row that is current again; correct that.")
    raise NotCurrent(f"obs_{row.pk} is {row.status}: a person has to look at it.")


def _cause(scope: Scope, row: Observation) -> str:
    """Why the row was moved last, as the journal has it. One query."""
    moves = Transition.objects.filter(scope=scope, observation_id=row.pk).order_by("-version")
    return moves.values_list("cause", flat=True).first() or ""


def _operation(cause: str) -> str:
    """The operation that a cause names, without its generation; "" where a doorway moved the row."""
    return next((word.partition("#")[0] for word in cause.split() if word.startswith("op_")), "")


# --- what is a person's ----------------------------------------------------------------------------------------------


def _waits_for_a_person(asked: _Correction, old: Observation) -> bool:
    """Whether a correction has to be decided: a program's, of a person's row, or of the user's word without the user's
    own.
    """
    if not is_program(asked.by):
        return False
    if is_a_persons(scope=asked.scope, row=old):
        return True
    return old.stated_by == StatedBy.USER and asked.item.claim.stated_by is not StatedBy.USER


def is_a_persons(*, scope: Scope, row: Observation) -> bool:
    """Whether a person wrote a row directly or decided it: no program changes it without being asked. One query, or
    none.
    """
    if row.stated_by == StatedBy.OPERATOR or row.derivation == "supersede":
        return True
    if row.written_by == WrittenBy.DELIBERATE:
        wrote = Event.objects.filter(scope=scope, subject=f"obs_{row.pk}", action__in=_WROTE)
        writers = set(wrote.values_list("actor", flat=True))
        return any(not is_program(by) for by in writers) if writers else row.stated_by == StatedBy.USER
    return row.stated_by == StatedBy.USER and row.written_by != WrittenBy.BACKGROUND


def _asked_which(asked: _Correction, old: Observation, kept: Kept) -> Kept:
    assert kept.id is not None
    payload: dict[str, int | str] = {"old": old.pk, "new": kept.id, "item": 0, "by": asked.by}
    ask(scope=asked.scope, task=REVIEW_CONTRADICTION, payload=payload)
    reason = f"a person's word is not changed by a program: both stay, and a person decides between obs_{old.pk} and it"
    return replace(kept, action=Action.ASKED, reason=reason)


# --- out of the reads, and back --------------------------------------------------------------------------------------


@transaction.atomic
def retire(*, scope: Scope, observation_id: int, by: str, reason: str = "other") -> Kept:
    """Take one exact row out of the reads, whole and without a successor; `reason` is one word of the doorway's list.

    What a person wrote or a user said waits for a person when a program retires it. Doing it twice is doing it once.
    Raises NotHere, and NotCurrent for what an operation took in, naming it.
    """
    store.lock_scope(scope_id=scope.pk, cause=f"{_RETIRED}{reason}, by {by}")
    row = _row(scope, observation_id)
    if row.status == Status.ARCHIVED and row.superseded_by_id is None and _cause(scope, row).startswith(_RETIRED):
        return _moved(scope, row, Action.RETIRED, "it was retired before")
    _refuse_what_left(scope, row)
    if is_program(by) and (row.stated_by == StatedBy.USER or is_a_persons(scope=scope, row=row)):
        ask_to_retire(scope=scope, ids=[row.pk], by=by, why=reason)
        return _moved(scope, row, Action.ASKED, "a person's word is not retired by a program: a person decides")
    store.move(scope_id=scope.pk, ids=[row.pk], to=Status.ARCHIVED)
    note(scope=scope, action="retired", ids=[row.pk], by=by)
    return _moved(scope, row, Action.RETIRED)


@transaction.atomic
def bring_back(*, scope: Scope, observation_id: int, by: str) -> Kept:
    """Bring a retired row back into the reads. Doing it twice is doing it once.

    Raises NotHere; NotCurrent for a row that left in another way, for one that a person retired when a program asks,
    and where a current row says the same by now.
    """
    row = Observation.objects.in_scope(scope).filter(pk=observation_id).only("text_key").first()
    store.lock_scope(scope_id=scope.pk, cause=f"restore by {by}")
    store.lock_texts(scope_id=scope.pk, text_keys=[row.text_key] if row else [])
    row = _row(scope, observation_id)
    if row.status == Status.ACTIVE:
        return _moved(scope, row, Action.RESTORED, "it is current already")
    cause = _cause(scope, row)
    if row.status != Status.ARCHIVED or row.superseded_by_id is not None or not cause.startswith(_RETIRED):
        _refuse_what_left(scope, row)
    if is_program(by) and not is_program(cause.rpartition(", by ")[2]):
        raise NotCurrent(f"A person retired obs_{row.pk}: a person restores it.")
    same = Observation.objects.active().in_scope(scope).filter(text_key=row.text_key)
    if other := next((each for each in same if normalised(each.text or "") == normalised(row.text or "")), None):
        raise NotCurrent(f"obs_{other.pk} says the same and is current: there is nothing to restore.")
    store.move(scope_id=scope.pk, ids=[row.pk], to=Status.ACTIVE)
    store.ask_for_vectors(scope=scope, ids=[row.pk])
    note(scope=scope, action="restored", ids=[row.pk], by=by)
    return _moved(scope, row, Action.RESTORED)


def _moved(scope: Scope, row: Observation, action: Action, reason: str = "") -> Kept:
    evidence = evidence_of(scope=scope, ids=[row.pk]).get(row.pk, 0)
    return Kept(action, row.pk, row.text or "", evidence, reason=reason, external_id=row.external_id)


def ask_to_retire(*, scope: Scope, ids: Sequence[int], by: str, why: str) -> str:
    """Ask a person whether rows leave the reads; returns the request's key. Within the caller's transaction."""
    return ask(scope=scope, task=REVIEW_RETIRE, payload={"observations": list(ids), "item": 0, "why": why, "by": by})


def ask(*, scope: Scope, task: str, payload: Mapping[str, int | str | Sequence[int]]) -> str:
    """Put a request before a person; returns its key. The same while it waits is the same request, and once somebody
    has decided it, asking again is a new one. Within the caller's transaction. Two queries.
    """
    waiting = Outbox.objects.filter(scope=scope, task=task, done_at=None, payload=dict(payload))
    if known := waiting.values_list("key", flat=True).first():
        return known
    key = f"{task.removeprefix('review_')}:{uuid.uuid4().hex}"
    outbox.enqueue(task=task, scope_id=scope.pk, key=key, payload=payload)
    return key
