"""What applying a plan would do to reading, on its page: measured, shown with a fall first, signed off (R112, R118)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Q

from consolidation import projecting
from consolidation.admin.texts import told, when
from consolidation.models import Plan, Probe, Projection
from consolidation.operations import visible
from consolidation.probes import K
from consolidation.projecting import Shown
from observations.admin.base import Reach
from observations.models import Scope

SIGN: Final = "consolidation.sign_off"
AT_ONCE: Final = 100  # questions asked while the page waits; more are a worker's
_QUERY: Final = 200  # characters of a question
_LISTED: Final = 20  # lost probes named per scope


@dataclass(frozen=True, slots=True)
class Pair:
    """One measure now and then."""

    name: str
    before: str
    after: str
    worse: bool


@dataclass(frozen=True, slots=True)
class Lost:
    """A probe that would newly fail."""

    number: int
    query: str  # memory text; empty: erased


@dataclass(frozen=True, slots=True)
class Impact:
    """One scope of the plan."""

    pk: int
    scope: str
    pairs: tuple[Pair, ...]
    operations: int
    lost: tuple[Lost, ...]
    more: int  # lost probes that are not named
    why_not: str
    fell: bool
    current: bool
    automatic: bool
    measured: str
    by: str
    signed: str  # who let it fall, when and why; empty: nobody
    suite: int | None


def impacts(plan: Plan, *, reach: Reach) -> tuple[Impact, ...]:
    """The newest projection of each scope of a plan that this person may see. Six queries, or one."""
    rows = projecting.shown(plan=plan, scopes=reach.scopes)
    queries = _queries([row.projection for row in rows])
    return tuple(_impact(row, queries) for row in rows)


def falling(found: Sequence[Impact]) -> list[str]:
    """A sentence per scope whose recall would fall, for the top of the page; those signed off say so."""
    return [
        f"Recall@{K} of {one.scope} would fall from {one.pairs[0].before} to {one.pairs[0].after}"
        f"{_of(one.lost, one.more)}{': signed off' if one.signed else ''}."
        for one in found
        if one.fell and one.current and one.pairs
    ]


def _of(lost: Sequence[Lost], more: int) -> str:
    named = ", ".join(str(one.number) for one in lost)
    return (
        f" (probe{'s' * (len(lost) > 1)} {named}{f' and {more} more' if more else ''} would newly fail)" if lost else ""
    )


def unmeasured(plan: Plan, *, reach: Reach, found: Collection[Impact]) -> bool:
    """Whether something would be applied whose impact nobody has measured. One query."""
    current = [one.scope for one in found if one.current]
    scopes = Scope.objects.filter(pk__in=reach.scopes).exclude(name__in=current)
    return bool(projecting.appliable(plan=plan, scopes=scopes))


def questions(*, scopes: Collection[Scope]) -> int:
    """How many questions measuring asks of these scopes' suites in force, before and after. One query."""
    asked = Probe.objects.asked().filter(suite__in=projecting.suites(scopes=scopes))
    return 2 * asked.count()


def _queries(rows: Sequence[Projection]) -> Mapping[tuple[int, int], str]:
    named = Q(pk__in=[])
    for row in rows:
        if row.suite_id and row.lost:
            named |= Q(scope=row.scope_id, suite=row.suite_id, number__in=row.lost[:_LISTED])
    found = Probe.objects.filter(named).values_list("suite_id", "number", "query")
    return {(suite, number): visible(query[:_QUERY]) for suite, number, query in found}


def _impact(row: Shown, queries: Mapping[tuple[int, int], str]) -> Impact:
    kept = row.projection
    lost = tuple(Lost(number, queries.get((kept.suite_id or 0, number), "")) for number in kept.lost[:_LISTED])
    signed = ""
    if kept.signed_off_at is not None:
        signed = told(
            "{}, {}: {}", visible(kept.signed_off_by), when(kept.signed_off_at), visible(kept.sign_off_reason)
        )
    return Impact(
        pk=kept.pk,
        scope=visible(kept.scope.name),
        pairs=_pairs(kept),
        operations=kept.operations,
        lost=lost,
        more=max(0, len(kept.lost) - _LISTED),
        why_not=kept.why_not,
        fell=kept.fell,
        current=row.current,
        automatic=row.automatic,
        measured=when(kept.at),
        by=visible(kept.by),
        signed=signed,
        suite=kept.suite_id,
    )


def _pairs(kept: Projection) -> tuple[Pair, ...]:
    measures: tuple[dict[str, Any], ...] = (kept.before.get("measures", {}), kept.after.get("measures", {}))
    pairs = []
    for name, label, digits in (("recall", f"recall@{K}", 4), ("distinct", f"distinct@{K}", 2)):
        before, after = (each.get(name) for each in measures)
        if before is not None:
            told = "not measured any more" if after is None else f"{after:.{digits}f}"
            worse = after is None or round(after - before, 9) < 0
            pairs.append(Pair(label, f"{before:.{digits}f}", told, worse))
    return (*pairs, Pair("records", f"{kept.records_before:,}", f"{kept.records_after:,}", False))
