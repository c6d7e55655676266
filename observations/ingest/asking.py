"""Requests that only a person can grant: they are written down, land in review, and change nothing by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.db import transaction
from django.db.models import Q

from observations import store
from observations.ingest.correcting import REVIEW_CONTRADICTION, NotCurrent, NotHere, WriteRefused, ask, ask_to_retire
from observations.models import Event, GivenKey, Observation, Scope
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
    if subject_of is not None:
        ids = _about(scope, rows[subject_of])
    payload: dict[str, int | str | Sequence[int]] = {
        "observations": ids,
        "subject_of": subject_of or 0,
        "all": int(everything),
        "by": by,
    }
    key = ask(scope=scope, task=REVIEW_FORGET, payload=payload)
    _note(scope, "asked to forget", by, key, len(ids))
    return key


def _about(scope: Scope, row: Observation) -> list[int]:
    """The rows that name the same subject, in their own key or in one that a model gave, whatever their status."""
    given = GivenKey.objects.filter(scope=scope, subject_key=row.subject_key).values("observation_id")
    same = Observation.objects.in_scope(scope).exclude(status=Status.ERASED)
    found = same.filter(Q(subject_key=row.subject_key) | Q(pk__in=given))
    return list(found.order_by("pk").values_list("pk", flat=True))


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
    if not ids or (kind == "supersede") != (by_id is not None) or by_id in ids:
        raise WriteRefused(
            "Name the rows, and the other row that is right where they are to be superseded, only there."
        )
    store.lock_scope(scope_id=scope.pk, cause=f"propose by {by}")
    wanted = sorted(set(ids))
    rows = _rows(scope, [*wanted, *([by_id] if by_id is not None else [])])
    if left := next((pk for pk, row in sorted(rows.items()) if row.status != Status.ACTIVE), None):
        raise NotCurrent(f"obs_{left} is {rows[left].status}: only current rows can be proposed.")
    if by_id is None:
        key = ask_to_retire(scope=scope, ids=wanted, by=by, why=why)
    else:
        pairs: list[dict[str, int | str]] = [{"old": old, "new": by_id, "item": 0, "by": by} for old in wanted]
        key, *_ = [ask(scope=scope, task=REVIEW_CONTRADICTION, payload=pair) for pair in pairs]
    _note(scope, "proposed", by, key, len(wanted))
    return key


def _rows(scope: Scope, ids: Sequence[int]) -> dict[int, Observation]:
    """The rows of these ids, locked. Raises NotHere for the first that is not in the scope, or erased."""
    rows = store.lock_rows(scope_id=scope.pk, ids=ids)
    for pk in ids:
        if pk not in rows or rows[pk].status == Status.ERASED:
            raise NotHere(pk)
    return rows


def _note(scope: Scope, action: str, by: str, key: str, rows: int) -> None:
    detail = {"request": key, "rows": rows}
    Event.objects.append(scope_id=scope.pk, action=action, actor=by[:150], subject=str(scope.pk), detail=detail)
