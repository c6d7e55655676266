"""How long what needs a person has waited: by risk, as each scope's policy allows. Age tells people, and in the end
makes an item stale; it never approves one.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, TypeAlias

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import (
    Case,
    Count,
    DateTimeField,
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    Min,
    OuterRef,
    Q,
    Value,
    When,
)
from django.urls import reverse

from consolidation import policy as rules
from consolidation.models import Operation, OperationQuerySet, Overdue, Policy
from consolidation.operations import Approval, Risk, State, visible
from consolidation.review.reviewers import REVIEW, reviewed_by
from observations import outbox
from observations.models import Event, Outbox, database_now

MAIL_OVERDUE: Final = "mail_overdue"
_BACKEND: Final = "django.contrib.auth.backends.ModelBackend"
_NO_MAIL: Final = "django.core.mail.backends.dummy.EmailBackend"
_MOST: Final = 10_000  # items of one round of mails
_LISTED: Final = 50  # scopes of one mail
_NOT_SET: Final = "no mail server is set (PALIMPSEST_MAIL_URL)"
_WAITS: Final = (State.NEEDS_HUMAN, State.SKIPPED)

Combined: TypeAlias = "ExpressionWrapper[Any]"
log = logging.getLogger(__name__)


class Age(StrEnum):
    """How an item stands to the time its policy gives people."""

    FRESH = "fresh"  # not half of it is over
    AGEING = "ageing"
    OVERDUE = "overdue"  # all of it is over


# --- what a policy allows -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an item may wait, by scope and risk: the patterns of policies, the most specific first."""

    patterns: tuple[tuple[str, rules.Policy], ...]

    @classmethod
    def read(cls) -> Patience:
        """From every stored policy; one that cannot be read counts as far as it can. One query."""
        stored = {pattern: _readable(body) for pattern, body in Policy.objects.values_list("pattern", "body")}
        stored.setdefault("*", rules.Policy())
        ranked = sorted(stored, key=lambda pattern: (pattern.endswith("*"), -len(pattern), pattern))
        return cls(tuple((pattern, stored[pattern]) for pattern in ranked))

    def until(self, *, share: float = 1.0) -> Combined:
        """When (a share of) the time of an operation is over, as an expression over operations."""
        ages = {
            pattern: {risk: timedelta(hours=policy.age_hours(risk)) * share for risk in Risk}
            for pattern, policy in self.patterns
        }
        return _after(
            (self._where(pattern) & Q(risk=risk), age)
            for pattern, by_risk in _first_alike(ages).items()
            for risk, age in by_risk.items()
        )

    def stale_from(self) -> Combined:
        """When an operation that nobody decided goes stale, as an expression over operations."""
        days = {pattern: timedelta(days=policy.waiting_ttl_days) for pattern, policy in self.patterns}
        return _after((self._where(pattern), age) for pattern, age in _first_alike(days).items())

    @staticmethod
    def _where(pattern: str) -> Q:
        if pattern == "*":
            return Q(pk__isnull=False)
        return Q(scope__name__startswith=pattern[:-1]) if pattern.endswith("/*") else Q(scope__name=pattern)


def _readable(body: Mapping[str, Any]) -> rules.Policy:
    try:
        return rules.Policy.from_dict(body)
    except rules.PolicyError:
        return rules.Policy.salvaged(body)


def _first_alike(found: dict[str, Any]) -> dict[str, Any]:
    """Where every pattern says the same, one is enough, and no scope's name has to be looked at."""
    values = list(found.values())
    return {"*": values[0]} if all(value == values[0] for value in values) else found


def _after(ages: Iterable[tuple[Q, timedelta]]) -> Combined:
    spans = [When(where, then=Value(age, output_field=DurationField())) for where, age in ages]
    return ExpressionWrapper(F("created_at") + Case(*spans, output_field=DurationField()), output_field=DateTimeField())


def aged(operations: OperationQuerySet, *, patience: Patience) -> OperationQuerySet:
    """The same, each with `half_at` and `due_at`: when half and all of the time people have is over. No query."""
    return operations.annotate(half_at=patience.until(share=0.5), due_at=patience.until())


def of_age(age: Age, *, now: datetime) -> Q:
    """Which of `aged` operations are that old."""
    match age:
        case Age.OVERDUE:
            return Q(due_at__lte=now)
        case Age.AGEING:
            return Q(due_at__gt=now, half_at__lte=now)
        case _:
            return Q(half_at__gt=now)


# --- health ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Standing:
    """What waits at one risk."""

    fresh: int = 0
    ageing: int = 0
    overdue: int = 0
    oldest: datetime | None = None  # when the one that waits longest was proposed

    @property
    def waiting(self) -> int:
        """All of it."""
        return self.fresh + self.ageing + self.overdue


@dataclass(frozen=True, slots=True)
class Health:
    """How the queue stands."""

    by_risk: Mapping[Risk, Standing]  # the highest first
    approved: int  # decided, not applied
    expired: int  # of those: the approval ran out, and has to be given again

    @property
    def overdue(self) -> int:
        """Items that waited longer than they may."""
        return sum(standing.overdue for standing in self.by_risk.values())


def health(*, scopes: Collection[int], now: datetime | None = None) -> Health:
    """What waits in these scopes, by risk and age, and what was approved and not applied. Three queries."""
    now = now or database_now()
    within = Operation.objects.filter(scope__in=list(scopes))
    waiting = aged(within.awaiting_review(), patience=Patience.read())
    counts = {age.value: Count("pk", filter=of_age(age, now=now)) for age in Age}
    names = ("risk", "oldest", *counts)
    found = waiting.order_by().values("risk").annotate(oldest=Min("created_at"), **counts).values_list(*names)
    rows: dict[int, dict[str, Any]] = {row[0]: dict(zip(names[1:], row[1:], strict=True)) for row in found}
    approved = within.approved_not_applied().aggregate(
        approved=Count("pk"), expired=Count("pk", filter=Q(approval_expires_at__lte=now))
    )
    return Health(by_risk={risk: Standing(**rows.get(risk, {})) for risk in sorted(Risk, reverse=True)}, **approved)


def overdue(*, scopes: Collection[int]) -> int:
    """How many items of these scopes wait longer than they may. Two queries."""
    waiting = aged(Operation.objects.filter(scope__in=list(scopes)).awaiting_review(), patience=Patience.read())
    return waiting.filter(of_age(Age.OVERDUE, now=database_now())).count()


# --- telling people -------------------------------------------------------------------------------------------------


class Unsent(Exception):
    """A reviewer could not be mailed about overdue items; it is tried again until it is sent."""


@dataclass(frozen=True, slots=True)
class Told:
    """What came of one look for what is overdue."""

    items: int  # overdue, and nobody was told of them before
    told: int  # of those: somebody is told now
    people: int  # who gets a mail, each with a row of its own in the outbox
    why: str = ""  # why nobody is mailed, when that is so


@dataclass(frozen=True, slots=True)
class _Late:
    pk: int
    scope_id: int
    scope: str
    risk: int


def tell() -> Told:
    """Have every reviewer with an address mailed what is overdue in scopes they may see, each by a row of the outbox.

    An item is told of once, to everybody who may see it then. The rows are written together with what was told, so a
    mail that fails is tried again by itself, and nobody who got theirs gets it twice; a row that had stopped is tried
    anew.
    """
    late = _late()
    if settings.EMAIL_BACKEND == _NO_MAIL:
        return Told(len(late), 0, 0, why=_NOT_SET)
    for stopped in Outbox.objects.filter(task=MAIL_OVERDUE, done_at=None, attempts__gte=outbox.MAX_ATTEMPTS):
        outbox.enqueue(task=MAIL_OVERDUE, scope_id=None, key=stopped.key, payload=stopped.payload)
    readers = list(_readers(late))
    told = Counter(item.pk for _, mine in readers for item in mine)
    rows = [Overdue(scope_id=item.scope_id, operation_id=item.pk, told=told[item.pk]) for item in late if told[item.pk]]
    if rows:
        _ask(rows, [person for person, _ in readers])
    why = "" if rows or not late else "nobody who may review there has an address"
    return Told(items=len(late), told=len(rows), people=len(readers), why=why)


@transaction.atomic
def _ask(rows: Sequence[Overdue], people: Iterable[int]) -> None:
    """What is told of, and a mail for each of these people. Somebody else who tells of an item of it fails first."""
    made = [row.pk for row in Overdue.objects.bulk_create(rows, batch_size=1_000)]
    first, last = min(made), max(made)
    for person in people:
        named = {"person": person, "first": first, "last": last}
        outbox.enqueue(task=MAIL_OVERDUE, scope_id=None, key=f"{person}:{first}-{last}", payload=named)


def _late() -> list[_Late]:
    """Overdue items that nobody was told of, the riskiest first. Two queries."""
    known = Overdue.objects.filter(scope_id=OuterRef("scope_id"), operation_id=OuterRef("pk"))
    waiting = aged(Operation.objects.awaiting_review(), patience=Patience.read())
    late = waiting.filter(of_age(Age.OVERDUE, now=database_now())).filter(~Exists(known)).by_risk()
    return [_Late(*row) for row in late.values_list("pk", "scope_id", "scope__name", "risk")[:_MOST]]


def _readers(late: Sequence[_Late]) -> Iterable[tuple[int, list[_Late]]]:
    """Each reviewer who has an address, with what they may see of it. Two queries, and two per person."""
    scopes = {item.scope_id for item in late}
    if not scopes:
        return
    for person in User.objects.with_perm(REVIEW, backend=_BACKEND).exclude(email="").order_by("pk"):
        seen = set(reviewed_by(person).filter(pk__in=scopes).values_list("pk", flat=True))
        if mine := [item for item in late if item.scope_id in seen]:
            yield person.pk, mine


def mail(*, person: int, first: int, last: int) -> str:
    """One mail to one reviewer, of what of these rows of `Overdue` still waits and they may still see: figures and
    links, never memory. What came of it, in a few words. Raises Unsent, and outbox.NotYet where no mail server is set.
    Five queries at most.
    """
    if settings.EMAIL_BACKEND == _NO_MAIL:
        raise outbox.NotYet(_NOT_SET)
    reader = User.objects.filter(pk=person).exclude(email="").first()
    if reader is None:
        return "the reviewer has no address any more"
    waiting = Operation.objects.awaiting_review().filter(overdue__pk__range=(first, last)).by_risk()
    mine = waiting.filter(scope__in=reviewed_by(reader)).values_list("pk", "scope_id", "scope__name", "risk")
    found = [_Late(*row) for row in mine]
    if not found:
        return "nothing of it waits any more"
    _send(reader.email, found)
    return f"a reviewer was mailed about {len(found)} overdue items"


def _send(address: str, mine: Sequence[_Late]) -> None:
    number = len(mine)
    subject = f"Palimpsest: {number:,} item{'' if number == 1 else 's'} waited longer than allowed"
    try:
        sent = EmailMessage(subject=subject, body=_body(mine), to=[address]).send()
    except (OSError, ValueError) as error:  # smtplib's are OSErrors; an address of two lines is a ValueError
        log.warning("a reviewer could not be mailed about overdue items: %s", type(error).__name__)
        raise Unsent from None
    if sent != 1:
        raise Unsent


def _body(mine: Sequence[_Late]) -> str:
    by_scope: dict[int, Counter[int]] = {}
    names = {item.scope_id: item.scope for item in mine}
    for item in mine:
        by_scope.setdefault(item.scope_id, Counter())[item.risk] += 1
    lines = ["These wait for a decision, and have waited longer than the policy of their scope allows.", ""]
    for scope_id, risks in list(by_scope.items())[:_LISTED]:
        said = ", ".join(
            f"{risks[risk]:,} of {risk.name.lower()} risk" for risk in sorted(Risk, reverse=True) if risks[risk]
        )
        lines += [f"{visible(names[scope_id])}: {said}", f"  {_link(scope_id)}"]
    if len(by_scope) > _LISTED:
        lines.append(f"and {len(by_scope) - _LISTED:,} more scopes")
    return "\n".join([*lines, "", "You are told of each item once. Nothing is ever approved by time.", ""])


def _link(scope_id: int) -> str:
    """The queue's address for one scope. The site's own is the first trusted origin; without one, it is a path."""
    origins = [origin for origin in settings.CSRF_TRUSTED_ORIGINS if "*" not in origin]
    page = reverse("admin:consolidation_operation_changelist")
    return f"{origins[0].rstrip('/') if origins else ''}{page}?scope={scope_id}&age={Age.OVERDUE}"


# --- going stale ----------------------------------------------------------------------------------------------------


def expire(*, by: str, seconds: float = float("inf")) -> int:
    """Make stale what nobody decided for as long as its policy lets it wait; how many that were. Never an approval.

    One transaction each, the riskiest first, for so many seconds. A decision that was taken back starts the wait anew.
    """
    deadline, patience, now = time.monotonic() + seconds, Patience.read(), database_now()
    waiting = Operation.objects.awaiting_review().annotate(stale_from=patience.stale_from())
    over = waiting.filter(stale_from__lte=now).by_risk().values_list("pk", "created_at", "stale_from")
    expired = 0
    for pk, created_at, stale_from in list(over[:_MOST]):
        if time.monotonic() > deadline:
            break
        expired += _expire(pk, (stale_from - created_at).days, now, by)
    return expired


@transaction.atomic
def _expire(pk: int, days: int, now: datetime, by: str) -> bool:
    operation = Operation.objects.select_for_update(of=("self",)).get(pk=pk)
    waits = operation.status in _WAITS and operation.approval == Approval.NEEDS_HUMAN
    named: dict[str, Any] = {
        "scope_id": operation.scope_id,
        "subject": operation.op_id,
        "generation": operation.generation,
    }
    if not waits or Event.objects.filter(**named, action="reopened", at__gt=now - timedelta(days=days)).exists():
        return False
    before = operation.status
    operation.status = State.STALE
    operation.outcome = f"nobody decided it within {days} days; the next plan proposes it again if it still holds"
    operation.save(update_fields=["status", "outcome"])
    Event.objects.append(**named, action=State.STALE, actor=by, detail={"from": before, "waited_days": days})
    return True
