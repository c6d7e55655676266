"""PLAN: reads memory in one read-only transaction, calls the rules, stores a plan. It cannot write memory (C12, I22).

A scope that fails is shown as failed and never counted as nothing to do; a scope on hold is left out, with its reason.
Nothing is compared across scopes: each is read, judged and stored by itself (C6).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from time import perf_counter
from typing import Final

from django.db import connection, transaction

from consolidation import candidates
from consolidation.candidates import Link
from consolidation.merge import blast, merge_proposals
from consolidation.models import Pause, Plan, Policy, Verdict, held
from consolidation.operations import Json, Kind, Proposal
from consolidation.planner import keeping, reading
from consolidation.planner.shown import notes, operation_json, plan_json, printed
from consolidation.policy import Policy as Rules
from consolidation.policy import PolicyError
from consolidation.prune import prune_proposals
from consolidation.review import Refused
from observations import outbox
from observations.embedding import Profile
from observations.models import Event, Observation, Scope, database_now
from observations.records import Record
from observations.retrieval import current_embedder

__all__ = ["Progress", "notes", "operation_json", "plan", "plan_json", "printed"]

log = logging.getLogger(__name__)

Progress = Callable[[str], object]  # called with a scope's name when it has been read and judged
_AUDITED: Final = 100  # rows of a scope compared with all others, to state what blocking missed


@dataclass(slots=True)
class _Pass:
    """What planning one scope came to."""

    scope: Scope
    policy_hash: str = ""
    proposals: Sequence[Proposal] = ()
    versions: dict[int, keeping.Version] = field(default_factory=dict)
    reserved: frozenset[int] = frozenset()
    figures: Counter[str] = field(default_factory=Counter)
    left_out: str = ""  # why it was not planned
    failed: bool = False  # it was tried and did not work


def plan(
    *,
    scopes: Iterable[Scope],
    pattern: str,
    by: str,
    trigger: str,
    window: str = "",
    progress: Progress | None = None,
    profile: Profile | None = None,
) -> Plan:
    """Plan the scopes and store the plan; memory is only read. The profile defaults to the current embedder's.

    Must not be called inside a transaction. Raises Refused while everything is paused, and IntegrityError when a plan
    of the same (pattern, window) was stored first. A scope that fails makes the plan partial, or failed when all do.
    """
    if pause := Pause.standing():
        raise Refused(f"Everything is paused by {pause.by}: nothing is planned until `manage.py memory resume`.")
    started = perf_counter()
    profile = profile or current_embedder().profile
    ordered = sorted({scope.pk: scope for scope in scopes}.values(), key=lambda scope: scope.pk)
    passes, store = _read(ordered, profile, progress)
    with transaction.atomic():
        made = Plan.objects.create(
            scope=ordered[0] if len(ordered) == 1 else None,
            pattern=pattern,
            requested_by=by,
            trigger=trigger,
            window=window,
            state=_state(passes),
            failures=_left_out(passes),
            policies={str(one.scope.pk): one.policy_hash for one in passes if one.policy_hash},
        )
        counts = _keep(made, passes, by)
        made.figures = _figures(passes, counts, store=store, seconds=perf_counter() - started)
        made.save(update_fields=["figures"])
        Event.objects.append(
            scope_id=made.scope_id, action="planned", actor=by, subject=str(made), detail={"counts": dict(counts)}
        )
    return made


# --- reading ---------------------------------------------------------------------------------------------------------


def _read(scopes: Sequence[Scope], profile: Profile, progress: Progress | None) -> tuple[list[_Pass], int]:
    """Every scope read in one snapshot and judged; and how many active records the whole store holds."""
    passes = []
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        now = database_now()
        for scope in scopes:
            passes.append(_pass(scope, profile, now))
            if progress is not None:
                progress(scope.name)
        return passes, Observation.objects.active().count()


def _pass(scope: Scope, profile: Profile, now: datetime) -> _Pass:
    if reason := held(scope=scope, now=now):
        return _Pass(scope, left_out=reason)
    try:
        with transaction.atomic():  # a savepoint: one scope's failure leaves the snapshot to the others
            return _planned(scope, profile, now)
    except PolicyError as fault:
        return _Pass(scope, left_out=f"its policy cannot be read: {fault}", failed=True)
    except Exception as error:  # whatever it is, it is shown as failed; its message could hold memory text
        log.error("planning scope %s failed: %s", scope.pk, type(error).__name__)
        return _Pass(scope, left_out=outbox.sentence(error), failed=True)


def _planned(scope: Scope, profile: Profile, now: datetime) -> _Pass:
    policy = Policy.objects.effective(scope=scope.name)
    decided = keeping.settled(scope_id=scope.pk, policy_hash=policy.hash, now=now)
    one = _Pass(scope, policy_hash=policy.hash, reserved=decided.reserved)
    links = _links(one, profile, policy)
    near = reading.records(scope_id=scope.pk, ids=(row for link in links for row in (link.a, link.b)))
    merges = merge_proposals(
        near,
        links,
        profile=profile,
        policy=policy,
        distinct=Verdict.objects.pairs(scope_id=scope.pk),
        rejected=decided.rejected,
    )
    taken = one.reserved.union(*(proposal.sources for proposal in merges if proposal.appliable))
    old = reading.prunable(scope_id=scope.pk, policy=policy, now=now)
    left = [row for row in old.aged if row.id not in one.reserved]  # an approved prune stays as it was approved
    prunes = prune_proposals(left, old.spent, policy=policy, now=now, protected=old.protected, taken=frozenset(taken))
    one.proposals = sorted([*merges, *prunes], key=_order)
    one.versions = _versions([*near, *old.aged, *(source for row in old.spent for source in row.sources)])
    _count(one, policy, blast(one.proposals, scope_size=one.figures["records"], policy=policy).exceeded)
    return one


def _links(one: _Pass, profile: Profile, policy: Rules) -> list[Link]:
    """The pairs of a scope that have to be judged; rows of approved operations are left to those."""
    columns = reading.columns(scope_id=one.scope.pk, profile=profile)
    pairs = candidates.pairs(columns, t_candidate=profile.t_candidate, block_cap=policy.block_cap)
    audit = candidates.missed(columns, pairs, t_merge=profile.t_merge, sample=_AUDITED)
    one.figures.update(
        records=len(columns),
        without_vector=len(columns) - int(columns.has_vector.sum()),
        compared=pairs.compared,
        blocks=pairs.blocks,
        split=pairs.split,
        pairs=len(pairs),
        audited=audit.sampled,
        missed_estimate=round(audit.estimate),
    )
    found = candidates.links(columns=columns, pairs=pairs)
    return [link for link in found if link.a not in one.reserved and link.b not in one.reserved]


def _order(proposal: Proposal) -> tuple[object, ...]:
    """Automatic merges first, then what a person decides, skips last; within that the most similar first."""
    return (
        not proposal.appliable,
        list(Kind).index(proposal.kind),
        proposal.approval.value,
        -(proposal.score or 0.0),
        proposal.sources,
    )


def _versions(rows: Iterable[Record]) -> dict[int, keeping.Version]:
    return {row.id: (row.version, row.content_hash) for row in rows}


def _count(one: _Pass, policy: Rules, wide: bool) -> None:
    one.figures.update(scopes=1, retention_rules=len(policy.retention), over_the_blast_radius=int(wide))


# --- storing ---------------------------------------------------------------------------------------------------------


def _keep(made: Plan, passes: Sequence[_Pass], by: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    position = 0
    for one in passes:
        if one.left_out:
            continue
        kept = keeping.keep(
            plan=made,
            scope_id=one.scope.pk,
            proposals=one.proposals,
            versions=one.versions,
            policy_hash=one.policy_hash,
            reserved=one.reserved,
            by=by,
            position=position,
        )
        position += kept["new"] + kept["again"] + kept["approved"]
        counts.update(kept)
    return counts


def _state(passes: Sequence[_Pass]) -> str:
    failed = sum(one.failed for one in passes)
    if not failed:
        return Plan.State.COMPLETE
    return Plan.State.FAILED if failed == len(passes) else Plan.State.PARTIAL


def _left_out(passes: Sequence[_Pass]) -> list[dict[str, Json]]:
    return [{"scope": one.scope.name, "error": one.left_out, "failed": one.failed} for one in passes if one.left_out]


def _figures(passes: Sequence[_Pass], counts: Counter[str], *, store: int, seconds: float) -> dict[str, Json]:
    """Numbers only: what was read, compared, judged and kept."""
    names = (
        *("scopes", "records", "without_vector", "compared", "blocks", "split", "pairs", "audited"),
        *("missed_estimate", "retention_rules", "over_the_blast_radius"),
    )
    summed: Counter[str] = sum((one.figures for one in passes), Counter())
    kept = ("new", "again", "approved", "stale", "done", "refused")
    return {
        **{name: summed[name] for name in names},
        **{name: counts[name] for name in kept},
        "store": store,
        "seconds": round(seconds, 3),
    }
