"""Events: who did what, when. Append-only; ids and figures, never memory text."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse

from consolidation.admin.telling import Happened, happened
from consolidation.operations import visible
from observations.admin.base import Reach, Screen
from observations.admin.listing import declared, listing, scope_filter
from observations.models import Event

ACTIONS = (
    *("approved", "rejected", "distinct", "applied", "undone", "stale", "failed", "erased"),
    *("planned", "paused", "resumed", "unattended_override", "key_withdrawn", "requested", "held", "released"),
    *("observed", "intake_on", "intake_off", "intake_asked", "intake_run", "residue_on", "residue_off", "residue held"),
    *("remembered", "supported", "corrected", "retired", "restored", "proposed", "asked to forget"),
    *("core created", "core append", "core replace", "core rethink", "core undone", "core set"),
    *("held_released", "held_discarded", "held_again"),
    *("judged", "band_demoted", "demotion_lifted"),
    *("token_created", "token_revoked"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One event in the list."""

    event: Happened
    subject: str
    page: str  # the name of the page the subject has; empty: it has none
    key: str  # what that page is addressed by
    scope: str


class EventScreen(Screen):
    """The list; an event has no page of its own, it is one line."""

    has_page = False

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """Events, newest first."""
        reach = Reach.of(request)
        filters = (
            declared(request=request, name="action", label="Action", values=ACTIONS),
            scope_filter(request=request, reach=reach),
        )
        action, scope = (chosen.value for chosen in filters)
        found = self._found(reach, action, scope).select_related("scope").order_by("-pk")
        page = listing(found, data=request.GET)
        context = {"title": "Events", "page": page, "rows": [_row(row) for row in page.rows], "filters": filters}
        return self.render(request, "admin/observations/event/change_list.html", context)

    def _found(self, reach: Reach, action: str, scope: str) -> QuerySet[Event]:
        """Visible events; those of no scope only for people who see every scope."""
        mine = Q(scope__in=reach.scopes)
        found = Event.objects.filter(mine | Q(scope=None) if reach.everything else mine)
        found = found.filter(action=action) if action else found
        return found.filter(scope_id=int(scope)) if scope else found


def _row(row: Event) -> Row:
    page, key = _address(row)
    return Row(
        event=happened(row),
        subject="the scope" if row.subject == str(row.scope_id) else visible(row.subject),
        page=page,
        key=key,
        scope=visible(row.scope.name) if row.scope else "" if row.subject.startswith("token:") else "everything",
    )


def _address(row: Event) -> tuple[str, str]:
    """Where a subject can be looked at."""
    kind, _, number = row.subject.partition("_")
    if kind == "op":
        return (
            "admin:consolidation_operation_named",
            f"{row.subject}#{row.generation}" if row.generation else row.subject,
        )
    pages = {
        "plan": "admin:consolidation_plan_change",
        "obs": "admin:observations_observation_change",
        "core": "admin:observations_corememory_change",
    }
    return (pages[kind], number) if kind in pages and number.isascii() and number.isdigit() else ("", "")
