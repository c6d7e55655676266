"""The four questions in the admin: a page that asks them, and what a plan says while they are open (R32, R33)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect

from consolidation import asking, revising
from consolidation.asking import QUESTIONS, Answers, Question
from consolidation.models import Policy
from consolidation.operations import visible
from consolidation.policy import Policy as Rules
from consolidation.policy import PolicyError, Trigger
from observations.admin.base import Reach, Screen, signed_in
from observations.models import Scope
from observations.records import MemoryKind

ADD: Final = "consolidation.add_policy"
NAMED: Final = 5  # scopes that a plan's page names
OFFERED: Final = 200
_OPEN: Final = ("", "Not decided")
_FIELDS: Final = {"mergeable": "merge", "untouchable": "never", "every_records": "every"}


class QuestionsForm(forms.Form):
    """Four questions, and for which scopes. It begins with what holds while nobody answers."""

    pattern = forms.ChoiceField(label="For which scopes", help_text="“…/*” is everything below.")
    merge = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)
    never = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)
    keep_days = forms.IntegerField(required=False, widget=forms.NumberInput(attrs={"min": "0"}))
    trigger = forms.ChoiceField(required=False, widget=forms.RadioSelect)
    every = forms.IntegerField(
        label="How many new records make a plan",
        required=False,
        help_text="Observations and episodes. Counts only with “After a number of new records”.",
        widget=forms.NumberInput(attrs={"min": "1"}),
    )

    def __init__(self, data: QueryDict | None, *, patterns: Sequence[str], chosen: str) -> None:
        usual = Rules()
        initial = {
            "pattern": chosen,
            "merge": [str(kind) for kind in usual.mergeable],
            "keep_days": usual.keep_days,
            "trigger": "",
            "every": usual.every_records,
        }
        super().__init__(data, initial=initial)
        for question in QUESTIONS:
            self._ask(question)
        offered = [(name, "*, every scope" if name == "*" else visible(name)) for name in patterns]
        self._choices("pattern", offered if chosen else [("", "Choose…"), *offered])

    def _ask(self, question: Question) -> None:
        field = self.fields[question.name]
        field.label, field.help_text = question.words, f"{question.hint} Unanswered: {question.unanswered}."
        if question.choices:
            choices = [(choice.value, choice.words) for choice in question.choices]
            self._choices(question.name, choices if question.several else [_OPEN, *choices])

    def _choices(self, name: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices

    def answers(self) -> Answers:
        """What was answered. The form is valid."""
        given: dict[str, Any] = self.cleaned_data
        trigger = Trigger(given["trigger"]) if given["trigger"] else None
        return Answers(
            merge=tuple(MemoryKind(word) for word in given["merge"]),
            never=tuple(MemoryKind(word) for word in given["never"]),
            keep_days=given["keep_days"],
            trigger=trigger,
            every=given["every"] if trigger is Trigger.RECORDS else None,
        )


def ask(screen: Screen, request: HttpRequest) -> HttpResponse:
    """The page of the questions; posted, the answers are stored as the policy of the chosen pattern."""
    reach, scope = Reach.of(request), _scope(request)
    patterns = _patterns(reach, scope)
    posted = request.POST if request.method == "POST" else None
    form = QuestionsForm(posted, patterns=patterns, chosen=scope.name if scope else "")
    if posted is not None and form.is_valid():
        saved = _answered(form, request)
        if saved is not None:
            messages.success(request, f"Answered: the policy of {visible(saved.pattern)} is version {saved.version}.")
            return redirect(f"admin:{screen.url_name('change')}", pk=saved.pk)
    context = {
        "title": "Four questions",
        "form": form,
        "scope": scope.pk if scope else "",
        "asked": bool(patterns),
        "name": visible(scope.name) if scope else "",
    }
    status = 422 if posted is not None else 200
    return screen.render(request, "admin/consolidation/policy/questions.html", context, status=status)


def _scope(request: HttpRequest) -> Scope | None:
    asked = request.GET.get("scope", "")
    if not (asked.isascii() and asked.isdigit() and len(asked) < 19):
        return None
    return get_object_or_404(Reach.of(request).scopes, pk=int(asked))


def _patterns(reach: Reach, scope: Scope | None) -> list[str]:
    """What may be chosen: patterns inside this person's own that have no policy yet."""
    if scope is None:
        names = list(reach.scopes.order_by("name").values_list("name", flat=True)[:OFFERED])
        wanted = [*sorted(reach.patterns), *names]
    else:
        parts = scope.name.split("/")
        around = ["/".join([*parts[:length], "*"]) for length in range(len(parts) - 1, 0, -1)]
        wanted = [scope.name, *around, "*"]
    taken = set(Policy.objects.filter(pattern__in=wanted).values_list("pattern", flat=True))
    return [name for name in dict.fromkeys(wanted) if name not in taken and reach.covers(name)]


def _answered(form: QuestionsForm, request: HttpRequest) -> Policy | None:
    by, pattern = signed_in(request).get_username(), form.cleaned_data["pattern"]
    try:
        return asking.answer(pattern=pattern, answers=form.answers(), by=by)
    except PolicyError as fault:
        name = _FIELDS.get(fault.field, fault.field)
        words = str(fault).replace(f"{fault.field} must", "It must", 1)
        form.add_error(name if name in form.fields else None, words)
    except revising.Conflict as conflict:
        form.add_error("pattern", visible(str(conflict)))
    return None


# --- on a plan's page -------------------------------------------------------------------------------------------------


def open_questions(*, scopes: Iterable[Scope], request: HttpRequest) -> dict[str, object]:
    """Context of the include "admin/consolidation/policy/asked.html": the visible scopes among these that no policy
    covers, and whether this person may answer. One query, and those of the person's reach.
    """
    asked = asking.unanswered(scopes=scopes)
    own = [scope for scope in asked if Reach.seen_by(request).may(ADD, scope=scope)]
    return {
        "asked": [visible(scope.name) for scope in asked[:NAMED]],
        "asked_more": max(0, len(asked) - NAMED),
        "questions": QUESTIONS if asked else (),
        "answer_for": own[0].pk if len(own) == 1 else None,
        "may_answer": bool(own),
    }
