"""Aliases: which two subjects people said are one, and the form that asks for it. Applying is the review's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path

from consolidation.admin.item.deciding import REVIEW
from consolidation.admin.texts import snippet, when
from consolidation.aliases import request_alias
from consolidation.models import Alias
from consolidation.operations import Prefix, number_of, obs, visible
from consolidation.review import Refused
from observations.admin.base import SCOPES_OFFERED, Reach, Screen, signed_in
from observations.admin.listing import Choice, declared, listing, scope_filter
from observations.models import GivenKey, Observation, Scope

LOST: Final = 409  # the form cannot be meant as it stands: the page says why, and keeps what was written
LONGEST: Final = 500  # characters of a subject
ACTIVE: Final = "active"
_ID: Final = re.compile(rf"{Prefix.OBSERVATION}_[0-9]+", re.ASCII)
STATES: Final = (ACTIVE, "removed")


@dataclass(frozen=True, slots=True)
class Row:
    """One alias in the list."""

    subject: str
    name: str
    scope: str
    by: str
    at: str
    operation: str  # as it is named, "op_…#1"
    removed: str


@dataclass(frozen=True, slots=True)
class About:
    """The row from whose page somebody comes."""

    pk: int
    name: str
    subject: str
    scope: str


class AliasScreen(Screen):
    """The list, and the question that is put to a reviewer."""

    has_page = False

    def extra_urls(self) -> list[URLPattern]:
        """Asking for an alias."""
        return [path("new/", self.guarded(self.new_view, REVIEW), name=self.url_name("new"))]

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """Aliases of visible scopes, newest first: those that hold, and those that were undone."""
        reach = Reach.of(request)
        filters = (
            declared(request=request, name="state", label="State", values=STATES),
            scope_filter(request=request, reach=reach),
        )
        state, scope = (chosen.value for chosen in filters)
        found: QuerySet[Alias] = Alias.objects.filter(scope__in=reach.scopes)
        found = found.filter(removed_at__isnull=state == ACTIVE) if state else found
        found = found.filter(scope_id=int(scope)) if scope else found
        page = listing(found.select_related("scope").order_by("-pk"), data=request.GET)
        context = {
            "title": "Aliases",
            "page": page,
            "rows": [_row(row) for row in page.rows],
            "filters": filters,
            "may_review": reach.may(REVIEW),
        }
        return self.render(request, "admin/consolidation/alias/change_list.html", context)

    def new_view(self, request: HttpRequest) -> HttpResponse:
        """The form; posted, a question that waits for a decision, on its own page."""
        reach = Reach.of(request)
        row = self._row(request, reach)
        if request.method != "POST":
            return self._form(request, reach, row)
        try:
            operation = request_alias(
                scope=row.scope if row else self._scope(request, reach),
                subject=self._named(request, "subject", row),
                name=self._other(request, reach, row),
                by=signed_in(request).get_username(),
            )
        except Refused as refusal:
            return self._form(request, reach, row, refusal=str(refusal))
        messages.success(request, "The question is put. Until somebody decides it, nothing changes.")
        return redirect("admin:consolidation_operation_change", pk=operation.pk)

    def _row(self, request: HttpRequest, reach: Reach) -> Observation | None:
        """The observation whose subject it is, named by its id: no subject stands in an address. One query."""
        data = request.POST if request.method == "POST" else request.GET
        asked = data.get("observation", "")
        if not asked:
            return None
        found = _observation(reach, asked)
        if found is None:
            raise Http404
        return found

    def _scope(self, request: HttpRequest, reach: Reach) -> Scope:
        asked = request.POST.get("scope", "")
        number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 19 else 0
        found = reach.scopes.filter(pk=number).first()
        if found is None:
            raise Refused("Choose the scope whose subjects they are.")
        return found

    def _named(self, request: HttpRequest, field: str, row: Observation | None) -> str:
        if row is not None:
            return subject_of(row)
        return request.POST.get(field, "").replace("\0", "").strip()[:LONGEST]

    def _other(self, request: HttpRequest, reach: Reach, row: Observation | None) -> str:
        """The other subject as it was written, or that of a record given as obs_123."""
        written = self._named(request, "name", None)
        if not _ID.fullmatch(written):
            return written
        other = _observation(reach, written)
        if other is None or (row is not None and other.scope_id != row.scope_id):
            raise Refused("There is no such record in that scope: write the other subject, or the id of a record.")
        return subject_of(other)

    def _form(self, request: HttpRequest, reach: Reach, row: Observation | None, *, refusal: str = "") -> HttpResponse:
        given = request.POST.dict() if refusal else {}
        about = row and About(row.pk, obs(row.pk), snippet(subject_of(row)), visible(row.scope.name))
        scopes = [] if row else list(reach.scopes.order_by("name").values_list("pk", "name")[:SCOPES_OFFERED])
        context = {
            "title": "These two subjects are one",
            "about": about,
            "scopes": [Choice(str(pk), name, str(pk) == given.get("scope")) for pk, name in scopes],
            "refusal": refusal,
            "given_subject": given.get("subject", ""),
            "given_name": given.get("name", ""),
            "longest": LONGEST,
        }
        status = LOST if refusal else 200
        return self.render(request, "admin/consolidation/alias/new.html", context, status=status)


def _observation(reach: Reach, asked: str) -> Observation | None:
    """A visible observation by its id, plain or as it is shown. One query."""
    try:
        pk = number_of(shown=asked, prefix=Prefix.OBSERVATION)
    except ValueError:
        return None
    return reach.rows(Observation.objects.filter(Q(pk=pk)).select_related("scope")).first()


def subject_of(row: Observation) -> str:
    """What a row is about, in its writer's words or a model's; empty where nobody said. One query, or none."""
    if row.subject:
        return row.subject
    given = GivenKey.objects.filter(scope_id=row.scope_id, observation=row, state=GivenKey.State.GIVEN).first()
    return given.subject if given else ""


def _row(row: Alias) -> Row:
    return Row(
        subject=snippet(row.subject or None),
        name=snippet(row.name or None),
        scope=visible(row.scope.name),
        by=visible(row.by),
        at=when(row.at),
        operation=visible(row.operation),
        removed=when(row.removed_at),
    )
