"""Claims that are held back: a person releases one into the reads, or discards it. No program can do either.

One transaction per claim, in the one order of locks: the scope (shared), the text, the rows by id. What was never in
the reads is not in their past: a discarded claim is retracted, not archived, so that no read of the history shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery

from observations import store
from observations.ingest.deliberate import note
from observations.models import IntakeItem, Observation, Scope, Transition, database_now
from observations.normalise import key_part, normalised
from observations.records import Status, is_program

RELEASED: Final = "held: released"  # how the journal's cause of each move begins
DISCARDED: Final = "held: discarded"
HELD_AGAIN: Final = "held again"
PERMISSION: Final = "observations.decide_held"
MOST: Final = 50  # claims that are decided at once


class NotAPerson(ValueError):
    """What is held back is released and discarded by people only: sign in to the admin, or use the command line."""

    def __init__(self) -> None:
        super().__init__(str(self.__doc__))


class TooMany(ValueError):
    """More claims than are decided at once."""

    def __init__(self, count: int) -> None:
        super().__init__(f"At most {MOST} claims are decided at once, not {count}: decide them in parts.")


@dataclass(frozen=True, slots=True)
class Decided:
    """What became of one claim. `done` also where it was so already: doing it twice is doing it once."""

    id: int
    done: bool
    sentence: str
    current: int | None = None  # the row in the reads that says it now


_Act: TypeAlias = Callable[[Observation, Sequence[Observation], str], Decided]


def waiting(*, scopes: Iterable[Scope] | QuerySet[Scope], doubt: str | None = None) -> QuerySet[Observation]:
    """The rows of some scopes that are held back, the oldest first, each with `doubt`, the newest reason that a run
    gave (None: no run of this store did, as of what was imported). `doubt` leaves those of one reason, "" those of
    none. No query.
    """
    found = IntakeItem.objects.filter(
        scope=OuterRef("scope"), observation=OuterRef("pk"), verdict=IntakeItem.Verdict.HELD
    )
    reason = Subquery(found.order_by("-pk").values("reason")[:1])
    rows = Observation.objects.filter(scope__in=scopes, status=Status.QUARANTINED).annotate(doubt=reason)
    if doubt is not None:
        rows = rows.filter(doubt=doubt) if doubt else rows.filter(doubt__isnull=True)
    return rows.order_by("recorded_at", "pk")


def release(*, scope: Scope, ids: Sequence[int], by: str) -> list[Decided]:
    """Put claims that are held back into the reads, in the name of a person; one result each, in order.

    They stay unreconciled, so that prompts treat them with care and the planner looks at them first. Where a current
    row has the same words by now, that row rests on their evidence as well and they are taken off the list. Raises
    NotAPerson, TooMany.
    """
    return _decided(scope, ids, by, f"{RELEASED} by {by}", _release)


def discard(*, scope: Scope, ids: Sequence[int], by: str) -> list[Decided]:
    """Take claims that are held back off the list for good; they stay readable for people, and for nobody else.

    The same claim of another turn is held back anew. Raises NotAPerson, TooMany.
    """
    return _decided(scope, ids, by, f"{DISCARDED} by {by}", _discard)


def hold_again(*, scope: Scope, ids: Sequence[int], by: str) -> list[Decided]:
    """Take releases back: what somebody released leaves the reads and is held back again. Raises NotAPerson,
    TooMany.
    """
    return _decided(scope, ids, by, f"{HELD_AGAIN} by {by}", _hold_again)


# --- one claim -------------------------------------------------------------------------------------------------------


def _decided(scope: Scope, ids: Sequence[int], by: str, cause: str, act: _Act) -> list[Decided]:
    if is_program(by):
        raise NotAPerson
    wanted = list(dict.fromkeys(ids))
    if len(wanted) > MOST:
        raise TooMany(len(wanted))
    return [_one(scope, pk, by, cause, act) for pk in wanted]


@transaction.atomic
def _one(scope: Scope, pk: int, by: str, cause: str, act: _Act) -> Decided:
    """Decide one claim under its locks; a row of another scope is not there. Ten queries at most."""
    text_key = Observation.objects.in_scope(scope).filter(pk=pk).values_list("text_key", flat=True).first()
    if text_key is None:
        return Decided(pk, False, f"There is no obs_{pk} in this scope: list what is held back.")
    store.lock_scope(scope_id=scope.pk, cause=cause)
    if Scope.objects.get(pk=scope.pk).held(now=database_now()):
        return Decided(pk, False, "This scope is on hold: lift the hold before deciding what is held back in it.")
    store.lock_texts(scope_id=scope.pk, text_keys=[text_key])
    alike = Observation.objects.active().in_scope(scope).filter(text_key=text_key).values_list("pk", flat=True)
    rows = store.lock_rows(scope_id=scope.pk, ids={pk, *alike})
    row = rows.get(pk)
    if row is None or row.status == Status.ERASED:
        return Decided(pk, False, f"obs_{pk} was erased: there is nothing to decide.")
    current = [other for other in rows.values() if other.pk != pk and _says_the_same(other, row)]
    return act(row, current, by)


def _says_the_same(other: Observation, row: Observation) -> bool:
    """Whether a current row has the same words about the same subject, or about none on one side (C4)."""
    subjects = key_part(other.subject), key_part(row.subject)
    same = not all(subjects) or subjects[0] == subjects[1]
    return other.status == Status.ACTIVE and same and normalised(other.text or "") == normalised(row.text or "")


def _release(row: Observation, current: Sequence[Observation], by: str) -> Decided:
    if row.status == Status.ACTIVE and _cause(row).startswith(RELEASED):
        return Decided(row.pk, True, f"obs_{row.pk} is released already.", row.pk)
    if row.status != Status.QUARANTINED:
        return _not_held(row)
    if current:
        known = current[0]
        store.copy_evidence(scope_id=row.scope_id, into=known.pk, sources=[row.pk])
        store.move(scope_id=row.scope_id, ids=[row.pk], to=Status.RETRACTED)
        _note(row, "held_released", by)
        sentence = f"obs_{known.pk} says the same and is current: it rests on the evidence of obs_{row.pk} as well now."
        return Decided(row.pk, True, sentence, known.pk)
    store.move(scope_id=row.scope_id, ids=[row.pk], to=Status.ACTIVE)
    store.ask_for_vectors(scope=row.scope, ids=[row.pk])
    _note(row, "held_released", by)
    return Decided(row.pk, True, f"obs_{row.pk} is in the reads now.", row.pk)


def _discard(row: Observation, current: Sequence[Observation], by: str) -> Decided:
    if row.status == Status.RETRACTED and _cause(row).startswith(DISCARDED):
        return Decided(row.pk, True, f"obs_{row.pk} is discarded already.")
    if row.status != Status.QUARANTINED:
        return _not_held(row)
    store.move(scope_id=row.scope_id, ids=[row.pk], to=Status.RETRACTED)
    _note(row, "held_discarded", by)
    return Decided(row.pk, True, f"obs_{row.pk} is discarded.")


def _hold_again(row: Observation, current: Sequence[Observation], by: str) -> Decided:
    if row.status == Status.QUARANTINED:
        return Decided(row.pk, True, f"obs_{row.pk} is held back already.")
    cause = _cause(row)
    if row.status != Status.ACTIVE or not cause.startswith(RELEASED):
        return Decided(row.pk, False, f"obs_{row.pk} is not a released claim that is current: nothing is taken back.")
    store.move(scope_id=row.scope_id, ids=[row.pk], to=Status.QUARANTINED)
    _note(row, "held_again", by)
    return Decided(row.pk, True, f"obs_{row.pk} is held back again.")


def _not_held(row: Observation) -> Decided:
    return Decided(
        row.pk, False, f"obs_{row.pk} is {row.status} and not held back any more: there is nothing to decide."
    )


def _cause(row: Observation) -> str:
    """Why the row was moved last, as the journal has it. One query."""
    moves = Transition.objects.filter(scope_id=row.scope_id, observation=row).order_by("-version")
    return moves.values_list("cause", flat=True).first() or ""


def _note(row: Observation, action: str, by: str) -> None:
    note(scope=row.scope, action=action, ids=[row.pk], by=by)
