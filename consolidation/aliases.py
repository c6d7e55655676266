"""ALIAS: a person says that two subjects are one entity. Nothing proposes it, and it always waits for a decision (R46).

Applied, the planner compares both subjects under one name; no observation is rewritten.
"""

from __future__ import annotations

from typing import Final
from uuid import uuid4

from django.db import transaction
from django.db.models import Q

from consolidation.learning import aliases
from consolidation.models import OPEN, Operation, OperationSource, held
from consolidation.operations import Approval, Kind, Proposal
from consolidation.review import Refused, policy_of
from observations.models import Event, Observation, Scope, database_now
from observations.normalise import key64, key_part

_SHOWN: Final = 3  # records of each subject that the reviewer is shown, newest first


@transaction.atomic
def request_alias(*, scope: Scope, subject: str, name: str, by: str) -> Operation:
    """Ask that `subject` is compared as `name` from now on; returns the operation, which waits for a decision.

    Asking for what is asked already returns that operation. Raises Refused with a sentence when a subject has no active
    record, when both are one already, or when the subject has another name. Two who ask at once take turns.
    """
    alias, main = key_part(subject), key_part(name)
    if not alias or not main:
        raise Refused("An alias needs two subjects, each with a letter or a digit.")
    Scope.objects.select_for_update(no_key=True).get(pk=scope.pk)  # one question at a time, and no writer waits for it
    if reason := held(scope=scope, now=database_now()):
        raise Refused(f"No alias can be asked for: {reason}.")
    named = aliases(scope_id=scope.pk)
    final = named.get(main, main)
    if named.get(alias, alias) == final:
        raise Refused("Both subjects are compared as one already.")
    if alias in named:
        raise Refused("That subject has another name already: undo that alias first.")
    if waiting := _asked(scope, alias, final):
        return waiting
    rows = [*_records(scope, alias), *_records(scope, main)]
    return _asked_for(scope, alias, final, rows, by)


def _asked(scope: Scope, alias: str, main: str) -> Operation | None:
    """The same question, either way round, while it is open. One query."""
    rows = Operation.objects.filter(scope=scope, kind=Kind.ALIAS, status__in=OPEN)
    same = Q(claim_subject=alias, claim_object=main) | Q(claim_subject=main, claim_object=alias)
    return rows.filter(same).order_by("pk").first()


def _records(scope: Scope, subject: str) -> list[Observation]:
    """The newest active records about a subject. Raises Refused when there is none. One query."""
    rows = Observation.objects.active().in_scope(scope).filter(subject_key=key64(subject)).order_by("-pk")[:_SHOWN]
    if not rows:
        raise Refused("No current record is about one of the two subjects: give them as the records do.")
    return list(rows)


def _asked_for(scope: Scope, alias: str, main: str, rows: list[Observation], by: str) -> Operation:
    ordered = sorted(rows, key=lambda row: row.pk)
    proposal = Proposal(
        kind=Kind.ALIAS,
        scope_id=scope.pk,
        sources=tuple(row.pk for row in ordered),
        approval=Approval.NEEDS_HUMAN,
        reason="a person says that two subjects are one entity",
        product={"discriminator": uuid4().hex},  # asked again after a no, it is another question
        key=(alias, "is", main),
    )
    operation = Operation.objects.create(
        op_id=proposal.id,
        input_key=proposal.input_key,
        scope=scope,
        kind=proposal.kind,
        approval=proposal.approval,
        status=proposal.state,
        reason=proposal.reason,
        product=dict(proposal.product),
        claim_subject=alias,
        claim_predicate="is",
        claim_object=main,
        requested_by=by,
        n_sources=len(ordered),
        policy_hash=policy_of(scope.name).hash,
    )
    OperationSource.objects.bulk_create(
        OperationSource(
            scope=scope,
            operation=operation,
            observation=row,
            position=position,
            planned_version=row.version,
            planned_hash=row.content_hash,
        )
        for position, row in enumerate(ordered)
    )
    Event.objects.append(
        scope_id=scope.pk, action="requested", actor=by, subject=operation.op_id, generation=1, detail={"kind": "alias"}
    )
    return operation
