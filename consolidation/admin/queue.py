"""The review queue: what waits for a person first, what is approved, what went stale, what was decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.db.models import Case, IntegerField, QuerySet, Value, When
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse

from consolidation.admin.deciding import APPLY, PERMISSIONS, REVIEW, Verb, decide_many
from consolidation.admin.reading import Row, ShownExpired, rows_of, shown_digests, shown_token
from consolidation.admin.trash import read_trash, thrown_away
from consolidation.models import Operation, OperationQuerySet
from consolidation.operations import Approval, Kind, State
from consolidation.review import REASON_REQUIRED
from observations.admin.base import Reach, Screen, require, signed_in
from observations.admin.listing import SIZES, Filter, declared, listing, scope_filter
from observations.models import database_now

if TYPE_CHECKING:
    from django.http import QueryDict

TAB_COUNTED: Final = 1_000
SELECTION: Final = (Verb.APPROVE, Verb.REJECT, Verb.DISTINCT)  # what may be decided for a selection


@dataclass(frozen=True, slots=True)
class Tab:
    """One part of the queue."""

    name: str
    label: str
    empty: str  # what an empty list means


TABS: Final = (
    Tab("waiting", "Needs a person", "Nothing waits for you here."),
    Tab("approved", "Approved, not applied", "Everything that was approved has been applied."),
    Tab("automatic", "Automatic", "No automatic operation waits for its plan to be applied."),
    Tab("trouble", "Stale or failed", "Nothing went stale and nothing failed."),
    Tab("skipped", "Skipped", "No rule refused anything."),
    Tab("decided", "Decided", "Nothing has been decided yet."),
)


@dataclass(frozen=True, slots=True)
class TabCount:
    """A tab with how much is in it."""

    tab: Tab
    count: str
    chosen: bool


def part(name: str, operations: OperationQuerySet) -> OperationQuerySet:
    """The operations of one tab."""
    match name:
        case "approved":
            return operations.approved_not_applied()
        case "automatic":
            return operations.filter(status=State.PLANNED)
        case "trouble":
            return operations.filter(status__in=[State.STALE, State.FAILED])
        case "skipped":
            return operations.filter(status=State.SKIPPED, approval=Approval.NEVER)
        case "decided":
            return operations.filter(status__in=[State.APPLIED, State.REJECTED, State.DISTINCT, State.UNDONE])
        case _:
            return operations.awaiting_review()


def ordered(operations: QuerySet[Operation]) -> QuerySet[Operation]:
    """Newest first, and what needs a person before what was skipped for one."""
    waits = Case(When(status=State.NEEDS_HUMAN, then=Value(0)), default=Value(1), output_field=IntegerField())
    return operations.order_by(waits, "-pk")


class QueueScreen(Screen):
    """The list of operations and what may be decided for a selection of them."""

    def extra_urls(self) -> list[URLPattern]:
        """Where a selection is posted to, and the trash."""
        return [
            path("decide/", self.guarded(self.decide_view, REVIEW), name=self.url_name("decide")),
            path("trash/", self.guarded(self.trash_view), name=self.url_name("trash")),
        ]

    def trash_view(self, request: HttpRequest) -> HttpResponse:
        """What prunes took out of the reads and is not erased yet, in a fixed number of queries."""
        reach = Reach.of(request)
        chosen = scope_filter(request=request, reach=reach)
        page = listing(thrown_away(reach, scope=chosen.value), data=request.GET, size=50)
        context = {
            "title": "Trash",
            "trash": True,
            "page": page,
            "rows": read_trash(page.rows, now=database_now()),
            "filters": (chosen,),
            "may_apply": signed_in(request).has_perm(APPLY),
        }
        return self.render(request, "admin/consolidation/operation/trash.html", context)

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """The queue. Fourteen queries at most, whatever it holds."""
        reach = Reach.of(request)
        filters = self._filters(request, reach)
        kind, state, scope = (chosen.value for chosen in filters)
        mine = self._narrowed(reach, kind, scope)
        show = "" if state else self._tab(request)
        found = mine.filter(status=state) if state else part(show, mine)
        page = listing(ordered(found.select_related("scope")), data=request.GET)
        rows = rows_of(page.rows)
        user = signed_in(request)
        context: dict[str, Any] = {
            "title": "Review queue",
            "tabs": self._tabs(mine, show),
            "show": show,
            "sizes": SIZES,
            "empty": next((tab.empty for tab in TABS if tab.name == show), "Nothing matches."),
            "filters": filters,
            "page": page,
            "rows": rows,
            "token": shown_token(rows=rows, user_id=user.pk),
            **deciding_bar(rows),
            "may_review": user.has_perm(REVIEW) and any(row.decidable for row in rows),
            "may_apply": user.has_perm(APPLY),
            "here": request.get_full_path(),
        }
        return self.render(request, "admin/consolidation/operation/change_list.html", context)

    def _filters(self, request: HttpRequest, reach: Reach) -> tuple[Filter, Filter, Filter]:
        return (
            declared(request=request, name="kind", label="Kind", values=map(str, Kind)),
            declared(request=request, name="state", label="State", values=map(str, State)),
            scope_filter(request=request, reach=reach),
        )

    def _tab(self, request: HttpRequest) -> str:
        asked = request.GET.get("show", "")
        return asked if asked in {tab.name for tab in TABS} else TABS[0].name

    def _narrowed(self, reach: Reach, kind: str, scope: str) -> OperationQuerySet:
        mine = Operation.objects.filter(scope__in=reach.scopes)
        mine = mine.filter(kind=kind) if kind else mine
        return mine.filter(scope_id=int(scope)) if scope else mine

    def _tabs(self, mine: OperationQuerySet, show: str) -> list[TabCount]:
        """Each tab with its count, which stops at TAB_COUNTED. A query per tab."""
        counted = []
        for tab in TABS:
            count = part(tab.name, mine).order_by()[: TAB_COUNTED + 1].count()
            shown = f"{TAB_COUNTED:,}+" if count > TAB_COUNTED else f"{count:,}"
            counted.append(TabCount(tab=tab, count=shown, chosen=tab.name == show))
        return counted

    def decide_view(self, request: HttpRequest) -> HttpResponse:
        """One decision for a selection: only what the page showed, each checked against what it showed."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        verb = request.POST.get("verb", "")
        if verb not in SELECTION:
            return HttpResponseBadRequest("Choose approve, reject or distinct.")
        require(request, *PERMISSIONS[Verb(verb)])
        user = signed_in(request)
        back = reverse(f"admin:{self.url_name('changelist')}")
        try:
            shown = shown_digests(token=request.POST.get("shown", ""), user_id=user.pk)
        except ShownExpired as expired:
            messages.error(request, str(expired))
            return redirect(back)
        chosen = picked(request.POST, shown)
        if not chosen:
            messages.warning(request, "Nothing was selected.")
            return redirect(back)
        answers = decide_many(
            verb=Verb(verb),
            shown=chosen,
            reach=Reach.of(request),
            by=user.get_username(),
            reason=request.POST.get("reason", "").replace("\0", "")[:500],
        )
        return self.answered(request, answers=answers, back=back)

    def answered(self, request: HttpRequest, *, answers: list[Any], back: str) -> HttpResponse:
        """What became of each operation of a selection."""
        context = {
            "title": "What became of your selection",
            "done": [answer for answer in answers if answer.done],
            "refused": [answer for answer in answers if not answer.done],
            "back": back,
        }
        return self.render(request, "admin/consolidation/operation/answers.html", context)


def deciding_bar(rows: Sequence[Row]) -> dict[str, object]:
    """What the bar that decides a selection says of the rows it stands under. No query."""
    shown = {row.kind for row in rows if row.decidable}
    reasoned = [kind.value for kind in REASON_REQUIRED if kind in shown]
    return {
        "decidable": sum(row.decidable for row in rows),
        "differs": any(row.differs for row in rows),
        "reasoned": " and ".join([", ".join(reasoned[:-1]), reasoned[-1]] if len(reasoned) > 1 else reasoned),
    }


def picked(data: QueryDict, shown: dict[int, str]) -> dict[int, str]:
    """The rows of a page that were picked, or all that it showed; an id that it did not show is ignored (D2)."""
    if data.get("all"):
        return shown
    wanted = {int(pk) for pk in data.getlist("pick") if pk.isascii() and pk.isdigit() and len(pk) < 19}
    return {pk: digest for pk, digest in shown.items() if pk in wanted}
