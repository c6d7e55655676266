"""What the pages of plans read: counts, the items of one page, and what applying the whole would do."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.core import signing
from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from consolidation import rollout
from consolidation.admin.reading import SHOWN_HOURS, Chip, ShownExpired, rows_of
from consolidation.admin.texts import when
from consolidation.models import Operation, OperationSource, Plan, PlanItem
from consolidation.operations import Approval, Kind, State, plan, visible
from consolidation.planner import COVERED, UNRECONCILED, UNTOUCHABLE
from consolidation.policy import matches
from observations.admin.base import Reach

_GAPS = Chip("with gaps", "warn")  # nothing failed, and not all of it was planned
_STATES = {Plan.State.COMPLETE: Chip("complete", "done"), Plan.State.PARTIAL: Chip("partial", "warn")}
_FAILED = Chip("failed", "bad")


def _state(row: Plan) -> Chip:
    if row.state == Plan.State.COMPLETE and row.failures:
        return _GAPS
    return _STATES.get(Plan.State(row.state), _FAILED)


@dataclass(frozen=True, slots=True)
class KindCount:
    """How many operations of one kind a plan holds, by what has to happen to them."""

    kind: str
    automatic: int
    waiting: int
    approved: int
    applied: int
    closed: int  # rejected, distinct, edited, undone, stale or failed
    skipped: int

    @property
    def total(self) -> int:
        """Every one."""
        return self.automatic + self.waiting + self.approved + self.applied + self.closed + self.skipped


@dataclass(frozen=True, slots=True)
class Summary:
    """One plan in a list, or at the head of its page. Counts are of visible scopes only."""

    pk: int
    name: str
    state: Chip
    pattern: str
    created: str
    by: str
    trigger: str
    explained: str
    kinds: tuple[KindCount, ...]

    def _sum(self, name: str) -> int:
        return sum(getattr(kind, name) for kind in self.kinds)

    @property
    def waiting(self) -> int:
        """Items that need a person."""
        return self._sum("waiting")

    @property
    def automatic(self) -> int:
        """Items that are applied with the plan."""
        return self._sum("automatic")

    @property
    def approved(self) -> int:
        """Items approved and not applied."""
        return self._sum("approved")

    @property
    def applied(self) -> int:
        """Items applied."""
        return self._sum("applied")

    @property
    def closed(self) -> int:
        """Items rejected, distinct, undone, stale or failed."""
        return self._sum("closed")

    @property
    def skipped(self) -> int:
        """Items a rule refused."""
        return self._sum("skipped")

    @property
    def total(self) -> int:
        """All items."""
        return self._sum("total")

    @property
    def open(self) -> int:
        """Items a person may still decide."""
        return self.waiting + self.automatic


def visible_plans(reach: Reach) -> QuerySet[Plan]:
    """Plans that hold something this person may see, or were made for scopes they were given. No query."""
    if reach.everything:
        return Plan.objects.all()
    holds = PlanItem.objects.filter(plan=OuterRef("pk"), scope__in=reach.scopes)
    mine = Q(pattern__in=reach.patterns) | Q(pattern__in=reach.scopes.values("name")) | Q(scope__in=reach.scopes)
    return Plan.objects.filter(mine | Exists(holds))


def summaries(plans: Sequence[Plan], *, reach: Reach) -> list[Summary]:
    """Plans with their counts. One query."""
    counted: dict[int, Counter[tuple[str, str]]] = {row.pk: Counter() for row in plans}
    rows = (
        PlanItem.objects.filter(plan__in=[row.pk for row in plans], scope__in=reach.scopes)
        .values_list("plan_id", "operation__kind", "operation__status", "operation__approval")
        .annotate(n=Count("id"))
        .order_by()
    )
    for pk, kind, status, approval, number in rows:
        counted[pk][kind, _column(status, approval)] += number
    return [_summary(row, counted[row.pk]) for row in plans]


def _column(status: str, approval: str) -> str:
    if status == State.PLANNED:
        return "automatic"
    if status == State.NEEDS_HUMAN or (status == State.SKIPPED and approval == Approval.NEEDS_HUMAN):
        return "waiting"
    if status in (State.APPROVED, State.APPLIED, State.SKIPPED):
        return str(status)
    return "closed"


def _summary(row: Plan, counted: Counter[tuple[str, str]]) -> Summary:
    columns = ("automatic", "waiting", "approved", "applied", "closed", "skipped")
    kinds = (KindCount(str(kind), *(counted[kind, column] for column in columns)) for kind in Kind)
    return Summary(
        pk=row.pk,
        name=plan(row.pk),
        state=_state(row),
        pattern="every scope" if row.pattern == "*" else visible(row.pattern),
        created=when(row.created_at),
        by=visible(row.requested_by),
        trigger=visible(row.trigger),
        explained=when(row.explained_at),
        kinds=tuple(kind for kind in kinds if kind.total),
    )


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One scope, or one step of it, that was not planned."""

    scope: str
    step: str  # empty: nothing of the scope was planned
    why: str
    failed: bool  # it was tried and did not work; else it merely could not run


def left_out(row: Plan, *, reach: Reach) -> list[LeftOut]:
    """The visible scopes that were not planned, and steps of scopes that were not done, with the reason. No query."""
    return [
        LeftOut(
            scope=visible(str(item.get("scope", ""))),
            step=visible(str(item.get("step", ""))),
            why=visible(str(item.get("error", "")).removeprefix(f"{item.get('step')}: ")),
            failed=bool(item.get("failed", True)),
        )
        for item in visible_failures(row, reach=reach)
    ]


def visible_failures(row: Plan, *, reach: Reach) -> list[dict[str, Any]]:
    """What a plan noted about scopes that this person may see. No query."""
    return [
        item
        for item in row.failures
        if any(matches(pattern=pattern, scope=str(item.get("scope", ""))) for pattern in reach.patterns)
    ]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A policy that a plan was made under."""

    pattern: str
    version: int
    hash: str  # its beginning
    scopes: tuple[str, ...]  # visible ones it held for


def snapshots(row: Plan, *, reach: Reach) -> list[Snapshot]:
    """The policies a plan was made under, where they held for a scope that this person may see. One query."""
    held = reach.scopes.filter(pk__in=[int(pk) for pk in row.policies]).order_by("name").values_list("pk", "name")
    scopes: defaultdict[str, list[str]] = defaultdict(list)
    for pk, name in held:
        scopes[row.policies[str(pk)]].append(visible(name))
    return [
        Snapshot(
            pattern=visible(str(row.snapshots.get(hashed, {}).get("pattern", ""))),
            version=int(row.snapshots.get(hashed, {}).get("version", 0)),
            hash=hashed[:12],
            scopes=tuple(names),
        )
        for hashed, names in scopes.items()
    ]


def held_back(row: Plan, *, reach: Reach) -> int:
    """Questions over the day's review budget; 0 for who may not see every scope of the plan. No query."""
    return int(row.figures.get("held_back", 0)) if reach.covers(row.pattern) else 0


def untouchable(row: Plan, *, reach: Reach) -> int:
    """Records of visible scopes that a policy lets no proposal touch. One query, or none."""
    counted = {int(pk): int(number) for pk, number in row.figures.get(UNTOUCHABLE, {}).items()}
    mine = reach.scopes.filter(pk__in=counted).values_list("pk", flat=True) if counted else ()
    return sum(counted[pk] for pk in mine)


def unreconciled(row: Plan, *, reach: Reach) -> tuple[int, int]:
    """Records of visible scopes that the background stored without comparing them, and how many of them the plan takes
    up. One query, or none.
    """
    counted = row.figures.get(UNRECONCILED, {})
    ids = [int(pk) for pk in counted]
    mine = [str(pk) for pk in reach.scopes.filter(pk__in=ids).values_list("pk", flat=True)] if ids else []
    covered = row.figures.get(COVERED, {})
    return sum(int(counted[pk]) for pk in mine), sum(int(covered.get(pk, 0)) for pk in mine)


SHOWS = {
    "open": Q(operation__status__in=[State.PLANNED, State.NEEDS_HUMAN, State.SKIPPED])
    & ~Q(operation__approval=Approval.NEVER),
    "approved": Q(operation__status=State.APPROVED),
    "all": Q(),
    "skipped": Q(operation__status=State.SKIPPED, operation__approval=Approval.NEVER),
    "applied": Q(operation__status=State.APPLIED),
    "closed": Q(
        operation__status__in=[
            *(State.REJECTED, State.DISTINCT, State.UNDONE, State.STALE, State.FAILED, State.EDITED),
        ]
    ),
}


def items(row: Plan, *, reach: Reach, show: str, kind: str = "") -> QuerySet[PlanItem]:
    """A plan's visible items in their order, with operation and scope. No query."""
    found = PlanItem.objects.filter(SHOWS[show], plan=row, scope__in=reach.scopes)
    found = found.filter(operation__kind=kind) if kind else found
    return found.select_related("operation__scope").order_by("position", "pk")


# --- applying the whole ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Touch:
    """What applying would do to one scope."""

    scope: str
    operations: int
    records: int


@dataclass(frozen=True, slots=True)
class WholePlan:
    """What applying a plan would do, before anybody does it."""

    kinds: tuple[tuple[str, int], ...]
    total: int
    touches: tuple[Touch, ...]
    wide: str  # why a second confirmation is needed; empty: it is not
    hidden: bool  # it holds items of scopes this person may not see
    shown: str  # fingerprint of exactly these operations
    items: Mapping[int, str]  # each of them, with the digest of what applying it would do
    operations: tuple[Operation, ...]  # those this person may see, as they are applied: in the plan's order


def whole_plan(row: Plan, *, reach: Reach) -> WholePlan:
    """What the applier would take: automatic and approved items. A fixed number of queries, but for scopes' sizes."""
    waiting = Q(status=State.APPROVED) | Q(status=State.PLANNED, approval=Approval.AUTO)
    mine = Operation.objects.filter(waiting, plan_items__plan=row).select_related("scope")
    operations = list(mine.order_by("plan_items__position", "pk"))
    visible_ids = set(reach.scopes.filter(pk__in={item.scope_id for item in operations}).values_list("pk", flat=True))
    records = dict(
        OperationSource.objects.filter(operation__in=[item.pk for item in operations])
        .values_list("scope_id")
        .annotate(n=Count("id"))
        .order_by()
    )
    by_scope = Counter((item.scope_id, item.scope.name) for item in operations if item.scope_id in visible_ids)
    hidden = any(item.scope_id not in visible_ids for item in operations)
    shown = _digests(operations)
    return WholePlan(
        kinds=tuple(sorted(Counter(item.kind for item in operations if item.scope_id in visible_ids).items())),
        total=sum(by_scope.values()),
        touches=tuple(
            Touch(scope=visible(name), operations=number, records=int(records.get(scope, 0)))
            for (scope, name), number in sorted(by_scope.items(), key=lambda item: item[0][1])
        ),
        wide="" if hidden else rollout.width(plan=row),
        hidden=hidden,
        shown=_fingerprint(shown),
        items=shown,
        operations=tuple(item for item in operations if item.scope_id in visible_ids),
    )


_UNREADABLE: Final = "-"  # of a policy that cannot be read: the digest of nothing, so nothing is applied for it


def _digests(operations: Sequence[Operation]) -> dict[int, str]:
    """What applying each would do: the digest of its approval, or of the proposal nobody decides. Two queries."""
    proposed = [item for item in operations if not item.approved_digest]
    digests = {row.pk: row.digest for row in rows_of(proposed)}
    return {item.pk: item.approved_digest or digests[item.pk] or _UNREADABLE for item in operations}


def _fingerprint(shown: Mapping[int, str]) -> str:
    """sha256 of which operations would do what: an approval that arrives later is not applied unseen (D2)."""
    return hashlib.sha256(repr(sorted(shown.items())).encode()).hexdigest()


# --- undoing what it applied ----------------------------------------------------------------------------------------

_SALT: Final = "palimpsest.plan.undo"


def undo_token(*, plan: int, operations: Sequence[Operation], user_id: int) -> str:
    """One signed field with the operations that a page listed: what is applied later is not undone unseen (D2, H2)."""
    content = {"user": user_id, "plan": plan, "shown": [item.pk for item in operations]}
    return signing.dumps(content, salt=_SALT, compress=True)


def undo_listed(*, plan: int, token: str, user_id: int) -> list[int]:
    """The operations that the page of this plan listed to this person. Raises ShownExpired."""
    try:
        content = signing.loads(token, salt=_SALT, max_age=SHOWN_HOURS * 3600)
    except signing.BadSignature as error:
        raise ShownExpired from error
    if (content["user"], content["plan"]) != (user_id, plan):
        raise ShownExpired
    return [int(pk) for pk in content["shown"]]


def has_hidden(row: Plan, *, reach: Reach) -> bool:
    """True when the plan holds items of scopes this person may not see. One query."""
    return PlanItem.objects.filter(plan=row).exclude(scope__in=reach.scopes).exists()
