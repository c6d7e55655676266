"""The record of a decision: a page to be printed, and the same as text and as JSON to be kept."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Final

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path

from consolidation.admin.record.reading import Record, read_record
from consolidation.admin.record.text import render_text
from consolidation.models import Operation
from observations.admin.base import Reach, Screen

_TYPES: Final = {"json": "application/json", "txt": "text/plain; charset=utf-8"}


class RecordPages(Screen):
    """Two addresses per operation."""

    def extra_urls(self) -> list[URLPattern]:
        """The page, and its files."""
        return [
            *super().extra_urls(),
            path("<int:pk>/record/", self.guarded(self.record_view), name=self.url_name("record")),
            path("<int:pk>/record/<str:form>/", self.guarded(self.record_file_view), name=self.url_name("recordfile")),
        ]

    def record_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Nothing is decided here, and looking at it marks nothing opened."""
        record = self._record(request, pk)
        context = {"title": f"Record of {record.head.op_id[:11]}", "record": record}
        return self.render(request, "admin/consolidation/operation/record.html", context)

    def record_file_view(self, request: HttpRequest, *, pk: int, form: str) -> HttpResponse:
        """The same as a file, never shown in the browser's place of a page."""
        if form not in _TYPES:
            raise Http404
        record = self._record(request, pk)
        body = render_text(record) if form == "txt" else json.dumps(asdict(record), indent=2)
        answer = HttpResponse(body, content_type=_TYPES[form])
        answer["Content-Disposition"] = (
            f'attachment; filename="record-{record.head.op_id}-{record.head.generation}.{form}"'
        )
        answer["X-Content-Type-Options"] = "nosniff"
        return answer

    def _record(self, request: HttpRequest, pk: int) -> Record:
        found = Reach.of(request).rows(Operation.objects.select_related("scope"))
        return read_record(get_object_or_404(found, pk=pk))
