"""Calibrations: what an embedder was measured to mean, in figures and a picture, and the button that lets it merge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path

from consolidation import calibrating
from consolidation.admin.texts import told, when
from consolidation.calibration import FLOOR, LIMIT, NEVER, TOO_FEW, Measured, percent, reasons
from consolidation.models import Calibration
from consolidation.operations import visible
from observations.admin.base import Reach, Screen, signed_in
from observations.admin.listing import listing
from observations.retrieval import current_embedder

ENABLE: Final = "consolidation.enable_calibration"
_PAGES: Final = "admin/consolidation/calibration"
WIDTH, HEIGHT = 640, 240  # of the picture's plane, in its own units


@dataclass(frozen=True, slots=True)
class Row:
    """One calibration in the list."""

    pk: int
    profile: str
    at: str
    by: str
    candidate: str
    merge: str
    enabled: str  # by whom and when; empty: not enabled
    holds: bool  # the newest of its embedder that has pairs enough
    few: str  # that it has not; empty when it has
    current: bool  # of the embedder of the settings
    possible: bool  # it may be enabled


@dataclass(frozen=True, slots=True)
class Line:
    """One band of the table: its pairs, and the rates from its lower end on."""

    low: str
    pairs: int
    duplicates: int
    different: int
    unguarded_false: str
    false: str
    unguarded_recall: str
    recall: str
    candidate: bool  # t_candidate is its lower end
    merge: bool  # t_merge is


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of the picture: points as SVG writes them, and what it is called."""

    name: str
    label: str
    points: str


@dataclass(frozen=True, slots=True)
class Picture:
    """What merging from a cosine on finds and gets wrong, to look at; the table says the same."""

    curves: tuple[Curve, ...]
    ticks: tuple[tuple[float, str], ...]  # along the cosine
    levels: tuple[tuple[float, str], ...]  # along the share
    marks: tuple[tuple[float, str], ...]  # the two thresholds


class CalibrationScreen(Screen):
    """The list, one calibration, and enabling it."""

    def extra_urls(self) -> list[URLPattern]:
        """The one thing that is posted."""
        return [path("<int:pk>/enable/", self.guarded(self.enable_view, ENABLE), name=self.url_name("enable"))]

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """Every calibration, newest first, and what holds for the embedder of the settings."""
        found = listing(Calibration.objects.order_by("-pk"), data=request.GET, size=50)
        own, holding = current_embedder().profile, _holding()
        held = calibrating.in_force(profile=own)
        context = {
            "title": "Calibrations",
            "page": found,
            "rows": [_row(row, holding) for row in found.rows],
            "embedder": visible(own.name),
            "candidate": f"{held.t_candidate:g}",
            "merge": "never by key" if held.t_merge >= NEVER else f"{held.t_merge:g}",
            "automatic": held.automatic,
        }
        return self.render(request, f"{_PAGES}/change_list.html", context)

    def page_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """One calibration: why these thresholds, the picture, the table."""
        row = get_object_or_404(Calibration, pk=pk)
        measured = Measured.from_dict(row.figures)
        candidate, merge = reasons(t_candidate=row.t_candidate, t_merge=row.t_merge, measured=measured)
        shown = _row(row, _holding())
        context = {
            "title": f"Calibration {row.pk} of {visible(row.profile)}",
            "row": shown,
            "pairs": f"{measured.pairs:,}",
            "candidate_why": candidate,
            "merge_why": merge,
            "limit": f"{1000 * LIMIT:g}",
            "floor": f"{FLOOR:g}",
            "lines": _lines(row, measured),
            "picture": picture(row, measured),
            "measured": measured,
            "may_enable": shown.possible and self._may(request),
        }
        return self.render(request, f"{_PAGES}/change_form.html", context)

    def _may(self, request: HttpRequest) -> bool:
        """An embedder merges in every scope, so only who sees every scope may say so."""
        return Reach.of(request).where(ENABLE).everything

    def enable_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Let the embedder merge by key without a person."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self._may(request):
            raise PermissionDenied("An embedder merges in every scope: only who may see all of them can enable it.")
        row = get_object_or_404(Calibration, pk=pk)
        try:
            calibrating.enable(calibration=row, by=signed_in(request).get_username())
        except calibrating.NotEnabled as refusal:
            messages.error(request, visible(str(refusal)))
        else:
            messages.success(request, f"Enabled: {visible(row.profile)} merges by key from {row.t_merge:g} on.")
        return redirect(f"admin:{self.url_name('change')}", pk=pk)


def _holding() -> frozenset[int]:
    """The calibration of each embedder that holds, by id. One query."""
    return calibrating.holding(newest_first=Calibration.objects.order_by("-pk"))


def _row(row: Calibration, holding: frozenset[int]) -> Row:
    own, holds = current_embedder().profile, row.pk in holding
    few = "" if calibrating.tells(calibration=row) else TOO_FEW
    return Row(
        pk=row.pk,
        profile=visible(row.profile),
        at=when(row.at),
        by=visible(row.by),
        candidate=f"{row.t_candidate:g}",
        merge="not set" if few else "never by key" if row.t_merge >= NEVER else f"{row.t_merge:g}",
        enabled=told("{}, by {}", when(row.enabled_at), visible(row.enabled_by)) if row.enabled_at else "",
        holds=holds,
        few=few,
        current=row.space == calibrating.space_of(profile=own),
        possible=holds and row.enabled_at is None and row.t_merge < NEVER,
    )


def _lines(row: Calibration, measured: Measured) -> list[Line]:
    return [
        Line(
            low=f"{band.low:.2f}",
            pairs=band.duplicates + band.different,
            duplicates=band.duplicates,
            different=band.different,
            unguarded_false=percent(at.unguarded_false_merges),
            false=percent(at.false_merges),
            unguarded_recall=percent(at.unguarded_recall),
            recall=percent(at.recall),
            candidate=band.low == row.t_candidate,
            merge=band.low == row.t_merge,
        )
        for band in measured.bands
        for at in [measured.at(threshold=band.low)]
    ]


# --- the picture ------------------------------------------------------------------------------------------------------


def picture(row: Calibration, measured: Measured) -> Picture:
    """Three curves over the cosine, and the two thresholds. The unguarded ones show what the guards are for."""
    rates = [(band.low, measured.at(threshold=band.low)) for band in measured.bands]
    curves = (
        Curve(
            "recall", "duplicates found, without guards", _points([(x, at.unguarded_recall.share) for x, at in rates])
        ),
        Curve(
            "wrong", "false merges, without guards", _points([(x, at.unguarded_false_merges.share) for x, at in rates])
        ),
        Curve(
            "guarded", "false merges, with guards, at most", _points([(x, at.false_merges.bound) for x, at in rates])
        ),
    )
    marks = [(_across(row.t_candidate), f"candidates {row.t_candidate:g}")]
    marks += [(_across(row.t_merge), f"merges {row.t_merge:g}")] if row.t_merge < NEVER else []
    return Picture(
        curves=curves,
        ticks=tuple((_across(n / 100), f"{n / 100:.2f}") for n in range(80, 101, 5)),
        levels=tuple((_up(n / 4), f"{25 * n}%") for n in range(5)),
        marks=tuple(marks),
    )


def _points(pairs: list[tuple[float, float]]) -> str:
    return " ".join(f"{_across(x):g},{_up(y):g}" for x, y in pairs)


def _across(cosine: float) -> float:
    return round((cosine - FLOOR) / (1 - FLOOR) * WIDTH, 1)


def _up(share: float) -> float:
    return round((1 - share) * HEIGHT, 1)
