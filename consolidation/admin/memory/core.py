"""Core memory: the labelled texts that are always in the prompt, every edit of them, and editing them by hand (R120).

A form carries the revision it was loaded with: who was slower reads who was faster and what both wrote, and decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path

from consolidation.admin.memory.core_reading import REVISIONS, Race, form_of, race_of, revisions_of, row_of
from consolidation.operations import visible
from observations import ingest
from observations.admin.base import SCOPES_OFFERED, Reach, Screen, require, signed_in
from observations.admin.listing import Choice, declared, listing, scope_filter
from observations.ingest.core import DEFAULT_LIMIT, MAX_LIMIT
from observations.models import CoreMemory, CoreRevision

EDIT: Final = "observations.edit_core"
SET: Final = "observations.set_core"
LOST: Final = 409
READ_ONLY: Final = "read-only for programs"
OPEN: Final = "open to programs"
DESCRIBED: Final = 500  # characters of a description


class CoreScreen(Screen):
    """The list, and the page of one label."""

    def extra_urls(self) -> list[URLPattern]:
        """Making one, editing it, taking an edit back, and what it is for."""
        return [
            path("new/", self.guarded(self.new_view, SET), name=self.url_name("new")),
            path("<int:pk>/edit/", self.guarded(self.edit_view, EDIT), name=self.url_name("edit")),
            path("<int:pk>/undo/", self.guarded(self.undo_view, EDIT), name=self.url_name("undo")),
            path("<int:pk>/settings/", self.guarded(self.set_view, SET), name=self.url_name("settings")),
        ]

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """Core memory of visible scopes, by scope and label."""
        reach = Reach.of(request)
        filters = (
            declared(request=request, name="edited", label="Programs", values=(OPEN, READ_ONLY)),
            scope_filter(request=request, reach=reach),
        )
        edited, scope = (chosen.value for chosen in filters)
        found = CoreMemory.objects.filter(scope__in=reach.scopes)
        found = found.filter(read_only=edited == READ_ONLY) if edited else found
        found = found.filter(scope_id=int(scope)) if scope else found
        page = listing(found.select_related("scope").order_by("scope__name", "label"), data=request.GET)
        context = {
            "title": "Core memory",
            "page": page,
            "rows": [row_of(row) for row in page.rows],
            "filters": filters,
            "may_set": reach.may(SET),
        }
        return self.render(request, "admin/observations/corememory/change_list.html", context)

    def page_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """One label in a fixed number of queries."""
        return self._page(request, self._core(request, pk))

    def _core(self, request: HttpRequest, pk: int) -> CoreMemory:
        return get_object_or_404(Reach.of(request).rows(CoreMemory.objects.select_related("scope")), pk=pk)

    def _page(
        self, request: HttpRequest, core: CoreMemory, *, refusal: str = "", race: Race | None = None
    ) -> HttpResponse:
        given = _given(request) if refusal or race else {}
        edits = CoreRevision.objects.filter(scope_id=core.scope_id, core=core).order_by("-number")
        page = listing(edits, data=request.GET, size=REVISIONS)
        revisions, reach = revisions_of(core, page), Reach.seen_by(request)
        context: dict[str, Any] = {
            "title": visible(core.label),
            "core": row_of(core),
            "limit": core.limit,
            "form": form_of(core, given),
            "settings": {"description": visible(core.description), "limit": core.limit, **given},
            "page": page,
            "revisions": revisions,
            "undoable": core.revision > 1 and not any(one.erased for one in revisions[:2]),
            "refusal": refusal,
            "race": race,
            "may_edit": reach.may(EDIT, scope=core.scope),
            "may_set": reach.may(SET, scope=core.scope),
            "most": MAX_LIMIT,
            "described": DESCRIBED,
        }
        status = LOST if refusal or race else 200
        return self.render(request, "admin/observations/corememory/change_form.html", context, status=status)

    # --- editing ----------------------------------------------------------------------------------------------------

    def edit_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """One edit of what the form showed."""
        given = _given(request)
        edits: Mapping[str, Callable[..., ingest.Core]] = {
            "append": lambda **by: ingest.append_core(text=given.get("text", ""), **by),
            "replace": lambda **by: ingest.replace_core(old=given.get("old", ""), new=given.get("new", ""), **by),
            "rethink": lambda **by: ingest.rethink_core(value=self._anew(request, pk, given.get("value", "")), **by),
        }
        edit = edits.get(given.get("way", ""))
        if request.method == "POST" and edit is None:
            return self._page(request, self._core(request, pk), refusal="Choose how to edit it.")
        return self._changed(request, pk, edit or edits["append"])

    def _anew(self, request: HttpRequest, pk: int, value: str) -> str:
        """The whole text as it was written; left as the form showed it, it is the text with what the form hid."""
        core = self._core(request, pk)
        return core.value if value == form_of(core, {}).whole else value

    def undo_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """The newest edit taken back, as an edit of its own."""
        return self._changed(request, pk, ingest.undo_core)

    def _changed(self, request: HttpRequest, pk: int, edit: Callable[..., ingest.Core]) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        core, given = self._core(request, pk), request.POST.get("revision", "")
        if not (given.isascii() and given.isdigit() and len(given) < 10):
            return self._page(request, core, refusal="The form names no revision: load the page again.")
        by = signed_in(request).get_username()
        try:
            done = edit(scope=core.scope, label=core.label, by=by, revision=int(given))
        except ingest.Moved:
            core = self._core(request, pk)
            return self._page(request, core, race=race_of(core, _given(request)))
        except ingest.CoreRefused as refusal:
            return self._page(request, self._core(request, pk), refusal=str(refusal))
        if done.revision == int(given):
            messages.info(request, "Nothing was changed: the text is as it was.")
        else:
            messages.success(request, f"Saved as revision {done.revision}.{_CLEANED if done.cleaned else ''}")
        return redirect(f"admin:{self.url_name('change')}", pk=pk)

    # --- making and setting -----------------------------------------------------------------------------------------

    def set_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """What it is for, how long it may be, and whether programs may edit it."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        core, description = self._core(request, pk), request.POST.get("description", "")
        try:
            ingest.set_core(
                scope=core.scope,
                label=core.label,
                by=signed_in(request).get_username(),
                description=None if description == visible(core.description) else description,
                limit=_whole(request.POST.get("limit", "")),
                read_only=bool(request.POST.get("read_only")),
            )
        except ingest.CoreRefused as refusal:
            return self._page(request, self._core(request, pk), refusal=str(refusal))
        messages.success(request, "Saved. Its text is as it was.")
        return redirect(f"admin:{self.url_name('change')}", pk=pk)

    def new_view(self, request: HttpRequest) -> HttpResponse:
        """The form; posted, the new label's page."""
        if request.method != "POST":
            return self._new(request)
        try:
            made = self._made(request)
        except ingest.CoreRefused as refusal:
            return self._new(request, refusal=str(refusal))
        messages.success(request, "Made. It is in the next prompt of its scope.")
        return redirect(f"admin:{self.url_name('change')}", pk=made)

    def _made(self, request: HttpRequest) -> int:
        """Raises ingest.CoreRefused."""
        scopes, asked = Reach.of(request).scopes, request.POST.get("scope", "")
        number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 19 else 0
        scope = scopes.filter(pk=number).first()
        if scope is None:
            raise ingest.CoreRefused("Choose the scope whose prompt it stands in.")
        value = request.POST.get("value", "").replace("\r\n", "\n")
        if value:
            require(request, EDIT, scope=scope)
        made = ingest.create_core(
            scope=scope,
            label=request.POST.get("label", ""),
            value=value,
            limit=_whole(request.POST.get("limit", "")),
            description=request.POST.get("description", ""),
            read_only=bool(request.POST.get("read_only")),
            by=signed_in(request).get_username(),
        )
        return CoreMemory.objects.values_list("pk", flat=True).get(scope=scope, label=made.label)

    def _new(self, request: HttpRequest, *, refusal: str = "") -> HttpResponse:
        given = request.POST.dict() if refusal else {"limit": str(DEFAULT_LIMIT)}
        rows = Reach.of(request).scopes.order_by("name").values_list("pk", "name")[:SCOPES_OFFERED]
        context = {
            "title": "New core memory",
            "scopes": [Choice(str(pk), visible(name), str(pk) == given.get("scope")) for pk, name in rows],
            "given": given,
            "refusal": refusal,
            "most": MAX_LIMIT,
            "described": DESCRIBED,
        }
        status = LOST if refusal else 200
        return self.render(request, "admin/observations/corememory/new.html", context, status=status)


_CLEANED: Final = " A character that no database can hold was replaced."


def _given(request: HttpRequest) -> dict[str, str]:
    """What was posted, with the line ends a browser sends made plain again."""
    fields = ("way", "text", "old", "new", "value", "description", "limit")
    return {name: request.POST[name].replace("\r\n", "\n") for name in fields if name in request.POST}


def _whole(text: str) -> int:
    """A limit as it was written; 0, which no limit is, for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
