"""What people's labels say about each rule: read, asked for, and acted upon (DESIGN promise 8, R48).

Everything that was applied without a decision may be asked about afterwards: the first of a band, then a share, chosen
by the operations' ids so that looking again chooses the same. A band that is known to be wrong too often loses its
automatic status by itself; a person gives it back.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from django.conf import settings
from django.core.mail import mail_admins
from django.db import DatabaseError, connection, transaction
from django.db.models import QuerySet

from consolidation.accuracy import Band, Demoted, spoken, worst
from consolidation.models import Demotion, Operation, Policy, Sample, chosen
from consolidation.operations import Approval, State
from consolidation.policy import Policy as Rules
from consolidation.policy import PolicyError
from consolidation.review import AlreadyDecided, Refused
from observations.models import Event, Scope, database_now

log = logging.getLogger(__name__)
Key = tuple[str, str, str]  # kind, rule, band

_LOCK: Final = 0x5063 << 40  # our corner of PostgreSQL's advisory locks: choosers and demoters take turns
_COLUMNS: Final = ("pattern", "version", "body")
_BY: Final = "measured error"  # who demotes


class Unknown(Refused):
    """There is no such sample."""


# --- reading ---------------------------------------------------------------------------------------------------------

# One label an operation at most: a later generation's decision replaces the earlier one, what was approved and undone
# is wrong once. Undone only to reach what it was built on: no word about it. A whole plan taken back: about no item.
_LABELS: Final = """
WITH lifted AS (
  SELECT kind, rule, band, max(lifted_at) AS at FROM consolidation_demotion GROUP BY kind, rule, band
), labels AS (
  SELECT o.kind, o.rule, o.band, o.decided_by <> '' AS decided, o.status,
    o.status = 'undone' AND NOT EXISTS (
      SELECT 1 FROM consolidation_operationsource s JOIN consolidation_operation below
        ON below.scope_id = s.scope_id AND below.derived_id = s.observation_id
      WHERE s.scope_id = o.scope_id AND s.operation_id = o.id AND below.status = 'undone'
        AND below.undone_at >= o.undone_at
    ) AND NOT EXISTS (
      SELECT 1 FROM observations_event e WHERE e.scope_id = o.scope_id AND e.subject = o.op_id
        AND e.generation = o.generation AND e.action = 'undone' AND e.detail ?| ARRAY['plan', 'with']
    ) AS wrong,
    (o.edited_from_id IS NOT NULL OR o.decision ? 'text' OR o.decision ? 'both' OR o.decision ? 'many_valued'
      OR (o.decision ->> 'keep')::bigint IS DISTINCT FROM o.keeper_id AND o.decision ? 'keep') AS edited,
    s.judged, o.applied_at > coalesce(l.at, '-infinity') AS counts,
    greatest(s.judged_at, o.undone_at, s.chosen_at) > coalesce(l.at, '-infinity') AS sample_counts
  FROM consolidation_operation o
  LEFT JOIN lifted l ON (l.kind, l.rule, l.band) = (o.kind, o.rule, o.band)
  LEFT JOIN consolidation_sample s ON s.scope_id = o.scope_id AND s.operation_id = o.id
  WHERE o.requested_by = '' AND {where}
    AND (o.decided_by = '' AND o.approval = 'AUTO' AND o.status IN ('applied', 'undone')
      OR o.decided_by <> '' AND NOT EXISTS (
        SELECT 1 FROM consolidation_operation later WHERE later.scope_id = o.scope_id AND later.op_id = o.op_id
          AND later.generation > o.generation AND later.decided_by <> ''))
)
SELECT kind, rule, band,
  count(*) FILTER (WHERE decided AND status NOT IN ('rejected', 'distinct') AND NOT wrong) AS approved,
  count(*) FILTER (WHERE decided AND status NOT IN ('rejected', 'distinct') AND NOT wrong AND edited) AS edited,
  count(*) FILTER (WHERE decided AND status IN ('rejected', 'distinct')) AS rejected,
  count(*) FILTER (WHERE decided AND wrong) AS reverted,
  count(*) FILTER (WHERE NOT decided AND counts AND (status = 'applied' OR wrong)) AS applied,
  count(*) FILTER (WHERE NOT decided AND counts AND wrong) AS undone,
  count(*) FILTER (WHERE sample_counts AND judged = 'right' AND NOT wrong) AS judged_right,
  count(*) FILTER (WHERE sample_counts AND (judged = 'wrong' OR judged IS NOT NULL AND wrong)) AS judged_wrong,
  count(*) FILTER (WHERE judged = 'waiting' AND status = 'applied') AS waiting
FROM labels GROUP BY kind, rule, band ORDER BY kind, rule, band
"""


def bands(*, scopes: Iterable[Scope] | QuerySet[Scope] | None = None) -> tuple[Band, ...]:
    """Every band of which anything is known, by kind, rule and band, from the labels of these scopes, or of the whole
    store. Where `demoted_at` is set, the whole store's labels decided it. Two queries, three with scopes as a queryset.
    """
    if scopes is None:
        return _read("TRUE", {})
    return _read("o.scope_id = ANY (%(scopes)s)", {"scopes": [scope.pk for scope in scopes]})


def band_of(*, operation: Operation) -> Band | None:
    """What the labels of its own scope say of the band an operation is of; None while nothing is known. Two queries."""
    key = {"kind": operation.kind, "rule": operation.rule, "band": operation.band}
    of_it = "o.scope_id = %(scope)s AND (o.kind, o.rule, o.band) = (%(kind)s, %(rule)s, %(band)s)"
    return next(iter(_read(of_it, {"scope": operation.scope_id, **key})), None)


def _read(where: str, values: dict[str, Any]) -> tuple[Band, ...]:
    standing = {(row.kind, row.rule, row.band): row.at for row in Demotion.objects.filter(lifted_at=None)}
    with connection.cursor() as cursor:
        cursor.execute(_LABELS.format(where=where), values)
        names = [column.name for column in cursor.description or ()]
        found = [Band(**dict(zip(names, row, strict=True))) for row in cursor.fetchall()]
    return tuple(replace(band, demoted_at=standing.get((band.kind, band.rule, band.band))) for band in found)


def demoted() -> dict[Key, Demoted]:
    """The bands that may not decide alone now. One query."""
    return {(row.kind, row.rule, row.band): _fell(row) for row in Demotion.objects.filter(lifted_at=None)}


def _fell(row: Demotion) -> Demoted:
    return Demoted(row.kind, row.rule, row.band, row.judged, row.wrong, row.lower, row.limit)


def notices(*, scopes: Iterable[Scope] | QuerySet[Scope] | None = None) -> tuple[str, ...]:
    """What people have to be told about now: a sentence for every demoted band, and how many samples wait in these
    scopes. Two queries.
    """
    told = [f"{fell.kind}: {fell.sentence}. Its proposals wait for a person." for fell in demoted().values()]
    if waiting := waiting_samples(scopes=scopes).count():
        told.append(f"{waiting} applied without a decision {'wait' if waiting > 1 else 'waits'} to be checked.")
    return tuple(told)


def waiting_samples(*, scopes: Iterable[Scope] | QuerySet[Scope] | None = None) -> QuerySet[Sample]:
    """The samples that wait for a person: applied, not undone, and not judged. No query."""
    found = Sample.objects.filter(judged=Sample.Judged.WAITING, operation__status=State.APPLIED)
    return found if scopes is None else found.filter(scope__in=scopes)


# --- asking ----------------------------------------------------------------------------------------------------------

_CHOOSE: Final = """
WITH asked (scope_id, first, share) AS (
  SELECT * FROM unnest(%(scopes)s::bigint[], %(first)s::int[], %(share)s::float8[])
), lifted AS (
  SELECT kind, rule, band, max(lifted_at) AS at FROM consolidation_demotion GROUP BY kind, rule, band
), had AS (
  SELECT s.kind, s.rule, s.band, count(*) AS n FROM consolidation_sample s
  LEFT JOIN lifted l USING (kind, rule, band)
  WHERE s.chosen_at > coalesce(l.at, '-infinity') GROUP BY s.kind, s.rule, s.band
), unseen AS (
  SELECT o.id, o.scope_id, o.op_id, o.kind, o.rule, o.band, a.share,
    CASE WHEN o.applied_at > coalesce(l.at, '-infinity') THEN a.first ELSE 0 END AS first, coalesce(h.n, 0)
      + row_number() OVER (PARTITION BY o.kind, o.rule, o.band ORDER BY o.applied_at, o.id) AS place
  FROM consolidation_operation o JOIN asked a ON a.scope_id = o.scope_id
  LEFT JOIN lifted l ON (l.kind, l.rule, l.band) = (o.kind, o.rule, o.band)
  LEFT JOIN had h ON (h.kind, h.rule, h.band) = (o.kind, o.rule, o.band)
  WHERE o.status = 'applied' AND o.approval = 'AUTO' AND o.decided_by = '' AND o.requested_by = '' AND o.rule <> ''
    AND {which} AND NOT EXISTS (
      SELECT 1 FROM consolidation_sample s WHERE s.scope_id = o.scope_id AND s.operation_id = o.id)
)
INSERT INTO consolidation_sample (scope_id, operation_id, kind, rule, band, judged, judged_by)
SELECT scope_id, id, kind, rule, band, 'waiting', '' FROM unseen
WHERE place <= first OR ('x' || substr(op_id, 4, 8))::bit(32)::bigint < share * 4294967296
ON CONFLICT DO NOTHING RETURNING scope_id, operation_id
"""


def choose(*, operations: Collection[int] | None = None) -> int:
    """Have people asked about what was applied without a decision: of these operations, or of all that nobody looked
    at yet, such as those whose application was killed before this. Returns how many were chosen now.

    The first `sample_first` of a band since it may decide alone, then those whose ids fall into `sample_share`, so that
    calling it again chooses nothing more. Writes no memory and never raises for a policy that cannot be read: its scope
    is asked about as by default. Four queries, whatever their number.
    """
    which = "TRUE" if operations is None else "o.id = ANY (%(operations)s)"
    values = {**_shares(operations), "operations": list(operations or ())}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        cursor.execute(_CHOOSE.format(which=which), values)
        return len(cursor.fetchall())


def choose_of(*, operations: Iterable[Operation]) -> int:
    """`choose` among these, for whoever just had them applied. Where the database fails, housekeeping chooses later; no
    query when a person decided them all.
    """
    alone = [row.pk for row in operations if row.approval == Approval.AUTO and row.rule and not row.decided_by]
    if not alone:
        return 0
    try:
        return choose(operations=alone)
    except DatabaseError as error:
        log.warning("samples are chosen by the next housekeeping: %s", type(error).__name__)
        return 0


def _shares(operations: Collection[int] | None) -> dict[str, list[Any]]:
    """Per scope, how many of a band are asked about first, and which share then. Two queries."""
    scopes = Scope.objects.order_by("pk")
    if operations is not None:
        scopes = scopes.filter(pk__in=Operation.objects.filter(pk__in=operations).values("scope_id"))
    stored = _stored()
    rules = {scope.pk: _rules(stored, scope.name) for scope in scopes}
    return {
        "scopes": list(rules),
        "first": [each.sample_first for each in rules.values()],
        "share": [each.sample_share for each in rules.values()],
    }


def _stored() -> dict[str, tuple[int, Any]]:
    """Every policy: pattern -> version and body. One query."""
    return {pattern: (version, body) for pattern, version, body in Policy.objects.values_list(*_COLUMNS)}


def _rules(stored: Mapping[str, tuple[int, Any]], name: str) -> Rules:
    """The policy of a scope, or the defaults where it cannot be read: nothing is applied there, and people see why."""
    try:
        return chosen(stored, scope=name).rules
    except PolicyError:
        return Rules()


# --- judging ---------------------------------------------------------------------------------------------------------


@transaction.atomic
def judge(*, sample: Sample, right: bool, by: str, correcting: bool = False) -> Sample:
    """A person's word on one sample; wrong changes no memory, an undo does. Its band loses its automatic status when it
    is then known to be wrong too often.

    Raises AlreadyDecided, naming who was first, unless `correcting` says that the word is known and replaced.
    """
    verdict = Sample.Judged.RIGHT if right else Sample.Judged.WRONG
    locked = Sample.objects.select_for_update(of=("self",)).select_related("operation", "scope").get(pk=sample.pk)
    before = locked.judged
    if before != Sample.Judged.WAITING and not correcting:
        raise AlreadyDecided(
            f"{locked.operation.op_id} is judged {before}: {locked.judged_by} said so on"
            f" {locked.judged_at:%Y-%m-%d %H:%M} UTC."
        )
    locked.judged, locked.judged_by, locked.judged_at = verdict, by[:150], database_now()
    locked.save(update_fields=["judged", "judged_by", "judged_at"])
    Event.objects.append(
        scope_id=locked.scope_id,
        action="judged",
        actor=by,
        subject=locked.operation.op_id,
        generation=locked.operation.generation,
        detail={"from": before, "judged": verdict, "rule": locked.rule, "band": locked.band},
    )
    demote(only=(locked.kind, locked.rule, locked.band))
    return locked


def sample_of(*, operation: Operation) -> Sample:
    """The sample of an operation. Raises Unknown. One query."""
    found = Sample.objects.filter(scope_id=operation.scope_id, operation=operation).select_related("operation").first()
    if found is None:
        raise Unknown(f"{operation.op_id} is not asked about: `consolidate samples` lists what is.")
    return found


# --- demoting and lifting --------------------------------------------------------------------------------------------


def demote(*, only: Key | None = None) -> list[Demoted]:
    """Take the automatic status from every band (or one) that the whole store's labels show to be wrong too often;
    returns those that lost it now. People are told once it is committed. Four queries and three for each.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        where = "TRUE" if only is None else "(o.kind, o.rule, o.band) = (%(kind)s, %(rule)s, %(band)s)"
        found = _read(where, dict(zip(("kind", "rule", "band"), only or ("", "", ""), strict=True)))
        limit = strictest_limit()
        return [fell for band in found if (fell := _demoted(band, limit)) is not None]


def count_undone(*, operation: Operation) -> None:
    """An undo of what nobody decided is a label: look whether its band may go on alone. Never raises for the database:
    housekeeping looks again. No query where a person decided it.
    """
    if not operation.rule or operation.decided_by:
        return
    try:
        demote(only=(operation.kind, operation.rule, operation.band))
    except DatabaseError as error:
        log.warning("the error of a band is counted by the next housekeeping: %s", type(error).__name__)


def _demoted(band: Band, limit: float) -> Demoted | None:
    rate = None if band.demoted_at or not band.rule else worst(band, limit=limit)
    if rate is None:
        return None
    row = Demotion.objects.create(
        kind=band.kind,
        rule=band.rule,
        band=band.band,
        judged=rate.of,
        wrong=rate.hits,
        lower=rate.interval[0],
        limit=limit,
    )
    fell = _fell(row)
    detail = {"kind": band.kind, "judged": rate.of, "wrong": rate.hits, "lower": round(row.lower, 5), "limit": limit}
    subject = spoken(rule=band.rule, band=band.band)
    Event.objects.append(
        scope_id=None, action="band_demoted", actor=_BY, subject=subject, detail={**detail, "demotion": row.pk}
    )
    transaction.on_commit(lambda: _tell(fell))
    return fell


def _tell(fell: Demoted) -> None:
    """A line in the log, and a mail to the administrators where there are any; neither undoes the demotion."""
    log.warning("%s of kind %s decides nothing alone any more", spoken(rule=fell.rule, band=fell.band), fell.kind)
    if not settings.ADMINS:
        return
    subject = f"Palimpsest: {spoken(rule=fell.rule, band=fell.band)} lost its automatic status"
    body = f"{fell.kind}: {fell.sentence}.\n\nIts proposals wait for a person from now on. A steward can lift this.\n"
    try:
        mail_admins(subject, body)
    except OSError as error:  # smtplib's errors are OSErrors
        log.warning("the administrators could not be mailed about it: %s", type(error).__name__)


@transaction.atomic
def lift(*, demotion: Demotion, by: str, reason: str) -> Demotion:
    """Let a band decide alone again; its labels are counted anew from here. Raises Refused without a reason, and
    AlreadyDecided when somebody else lifted it first.
    """
    if not reason.strip():
        raise Refused("Lifting needs a reason: say why in one line.")
    locked = Demotion.objects.select_for_update().get(pk=demotion.pk)
    if locked.lifted_at is not None:
        raise AlreadyDecided(f"{locked.lifted_by} lifted it on {locked.lifted_at:%Y-%m-%d %H:%M} UTC.")
    locked.lifted_at, locked.lifted_by, locked.lifted_reason = database_now(), by[:150], reason.strip()[:300]
    locked.save(update_fields=["lifted_at", "lifted_by", "lifted_reason"])
    detail = {"kind": locked.kind, "demotion": locked.pk, "reason": locked.lifted_reason}
    subject = spoken(rule=locked.rule, band=locked.band)
    Event.objects.append(scope_id=None, action="demotion_lifted", actor=by, subject=subject, detail=detail)
    return locked


def strictest_limit() -> float:
    """The share that may be wrong, 0 to 1: the lowest of all policies, because a band is one for the whole store. One
    query.
    """
    stored = _stored()
    limits = [_rules({"*": of}, "*").error_limit_per_1000 for of in stored.values()]
    return min(limits, default=Rules().error_limit_per_1000) / 1000
