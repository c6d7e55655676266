"""Taking back what the background put in another row's place: what would happen, what is in the way, and doing it."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest

from consolidation.admin.texts import Text, whole
from consolidation.operations import obs, visible
from observations import ingest
from observations.models import Observation


@dataclass(frozen=True, slots=True)
class Row:
    """One row that would move."""

    pk: int
    name: str
    text: Text


@dataclass(frozen=True, slots=True)
class Page:
    """The page that asks for confirmation."""

    pk: int
    name: str
    scope: str
    refusal: str  # what stands in the way; empty: nothing
    done: bool = False  # it was taken back before
    new: Row | None = None
    old: tuple[Row, ...] = ()
    shown: str = ""  # the rows and versions that are confirmed


def read_taking(row: Observation, *, by: str) -> Page:
    """What taking back at this row would do, whose scope was selected with it. Eleven queries at most."""
    page = Page(pk=row.pk, name=obs(row.pk), scope=visible(row.scope.name), refusal="")
    try:
        found = ingest.taking(scope=row.scope, observation_id=row.pk, by=by)
    except ingest.WriteRefused as refusal:
        return Page(pk=page.pk, name=page.name, scope=page.scope, refusal=visible(str(refusal)))
    return Page(
        pk=page.pk,
        name=page.name,
        scope=page.scope,
        refusal="",
        done=found.done,
        new=_row(found.new),
        old=tuple(_row(one) for one in found.old),
        shown=found.shown,
    )


def _row(row: Observation) -> Row:
    return Row(pk=row.pk, name=obs(row.pk), text=whole(row.text))


def take_back(request: HttpRequest, row: Observation, *, by: str) -> None:
    """Take back what was shown, and say what came of it."""
    try:
        taken = ingest.take_back(
            scope=row.scope, observation_id=row.pk, by=by, shown=request.POST.get("shown", "")[:2000]
        )
    except ingest.WriteRefused as refusal:
        messages.warning(request, f"Not taken back: {refusal}")
        return
    back = ", ".join(obs(pk) for pk in taken.back)
    if taken.done_before:
        messages.info(request, f"It was taken back before: {back} is current, and nothing changed now.")
    else:
        messages.success(request, f"Taken back: {back} is current again, and {obs(taken.id)} is archived, whole.")
