"""Which item comes next in the focus view, and what stands beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from django.db import connection
from django.db.models import Q
from django.http import HttpRequest

from consolidation import review
from consolidation.admin.item.deciding import APPLY, REVIEW
from consolidation.admin.queue.focus_reading import Card, Decided, Last, card_of, drill_card, last_of
from consolidation.admin.queue.focus_tokens import Named
from consolidation.admin.queue.reading import RISKS, Given
from consolidation.calibration import Rate
from consolidation.models import Drill, Operation, OperationQuerySet
from consolidation.operations import Kind, risk_of
from consolidation.review import drills
from consolidation.review.ageing import Patience
from consolidation.review.within import Scopes, condition, few
from observations.admin.base import Reach, signed_in
from observations.models import ScopeQuerySet, database_now

LAST: Final = 10  # decisions in the side list
LAST_DAYS: Final = 7  # older ones are not looked for
COUNTED: Final = 1_000


@dataclass(frozen=True, slots=True)
class Desk:
    """What the page shows: an item, what is left, what was decided last, and how many drills were caught."""

    card: Card | None
    left: str
    query: str  # the filters, as an address carries them
    last: tuple[Last, ...]
    sitting: int  # decisions
    caught: str  # of this reviewer's drills; empty: none was answered yet

    def context(self) -> dict[str, object]:
        """For the templates."""
        return {name: getattr(self, name) for name in ("card", "left", "query", "last", "sitting", "caught")}


@dataclass(frozen=True, slots=True)
class Seat:
    """Who decides, and where they may: looked up once, for all that one request asks."""

    by: str
    user_id: int
    scopes: Scopes
    reach: Reach
    given: Given  # the filters of the address

    @classmethod
    def of(cls, request: HttpRequest) -> Seat:
        """One query."""
        user, reach = signed_in(request), Reach.of(request).where(REVIEW)
        given = Given.of(request.GET)
        return cls(by=user.get_username(), user_id=user.pk, scopes=few(reach.scopes), reach=reach, given=given)

    def within(self, scope_id: int) -> Seat:
        """The same in one scope, where they may decide there. One query for who has very many scopes."""
        mine = self.scopes
        if isinstance(mine, ScopeQuerySet):
            mine = list(mine.filter(pk=scope_id).values_list("pk", flat=True))
        return replace(self, scopes=[pk for pk in mine if pk == scope_id])

    def operation(self, pk: int) -> Operation:
        """Raises Operation.DoesNotExist for one in which this person may not decide, and for none. One query."""
        return Operation.objects.filter(scope__in=self.scopes).select_related("scope").get(pk=pk)


def step(
    seat: Seat,
    *,
    at: Named | None,
    passed: Operation | None = None,
    back: bool = False,
    stay: bool = False,
    plant: bool = False,
) -> Desk:
    """The item after one, before it (`back`), or that one again (`stay`); a drill when it is time for one.

    `passed` is the operation at `at` where it was read. `plant`: something was decided, so a drill may be written now;
    a look only finds one that waits. At most 18 queries, however much waits.
    """
    now = database_now()
    mine = narrowed(seat.given, review.waiting_for(by=seat.by, scopes=seat.scopes, now=now), now=now)
    sitting = drills.sitting(by=seat.by, scopes=seat.scopes, now=now)
    to_drill = at is not None and (at.drill if stay else at.beside if back else False)
    if at is not None and to_drill and (drill := _shown_again(at, seat.by)) is not None:
        named = Named(drill.pk, drill=True, place=at.place)
        return desk_of(seat, mine, Shown(at=named, drill=drill, sitting=sitting, now=now))
    left = passed or (_operation(seat, at.place if at.drill else at.pk) if at else None)
    if stay and left and at and not at.drill:
        return desk_of(seat, mine, Shown(at=at, operation=left, sitting=sitting, now=now))
    operation, skipped = _next(mine, left, back=back), 0 if plant or at is None else at.pk if at.drill else at.passed
    found = None if back or operation is None else _drill(seat, sitting, now, plant=plant)
    if found is not None and found.pk != skipped:
        named = Named(found.pk, drill=True, place=left.pk if left else 0)
        return desk_of(seat, mine, Shown(at=named, drill=found, sitting=sitting, now=now))
    on = at is not None and at.drill and not back and not plant
    named = Named(operation.pk if operation else 0, place=at.place if at and on else 0, passed=skipped, beside=on)
    return desk_of(seat, mine, Shown(at=named, operation=operation, sitting=sitting, now=now))


def plant(seat: Seat) -> None:
    """Before the page that a form without a script goes on to: the drill that it may find. Five queries at most."""
    now = database_now()
    _drill(seat, drills.sitting(by=seat.by, scopes=seat.scopes, now=now), now, plant=True)


def _drill(seat: Seat, sitting: drills.Sitting, now: datetime, *, plant: bool) -> Drill | None:
    """A drill that fits the filters of the address: a merge among prunes would tell itself."""
    given, found = seat.given, None
    low = next(word for word, risk in RISKS.items() if risk == risk_of(Kind.MERGE))
    if given.kind not in ("", Kind.MERGE) or given.risk not in ("", low) or given.rule or given.band or given.age:
        return None
    if not plant:
        found = drills.waiting(by=seat.by, scopes=seat.scopes, mine=sitting, now=now)
    elif sitting.waits or sitting.due:
        here = seat if sitting.waits or not given.scope else seat.within(int(given.scope))
        mine = sitting if here is seat else replace(sitting, scope_id=int(given.scope) if here.scopes else None)
        found = drills.plant(by=seat.by, scopes=here.scopes, mine=mine, now=now)
    return found if found is not None and given.scope in ("", str(found.scope_id)) else None


def _shown_again(at: Named, by: str) -> Drill | None:
    rows = Drill.objects.select_related("scope", "low", "high")
    return rows.filter(pk=at.pk if at.drill else at.passed, by=by, answer=Drill.Answer.WAITING).first()


def _operation(seat: Seat, pk: int) -> Operation | None:
    try:
        return seat.operation(pk)
    except Operation.DoesNotExist:
        return None


def _next(mine: OperationQuerySet, after: Operation | None, *, back: bool = False) -> Operation | None:
    """The waiting item after another in the order of the queue, from its other end when there is none. One query,
    three where little is left.

    A step for the same risk and one for the others, so that each begins in the index where the item stands.
    """
    ordered = mine.order_by("risk", "uncertainty", "-pk") if back else mine.by_risk()
    ordered = ordered.select_related("scope")
    if after is None:
        return ordered.first()
    than = "gt" if back else "lt"
    same = Q(**{f"uncertainty__{than}": after.uncertainty}) | Q(**{f"pk__{'lt' if back else 'gt'}": after.pk})
    near = ordered.filter(same, risk=after.risk, **{f"uncertainty__{than}e": after.uncertainty})
    far = ordered.filter(**{f"risk__{than}": after.risk})
    return near.first() or far.first() or ordered.exclude(pk=after.pk).first() or ordered.first()


def narrowed(given: Given, waiting: OperationQuerySet, *, now: datetime) -> OperationQuerySet:
    """What the address asks for. One query where it asks for an age, none otherwise."""
    waiting = given.narrow(waiting)
    return given.narrow_age(waiting, patience=Patience.read(), now=now) if given.age else waiting


# --- all that is shown ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shown:
    """What stands in the middle, and since when its reviewer has been at it."""

    at: Named
    sitting: drills.Sitting
    now: datetime
    operation: Operation | None = None
    drill: Drill | None = None


def desk_of(seat: Seat, mine: OperationQuerySet, shown: Shown) -> Desk:
    """Everything beside and about one item. Showing it marks it opened in the plans that hold it (R94, R116)."""
    card = None
    if shown.drill is not None:
        card = drill_card(drill=shown.drill, at=shown.at, user_id=seat.user_id, now=shown.now)
    elif shown.operation is not None:
        card = card_of(operation=shown.operation, at=shown.at, user_id=seat.user_id, now=shown.now)
        review.opened(operation=shown.operation, by=seat.by)
    left = mine.order_by()[: COUNTED + 1].count()
    return Desk(
        card=card,
        left=f"{COUNTED:,}+" if left > COUNTED else f"{left:,}",
        query=seat.given.query(state=""),
        last=_last(seat, shown.now),
        sitting=shown.sitting.decided,
        caught=_caught(shown.sitting.rate),
    )


# What this reviewer decided last and what they put off, the newest first. Of few scopes, the index gives the newest of
# each: a week of decisions is not sorted for ten.
_DECIDED: Final = """
SELECT id, op_id, kind, status, decided_at AS at, false AS put_off, scope_id FROM consolidation_operation
WHERE scope_id {scope} AND decided_by = %(by)s AND decided_at > %(now)s - %(span)s
ORDER BY decided_at DESC LIMIT %(last)s
"""
_OF_EACH: Final = "SELECT o.* FROM unnest(%(scopes)s::bigint[]) AS s (id) CROSS JOIN LATERAL ({decided}) o"
_LAST: Final = """
SELECT last.id, op_id, kind, status, at, put_off, s.name FROM (
({decided})
UNION ALL
(SELECT o.id, o.op_id, o.kind, o.status, d.at, true, o.scope_id FROM (
   SELECT operation_id, scope_id, at FROM consolidation_deferral
   WHERE by = %(by)s AND until > %(now)s AND scope_id {scopes} ORDER BY at DESC LIMIT %(last)s
 ) d JOIN consolidation_operation o ON o.id = d.operation_id AND o.scope_id = d.scope_id
 WHERE o.status = ANY (%(open)s))
ORDER BY at DESC LIMIT %(last)s
) last JOIN observations_scope s ON s.id = last.scope_id
ORDER BY at DESC
"""


def _last(seat: Seat, now: datetime) -> tuple[Last, ...]:
    """One query."""
    within, named = condition(seat.scopes)
    open_states, span = list(map(str, review.DECIDABLE)), timedelta(days=LAST_DAYS)
    values = {"by": seat.by, "now": now, "span": span, "last": LAST, "open": open_states, **named}
    with connection.cursor() as cursor:
        each = _OF_EACH.format(decided=_DECIDED.format(scope="= s.id"))
        decided = each if "scopes" in named else _DECIDED.format(scope=within)
        cursor.execute(_LAST.format(decided=decided, scopes=within), values)
        rows = cursor.fetchall()
    found = (
        Decided(pk, op_id, kind, status, at, put_off, may_apply=seat.reach.may(APPLY, scope=name))
        for pk, op_id, kind, status, at, put_off, name in rows
    )
    return tuple(last_of(one, user_id=seat.user_id) for one in found)


def _caught(rate: Rate) -> str:
    if not rate.of:
        return ""
    low, high = rate.interval
    return f"{rate.hits} of {rate.of} drills caught ({100 * low:.0f}–{100 * high:.0f}%)"
