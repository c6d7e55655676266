"""Measured error: how often each rule is wrong, with its interval drawn, and the button that lifts a demotion."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path

from consolidation import sampling
from consolidation.accuracy import Band, proven, spoken
from consolidation.admin.reading import Chip
from consolidation.admin.texts import told, when
from consolidation.models import Demotion
from consolidation.operations import visible
from consolidation.review import Refused
from observations.admin.base import Reach, Screen, signed_in

LIFT: Final = "consolidation.lift_demotion"
WIDTH: Final = 240  # of a drawn interval, in its own units
PAST: Final = 20  # lifted demotions shown
_TICKS: Final = (0.0, 0.05, 0.25, 1.0)


@dataclass(frozen=True, slots=True)
class Interval:
    """A drawn interval. The scale is of square roots: what matters lies near 0."""

    start: float
    width: float
    dot: float
    said: str  # the same in words


@dataclass(frozen=True, slots=True)
class Line:
    """One band of the table."""

    kind: str
    name: str
    state: Chip
    error: str
    known: str  # what is proven
    interval: Interval | None  # None: nothing is known
    judged: str  # right, wrong and waiting of the sample
    undone: str
    decided: str  # what people said to proposals


@dataclass(frozen=True, slots=True)
class Fall:
    """One demotion, standing or lifted."""

    pk: int
    kind: str
    name: str
    figures: str
    at: str
    lifted: str  # by whom, when and why; empty: it stands


class DemotionScreen(Screen):
    """The table, and lifting."""

    has_page = False

    def extra_urls(self) -> list[URLPattern]:
        """The one thing that is posted."""
        return [path("<int:pk>/lift/", self.guarded(self.lift_view, LIFT), name=self.url_name("lift"))]

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """Every band of which anything is known in the visible scopes; the demotions are the whole store's. Six queries
        at most.
        """
        reach = Reach.of(request)
        bands = sampling.bands(scopes=None if reach.everything else reach.scopes)
        standing = Demotion.objects.filter(lifted_at=None).order_by("-pk")
        past = Demotion.objects.exclude(lifted_at=None).order_by("-pk")[:PAST]
        limit = sampling.strictest_limit()
        context = {
            "title": "Measured error",
            "alone": [_line(band) for band in bands if band.unasked],
            "asking": [_line(band) for band in bands if not band.unasked],
            "standing": [_fall(row) for row in standing],
            "past": [_fall(row) for row in past],
            "limit": f"{1000 * limit:g}",
            "limit_at": _across(limit),
            "ticks": [(_across(share), f"{100 * share:g}%") for share in _TICKS],
            "width": WIDTH,
            "may_lift": self._may(request),
            "everything": reach.everything,
        }
        return self.render(request, "admin/consolidation/accuracy/change_list.html", context)

    def _may(self, request: HttpRequest) -> bool:
        """A band is one for the whole store, so only who sees every scope may lift."""
        return Reach.of(request).where(LIFT).everything

    def lift_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Let a band decide alone again."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self._may(request):
            raise PermissionDenied("A band decides in every scope: only who may see all of them can lift a demotion.")
        row = get_object_or_404(Demotion, pk=pk)
        reason = request.POST.get("reason", "").replace("\0", "")
        try:
            sampling.lift(demotion=row, by=signed_in(request).get_username(), reason=reason)
        except Refused as refusal:
            messages.error(request, visible(str(refusal)))
        else:
            name = spoken(rule=row.rule, band=row.band)
            messages.success(request, f"Lifted: {visible(name)} decides alone again. Its labels are counted anew.")
        return redirect(f"admin:{self.url_name('changelist')}")


def _line(band: Band) -> Line:
    return Line(
        kind=band.kind,
        name=visible(spoken(rule=band.rule, band=band.band)),
        state=_state(band),
        error="" if band.error is None else f"{100 * band.error:.3g}% of {band.rate.of:,}",
        known=proven(band.rate),
        interval=_interval(band),
        judged=_listed((band.judged_right, "right"), (band.judged_wrong, "wrong"), (band.waiting, "to check")),
        undone=f"{band.undone:,} of {band.applied:,}" if band.applied else "",
        decided=_listed(
            (band.approved - band.edited, "approved"),
            (band.edited, "edited"),
            (band.rejected, "rejected"),
            (band.reverted, "undone"),
        ),
    )


def _state(band: Band) -> Chip:
    if band.demoted_at:
        return Chip("demoted", "warn")
    return Chip("automatic", "auto") if band.unasked else Chip("asks people", "quiet")


def _listed(*counts: tuple[int, str]) -> str:
    return ", ".join(f"{number:,} {word}" for number, word in counts if number)


def _interval(band: Band) -> Interval | None:
    if band.error is None:
        return None
    start, end = _across(band.lower), _across(band.upper)
    said = f"{100 * band.error:.3g}% wrong, between {100 * band.lower:.3g}% and {100 * band.upper:.3g}%"
    return Interval(start=start, width=round(max(end - start, 2.0), 1), dot=_across(band.error), said=said)


def _across(share: float) -> float:
    return round(math.sqrt(share) * WIDTH, 1)


def _fall(row: Demotion) -> Fall:
    lifted = (
        told("{}, {}: {}", visible(row.lifted_by), when(row.lifted_at), visible(row.lifted_reason))
        if row.lifted_at
        else ""
    )
    figures = (
        f"wrong in {row.wrong:,} of {row.judged:,}, at least {100 * row.lower:.3g}% where {100 * row.limit:g}% are"
        " allowed"
    )
    name = visible(spoken(rule=row.rule, band=row.band))
    return Fall(pk=row.pk, kind=row.kind, name=name, figures=figures, at=when(row.at), lifted=lifted)
