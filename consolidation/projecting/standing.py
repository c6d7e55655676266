"""The projection that counts: whether it is of what would be applied now, and a person's word on a fall (R118)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q

from consolidation.models import Operation, Plan, Projection
from consolidation.projecting.figuring import appliable, automatic_of, digest_of, suites
from consolidation.review import Refused
from observations.models import Event, Scope, database_now

_REASON = 300  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The newest projection of one scope of a plan."""

    projection: Projection
    current: bool  # it is of exactly what would be applied now, by a person or by a schedule
    automatic: bool  # then: of what a schedule would apply, and a person would apply more

    @property
    def falls(self) -> bool:
        """Recall would fall, and nobody has said that it may."""
        return self.projection.fell and self.projection.signed_off_at is None


def shown(*, plan: Plan, scopes: Collection[Scope]) -> tuple[Shown, ...]:
    """The newest projection of each of these scopes of a plan that has one, by the scope's name. Three queries."""
    newest = Projection.objects.filter(plan=plan, scope__in=scopes).select_related("scope", "suite")
    rows = list(newest.order_by("scope_id", "-id").distinct("scope_id"))
    if not rows:
        return ()
    there = {row.scope for row in rows}
    operations = appliable(plan=plan, scopes=there)
    whole, part = _digests(operations, there), _digests(automatic_of(operations), there)
    return tuple(
        Shown(
            projection=row,
            current=row.digest in (whole[row.scope_id], part[row.scope_id]),
            automatic=row.digest == part[row.scope_id] != whole[row.scope_id],
        )
        for row in sorted(rows, key=lambda row: row.scope.name)
    )


def _digests(operations: Collection[Operation], scopes: Collection[Scope]) -> Mapping[int, str]:
    measured_by = {suite.scope_id: suite for suite in suites(scopes=scopes)}
    return {
        scope.pk: digest_of(
            operations=[row for row in operations if row.scope_id == scope.pk], suite=measured_by.get(scope.pk)
        )
        for scope in scopes
    }


def sign_off(*, projection: Projection, by: str, reason: str) -> Projection:
    """A person saw that recall would fall and lets these operations be applied unattended all the same; an event.

    Raises Refused without a reason, where nothing would fall, and where somebody signed it before.
    """
    reason = reason.replace("\0", "").strip()[:_REASON]
    if not reason:
        raise Refused("Say why recall may fall: a sign-off needs a reason.")
    with transaction.atomic():
        row = Projection.objects.select_for_update().get(pk=projection.pk)
        if not row.fell:
            raise Refused(f"Nothing is to be signed off: by {row} recall does not fall.")
        if row.signed_off_at is not None:
            raise Refused(f"{row.signed_off_by} signed it off on {row.signed_off_at:%Y-%m-%d %H:%M} UTC.")
        row.signed_off_at, row.signed_off_by, row.sign_off_reason = database_now(), by[:150], reason
        row.save(update_fields=["signed_off_at", "signed_off_by", "sign_off_reason"])
        Event.objects.append(
            scope_id=row.scope_id,
            action="signed_off",
            actor=by[:150],
            subject=str(row.plan),
            detail={"projection": row.pk, "lost": row.lost, "reason": reason},
        )
    return row


def fallen(*, projections: Collection[Projection]) -> dict[int, str]:
    """By scope id, why a plan may not be applied unattended there: recall would fall, and no person signed that off for
    the same operations and no more lost probes. One query.
    """
    falling = [row for row in projections if row.fell]
    same = Q(pk__in=[])
    for row in falling:
        same |= Q(plan=row.plan_id, scope=row.scope_id, digest=row.digest)
    signed = list(Projection.objects.filter(same, signed_off_at__isnull=False)) if falling else []
    return {
        row.scope_id: f"{_falls(row)}, and nobody signed that off"
        for row in falling
        if not any(
            (one.scope_id, one.digest) == (row.scope_id, row.digest) and {*row.lost} <= {*one.lost} for one in signed
        )
    }


def _falls(row: Projection) -> str:
    probes = f" (probes {', '.join(map(str, row.lost[:5]))})" if row.lost else ""
    return f"applying it would cost recall{probes}"
