"""From a form to one decision and back to a sentence: the admin's only way to the review and the runner.

Every form carries the digest of what its page showed; what is no longer so is refused, saying what changed (C11, D2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time
from enum import StrEnum
from typing import Final

from django import forms
from django.db import OperationalError
from django.http import QueryDict

from consolidation import review, runner, sampling
from consolidation.admin.reading import rows_of
from consolidation.models import Operation
from consolidation.operations import Kind, State
from consolidation.review import Decision
from consolidation.runner import Outcome
from observations.admin.base import Reach

REVIEW: Final = "consolidation.review_operation"
APPLY: Final = "consolidation.apply_operation"
NOT_THERE: Final = "is not among the operations that you may decide"


class Verb(StrEnum):
    """What a form asks for."""

    APPROVE = "approve"
    APPROVE_APPLY = "approve_apply"
    REJECT = "reject"
    DISTINCT = "distinct"
    WITHDRAW = "withdraw"  # refuse what was approved, knowing that it was
    SECOND = "second"  # agree, as another person, to what was approved
    APPLY = "apply"
    UNDO = "undo"


PERMISSIONS: Final[dict[Verb, tuple[str, ...]]] = {
    Verb.APPROVE: (REVIEW,),
    Verb.APPROVE_APPLY: (REVIEW, APPLY),
    Verb.REJECT: (REVIEW,),
    Verb.DISTINCT: (REVIEW,),
    Verb.WITHDRAW: (REVIEW,),
    Verb.SECOND: (REVIEW,),
    Verb.APPLY: (APPLY,),
    Verb.UNDO: (APPLY,),
}
# What a second click of the same person finds done already: it is no conflict (C16).
_ENDS: Final[dict[Verb, tuple[State, ...]]] = {
    Verb.APPROVE: (State.APPROVED, State.APPLIED),
    Verb.APPROVE_APPLY: (State.APPROVED, State.APPLIED),  # the first click may still be applying
    Verb.REJECT: (State.REJECTED,),
    Verb.DISTINCT: (State.DISTINCT,),
    Verb.WITHDRAW: (State.REJECTED,),
    Verb.SECOND: (State.APPROVED, State.APPLIED),
    Verb.APPLY: (State.APPLIED,),
    Verb.UNDO: (State.UNDONE,),
}


class DecisionForm(forms.Form):
    """One decision as it is posted. Nothing of it is rendered by Django; the page has its own inputs."""

    verb = forms.ChoiceField(choices=[(str(verb), str(verb)) for verb in Verb])
    digest = forms.RegexField(r"^[0-9a-f]{64}$")
    reason = forms.CharField(required=False, max_length=500)
    choice = forms.RegexField(r"^(keep:[1-9][0-9]{0,17}|both|many|text)$", required=False)
    text = forms.CharField(required=False, max_length=review.TEXT_LIMIT)
    object = forms.CharField(required=False, max_length=review.OBJECT_LIMIT)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one operation of a selection."""

    pk: int
    op_id: str
    done: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One decision, checked."""

    verb: Verb
    digest: str
    reason: str
    decision: Decision


def asked(*, data: QueryDict, operation: Operation) -> Asked:
    """The decision of a posted form. Raises review.Refused with a sentence for anything that cannot be meant."""
    form = DecisionForm(data)
    if not form.is_valid():
        field, errors = next(iter(form.errors.items()))
        raise review.Refused(f"The form's {field} cannot be used: {errors[0]}")
    given = form.cleaned_data
    return Asked(
        verb=Verb(given["verb"]),
        digest=given["digest"],
        reason=given["reason"],
        decision=_decision(given, data, operation),
    )


def _decision(given: Mapping[str, str], data: QueryDict, operation: Operation) -> Decision:
    """What the chosen way asks for; what was entered under another one is no part of it."""
    choice = given["choice"]
    if choice.startswith("keep:"):
        keep = int(choice.removeprefix("keep:"))
        proposed = operation.kind == Kind.MERGE and keep == operation.keeper_id
        return Decision() if proposed else Decision(keep=keep)
    if choice == "both":
        ids = [source.observation_id or 0 for source in review.sources_of(operation)]
        return Decision(both=tuple((pk, _day(data, f"from_{pk}"), _day(data, f"to_{pk}")) for pk in ids))
    if choice == "text":
        if not given["text"].strip():
            raise review.Refused("Write the right claim, or choose one of the others.")
        return Decision(text=given["text"], object=given["object"])
    return Decision(many_valued=choice == "many")


def _day(data: QueryDict, name: str) -> datetime | None:
    """Midnight UTC of a day from a date input; None when it is empty."""
    given = data.get(name, "").strip()
    if not given:
        return None
    try:
        return datetime.combine(datetime.fromisoformat(given).date(), time.min, tzinfo=UTC)
    except ValueError as error:
        raise review.Refused(f"{given[:20]!r} is not a day: write it as 2025-01-31.") from error


# --- one operation --------------------------------------------------------------------------------------------------


def carry_out(*, request: Asked, operation: Operation, by: str) -> str:
    """Do what one form asked for; the sentence says what was done. Raises review.Refused, saying what is in the way."""
    seen = request.verb in (Verb.REJECT, Verb.DISTINCT, Verb.UNDO)
    if seen or (request.verb is Verb.WITHDRAW and operation.status != State.APPROVED):  # an approval may always go back
        review.refuse_changed(operation=operation, digest=request.digest)
    match request.verb:
        case Verb.REJECT | Verb.WITHDRAW:
            withdraw = request.verb is Verb.WITHDRAW
            review.reject(operation=operation, by=by, reason=request.reason, withdraw=withdraw)
            return f"{operation.op_id} is rejected."
        case Verb.DISTINCT:
            review.distinct(operation=operation, by=by, reason=request.reason)
            return f"{operation.op_id}: its sources are different claims. No pair of them is proposed again."
        case Verb.SECOND:
            review.second(operation=operation, by=by, digest=request.digest)
            return f"You agreed to {operation.op_id} as second person. It waits to be applied."
        case Verb.UNDO:
            return _ran(lambda: runner.undo(operation=operation, by=by))
        case Verb.APPLY:
            said = _ran(lambda: runner.apply(operation=operation, by=by, shown=request.digest))
            sampling.choose_of(operations=[operation])
            return said
        case Verb.APPROVE | Verb.APPROVE_APPLY:
            return _approve(request, operation, by)


def _approve(request: Asked, operation: Operation, by: str) -> str:
    both = request.verb is Verb.APPROVE_APPLY
    if both and operation.kind not in runner.REVERSIBLE:
        raise review.Refused(f"A {operation.kind} is approved first and applied in a second step.")
    decided = review.approve(
        operation=operation, by=by, digest=request.digest, decision=request.decision, reason=request.reason
    )
    if both and not decided.needs_second:
        return _ran(lambda: runner.apply(operation=operation, by=by, shown=decided.approved_digest))
    if decided.needs_second:
        return f"{operation.op_id} is approved. It waits for a second person to agree, then to be applied."
    return f"{operation.op_id} is approved. It waits to be applied."


def _ran(act: Callable[[], runner.Result]) -> str:
    """The sentence of an application or undo that happened. Raises review.Refused with that of one that did not."""
    try:
        result = act()
    except OperationalError as error:
        raise review.Refused("The database could not go on. Nothing was written; try again.") from error
    if result.outcome not in (Outcome.APPLIED, Outcome.UNDONE, Outcome.ALREADY):
        raise review.Refused(result.sentence)
    said = result.sentence
    return said if said.startswith(result.operation) else f"{said[:1].upper()}{said[1:]}"  # an id stays as it is


def done_by_the_same(*, request: Asked, operation: Operation, by: str) -> bool:
    """True when this person's earlier click already did just what this one asks for, the same choice included. One
    query.
    """
    now = Operation.objects.get(pk=operation.pk)
    whose = {Verb.APPLY: now.applied_by, Verb.UNDO: now.undone_by, Verb.SECOND: now.seconded_by}
    if now.status not in _ENDS[request.verb] or whose.get(request.verb, now.decided_by) != by:
        return False
    if request.verb is Verb.APPLY:
        return now.applied_digest == request.digest
    if request.verb not in (Verb.APPROVE, Verb.APPROVE_APPLY):
        return True
    chosen = request.decision.cleaned()
    stands = (now.decision, now.decision_text, now.decision_object)
    return stands == (chosen.to_dict(), chosen.text, chosen.object)


# --- a selection ----------------------------------------------------------------------------------------------------


def decide_many(*, verb: Verb, shown: Mapping[int, str], reach: Reach, by: str, reason: str) -> list[Answer]:
    """The same decision on every operation of a selection that was rendered with these digests; an answer for each.

    One transaction per operation: what cannot be decided is said and stops nothing else.
    """
    found = reach.rows(Operation.objects.filter(pk__in=shown).select_related("scope"))
    operations = {operation.pk: operation for operation in found}
    now = {row.pk: row.digest for row in rows_of(list(operations.values()))}
    answers = []
    for pk, digest in shown.items():
        operation = operations.get(pk)
        if operation is None:
            answers.append(Answer(pk=pk, op_id=f"operation {pk}", done=False, sentence=f"{pk} {NOT_THERE}."))
            continue
        moved = bool(now[pk]) and now[pk] != digest
        answers.append(_one(verb, operation, digest, moved, by, reason))
    return answers


def _one(verb: Verb, operation: Operation, digest: str, moved: bool, by: str, reason: str) -> Answer:
    try:
        if moved:
            review.refuse_changed(operation=operation, digest=digest)
        sentence = _decide(verb, operation, by, reason)
    except review.Refused as refusal:
        return Answer(pk=operation.pk, op_id=operation.op_id, done=False, sentence=str(refusal))
    return Answer(pk=operation.pk, op_id=operation.op_id, done=True, sentence=sentence)


def _decide(verb: Verb, operation: Operation, by: str, reason: str) -> str:
    if verb is Verb.REJECT:
        review.reject(operation=operation, by=by, reason=reason)
        return "rejected"
    if verb is Verb.DISTINCT:
        review.distinct(operation=operation, by=by, reason=reason)
        return "marked distinct"
    raise review.Refused(f"{verb} is done item by item.")
