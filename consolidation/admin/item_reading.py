"""Everything the page of one operation shows, read in a fixed number of queries and turned into values."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max

from consolidation import merge, review, runner
from consolidation import policy as rules
from consolidation.admin.reading import Chip, proposed_digest, state_chip
from consolidation.admin.telling import Happened, Witness, happened, key_words, status_chip, witness
from consolidation.admin.texts import Text, compared, day, flat, period, snippet, when, whole
from consolidation.models import Operation, OperationSource, PlanItem, held
from consolidation.operations import Approval, Kind, State, obs, plan, visible
from observations.models import Event, Evidence, Observation, Use, database_now

_SEE = re.compile(r"; see (op_[0-9a-f]{32})$")
_SHOWN_ELSEWHERE = ("pairs", "refinements", "suggested_keep", "why", "discriminator")
EVIDENCE_SHOWN = 6  # of one source
EVENTS_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Source:
    """One source, beside the others."""

    id: int
    name: str
    external_id: str
    text: Text
    status: Chip
    kept: bool
    key: str
    said: str  # when anyone first said it
    recorded: str
    by: str  # whose word it is
    via: str
    confidence: str
    valid: str
    valid_from: str  # ISO day, for a form
    valid_to: str
    witnesses: tuple[Witness, ...]
    more_witnesses: int
    roots: int
    uses: int
    last_used: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Why two sources met, and what stands between them."""

    a: str
    b: str
    cosine: str
    met: str
    verdict: Chip
    objections: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """The record a merge would write."""

    text: Text
    key: str
    confidence: str
    by: str
    said: str
    valid: str
    sources: int
    witnesses: int
    roots: int


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
    suggested: int | None
    see: str  # the operation that a skip points to; empty: none


@dataclass(frozen=True, slots=True)
class Fate:
    """What was decided, and what became of it."""

    decided: str
    choice: str
    choice_text: Text | None
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
    """The page."""

    head: Head
    fate: Fate
    plans: tuple[InPlan, ...]
    sources: tuple[Source, ...]
    pairs: tuple[Pair, ...]
    figures: tuple[tuple[str, str], ...]
    product: Product | None
    history: tuple[Happened, ...]
    digest: str  # of what is shown; every form carries it
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
        """An approval would say something new."""
        return self.decidable and not self.changed

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
        return len(self.sources) > 1


def read_item(operation: Operation) -> Item:
    """The page of one operation, whose scope was selected with it. Nine queries."""
    now = database_now()
    sources = review.sources_of(operation)
    rows = _observations(operation, sources)
    mine = [rows[source.observation_id] for source in sources if source.observation_id in rows]
    policy, fault = _policy(operation)
    evidence = _evidence(operation, [row.pk for row in mine])
    uses = _uses(operation, [row.pk for row in mine])
    open_now = operation.status in (*review.DECIDABLE, State.APPROVED)
    return Item(
        head=_head(operation),
        fate=_fate(operation, rows, now),
        sources=_cards(operation, sources, rows, evidence, uses),
        pairs=_pairs(operation),
        figures=_figures(operation),
        product=_product(operation, mine, evidence, uses, policy),
        history=_history(operation),
        plans=_plans(operation),
        digest=proposed_digest(operation=operation, rows=mine, policy_hash=policy.hash),
        waits=held(scope=operation.scope, now=now),
        changed=tuple(review.changes(operation=operation, sources=sources, rows=rows)) if open_now else (),
        fault=fault,
    )


def _policy(operation: Operation) -> tuple[rules.Policy, str]:
    """The policy the item stands under, or the defaults and why its own cannot be read. One query."""
    try:
        return review.policy_of(operation.scope.name), ""
    except review.Refused as refusal:
        return rules.Policy(), str(refusal)


def _observations(operation: Operation, sources: Sequence[OperationSource]) -> dict[int, Observation]:
    ids = [source.observation_id for source in sources] + [operation.derived_id]
    rows = Observation.objects.filter(scope_id=operation.scope_id, pk__in=[pk for pk in ids if pk])
    return {row.pk: row for row in rows}


def _evidence(operation: Operation, ids: Sequence[int]) -> defaultdict[int, list[Evidence]]:
    found: defaultdict[int, list[Evidence]] = defaultdict(list)
    for row in Evidence.objects.filter(scope_id=operation.scope_id, observation__in=ids).order_by(
        "observation_id", "id"
    ):
        found[row.observation_id].append(row)
    return found


def _uses(operation: Operation, ids: Sequence[int]) -> dict[int, tuple[int, datetime | None]]:
    counted = Use.objects.filter(scope_id=operation.scope_id, observation__in=ids).values("observation_id")
    return {
        row["observation_id"]: (row["n"], row["last"])
        for row in counted.annotate(n=Count("id"), last=Max("used_at")).order_by()
    }


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
        suggested=operation.keeper_id,
        see=found.group(1) if (found := _SEE.search(operation.skipped_reason)) else "",
    )


def _fate(operation: Operation, rows: Mapping[int, Observation], now: datetime) -> Fate:
    expires = operation.approval_expires_at if operation.status == State.APPROVED else None
    derived = rows.get(operation.derived_id or 0)
    return Fate(
        decided=_by(operation.decided_by, operation.decided_at),
        choice=_choice(operation),
        choice_text=whole(operation.decision_text) if operation.decision_text else None,
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
    return f"{visible(who)}, {when(at)}" if at else ""


def _choice(operation: Operation) -> str:
    """What the reviewer chose, in words."""
    chosen = operation.decision
    if chosen.get("keep"):
        return f"keep {obs(chosen['keep'])}"
    if chosen.get("both"):
        spans = ((obs(pk), start, end) for pk, start, end in chosen["both"])
        return "true in turn: " + "; ".join(f"{name} {_span(start, end)}" for name, start, end in spans)
    if chosen.get("many_valued"):
        return "all true at once"
    return "none of them: the right claim was written" if chosen.get("text") else ""


def _span(start: str | None, end: str | None) -> str:
    return f"{start[:10] if start else 'ever'} to {end[:10] if end else 'now'}"


def _cards(
    operation: Operation,
    sources: Sequence[OperationSource],
    rows: dict[int, Observation],
    evidence: dict[int, list[Evidence]],
    uses: dict[int, tuple[int, datetime | None]],
) -> tuple[Source, ...]:
    """The sources, the keeper first; every other is compared with it, and it with the first of the others."""
    planned = [source.observation_id or 0 for source in sources]
    first = operation.keeper_id if operation.kind == Kind.MERGE else None
    ids = sorted((pk for pk in planned if pk in rows), key=lambda pk: (pk != first, pk))
    cards = []
    for pk in ids:
        other = next((rows[other].text for other in ids if other != pk), None)
        text = compared(rows[pk].text, to=other) if len(ids) > 1 else whole(rows[pk].text)
        cards.append(_card(rows[pk], text, evidence.get(pk, []), uses.get(pk, (0, None)), pk == first))
    return tuple(cards)


def _card(
    row: Observation,
    text: Text,
    evidence: Sequence[Evidence],
    uses: tuple[int, datetime | None],
    kept: bool,
) -> Source:
    return Source(
        id=row.pk,
        name=obs(row.pk),
        external_id=visible(row.external_id),
        text=text,
        status=status_chip(row.status),
        kept=kept,
        key=key_words(row),
        said=when(row.created_at),
        recorded=when(row.recorded_at),
        by=row.stated_by,
        via=row.derivation or row.written_by,
        confidence=f"{row.confidence:.2f}",
        valid=period(row.valid_from, row.valid_to),
        valid_from=f"{row.valid_from:%Y-%m-%d}" if row.valid_from else "",
        valid_to=f"{row.valid_to:%Y-%m-%d}" if row.valid_to else "",
        witnesses=tuple(witness(item) for item in evidence[:EVIDENCE_SHOWN]),
        more_witnesses=max(0, len(evidence) - EVIDENCE_SHOWN),
        roots=len({item.root_source for item in evidence}),
        uses=uses[0] + row.uses_inherited,
        last_used=when(uses[1]),
    )


_MET = {
    "text": "same text",
    "subject_predicate": "same subject and predicate",
    "subject": "same subject",
    "band": "shared wording",
    "neighbour": "near in meaning",
}
_VERDICTS = {
    "same": Chip("same claim", "done"),
    "ask": Chip("perhaps the same", "wait"),
    "possible contradiction": Chip("possible contradiction", "warn"),
    "contradiction": Chip("contradiction", "bad"),
    "far": Chip("not similar", "quiet"),
}


def _pairs(operation: Operation) -> tuple[Pair, ...]:
    return tuple(
        Pair(
            a=obs(int(pair["a"])),
            b=obs(int(pair["b"])),
            cosine="no vector" if pair.get("cosine") is None else f"{pair['cosine']:.3f}",
            met=_met(pair.get("met", [])),
            verdict=_verdict(str(pair.get("verdict", ""))),
            objections=tuple(visible(str(name)) for name in pair.get("failed", [])),
        )
        for pair in operation.signals.get("pairs", [])
    )


def _verdict(word: str) -> Chip:
    return _VERDICTS.get(word) or Chip(visible(word), "quiet")


def _met(names: Sequence[str]) -> str:
    """The keys of a pair in words; the same subject and predicate says the same subject too."""
    told = [name for name in names if not (name == "subject" and "subject_predicate" in names)]
    return ", ".join(_MET.get(name, visible(str(name))) for name in told)


def _figures(operation: Operation) -> tuple[tuple[str, str], ...]:
    """What else the rule noted, in its own words."""
    noted = {**operation.signals, **operation.product}
    rest = {name: value for name, value in noted.items() if name not in _SHOWN_ELSEWHERE}
    return tuple((name.replace("_", " "), value) for name, value in flat(rest))


def _product(
    operation: Operation,
    rows: Sequence[Observation],
    evidence: dict[int, list[Evidence]],
    uses: dict[int, tuple[int, datetime | None]],
    policy: rules.Policy,
) -> Product | None:
    """What the rule that the runner uses would write; None when it writes nothing, or a source has no text any more."""
    keep = operation.decision.get("keep") or operation.keeper_id
    readable = {row.pk for row in rows if row.text is not None}
    if (
        operation.kind != Kind.MERGE
        or operation.approval == Approval.NEVER
        or len(readable) < len(rows)
        or keep not in readable
    ):
        return None
    records = [
        row.record(
            roots=frozenset(item.root_source for item in evidence.get(row.pk, [])), uses=uses.get(row.pk, (0, None))[0]
        )
        for row in rows
    ]
    made = merge.combine(records, keeper=keep, policy=policy).claim
    united = {item.source_uri: item.root_source for row in rows for item in evidence.get(row.pk, [])}
    return Product(
        text=whole(made.text),
        key=" · ".join(visible(part) or "—" for part in (made.subject, made.predicate, made.object))
        if made.subject
        else "",
        confidence=f"{made.confidence:.2f}",
        by=made.stated_by,
        said=when(made.created_at),
        valid=period(made.valid_from, made.valid_to),
        sources=len(rows),
        witnesses=len(united),
        roots=len(set(united.values())),
    )


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
