"""`memory pause`, `memory resume`, `memory hold`, `memory release` and `memory verify`."""

from __future__ import annotations

import getpass
import json
from datetime import UTC, datetime

from django.core.management.base import OutputWrapper

from consolidation import invariants, pausing
from memory_site.management.memory.errors import Error, Partly, scope_named
from observations import ingest
from observations.models import Scope, database_now


def pause(out: OutputWrapper, *, scope: str | None, reason: str) -> None:
    """Pause planning and applying in a scope, or everywhere. Raises Error."""
    if len(reason) > 200 or not (reason.isprintable() or not reason):
        raise Error("--reason must be one line of at most 200 characters.")
    found = scope_named(scope) if scope is not None else None
    done = pausing.pause(scope=found, by=_person(), reason=reason)
    where = _where(found)
    out.write(
        f"Paused {where}: nothing is planned or applied there until `memory resume`."
        if done
        else f"{where.capitalize()} is paused already."
    )


def resume(out: OutputWrapper, *, scope: str | None) -> None:
    """End the pause of a scope, or the one of everything. Raises Error."""
    found = scope_named(scope) if scope is not None else None
    done = pausing.resume(scope=found, by=_person())
    out.write(f"Resumed {_where(found)}." if done else f"{_where(found).capitalize()} is not paused.")


def hold(out: OutputWrapper, *, scope: str, until: str, reason: str) -> None:
    """Place a hold on a scope, until a day (in UTC) or open-ended. Raises Error."""
    if not reason.strip() or len(reason) > 200 or not reason.isprintable():
        raise Error("A hold needs a reason: --reason with one line of at most 200 characters.")
    found = scope_named(scope)
    ends = day_to_come(until) if until else None
    ingest.hold(scope=found, by=_person(), reason=reason, until=ends)
    when = f" until {ends:%Y-%m-%d}" if ends else ""
    out.write(f"Scope {found.name} is on hold{when}: nothing is planned, applied or undone there.")


def release(out: OutputWrapper, *, scope: str) -> None:
    """Lift the hold of a scope. Raises Error."""
    found = scope_named(scope)
    done = ingest.release(scope=found, by=_person())
    out.write(f"Released scope {found.name}." if done else f"Scope {found.name} is not on hold.")


def day_to_come(text: str) -> datetime:
    """The start of a day, in UTC, that is still to come. Raises Error."""
    try:
        day = datetime.fromisoformat(text)
    except ValueError as error:
        raise Error(f"{text[:40]!r} is not a date such as 2027-01-31.") from error
    day = day.replace(tzinfo=day.tzinfo or UTC)
    if day <= database_now():
        raise Error(f"{text[:40]} is over already: give a day to come, or leave it out.")
    return day


def _where(scope: Scope | None) -> str:
    return f"scope {scope.name}" if scope else pausing.EVERYTHING


def _person() -> str:
    """Who sits at the terminal, as the operating system knows them."""
    try:
        return getpass.getuser()[:150]
    except (KeyError, OSError):  # an account without a name, as in some containers
        return "command"


def verify(out: OutputWrapper, *, as_json: bool) -> None:
    """Run every invariant and say which holds. Raises Partly when one is violated."""
    violations = {violation.id: violation for violation in invariants.check()}
    if as_json:
        rows = [
            {
                "id": rule.id,
                "sentence": rule.sentence,
                "ok": rule.id not in violations,
                "rows": list(_rows(violations.get(rule.id))),
            }
            for rule in invariants.INVARIANTS
        ]
        out.write(json.dumps({"ok": not violations, "invariants": rows, "tests": invariants.PROVED_BY_TESTS}))
    else:
        for rule in invariants.INVARIANTS:
            found = violations.get(rule.id)
            out.write(f"{rule.id:<4} {'VIOLATED' if found else 'ok':<8}  {rule.sentence}")
            if found:
                out.write(f"      rows: {', '.join(_rows(found))}{' and more' if found.more else ''}")
        for name, sentence in invariants.PROVED_BY_TESTS.items():
            out.write(f"{name:<4} {'a test':<8}  {sentence}")
    if violations:
        raise Partly(f"{len(violations)} invariants are violated: stop applying and look at the rows named.")


def _rows(violation: invariants.Violation | None) -> tuple[str, ...]:
    return violation.rows if violation else ()
