"""One decision about one operation: yes, no, or "these are different claims", and exactly what it covers.

An approval belongs to exact content: it stores a digest of what was shown, and a difference voids it (I17, I18, D2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import combinations

from django.db import transaction

from consolidation.models import Operation, OperationSource, Plan, PlanItem, Policy, Verdict
from consolidation.operations import OF_EPISODES, Approval, Json, Kind, Shown, State, digest, ep, obs
from consolidation.policy import Policy as Rules
from consolidation.policy import PolicyError
from consolidation.review.wanting import needs_second, same_person
from observations.models import ClockTimestamp, Episode, Event, GivenKey, Observation, database_now
from observations.normalise import clean
from observations.records import Status

# A person may still decide in these states; `failed` wrote nothing, so it may be approved again.
DECIDABLE = (State.PLANNED, State.NEEDS_HUMAN, State.SKIPPED, State.FAILED)
REASON_REQUIRED = (Kind.SUPERSEDE, Kind.PRUNE, Kind.ALIAS)
TEXT_LIMIT = 20_000  # characters of a right claim
OBJECT_LIMIT = 1_000  # characters of its object, as of every key's
NOT_CARRIED_OUT = "a request to forget is recorded and shown, and this version does not carry one out."
NO_PREDICATE = (
    "That a predicate holds several values teaches nothing here, for the claims have none:"
    " say that they are different claims, or give each its period."
)
NO_KEY = (
    "An object belongs to a subject and a predicate, and these claims have none to give the right one:"
    " leave the object out."
)
TELLS_APART = (Kind.MERGE, Kind.SUPERSEDE)  # the kinds whose sources could be one claim
MOVED = {
    Status.SUPERSEDED: "was superseded",
    Status.ARCHIVED: "was archived",
    Status.RETRACTED: "was retracted",
    Status.QUARANTINED: "was quarantined",
    Status.ERASED: "was erased",
}


class Refused(Exception):
    """A decision or an application that cannot be carried out; its text is one sentence for the person who asked."""


class AlreadyDecided(Refused):
    """Somebody else was first; the text says who, what and when (C16)."""


class Changed(Refused):
    """What would be approved is no longer what was shown; the text says what changed (C11)."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a reviewer chose beyond a plain yes. For a merge only `keep`; for a supersede exactly one of the four."""

    keep: int | None = None  # the observation whose text (merge) or claim (supersede) stays
    both: tuple[tuple[int, datetime | None, datetime | None], ...] = ()  # all true, each in its period
    many_valued: bool = False  # all true at once: the predicate holds several values
    text: str = ""  # none of them: the right claim, in the reviewer's words
    object: str = ""  # of the right claim; empty: later values of its key are not questioned against it

    def to_dict(self) -> dict[str, Json]:
        """The choice as JSON, without text and object, which have columns of their own because they are memory text."""
        chosen: dict[str, Json] = {}
        if self.keep is not None:
            chosen["keep"] = self.keep
        if self.both:
            chosen["both"] = [[pk, _iso(start), _iso(end)] for pk, start, end in self.both]
        if self.many_valued:
            chosen["many_valued"] = True
        if self.text:
            chosen["text"] = True
        if self.object:
            chosen["object"] = True
        return chosen

    def cleaned(self) -> Decision:
        """The same with the reviewer's words as a database can hold them, without space around them."""
        return replace(self, text=clean(self.text)[0].strip(), object=clean(self.object)[0].strip())


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


# --- what was shown -------------------------------------------------------------------------------------------------


def digest_of(*, operation: Operation, rows: Sequence[Observation | Episode], policy_hash: str) -> str:
    """sha256 of the operation with its decision, its sources as they stand in `rows`, and the policy. No query."""
    decision: dict[str, Json] = {
        "product": operation.product,
        "keeper": operation.keeper_id,
        "chosen": operation.decision,
        "text": operation.decision_text,
    }
    if operation.decision_object:  # approvals from before there was one keep their digest
        decision["object"] = operation.decision_object
    if says := [operation.text, operation.claim_subject, operation.claim_predicate, operation.claim_object]:
        decision |= {"says": says} if any(says) else {}
    shown = [Shown(id=row.pk, version=row.version, status=row.status, content_hash=row.content_hash) for row in rows]
    return digest(
        operation=operation.op_id,
        generation=operation.generation,
        kind=Kind(operation.kind),
        decision=decision,
        sources=shown,
        policy=policy_hash,
    )


def policy_of(scope: str) -> Rules:
    """The policy that holds for a scope's name. Raises Refused where it cannot be read: nothing is applied then."""
    try:
        return Policy.objects.effective(scope=scope)
    except PolicyError as fault:
        raise unreadable(scope, fault) from fault


def unreadable(scope: str, fault: PolicyError) -> Refused:
    """What to say when the policy of a scope cannot be read."""
    return Refused(f"The policy of {scope} cannot be read: {fault}")


def shown_digest(*, operation: Operation) -> str:
    """The digest a page carries in its form: the operation as it is proposed and its sources as they stand now. Three
    queries.
    """
    policy = policy_of(operation.scope.name)
    return _proposed_digest(operation=operation, rows=_rows(operation), policy_hash=policy.hash)


def _proposed_digest(*, operation: Operation, rows: Sequence[Observation | Episode], policy_hash: str) -> str:
    """The same of rows and a policy that were read. No query."""
    undecided = Operation(
        op_id=operation.op_id,
        generation=operation.generation,
        kind=operation.kind,
        product=operation.product,
        keeper_id=operation.keeper_id,
        text=operation.text,
        claim_subject=operation.claim_subject,
        claim_predicate=operation.claim_predicate,
        claim_object=operation.claim_object,
    )
    return digest_of(operation=undecided, rows=rows, policy_hash=policy_hash)


def sources_of(operation: Operation) -> list[OperationSource]:
    """An operation's sources in their order. One query."""
    return list(OperationSource.objects.filter(scope_id=operation.scope_id, operation=operation).order_by("position"))


def _rows(operation: Operation) -> list[Observation] | list[Episode]:
    if operation.kind in OF_EPISODES:
        turns = Episode.objects.filter(scope_id=operation.scope_id, operation_sources__operation=operation)
        return list(turns.order_by("id"))
    return list(
        Observation.objects.filter(scope_id=operation.scope_id, operation_sources__operation=operation).order_by("id")
    )


def changes(
    *,
    operation: Operation,
    sources: Sequence[OperationSource],
    rows: Mapping[int, Observation | Episode],
) -> list[str]:
    """What moved since planning, a clause per source: "obs_7 was superseded by obs_9". Empty: nothing did. No query.

    An alias is about two names: only a record that was erased changes what it rests on.
    """
    found = []
    for source in sources:
        row = rows.get(source.row_id)
        if row is None:
            found.append(f"{shown(source)} is gone")
        elif (row.version, row.content_hash) == (source.planned_version, source.planned_hash):
            continue
        elif operation.kind != Kind.ALIAS or row.status == Status.ERASED:
            successor = row.superseded_by_id if isinstance(row, Observation) else None
            by = f" by {obs(successor)}" if successor else ""
            found.append(f"{shown(source)} {MOVED.get(Status(row.status), 'changed')}{by}")
    return found


def shown(source: OperationSource) -> str:
    """How a source's id is shown."""
    return obs(source.observation_id) if source.observation_id else ep(source.episode_id or 0)


def refuse_changed(*, operation: Operation, digest: str) -> None:
    """Raises Changed, saying what changed, when an operation is no longer what a page showed. Five queries at most."""
    if digest == shown_digest(operation=operation):
        return
    rows = {row.pk: row for row in _rows(operation)}
    moved = "; ".join(changes(operation=operation, sources=sources_of(operation), rows=rows))
    raise Changed(f"{operation.op_id} is not what was shown any more: {moved or 'the policy or a record changed'}.")


def moved_since_approval(*, operation: Operation) -> str:
    """What changed since an operation was approved, in a clause; empty: its digest still holds. Four queries."""
    rows, policy = _rows(operation), policy_of(operation.scope.name)
    if digest_of(operation=operation, rows=rows, policy_hash=policy.hash) == operation.approved_digest:
        return ""
    moved = changes(operation=operation, sources=sources_of(operation), rows={row.pk: row for row in rows})
    return "; ".join(moved) or "the policy or a record changed"


# --- decisions ------------------------------------------------------------------------------------------------------


def find(name: str) -> Operation:
    """The newest generation of an operation by its id, or by a beginning of it that names only one. Raises Refused."""
    if not name.startswith("op_") or "%" in name:
        raise Refused(f"{name[:60]!r} is not an operation id: give one that starts with 'op_', as the plan prints it.")
    rows = Operation.objects.filter(op_id__startswith=name).select_related("scope").order_by("op_id", "-generation")
    ids = {row.op_id for row in rows[:50]}
    if len(ids) > 1:
        raise Refused(f"{name} begins the ids of {len(ids)} operations: give more of it.")
    first = rows.first()
    if first is None:
        raise Refused(f"There is no operation {name[:60]}: `consolidate plan --json` lists the ids.")
    return first


@transaction.atomic
def approve(
    *,
    operation: Operation,
    by: str,
    digest: str = "",
    decision: Decision | None = None,
    reason: str = "",
    wide: bool = False,
) -> Operation:
    """Approve exactly what was shown. `digest` is the page's; without one, what the planner recorded must still stand.
    Where the policy wants two people, `needs_second` says that another one has to agree before it is applied; `wide`:
    it wants two for all that is approved together with this.

    Raises AlreadyDecided, Changed, or Refused with a sentence. An approval may be given again after it expired.
    """
    locked = _lock(operation)
    _refuse_decided(locked)
    if locked.approval == Approval.NEVER:
        raise Refused(f"{locked.op_id} is never applied: {locked.skipped_reason}.")
    if locked.kind == Kind.FORGET:
        raise Refused(f"{locked.op_id}: {NOT_CARRIED_OUT} Reject it, or leave it waiting.")
    if same_person(by, locked.requested_by):
        raise Refused(f"{by} asked for {locked.op_id}, and who proposes never approves: another reviewer decides it.")
    if locked.kind in REASON_REQUIRED and not reason.strip():
        raise Refused(f"A {locked.kind} needs a reason: say why in one line.")
    sources = sources_of(locked)
    chosen = _checked(locked, sources, (decision or Decision()).cleaned())
    rows = _rows(locked)
    if chosen.many_valued and not key_of(rows=rows)[1]:
        raise Refused(NO_PREDICATE)
    if chosen.object and not all(key_of(rows=rows)):
        raise Refused(NO_KEY)
    moved = changes(operation=locked, sources=sources, rows={row.pk: row for row in rows})
    policy = policy_of(locked.scope.name)
    other_policy = (
        not digest and policy.hash != locked.policy_hash
    )  # a page's digest holds the policy it was shown under
    now_shown = _proposed_digest(operation=locked, rows=rows, policy_hash=policy.hash) if digest else ""
    if moved or other_policy or digest != now_shown:
        other = "the policy changed" if policy.hash != locked.policy_hash else "the page showed something else"
        what = "; ".join(moved) or other
        raise Changed(f"{locked.op_id} is not what was shown any more: {what}. Look again, or plan again.")
    locked.decision, locked.decision_text, locked.decision_object = chosen.to_dict(), chosen.text, chosen.object
    locked.approved_digest = digest_of(operation=locked, rows=rows, policy_hash=policy.hash)
    now = database_now()
    locked.approval_expires_at = now + timedelta(hours=policy.approval_ttl_hours)
    locked.needs_second = wide or bool(needs_second(operation=locked, policy=policy))
    return _decide(locked, to=State.APPROVED, by=by, reason=reason, now=now)


@transaction.atomic
def reject(*, operation: Operation, by: str, reason: str, withdraw: bool = False) -> Operation:
    """Say no, with a reason; final until the sources or the policy change. Raises AlreadyDecided or Refused.

    An approval stands against a rejection that did not know of it (C16); `withdraw` says that it is known and taken
    back.
    """
    locked = _lock(operation)
    if not (withdraw and locked.status == State.APPROVED):
        _refuse_decided(locked)
    if not reason.strip():
        raise Refused("A rejection needs a reason: say why in one line.")
    return _decide(locked, to=State.REJECTED, by=by, reason=reason)


@transaction.atomic
def distinct(*, operation: Operation, by: str, reason: str = "") -> Operation:
    """Say that the sources are different claims: no pair of them is ever proposed together again. Raises
    AlreadyDecided or Refused.
    """
    locked = _lock(operation)
    _refuse_decided(locked)
    if locked.n_sources < 2 or locked.kind not in TELLS_APART:
        raise Refused(f"{locked.op_id} holds no two claims to tell apart. Reject it instead.")
    remember_distinct(operation=locked, ids=[source.row_id for source in sources_of(locked)], by=by)
    return _decide(locked, to=State.DISTINCT, by=by, reason=reason)


def remember_distinct(*, operation: Operation, ids: Sequence[int], by: str) -> None:
    """Remember for good that every pair of these observations is two claims. One query."""
    Verdict.objects.bulk_create(
        [
            Verdict(scope_id=operation.scope_id, low_id=low, high_id=high, by=by, operation=operation.op_id)
            for low, high in combinations(sorted(set(ids)), 2)
        ],
        ignore_conflicts=True,
    )


def key_of(*, rows: Iterable[Observation | Episode]) -> tuple[str, str]:
    """Subject and predicate whose values are in question, in the newest row's words, its given key included; "" where
    nobody named one. One query.
    """
    claims = [row for row in rows if isinstance(row, Observation)]
    if not claims:
        return "", ""
    newest = max(claims, key=lambda row: (row.created_at, row.pk))
    given = GivenKey.objects.filter(scope_id=newest.scope_id, observation=newest, state=GivenKey.State.GIVEN).first()
    subject, predicate, _ = newest.key_with(given)
    return subject, predicate


def opened(*, operation: Operation, by: str, plan: Plan | None = None) -> None:
    """Remember that a person opened the item, in one plan or in all that hold it; the first time counts (R94, R116).
    One query.
    """
    items = PlanItem.objects.filter(scope_id=operation.scope_id, operation=operation, opened_at=None)
    if plan is not None:
        items = items.filter(plan=plan)
    items.update(opened_at=ClockTimestamp(), opened_by=by)


def _lock(operation: Operation) -> Operation:
    """The operation's row, locked: of two reviewers, one decides and the other reads what was decided (C16)."""
    locked = Operation.objects.select_for_update().get(pk=operation.pk)
    locked.scope = operation.scope  # no operation changes its scope
    return locked


def _refuse_decided(operation: Operation) -> None:
    if operation.status in DECIDABLE:
        return
    if operation.status == State.APPROVED and expired(operation, now=database_now()):
        return
    if not operation.decided_by:
        raise AlreadyDecided(
            f"{operation.op_id} is {operation.status}: {operation.outcome or 'nothing is left to decide'}."
        )
    when = f"{operation.decided_at:%Y-%m-%d %H:%M} UTC" if operation.decided_at else "earlier"
    raise AlreadyDecided(f"{operation.op_id} is {operation.status}: {operation.decided_by} decided it on {when}.")


def expired(operation: Operation, *, now: datetime) -> bool:
    """True when the operation was approved and the approval has run out. No query."""
    return operation.approval_expires_at is not None and operation.approval_expires_at <= now


def _checked(operation: Operation, sources: Sequence[OperationSource], decision: Decision) -> Decision:
    """The decision, refused where it does not fit the kind or names what is not a source."""
    ids = {source.observation_id for source in sources}
    named = {decision.keep} - {None} | {pk for pk, _, _ in decision.both}
    if not named <= ids:
        strangers, offered = (", ".join(obs(pk) for pk in sorted(filter(None, some))) for some in (named - ids, ids))
        raise Refused(f"{strangers} is not a source of {operation.op_id}: choose one of {offered}.")
    ways = sum([decision.keep is not None, bool(decision.both), decision.many_valued, bool(decision.text)])
    if operation.kind == Kind.SUPERSEDE and ways != 1:
        raise Refused("Choose one: which claim stays, that all are true, or the right claim in your words.")
    if operation.kind != Kind.SUPERSEDE and (decision.both or decision.many_valued or decision.text):
        raise Refused(f"A {operation.kind} only takes which text to keep.")
    if operation.edited_from_id and decision.keep is not None:
        raise Refused("An edit says itself which text stays: approve it as it stands, or edit it again.")
    if operation.kind not in (Kind.SUPERSEDE, Kind.MERGE) and decision.keep is not None:
        raise Refused(f"A {operation.kind} keeps no text: approve it as it stands.")
    if decision.both and sorted(pk for pk, _, _ in decision.both) != sorted(filter(None, ids)):
        raise Refused("All are true: give every claim its period, each once.")
    for pk, start, end in decision.both:
        if start and end and start > end:
            raise Refused(f"The period of {obs(pk)} ends before it begins.")
    _check_words(decision)
    return decision


def _check_words(decision: Decision) -> None:
    """Refuse words that do not fit, and an object that belongs to nothing."""
    for name, words, limit in (("claim", decision.text, TEXT_LIMIT), ("object", decision.object, OBJECT_LIMIT)):
        if len(words) > limit:
            raise Refused(f"The right {name} has {len(words):,} characters: {limit:,} are the most that fit.")
    if decision.object and not decision.text:
        raise Refused("An object belongs to the right claim in your words: write the claim too, or leave it out.")


def _decide(operation: Operation, *, to: State, by: str, reason: str, now: datetime | None = None) -> Operation:
    before = operation.status
    operation.status, operation.decided_by, operation.decided_at = to, by, now or database_now()
    operation.decision_reason = reason.strip()[:500]
    operation.seconded_by, operation.seconded_at = "", None  # what somebody agreed to was the decision before
    operation.needs_second = operation.needs_second and to == State.APPROVED
    operation.save(
        update_fields=[
            *("status", "decided_by", "decided_at", "decision_reason", "decision", "decision_text", "decision_object"),
            *("approved_digest", "approval_expires_at", "needs_second", "seconded_by", "seconded_at"),
        ]
    )
    Event.objects.append(
        scope_id=operation.scope_id,
        action=to,
        actor=by,
        subject=operation.op_id,
        generation=operation.generation,
        detail={"from": before, "chosen": operation.decision, "digest": operation.approved_digest},
    )
    return operation
