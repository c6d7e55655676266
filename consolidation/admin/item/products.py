"""What an operation would do to memory, for the kinds whose sources do not say it themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from consolidation import merge
from consolidation import policy as rules
from consolidation.admin.item.sources import Records, Source
from consolidation.admin.telling import key_line
from consolidation.admin.texts import ERASED, Text, day, period, when, whole
from consolidation.models import Operation
from consolidation.operations import Approval, Kind, visible
from observations.fading import strength
from observations.models import Observation
from observations.normalise import key_part
from observations.records import Claim


@dataclass(frozen=True, slots=True)
class Product:
    """The record a merge would write."""

    text: Text
    key: str
    confidence: str
    by: str
    said: str
    valid: str
    sources: int
    witnesses: int
    roots: int


def merged_claims(
    operation: Operation, records: Records, policy: rules.Policy, *, keeps: Sequence[int] = ()
) -> list[Claim]:
    """What the rule that the runner uses would write: as it stands, then with the text of each of `keeps`. Empty where
    it writes nothing, or a source has no text any more. No query.
    """
    keep = operation.decision.get("keep") or operation.keeper_id
    rows = records.sources
    readable = {row.pk for row in rows if row.text is not None}
    never = operation.kind != Kind.MERGE or operation.approval == Approval.NEVER
    if never or len(readable) < len(rows) or keep not in readable:
        return []
    taken = [row.record(roots=records.roots(row.pk), uses=records.used(row.pk)[0]) for row in rows]
    key = (operation.claim_subject, operation.claim_predicate, operation.claim_object)
    edits = merge.edits_of(product=operation.product, text=operation.text, key=key)
    return [merge.combine(taken, keeper=one, policy=policy, edits=edits).claim for one in (keep, *keeps)]


def product(made: Claim, records: Records) -> Product:
    """A claim that is made of these records, to be shown. No query."""
    rows = records.sources
    united = {item.source_uri: item.root_source for row in rows for item in records.evidence.get(row.pk, ())}
    return Product(
        text=whole(made.text, most=None),
        key=key_line((made.subject, made.predicate, made.object)),
        confidence=f"{made.confidence:.2f}",
        by=made.stated_by,
        said=when(made.created_at),
        valid=period(made.valid_from, made.valid_to),
        sources=len(rows),
        witnesses=len(united),
        roots=len(set(united.values())),
    )


# --- two names ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Named:
    """One of the two subjects, with its newest records when it was asked."""

    name: str
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Names:
    """Two subjects that would be compared as one."""

    subject: Named
    main: Named  # the name it is compared as
    erased: int  # records of either that are gone
    asked_by: str


def names(operation: Operation, records: Records, shown: tuple[Source, ...]) -> Names | None:
    """The two subjects of an alias; None for other kinds. No query."""
    if operation.kind != Kind.ALIAS:
        return None
    standing = {row.pk: key_part(row.subject) for row in records.sources if row.text is not None}
    newest = sorted((one for one in shown if one.id in standing), key=lambda source: -source.id)
    mine = tuple(one for one in newest if standing[one.id] == operation.claim_subject)
    return Names(
        subject=Named(_name(operation.claim_subject), mine),
        main=Named(_name(operation.claim_object), tuple(one for one in newest if one not in mine)),
        erased=len(shown) - len(newest),
        asked_by=visible(operation.requested_by),
    )


def _name(name: str) -> str:
    return visible(name) if name else ERASED


# --- what has faded -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Faded:
    """How strong a record is by now."""

    age: str
    half_life: str  # empty: it never fades
    strength: str
    share: str  # of a hundred, for the picture
    below: str  # the policy's threshold
    threshold: str  # of a hundred
    last_used: str


def faded(row: Observation, *, now: datetime, below: float, last_used: datetime | None) -> Faded:
    """The strength a record has now, without the floor that ranks it. No query."""
    left = strength(created_at=row.created_at, half_life_days=row.half_life_days, now=now, floor=0.0)
    return Faded(
        age=days(max(0, (now - row.created_at).days)),
        half_life=days(row.half_life_days) if row.half_life_days else "",
        strength=f"{left:.2f}" if left >= 0.005 or left == 0 else "under 0.01",
        share=f"{100 * left:.1f}",
        below=f"{below:g}",
        threshold=f"{100 * below:.1f}",
        last_used=day(last_used),
    )


def days(number: int) -> str:
    """So many days, in words."""
    return "1 day" if number == 1 else f"{number:,} days"


def archived(operation: Operation, records: Records, *, now: datetime, policy: rules.Policy) -> Faded | None:
    """How faded the record of an archive is; None for other kinds, and for what was asked for. No query."""
    if operation.kind != Kind.ARCHIVE or not records.sources or operation.requested_by:
        return None
    row = records.sources[0]
    return faded(row, now=now, below=policy.archive_below, last_used=records.used(row.pk)[1])
