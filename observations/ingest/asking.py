"""Requests that only a person can grant: they are written down, land in review, and change nothing by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.db import transaction

from observations import outbox, store
from observations.ingest.correcting import (
    REVIEW_CONFLICT,
    NotCurrent,
    NotHere,
    WriteRefused,
    ask_to_retire,
    request_key,
)
from observations.models import Event, Observation, Scope
from observations.records import Status

REVIEW_FORGET: Final = "review_forget"  # the outbox task that asks a person whether something is erased


@transaction.atomic
def ask_to_forget(
    *,
    scope: Scope,
    by: str,
    observation_ids: Sequence[int] = (),
    subject_of: int | None = None,
    everything: bool = False,
) -> str:
    """Ask that rows, all about the subject of one row, or everything of a scope be forgotten; returns the request's
    key. A person decides. Asking the same again while it waits is the same request.

    Raises WriteRefused unless exactly one of the three is named, and NotHere for an id that is not in the scope.
    """
    if [bool(observation_ids), subject_of is not None, everything].count(True) != 1:
        raise WriteRefused("Name what is to be forgotten: ids, the subject of one row, or everything; one of them.")
    store.lock_scope(scope_id=scope.pk, cause=f"forget by {by}")
    ids = sorted(set(observation_ids))
    rows = _rows(scope, [*ids, *([subject_of] if subject_of is not None else [])])
    if subject_of is not None and not rows[subject_of].subject:
        raise WriteRefused(f"obs_{subject_of} names no subject: give the ids to forget.")
    payload: dict[str, int | str | Sequence[int]] = {
        "observations": ids,
        "subject_of": subject_of or 0,
        "all": int(everything),
        "by": by,
    }
    key = request_key("forget", [*ids, 0, subject_of or 0, int(everything)])
    outbox.enqueue(task=REVIEW_FORGET, scope_id=scope.pk, key=key, payload=payload)
    _note(scope, "asked to forget", by, key, ids or [subject_of or 0])
    return key


@transaction.atomic
def propose(
    *, scope: Scope, kind: str, ids: Sequence[int], by: str, by_id: int | None = None, why: str = "other"
) -> str:
    """Put a change of rows before a person: `retire` or `forget` them, or `supersede` them by the row `by_id`.

    Returns the request's key. Raises WriteRefused, NotHere for ids that are not in the scope and NotCurrent for rows
    that left the reads.
    """
    if kind == "forget":
        return ask_to_forget(scope=scope, by=by, observation_ids=ids)
    if (kind == "supersede") != (by_id is not None) or by_id in ids:
        raise WriteRefused("To supersede rows, name the other row that is right; for anything else name none.")
    store.lock_scope(scope_id=scope.pk, cause=f"propose by {by}")
    wanted = sorted(set(ids))
    rows = _rows(scope, [*wanted, *([by_id] if by_id is not None else [])])
    if left := next((pk for pk, row in sorted(rows.items()) if row.status != Status.ACTIVE), None):
        raise NotCurrent(f"obs_{left} is {rows[left].status}: only current rows can be proposed.")
    if by_id is None:
        key = ask_to_retire(scope=scope, ids=wanted, by=by, why=why)
    else:
        key = request_key("supersede", [*wanted, by_id])
        for old in wanted:
            payload: dict[str, int | str] = {"old": old, "new": by_id, "item": 0, "by": by}
            outbox.enqueue(task=REVIEW_CONFLICT, scope_id=scope.pk, key=f"{old}-{by_id}", payload=payload)
    _note(scope, "proposed", by, key, wanted)
    return key


def _rows(scope: Scope, ids: Sequence[int]) -> dict[int, Observation]:
    """The rows of these ids, locked. Raises NotHere for the first that is not in the scope, or erased."""
    rows = store.lock_rows(scope_id=scope.pk, ids=ids)
    for pk in ids:
        if pk not in rows or rows[pk].status == Status.ERASED:
            raise NotHere(pk)
    return rows


def _note(scope: Scope, action: str, by: str, key: str, ids: Sequence[int]) -> None:
    detail = {"request": key, "observations": list(ids)}
    Event.objects.append(scope_id=scope.pk, action=action, actor=by[:150], subject=str(scope.pk), detail=detail)
