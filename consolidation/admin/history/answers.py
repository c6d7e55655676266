"""Finding the answer an agent was given: by its id, or the last one of a scope by a moment."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path

from consolidation.admin.history.moments import moment_of
from observations.admin.base import Reach, Screen
from observations.models import GivenAnswer


def uuid_of(words: str) -> UUID | None:
    """The id of an answer, however it is spelt; None for anything else."""
    try:
        return UUID(words.strip()) if len(words) < 64 else None
    except ValueError:
        return None


class AnswerPages(Screen):
    """Ways to one answer."""

    def extra_urls(self) -> list[URLPattern]:
        """By what a program has of it, and by what a person asks."""
        return [
            *super().extra_urls(),
            path("find/", self.guarded(self.find_view), name=self.url_name("find")),
            path("of/<uuid:answer>/", self.guarded(self.of_view), name=self.url_name("of")),
        ]

    def find_view(self, request: HttpRequest) -> HttpResponse:
        """From `answer`, or `scope` and `at`, to its page; or back to the list with a sentence."""
        given = request.GET
        if answer := given.get("answer", "").strip():
            found = uuid_of(answer)
            if found is not None and (row := self._called(request, found)):
                return redirect(f"admin:{self.url_name('change')}", pk=row.pk)
            messages.info(request, "No answer of that id is kept in the scopes you may see. They are kept 90 days.")
            return redirect(f"admin:{self.url_name('changelist')}")
        return self._at(request, scope=given.get("scope", ""), words=given.get("at", ""))

    def _at(self, request: HttpRequest, *, scope: str, words: str) -> HttpResponse:
        at = moment_of(words)
        if at is None or not (scope.isascii() and scope.isdigit() and len(scope) < 19):
            messages.info(request, "Give an answer's id, or a scope and a moment such as 2026-05-01T14:30 (UTC).")
            return redirect(f"admin:{self.url_name('changelist')}")
        rows = Reach.of(request).rows(GivenAnswer.objects.filter(scope=int(scope), at__lte=at))
        row = rows.order_by("-at", "-pk").first()
        if row is None:
            messages.info(request, "No answer that is kept was given in that scope by then. They are kept 90 days.")
            return redirect(f"admin:{self.url_name('changelist')}")
        return redirect(f"admin:{self.url_name('change')}", pk=row.pk)

    def of_view(self, request: HttpRequest, *, answer: UUID) -> HttpResponse:
        """The page of an answer by the id its caller was given, to be shared."""
        row = self._called(request, answer)
        if row is None:
            raise Http404
        return redirect(f"admin:{self.url_name('change')}", pk=row.pk)

    def _called(self, request: HttpRequest, answer: UUID) -> GivenAnswer | None:
        return Reach.of(request).rows(GivenAnswer.objects.filter(answer=answer)).order_by("-pk").first()
