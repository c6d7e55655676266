"""The review queue: what waits for a person first, what is approved, what went stale, what was decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.urls import NoReverseMatch, URLPattern, path, reverse

from consolidation.admin.item.deciding import APPLY, REVIEW
from consolidation.admin.memory.trash import read_trash, thrown_away
from consolidation.admin.queue.bulk import BulkPages, newest
from consolidation.admin.queue.reading import (
    DEFERRED,
    RISKS,
    SECOND,
    WAITING,
    Census,
    Given,
    Parts,
    address,
    census,
    facets,
    noted,
    ordered,
    part,
    tabs,
)
from consolidation.admin.queue.selecting import PUT_OFF, deciding_bar, to_agree, where_decided
from consolidation.admin.reading import rows_of, shown_token
from consolidation.models import Operation
from consolidation.operations import Kind, State
from consolidation.review import TELLS_APART
from consolidation.review.ageing import Age, Patience
from consolidation.review.bulk import Verb
from observations.admin.base import Reach, signed_in
from observations.admin.listing import SIZES, Filter, declared, listing, scope_filter
from observations.models import database_now


class QueueScreen(BulkPages):
    """The list of operations and what may be decided for a selection of them."""

    def extra_urls(self) -> list[URLPattern]:
        """Where a selection is posted to, and the trash."""
        return [
            *super().extra_urls(),
            path("decide/", self.guarded(self.decide_view, REVIEW), name=self.url_name("decide")),
            path("trash/", self.guarded(self.trash_view), name=self.url_name("trash")),
        ]

    def trash_view(self, request: HttpRequest) -> HttpResponse:
        """What prunes took out of the reads and is not erased yet, in a fixed number of queries."""
        reach = Reach.of(request)
        chosen = scope_filter(request=request, reach=reach)
        page = listing(thrown_away(reach, scope=chosen.value), data=request.GET, size=50)
        context = {
            "title": "Trash",
            "trash": True,
            "page": page,
            "rows": read_trash(page.rows, now=database_now()),
            "filters": (chosen,),
            "may_apply": reach.may(APPLY),
        }
        return self.render(request, "admin/consolidation/operation/trash.html", context)

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """The queue, opened on what waits for this person. Twenty-four queries at most, whatever it holds."""
        reach, user, now = Reach.of(request), signed_in(request), database_now()
        filters, by = self._filters(request, reach), user.get_username()
        given = replace(Given.of(request.GET), scope=filters[0].value)
        patience = Patience.read()
        parts = Parts.of(Operation.objects.filter(scope__in=reach.scopes), reach=reach, permission=REVIEW)
        show = "" if given.state else self._tab(request, parts)
        within = parts.operations(show)
        found = within.filter(status=given.state) if given.state else part(show, within, by=by, now=now)
        unknown = given.unknown(request.GET)
        found = found.none() if unknown else found  # a selection would be of everything
        counted = census(ordered(found, show=show), patience=patience, now=now)
        listed = given.narrow_age(given.narrow(found), patience=patience, now=now)
        page = listing(ordered(listed.select_related("scope"), show=show), data=request.GET)
        rows = noted(rows_of(page.rows), page.rows, waits=show in (WAITING, DEFERRED), now=now)
        rows = to_agree(rows, page.rows, by=by, now=now) if show == SECOND else rows
        rows = where_decided(rows, page.rows, reach=reach)
        context: dict[str, Any] = {
            "title": "Review queue",
            "tabs": tabs(parts, given=given, show=show, by=by, now=now),
            "show": show,
            "sizes": SIZES,
            "empty": _empty(parts, show, unknown),
            "filters": filters,
            "carried": [(name, getattr(given, name)) for name in ("rule", "band") if getattr(given, name)],
            "facets": facets(counted, given, show=show),
            "narrowed": bool(given.query()),
            "view": request.build_absolute_uri(f"{request.path}{address(given, show)}"),
            "page": page,
            "rows": rows,
            "token": shown_token(rows=rows, user_id=user.pk),
            **deciding_bar(rows),
            "days": PUT_OFF,
            "may_review": reach.may(REVIEW) and any(row.decidable for row in rows),
            "may_apply": reach.may(APPLY),
            "bulks": newest(by=by),
            **self._whole_list(counted, given, show=show),
        }
        return self.render(request, "admin/consolidation/operation/change_list.html", context)

    def _whole_list(self, counted: Census, given: Given, *, show: str) -> dict[str, object]:
        """What may be done to all that waits and matches, on every page of it; and where it is decided one by one."""
        if show != WAITING:
            return {"alike": None, "one_by_one": ""}
        alike = counted.alike(given)
        number = sum(count for _, count in counted.matching(given))
        names = dict(zip(("kind", "scope", "rule", "band"), alike, strict=True)) if alike else {}
        return {
            "alike": names,
            "alike_count": f"{number:,}" if not counted.capped else f"more than {number:,}",
            "alike_differs": bool(alike) and alike[0] in TELLS_APART if alike else False,
            "asked": [(name, value) for name in ("risk", "age") if (value := getattr(given, name))],
            "one_by_one": self._focus(given),
        }

    @staticmethod
    def _focus(given: Given) -> str:
        """The view of one item at a time, with the same filters; empty where there is none."""
        try:
            return f"{reverse('admin:consolidation_operation_focus')}?{given.query(state='')}"
        except NoReverseMatch:
            return ""

    def _filters(self, request: HttpRequest, reach: Reach) -> tuple[Filter, ...]:
        return (
            scope_filter(request=request, reach=reach),
            declared(request=request, name="kind", label="Kind", values=map(str, Kind)),
            declared(request=request, name="state", label="State", values=map(str, State)),
            declared(request=request, name="risk", label="Risk", values=RISKS),
            declared(request=request, name="age", label="Age", values=map(str, Age)),
        )

    def _tab(self, request: HttpRequest, parts: Parts) -> str:
        asked = request.GET.get("show", "")
        return asked if asked in {tab.name for tab in parts.tabs} else parts.tabs[0].name

    def decide_view(self, request: HttpRequest) -> HttpResponse:
        """One decision for a selection."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        listed = reverse(f"admin:{self.url_name('changelist')}")
        back = f"{listed}{address(Given(), SECOND)}" if request.POST.get("verb") == Verb.SECOND else listed
        return self.decide_shown(request, back=back)


def _empty(parts: Parts, show: str, unknown: Sequence[str]) -> str:
    """What an empty list means."""
    if unknown:
        return f"There is no such {' and no such '.join(unknown)}: choose another filter, or show everything."
    return next((tab.empty for tab in parts.tabs if tab.name == show), "Nothing matches.")
