"""To check: what was applied without a decision and is put before a person afterwards, and that person's word on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path

from consolidation import sampling
from consolidation.accuracy import spoken
from consolidation.admin.item.deciding import APPLY, REVIEW
from consolidation.admin.item.reading import read_item
from consolidation.admin.reading import Chip, rows_of
from consolidation.admin.reading import Row as Shown
from consolidation.admin.texts import signed, when
from consolidation.models import Sample
from consolidation.operations import State, visible
from consolidation.review import Refused
from observations.admin.base import Reach, Screen, signed_in
from observations.admin.listing import declared, listing, scope_filter

LOST: Final = 409  # somebody else was first: the page says who
_PAGES: Final = "admin/consolidation/sample"
_TONES: Final = {Sample.Judged.WAITING: "wait", Sample.Judged.RIGHT: "done", Sample.Judged.WRONG: "no"}
_WORDS: Final = {Sample.Judged.WAITING: "to check", Sample.Judged.RIGHT: "right", Sample.Judged.WRONG: "wrong"}
_UNDONE: Final = Chip("undone", "back")


@dataclass(frozen=True, slots=True)
class Row:
    """One sample in the list: the operation, and what is said of it."""

    pk: int
    operation: Shown
    judgement: str  # the rule's name and band
    word: Chip
    by: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One sample on its page."""

    pk: int
    judgement: str
    word: Chip
    by: str
    chosen: str
    waiting: bool


class SampleScreen(Screen):
    """The list, and the page on which a person says right or wrong."""

    def extra_urls(self) -> list[URLPattern]:
        """The one thing that is posted."""
        return [path("<int:pk>/judge/", self.guarded(self.judge_view, REVIEW), name=self.url_name("judge"))]

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """Samples of visible scopes: those that wait first come first, those that were judged newest first."""
        reach = Reach.of(request)
        filters = (
            declared(
                request=request,
                name="judged",
                label="Judged",
                values=map(str, Sample.Judged.values),
                default=str(Sample.Judged.WAITING),
            ),
            scope_filter(request=request, reach=reach),
        )
        judged, scope = (chosen.value for chosen in filters)
        found = self._found(reach, judged, scope).select_related("operation__scope")
        page = listing(found, data=request.GET)
        shown = rows_of([sample.operation for sample in page.rows])
        rows = [_row(sample, row) for sample, row in zip(page.rows, shown, strict=True)]
        context = {"title": "To check", "page": page, "rows": rows, "filters": filters}
        return self.render(request, f"{_PAGES}/change_list.html", context)

    def _found(self, reach: Reach, judged: str, scope: str) -> QuerySet[Sample]:
        waiting = judged == Sample.Judged.WAITING
        found = sampling.waiting_samples() if waiting else Sample.objects.all()
        found = found.filter(scope__in=reach.scopes)
        found = found.filter(judged=judged) if judged else found
        found = found.filter(scope_id=int(scope)) if scope else found
        return found.order_by("pk" if waiting else "-pk")

    def page_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """What was done to what, and the two answers."""
        return self._page(request, self._visible(request, pk))

    def _visible(self, request: HttpRequest, pk: int) -> Sample:
        return get_object_or_404(Reach.of(request).rows(Sample.objects.select_related("operation__scope")), pk=pk)

    def _page(self, request: HttpRequest, sample: Sample, *, refusal: str = "", status: int = 200) -> HttpResponse:
        reach, scope = Reach.seen_by(request), sample.operation.scope
        context = {
            "title": f"Check {sample.operation.op_id[:11]}",
            "asked": _asked(sample),
            "item": read_item(sample.operation),
            "refusal": refusal,
            "may_review": reach.may(REVIEW, scope=scope),
            "may_apply": reach.may(APPLY, scope=scope),
        }
        return self.render(request, f"{_PAGES}/change_form.html", context, status=status)

    def judge_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Right or wrong, once; `correct` replaces a word that was given. The second of two reads who was first."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        sample, by = self._visible(request, pk), signed_in(request).get_username()
        word, correcting = request.POST.get("word", ""), request.POST.get("correct") == "1"
        if word not in (Sample.Judged.RIGHT, Sample.Judged.WRONG):
            return self._page(request, sample, refusal="Say whether it is right or wrong.", status=LOST)
        try:
            sampling.judge(sample=sample, right=word == Sample.Judged.RIGHT, by=by, correcting=correcting)
        except Refused as refusal:
            stands = self._visible(request, pk)
            if (stands.judged, stands.judged_by) == (word, by):
                messages.info(request, "You said that already. This is how it stands.")
                return redirect(f"admin:{self.url_name('change')}", pk=pk)
            return self._page(request, stands, refusal=visible(str(refusal)), status=LOST)
        return self._onward(request, sample, wrong=word == Sample.Judged.WRONG)

    def _onward(self, request: HttpRequest, sample: Sample, *, wrong: bool) -> HttpResponse:
        """After a wrong one to its page, which offers the undo; after a right one to the list."""
        if wrong:
            messages.warning(request, "Counted as wrong. Memory has not changed: undo it here if it should.")
            return redirect(f"admin:{self.url_name('change')}", pk=sample.pk)
        messages.success(request, "Counted as right.")
        return redirect(f"admin:{self.url_name('changelist')}")


def _word(sample: Sample) -> Chip:
    if sample.judged == Sample.Judged.WAITING and sample.operation.status == State.UNDONE:
        return _UNDONE
    judged = Sample.Judged(sample.judged)
    return Chip(_WORDS[judged], _TONES[judged])


def _said(sample: Sample) -> str:
    return signed(sample.judged_by, sample.judged_at)


def _row(sample: Sample, shown: Shown) -> Row:
    judgement = spoken(rule=sample.rule, band=sample.band)
    return Row(pk=sample.pk, operation=shown, judgement=judgement, word=_word(sample), by=_said(sample))


def _asked(sample: Sample) -> Asked:
    return Asked(
        pk=sample.pk,
        judgement=spoken(rule=sample.rule, band=sample.band),
        word=_word(sample),
        by=_said(sample),
        chosen=when(sample.chosen_at),
        waiting=sample.judged == Sample.Judged.WAITING,
    )
