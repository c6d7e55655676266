"""A page of a list: what was asked for, what was found, how to go on. Query strings hold ids, words and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db.models import Model, QuerySet
from django.http import HttpRequest, QueryDict

from observations.admin.base import COUNTED, SCOPES_OFFERED, Reach
from observations.models import Scope

R = TypeVar("R", bound=Model)
SIZES = (50, 200, 1500)  # rows on a page; a reviewer with 1,500 items can see and decide them at once


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of a filter."""

    value: str
    label: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter with its declared values; `value` is the chosen one, empty for all."""

    name: str
    label: str
    choices: tuple[Choice, ...]
    value: str = ""


@dataclass(frozen=True, slots=True)
class Listing(Generic[R]):
    """The rows of one page."""

    rows: list[R]
    number: int
    size: int
    total: int
    capped: bool

    @property
    def pages(self) -> int:
        """How many pages can be asked for."""
        return max(1, -(-self.total // self.size))

    @property
    def found(self) -> str:
        """The count as it is shown: exact, or "10,000+"."""
        return f"{self.total:,}+" if self.capped else f"{self.total:,}"

    @property
    def span(self) -> str:
        """Which rows these are, such as "51-100"."""
        first = (self.number - 1) * self.size + 1
        return f"{first:,}–{first + len(self.rows) - 1:,}" if self.rows else "none"

    @property
    def newer(self) -> int | None:
        """The page before this one."""
        return self.number - 1 if self.number > 1 else None

    @property
    def older(self) -> int | None:
        """The page after this one."""
        return self.number + 1 if self.number < self.pages else None


def listing(queryset: QuerySet[R], *, data: QueryDict, size: int | None = None) -> Listing[R]:
    """One page of a query. Two queries: a count that stops at COUNTED, and the rows."""
    rows_per_page = size or _size(data)
    counted = queryset.order_by()[: COUNTED + 1].count()
    total = min(counted, COUNTED)
    number = min(max(1, _whole(data.get("page"))), max(1, -(-total // rows_per_page)))
    start = (number - 1) * rows_per_page
    rows = list(queryset[start : start + rows_per_page])
    return Listing(rows=rows, number=number, size=rows_per_page, total=total, capped=counted > COUNTED)


def listing_of(rows: Sequence[R], *, data: QueryDict, size: int) -> Listing[R]:
    """One page of rows that were read whole, so that all of them are counted. No query."""
    number = min(max(1, _whole(data.get("page"))), max(1, -(-len(rows) // size)))
    start = (number - 1) * size
    return Listing(rows=list(rows[start : start + size]), number=number, size=size, total=len(rows), capped=False)


def _size(data: QueryDict) -> int:
    size = _whole(data.get("size"))
    return size if size in SIZES else SIZES[0]


def _whole(text: str | None) -> int:
    """A whole number from a query string; 0 for anything else."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else 0


def declared(*, request: HttpRequest, name: str, label: str, values: Iterable[str], default: str = "") -> Filter:
    """A filter over declared values; anything else in the address counts as nothing chosen. No query."""
    known = list(values)
    asked = request.GET.get(name, default)
    value = asked if asked in known else ""
    choices = tuple(Choice(value=item, label=item.replace("_", " "), chosen=item == value) for item in known)
    return Filter(name=name, label=label, choices=choices, value=value)


def scope_filter(*, request: HttpRequest, reach: Reach) -> Filter:
    """A filter over the scopes this person may see. One query; a scope of others counts as nothing chosen."""
    asked = _whole(request.GET.get("scope"))
    rows: Sequence[Scope] = list(reach.scopes.order_by("name")[:SCOPES_OFFERED])
    if asked and asked not in {row.pk for row in rows}:
        rows = [*rows, *reach.scopes.filter(pk=asked)]
    choices = tuple(Choice(value=str(row.pk), label=row.name, chosen=row.pk == asked) for row in rows)
    value = next((choice.value for choice in choices if choice.chosen), "")
    return Filter(name="scope", label="Scope", choices=choices, value=value)
