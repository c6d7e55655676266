"""All claims of one subject, its other names included, by predicate: what holds, what held, and what is in question."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Left

from consolidation.admin.history.moments import Stood, stood
from consolidation.admin.reading import Chip, state_chip
from consolidation.admin.telling import status_chip
from consolidation.admin.texts import SNIPPET, day, period, snippet
from consolidation.learning import cardinalities
from consolidation.models import OPEN, Alias, Operation
from consolidation.operations import Kind, obs, visible
from observations.models import GivenKey, Observation, Scope
from observations.normalise import key_part
from observations.records import Status

SHOWN: Final = 300  # claims of a page, the newest; the rest is counted
COUNTED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Said:
    """One claim of the subject."""

    pk: int
    name: str
    object: str
    text: str
    status: Chip
    current: bool
    successor: int | None
    valid: str
    said: str
    iso: str
    by: str
    subject: str  # the name it uses, where that is another one
    key_by: str  # the model that gave its key; empty: its writer did


@dataclass(frozen=True, slots=True)
class Question:
    """One open operation that has to decide between claims of the subject."""

    pk: int
    state: Chip
    why: str


@dataclass(frozen=True, slots=True)
class Predicate:
    """What is claimed of the subject in one respect."""

    name: str  # empty: the claims name none
    holds: str  # what was taught: that it holds one value, or many; empty: nothing was
    said: tuple[Said, ...]  # current ones first, then the newest
    values: int  # different objects that are current
    questions: tuple[Question, ...]

    @property
    def disagrees(self) -> bool:
        """Several values are current, and nobody said that there may be."""
        return self.values > 1 and self.holds != "many"


@dataclass(frozen=True, slots=True)
class Subject:
    """The page."""

    name: str
    scope: str
    scope_id: int
    key: int
    names: tuple[tuple[str, int], ...]  # its other names, with their keys
    predicates: tuple[Predicate, ...]
    shown: int
    current: int
    more: int
    asked_by: int  # a row to ask for another name by


def read_subject(*, scope: Scope, key: int, at: datetime | None) -> Subject | None:
    """The page, or None where nothing was ever claimed of it. Six queries, and one more for a moment."""
    names = _names(scope, key)
    given = _given(scope, names)
    mine = Observation.objects.filter(scope=scope).filter(Q(subject_key__in=names) | Q(pk__in=list(given)))
    rows = mine if at is None else Observation.objects.as_of(at).filter(pk__in=mine.values("pk"))
    found = _newest(rows)
    count = rows.order_by()[:COUNTED].count()
    if not count and at is None:
        return None
    then = stood(scope_id=scope.pk, observations=found, at=at)[0] if at else {}
    called = {key_: name for key_, name in names.items() if name}
    called |= {row.subject_key or key: row.key_with(given.get(row.pk))[0] for row in reversed(found)}
    predicates = _predicates(scope, found, given, then, called.get(key, ""))
    return Subject(
        name=snippet(called.get(key, "") or "this subject"),
        scope=visible(scope.name),
        scope_id=scope.pk,
        key=key,
        names=tuple((snippet(called.get(other, "") or str(other)), other) for other in names if other != key),
        predicates=predicates,
        shown=len(found),
        current=sum(one.current for each in predicates for one in each.said),
        more=count - len(found),
        asked_by=next((row.pk for row in found if row.status == Status.ACTIVE), 0),
    )


def _names(scope: Scope, key: int) -> dict[int, str]:
    """The keys of every name of the subject, with the name where an alias says it. One query."""
    pairs = list(
        Alias.objects.filter(scope=scope, removed_at=None)
        .order_by("pk")
        .values_list("subject_key", "subject", "name_key", "name")
    )
    found = {key: ""}
    while True:
        before = len(found)
        for one, subject, other, name in pairs:
            if one in found or other in found:
                found |= {one: subject, other: name}
        if len(found) == before:
            return found


def _given(scope: Scope, names: Mapping[int, str]) -> dict[int, GivenKey]:
    """The keys that a model gave to rows of this subject, the newest. One query."""
    rows = GivenKey.objects.filter(scope=scope, state=GivenKey.State.GIVEN, subject_key__in=list(names))
    return {row.observation_id: row for row in rows.order_by("-observation_id")[:COUNTED]}


def _newest(rows: QuerySet[Observation]) -> list[Observation]:
    found = rows.defer("text").annotate(start=Left("text", SNIPPET + 1))
    return list(found.order_by("-created_at", "-pk")[:SHOWN])


def _predicates(
    scope: Scope,
    rows: Sequence[Observation],
    given: Mapping[int, GivenKey],
    then: Mapping[int, Stood],
    called: str,
) -> tuple[Predicate, ...]:
    """Two queries."""
    holds = cardinalities(scope_id=scope.pk)
    questions = _questions(scope, [row.pk for row in rows])
    grouped: defaultdict[str, list[Observation]] = defaultdict(list)
    for row in rows:
        grouped[key_part(row.key_with(given.get(row.pk))[1])].append(row)
    return tuple(
        _predicate(
            [(row, _said(row, given.get(row.pk), then.get(row.pk), called)) for row in grouped[name]],
            given=given,
            holds=holds.get(name, "") if name else "",
            questions=questions,
        )
        for name in sorted(grouped, key=lambda name: (not name, name))
    )


def _predicate(
    claims: Sequence[tuple[Observation, Said]],
    *,
    given: Mapping[int, GivenKey],
    holds: str,
    questions: Mapping[int, Sequence[Operation]],
) -> Predicate:
    keys = [(row.key_with(given.get(row.pk)), said) for row, said in claims]
    mine = {operation.pk: operation for row, _ in claims for operation in questions.get(row.pk, ())}
    return Predicate(
        name=snippet(keys[0][0][1]),
        holds=holds,
        said=tuple(sorted((said for _, said in claims), key=lambda said: not said.current)),
        values=len({key_part(key[2]) for key, said in keys if said.current and key[1] and key[2]}),
        questions=tuple(
            Question(operation.pk, state_chip(operation), visible(operation.skipped_reason or operation.reason))
            for operation in mine.values()
        ),
    )


def _questions(scope: Scope, ids: Sequence[int]) -> dict[int, list[Operation]]:
    """The open questions between claims, by each of them. One query."""
    rows = Operation.objects.filter(
        scope=scope, kind=Kind.SUPERSEDE, status__in=OPEN, sources__observation__in=list(ids)
    ).order_by("pk")
    found: defaultdict[int, list[Operation]] = defaultdict(list)
    for row in rows.annotate(of=F("sources__observation")):
        found[getattr(row, "of", 0)].append(row)
    return found


def _said(row: Observation, given: GivenKey | None, then: Stood | None, called: str) -> Said:
    subject, _, value = row.key_with(given)
    return Said(
        pk=row.pk,
        name=obs(row.pk),
        object=snippet(value),
        text=snippet(getattr(row, "start", None)),
        status=then.chip if then else status_chip(row.status),
        current=(then.status if then else row.status) == Status.ACTIVE,
        successor=then.successor if then else row.superseded_by_id,
        valid=period(row.valid_from, row.valid_to),
        said=day(row.created_at),
        iso=row.created_at.isoformat(),
        by=row.stated_by,
        subject=snippet(subject) if key_part(subject) != key_part(called) else "",
        key_by=visible(given.model) if given and not row.subject else "",
    )
