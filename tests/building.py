"""What tests build with: real rows through the store, and operations as the planner stores them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count

import numpy as np
from django.db import transaction

from consolidation import review, rollout
from consolidation.models import Operation, OperationSource, Plan, PlanItem, Policy
from consolidation.operations import Approval, Json, Kind, Proposal
from observations import store
from observations.embedding import embedder
from observations.models import Episode, Observation, Scope
from observations.records import Claim, EvidenceRef, Outcome, StatedBy, Turn, WrittenBy

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
_numbers = count(1)


def scope(name: str = "team-a/u1") -> Scope:
    """A scope of that name."""
    return store.open_scope(name=name)


def observe(
    text: str,
    *,
    within: Scope,
    key: tuple[str, str, str] = ("", "", ""),
    external_id: str = "",
    stated_by: StatedBy = StatedBy.AGENT,
    confidence: float = 0.5,
    created_at: datetime | None = None,
    sources: Sequence[str] = (),
) -> Observation:
    """One observation, written and given a vector as the pipeline does."""
    number = next(_numbers)
    claim = Claim(
        text=text,
        external_id=external_id or f"t{number}",
        subject=key[0],
        predicate=key[1],
        object=key[2],
        confidence=confidence,
        stated_by=stated_by,
        created_at=created_at or LONG_AGO + timedelta(minutes=number),
        evidence=tuple(EvidenceRef(source_uri=uri) for uri in sources or [f"test://source/{number}"]),
    )
    with transaction.atomic():
        [written] = store.add_observations(scope=within, claims=[claim], written_by=WrittenBy.BACKGROUND)
    assert written.id is not None
    embed([written.id], within=within)
    return Observation.objects.get(pk=written.id)


def tell(
    text: str,
    *,
    within: Scope,
    speaker: str = "Ana",
    role: str = "",
    session: str = "",
    root: str = "",
    happened_at: datetime | None = None,
    outcome: Outcome = Outcome.UNKNOWN,
) -> Episode:
    """One episode, verbatim, its own witness unless a root source is given."""
    number = next(_numbers)
    turn = Turn(
        text=text,
        external_id=f"e{number}",
        speaker=speaker,
        role=role,
        session=session,
        seq=number,
        happened_at=happened_at or LONG_AGO + timedelta(minutes=number),
        source_uri=f"test://turn/{number}",
        root_source=root,
        outcome=outcome,
    )
    with transaction.atomic():
        [written] = store.add_episodes(scope=within, turns=[turn])
    assert written.id is not None
    return Episode.objects.get(pk=written.id)


def embed(ids: Sequence[int], *, within: Scope) -> None:
    """Vectors of the hashing embedder for these rows."""
    model = embedder("hashing")
    texts = list(Observation.objects.filter(pk__in=ids).order_by("pk").values_list("text", flat=True))
    vectors = model.embed([text or "" for text in texts])
    bands = [np.zeros(16, dtype="<i8").tobytes()] * len(ids)
    with transaction.atomic():
        store.put_embeddings(
            profile=model.profile, rows=[(within.pk, pk) for pk in sorted(ids)], vectors=vectors, bands=bands
        )


def propose(
    kind: Kind,
    sources: Sequence[Observation] | Sequence[Episode],
    *,
    approval: Approval = Approval.AUTO,
    keeper: Observation | None = None,
    product: dict[str, Json] | None = None,
    signals: dict[str, Json] | None = None,
    skipped_reason: str = "",
    reason: str = "made by a test",
    plan: Plan | None = None,
    text: str = "",
    key: tuple[str, str, str] = ("", "", ""),
    judgement: tuple[str, str] = ("", ""),
) -> Operation:
    """An operation stored as the planner stores one, in a plan of its own unless one is given."""
    within = sources[0].scope
    proposal = Proposal(
        kind=kind,
        scope_id=within.pk,
        sources=tuple(sorted(row.pk for row in sources)),
        approval=approval,
        reason=reason,
        skipped_reason=skipped_reason,
        keeper=keeper.pk if keeper else (sources[0].pk if kind == Kind.MERGE else None),
        product=product or {},
        signals=signals or {},
        text=text,
        key=key,
    )
    with transaction.atomic():
        operation = _stored(proposal, within, judgement)
        rows: list[Observation | Episode] = sorted(sources, key=lambda each: each.pk)
        for position, row in enumerate(rows):
            OperationSource.objects.create(
                scope=within,
                operation=operation,
                observation=row if isinstance(row, Observation) else None,
                episode=row if isinstance(row, Episode) else None,
                position=position,
                planned_version=row.version,
                planned_hash=row.content_hash,
            )
        plan = plan or Plan.objects.create(pattern=within.name, requested_by="test", trigger="command")
        PlanItem.objects.create(scope=within, plan=plan, operation=operation, position=plan.items.count())
    return operation


SECOND = "sam"  # another reviewer, wherever a policy wants two people


def seconded(operation: Operation, *, by: str = SECOND) -> Operation:
    """An approved operation, agreed to by another person where that is needed."""
    operation.refresh_from_db()
    return review.second(operation=operation, by=by) if operation.needs_second else operation


def first_confirms(plan: Plan, *, scopes: Sequence[Scope] | None = None, by: str = SECOND) -> None:
    """The first of two people confirms what applying a wide plan would do; of a narrow one nobody has to."""
    with suppress(rollout.SecondWanted):
        rollout.agree(plan=plan, by=by, scopes=scopes)


def _stored(proposal: Proposal, within: Scope, judgement: tuple[str, str]) -> Operation:
    return Operation.objects.create(
        rule=judgement[0],
        band=judgement[1],
        op_id=proposal.id,
        generation=1 + Operation.objects.filter(scope=within, op_id=proposal.id).count(),
        input_key=proposal.input_key,
        scope=within,
        kind=proposal.kind,
        approval=proposal.approval,
        status=proposal.state,
        reason=proposal.reason,
        skipped_reason=proposal.skipped_reason,
        score=proposal.score,
        risk=proposal.risk,
        uncertainty=proposal.uncertainty,
        keeper_id=proposal.keeper,
        product=dict(proposal.product),
        signals=dict(proposal.signals),
        text=proposal.text,
        claim_subject=proposal.key[0],
        claim_predicate=proposal.key[1],
        claim_object=proposal.key[2],
        n_sources=len(proposal.sources),
        policy_hash=Policy.objects.effective(scope=within.name).hash,
    )
