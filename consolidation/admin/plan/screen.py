"""Plans: what one pass proposed, printed and item by item, and what may be done with the whole."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path, reverse

from consolidation import planner, projecting, review, rollout
from consolidation.admin.item.deciding import APPLY, REVIEW, Answer
from consolidation.admin.plan import impact
from consolidation.admin.plan.changes import blocked, changes
from consolidation.admin.plan.planning import MAKE, PlanNow
from consolidation.admin.plan.printing import print_plan
from consolidation.admin.plan.reading import (
    SHOWS,
    Summary,
    WholePlan,
    has_hidden,
    held_back,
    items,
    left_out,
    snapshots,
    summaries,
    undo_listed,
    undo_token,
    unreconciled,
    untouchable,
    visible_plans,
    whole_plan,
)
from consolidation.admin.queue.selecting import Selections, deciding_bar, where_decided
from consolidation.admin.reading import ShownExpired, rows_of, shown_token
from consolidation.admin.rules.policy_questions import open_questions
from consolidation.models import Operation, Plan, Projection
from consolidation.operations import Kind, State, visible
from consolidation.operations import plan as plan_label
from consolidation.probes import Impact, falling_lines, impact_lines
from consolidation.review import bulk
from consolidation.runner import Outcome, Result
from consolidation.tasks import APPLY_PLAN
from observations import outbox
from observations.admin.base import Reach, signed_in
from observations.admin.listing import SIZES, declared, listing, listing_of
from observations.embedding import EmbeddingError
from observations.models import ClockTimestamp

PRINTED: Final = 5_000  # operations of a plan printed on one page; the command prints them all
AT_ONCE: Final = 200  # operations applied while the page waits, more are a worker's; and listed to be undone
LISTED: Final = 200  # operations on a page of what applying would do
HIDDEN: Final = "This plan holds items of scopes you may not see, or not do this in: apply and undo yours one by one."
OPEN_SHOWN: Final = "open"


class PlanScreen(Selections, PlanNow):
    """The list of plans, a plan, and what is done to a whole plan."""

    def extra_urls(self) -> list[URLPattern]:
        """Everything that is posted, and the pages that say first what it will do."""
        return [
            *super().extra_urls(),
            path("<int:pk>/json/", self.guarded(self.json_view), name=self.url_name("json")),
            path("<int:pk>/printed/", self.guarded(self.printed_view), name=self.url_name("printed")),
            path("<int:pk>/apply/", self.guarded(self.apply_view, APPLY), name=self.url_name("apply")),
            path("<int:pk>/undo/", self.guarded(self.undo_view, APPLY), name=self.url_name("undo")),
            path("<int:pk>/decide/", self.guarded(self.decide_view, REVIEW), name=self.url_name("decide")),
            path("<int:pk>/impact/", self.guarded(self.impact_view, REVIEW), name=self.url_name("impact")),
            path("<int:pk>/signoff/", self.guarded(self.sign_off_view, impact.SIGN), name=self.url_name("signoff")),
            path("<int:pk>/explained/", self.guarded(self.explained_view, REVIEW), name=self.url_name("explained")),
        ]

    # --- looking

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """Plans, newest first."""
        reach = Reach.of(request)
        page = listing(visible_plans(reach).order_by("-pk"), data=request.GET, size=50)
        context = {
            "title": "Plans",
            "page": page,
            "plans": summaries(page.rows, reach=reach),
            "targets": self.targets(reach.where(MAKE)) if reach.may(MAKE) else [],
        }
        return self.render(request, "admin/consolidation/plan/change_list.html", context)

    def _visible(self, request: HttpRequest, pk: int) -> tuple[Plan, Reach]:
        reach = Reach.of(request)
        return get_object_or_404(visible_plans(reach), pk=pk), reach

    def page_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """The plan: its counts, its items and its printed form, in a fixed number of queries."""
        plan, reach = self._visible(request, pk)
        user = signed_in(request)
        kind = declared(request=request, name="kind", label="Kind", values=map(str, Kind))
        show = request.GET.get("show", OPEN_SHOWN)
        show = show if show in SHOWS else OPEN_SHOWN
        page = listing(items(plan, reach=reach, show=show, kind=kind.value), data=request.GET)
        opened = frozenset(item.operation_id for item in page.rows if item.opened_at)
        operations = [item.operation for item in page.rows]
        rows = where_decided(rows_of(operations, opened=opened), operations, reach=reach)
        [summary] = summaries([plan], reach=reach)
        context: dict[str, Any] = {
            "title": summary.name,
            "plan": summary,
            "shows": self._shows(summary, show),
            "kind": kind,
            "page": page,
            "rows": rows,
            "token": shown_token(rows=rows, user_id=user.pk),
            **deciding_bar(rows),
            "sizes": SIZES,
            "printed": print_plan(
                plan,
                reach=reach,
                operations=operations,
                explain=show == "skipped",
                skipped=summary.skipped,
            ),
            "changed": changes(operations),
            "blocked": blocked(operations),
            "left_out": left_out(plan, reach=reach),
            "held_back": held_back(plan, reach=reach),
            "untouchable": untouchable(plan, reach=reach),
            "unreconciled": unreconciled(plan, reach=reach),
            **self._impact(plan, reach),
            **self._asked(request, plan),
            "may_sign": reach.may(impact.SIGN),
            "snapshots": snapshots(plan, reach=reach),
            **open_questions(scopes=reach.scopes.filter(pk__in=[int(pk) for pk in plan.policies]), request=request),
            "may_review": reach.may(REVIEW),
            "may_apply": reach.may(APPLY),
        }
        return self.render(request, "admin/consolidation/plan/change_form.html", context)

    def _asked(self, request: HttpRequest, plan: Plan) -> dict[str, Any]:
        """Who confirmed what applying would do and waits for a second person. One query at most."""
        by = rollout.asked(plan=plan)
        return {"asked_by": visible(by), "asked_is_you": review.same_person(signed_in(request).get_username(), by)}

    def _impact(self, plan: Plan, reach: Reach) -> dict[str, Any]:
        """What applying would do to reading: a fall stands first on the page (R112)."""
        found = impact.impacts(plan, reach=reach)
        return {
            "impacts": found,
            "falling": impact.falling(found),
            "unmeasured": impact.unmeasured(plan, reach=reach, found=found),
        }

    def _shows(self, summary: Summary, show: str) -> list[tuple[str, str, int, bool]]:
        counts = {
            "open": summary.open,
            "approved": summary.approved,
            "skipped": summary.skipped,
            "applied": summary.applied,
            "closed": summary.closed,
            "all": summary.total,
        }
        labels = {
            "open": "Open",
            "approved": "Approved",
            "skipped": "Skipped",
            "applied": "Applied",
            "closed": "Closed",
            "all": "All",
        }
        return [(name, labels[name], count, name == show) for name, count in counts.items()]

    def printed_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """The whole printed plan as plain text, skips explained."""
        plan, reach = self._visible(request, pk)
        operations = [item.operation for item in items(plan, reach=reach, show="all")[:PRINTED]]
        text = print_plan(plan, reach=reach, operations=operations, explain=True)
        return HttpResponse(f"{text}\n", content_type="text/plain; charset=utf-8")

    def json_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """The plan as `consolidate plan --json` prints it, of visible scopes; a file to keep."""
        plan, reach = self._visible(request, pk)
        document = planner.plan_json(plan, scopes=None if reach.everything else reach.scopes)
        kept = JsonResponse(document, json_dumps_params={"indent": 2, "ensure_ascii": False})
        kept["Content-Disposition"] = f'attachment; filename="{plan_label(plan.pk)}.json"'
        return kept

    # --- doing

    def _back(self, pk: int) -> HttpResponse:
        return redirect(f"admin:{self.url_name('change')}", pk=pk)

    def apply_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """First what applying would do; then, asked again, doing exactly that."""
        plan, reach = self._visible(request, pk)
        try:
            whole = whole_plan(plan, reach=reach)
        except review.Refused as refusal:
            messages.error(request, str(refusal))
            return self._back(pk)
        context = {"title": f"Apply {plan}", "pk": plan.pk, "plan_name": str(plan), "whole": whole, "hidden": HIDDEN}
        context |= self._impact(plan, reach) | self._asked(request, plan) | _listed(whole, request)
        if request.method != "POST" or whole.hidden:
            return self.render(request, "admin/consolidation/plan/apply.html", context)
        said = ""
        if request.POST.get("shown") != whole.shown:
            said = "What would be applied changed since you looked: read it again, then confirm."
        elif whole.wide and not request.POST.get("confirmed"):
            said = "Tick the box to confirm how much of the memory this touches."
        if said:
            return self.render(request, "admin/consolidation/plan/apply.html", {**context, "refusal": said}, status=409)
        return self._apply(request, plan, whole, confirmed=bool(request.POST.get("confirmed")))

    def _apply(self, request: HttpRequest, plan: Plan, whole: WholePlan, *, confirmed: bool) -> HttpResponse:
        """Apply what was shown and nothing else, now or by a worker."""
        by = signed_in(request).get_username()
        try:
            if whole.total > AT_ONCE:
                return self._hand_over(request, plan, whole, confirmed=confirmed)
            applied = rollout.apply_measured(plan=plan, by=by, confirmed=confirmed, shown=whole.items)
        except rollout.SecondWanted as waits:
            messages.warning(request, str(waits))
            return self._back(plan.pk)
        except review.Refused as refusal:
            messages.error(request, str(refusal))
            return self._back(plan.pk)
        return self._answered(
            request, plan, applied.results, title=f"{plan} applied", told=applied.impact if whole.total else None
        )

    def _hand_over(self, request: HttpRequest, plan: Plan, whole: WholePlan, *, confirmed: bool) -> HttpResponse:
        """Another set that is confirmed later is other work: its row has another key. Raises review.Refused."""
        by = signed_in(request).get_username()
        payload: dict[str, int | str] = {"plan": plan.pk, "by": by, "confirmed": int(confirmed)}
        payload |= {"shown": rollout.packed(whole.items)}
        payload |= {"agreed": agreed} if (agreed := rollout.agree(plan=plan, by=by, shown=whole.items)) else {}
        with transaction.atomic():
            key = f"{plan_label(plan.pk)} {whole.shown[:16]}"
            outbox.enqueue(task=APPLY_PLAN, scope_id=None, key=key, payload=payload)
        messages.success(request, f"A worker applies {whole.total:,} operations now. Reload to see how far it is.")
        return self._back(plan.pk)

    def undo_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Undo what the page listed of what the plan applied, the last first; a result per item."""
        plan, reach = self._visible(request, pk)
        hidden = has_hidden(plan, reach=reach)
        applied = Operation.objects.filter(plan_items__plan=plan, status=State.APPLIED, scope__in=reach.scopes)
        user, refusal = signed_in(request), ""
        if request.method == "POST" and not hidden:
            try:
                listed = undo_listed(plan=plan.pk, token=request.POST.get("shown", ""), user_id=user.pk)
            except ShownExpired as expired:
                refusal = str(expired)
            else:
                results = rollout.undo_plan(plan=plan, by=user.get_username(), shown=listed)
                return self._answered(request, plan, results, title=f"{plan} undone")
        operations = list(applied.select_related("scope").order_by("-applied_at", "-pk")[:AT_ONCE])
        context = {
            "title": f"Undo {plan}",
            "pk": plan.pk,
            "plan_name": str(plan),
            "rows": rows_of(operations),
            "token": undo_token(plan=plan.pk, operations=operations, user_id=user.pk),
            "more": applied.count() - len(operations),
            "hidden": HIDDEN if hidden else "",
            "refusal": refusal,
        }
        return self.render(request, "admin/consolidation/plan/undo.html", context, status=409 if refusal else 200)

    def _answered(
        self, request: HttpRequest, plan: Plan, results: list[Result], *, title: str, told: Impact | None = None
    ) -> HttpResponse:
        ids = dict(Operation.objects.filter(plan_items__plan=plan).order_by("generation").values_list("op_id", "pk"))
        good = (Outcome.APPLIED, Outcome.UNDONE)
        answers = [
            Answer(
                pk=ids.get(result.operation, 0),
                op_id=result.operation,
                done=result.outcome in good,
                sentence=result.sentence,
            )
            for result in results
            if result.outcome != Outcome.ALREADY
        ]
        return self._answers(request, answers, plan, title, told=told)

    def _answers(
        self, request: HttpRequest, answers: list[Answer], plan: Plan, title: str, *, told: Impact | None = None
    ) -> HttpResponse:
        return self.answered(
            request,
            answers=answers,
            back=reverse(f"admin:{self.url_name('change')}", args=[plan.pk]),
            title=title,
            falling=falling_lines(told) if told else [],
            numbers=impact_lines(told) if told else [],
            skips=rollout.skip_reasons(plan=plan, scopes=Reach.of(request).scopes) if told else [],
        )

    def decide_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """What was selected here is decided as a selection of the queue is; all open items are rejected once they were
        listed.
        """
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        plan, reach = self._visible(request, pk)
        back = reverse(f"admin:{self.url_name('change')}", args=[pk])
        if request.POST.get("verb") == "reject_all":
            every = items(plan, reach=reach, show=OPEN_SHOWN).values_list("operation_id", flat=True)
            return self.confirmed_first(
                request, verb=bulk.Verb.REJECT, shown=dict.fromkeys(every, ""), back=back, plan=pk
            )
        among = Operation.objects.filter(plan_items__plan=plan)
        return self.decide_shown(request, among=among, back=back, plan=pk)

    def impact_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Measure what applying would do, at once where that is quick, else by a worker."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        plan, reach = self._visible(request, pk)
        scopes = list(reach.scopes.filter(operations__plan_items__plan=plan).distinct())
        by = signed_in(request).get_username()
        if (asked := impact.questions(scopes=scopes)) > impact.AT_ONCE:
            with transaction.atomic():
                payload: dict[str, int | str] = {"plan": plan.pk, "by": by}
                outbox.enqueue(task=planner.PROJECT, scope_id=None, key=plan_label(plan.pk), payload=payload)
            messages.success(request, f"A worker asks {asked:,} questions now. Reload to see what came of it.")
            return self._back(pk)
        try:
            projecting.project(plan=plan, by=by, scopes=scopes)
        except (review.Refused, EmbeddingError) as refusal:
            messages.error(request, str(refusal))
        return self._back(pk)

    def sign_off_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """A person saw that recall would fall, and lets it be applied unattended all the same."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        plan, reach = self._visible(request, pk)
        number = request.POST.get("projection", "")
        rows = Projection.objects.filter(plan=plan, scope__in=reach.scopes)
        row = get_object_or_404(rows, pk=int(number) if number.isascii() and number.isdigit() else 0)
        try:
            projecting.sign_off(
                projection=row, by=signed_in(request).get_username(), reason=request.POST.get("reason", "")
            )
        except review.Refused as refusal:
            messages.error(request, str(refusal))
        return self._back(pk)

    def explained_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Somebody has read the skips; the first time counts."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        plan, _ = self._visible(request, pk)
        Plan.objects.filter(Q(pk=plan.pk), explained_at=None).update(explained_at=ClockTimestamp())
        messages.success(request, f"Noted: the skips of {plan} were read.")
        return self._back(pk)


def _listed(whole: WholePlan, request: HttpRequest) -> dict[str, Any]:
    """A page of what applying would do, item by item. Two queries."""
    page = listing_of(whole.operations, data=request.GET, size=LISTED)
    return {"page": page, "rows": rows_of(page.rows)}
