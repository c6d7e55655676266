"""How much of each scope one approval of many items touches, beside the blast radius of its policy.

The standard is a plan's: it counts all that it would apply, whenever and by whomever that was approved. So what is
approved together counts with everything else that the same person alone approved in the scope and nobody applied yet,
and approvals that were split up to stay under the radius meet there: the one that goes over it needs a second person.
What was applied, ran out or waits for a second person counts no more. What this does not stop is what a plan's rule
does not stop either: a part that is applied before the next one is approved, and items approved one by one, each read
by itself and under its own radius.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Count, Q, Sum

from consolidation.models import BulkDecision, BulkItem, Operation, Policy, chosen
from consolidation.operations import State
from consolidation.policy import Policy as Rules
from consolidation.policy import PolicyError
from consolidation.review.wanting import names_of
from observations.models import Observation, Scope, database_now

_APPROVE: Final = "approve"


@dataclass(frozen=True, slots=True)
class Share:
    """One scope of a decision over many items."""

    scope_id: int
    scope: str  # its name as it is stored
    items: int
    touched: int  # records of these items
    beside: int  # records of what the same person alone approved there, and nobody applied
    size: int  # active records of the scope
    policy: Rules | None  # None: it cannot be read, and nothing is approved under it

    @property
    def wide(self) -> bool:
        """Over the blast radius."""
        return self.policy is None or self.touched + self.beside > self.policy.blast_limit(size=self.size)

    @property
    def second(self) -> bool:
        """Whether another person has to agree before any of it is applied."""
        return self.wide and (self.policy is None or self.policy.two_person_wide)


def shares(*, bulk: BulkDecision) -> list[Share]:
    """Each scope of an approval with what it touches now, the most first. Five queries."""
    of_it = Operation.objects.filter(bulk_items__bulk=bulk).order_by()
    counted = list(of_it.values_list("scope_id", "scope__name").annotate(items=Count("pk"), records=Sum("n_sources")))
    ids = [scope_id for scope_id, _, _, _ in counted]
    beside = _beside(bulk, ids)
    active = Observation.objects.active().filter(scope_id__in=ids).order_by()
    sizes = dict(active.values_list("scope_id").annotate(n=Count("pk")))
    policies = _policies([name for _, name, _, _ in counted])
    found = [
        Share(pk, name, items, records, beside.get(pk, 0), sizes.get(pk, 0), policies[name])
        for pk, name, items, records in counted
    ]
    return sorted(found, key=lambda share: (-share.touched, share.scope))


def _policies(scopes: Sequence[str]) -> dict[str, Rules | None]:
    """One query."""
    stored = {pattern: (0, body) for pattern, body in Policy.objects.values_list("pattern", "body")}
    found: dict[str, Rules | None] = {}
    for scope in scopes:
        try:
            found[scope] = chosen(stored, scope=scope).rules
        except PolicyError:
            found[scope] = None
    return found


def _beside(bulk: BulkDecision, scopes: Sequence[int]) -> dict[int, int]:
    """Records of what else this person alone approved in these scopes and may be applied; and of what they confirmed in
    another decision that is still being carried out. One query: an item that a worker approves meanwhile is in one of
    both, and between two statements it would be missed by both.
    """
    names = names_of(bulk.by)
    stands = Q(status=State.APPROVED, approval_expires_at__gt=database_now())
    waiting = BulkItem.objects.filter(
        scope__in=scopes, outcome=BulkItem.Outcome.WAITING, bulk__verb=_APPROVE, bulk__by__in=names
    )
    confirmed = waiting.filter(bulk__wide__isnull=False).values("operation_id")
    alone = stands & Q(decided_by__in=names, needs_second=False)
    others = Operation.objects.filter(alone | (~stands & Q(pk__in=confirmed)), scope__in=scopes)
    apart = others.exclude(bulk_items__bulk=bulk).order_by()
    return dict(apart.values_list("scope_id").annotate(records=Sum("n_sources")))


def scopes_over(*, bulk: BulkDecision) -> list[int]:
    """The scopes in which another person has to agree to what an approval of many items approves. Six queries.

    Inside a transaction: the scopes stay locked until its end, so that of two confirmed at once the later one counts
    the earlier.
    """
    locked = Scope.objects.select_for_update(no_key=True).filter(pk__in=bulk.scopes).order_by("pk")
    list(locked.values_list("pk", flat=True))  # no writer of the scope waits for it
    return sorted(share.scope_id for share in shares(bulk=bulk) if share.second)
