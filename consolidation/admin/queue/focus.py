"""The focus view: one item, one question, answered by a key; the answer brings the next item with it.

A decision is one POST. It answers with JSON to the page's script, and with a page to a form sent without one. What is
refused advances nothing: 409 when the item moved, 422 when something is missing, 403 when it is not allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect, JsonResponse, QueryDict
from django.middleware.csrf import get_token
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import URLPattern, path, reverse

from consolidation import review
from consolidation.admin.item.deciding import NOT_THERE, REVIEW, Asked, Verb, asked, carry_out, done_by_the_same
from consolidation.admin.queue.focus_acts import DEFERRALS, reason_given
from consolidation.admin.queue.focus_next import Desk, Seat, plant, step
from consolidation.admin.queue.focus_reading import refuse_unread, refuse_unread_drill
from consolidation.admin.queue.focus_tokens import Named, named
from consolidation.admin.reading import ShownExpired
from consolidation.models import Drill, Operation
from consolidation.review import drills
from observations.admin.base import Reach, Screen, signed_in
from observations.models import database_now

CARD: Final = "admin/consolidation/operation/focus_card.html"
SIDE: Final = "admin/consolidation/operation/focus_side.html"
PAGE: Final = "admin/consolidation/operation/focus.html"
LOST, LACKING, DENIED, GONE = 409, 422, 403, 404
_DECIDED: Final = (Verb.APPROVE, Verb.REJECT, Verb.DISTINCT)
_DEFER: Final = "defer"
_MAY_NOT: Final = "Your account may read this, not decide it."


class Lacking(Exception):
    """What was posted does not say what to do; the text says what is missing."""


class FocusPages(Screen):
    """Deciding one item after the other."""

    def extra_urls(self) -> list[URLPattern]:
        """The view, what it posts to, and the way from a card to the item's own pages."""
        pages: tuple[tuple[str, Callable[..., HttpResponse], str], ...] = (
            ("focus/", self.focus_view, "focus"),
            ("focus/decide/", self.focus_decide_view, "focus_decide"),
            ("focus/undo/", self.focus_undo_view, "focus_undo"),
            ("focus/open/", self.focus_open_view, "focus_open"),
        )
        mine = [path(route, self.guarded(view), name=self.url_name(name)) for route, view, name in pages]
        return [*mine, *super().extra_urls()]

    # --- looking ----------------------------------------------------------------------------------------------------

    def focus_view(self, request: HttpRequest) -> HttpResponse:
        """The item that awaits this reviewer, or the one after or before another. 25 queries at most."""
        if not Reach.of(request).may(REVIEW):
            return _refused(request, _MAY_NOT, DENIED)
        given = next((request.GET[way] for way in ("at", "before", "after") if way in request.GET), "")
        try:
            at = named(token=given, user_id=signed_in(request).pk) if given else None
        except ShownExpired:
            at = None
        desk = step(Seat.of(request), at=at, back="before" in request.GET, stay="at" in request.GET)
        return self._shown(request, desk)

    def focus_open_view(self, request: HttpRequest) -> HttpResponse:
        """From a card to the page of its item, or to its edit. A drill has neither: it is told, and passed; so this is
        a POST, which may write.
        """
        if not Reach.of(request).may(REVIEW):
            return _refused(request, _MAY_NOT, DENIED)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        back = redirect(f"admin:{self.url_name('focus')}")
        try:
            item = named(token=request.POST.get("item", ""), user_id=signed_in(request).pk)
        except ShownExpired as expired:
            messages.error(request, str(expired))
            return back
        if item.drill:
            drill = Drill.objects.filter(pk=item.pk, by=signed_in(request).get_username()).first()
            if drill is not None:
                messages.info(request, drills.verdict_of(drills.answer(drill=drill, by=drill.by, verb=_DEFER)))
            return back
        page = "edit" if request.POST.get("verb") == "edit" else "change"
        return redirect(f"admin:{self.url_name(page)}", pk=item.pk)

    def _shown(
        self, request: HttpRequest, desk: Desk, *, sentence: str = "", refusal: str = "", status: int = 200
    ) -> HttpResponse:
        context = {**desk.context(), "deferrals": DEFERRALS, "refusal": refusal, "csrf_token": get_token(request)}
        if not _scripted(request):
            whole = {"title": "Review", "focus": True, "given_reason": request.POST.get("reason", ""), **context}
            return self.render(request, PAGE, whole, status=status)
        parts = {"card": render_to_string(CARD, context), "side": render_to_string(SIDE, context)}
        return JsonResponse({"sentence": sentence, **parts}, status=status)

    # --- deciding ---------------------------------------------------------------------------------------------------

    def focus_decide_view(self, request: HttpRequest) -> HttpResponse:
        """One decision about what the form showed, and the next item. Forty queries at most."""

        def decided(item: Named, operation: Operation | None) -> str:
            verb, _, choice = request.POST.get("verb", "").partition("|")
            if operation is None:
                return _drilled(request, item, verb)
            return _carried_out(request, operation, verb, choice)

        return self._answered(request, decided, advance=True)

    def focus_undo_view(self, request: HttpRequest) -> HttpResponse:
        """Takes one decision, or one putting off, back, and shows its item again."""

        def undone(item: Named, operation: Operation | None) -> str:
            if operation is None:
                raise Operation.DoesNotExist
            by = signed_in(request).get_username()
            if operation.status in review.DECIDABLE and review.call_back(operation=operation, by=by):
                return f"{operation.op_id} is back in your queue."
            review.reopen(operation=operation, by=by)
            return f"{operation.op_id} is open again: the decision was taken back."

        return self._answered(request, undone, advance=False)

    def _answered(
        self, request: HttpRequest, act: Callable[[Named, Operation | None], str], *, advance: bool
    ) -> HttpResponse:
        if request.method != "POST":
            if Reach.of(request).may(REVIEW):
                return HttpResponseNotAllowed(["POST"])
            return _refused(request, _MAY_NOT, DENIED)
        if not Reach.of(request).may(REVIEW):
            return _refused(request, _MAY_NOT, DENIED)
        seat = Seat.of(request)
        try:
            item = named(token=request.POST.get("item", ""), user_id=seat.user_id)
            operation = None if item.drill else seat.operation(item.pk)
            sentence = act(item, operation)
        except (review.AlreadyDecided, review.Changed, ShownExpired) as moved:
            return self._stays(request, str(moved), LOST)
        except (review.Refused, Lacking) as lacking:
            return self._stays(request, str(lacking), LACKING)
        except Operation.DoesNotExist:
            return self._stays(request, f"This item {NOT_THERE}.", GONE)
        if item.passed and advance:
            drills.passed(pk=item.passed, by=seat.by)
        if not _scripted(request):
            messages.success(request, sentence)
            if advance:
                plant(seat)
            return self._on(request, item, advance=advance)
        desk = step(seat, at=item, passed=operation if advance else None, stay=not advance, plant=advance)
        return self._shown(request, desk, sentence=sentence)

    def _on(self, request: HttpRequest, item: Named, *, advance: bool) -> HttpResponseRedirect:
        """Back to the view by a form sent without the page's script: to the next item, or to the same one."""
        given = QueryDict(mutable=True)
        given.update({**request.GET.dict(), "after" if advance else "at": request.POST.get("item", "")})
        here = reverse(f"admin:{self.url_name('focus')}")
        return HttpResponseRedirect(f"{here}?{given.urlencode()}")

    def _stays(self, request: HttpRequest, sentence: str, status: int) -> HttpResponse:
        """Nothing was done: the script shows the sentence on the item it has; without it the page comes again."""
        if _scripted(request):
            return JsonResponse({"sentence": sentence}, status=status)
        try:
            item = named(token=request.POST.get("item", ""), user_id=signed_in(request).pk)
        except ShownExpired:
            item = None
        desk = step(Seat.of(request), at=item, stay=True)
        return self._shown(request, desk, refusal=sentence, status=status)


# --- one answer -------------------------------------------------------------------------------------------------------


def _scripted(request: HttpRequest) -> bool:
    """Whether the page's script asks, not a form."""
    return request.headers.get("accept", "").startswith("application/json")


def _refused(request: HttpRequest, sentence: str, status: int) -> HttpResponse:
    """Not for this person. Raises PermissionDenied where no script asks, which is Django's own page."""
    if _scripted(request):
        return JsonResponse({"sentence": sentence}, status=status)
    raise PermissionDenied(sentence)


def _drilled(request: HttpRequest, item: Named, verb: str) -> str:
    """What the reviewer hears; a no needs its reason here too, for nothing may tell a drill from an item."""
    drill = Drill.objects.select_related("low", "high").filter(pk=item.pk).first()
    if drill is None or verb not in (*_DECIDED, _DEFER):
        raise Lacking("Choose what to do with it.")
    if verb == Verb.REJECT and not (request.POST.get("reason", "").strip() or request.POST.get("preset_reject")):
        raise Lacking("A rejection needs a reason: say why in one line.")
    by = signed_in(request).get_username()
    if verb == Verb.APPROVE and drill.by == by:
        refuse_unread_drill(drill=drill)  # nor is it counted as missed
    return drills.verdict_of(drills.answer(drill=drill, by=by, verb=verb))


def _carried_out(request: HttpRequest, operation: Operation, verb: str, choice: str) -> str:
    """Raises review.Refused, or Lacking."""
    by = signed_in(request).get_username()
    if verb == _DEFER:
        return _put_off(request, operation, by)
    if verb not in _DECIDED:
        raise Lacking("Choose what to do with it: approve, reject, different claims, or later.")
    wanted = _asked(request, operation, verb, choice)
    if verb == Verb.APPROVE:
        refuse_unread(operation=operation)
    try:
        return carry_out(request=wanted, operation=operation, by=by)
    except review.Refused:
        if done_by_the_same(request=wanted, operation=operation, by=by):
            return f"{operation.op_id}: you did that already."
        raise


def _asked(request: HttpRequest, operation: Operation, verb: str, choice: str) -> Asked:
    """The decision that the item's own form would ask for. Raises review.Refused."""
    data = request.POST.copy()
    data["verb"], data["choice"] = verb, choice
    data["reason"] = reason_given(
        operation=operation,
        verb=verb,
        preset=data.get(f"preset_{verb}", ""),
        text=data.get("reason", "").replace("\0", ""),
    )
    return asked(data=data, operation=operation)


def _put_off(request: HttpRequest, operation: Operation, by: str) -> str:
    offered = {str(days): words for days, words in DEFERRALS}
    chosen = request.POST.get("days") or str(DEFERRALS[0][0])
    if chosen not in offered:
        raise Lacking("Choose for how long: a day, three days, a week or 30 days.")
    review.defer(operation=operation, by=by, until=database_now() + timedelta(days=int(chosen)))
    return f"{operation.op_id} is put off for {offered[chosen]}. It stays in everybody else's queue."
