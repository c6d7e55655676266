"""PLAN: reads memory in one read-only transaction, calls the rules, stores a plan. It cannot write memory (C12, I22).

A scope that fails is shown as failed and never counted as nothing to do; a scope on hold is left out, with its reason.
Nothing is compared across scopes: each is read, judged and stored by itself (C6).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from time import perf_counter
from typing import Final

from django.db import connection, transaction

from consolidation import calibrating, candidates, learning, sampling, triggering
from consolidation.accuracy import Demoted, asked_instead
from consolidation.candidates import Columns, Link
from consolidation.decay import archive_proposals
from consolidation.merge import blast, merge_proposals
from consolidation.models import Pause, Plan, Policy, Suite, Verdict, held
from consolidation.models.settings import InForce
from consolidation.operations import Json, Kind, Proposal
from consolidation.planner import budget, copying, distilling, fading, keeping, reading
from consolidation.planner.shown import (
    COVERED,
    UNRECONCILED,
    UNTOUCHABLE,
    notes,
    operation_json,
    plan_json,
    printed,
    support_line,
)
from consolidation.policy import Policy as Rules
from consolidation.policy import PolicyError
from consolidation.prune import prune_proposals
from consolidation.review import Refused
from observations import outbox, spending
from observations.embedding import Profile
from observations.llm import Completer, ModelFailed
from observations.models import Event, Observation, Scope, database_now
from observations.records import Record
from observations.retrieval import current_embedder

__all__ = [
    "COVERED",
    "UNRECONCILED",
    "UNTOUCHABLE",
    "Progress",
    "notes",
    "operation_json",
    "plan",
    "plan_json",
    "printed",
    "support_line",
]

log = logging.getLogger(__name__)

Progress = Callable[[str], object]  # called with a scope's name when it was read and judged, and while a model answers
PROJECT: Final = "project_plan"  # the outbox task that measures what applying a plan would do
_AUDITED: Final = 100  # rows of a scope compared with all others, to state what blocking missed


@dataclass(slots=True)
class _Pass:
    """What planning one scope came to."""

    scope: Scope
    force: InForce = field(default_factory=lambda: InForce(Rules()))
    proposals: list[Proposal] = field(default_factory=list)
    distilled: distilling.Distilled = field(default_factory=distilling.Distilled)
    rows: dict[int, keeping.Version] = field(default_factory=dict)
    settled: keeping.Settled = field(default_factory=lambda: keeping.Settled({}, frozenset()))
    figures: Counter[str] = field(default_factory=Counter)
    counted: int = 0  # observations and episodes of any status, in the snapshot
    untouchable: int = 0  # active records that the policy lets no proposal touch
    unreconciled: int = 0  # active records that the background wrote without comparing them
    flagged: frozenset[int] = frozenset()  # of them, those that a proposal or an approved operation holds
    covered: int = 0  # of them, those that this plan takes up
    left_out: str = ""  # why it was not planned
    failed: bool = False  # it was tried and did not work

    @property
    def versions(self) -> keeping.Versions:
        """How everything its proposals rest on stood."""
        turns = self.distilled.episodes
        return keeping.Versions(self.rows, {pk: (turn.version, turn.content_hash) for pk, turn in turns.items()})

    def settle(self, demoted: Mapping[sampling.Key, Demoted]) -> None:
        """Send to a person what a demoted band would do alone; then order and count it all."""
        proposals = (asked_instead(each, demoted=demoted) for each in self.proposals)
        self.proposals = sorted(proposals, key=partial(_order, self.flagged))
        wide = blast(self.proposals, scope_size=self.figures["records"], policy=self.force.rules).exceeded
        self.figures.update(over_the_blast_radius=int(wide))

    @property
    def partly(self) -> bool:
        """Whether a step of it failed."""
        return any(fault.failed for fault in self.distilled.faults)


def plan(
    *,
    scopes: Iterable[Scope],
    pattern: str,
    by: str,
    trigger: str,
    window: str = "",
    progress: Progress | None = None,
    profile: Profile | None = None,
    completer: Completer | None = None,
    most_asked: int | None = None,
) -> Plan:
    """Plan the scopes and store the plan; memory is only read. The profile defaults to the current embedder's as it was
    measured, the model to the one that is configured; `most_asked` limits the questions to it per scope and kind.

    Must not be called inside a transaction. Raises Refused while everything is paused, and IntegrityError when a plan
    of the same (pattern, window) was stored first. A scope or a step that fails makes the plan partial, or failed when
    every scope does.
    """
    if pause := Pause.standing():
        raise Refused(f"Everything is paused by {pause.by}: nothing is planned until `manage.py memory resume`.")
    started = perf_counter()
    profile = profile or calibrating.in_force(profile=current_embedder().profile)
    ordered = sorted({scope.pk: scope for scope in scopes}.values(), key=lambda scope: scope.pk)
    told = progress or (lambda _what: None)
    model = completer.model if completer is not None else distilling.model_name()
    passes, store = _read(ordered, profile, model, told)
    demoted = sampling.demoted()
    for one in passes:
        _distil(one, completer, told, most_asked)
        one.settle(demoted)
    with transaction.atomic():
        made = Plan.objects.create(
            scope=ordered[0] if len(ordered) == 1 else None,
            pattern=pattern,
            requested_by=by,
            trigger=trigger,
            window=window,
            state=_state(passes),
            failures=_left_out(passes),
            policies={str(one.scope.pk): one.force.rules.hash for one in passes if not one.left_out},
            snapshots={one.force.rules.hash: one.force.snapshot() for one in passes if not one.left_out},
        )
        counts = _keep(made, passes, by)
        made.figures = _figures(passes, counts, store=store, seconds=perf_counter() - started)
        made.save(update_fields=["figures"])
        Event.objects.append(
            scope_id=made.scope_id, action="planned", actor=by, subject=str(made), detail={"counts": dict(counts)}
        )
        _ask_for_impact(made, ordered)
    return made


def _ask_for_impact(made: Plan, scopes: Sequence[Scope]) -> None:
    """Have a worker measure what applying it would do, where there is a suite to measure it by. One query, or two."""
    if Suite.objects.filter(scope__in=scopes).exists():
        outbox.enqueue(task=PROJECT, scope_id=None, key=str(made), payload={"plan": made.pk, "by": made.requested_by})


# --- reading ---------------------------------------------------------------------------------------------------------


def _read(scopes: Sequence[Scope], profile: Profile, model: str, progress: Progress) -> tuple[list[_Pass], int]:
    """Every scope read in one snapshot and judged; and how many active records the whole store holds."""
    passes = []
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        now = database_now()
        for scope in scopes:
            passes.append(_pass(scope, profile, model, now))
            progress(scope.name)
        return passes, Observation.objects.active().count()


def _pass(scope: Scope, profile: Profile, model: str, now: datetime) -> _Pass:
    if reason := held(scope=scope, now=now):
        return _Pass(scope, left_out=reason)
    try:
        with transaction.atomic():  # a savepoint: one scope's failure leaves the snapshot to the others
            return _planned(scope, profile, model, now)
    except PolicyError as fault:
        return _Pass(scope, left_out=f"its policy cannot be read: {fault}", failed=True)
    except Exception as error:  # whatever it is, it is shown as failed; its message could hold memory text
        log.error("planning scope %s failed: %s", scope.pk, type(error).__name__)
        return _Pass(scope, left_out=outbox.sentence(error), failed=True)


def _planned(scope: Scope, profile: Profile, model: str, now: datetime) -> _Pass:
    force = Policy.objects.in_force(scope=scope.name)
    policy = force.rules
    one = _Pass(scope, force=force)
    one.settled = keeping.settled(scope_id=scope.pk, policy_hash=policy.hash, now=now)
    names = learning.aliases(scope_id=scope.pk)
    columns = copying.columns(scope_id=scope.pk, profile=profile, aliases=names)
    links = _links(one, columns, profile, policy)
    wanted = {row for link in links for row in (link.a, link.b)} | set(candidates.contradicting(columns).tolist())
    near = reading.records(scope_id=scope.pk, ids=wanted - one.settled.reserved, aliases=names)
    merges = merge_proposals(
        near,
        links,
        profile=profile,
        policy=policy,
        distinct=Verdict.objects.pairs(scope_id=scope.pk),
        rejected=one.settled.rejected,
        cardinality=learning.cardinalities(scope_id=scope.pk),
    )
    taken = one.settled.reserved.union(*(proposal.sources for proposal in merges if proposal.appliable))
    one.rows = _versions(near)
    one.proposals = [*merges, *_leaving(one, policy, now, frozenset(taken))]
    one.distilled = distilling.read(scope_id=scope.pk, policy=policy, profile=profile, now=now, model=model)
    one.counted = triggering.counted(scope_ids=[scope.pk])[scope.pk]
    one.untouchable = reading.untouchable(scope_id=scope.pk, policy=policy)
    one.unreconciled = reading.unreconciled(scope_id=scope.pk)
    one.flagged = reading.flagged(scope_id=scope.pk, ids={*_held(one.proposals), *one.settled.reserved})
    one.figures.update(scopes=1, retention_rules=len(policy.retention), episodes=len(one.distilled.episodes))
    return one


def _leaving(one: _Pass, policy: Rules, now: datetime, taken: frozenset[int]) -> list[Proposal]:
    """What is past its retention, used up or faded; an approved prune stays as it was approved.

    Retention comes before fading, or a faded row would never be asked about; what people refused takes no row.
    """
    scope_id, reserved = one.scope.pk, one.settled.reserved
    old = reading.prunable(scope_id=scope_id, policy=policy, now=now)
    gone = fading.decayed(scope_id=scope_id, policy=policy, now=now)
    prunes = prune_proposals(
        [row for row in old.aged if row.id not in reserved],
        old.spent,
        policy=policy,
        now=now,
        decayed=[row for row in gone if row.id not in reserved],
        protected=old.protected,
        taken=taken,
    )
    standing = [proposal for proposal in prunes if proposal.appliable and proposal.id not in one.settled.refused]
    faded = fading.fading(scope_id=scope_id, policy=policy, now=now)
    archives = archive_proposals(
        [row for row in faded.rows if row.id not in reserved],
        policy=policy,
        now=now,
        used_since=faded.last_used,
        protected=faded.protected,
        taken=taken.union(*(proposal.sources for proposal in standing)),
    )
    sources = (source for row in old.spent for source in row.sources)
    one.rows |= _versions([*faded.rows, *gone, *old.aged, *sources])
    return [*archives, *prunes]


def _links(one: _Pass, columns: Columns, profile: Profile, policy: Rules) -> list[Link]:
    """The pairs of a scope that have to be judged; rows of approved operations are left to those."""
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
    reserved = one.settled.reserved
    return [link for link in found if link.a not in reserved and link.b not in reserved]


# --- asking and proposing --------------------------------------------------------------------------------------------


def _distil(one: _Pass, completer: Completer | None, progress: Progress, most_asked: int | None) -> None:
    """Ask the model about a scope's episodes and add what its answers propose."""
    if one.left_out:
        return
    scope_id, policy = one.scope.pk, one.force.rules
    try:
        if one.distilled.questions:
            asked = completer or _door(scope_id)
            distilling.ask(
                scope_id=scope_id, distilled=one.distilled, completer=asked, progress=progress, most=most_asked
            )
        one.proposals += distilling.proposals(
            scope_id=scope_id, distilled=one.distilled, policy=policy, reserved=one.settled.reserved_turns
        )
    except Exception as error:  # the rest of the plan stands; what the model was asked for is shown as failed
        log.error("asking about scope %s failed: %s", scope_id, type(error).__name__)
        one.distilled.fail(outbox.sentence(error))
    one.figures.update(asked=one.distilled.asked)


def _door(scope_id: int) -> Completer | ModelFailed:
    try:
        return spending.door(scope_id=scope_id)
    except ModelFailed as missing:
        return missing


def _held(proposals: Iterable[Proposal]) -> Iterator[int]:
    """The rows that proposals hold, but for skips that nobody decides."""
    for proposal in proposals:
        if (proposal.appliable or proposal.awaits_review) and not proposal.of_episodes:
            yield from proposal.sources


def _order(flagged: frozenset[int], proposal: Proposal) -> tuple[object, ...]:
    """Automatic merges first, then what a person decides, skips last; within that what holds a row that nobody compared
    yet, then the most similar. An operation's identity knows nothing of it.
    """
    return (
        not proposal.appliable,
        list(Kind).index(proposal.kind),
        proposal.approval.value,
        proposal.of_episodes or flagged.isdisjoint(proposal.sources),
        -(proposal.score or 0.0),
        proposal.sources,
    )


def _versions(rows: Iterable[Record]) -> dict[int, keeping.Version]:
    return {row.id: (row.version, row.content_hash) for row in rows}


# --- storing ---------------------------------------------------------------------------------------------------------


def _keep(made: Plan, passes: Sequence[_Pass], by: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    position = 0
    for one in passes:
        if one.left_out:
            continue
        scope_id, policy = one.scope.pk, one.force.rules
        keeping.take_turns(scope_id=scope_id)
        proposals, held_back = budget.within(
            scope_id=scope_id,
            proposals=one.proposals,
            budget=policy.review_budget,
            now=made.created_at,
            known=keeping.known_ids(scope_id=scope_id),
            flagged=one.flagged,
        )
        one.covered = len(one.flagged.intersection({*_held(proposals), *one.settled.reserved}))
        kept = keeping.keep(
            plan=made,
            scope_id=scope_id,
            proposals=proposals,
            versions=one.versions,
            policy_hash=policy.hash,
            settled=one.settled,
            unfinished=one.distilled.unfinished,
            by=by,
            position=position,
        )
        position += kept["new"] + kept["again"] + kept["approved"]
        counts.update(kept, held_back=held_back)
    return counts


def _state(passes: Sequence[_Pass]) -> str:
    failed = sum(one.failed for one in passes)
    if failed and failed == len(passes):
        return Plan.State.FAILED
    return Plan.State.PARTIAL if failed or any(one.partly for one in passes) else Plan.State.COMPLETE


def _left_out(passes: Sequence[_Pass]) -> list[dict[str, Json]]:
    """Scopes that were not planned, and steps of scopes that were not done, each with its reason."""
    found: list[dict[str, Json]] = []
    for one in passes:
        if one.left_out:
            found.append({"scope": one.scope.name, "error": one.left_out, "failed": one.failed})
        found += [fault.to_dict(one.scope.name) for fault in one.distilled.faults]
    return found


def _figures(passes: Sequence[_Pass], counts: Counter[str], *, store: int, seconds: float) -> dict[str, Json]:
    """Numbers only: what was read, compared, judged and kept."""
    names = (
        *("scopes", "records", "episodes", "without_vector", "compared", "blocks", "split", "pairs", "audited"),
        *("missed_estimate", "retention_rules", "over_the_blast_radius", "asked"),
    )
    summed: Counter[str] = sum((one.figures for one in passes), Counter())
    kept = ("new", "again", "approved", "stale", "done", "refused", "held_back")
    return {
        **{name: summed[name] for name in names},
        **{name: counts[name] for name in kept},
        "store": store,
        "model": int(spending.configured()),
        UNTOUCHABLE: {str(one.scope.pk): one.untouchable for one in passes if one.untouchable},
        UNRECONCILED: {str(one.scope.pk): one.unreconciled for one in passes if one.unreconciled},
        COVERED: {str(one.scope.pk): one.covered for one in passes if one.unreconciled},
        triggering.COUNTED: {str(one.scope.pk): one.counted for one in passes if not one.left_out},
        "seconds": round(seconds, 3),
    }
