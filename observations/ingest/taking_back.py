"""What the background put in the place of other rows, taken back in one step: the old rows stand again as they stood,
and the new one is archived, whole. Nothing is guessed, and nothing is taken from under what was built on it since.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import transaction

from observations import store
from observations.ingest.background.acts import Because
from observations.ingest.background.storing import CAUSE
from observations.ingest.correcting import TAKEN_BACK, NotCurrent, NotHere, WriteRefused
from observations.models import Event, IntakeItem, Lineage, Observation, Scope, Transition, database_now
from observations.normalise import normalised
from observations.records import StatedBy, Status, is_program
from observations.store import Prior

_REPLACED: Final = (IntakeItem.Verdict.UPDATE, IntakeItem.Verdict.DELETE)
_UNDONE: Final = "undo "  # how the journal's cause of an undo begins
_AGAIN: Final = "Something about these rows moved just now: look at them again and repeat it."


class NothingToTakeBack(WriteRefused):
    """The background put nothing in another row's place here; the message says what can be done instead."""


class BuiltOn(WriteRefused):
    """Something stands on the new row, or in the way of the old one; the message names it."""


class UsersWord(WriteRefused):
    """A program that does not speak for the user takes back no word of the user's."""

    def __init__(self, pk: int) -> None:
        super().__init__(f"obs_{pk} is the user's own word: a person takes it back, or a token that speaks for them.")


@dataclass(frozen=True, slots=True)
class Taking:
    """What taking back would do, or did before."""

    new: Observation  # leaves the reads, archived
    old: tuple[Observation, ...]  # stand again, oldest first
    done: bool = False  # it was taken back before

    @property
    def shown(self) -> str:
        """The rows and their versions, for whoever confirms what was shown: "12:1 7:2", the new row first."""
        return " ".join(f"{row.pk}:{row.version}" for row in (self.new, *self.old))


@dataclass(frozen=True, slots=True)
class TakenBack:
    """The answer: the row that was archived, the rows that are current again, and whether that was done before."""

    id: int
    back: tuple[int, ...]
    done_before: bool = False


def take_back(
    *, scope: Scope, observation_id: int, by: str, speaks_for_user: bool = False, shown: str = ""
) -> TakenBack:
    """Undo what the background did with one row: name the new one, or one that it took the place of (R12, I7).

    Every row that gave way to the new one in that run is current again, at the next version and otherwise as it was;
    the new row is archived and keeps all evidence. Of a chain only the newest replacement can be taken back, then the
    one before. Doing it twice is doing it once. With `shown` (see Taking) exactly that is taken back, or nothing. One
    transaction; a constant number of queries. Raises what `taking` raises.
    """
    with transaction.atomic():
        seen = taking(scope=scope, observation_id=observation_id, by=by, speaks_for_user=speaks_for_user)
        store.lock_scope(scope_id=scope.pk, cause=f"{TAKEN_BACK}by {by}")
        rows = (seen.new, *seen.old)
        store.lock_texts(scope_id=scope.pk, text_keys=[row.text_key for row in rows])
        store.lock_rows(scope_id=scope.pk, ids=[row.pk for row in rows])
        found = taking(scope=scope, observation_id=observation_id, by=by, speaks_for_user=speaks_for_user)
        if not found.done:
            if found.shown != seen.shown or shown not in ("", found.shown):
                raise BuiltOn(_AGAIN)
            _move(scope, found, by)
    return TakenBack(found.new.pk, tuple(row.pk for row in found.old), found.done)


def _move(scope: Scope, found: Taking, by: str) -> None:
    """The old rows first: at no moment does nothing stand for what was said. Five queries."""
    priors = [Prior(row.pk, Status.ACTIVE, None, row.valid_from, row.valid_to) for row in found.old]
    store.restore(scope_id=scope.pk, priors=priors)
    store.move(scope_id=scope.pk, ids=[found.new.pk], to=Status.ARCHIVED)
    back = [row.pk for row in found.old]
    store.ask_for_vectors(scope=scope, ids=back)
    Event.objects.append(
        scope_id=scope.pk,
        action="taken_back",
        actor=by[:150],
        subject=f"obs_{found.new.pk}",
        detail={"back": [f"obs_{pk}" for pk in back]},
    )


def taking(*, scope: Scope, observation_id: int, by: str, speaks_for_user: bool = False) -> Taking:
    """What `take_back` would do now. Writes nothing; nine queries at most.

    Raises NotHere; NothingToTakeBack; NotCurrent where the new row left the reads; BuiltOn, naming the blocker: a hold,
    an erase, an operation, a row derived from it or superseded by it since, a row that says the old words; UsersWord.
    """
    new, targets = _replacement(scope, observation_id)
    moves = _last_moves(scope, [new.pk, *targets])
    old = tuple(Observation.objects.in_scope(scope).filter(pk__in=targets).order_by("pk"))
    if _is_done(new, moves.get(new.pk)):
        return Taking(new, old, done=True)
    _refuse_hold(scope)
    _refuse_new(new, moves.get(new.pk))
    for row in old:
        _refuse_old(new, row, moves.get(row.pk))
    _refuse_built_on(scope, new, targets)
    _refuse_said(scope, new, old)
    if is_program(by) and new.stated_by == StatedBy.USER and not speaks_for_user:
        raise UsersWord(new.pk)
    return Taking(new, old)


def can_be_taken_back(*, row: Observation) -> bool:
    """Whether a current row took another's place in the background: whether to offer it. One query."""
    if row.status != Status.ACTIVE:
        return False
    items = IntakeItem.objects.filter(scope_id=row.scope_id, observation=row, verdict__in=_REPLACED)
    return items.exclude(target=None).exists()


def put_by_background(*, cause: str) -> bool:
    """Whether the move that the journal gives this cause was the background's, which can be taken back."""
    return cause == CAUSE


def standing_moves(*, causes: Iterable[str]) -> list[str]:
    """The journal's causes of one row's moves, oldest first, without those that were taken back: such a pair leaves the
    row as it stood. No query.
    """
    left: list[str] = []
    for cause in causes:
        if cause.startswith(TAKEN_BACK) and left and left[-1] == CAUSE:
            left.pop()
        else:
            left.append(cause)
    return left


# --- which rows ------------------------------------------------------------------------------------------------------


def _replacement(scope: Scope, pk: int) -> tuple[Observation, list[int]]:
    """The row that took others' places, and theirs: the named one, else what the named one gave way to. A row that did
    both is taken for the new one, so that nobody takes back more than was named.
    """
    row = Observation.objects.in_scope(scope).filter(pk=pk).first()
    if row is None:
        raise NotHere(pk)
    if targets := _targets(row):
        return row, targets
    successor = _gave_way_to(scope, row)
    targets = _targets(successor) if successor is not None else []
    if successor is None or pk not in targets:
        raise NothingToTakeBack(
            f"The background put nothing in the place of another row at obs_{pk}: correct, retire or undo instead."
        )
    return successor, targets


def _gave_way_to(scope: Scope, row: Observation) -> Observation | None:
    """What a row gave way to, now or when it was last taken back; None for a row that never did so in the background.
    Two queries.
    """
    moves = Transition.objects.filter(scope=scope, observation=row, cause=CAUSE, superseded_by_id__isnull=False)
    successor = moves.order_by("-version").values_list("superseded_by_id", flat=True).first()
    if successor is None:
        return None
    return Observation.objects.in_scope(scope).filter(pk=successor).first()


def _targets(row: Observation) -> list[int]:
    """The rows that one was put in the place of, in id order. One query. Raises BuiltOn for a row that was there
    before.

    A claim may be there already when it takes another's place; such a row is not the background's to take back.
    """
    items = IntakeItem.objects.filter(scope_id=row.scope_id, observation=row, verdict__in=_REPLACED)
    found = list(items.exclude(target=None).select_related("run").order_by("target_id"))
    for item in found:
        if item.reason == Because.STORED or item.run.started_at > row.recorded_at:
            raise BuiltOn(
                f"obs_{row.pk} was stored before obs_{item.target_id} gave way to it: correct obs_{row.pk} instead."
            )
    return sorted({item.target_id for item in found if item.target_id is not None})


def _last_moves(scope: Scope, ids: Iterable[int]) -> dict[int, Transition]:
    """The newest journal line of each row. One query."""
    moves = Transition.objects.filter(scope=scope, observation__in=list(ids)).order_by("observation", "-version")
    return {move.observation_id: move for move in moves.distinct("observation") if move.observation_id is not None}


def _is_done(new: Observation, last: Transition | None) -> bool:
    return new.status == Status.ARCHIVED and last is not None and last.cause.startswith(TAKEN_BACK)


# --- what stands in the way ------------------------------------------------------------------------------------------


def _refuse_hold(scope: Scope) -> None:
    fresh = Scope.objects.get(pk=scope.pk)
    if fresh.held(now=database_now()):
        raise BuiltOn("This scope is on hold: lift the hold before taking anything back.")


def _refuse_new(new: Observation, last: Transition | None) -> None:
    """Raises for a new row that left the reads, and for one that an operation that stands has changed."""
    if new.status == Status.ERASED:
        raise NotCurrent(f"obs_{new.pk} was erased: what it took the place of cannot be brought back.")
    if new.status == Status.SUPERSEDED:
        raise NotCurrent(f"obs_{new.pk} was superseded by obs_{new.superseded_by_id}: take that one back first.")
    operation = _standing(last)
    if new.status != Status.ACTIVE:
        how = f"was taken in by {operation}: undo that first" if operation else f"is {new.status} and not current"
        raise NotCurrent(f"obs_{new.pk} {how}.")
    if operation:
        raise BuiltOn(f"{operation} changed obs_{new.pk} since: undo that first.")


def _standing(last: Transition | None) -> str:
    """The operation that moved a row last, unless that was its undo; empty for any other move."""
    if last is None or last.cause.startswith(_UNDONE):
        return ""
    return next((word for word in last.cause.split() if word.startswith("op_")), "")


def _refuse_old(new: Observation, old: Observation, last: Transition | None) -> None:
    """Raises for an old row that is not as the background left it."""
    if old.status == Status.ERASED:
        raise BuiltOn(f"obs_{old.pk} was erased: it cannot be brought back.")
    if old.status != Status.SUPERSEDED or old.superseded_by_id != new.pk:
        raise BuiltOn(f"obs_{old.pk} is {old.status} and not superseded by obs_{new.pk} any more.")
    if last is None or last.cause != CAUSE:
        raise BuiltOn(f"obs_{old.pk} was changed since it gave way to obs_{new.pk}: look at its history.")


def _refuse_built_on(scope: Scope, new: Observation, old: Sequence[int]) -> None:
    """Raises for what came of the new row: another row gave way to it since, or one is derived from it. Two queries."""
    later = Observation.objects.in_scope(scope).filter(superseded_by=new).exclude(pk__in=list(old))
    if other := later.order_by("pk").values_list("pk", flat=True).first():
        raise BuiltOn(f"obs_{other} gave way to obs_{new.pk} since, and not in the background: correct it instead.")
    edges = Lineage.objects.filter(scope=scope, source_observation=new).exclude(derived__status=Status.RETRACTED)
    if edge := edges.order_by("-pk").first():
        raise BuiltOn(f"obs_{edge.derived_id} was derived from obs_{new.pk} by {edge.operation}: undo that first.")


def _refuse_said(scope: Scope, new: Observation, old: Sequence[Observation]) -> None:
    """Raises where a current row says by now what an old one said: there would be two of it. One query."""
    same = Observation.objects.active().in_scope(scope).filter(text_key__in=[row.text_key for row in old])
    said = {normalised(row.text or ""): row.pk for row in same.exclude(pk=new.pk).order_by("-pk")}
    for row in old:
        if other := said.get(normalised(row.text or "")):
            raise BuiltOn(f"obs_{other} says the same as obs_{row.pk} and is current: retire it first.")
