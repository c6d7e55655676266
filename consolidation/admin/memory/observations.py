"""Observations: the list, found by declared filters or a posted search, and one observation with its whole past."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path

from consolidation.admin.history.pages import HistoryPages
from consolidation.admin.history.rows import holding, light, row_of
from consolidation.admin.history.subject import SubjectPages
from consolidation.admin.item.deciding import REVIEW
from consolidation.admin.memory import taking_back
from consolidation.admin.memory.observation_reading import read_observation
from consolidation.admin.texts import snippet
from consolidation.operations import Prefix, number_of, obs
from observations import ingest
from observations.admin.base import Reach, Screen, signed_in
from observations.admin.listing import Filter, Listing, declared, listing, scope_filter
from observations.models import GivenKey, Observation
from observations.records import StatedBy, Status, WrittenBy

QUERY_LONG: Final = 200  # characters of a search
EVERY: Final = "all"


class ObservationScreen(HistoryPages, SubjectPages, Screen):
    """What is remembered, and what was."""

    def extra_urls(self) -> list[URLPattern]:
        """A search is posted, so that what was typed never stands in an address or a log of addresses (ASVS 14.2.1)."""
        return [
            *super().extra_urls(),
            path("search/", self.guarded(self.search_view), name=self.url_name("search")),
            path("<int:pk>/key/", self.guarded(self.key_view, REVIEW), name=self.url_name("key")),
            path("<int:pk>/take-back/", self.guarded(self.take_back_view, REVIEW), name=self.url_name("take_back")),
        ]

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """Observations, newest first, in a fixed number of queries; `about` narrows to the subject of one of them."""
        reach = Reach.of(request)
        filters = self._filters(request, reach)
        found = self._narrowed(reach, filters)
        about = self._about(request, reach)
        if about is not None:
            found = found.filter(about.rows)
        page = listing(light(found).order_by("-pk"), data=request.GET)
        more = {"about": about, "may_review": reach.may(REVIEW)}
        return self._list(request, page, filters, more)

    def _about(self, request: HttpRequest, reach: Reach) -> About | None:
        """The subject that was asked for, by the id of a row about it: no subject stands in an address. Two queries, or
        none.
        """
        asked = request.GET.get("about", "")
        if not (asked.isascii() and asked.isdigit() and len(asked) < 19):
            return None
        row = reach.rows(Observation.objects.filter(pk=int(asked))).first()
        return about(row) if row is not None else None

    def _filters(self, request: HttpRequest, reach: Reach) -> tuple[Filter, ...]:
        return (
            declared(
                request=request, name="status", label="Status", values=[*map(str, Status), EVERY], default="active"
            ),
            declared(request=request, name="stated_by", label="Said by", values=map(str, StatedBy)),
            declared(request=request, name="written_by", label="Written by", values=map(str, WrittenBy)),
            scope_filter(request=request, reach=reach),
        )

    def _narrowed(self, reach: Reach, filters: tuple[Filter, ...]) -> QuerySet[Observation]:
        found: QuerySet[Observation] = Observation.objects.filter(scope__in=reach.scopes)
        for chosen in filters:
            if chosen.value and chosen.value != EVERY:
                name = "scope_id" if chosen.name == "scope" else chosen.name
                found = found.filter(**{name: chosen.value})
        return found

    def _list(
        self, request: HttpRequest, page: Listing[Observation], filters: tuple[Filter, ...], more: dict[str, Any]
    ) -> HttpResponse:
        context = {
            "title": "Observations",
            "page": page,
            "rows": [row_of(row) for row in page.rows],
            "filters": filters,
            "query": "",
            "query_long": QUERY_LONG,
            **more,
        }
        return self.render(request, "admin/observations/observation/change_list.html", context)

    def search_view(self, request: HttpRequest) -> HttpResponse:
        """An id goes to its page; words find the active and former rows that hold them, newest first."""
        query = request.POST.get("q", "").replace("\0", "").strip()[:QUERY_LONG]
        if request.method != "POST" or not query:
            return redirect(f"admin:{self.url_name('changelist')}")
        reach = Reach.of(request)
        mine: QuerySet[Observation] = Observation.objects.filter(scope__in=reach.scopes)
        if (named := _named(mine, query)) is not None:
            return redirect(f"admin:{self.url_name('change')}", pk=named)
        page = listing(light(holding(mine, query)).order_by("-pk"), data=request.POST, size=50)
        if not page.rows:
            messages.info(request, "Nothing holds all of these words in the scopes you may see.")
        return self._list(request, page, (), {"query": query})

    def page_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """One observation, in a fixed number of queries."""
        found = Reach.of(request).rows(Observation.objects.select_related("scope"))
        observation = get_object_or_404(found, pk=pk)
        context = {
            "title": obs(pk),
            "page": read_observation(observation),
            "may_review": Reach.of(request).may(REVIEW, scope=observation.scope),
            "takeable": ingest.can_be_taken_back(row=observation),
        }
        return self.render(request, "admin/observations/observation/change_form.html", context)

    def key_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Withdrawing the key that a model gave: shown first, then done with its event."""
        found = Reach.of(request).rows(Observation.objects.select_related("scope"))
        observation = get_object_or_404(found, pk=pk)
        if request.method != "POST":
            context = {"title": f"Withdraw the key of {obs(pk)}", "page": read_observation(observation)}
            return self.render(request, "admin/observations/observation/key.html", context)
        try:
            ingest.withdraw_key(observation=observation, by=signed_in(request).get_username())
        except ingest.KeyNotGiven as refusal:
            messages.info(request, str(refusal))
        else:
            messages.success(request, "Withdrawn: the row stands without it, and no model is asked about it again.")
        return redirect(f"admin:{self.url_name('change')}", pk=pk)

    def take_back_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Taking back what the background put in another row's place: shown first, then done as it was shown."""
        found = Reach.of(request).rows(Observation.objects.select_related("scope"))
        observation = get_object_or_404(found, pk=pk)
        by = signed_in(request).get_username()
        if request.method != "POST":
            context = {"title": f"Take back at {obs(pk)}", "page": taking_back.read_taking(observation, by=by)}
            return self.render(request, "admin/observations/observation/take_back.html", context)
        taking_back.take_back(request, observation, by=by)
        return redirect(f"admin:{self.url_name('change')}", pk=pk)


@dataclass(frozen=True, slots=True)
class About:
    """The rows about one subject, its given keys included."""

    pk: int  # the row it was asked by
    name: str
    subject: str
    rows: Q


def about(row: Observation) -> About | None:
    """The rows with the same subject as this one; None where nobody said what it is about. One query."""
    given = GivenKey.objects.filter(scope_id=row.scope_id, observation=row, state=GivenKey.State.GIVEN).first()
    key = row.subject_key or (given.subject_key if given else 0)
    if not key:
        return None
    others = GivenKey.objects.filter(scope_id=row.scope_id, state=GivenKey.State.GIVEN, subject_key=key)
    same = Q(subject_key=key) | Q(pk__in=others.values("observation_id"))
    subject = snippet(row.key_with(given)[0])
    return About(pk=row.pk, name=obs(row.pk), subject=subject, rows=same & Q(scope_id=row.scope_id))


def _named(mine: QuerySet[Observation], query: str) -> int | None:
    """The row whose id or external id this is, if it is one. One query."""
    try:
        by_id = Q(pk=number_of(shown=query, prefix=Prefix.OBSERVATION))
    except ValueError:
        by_id = Q(pk=None)
    return mine.filter(by_id | Q(external_id=query)).values_list("pk", flat=True).order_by("pk").first()
