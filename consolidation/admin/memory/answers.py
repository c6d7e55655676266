"""Answers: what agents were told in the last 90 days, each row as it stood then and as it stands now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from consolidation.admin.history.answers import AnswerPages
from consolidation.admin.history.moments import Stood, stood
from consolidation.admin.reading import Chip
from consolidation.admin.telling import status_chip
from consolidation.admin.texts import snippet, when
from consolidation.operations import ep, obs, visible
from observations import answers
from observations.admin.base import Reach, Screen
from observations.admin.listing import declared, listing, scope_filter
from observations.models import Episode, GivenAnswer, Observation, database_now
from observations.retrieval import CALL_SITES

DAYS: Final = (1, 7, 90)
LONGEST: Final = 400  # characters of a row's text


@dataclass(frozen=True, slots=True)
class Row:
    """One answer in the list."""

    pk: int
    name: str  # its id
    at: str
    iso: str
    scope: str
    call_site: str
    shown: int
    left_out: int
    outdated: int
    failed: tuple[str, ...]
    chosen_by: str  # empty: the rule


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of an answer, as it stood when it was given and as it stands now."""

    pk: int
    name: str
    episode: bool
    text: str
    status: Chip
    then: Chip
    moved: bool  # it stands otherwise now
    successor: int | None  # what stands in its place now
    outdated: bool


class GivenAnswerScreen(AnswerPages, Screen):
    """The list, and one answer."""

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """Answers of visible scopes, the newest first."""
        reach, asked = Reach.of(request), request.GET.get("show", "")
        days = int(asked) if asked in map(str, DAYS) else DAYS[-1]
        chosen = scope_filter(request=request, reach=reach)
        site = declared(request=request, name="site", label="Asked by", values=CALL_SITES)
        found = GivenAnswer.objects.filter(scope__in=reach.scopes, at__gte=database_now() - timedelta(days=days))
        found = found.filter(scope_id=int(chosen.value)) if chosen.value else found
        found = found.filter(call_site=site.value) if site.value else found
        page = listing(found.select_related("scope").order_by("-at", "-pk"), data=request.GET)
        context = {
            "title": "Answers",
            "page": page,
            "rows": [_row(row) for row in page.rows],
            "filters": (chosen, site),
            "tabs": [(number, number == days) for number in DAYS],
            "show": days,
        }
        return self.render(request, "admin/observations/givenanswer/change_list.html", context)

    def page_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """One answer: what was shown, in its order, and what was found and left out."""
        found = Reach.of(request).rows(GivenAnswer.objects.select_related("scope"))
        row = get_object_or_404(found, pk=pk)
        entries = answers.entries_of(row)
        then = _then(row, entries)
        context = {
            "title": "Answer",
            "row": _row(row),
            "shown": [_entry(each, then) for each in entries if each.shown],
            "left_out": [_entry(each, then) for each in entries if not each.shown],
            "gone": len(row.shown) + len(row.left_out) - len(entries),
        }
        return self.render(request, "admin/observations/givenanswer/change_form.html", context)


def _row(row: GivenAnswer) -> Row:
    return Row(
        pk=row.pk,
        name=str(row.answer),
        at=when(row.at),
        iso=row.at.isoformat(),
        scope=visible(row.scope.name),
        call_site=visible(row.call_site),
        shown=len(row.shown),
        left_out=len(row.left_out),
        outdated=len(row.outdated),
        failed=tuple(visible(part) for part in row.failed),
        chosen_by=visible(row.chosen_by),
    )


def _then(row: GivenAnswer, entries: Sequence[answers.Entry]) -> dict[tuple[bool, int], tuple[Stood, int | None]]:
    """How each row of an answer stood when it was given, and what stands in its place now. Three queries."""
    claims = Observation.objects.filter(scope=row.scope_id, pk__in=[each.id for each in entries if not each.episode])
    turns = Episode.objects.filter(scope=row.scope_id, pk__in=[each.id for each in entries if each.episode])
    known = list(claims.defer("text"))
    of_claims, of_turns = stood(
        scope_id=row.scope_id, observations=known, episodes=list(turns.defer("text")), at=row.at
    )
    now = {each.pk: each.superseded_by_id for each in known}
    return {(False, pk): (then, now.get(pk)) for pk, then in of_claims.items()} | {
        (True, pk): (then, None) for pk, then in of_turns.items()
    }


def _entry(entry: answers.Entry, standing: Mapping[tuple[bool, int], tuple[Stood, int | None]]) -> Entry:
    then, successor = standing[entry.episode, entry.id]
    return Entry(
        pk=entry.id,
        name=ep(entry.id) if entry.episode else obs(entry.id),
        episode=entry.episode,
        text=snippet(entry.text, limit=LONGEST),
        status=status_chip(entry.status),
        then=then.chip,
        moved=then.status != entry.status,
        successor=successor,
        outdated=entry.outdated,
    )
