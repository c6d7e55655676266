"""Plans: what one pass proposed, printed and item by item, and what may be done with the whole."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path, reverse

from consolidation import planner, review, rollout
from consolidation.admin.deciding import APPLY, REVIEW, Answer, Verb, decide_many, open_operations
from consolidation.admin.plan_reading import (
    SHOWS,
    Summary,
    has_hidden,
    held_back,
    items,
    left_out,
    snapshots,
    summaries,
    untouchable,
    visible_plans,
    whole_plan,
)
from consolidation.admin.policy_questions import open_questions
from consolidation.admin.printing import print_plan
from consolidation.admin.queue import deciding_bar, picked
from consolidation.admin.reading import ShownExpired, rows_of, shown_digests, shown_token
from consolidation.models import Operation, Plan
from consolidation.operations import Kind, State
from consolidation.operations import plan as plan_label
from consolidation.probes import Impact, falling_lines, impact_lines
from consolidation.runner import Outcome, Result
from consolidation.tasks import APPLY_PLAN
from observations import outbox
from observations.admin.base import Reach, Screen, signed_in
from observations.admin.listing import SIZES, Choice, declared, listing
from observations.models import ClockTimestamp, Scope

MAKE: Final = "consolidation.make_plan"
PRINTED: Final = 5_000  # operations of a plan printed on one page; the command prints them all
AT_ONCE: Final = 200  # operations applied while the page waits; more are a worker's
ADMIN: Final = "admin"  # Plan.trigger
HIDDEN: Final = "This plan holds items of scopes you may not see: apply and undo yours one by one."
OPEN_SHOWN: Final = "open"


class PlanScreen(Screen):
    """The list of plans, a plan, and what is done to a whole plan."""

    def extra_urls(self) -> list[URLPattern]:
        """Everything that is posted, and the pages that say first what it will do."""
        return [
            path("new/", self.guarded(self.new_view, MAKE), name=self.url_name("new")),
            path("<int:pk>/printed/", self.guarded(self.printed_view), name=self.url_name("printed")),
            path("<int:pk>/apply/", self.guarded(self.apply_view, APPLY), name=self.url_name("apply")),
            path("<int:pk>/undo/", self.guarded(self.undo_view, APPLY), name=self.url_name("undo")),
            path("<int:pk>/decide/", self.guarded(self.decide_view, REVIEW), name=self.url_name("decide")),
            path("<int:pk>/explained/", self.guarded(self.explained_view, REVIEW), name=self.url_name("explained")),
        ]

    # --- looking

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """Plans, newest first."""
        reach = Reach.of(request)
        page = listing(visible_plans(reach).order_by("-pk"), data=request.GET, size=50)
        may_plan = signed_in(request).has_perm(MAKE)
        context = {
            "title": "Plans",
            "page": page,
            "plans": summaries(page.rows, reach=reach),
            "targets": self._targets(reach) if may_plan else [],
        }
        return self.render(request, "admin/consolidation/plan/change_list.html", context)

    def _targets(self, reach: Reach) -> list[Choice]:
        """What "Plan now" may be asked for: whole patterns first, then single scopes. One query."""
        patterns = [
            Choice(value=f"pattern:{pattern}", label="every scope" if pattern == "*" else pattern, chosen=False)
            for pattern in reach.patterns
        ]
        scopes = reach.scopes.order_by("name").values_list("pk", "name")[:200]
        return patterns + [Choice(value=f"scope:{pk}", label=name, chosen=False) for pk, name in scopes]

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
        rows = rows_of([item.operation for item in page.rows], opened=opened)
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
                operations=[item.operation for item in page.rows],
                explain=show == "skipped",
                skipped=summary.skipped,
            ),
            "left_out": left_out(plan, reach=reach),
            "held_back": held_back(plan, reach=reach),
            "untouchable": untouchable(plan, reach=reach),
            "snapshots": snapshots(plan, reach=reach),
            **open_questions(scopes=reach.scopes.filter(pk__in=[int(pk) for pk in plan.policies]), request=request),
            "may_review": user.has_perm(REVIEW),
            "may_apply": user.has_perm(APPLY),
        }
        return self.render(request, "admin/consolidation/plan/change_form.html", context)

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

    # --- doing

    def _back(self, pk: int) -> HttpResponse:
        return redirect(f"admin:{self.url_name('change')}", pk=pk)

    def new_view(self, request: HttpRequest) -> HttpResponse:
        """Plan now: a dry run that proposes and changes no memory (C12)."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        reach = Reach.of(request)
        scopes, pattern = self._target(request.POST.get("target", ""), reach)
        back = redirect(f"admin:{self.url_name('changelist')}")
        if not scopes:
            messages.error(
                request, "There is no such scope with memory in it that you may see: choose one of the list."
            )
            return back
        try:
            plan = planner.plan(scopes=scopes, pattern=pattern, by=signed_in(request).get_username(), trigger=ADMIN)
        except review.Refused as refusal:
            messages.error(request, str(refusal))
            return back
        messages.success(request, f"{plan} is ready. Nothing has been changed.")
        return self._back(plan.pk)

    def _target(self, target: str, reach: Reach) -> tuple[list[Scope], str]:
        what, _, value = target.partition(":")
        if what == "pattern" and value in reach.patterns:
            return list(reach.scopes.filter(pk__in=Scope.objects.matching(value))), value
        if what == "scope" and value.isascii() and value.isdigit() and len(value) < 19:
            scopes = list(reach.scopes.filter(pk=int(value)))
            return scopes, scopes[0].name if scopes else ""
        return [], ""

    def apply_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """First what applying would do; then, asked again, doing exactly that."""
        plan, reach = self._visible(request, pk)
        try:
            whole = whole_plan(plan, reach=reach)
        except review.Refused as refusal:
            messages.error(request, str(refusal))
            return self._back(pk)
        context = {"title": f"Apply {plan}", "pk": plan.pk, "plan_name": str(plan), "whole": whole, "hidden": HIDDEN}
        if request.method != "POST" or whole.hidden:
            return self.render(request, "admin/consolidation/plan/apply.html", context)
        said = ""
        if request.POST.get("shown") != whole.shown:
            said = "What would be applied changed since you looked: read it again, then confirm."
        elif whole.wide and not request.POST.get("confirmed"):
            said = "Tick the box to confirm how much of the memory this touches."
        if said:
            return self.render(request, "admin/consolidation/plan/apply.html", {**context, "refusal": said}, status=409)
        return self._apply(request, plan, whole.total, confirmed=bool(request.POST.get("confirmed")))

    def _apply(self, request: HttpRequest, plan: Plan, total: int, *, confirmed: bool) -> HttpResponse:
        by = signed_in(request).get_username()
        if total > AT_ONCE:
            payload: dict[str, int | str] = {"plan": plan.pk, "by": by, "confirmed": int(confirmed)}
            with transaction.atomic():
                outbox.enqueue(task=APPLY_PLAN, scope_id=None, key=plan_label(plan.pk), payload=payload)
            messages.success(request, f"A worker applies {total:,} operations now. Reload to see how far it is.")
            return self._back(plan.pk)
        try:
            applied = rollout.apply_measured(plan=plan, by=by, confirmed=confirmed)
        except review.Refused as refusal:
            messages.error(request, str(refusal))
            return self._back(plan.pk)
        return self._answered(
            request, plan, applied.results, title=f"{plan} applied", impact=applied.impact if total else None
        )

    def undo_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Undo what the plan applied, the last first; a result per item."""
        plan, reach = self._visible(request, pk)
        hidden = has_hidden(plan, reach=reach)
        applied = Operation.objects.filter(plan_items__plan=plan, status=State.APPLIED, scope__in=reach.scopes)
        if request.method != "POST" or hidden:
            rows = rows_of(list(applied.select_related("scope").order_by("-applied_at", "-pk")[:AT_ONCE]))
            context = {
                "title": f"Undo {plan}",
                "pk": plan.pk,
                "plan_name": str(plan),
                "rows": rows,
                "total": applied.count(),
                "hidden": HIDDEN if hidden else "",
            }
            return self.render(request, "admin/consolidation/plan/undo.html", context)
        results = rollout.undo_plan(plan=plan, by=signed_in(request).get_username())
        return self._answered(request, plan, results, title=f"{plan} undone")

    def _answered(
        self, request: HttpRequest, plan: Plan, results: list[Result], *, title: str, impact: Impact | None = None
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
        return self._answers(request, answers, plan, title, impact=impact)

    def _answers(
        self, request: HttpRequest, answers: list[Answer], plan: Plan, title: str, *, impact: Impact | None = None
    ) -> HttpResponse:
        context = {
            "title": title,
            "done": [answer for answer in answers if answer.done],
            "refused": [answer for answer in answers if not answer.done],
            "back": reverse(f"admin:{self.url_name('change')}", args=[plan.pk]),
            "falling": falling_lines(impact) if impact else [],
            "numbers": impact_lines(impact) if impact else [],
            "skips": rollout.skip_reasons(plan=plan, scopes=Reach.of(request).scopes) if impact else [],
        }
        return self.render(request, "admin/consolidation/operation/answers.html", context)

    def decide_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Reject every open item with one reason, or decide the ones this page showed; approve nothing unseen."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        plan, reach = self._visible(request, pk)
        user = signed_in(request)
        verb, reason = request.POST.get("verb", ""), request.POST.get("reason", "").replace("\0", "")[:500]
        if verb == "reject_all":
            return self._reject_all(request, plan, reach, reason)
        if verb not in (Verb.APPROVE, Verb.REJECT, Verb.DISTINCT):
            messages.error(request, "Choose approve, reject or distinct.")
            return self._back(pk)
        try:
            shown = shown_digests(token=request.POST.get("shown", ""), user_id=user.pk)
        except ShownExpired as expired:
            messages.error(request, str(expired))
            return self._back(pk)
        held = set(
            items(plan, reach=reach, show="all").filter(operation__in=shown).values_list("operation_id", flat=True)
        )
        chosen = {item: digest for item, digest in picked(request.POST, shown).items() if item in held}
        if not chosen:
            messages.warning(request, "Nothing was selected.")
            return self._back(pk)
        answers = decide_many(verb=Verb(verb), shown=chosen, reach=reach, by=user.get_username(), reason=reason)
        return self._answers(request, answers, plan, "What became of your selection")

    def _reject_all(self, request: HttpRequest, plan: Plan, reach: Reach, reason: str) -> HttpResponse:
        if not reason.strip():
            messages.error(request, "Rejecting needs a reason: say why in one line.")
            return self._back(plan.pk)
        by = signed_in(request).get_username()
        answers = []
        for operation in open_operations(item.operation for item in items(plan, reach=reach, show=OPEN_SHOWN)):
            try:
                review.reject(operation=operation, by=by, reason=reason)
            except review.Refused as refusal:
                answers.append(Answer(pk=operation.pk, op_id=operation.op_id, done=False, sentence=str(refusal)))
                continue
            answers.append(Answer(pk=operation.pk, op_id=operation.op_id, done=True, sentence="rejected"))
        return self._answers(request, answers, plan, f"Open items of {plan} rejected")

    def explained_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Somebody has read the skips; the first time counts."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        plan, _ = self._visible(request, pk)
        Plan.objects.filter(Q(pk=plan.pk), explained_at=None).update(explained_at=ClockTimestamp())
        messages.success(request, f"Noted: the skips of {plan} were read.")
        return self._back(pk)
