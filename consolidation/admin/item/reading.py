"""Everything the page of one operation shows, read in a fixed number of queries and turned into values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from consolidation import policy as rules
from consolidation import review, runner
from consolidation.admin.item import fields as item_fields
from consolidation.admin.item import lost as item_lost
from consolidation.admin.item import products as item_products
from consolidation.admin.item import resulting as item_resulting
from consolidation.admin.item import sources as item_sources
from consolidation.admin.item import turns as item_turns
from consolidation.admin.item import values as item_values
from consolidation.admin.item import why as item_why
from consolidation.admin.item.sources import Pair, Records, Source
from consolidation.admin.reading import Chip, proposed_digest, state_chip
from consolidation.admin.telling import Happened, happened
from consolidation.admin.texts import Edit, Text, day, flat, signed, snippet, when, whole
from consolidation.models import Operation, OperationSource, PlanItem, held
from consolidation.operations import OF_EPISODES, Approval, Kind, State, obs, plan, visible
from observations.models import Episode, Event, Observation, database_now

_SEE: Final = re.compile(r"see (op_[0-9a-f]{32})$")
_KNOWN: Final = re.compile(r"^already known as obs_([0-9]{1,18})$")
# What other parts of the page say, in words.
_SHOWN_ELSEWHERE: Final = (
    *("pairs", "refinements", "discriminator", "confidence", "prompt", "asked_about", "characters"),
    *("first_said_at", "age_days", "half_life_days", "strength", "last_used_at"),
    *("suggested_keep", "suggested", "why", "order"),
    *("support", "episodes", "roots", "verified", "outside", "stated_by"),
    *("lost", "lost_at", "invented", "invented_at", "not_mentioned", "not_named", "not_checked", "specifics"),
    *("unfounded_sentences", "claimed", "parts_refused", "fields"),
)
_CALLED: Final = {  # what a rule noted, where its own name for it is no words
    "older_than_days": "older than, in days",
    "only_unused": "only if never used",
    "uses_since_derivation": "uses since it was derived",
    "derived": "derived from these",
}
_OF_A_REQUEST: Final = ("asked", "rows", "all")
EVENTS_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class InPlan:
    """One plan that holds the item."""

    pk: int
    name: str
    opened: str


@dataclass(frozen=True, slots=True)
class Head:
    """What was proposed."""

    pk: int
    op_id: str
    generation: int
    kind: str
    state: Chip
    status: str
    automatic: bool
    never: bool  # shown with its reason, never applied
    scope: str
    scope_id: int
    title: str  # the skip, or the first clause of the reason
    reason: str  # the rest
    skipped: bool
    score: str
    created: str
    asked_by: str  # a person, where the planner did not propose it
    suggested: int | None
    see: str  # the operation that a skip points to; empty: none
    known: int | None  # the observation that says it already


@dataclass(frozen=True, slots=True)
class Request:
    """What a program, the background or a person asked a person to decide."""

    by: str
    at: str
    why: str
    rows: str  # how many a request to forget is about, all that was derived from them among them; empty: another kind
    listed: int
    everything: bool  # all of the scope
    not_carried_out: str  # why it can only be rejected; empty: it can be approved


@dataclass(frozen=True, slots=True)
class Fate:
    """What was decided, and what became of it."""

    decided: str
    choice: str
    choice_text: Text | None
    choice_object: str
    reason: str
    expires: str
    expired: bool
    applied: str
    undone: str
    outcome: str
    derived: int | None
    derived_text: str


@dataclass(frozen=True, slots=True)
class Item:
    """The page. Of `product` to `faded`, those of the operation's kind are there."""

    head: Head
    request: Request | None
    fate: Fate
    plans: tuple[InPlan, ...]
    sources: tuple[Source, ...]  # observations; a promotion's and a compaction's are in `fact` and `summary`
    pairs: tuple[Pair, ...]
    figures: tuple[tuple[str, str], ...]
    product: item_products.Product | None
    result: item_resulting.Result | None  # every field of what would be written
    otherwise: tuple[item_resulting.Otherwise, ...]  # of a merge, where another text is kept
    fact: item_turns.Fact | None
    summary: item_turns.Summary | None
    values: item_values.Values | None
    names: item_products.Names | None
    faded: item_products.Faded | None
    fields: item_fields.Fields | None
    losses: item_lost.Losses | None  # of a merge
    compared: tuple[tuple[str, Edit], ...]  # sources against the result, word by word
    why: item_why.Why
    not_editable: str  # why it cannot be edited; empty: it can
    history: tuple[Happened, ...]
    digest: str  # of what is shown; every form carries it, but the one that applies
    to_apply: str  # of what applying would do: an approval with its decision, or the proposal
    waits: str  # why nothing may be applied in this scope now; empty: it may
    changed: tuple[str, ...]  # what moved since planning, while the item is open
    fault: str  # why the policy cannot be read: nothing is decided or applied then; empty: it can

    @property
    def decidable(self) -> bool:
        """A person may decide it."""
        if self.fault:
            return False
        if self.head.status == State.APPROVED:
            return self.fate.expired
        return self.head.status in review.DECIDABLE and not self.head.never

    @property
    def withdrawable(self) -> bool:
        """It is approved, and may still be refused."""
        return self.head.status == State.APPROVED and not self.fate.expired and not self.fault

    @property
    def approvable(self) -> bool:
        """An approval would say something new, and this version carries it out."""
        forgets = self.request is not None and bool(self.request.not_carried_out)
        return self.decidable and not self.changed and not forgets

    @property
    def editable(self) -> bool:
        """An edit may take its place."""
        return self.decidable and not self.changed and not self.not_editable

    @property
    def appliable(self) -> bool:
        """It may be applied as it stands."""
        if self.fault:
            return False
        if self.head.status == State.APPROVED:
            return not self.fate.expired
        return self.head.status == State.PLANNED and self.head.automatic

    @property
    def undoable(self) -> bool:
        """It is applied."""
        return self.head.status == State.APPLIED

    @property
    def reversible(self) -> bool:
        """Approving and applying may be one step."""
        return self.head.kind in runner.REVERSIBLE

    @property
    def several(self) -> bool:
        """There are sources to tell apart."""
        return len(self.sources) > 1 and self.head.kind in review.TELLS_APART

    @property
    def reason_required(self) -> bool:
        """Approving needs a reason too."""
        return self.head.kind in review.REASON_REQUIRED


def read_item(operation: Operation) -> Item:
    """The page of one operation, whose scope was selected with it. Sixteen queries at most, however many sources it
    has.
    """
    now = database_now()
    sources = review.sources_of(operation)
    records = item_sources.read_records(operation, sources)
    turns, asked = _turns(operation, sources)
    standing: Mapping[int, Observation | Episode] = turns if operation.kind in OF_EPISODES else records.rows
    mine = [standing[source.row_id] for source in sources if source.row_id in standing]
    policy, fault = _policy(operation)
    open_now = operation.status in (*review.DECIDABLE, State.APPROVED)
    shown = item_sources.cards(operation, records)
    fact = item_turns.fact(operation, turns, asked)
    summary = item_turns.summary(operation, turns, asked)
    text = fact.text if fact else summary.text if summary else None
    order = [one.id for one in shown]
    results = item_resulting.read_results(operation, sources, (records, turns), policy, text=text, order=order)
    made = results.merged
    return Item(
        head=_head(operation),
        request=_request(operation),
        fate=_fate(operation, records, now),
        sources=shown,
        pairs=item_sources.pairs(operation),
        figures=_figures(operation),
        product=item_products.product(made, records) if made else None,
        result=results.result,
        otherwise=results.otherwise,
        fields=item_fields.fields(operation, records, made),
        losses=item_lost.of_merge(records, made),
        compared=item_sources.word_by_word(operation, records, made.text if made else None),
        why=item_why.why(operation, [source.row_id for source in sources]),
        not_editable=review.refusal_to_edit(operation),
        fact=fact,
        summary=summary,
        values=item_values.values(operation, records, shown, now=now),
        names=item_products.names(operation, records, shown),
        faded=item_products.archived(operation, records, now=now, policy=policy),
        history=_history(operation),
        plans=_plans(operation),
        digest=(proposed := proposed_digest(operation=operation, rows=mine, policy_hash=policy.hash)),
        to_apply=operation.approved_digest or proposed,
        waits=held(scope=operation.scope, now=now),
        changed=tuple(review.changes(operation=operation, sources=sources, rows=standing)) if open_now else (),
        fault=fault,
    )


def _turns(
    operation: Operation, sources: Sequence[OperationSource]
) -> tuple[dict[int, Episode], item_turns.Asked | None]:
    """The episodes and the question they were asked about in. Two queries, none for what rests on observations."""
    if operation.kind not in OF_EPISODES:
        return {}, None
    return item_turns.read_turns(operation, sources), item_turns.read_asked(operation)


def _policy(operation: Operation) -> tuple[rules.Policy, str]:
    """The policy the item stands under, or the defaults and why its own cannot be read. One query."""
    try:
        return review.policy_of(operation.scope.name), ""
    except review.Refused as refusal:
        return rules.Policy(), str(refusal)


def _head(operation: Operation) -> Head:
    first, _, rest = operation.reason.partition("; ")
    return Head(
        pk=operation.pk,
        op_id=operation.op_id,
        generation=operation.generation,
        kind=operation.kind,
        state=state_chip(operation),
        status=operation.status,
        automatic=operation.approval == Approval.AUTO,
        never=operation.approval == Approval.NEVER,
        scope=visible(operation.scope.name),
        scope_id=operation.scope_id,
        title=visible(operation.skipped_reason or first),
        reason=visible(operation.reason if operation.skipped_reason else rest),
        skipped=bool(operation.skipped_reason),
        score="" if operation.score is None else f"{operation.score:.3f}",
        created=when(operation.created_at),
        asked_by=visible(operation.requested_by),
        suggested=operation.keeper_id,
        see=found.group(1) if (found := _SEE.search(operation.skipped_reason)) else "",
        known=int(known.group(1)) if (known := _KNOWN.match(operation.skipped_reason)) else None,
    )


def _request(operation: Operation) -> Request | None:
    """Who asked for it and why; None for what the planner proposed, and for aliases, whose page says it. No query."""
    asked = operation.product.get("asked")
    if not asked or not operation.requested_by:
        return None
    forgets = operation.kind == Kind.FORGET
    return Request(
        by=visible(operation.requested_by),
        at=when(operation.created_at),
        why="" if forgets else visible(str(asked)),
        rows=f"{operation.product.get('rows', operation.n_sources):,}" if forgets else "",
        listed=operation.n_sources,
        everything=bool(operation.product.get("all")),
        not_carried_out=review.NOT_CARRIED_OUT if forgets else "",
    )


def _fate(operation: Operation, records: Records, now: datetime) -> Fate:
    expires = operation.approval_expires_at if operation.status == State.APPROVED else None
    derived = records.rows.get(operation.derived_id or 0)
    return Fate(
        decided=_by(operation.decided_by, operation.decided_at),
        choice=_choice(operation),
        choice_text=whole(operation.decision_text) if operation.decision_text else None,
        choice_object=visible(operation.decision_object),
        reason=visible(operation.decision_reason),
        expires=when(expires),
        expired=expires is not None and expires <= now,
        applied=_by(operation.applied_by, operation.applied_at),
        undone=_by(operation.undone_by, operation.undone_at),
        outcome=visible(operation.outcome),
        derived=operation.derived_id,
        derived_text=snippet(derived.text) if derived else "",
    )


def _by(who: str, at: datetime | None) -> str:
    return signed(who, at)


def _choice(operation: Operation) -> str:
    """What the reviewer chose, in words."""
    chosen = operation.decision
    if chosen.get("keep"):
        return f"keep {obs(chosen['keep'])}"
    if chosen.get("both"):
        dated = ((obs(pk), start, end) for pk, start, end in chosen["both"])
        return "true in turn: " + "; ".join(f"{name} {_span(start, end)}" for name, start, end in dated)
    if chosen.get("many_valued"):
        return "all true at once"
    return "none of them: the right claim was written" if chosen.get("text") else ""


def _span(start: str | None, end: str | None) -> str:
    return f"{start[:10] if start else 'ever'} to {end[:10] if end else 'now'}"


def _figures(operation: Operation) -> tuple[tuple[str, str], ...]:
    """What else the rule noted."""
    noted = {**operation.signals, **operation.product}
    elsewhere = (*_SHOWN_ELSEWHERE, *_OF_A_REQUEST) if "asked" in operation.product else _SHOWN_ELSEWHERE
    rest = {name: value for name, value in noted.items() if name not in elsewhere}
    if "derived" in rest:
        rest["derived"] = f"obs_{rest['derived']}"
    return tuple((_CALLED.get(name) or name.replace("_", " "), value) for name, value in flat(rest))


def _history(operation: Operation) -> tuple[Happened, ...]:
    events = Event.objects.filter(scope_id=operation.scope_id, subject=operation.op_id).order_by("-id")[:EVENTS_SHOWN]
    return tuple(happened(event) for event in events)


def _plans(operation: Operation) -> tuple[InPlan, ...]:
    items = PlanItem.objects.filter(scope_id=operation.scope_id, operation=operation).order_by("-plan_id")[:20]
    return tuple(
        InPlan(
            pk=item.plan_id,
            name=plan(item.plan_id),
            opened=f"opened by {visible(item.opened_by)}, {day(item.opened_at)}" if item.opened_at else "not opened",
        )
        for item in items
    )
