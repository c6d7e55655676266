"""The record of one decision: what was shown, who did what and why, under which rules, and what followed.

Everything in it is plain words, so that a page, a file of text and a file of JSON say the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final

from django.db.models import Q
from django.db.models.functions import Left, Length

from consolidation import review
from consolidation.admin.history.moments import Stood, stood
from consolidation.admin.item.turns import read_asked
from consolidation.admin.reading import state_chip
from consolidation.admin.record.checking import Checked, Rules, check, rules_of
from consolidation.admin.telling import happened, key_line
from consolidation.admin.texts import SNIPPET, WHOLE, flat, snippet, told, when, whole
from consolidation.models import Comment, Operation, OperationSource, PlanItem
from consolidation.operations import OF_EPISODES, Risk, State, ep, obs, plan, visible
from observations.models import Episode, Event, GivenKey, Observation, database_now

SHOWN: Final = 100  # sources whose words stand in the record; the rest is counted
EVENTS: Final = 200
DECIDED: Final[dict[str, str]] = {State.APPROVED: "approved", State.REJECTED: "rejected", State.DISTINCT: "told apart"}


@dataclass(frozen=True, slots=True)
class Row:
    """One source as it was shown."""

    name: str
    pk: int
    episode: bool
    text: str
    left_out: int  # characters that do not stand here
    key: str
    said_by: str
    said: str
    version: int  # that was shown
    content_hash: str  # of the text that was shown
    stood: str  # its status then
    now: str
    unchanged: bool  # the text is the one that was shown


@dataclass(frozen=True, slots=True)
class Act:
    """Something a person or the engine did about the operation."""

    what: str
    by: str
    at: str
    iso: str
    why: str


@dataclass(frozen=True, slots=True)
class Followed:
    """One row or operation that came of it."""

    name: str
    pk: int
    episode: bool
    operation: bool
    what: str
    state: str
    at: str
    text: str


@dataclass(frozen=True, slots=True)
class Head:
    """What was proposed."""

    pk: int
    op_id: str
    generation: int
    kind: str
    state: str
    scope: str
    risk: str
    reason: str
    skipped: str
    score: str
    rule: str


@dataclass(frozen=True, slots=True)
class Words:
    """What a model or a reviewer said, and what the rule noted."""

    asked_model: str  # who wrote the words, and on which prompt; empty: no model did
    key_models: tuple[str, ...]  # models that gave keys to the sources
    proposes: str  # the product's words, where no source says them
    proposes_key: str
    choice_text: str  # the reviewer's own words
    choice_object: str
    choices: tuple[tuple[str, str], ...]
    figures: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """The whole record."""

    head: Head
    words: Words
    rules: Rules
    checked: Checked
    moved: tuple[str, ...]  # what changed since planning
    plans: tuple[tuple[int, str, str], ...]
    shown: tuple[Row, ...]
    more: int
    acts: tuple[Act, ...]
    comments: tuple[Act, ...]
    events: tuple[Act, ...]
    followed: tuple[Followed, ...]
    printed: str  # when this record was made


def read_record(operation: Operation) -> Record:
    """The record of an operation, whose scope was selected with it. Sixteen queries at most, however large it is."""
    sources = review.sources_of(operation)
    rows = _rows(operation, sources)
    then = _then(operation, rows)
    items = list(
        PlanItem.objects.filter(scope_id=operation.scope_id, operation=operation).select_related("plan").order_by("pk")
    )
    rules = rules_of(operation, [item.plan for item in items])
    given = _given(operation, sources)
    standing = {pk: row.status for pk, row in rows.items()}
    audit = _audit(operation)
    back = _taken_back(audit)
    return Record(
        head=_head(operation),
        words=_words(operation, given),
        rules=rules,
        checked=check(operation, sources, then=then, rules=rules, taken_back=bool(back)),
        moved=tuple(review.changes(operation=operation, sources=sources, rows=rows)),
        plans=tuple((item.plan_id, plan(item.plan_id), _opened(item)) for item in items),
        shown=_shown(sources, rows, then, given, standing),
        more=max(0, len(sources) - SHOWN),
        acts=_acts(operation, items, back),
        comments=_comments(operation),
        events=_events(audit),
        followed=_moved(operation, sources, standing) + _followed(operation),
        printed=when(database_now()),
    )


def _head(operation: Operation) -> Head:
    return Head(
        pk=operation.pk,
        op_id=operation.op_id,
        generation=operation.generation,
        kind=operation.kind,
        state=state_chip(operation).word,
        scope=visible(operation.scope.name),
        risk=Risk(operation.risk).name.lower(),
        reason=visible(operation.reason),
        skipped=visible(operation.skipped_reason),
        score="" if operation.score is None else f"{operation.score:.3f}",
        rule=" ".join(filter(None, (visible(operation.rule), visible(operation.band)))),
    )


def _words(operation: Operation, given: Mapping[int, GivenKey]) -> Words:
    """One query: the question that a model was asked."""
    asked = read_asked(operation)
    keys = {f"{visible(key.model)}, prompt {visible(key.prompt_version)}" for key in given.values()}
    return Words(
        asked_model=f"{asked.model}, prompt {asked.prompt}, {asked.at}" if asked else "",
        key_models=tuple(sorted(keys)),
        proposes=whole(operation.text).plain if operation.text else "",
        proposes_key=key_line((operation.claim_subject, operation.claim_predicate, operation.claim_object)),
        choice_text=whole(operation.decision_text).plain if operation.decision_text else "",
        choice_object=visible(operation.decision_object),
        choices=_choices(operation),
        figures=tuple(flat({**operation.signals, **operation.product})),
    )


def _rows(operation: Operation, sources: Sequence[OperationSource]) -> Mapping[int, Observation | Episode]:
    """Every source, with the words of the first ones. One query."""
    ids = [source.row_id for source in sources]
    table: type[Observation | Episode] = Episode if operation.kind in OF_EPISODES else Observation
    rows = table.objects.filter(scope_id=operation.scope_id).defer("text")
    return rows.annotate(length=Length("text"), start=Left("text", WHOLE if len(ids) <= SHOWN else SNIPPET)).in_bulk(
        ids
    )


def _then(operation: Operation, rows: Mapping[int, Observation | Episode]) -> Mapping[int, Stood]:
    """How each source stood when it was decided, or applied, or planned. One query."""
    at = operation.decided_at or operation.applied_at or operation.created_at
    claims = [row for row in rows.values() if isinstance(row, Observation)]
    turns = [row for row in rows.values() if isinstance(row, Episode)]
    of_claims, of_turns = stood(scope_id=operation.scope_id, observations=claims, episodes=turns, at=at)
    return of_claims | of_turns


def _given(operation: Operation, sources: Sequence[OperationSource]) -> Mapping[int, GivenKey]:
    """The keys that models gave to the sources. One query."""
    ids = [source.observation_id for source in sources if source.observation_id]
    rows = GivenKey.objects.filter(scope_id=operation.scope_id, observation__in=ids, state=GivenKey.State.GIVEN)
    return {row.observation_id: row for row in rows}


def _shown(
    sources: Sequence[OperationSource],
    rows: Mapping[int, Observation | Episode],
    then: Mapping[int, Stood],
    given: Mapping[int, GivenKey],
    now: Mapping[int, str],
) -> tuple[Row, ...]:
    return tuple(
        _row(source, rows[source.row_id], then[source.row_id], given.get(source.row_id), now[source.row_id])
        for source in sources[:SHOWN]
        if source.row_id in rows
    )


def _row(source: OperationSource, row: Observation | Episode, then: Stood, given: GivenKey | None, now: str) -> Row:
    start: str | None = getattr(row, "start", None)
    claim = row if isinstance(row, Observation) else None
    turn = row if isinstance(row, Episode) else None
    return Row(
        name=obs(row.pk) if claim else ep(row.pk),
        pk=row.pk,
        episode=claim is None,
        text=whole(start).plain,
        left_out=(getattr(row, "length", 0) or 0) - len(start or ""),
        key=key_line(claim.key_with(given)) if claim else "",
        said_by=visible(claim.stated_by if claim else turn.speaker or turn.role if turn else ""),
        said=when(claim.created_at if claim else turn.happened_at if turn else None),
        version=source.planned_version,
        content_hash=source.planned_hash,
        stood=source.prior_status or then.chip.word,
        now=now,
        unchanged=start is not None and row.content_hash == source.planned_hash,
    )


def _opened(item: PlanItem) -> str:
    return told("opened by {}, {}", visible(item.opened_by), when(item.opened_at)) if item.opened_at else "not opened"


def _audit(operation: Operation) -> list[Event]:
    """What the audit holds of this generation, oldest first. One query."""
    mine = Q(generation=operation.generation) | Q(generation=None)
    rows = Event.objects.filter(mine, scope_id=operation.scope_id, subject=operation.op_id)
    return list(rows.order_by("pk")[:EVENTS])


def _taken_back(audit: Sequence[Event]) -> list[tuple[str, str, datetime | None, str]]:
    """Decisions that do not stand any more, each with who took it back: the operation keeps the last one only."""
    steps = [row for row in audit if row.action in (*DECIDED, review.REOPENED)]
    return [
        (what, visible(row.actor), row.at, "")
        for before, after in pairwise(steps)
        if before.action in DECIDED and after.action == review.REOPENED
        for what, row in ((f"{DECIDED[before.action]}, taken back later", before), ("taken back", after))
    ]


def _acts(
    operation: Operation, items: Sequence[PlanItem], back: Sequence[tuple[str, str, datetime | None, str]]
) -> tuple[Act, ...]:
    """Who did what, in the order of a decision. No query."""
    first = items[0].plan if items else None
    planner = f"the planner, for {visible(first.requested_by)} ({visible(first.trigger)})" if first else "the planner"
    by = operation.requested_by and visible(operation.requested_by)
    done: tuple[tuple[str, str, datetime | None, str], ...] = (
        ("edited from another", visible(operation.edited_by), operation.created_at, ""),
        ("proposed", by or planner, operation.created_at, visible(operation.reason)),
        *back,
        (
            DECIDED.get(operation.status, DECIDED[State.APPROVED]),
            visible(operation.decided_by),
            operation.decided_at,
            visible(operation.decision_reason),
        ),
        ("agreed to, as the second person", visible(operation.seconded_by), operation.seconded_at, ""),
        ("applied", visible(operation.applied_by), operation.applied_at, ""),
        ("undone", visible(operation.undone_by), operation.undone_at, ""),
    )
    return tuple(Act(what, who, when(at), at.isoformat(), why) for what, who, at, why in done if who and at)


def _comments(operation: Operation) -> tuple[Act, ...]:
    """One query."""
    rows = Comment.objects.filter(scope_id=operation.scope_id, operation=operation).order_by("pk")[:EVENTS]
    return tuple(Act("comment", visible(row.by), when(row.at), row.at.isoformat(), visible(row.text)) for row in rows)


def _events(audit: Sequence[Event]) -> tuple[Act, ...]:
    return tuple(
        Act(one.what, one.who, one.at, one.iso, "; ".join(f"{name}: {value}" for name, value in one.detail))
        for one in map(happened, audit)
    )


def _choices(operation: Operation) -> tuple[tuple[str, str], ...]:
    """What the reviewer chose beyond a plain yes, rows by their names. No query."""
    chosen = dict(operation.decision)
    kept, both = chosen.pop("keep", None), chosen.pop("both", None)
    named = [("keep", obs(kept))] if kept else []
    named += [("both", f"{obs(pk)} from {start or 'ever'} to {end or 'now'}") for pk, start, end in both or ()]
    return (*named, *flat(chosen))


def _moved(operation: Operation, sources: Sequence[OperationSource], now: Mapping[int, str]) -> tuple[Followed, ...]:
    """The rows whose state its application changed. No query."""
    return tuple(
        Followed(
            name=review.shown(source),
            pk=source.row_id,
            episode=source.episode_id is not None,
            operation=False,
            what=f"moved, was {source.prior_status}",
            state=now.get(source.row_id, "gone"),
            at=when(operation.applied_at),
            text="",
        )
        for source in sources[:SHOWN]
        if source.applied_version is not None and source.applied_version > source.planned_version
    )


def _followed(operation: Operation) -> tuple[Followed, ...]:
    """The row it wrote, later operations on that row, edits of it, and its other generations. Two queries."""
    same = Q(op_id=operation.op_id) & ~Q(pk=operation.pk)
    later = Q(sources__observation=operation.derived_id) if operation.derived_id else Q(pk__in=[])
    found = Operation.objects.filter(same | later | Q(edited_from=operation.pk), scope_id=operation.scope_id)
    found = found.exclude(pk=operation.pk).order_by("pk").distinct()
    rows = Observation.objects.filter(scope_id=operation.scope_id, pk=operation.derived_id or 0)
    written = rows.annotate(start=Left("text", SNIPPET + 1)).values_list("pk", "status", "start", "recorded_at")
    wrote = tuple(
        Followed(obs(pk), pk, False, False, "wrote", status, when(at), snippet(start))
        for pk, status, start, at in written
    )
    return wrote + tuple(_later(operation, each) for each in found[:EVENTS])


def _later(operation: Operation, other: Operation) -> Followed:
    edit = other.edited_from_id == operation.pk
    again = other.op_id == operation.op_id
    return Followed(
        name=f"{other.op_id}#{other.generation}",
        pk=other.pk,
        episode=False,
        operation=True,
        what="edited into"
        if edit
        else f"generation {other.generation} of it"
        if again
        else f"{other.kind} of what it wrote",
        state=state_chip(other).word,
        at=when(other.created_at),
        text="",
    )
