"""The page of one subject: all that is and was claimed of it, under every name it has."""

from __future__ import annotations

import re
from typing import Final

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path

from consolidation.admin.history.moments import moment_of
from consolidation.admin.history.subject_reading import read_subject
from consolidation.admin.item.deciding import REVIEW
from consolidation.admin.texts import when
from observations.admin.base import Reach, Screen

_KEY: Final = re.compile(r"-?[1-9][0-9]{0,18}", re.ASCII)
_BIGGEST: Final = 2**63


class SubjectPages(Screen):
    """Subjects are addressed by the hash of their name: no address holds memory text."""

    def extra_urls(self) -> list[URLPattern]:
        """One page, in one scope."""
        return [
            *super().extra_urls(),
            path("subject/<int:scope>/<str:key>/", self.guarded(self.subject_view), name=self.url_name("subject")),
        ]

    def subject_view(self, request: HttpRequest, *, scope: int, key: str) -> HttpResponse:
        """All claims of one subject, current and past; with `at`, those that were believed then."""
        reach = Reach.of(request)
        if not _KEY.fullmatch(key) or not -_BIGGEST <= int(key) < _BIGGEST or scope >= _BIGGEST:
            raise Http404
        within = get_object_or_404(reach.scopes, pk=scope)
        words = request.GET.get("at", "")
        at = moment_of(words)
        page = read_subject(scope=within, key=int(key), at=at)
        if page is None:
            raise Http404
        context = {
            "title": f"About {page.name}",
            "page": page,
            "at": words if at else "",
            "moment": when(at) if at else "",
            "unread": bool(words) and at is None,
            "may_review": reach.may(REVIEW, scope=within),
        }
        return self.render(request, "admin/observations/observation/subject.html", context)
