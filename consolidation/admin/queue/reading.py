"""What the queue shows: its parts, what the address asks for, and how many there are of what. All counts are capped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Case, CharField, F, Value, When
from django.http import QueryDict

from consolidation.accuracy import spoken
from consolidation.admin.reading import Note, Row
from consolidation.models import Operation, OperationQuerySet
from consolidation.operations import Approval, Kind, Risk, State, visible
from consolidation.review.ageing import Age, Patience, aged, of_age
from consolidation.review.reopening import left_to, put_off
from observations.admin.base import Reach

TAB_COUNTED: Final = 1_000
COUNTED: Final = 10_000  # items whose kind, scope, risk and age are counted
LISTED: Final = 8  # scopes and rules beside the list; further ones are in the filters
WAITING, DEFERRED, SECOND, OTHERS = "waiting", "deferred", "second", "others"
RISKS: Final = {risk.name.lower(): risk for risk in sorted(Risk, reverse=True)}
_WORDS: Final = 40  # characters of a rule's or band's name


@dataclass(frozen=True, slots=True)
class Tab:
    """One part of the queue."""

    name: str
    label: str
    empty: str  # what an empty list means


TABS: Final = (
    Tab(WAITING, "Waiting for me", "Nothing waits for you here. What others propose comes here with the next plan."),
    Tab(DEFERRED, "Put off", "You have put nothing off."),
    Tab(SECOND, "Waits for a second person", "Nothing waits for a second person."),
    Tab("approved", "Approved, not applied", "Everything that was approved has been applied."),
    Tab("automatic", "Automatic", "No automatic operation waits for its plan to be applied."),
    Tab("trouble", "Stale or failed", "Nothing went stale and nothing failed."),
    Tab("skipped", "Skipped", "No rule refused anything."),
    Tab("decided", "Decided", "Nothing has been decided yet."),
)
OF_OTHERS: Final = Tab(OTHERS, "Waits for others", "Nothing waits in the scopes that you only read.")
FOR_REVIEWERS: Final = Tab(WAITING, "Waiting for a reviewer", "Nothing waits for a reviewer here.")


@dataclass(frozen=True, slots=True)
class TabCount:
    """A tab with how much is in it."""

    tab: Tab
    count: str
    chosen: bool
    query: str


DECIDED: Final = (State.APPLIED, State.REJECTED, State.DISTINCT, State.UNDONE, State.EDITED)


def part(name: str, operations: OperationQuerySet, *, by: str = "", now: datetime | None = None) -> OperationQuerySet:
    """The operations of one tab; with `by`, what waits is what waits for this person."""
    match name:
        case "second":
            return operations.approved_not_applied().filter(needs_second=True, seconded_at=None)
        case "approved":
            return operations.approved_not_applied()
        case "automatic":
            return operations.filter(status=State.PLANNED)
        case "trouble":
            return operations.filter(status__in=[State.STALE, State.FAILED])
        case "others":
            return operations.awaiting_review()
        case "skipped":
            return operations.filter(status=State.SKIPPED, approval=Approval.NEVER)
        case "decided":
            return operations.filter(
                status__in=[State.APPLIED, State.REJECTED, State.DISTINCT, State.UNDONE, State.EDITED]
            )
    if not by:
        return operations.awaiting_review()
    if name == DEFERRED:
        return operations.awaiting_review().filter(put_off(by=by, now=now))
    return left_to(by=by, operations=operations, now=now)


def ordered(operations: OperationQuerySet, *, show: str = WAITING) -> OperationQuerySet:
    """The riskiest and least certain first; approvals by when they run out; what is over, newest first."""
    if show in (WAITING, DEFERRED):
        return operations.by_risk()
    if show in ("approved", SECOND):
        return operations.order_by("approval_expires_at", "pk")
    return (
        operations.order_by(F("decided_at").desc(nulls_last=True), "-pk")
        if show == "decided"
        else operations.order_by("-pk")
    )


# --- what the address asks for ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Given:
    """The filters of an address that mean something: words and ids, never what somebody typed."""

    kind: str = ""
    scope: str = ""
    risk: str = ""
    rule: str = ""
    band: str = ""
    age: str = ""
    state: str = ""

    @classmethod
    def of(cls, data: QueryDict) -> Given:
        """What is not known counts as nothing chosen."""
        checks: dict[str, Callable[[str], bool]] = {
            "kind": lambda word: word in set(Kind),
            "scope": lambda word: word.isascii() and word.isdigit() and len(word) < 19,
            "risk": lambda word: word in RISKS,
            "rule": lambda word: len(word) <= _WORDS and word.isprintable(),
            "band": lambda word: len(word) <= _WORDS and word.isprintable(),
            "age": lambda word: word in set(Age),
            "state": lambda word: word in set(State),
        }
        return cls(**{name: word for name, means in checks.items() if (word := data.get(name, "")) and means(word)})

    def unknown(self, data: QueryDict) -> list[str]:
        """The filters for which an address asks something that there is none of."""
        return [item.name for item in fields(self) if data.get(item.name) and not getattr(self, item.name)]

    def query(self, **changes: str) -> str:
        """As an address carries them, with some of them changed; empty ones are left out."""
        values = {item.name: getattr(self, item.name) for item in fields(self)} | changes
        return urlencode({name: value for name, value in values.items() if value})

    def narrow(self, operations: OperationQuerySet) -> OperationQuerySet:
        """The operations of this kind, scope, risk, rule and band. Age and state belong to a tab."""
        if self.kind:
            operations = operations.filter(kind=self.kind)
        if self.scope:
            operations = operations.filter(scope_id=int(self.scope))
        if self.risk:
            operations = operations.filter(risk=RISKS[self.risk])
        if self.rule:
            operations = operations.filter(rule=self.rule)
        return operations.filter(band=self.band) if self.band else operations

    def narrow_age(self, waiting: OperationQuerySet, *, patience: Patience, now: datetime) -> OperationQuerySet:
        """Those of this age, each with `half_at` and `due_at`."""
        waiting = aged(waiting, patience=patience)
        return waiting.filter(of_age(Age(self.age), now=now)) if self.age else waiting


# --- how many there are ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Facet:
    """One value with how many items have it, and the address that narrows the list to them, or widens it again."""

    label: str
    count: str
    query: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Facets:
    """The values of one filter."""

    name: str
    label: str
    values: tuple[Facet, ...]
    more: int  # values that are not listed


@dataclass(frozen=True, slots=True)
class Sort:
    """Items that differ in nothing that the counts look at."""

    kind: str
    scope: str
    scope_name: str
    risk: str
    rule: str
    band: str
    age: str

    @property
    def alike(self) -> tuple[str, str, str, str]:
        """What has to be one for a whole list to be decided at once."""
        return self.kind, self.scope, self.rule, self.band


@dataclass(frozen=True, slots=True)
class Census:
    """How many items of each sort, among the first COUNTED."""

    counts: Mapping[Sort, int]
    capped: bool

    def matching(self, given: Given, *, but: Iterable[str] = ()) -> Iterator[tuple[Sort, int]]:
        """The sorts that the filters let through, all but these."""
        names = [name for name in ("kind", "scope", "risk", "rule", "band", "age") if name not in but]
        wanted = [(name, value) for name in names if (value := getattr(given, name))]
        for sort, number in self.counts.items():
            if all(getattr(sort, name) == value for name, value in wanted):
                yield sort, number

    def alike(self, given: Given) -> tuple[str, str, str, str] | None:
        """The one sort that everything shown is of; None: there are several, or nothing."""
        found = {sort.alike for sort, _ in self.matching(given)}
        return found.pop() if len(found) == 1 else None


def census(operations: OperationQuerySet, *, patience: Patience, now: datetime) -> Census:
    """Count the first COUNTED by what they are. One query."""
    whens = [When(of_age(age, now=now), then=Value(age.value)) for age in Age]
    rows = aged(operations, patience=patience).annotate(age=Case(*whens, default=Value(""), output_field=CharField()))
    names = ("kind", "scope_id", "scope__name", "risk", "rule", "band", "age")
    try:
        inner, values = rows.values_list(*names)[: COUNTED + 1].query.sql_with_params()
    except EmptyResultSet:  # of somebody who may see no scope
        return Census(counts=Counter(), capped=False)
    listed = ", ".join(f"c{number}" for number in range(len(names)))
    counts: Counter[Sort] = Counter()
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {listed}, count(*) FROM ({inner}) AS w ({listed}) GROUP BY {listed}", values)  # noqa: S608
        for kind, scope, name, risk, rule, band, age, number in cursor.fetchall():
            counts[Sort(kind, str(scope), visible(name), Risk(risk).name.lower(), rule, band, age)] += number
    return Census(counts=counts, capped=sum(counts.values()) > COUNTED)


def facets(found: Census, given: Given, *, show: str) -> list[Facets]:
    """What stands beside the list. No query."""
    named = {sort.scope: sort.scope_name for sort in found.counts}
    groups = [
        _facets(found, given, show, "risk", "Risk", order=list(RISKS)),
        _facets(found, given, show, "kind", "Kind", order=[str(kind) for kind in Kind]),
        _facets(found, given, show, "scope", "Scope", named=named),
        _rules(found, given, show),
    ]
    if show in (WAITING, DEFERRED):
        groups.insert(1, _facets(found, given, show, "age", "Age", order=[str(age) for age in reversed(Age)]))
    return [group for group in groups if group.values]


def _facets(
    found: Census,
    given: Given,
    show: str,
    name: str,
    label: str,
    *,
    order: Sequence[str] = (),
    named: Mapping[str, str] | None = None,
) -> Facets:
    counts: Counter[str] = Counter()
    for sort, number in found.matching(given, but=(name,)):
        counts[getattr(sort, name)] += number
    chosen = getattr(given, name)
    listed = [value for value in order if counts[value]] or [value for value, _ in counts.most_common(LISTED)]
    values = tuple(
        Facet(
            label=(named or {}).get(value, value.replace("_", " ")),
            count=_count(counts[value], found.capped),
            query=address(given, show, **{name: "" if value == chosen else value}),
            chosen=value == chosen,
        )
        for value in listed
    )
    return Facets(name=name, label=label, values=values, more=len(counts) - len(listed))


def _rules(found: Census, given: Given, show: str) -> Facets:
    counts: Counter[tuple[str, str]] = Counter()
    for sort, number in found.matching(given, but=("rule", "band")):
        if sort.rule:
            counts[sort.rule, sort.band] += number
    listed = counts.most_common(LISTED)
    values = tuple(
        Facet(
            label=visible(spoken(rule=rule, band=band)),
            count=_count(number, found.capped),
            query=address(given, show, rule="", band="")
            if (rule, band) == (given.rule, given.band)
            else address(given, show, rule=rule, band=band),
            chosen=(rule, band) == (given.rule, given.band),
        )
        for (rule, band), number in listed
    )
    return Facets(name="rule", label="Rule", values=values, more=len(counts) - len(listed))


def address(given: Given, show: str, **changes: str) -> str:
    """The query string of a tab with these filters, some of them changed. No query."""
    tab = f"show={show}&" if show else ""
    return f"?{tab}{given.query(**changes)}".rstrip("&")


def _count(number: int, capped: bool) -> str:
    return f"{number:,}+" if capped else f"{number:,}"


@dataclass(frozen=True, slots=True)
class Parts:
    """The operations that one person sees, by what they may do there: each tab shows its own part of them."""

    seen: OperationQuerySet
    mine: OperationQuerySet  # where they may review; all that they see, when they may nowhere
    theirs: OperationQuerySet  # the rest
    tabs: tuple[Tab, ...]

    @classmethod
    def of(cls, seen: OperationQuerySet, *, reach: Reach, permission: str) -> Parts:
        """As a reach has it. No query."""
        if not reach.may(permission):
            return cls(seen, seen, seen.none(), (FOR_REVIEWERS, *TABS[2:]))
        deciding = reach.where(permission)
        mine, theirs = seen.filter(scope__in=deciding.scopes), seen.exclude(scope__in=deciding.scopes)
        return cls(seen, mine, theirs, (*TABS[:2], OF_OTHERS, *TABS[2:]) if deciding.excepted else TABS)

    def operations(self, tab: str) -> OperationQuerySet:
        """Among which a tab looks."""
        return {WAITING: self.mine, DEFERRED: self.mine, OTHERS: self.theirs}.get(tab, self.seen)


def tabs(parts: Parts, *, given: Given, show: str, by: str, now: datetime) -> list[TabCount]:
    """Each tab with its count, which stops at TAB_COUNTED. A query per tab."""
    counted = []
    kept = replace(given, age="", state="")
    for tab in parts.tabs:
        among = given.narrow(parts.operations(tab.name))
        count = part(tab.name, among, by=by, now=now).order_by()[: TAB_COUNTED + 1].count()
        shown = f"{TAB_COUNTED:,}+" if count > TAB_COUNTED else f"{count:,}"
        counted.append(TabCount(tab=tab, count=shown, chosen=tab.name == show, query=address(kept, tab.name)))
    return counted


# --- what a row says of its time ------------------------------------------------------------------------------------


def noted(rows: Sequence[Row], operations: Sequence[Operation], *, waits: bool, now: datetime) -> list[Row]:
    """The rows with what matters about their time: since when they wait, when an approval runs out. No query."""
    pairs = zip(rows, operations, strict=True)
    return [replace(row, notes=tuple(_notes(operation, waits, now))) for row, operation in pairs]


def _notes(operation: Operation, waits: bool, now: datetime) -> Iterator[Note]:
    due, half = getattr(operation, "due_at", None), getattr(operation, "half_at", None)
    if waits and due is not None:
        yield Note(word=f"{Risk(operation.risk).name.lower()} risk", tone="warn" if operation.risk == Risk.HIGH else "")
        if due <= now:
            yield Note(word="overdue", tone="bad")
        elif half is not None and half <= now:
            yield Note(word="ageing", tone="wait")
        yield Note(word="waits since", at=operation.created_at)
    if operation.status == State.APPROVED:
        if operation.needs_second and operation.seconded_at is None:
            yield Note(word="needs a second person", tone="wait")
        if operation.approval_expires_at is not None and operation.approval_expires_at <= now:
            yield Note(word="expired: approve it again", tone="bad", at=operation.approval_expires_at)
        elif operation.approval_expires_at is not None:
            yield Note(word="expires", at=operation.approval_expires_at)
