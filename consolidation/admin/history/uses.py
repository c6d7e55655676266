"""Which answers handed one observation out, and what was erased of it: by ids, without a word of memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from consolidation.admin.texts import when
from consolidation.operations import visible
from observations.models import GivenAnswer, Observation, Tombstone, Use

SHOWN: Final = 20  # of the newest uses
_NONE: Final = UUID(int=0)  # no answer: a page runs as many queries for a row that nobody used


@dataclass(frozen=True, slots=True)
class Used:
    """One read that handed the row out."""

    at: str
    iso: str
    call_site: str
    answer: str  # its id
    page: int | None  # the record of that answer; None: it is older than such records are kept


@dataclass(frozen=True, slots=True)
class Erased:
    """What stands in the place of an erased text."""

    at: str
    iso: str
    by: str
    why: str
    request: str  # the operation or the call that asked for it
    operation: bool  # it has a page


def uses(row: Observation) -> tuple[Used, ...]:
    """The newest reads that handed it out. Two queries."""
    found = list(Use.objects.filter(scope_id=row.scope_id, observation=row).order_by("-used_at", "-pk")[:SHOWN])
    kept = GivenAnswer.objects.filter(scope_id=row.scope_id, answer__in=[_NONE, *(use.answer for use in found)])
    pages = dict(kept.values_list("answer", "pk"))
    return tuple(
        Used(
            at=when(use.used_at),
            iso=use.used_at.isoformat(),
            call_site=visible(use.call_site),
            answer=str(use.answer),
            page=pages.get(use.answer),
        )
        for use in found
    )


def erased(row: Observation) -> Erased | None:
    """Who erased it, when and why; None where its text is there. One query."""
    stone = Tombstone.objects.filter(scope_id=row.scope_id, observation=row).order_by("-pk").first()
    if stone is None:
        return None
    return Erased(
        at=when(stone.erased_at),
        iso=stone.erased_at.isoformat(),
        by=visible(stone.erased_by),
        why=visible(stone.reason),
        request=visible(stone.request),
        operation=stone.request.startswith("op_"),
    )
