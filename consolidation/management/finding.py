"""What a person names on the command line, found in the store: scopes, plans, operations, sources, periods.

Each raises CommandError with exit status 2 and one sentence that says what there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from django.core.management.base import CommandError

from consolidation import review
from consolidation.models import Operation, Plan
from consolidation.operations import Prefix, number_of, visible
from observations.models import Observation, Scope

NOT_FOUND: Final = 2
Period = tuple[int, datetime | None, datetime | None]


def scopes(pattern: str | None) -> list[Scope]:
    """The scopes of a pattern, all of them for None, by name. Two queries at most."""
    scopes = list(Scope.objects.matching(pattern or "*").order_by("name"))
    if pattern and not scopes:
        names = [visible(name) for name in Scope.objects.order_by("name").values_list("name", flat=True)[:6]]
        there = (
            f"there are {', '.join(names[:5])}{' and others' if len(names) > 5 else ''}"
            if names
            else "there is none yet"
        )
        raise CommandError(f"No scope matches {visible(pattern[:80])!r}; {there}.", returncode=NOT_FOUND)
    return scopes


def operation(name: str, scopes: Sequence[Scope]) -> Operation:
    """The operation of an id, or of the beginning of one, in one of these scopes."""
    try:
        operation = review.find(name)
    except review.Refused as refusal:
        raise CommandError(str(refusal), returncode=NOT_FOUND) from refusal
    if operation.scope not in scopes:
        raise CommandError(f"{operation.op_id} is not in that scope: leave --scope out.", returncode=NOT_FOUND)
    return operation


def plan_of(name: str | None, pattern: str | None, scopes: Sequence[Scope]) -> Plan:
    """The plan named, or the newest one that covers the pattern; only its items of `scopes` are meant."""
    if not name:
        plans = Plan.objects.filter(pattern__in=_covering(pattern)) if pattern else Plan.objects.all()
        if (newest := plans.order_by("-id").first()) is None:
            which = f" that covers {visible(pattern)}" if pattern else ""
            raise CommandError(f"There is no plan{which} yet: `manage.py consolidate` makes one.", returncode=NOT_FOUND)
        return newest
    try:
        plan = Plan.objects.filter(pk=number_of(shown=name, prefix=Prefix.PLAN)).first()
    except ValueError as error:
        raise CommandError(str(error), returncode=NOT_FOUND) from error
    if plan is None:
        raise CommandError(f"There is no {visible(name[:40])}.", returncode=NOT_FOUND)
    covered = not pattern or plan.pattern in _covering(pattern)
    if not covered and not plan.items.filter(scope__in=scopes).exists():
        where = f"{plan} was made for {visible(plan.pattern)}"
        raise CommandError(f"{where}: leave --scope out, or plan that scope by itself.", returncode=NOT_FOUND)
    return plan


def _covering(pattern: str) -> list[str]:
    """The patterns of plans that take in a scope, or a family of scopes: a/b is in a/b, in a/* and in *."""
    parts = pattern.split("/")
    return [pattern, "*", *(f"{'/'.join(parts[:depth])}/*" for depth in range(1, len(parts)))]


def periods(operation: Operation, given: Sequence[str]) -> tuple[Period, ...]:
    """Every record's period: as it stands, or as a person gives it."""
    rows = Observation.objects.filter(operation_sources__operation=operation).order_by("pk")
    periods: dict[int, Period] = {row.pk: (row.pk, row.valid_from, row.valid_to) for row in rows}
    for item in given:
        name, _, span = item.partition("=")
        start, dots, end = span.partition("..")
        if not dots:
            raise CommandError(f"{visible(item[:80])!r} is not ID=FROM..TO with dates.", returncode=NOT_FOUND)
        pk = source(operation, name)
        periods[pk] = (pk, _day(start), _day(end))
    return tuple(periods.values())


def _day(text: str) -> datetime | None:
    try:
        day = datetime.fromisoformat(text) if text else None
    except ValueError as error:
        raise CommandError(f"{visible(text[:40])!r} is not a date such as 2020-01-31.", returncode=NOT_FOUND) from error
    return day.replace(tzinfo=day.tzinfo or UTC) if day else None


def source(operation: Operation, name: str) -> int:
    """The source of an operation that a person names by external id, obs_123 or 123."""
    rows = operation.sources.exclude(observation=None).values_list("observation_id", "observation__external_id")
    named = {own for own, external in rows if own is not None and name in (external, f"obs_{own}", str(own))}
    if len(named) > 1:
        raise CommandError(
            f"{visible(name[:80])} names two of its records: write obs_ before its own id.", returncode=NOT_FOUND
        )
    if not named:
        choice = ", ".join(f"obs_{own} [{visible(external or '')}]" for own, external in rows)
        raise CommandError(f"{visible(name[:80])!r} is not one of its records: choose {choice}.", returncode=NOT_FOUND)
    return named.pop()
