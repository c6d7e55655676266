"""Changing a policy: checked against what was measured, guarded against what others changed meanwhile, and an event.

Versions are counted and kept by the database (PolicyRevision), so an older one can be read and saved again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.db import IntegrityError, transaction

from consolidation import policy as rules
from consolidation.calibrating import in_force
from consolidation.models import Policy, PolicyRevision
from consolidation.operations import Json
from consolidation.policy import PolicyError
from observations.embedding import Profile
from observations.models import ClockTimestamp, Event, Scope

NEW: Final = 0  # the version of a policy that does not exist yet


class Conflict(Exception):
    """The policy is not at the version that was changed any more; the text says who saved another one, and when."""

    def __init__(self, *, pattern: str, current: Policy | None) -> None:
        self.current = current
        if current is None:
            super().__init__(f"The policy of {pattern} was removed meanwhile.")
            return
        super().__init__(
            f"Version {current.version} of the policy of {pattern} was saved meanwhile, by "
            f"{current.updated_by or 'somebody'} at {current.updated_at:%Y-%m-%d %H:%M} UTC."
        )


def faults(*, pattern: str, values: Mapping[str, Json], profile: Profile) -> dict[str, str]:
    """A sentence for every field that cannot be saved, "pattern" among them; empty when all can. One query.

    A threshold under the one in force for `profile` is refused: it could not take effect (R42).
    """
    found = rules.faults(values)
    try:
        rules.check_pattern(pattern=pattern)
    except PolicyError as fault:
        found["pattern"] = str(fault)
    t_merge = values.get("t_merge")
    if "t_merge" not in found and isinstance(t_merge, int | float):
        try:
            rules.refuse_below(t_merge=t_merge, measured=in_force(profile=profile).t_merge, embedder=profile.name)
        except PolicyError as fault:
            found["t_merge"] = str(fault)
    return found


def checked(*, pattern: str, values: Mapping[str, Json], profile: Profile) -> rules.Policy:
    """The policy of these values. Raises PolicyError with the first of its faults. One query."""
    for field, sentence in faults(pattern=pattern, values=values, profile=profile).items():
        raise PolicyError(sentence, field=field)
    return rules.Policy.from_dict(values)


def wider(*, pattern: str, own: bool = True) -> Policy | None:
    """The policy that holds for what a pattern means: its own (unless not `own`), or the most specific one around it.
    One query.
    """
    rows = {row.pattern: row for row in Policy.objects.all() if own or row.pattern != pattern}
    found = rules.most_specific(patterns=rows, scope=pattern)  # a pattern is below another one as a scope would be
    return rows[found] if found else None


@transaction.atomic
def revise(*, pattern: str, policy: rules.Policy, by: str, version: int) -> Policy:
    """Store a policy as the next version after `version` (NEW: the pattern has none yet), and say so in an event.

    A policy that is stored like that already is left alone. Raises Conflict when the stored version is another one.
    """
    body = policy.to_dict()
    before = Policy.objects.filter(pattern=pattern).first()
    if before is not None and before.version == version and before.body == body:
        return before
    if version == NEW:
        saved = _created(pattern, body, by)
    else:
        at_version = Policy.objects.filter(pattern=pattern, version=version)
        if not at_version.update(body=body, updated_by=by[:150], updated_at=ClockTimestamp()):
            raise _conflict(pattern)
        saved = Policy.objects.get(pattern=pattern)
    known = before.body if before is not None and version != NEW else rules.Policy().to_dict()
    changed = sorted(name for name, value in body.items() if known.get(name) != value)
    _event(saved, "policy_saved", by, {"version": saved.version, "changed": changed})
    return saved


def _created(pattern: str, body: dict[str, Json], by: str) -> Policy:
    try:
        with transaction.atomic():  # the unique key decides between two who begin at once
            saved = Policy.objects.create(pattern=pattern, body=body, updated_by=by[:150])
    except IntegrityError as error:
        raise _conflict(pattern) from error
    saved.refresh_from_db()
    return saved


@transaction.atomic
def remove(*, pattern: str, by: str, version: int) -> None:
    """Take a policy away, so that a wider one or the defaults hold; its versions stay. Raises Conflict."""
    row = Policy.objects.filter(pattern=pattern, version=version).select_for_update().first()
    if row is None:
        raise _conflict(pattern)
    _event(row, "policy_removed", by, {"version": row.version})
    row.delete()


def revision(*, pattern: str, version: int) -> PolicyRevision | None:
    """One version of a policy, if it was not a removal. One query."""
    return PolicyRevision.objects.filter(pattern=pattern, version=version, body__isnull=False).first()


def _conflict(pattern: str) -> Conflict:
    return Conflict(pattern=pattern, current=Policy.objects.filter(pattern=pattern).first())


def _event(row: Policy, action: str, by: str, detail: Mapping[str, object]) -> None:
    scope = Scope.objects.filter(name=row.pattern).first()
    Event.objects.append(
        scope_id=scope.pk if scope else None,
        action=action,
        actor=by[:150],
        subject=f"policy_{row.pk}",
        detail={"pattern": row.pattern, **detail},
    )
