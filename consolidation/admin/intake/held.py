"""Held back: claims whose turn says only a part of them, until a person releases them into the reads or discards them.

The list is of the scopes a person sees; what is decided is only what a page showed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from django.contrib import messages
from django.core import signing
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse

from consolidation.admin.intake.held_reading import IMPORTED, REASONS, read_held
from consolidation.admin.reading import SHOWN_HOURS, ShownExpired
from consolidation.operations import obs
from observations.admin.base import Reach, Screen, signed_in
from observations.admin.listing import Filter, declared, listing, scope_filter
from observations.ingest import held
from observations.ingest.held import Decided
from observations.models import Observation, Scope, database_now

DECIDE: Final = held.PERMISSION
VERBS: Final = ("release", "discard", "again")
_SALT: Final = "palimpsest.held"
_WORDS: Final = {"release": "Released", "discard": "Discarded", "again": "Held back again"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one claim of a selection."""

    pk: int
    name: str
    done: bool
    sentence: str


class HeldScreen(Screen):
    """The list and what is decided of it; a claim's own page is that of its observation."""

    has_page = False

    def extra_urls(self) -> list[URLPattern]:
        """Where a selection is posted to."""
        return [path("decide/", self.guarded(self.decide_view, DECIDE), name=self.url_name("decide"))]

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """What is held back, the longest waiting first, in a fixed number of queries."""
        reach, user = Reach.of(request), signed_in(request)
        doubt, scope = filters = self._filters(request, reach)
        reason = REASONS.get(doubt.value, "") if doubt.value else None
        found = _narrowed(held.waiting(scopes=reach.scopes, doubt=reason), request, scope.value)
        page = listing(found.select_related("scope"), data=request.GET, size=held.MOST)
        rows = read_held(page.rows, now=database_now())
        context = {
            "title": "Held back",
            "filters": filters,
            "page": page,
            "rows": rows,
            "narrowed": bool(doubt.value or scope.value or request.GET.get("row")),
            "token": signing.dumps({"user": user.pk, "shown": [row.pk for row in rows]}, salt=_SALT, compress=True),
            "may_decide": reach.may(DECIDE),
        }
        return self.render(request, "admin/observations/intakeitem/change_list.html", context)

    def _filters(self, request: HttpRequest, reach: Reach) -> tuple[Filter, Filter]:
        doubt = declared(request=request, name="doubt", label="Why it is doubted", values=[*REASONS, IMPORTED])
        return doubt, scope_filter(request=request, reach=reach)

    def decide_view(self, request: HttpRequest) -> HttpResponse:
        """Release or discard what was picked of a page, or one row of it; a result for each."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        verb, _, only = request.POST.get("verb", "").partition(":")
        if verb not in VERBS:
            return HttpResponseBadRequest("Choose release or discard.")
        back = reverse(f"admin:{self.url_name('changelist')}")
        try:
            shown = _shown(request, user_id=signed_in(request).pk)
        except ShownExpired as expired:
            messages.error(request, str(expired))
            return redirect(back)
        chosen = _picked(request, shown, only)
        if not chosen:
            messages.warning(request, "Nothing was selected.")
            return redirect(back)
        answers = _decide(verb, chosen, reach=Reach.of(request), by=signed_in(request).get_username())
        return self._answered(request, verb=verb, answers=answers, back=back)

    def _answered(self, request: HttpRequest, *, verb: str, answers: Sequence[Answer], back: str) -> HttpResponse:
        done = [answer for answer in answers if answer.done]
        ids = [answer.pk for answer in done]
        context = {
            "title": "What became of your selection",
            "word": _WORDS[verb],
            "done": done,
            "refused": [answer for answer in answers if not answer.done],
            "back": back,
            "again": verb == "release" and bool(done),
            "token": signing.dumps({"user": signed_in(request).pk, "shown": ids}, salt=_SALT, compress=True),
        }
        return self.render(request, "admin/observations/intakeitem/answers.html", context)


def _narrowed(found: QuerySet[Observation], request: HttpRequest, scope: str) -> QuerySet[Observation]:
    """The rows of one scope, or the one row that another page links to."""
    found = found.filter(scope_id=int(scope)) if scope else found
    row = request.GET.get("row", "")
    return found.filter(pk=int(row)) if row.isascii() and row.isdigit() and len(row) < 19 else found


def _shown(request: HttpRequest, *, user_id: int) -> list[int]:
    """The rows that a page showed to this person. Raises ShownExpired."""
    try:
        content = signing.loads(request.POST.get("shown", ""), salt=_SALT, max_age=SHOWN_HOURS * 3600)
    except signing.BadSignature as error:
        raise ShownExpired from error
    if content["user"] != user_id:
        raise ShownExpired
    return [int(pk) for pk in content["shown"]]


def _picked(request: HttpRequest, shown: Sequence[int], only: str) -> list[int]:
    """The rows that were picked of those shown; an id that the page did not show is ignored (D2)."""
    if request.POST.get("all") and not only:
        return list(shown)
    wanted = {only} if only else set(request.POST.getlist("pick"))
    return [pk for pk in shown if str(pk) in wanted]


def _decide(verb: str, chosen: Sequence[int], *, reach: Reach, by: str) -> list[Answer]:
    """Decide each in its scope; a row of a scope this person does not see is not there."""
    rows = Observation.objects.filter(pk__in=chosen, scope__in=reach.scopes).values_list("pk", "scope_id")
    scopes: dict[int, list[int]] = {}
    for pk, scope_id in rows:
        scopes.setdefault(scope_id, []).append(pk)
    act = {"release": held.release, "discard": held.discard, "again": held.hold_again}[verb]
    told: dict[int, Decided] = {}
    for scope in Scope.objects.filter(pk__in=scopes):
        told |= {one.id: one for one in act(scope=scope, ids=scopes[scope.pk], by=by)}
    return list(_answers(chosen, told))


def _answers(chosen: Iterable[int], told: dict[int, Decided]) -> Iterable[Answer]:
    for pk in chosen:
        one = told.get(pk) or Decided(pk, False, f"obs_{pk} is not among what you may see.")
        yield Answer(pk=pk, name=obs(pk), done=one.done, sentence=one.sentence)
