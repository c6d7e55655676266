"""The focus view as values: one item with its question, what may be answered by which key, and what was decided last.

A drill is read by the same functions from an operation that is never stored, so that nothing tells it from a merge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models.functions import Coalesce, Length

from consolidation import review
from consolidation.admin.item import resulting as item_resulting
from consolidation.admin.item import sources as item_sources
from consolidation.admin.item import turns as item_turns
from consolidation.admin.item import values as item_values
from consolidation.admin.item.resulting import Otherwise, Result
from consolidation.admin.item.sources import Source
from consolidation.admin.item.turns import Turn
from consolidation.admin.item.values import Values
from consolidation.admin.queue.focus_acts import QUESTIONS, Act, acts, reasons_to_approve, reasons_to_reject
from consolidation.admin.queue.focus_tokens import Named, token_of
from consolidation.admin.reading import Chip, proposed_digest
from consolidation.admin.texts import WHOLE, when
from consolidation.models import Drill, Operation, OperationSource
from consolidation.operations import OF_EPISODES, Approval, Kind, Proposal, Risk, State, visible
from consolidation.policy import Policy as Rules
from observations.models import Episode, Observation

LONGEST: Final = WHOLE  # characters of one text that this view shows
ROOM: Final = 60_000  # characters of all texts together
PIECES: Final = 200  # records or episodes
EXCERPT: Final = 600  # characters of each text of what is not shown whole
TOO_LONG: Final = "It is too long to be shown whole here: read all of it on its own page, and decide it there."
_NEAR: Final = 0.89  # a drill's similarity is from there on, as those of merges that people are asked about
# What a drill says against an automatic merge, of what holds for any pair; its objects differ, so its keys do.
_KEYS_DIFFER: Final = "keys differ"
_OF_ANY_PAIR: Final = ("embedder not calibrated", "similarity under ")
_TONES: Final = {Risk.LOW: "quiet", Risk.MEDIUM: "wait", Risk.HIGH: "warn"}


# --- one item ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One item in the middle of the page."""

    token: str
    kind: str
    question: str
    why: str  # in one line
    scope: str
    risk: Chip
    at: str
    iso: str
    asked_by: str
    sources: tuple[Source, ...]  # side by side
    result: Result | None  # the record that would be written, with every field of it
    result_says: str  # what that is, or what would happen where nothing is written
    otherwise: tuple[Otherwise, ...]  # what keeping another text would write besides
    too_long: str  # why it is not approved here, in a sentence; empty: all of it is shown
    turns: tuple[Turn, ...]  # what a product rests on
    more_turns: int
    names: tuple[str, str] | None  # of an alias
    values: Values | None  # of a contradiction
    periods: tuple[tuple[int, str, str, str], ...]
    met: tuple[str, ...]  # what the rule saw, a line per pair
    acts: tuple[Act, ...]
    to_approve: tuple[str, ...]  # reasons offered; empty: none is needed
    to_reject: tuple[str, ...]
    digest: str
    changed: tuple[str, ...]
    fault: str

    @property
    def beside(self) -> bool:
        """The sources are two or more claims to compare."""
        return len(self.sources) > 1

    @property
    def evidence(self) -> int:
        """Pieces of evidence that may be unfolded; a product's episodes are no such: they stand open."""
        return sum(source.evidence for source in self.sources)


def card_of(*, operation: Operation, at: Named, user_id: int, now: datetime) -> Card:
    """One operation, whose scope was selected with it. Nine queries at most, however many sources it has."""
    return _card(operation, review.sources_of(operation), token=token_of(at, user_id=user_id), now=now)


def drill_card(*, drill: Drill, at: Named, user_id: int, now: datetime) -> Card:
    """A drill, read as the merge it stands for. Nine queries."""
    operation, sources = _stand_in(drill)
    return _card(operation, sources, token=token_of(at, user_id=user_id), now=now)


def _stand_in(drill: Drill) -> tuple[Operation, list[OperationSource]]:
    """The merge that no rule proposed: never stored, and no table holds anything of it. One query."""
    rows = (drill.low, drill.high)
    like = _like(drill)
    pair = _pair(drill, like)
    said = "no vectors" if pair["cosine"] is None else f"similarity from {pair['cosine']:.3f}"
    proposal = Proposal(
        kind=Kind.MERGE,
        scope_id=drill.scope_id,
        sources=(drill.low_id, drill.high_id),
        approval=Approval.NEEDS_HUMAN,
        reason=f"2 similar rows, {said}; not automatic: {', '.join(sorted(pair['failed']))}",
        keeper=drill.high_id,
        signals={"pairs": [pair]},
    )
    operation = Operation(
        op_id=proposal.id,
        scope=drill.scope,
        kind=proposal.kind,
        approval=proposal.approval,
        status=State.NEEDS_HUMAN,
        reason=proposal.reason,
        signals=dict(proposal.signals),
        keeper_id=proposal.keeper,
        n_sources=len(rows),
        risk=proposal.risk,
        created_at=max(like.created_at if like else drill.at, *(row.created_at for row in rows)),
    )
    sources = [
        OperationSource(
            scope=drill.scope,
            observation_id=row.pk,
            position=position,
            planned_version=row.version,
            planned_hash=row.content_hash,
        )
        for position, row in enumerate(rows)
    ]
    return operation, sources


def _like(drill: Drill) -> Operation | None:
    """The newest merge of two that was proposed in the scope before the drill: proposed when it was, a drill is no
    younger than what it stands among. One query.
    """
    merges = Operation.objects.filter(scope_id=drill.scope_id, kind=Kind.MERGE, n_sources=2, requested_by="")
    return merges.filter(created_at__lte=drill.at).order_by("-pk").only("signals", "created_at").first()


def _pair(drill: Drill, like: Operation | None) -> dict[str, Any]:
    """What a rule would have seen of the two: as near as the pair of another merge, with what that says of any pair."""
    seen: dict[str, Any] = next(iter(like.signals.get("pairs", [])), {}) if like else {}
    of_any = [str(name) for name in seen.get("failed", []) if str(name).startswith(_OF_ANY_PAIR)]
    return {
        "a": drill.low_id,
        "b": drill.high_id,
        "cosine": seen["cosine"] if of_any else _NEAR + drill.pk % 70 / 1000,  # planted as all of it is
        "met": ["subject_predicate", "neighbour"] if drill.low.sp_key == drill.high.sp_key != 0 else ["neighbour"],
        "verdict": "ask",
        "failed": [_KEYS_DIFFER, *of_any],
    }


def _card(operation: Operation, sources: Sequence[OperationSource], *, token: str, now: datetime) -> Card:
    records = item_sources.read_records(operation, sources)
    turns = item_turns.read_turns(operation, sources) if operation.kind in OF_EPISODES else {}
    standing: Mapping[int, Observation | Episode] = turns if operation.kind in OF_EPISODES else records.rows
    mine = [standing[source.row_id] for source in sources if source.row_id in standing]
    policy, fault = _policy(operation)
    long = too_long(operation, [len(standing[one.row_id].text or "") for one in sources if one.row_id in standing])
    most = EXCERPT if long else None
    shown = item_sources.cards(operation, records, most=most)
    changed = tuple(review.changes(operation=operation, sources=sources, rows=standing))
    values = item_values.values(operation, records, shown, now=now)
    fact = item_turns.fact(operation, turns, None, most=most)
    summary = item_turns.summary(operation, turns, None, most=most)
    text = fact.text if fact else summary.text if summary else None
    results = item_resulting.read_results(
        operation, sources, (records, turns), policy, text=text, order=[] if long else _lettered(shown)
    )
    told = _turns(fact, summary)
    risk = Risk(operation.risk)
    offered = acts(
        operation=operation,
        sources=[source.id for source in shown],
        values=values,
        approvable=not (changed or fault or long),
        open=not fault,
        edits=_edits(operation),
    )
    return Card(
        token=token,
        kind=operation.kind,
        question=QUESTIONS[Kind(operation.kind)],
        why=visible(operation.skipped_reason or operation.reason),
        scope=visible(operation.scope.name),
        risk=Chip(f"{risk.name.lower()} risk", _TONES[risk]),
        at=when(operation.created_at),
        iso=operation.created_at.isoformat(),
        asked_by=visible(operation.requested_by),
        sources=shown,
        result=results.result if not long else None,
        result_says=_says(operation, results.result, policy, values),
        otherwise=results.otherwise,
        too_long=long,
        turns=told[:PIECES],
        more_turns=len(told[PIECES:]),
        names=_names(operation),
        values=values,
        periods=tuple(item_values.periods(shown, {})) if values else (),
        met=tuple(_met(pair) for pair in item_sources.pairs(operation)),
        acts=(*([_READ] if long and not (changed or fault) else []), *offered),
        to_approve=reasons_to_approve(operation),
        to_reject=reasons_to_reject(operation),
        digest=proposed_digest(operation=operation, rows=mine, policy_hash=policy.hash),
        changed=changed,
        fault=fault,
    )


def _policy(operation: Operation) -> tuple[Rules, str]:
    """The policy it stands under, or the defaults and why its own cannot be read. One query."""
    try:
        return review.policy_of(operation.scope.name), ""
    except review.Refused as refusal:
        return Rules(), str(refusal)


def _edits(operation: Operation) -> bool:
    """Whether there is something of it that an edit changes."""
    return operation.kind in (Kind.MERGE, Kind.PROMOTE, Kind.COMPACT)


def _says(operation: Operation, result: Result | None, policy: Rules, values: Values | None) -> str:
    """What the record is that would be written, or what would happen where none is. No query."""
    number = operation.n_sources
    match operation.kind:
        case Kind.MERGE:
            return f"One record would stand for the {number}, which leave the reads whole" if result else ""
        case Kind.PROMOTE:
            return f"A fact would be written, on the word of {number} episodes"
        case Kind.COMPACT:
            return f"A summary would stand for {number} episodes, which stay whole"
        case Kind.SUPERSEDE:
            return _settles(values)
        case Kind.ARCHIVE:
            return "It would leave the reads. Undo brings it back."
        case Kind.PRUNE:
            days = policy.grace_days
            return f"It leaves the reads, and its words are erased for good after a grace period of {days} days."
        case Kind.ALIAS:
            return "Planning would treat both as one subject. No record is rewritten."
        case Kind.FORGET:
            return review.NOT_CARRIED_OUT.capitalize()
        case _:
            return ""


def _settles(values: Values | None) -> str:
    """What keeping one of several values does, beside what its button says."""
    if values is None:
        return ""
    learnt = f" It is remembered here that “{values.predicate}” holds one value at a time." if values.predicate else ""
    return f"No record is rewritten: the claim you keep stays, and the others leave the reads as superseded.{learnt}"


def _lettered(shown: Sequence[Source]) -> list[int]:
    """The sources whose text may be kept by a key."""
    return [one.id for one in shown] if len(shown) <= item_resulting.LETTERED else []


def _turns(fact: item_turns.Fact | None, summary: item_turns.Summary | None) -> tuple[Turn, ...]:
    """The episodes of a product, marked as its own page marks them. No query."""
    if fact:
        return tuple(turn for witness in fact.witnesses for turn in witness.turns)
    return summary.turns if summary else ()


# --- what is too long -------------------------------------------------------------------------------------------------

_READ: Final = Act(key="a", label="Read all of it", value="open", edits=True, hint="and decide it on its own page")


def too_long(operation: Operation, lengths: Sequence[int]) -> str:
    """Why an item is not approved in this view, in a sentence; empty where all that it is about is shown. `lengths`:
    characters of each record or episode. No query.
    """
    every = [*lengths, len(operation.text)]
    fits = max(every) <= LONGEST and sum(every) <= ROOM and len(lengths) <= PIECES
    return "" if fits or operation.kind == Kind.FORGET else TOO_LONG


def refuse_unread(*, operation: Operation) -> None:
    """Nobody approves what they did not see: raises review.Refused for what this view does not show whole (D2). One
    query.
    """
    texts = OperationSource.objects.filter(scope_id=operation.scope_id, operation=operation)
    lengths = texts.values_list(Length(Coalesce("observation__text", "episode__text")), flat=True)
    if why := too_long(operation, [length or 0 for length in lengths]):
        raise review.Refused(why)


def refuse_unread_drill(*, drill: Drill) -> None:
    """The same of a drill, in the same words; `low` and `high` must have been selected with it. No query."""
    if why := too_long(Operation(kind=Kind.MERGE), [len(row.text or "") for row in (drill.low, drill.high)]):
        raise review.Refused(why)


def _names(operation: Operation) -> tuple[str, str] | None:
    if operation.kind != Kind.ALIAS:
        return None
    return visible(operation.claim_subject), visible(operation.claim_object)


def _met(pair: item_sources.Pair) -> str:
    against = f"; against an automatic merge: {', '.join(pair.objections)}" if pair.objections else ""
    return f"{pair.a} and {pair.b} met by {pair.met or 'nothing named'}, similarity {pair.cosine}{against}"


# --- what was decided last --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Last:
    """One of the last decisions of this reviewer."""

    pk: int
    token: str
    word: str
    tone: str
    kind: str
    about: str
    at: str
    iso: str
    undo: bool  # it may be taken back here
    applied: bool  # it is undone on its own page
    may_apply: bool  # by this reviewer


@dataclass(frozen=True, slots=True)
class Decided:
    """One operation that this reviewer decided or put off, as it stands now."""

    pk: int
    op_id: str
    kind: str
    status: str
    at: datetime
    put_off: bool
    may_apply: bool  # this reviewer applies and undoes in its scope


def last_of(one: Decided, *, user_id: int) -> Last:
    """One line of the side list. No query."""
    tones = {State.APPROVED: "go", State.APPLIED: "done", State.REJECTED: "no", State.DISTINCT: "no"}
    return Last(
        pk=one.pk,
        token=token_of(Named(one.pk), user_id=user_id),
        word="put off" if one.put_off else one.status,
        tone="quiet" if one.put_off else tones.get(State(one.status), "quiet"),
        kind=one.kind,
        about=one.op_id[:11],
        at=when(one.at),
        iso=one.at.isoformat(),
        undo=one.put_off or one.status in (State.APPROVED, State.REJECTED, State.DISTINCT),
        applied=one.status == State.APPLIED,
        may_apply=one.may_apply,
    )
