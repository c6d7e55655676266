"""A reviewer's edit of a proposal: a new operation in its place, because what an operation proposes never changes.

What is edited is what would be written: which sources go in, whose value a field takes, or a person's own words. The
rule that the runner uses makes the row of it (`merge.combine`), so that what a page previews is what is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from django.db import transaction

from consolidation import compact, merge, promote
from consolidation.models import Operation, OperationSource, PlanItem
from consolidation.operations import Approval, Json, Kind, Proposal, State, obs
from consolidation.policy import Policy as Rules
from consolidation.review.deciding import (
    DECIDABLE,
    TEXT_LIMIT,
    AlreadyDecided,
    Changed,
    Refused,
    _lock,
    _refuse_decided,
    _rows,
    approve,
    changes,
    policy_of,
    refuse_changed,
    sources_of,
)
from observations.models import Episode, Event, Observation, database_now
from observations.normalise import clean
from observations.records import Outcome, Record, StatedBy

EDITABLE: Final = (Kind.MERGE, Kind.PROMOTE, Kind.COMPACT)
LIMITS: Final = MappingProxyType({"text": TEXT_LIMIT, "subject": 500, "predicate": 500, "object": 1_000})  # characters
_WORDS: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.MERGE: ("text", *merge.KEY),
    Kind.PROMOTE: ("text", *merge.KEY),
    Kind.COMPACT: ("text",),
}
_NOTHING: Final = "Nothing is changed: approve it as it stands."


@dataclass(frozen=True, slots=True)
class Changes:
    """What a reviewer wants otherwise. Of a merge everything, of a promotion words and episodes, of a summary words."""

    leave_out: frozenset[int] = frozenset()  # ids of sources
    take: Mapping[str, int] = field(default_factory=dict)  # field -> the source whose value stays
    own: Mapping[str, str] = field(default_factory=dict)  # field -> own words, memory text

    def cleaned(self) -> Changes:
        """The same with the words as a database can hold them, without space around them."""
        return replace(self, own={name: clean(words)[0].strip() for name, words in self.own.items()})


@dataclass(frozen=True, slots=True)
class Drafted:
    """An edit that is not stored yet: the operation it would be, and what goes into it."""

    operation: Operation
    sources: tuple[OperationSource, ...]  # of the operation it takes the place of: those that stay in
    changed: tuple[str, ...]  # names of fields, "sources" among them


def refusal_to_edit(operation: Operation) -> str:
    """Why an operation cannot be edited, in one sentence; empty when it can. No query."""
    if operation.kind not in EDITABLE:
        return f"A {operation.kind} is not edited: decide it, or reject it."
    if operation.approval == Approval.NEVER:
        return f"{operation.op_id} is never applied: {operation.skipped_reason}."
    if operation.status == State.APPROVED:
        return f"{operation.op_id} is approved: take the approval back before you edit it."
    return "" if operation.status in DECIDABLE else f"{operation.op_id} is {operation.status}: it cannot be edited."


def drafted(
    *,
    operation: Operation,
    sources: Sequence[OperationSource],
    rows: Mapping[int, Observation | Episode],
    policy: Rules,
    changes: Changes,
    by: str,
) -> Drafted:
    """What an edit would be, without storing it: pages preview it with the rules that apply uses. No query.

    `rows` are the sources as they stand, by id. Raises Refused, with a sentence, for what no operation may say.
    """
    wanted = changes.cleaned()
    _check(operation, sources, wanted)
    taken = tuple(source for source in sources if source.row_id not in wanted.leave_out)
    make = {Kind.MERGE: _merge, Kind.PROMOTE: _promote, Kind.COMPACT: _compact}[Kind(operation.kind)]
    new = _beginning(operation, taken, policy, by)
    changed = make(new, operation, [rows[source.row_id] for source in taken], wanted, policy)
    changed = [*changed, *(["sources"] if wanted.leave_out else [])]
    if not changed:
        raise Refused(_NOTHING)
    new.reason = f"edited: {', '.join(changed)}; {operation.reason}"[:500]
    _name(new, [source.row_id for source in taken])
    return Drafted(new, taken, tuple(changed))


def _beginning(operation: Operation, taken: Sequence[OperationSource], policy: Rules, by: str) -> Operation:
    """The new operation before anything is changed: what the old one says, under an editor's name."""
    return Operation(
        scope=operation.scope,
        kind=operation.kind,
        approval=Approval.NEEDS_HUMAN,
        status=State.NEEDS_HUMAN,
        score=operation.score,
        keeper_id=operation.keeper_id,
        product={**operation.product, "discriminator": f"{operation.product.get('discriminator', '')}.e{operation.pk}"},
        signals=_signals(operation, [source.row_id for source in taken]),
        text=operation.text,
        claim_subject=operation.claim_subject,
        claim_predicate=operation.claim_predicate,
        claim_object=operation.claim_object,
        rule=operation.rule,
        band=operation.band,
        requested_by=operation.requested_by,
        edited_from=operation,
        edited_by=by,
        risk=operation.risk,
        uncertainty=operation.uncertainty,
        n_sources=len(taken),
        policy_hash=policy.hash,
    )


def _name(new: Operation, ids: Iterable[int]) -> None:
    """Its ids, as a proposal of the same would have them."""
    proposal = Proposal(
        kind=Kind(new.kind),
        scope_id=new.scope_id,
        sources=tuple(sorted(ids)),
        approval=Approval.NEEDS_HUMAN,
        reason=new.reason,
        product=new.product,
    )
    new.op_id, new.input_key = proposal.id, proposal.input_key


def _signals(operation: Operation, ids: Sequence[int]) -> dict[str, Json]:
    """What the rule noted, without the pairs of what is left out."""
    inside, signals = set(ids), dict(operation.signals)
    if pairs := signals.get("pairs"):
        signals["pairs"] = [pair for pair in pairs if {pair.get("a"), pair.get("b")} <= inside]
    if richer := signals.get("refinements"):
        signals["refinements"] = [pair for pair in richer if set(pair) <= inside]
    return signals


def _check(operation: Operation, sources: Sequence[OperationSource], wanted: Changes) -> None:
    """Refuse what names a stranger, a field that the kind does not have, and words that do not fit."""
    kind, ids = Kind(operation.kind), {source.row_id for source in sources}
    if not (wanted.leave_out | set(wanted.take.values())) <= ids or wanted.leave_out & set(wanted.take.values()):
        raise Refused("Only the value of a source that stays in can be taken. Look at the form again.")
    fields = {*wanted.own, *wanted.take}
    if not set(wanted.own) <= set(_WORDS[kind]) or not fields <= set(merge.FIELDS):
        raise Refused(f"A {kind} has no such field to write. Look at the form again.")
    if wanted.take and kind != Kind.MERGE:
        raise Refused(f"A {kind} takes no source's value: write the words.")
    if "text" in wanted.own and not wanted.own["text"]:
        raise Refused("Write the text, or keep one that is there.")
    for name, words in wanted.own.items():
        if len(words) > LIMITS[name]:
            raise Refused(f"The {name} has {len(words):,} characters: {LIMITS[name]:,} are the most that fit.")


# --- by kind ---------------------------------------------------------------------------------------------------------


def _merge(
    new: Operation, old: Operation, rows: Sequence[Observation | Episode], wanted: Changes, policy: Rules
) -> list[str]:
    """Which text stays, and what stands in the place of the rest; two sources at least, of one claim (I16)."""
    claims = [row for row in rows if isinstance(row, Observation)]
    if len(claims) < 2:
        raise Refused("A merge needs two sources at least: leave fewer out, or reject it.")
    _refuse_contradiction(claims)
    records = {row.pk: row.record(roots=frozenset(), uses=0) for row in claims}
    new.keeper_id = _keeper(old, list(records.values()), wanted)
    plain = merge.combine(list(records.values()), keeper=new.keeper_id, policy=policy).claim
    fields: dict[str, int | str] = {}
    for name in merge.FIELDS:
        rule = str(getattr(plain, name))
        chosen = _chosen(name, rule, records, wanted)
        if chosen is not None:
            fields[name] = chosen
    own = {name: wanted.own[name] for name, chosen in fields.items() if chosen == merge.OWN}
    new.text, new.claim_subject, new.claim_predicate, new.claim_object = (
        own.get(name, "") for name in ("text", *merge.KEY)
    )
    new.product = {**new.product, **({"fields": fields} if fields else {})}
    if not fields:
        new.product.pop("fields", None)
    _refuse_loose_object(new, records, plain_key=(plain.subject, plain.predicate, plain.object))
    moved = ["text"] if new.keeper_id != old.keeper_id and "text" not in fields else []
    same = fields == (old.product.get("fields") or {}) and own == _own_of(old)
    return moved + ([] if same else sorted(fields, key=merge.FIELDS.index) or ["fields"])


def _own_of(old: Operation) -> dict[str, str]:
    key = (old.claim_subject, old.claim_predicate, old.claim_object)
    return dict(merge.edits_of(product=old.product, text=old.text, key=key).own)


def _keeper(old: Operation, records: Sequence[Record], wanted: Changes) -> int:
    """The source whose text stays: the one chosen, or that has the very words, or the rule's while it stays in."""
    same = [row.id for row in records if row.text == wanted.own.get("text")]
    first = wanted.take.get("text") or next(iter(same), None) or old.keeper_id
    return first if first in {row.id for row in records} else merge.keeper(records).id


def _chosen(name: str, rule: str, records: Mapping[int, Record], wanted: Changes) -> int | str | None:
    """The source whose value a field takes, OWN for words that no source has, None where the rule says the same."""
    if name in wanted.own:
        words = wanted.own[name]
        if words == rule:
            return None
        return next((pk for pk, row in records.items() if merge.written(row, name) == words), merge.OWN)
    if name in wanted.take and merge.written(records[wanted.take[name]], name) != rule:
        return wanted.take[name]
    return None


def _refuse_contradiction(rows: Sequence[Observation]) -> None:
    """I16: no merge joins two values of one subject and predicate, whoever asks."""
    values: dict[int, Observation] = {}
    for row in rows:
        if not row.sp_key or not row.spo_key:
            continue
        first = values.setdefault(row.sp_key, row)
        if first.spo_key != row.spo_key:
            raise Refused(
                f"{obs(first.pk)} and {obs(row.pk)} have different values for one subject and predicate:"
                " leave one out, or tell them apart."
            )


def _refuse_loose_object(new: Operation, records: Mapping[int, Record], *, plain_key: tuple[str, str, str]) -> None:
    edits = merge.edits_of(
        product=new.product, text=new.text, key=(new.claim_subject, new.claim_predicate, new.claim_object)
    )
    key = [edits.value(name, rule=rule, records=records) for name, rule in zip(merge.KEY, plain_key, strict=True)]
    if edits.key and key[2] and not all(key[:2]):
        raise Refused("An object belongs to a subject and a predicate: give them too, or leave the object out.")


def _promote(
    new: Operation, old: Operation, rows: Sequence[Observation | Episode], wanted: Changes, policy: Rules
) -> list[str]:
    """Its words and the episodes it rests on, never fewer independent ones than the policy asks for (R45)."""
    turns = [row.record() for row in rows if isinstance(row, Episode)]
    roots = promote.roots(turns)
    if len(roots) < policy.min_support:
        raise Refused(f"{len(roots)} supporting, {policy.min_support} needed: leave fewer episodes out, or reject it.")
    inside = {turn.id for turn in turns}
    given = [turn for turn in turns if turn.stated_by is not StatedBy.OUTSIDE]
    new.product = {
        **new.product,
        "support": [place for place in old.product.get("support", []) if place[0] in inside],
        "episodes": len(turns),
        "roots": len(roots),
        "verified": len(promote.roots(turn for turn in turns if turn.outcome is Outcome.SUCCESS)),
        "outside": len(roots) - len(promote.roots(given)),
        "stated_by": promote.stated_by(turns).value,
    }
    return _words(new, old, wanted)


def _compact(
    new: Operation, old: Operation, rows: Sequence[Observation | Episode], wanted: Changes, policy: Rules
) -> list[str]:
    """Its words; a summary stands for all of its episodes. What the words lose is looked for again (C9)."""
    if wanted.leave_out:
        raise Refused("A summary stands for all of its episodes: none can be left out.")
    episodes = (row.record() for row in rows if isinstance(row, Episode))
    turns = sorted(episodes, key=lambda turn: (turn.happened_at, turn.seq, turn.id))
    changed = _words(new, old, wanted)
    group = compact.Group(scope_id=new.scope_id, session="", episodes=tuple(turns))
    new.signals = compact.noted(group=group, text=new.text)
    return changed


def _words(new: Operation, old: Operation, wanted: Changes) -> list[str]:
    """Put a reviewer's words in the place of the model's; which fields that changes."""
    columns = {"text": "text", **{name: f"claim_{name}" for name in merge.KEY}}
    changed = [name for name, words in wanted.own.items() if words != getattr(old, columns[name])]
    for name in changed:
        setattr(new, columns[name], wanted.own[name])
    if new.claim_object and not (new.claim_subject and new.claim_predicate):
        raise Refused("An object belongs to a subject and a predicate: give them too, or leave the object out.")
    return changed


# --- storing ---------------------------------------------------------------------------------------------------------


@transaction.atomic
def edit(*, operation: Operation, by: str, changes: Changes, digest: str = "") -> Operation:
    """Put an edited operation in the place of an open one, which becomes `edited` in the same transaction.

    The new one waits for a person in the same plans; `digest` is the page's. Raises AlreadyDecided, Changed when the
    memory or the policy moved meanwhile, or Refused with a sentence.
    """
    locked = _lock(operation)
    _refuse_decided(locked)
    if why := refusal_to_edit(locked):
        raise (Refused if locked.status in DECIDABLE or locked.status == State.APPROVED else AlreadyDecided)(why)
    sources, policy = sources_of(locked), policy_of(locked.scope.name)
    rows = {row.pk: row for row in _rows(locked)}
    _refuse_moved(locked, sources, rows, policy, digest)
    made = drafted(operation=locked, sources=sources, rows=rows, policy=policy, changes=changes, by=by)
    new = made.operation
    new.save(force_insert=True)
    _take_sources(new, made.sources)
    _take_place(new, locked, by)
    before, locked.status = locked.status, State.EDITED
    locked.save(update_fields=["status"])
    left = sorted(changes.leave_out)
    detail: dict[str, Json] = {"from": before, "edit": new.op_id, "fields": list(made.changed), "left_out": left}
    _record(locked, State.EDITED, by, detail)
    _record(new, "requested", by, {"kind": new.kind, "edited_from": locked.op_id})
    return new


@transaction.atomic
def edit_and_approve(
    *, operation: Operation, by: str, changes: Changes, digest: str = "", reason: str = ""
) -> Operation:
    """Edit and approve in one step: whoever edits may approve, since the planner proposed it (decision 0023)."""
    return approve(operation=edit(operation=operation, by=by, changes=changes, digest=digest), by=by, reason=reason)


def _refuse_moved(
    operation: Operation,
    sources: Sequence[OperationSource],
    rows: Mapping[int, Observation | Episode],
    policy: Rules,
    digest: str,
) -> None:
    if digest:
        refuse_changed(operation=operation, digest=digest)
    moved = "; ".join(changes(operation=operation, sources=sources, rows=rows))
    if moved or (not digest and policy.hash != operation.policy_hash):
        what = moved or "the policy changed"
        raise Changed(f"{operation.op_id} is not what was shown any more: {what}. Look again, or plan again.")


def _take_sources(new: Operation, sources: Sequence[OperationSource]) -> None:
    OperationSource.objects.bulk_create(
        OperationSource(
            scope_id=new.scope_id,
            operation=new,
            observation_id=source.observation_id,
            episode_id=source.episode_id,
            position=position,
            planned_version=source.planned_version,
            planned_hash=source.planned_hash,
        )
        for position, source in enumerate(sources)
    )


def _take_place(new: Operation, old: Operation, by: str) -> None:
    """In every plan that holds the old one, opened by whoever edited it. Two queries."""
    now = database_now()
    items = PlanItem.objects.filter(scope_id=old.scope_id, operation=old)
    PlanItem.objects.bulk_create(
        PlanItem(
            scope_id=item.scope_id,
            plan_id=item.plan_id,
            operation=new,
            position=item.position,
            opened_at=now,
            opened_by=by,
        )
        for item in items
    )


def _record(operation: Operation, action: str, by: str, detail: dict[str, Json]) -> None:
    Event.objects.append(
        scope_id=operation.scope_id,
        action=action,
        actor=by,
        subject=operation.op_id,
        generation=operation.generation,
        detail=detail,
    )
