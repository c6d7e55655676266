"""Import: lines are stored in batches, and one bad line never sinks the rest (C1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from django.db import DatabaseError, IntegrityError, InterfaceError, OperationalError, transaction

from observations import store
from observations.ingest.lines import Line, LineRefused, parse_line
from observations.ingest.past import PastRefused, adopt, settle
from observations.models import Observation, Scope, database_now
from observations.records import Claim, Past, Status, Turn, WrittenBy
from observations.store import Fate, Written

BATCH = 500  # lines of one scope in one transaction
_WAITING = 4 * BATCH  # lines of all scopes held back until their scope's batch is full

Numbered = tuple[int, Line]


@dataclass(slots=True)
class ImportReport:
    """What became of the lines: read = added + already_there + refused. `cleaned` counts lines among the added ones."""

    read: int = 0
    added: int = 0
    already_there: int = 0
    cleaned: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)  # (line number from 1, reason)
    scopes: set[str] = field(default_factory=set)  # scopes of the lines that were stored or already there


class ImportStopped(Exception):
    """The store went away in the middle. What was stored stays; importing the same lines again adds the rest."""


def import_lines(
    lines: Iterable[bytes | str],
    *,
    scope: str | None = None,
    scope_field: str | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> ImportReport:
    """Store JSON lines as observations and episodes. Idempotent: what is already there is counted and left alone.

    `scope` puts every line there; `scope_field` names the field that says where. Blank lines are skipped. A
    line that cannot be stored is refused with its number and reason. `on_progress` is told how many lines were handled
    since the last call. Raises ImportStopped when the database cannot be reached any more.
    """
    run = _Import(scope=scope, scope_field=scope_field, on_progress=on_progress or (lambda _done: None))
    try:
        for number, raw in enumerate(lines, start=1):
            run.take(number, raw)
        run.finish()
    except (OperationalError, InterfaceError) as error:
        state = str(getattr(error.__cause__, "sqlstate", None) or "")
        why = "the database has run out of room" if state.startswith("53") else "the database cannot be used"
        raise ImportStopped(
            f"The import stopped after {run.report.added:,} added lines because {why}: nothing stored is lost; "
            "run it again to add the rest."
        ) from error
    run.report.refused.sort()
    return run.report


@dataclass(slots=True)
class _Unsettled:
    """A stored row whose past says it is not active."""

    number: int
    external_id: str
    past: Past
    fate: Fate


@dataclass(slots=True)
class _Import:
    """One import as it runs: lines wait for their scope's batch, rows for the status that the file gives them."""

    scope: str | None
    scope_field: str | None
    on_progress: Callable[[int], None]
    now: datetime = field(default_factory=database_now)
    report: ImportReport = field(default_factory=ImportReport)
    held_back: int = 0
    waiting: dict[str, list[Numbered]] = field(default_factory=dict)
    unsettled: dict[str, list[_Unsettled]] = field(default_factory=dict)
    scopes: dict[str, Scope] = field(default_factory=dict)

    def take(self, number: int, raw: bytes | str) -> None:
        """Parse one line and hold it until its batch is full; a replacement is the last of its batch."""
        if not raw.strip():
            return
        self.report.read += 1
        try:
            line = parse_line(raw, scope=self.scope, scope_field=self.scope_field, now=self.now)
        except LineRefused as refused:
            self.refuse(number, str(refused))
            self.on_progress(1)
            return
        batch = self.waiting.setdefault(line.scope, [])
        batch.append((number, line))
        self.held_back += 1
        if line.supersedes or len(batch) >= BATCH:
            self.flush(line.scope)
        elif self.held_back >= _WAITING:
            self.flush_all()

    def finish(self) -> None:
        """Store what still waits; then give history its status, which may need rows from anywhere in the file."""
        self.flush_all()
        for name, rows in self.unsettled.items():
            for start in range(0, len(rows), BATCH):
                self.settle(self.scopes[name], rows[start : start + BATCH])

    def flush_all(self) -> None:
        for name in list(self.waiting):
            self.flush(name)

    def flush(self, name: str) -> None:
        batch = self.waiting.pop(name)
        self.held_back -= len(batch)
        self.now = database_now()
        try:
            scope = self.scopes.get(name) or self.scopes.setdefault(name, store.open_scope(name=name))
        except (store.ScopeNameRefused, IntegrityError) as refused:
            reason = str(refused) if isinstance(refused, ValueError) else "scope has a name that is no path"
            for number, _ in batch:
                self.refuse(number, reason)
        else:
            last = batch[-1:] if batch[-1][1].supersedes else []
            for part in (batch[: len(batch) - len(last)], last):
                for (number, line), written in zip(part, _stored(scope, part), strict=True):
                    self.record(number, line, written)
        self.on_progress(len(batch))

    def refuse(self, number: int, reason: str) -> None:
        self.report.refused.append((number, reason))

    def record(self, number: int, line: Line, written: Written) -> None:
        if written.fate == Fate.REFUSED:
            self.refuse(number, written.reason)
            return
        self.report.scopes.add(line.scope)
        self.report.added += written.fate == Fate.ADDED
        self.report.already_there += written.fate == Fate.KNOWN
        self.report.cleaned += written.fate == Fate.ADDED and written.cleaned
        if line.past.status != Status.ACTIVE:
            row = _Unsettled(number, line.item.external_id, line.past, written.fate)
            self.unsettled.setdefault(line.scope, []).append(row)

    def settle(self, scope: Scope, rows: Sequence[_Unsettled]) -> None:
        """Settle rows together, or in ever smaller parts when one of them is not to be."""
        try:
            with transaction.atomic():
                refused = settle(scope=scope, pasts={row.external_id: row.past for row in rows})
        except PastRefused as error:
            if len(rows) > 1:
                for part in _halves(rows):
                    self.settle(scope, part)
                return
            refused = {rows[0].external_id: str(error)}
        for row in rows:
            if reason := refused.get(row.external_id):
                self.report.added -= row.fate == Fate.ADDED
                self.report.already_there -= row.fate == Fate.KNOWN
                self.refuse(row.number, f"{reason}; the row is stored, but held back as quarantined")


Part = TypeVar("Part")


def _halves(rows: Sequence[Part]) -> tuple[Sequence[Part], Sequence[Part]]:
    middle = len(rows) // 2
    return rows[:middle], rows[middle:]


def _stored(scope: Scope, batch: Sequence[Numbered]) -> list[Written]:
    """The fate of every line of a batch: in one transaction, or in ever smaller ones when a line is refused."""
    if not batch:
        return []
    for again in (True, False):  # once more: another writer may have added the same id at the same moment
        try:
            with transaction.atomic():
                return _write(scope, [line for _, line in batch])
        except (PastRefused, UnicodeError) as error:
            reason = str(error) if isinstance(error, PastRefused) else "a text cannot be stored as UTF-8"
            break
        except DatabaseError as error:
            reason = _reason(error)
            if not (again and isinstance(error, IntegrityError | OperationalError)):
                break
    if len(batch) == 1:
        return [Written(fate=Fate.REFUSED, reason=reason)]
    return [written for part in _halves(batch) for written in _stored(scope, part)]


def _reason(error: DatabaseError) -> str:
    """Why the database refused a line, without its words: they may quote it. Raises what no line would survive."""
    state = getattr(error.__cause__, "sqlstate", None) or ""
    if isinstance(error, OperationalError) and state[:2] not in (
        "40",
        "54",
    ):  # no conflict, no value too large
        raise error
    if state.startswith("PA"):  # our own triggers': figures and ids only
        return str(error).partition("\n")[0]
    return f"the database refuses the line (SQLSTATE {state or 'unknown'})"


def _write(scope: Scope, lines: Sequence[Line]) -> list[Written]:
    """Store lines of one scope, episodes first, and return their fates in the order of the lines."""
    if lines[0].supersedes:
        return [_replaced(scope, lines[0])]
    turns = [line.item for line in lines if isinstance(line.item, Turn)]
    claims = [(line.item, line.past) for line in lines if isinstance(line.item, Claim)]
    episodes = iter(store.add_episodes(scope=scope, turns=turns) if turns else [])
    observations = iter(_observations(scope, claims) if claims else [])
    return [next(episodes if isinstance(line.item, Turn) else observations) for line in lines]


def _observations(scope: Scope, claims: Sequence[tuple[Claim, Past]]) -> list[Written]:
    written = store.add_observations(
        scope=scope,
        claims=[claim for claim, _ in claims],
        written_by=WrittenBy.IMPORT,
        pasts=[past for _, past in claims],
    )
    derived = [
        (row.id, claim.stated_by, past)
        for row, (claim, past) in zip(written, claims, strict=True)
        if row.fate == Fate.ADDED and row.id is not None and past.lineage
    ]
    if derived:
        adopt(scope=scope, rows=derived)
    keys = {
        row.id: past.given
        for row, (_, past) in zip(written, claims, strict=True)
        if row.fate == Fate.ADDED and row.id is not None and past.given
    }
    if keys:
        store.adopt_keys(scope_id=scope.pk, given=keys)
    return written


def _replaced(scope: Scope, line: Line) -> Written:
    """Store a claim that supersedes a current row and takes over what that rested on (R12, R15)."""
    assert isinstance(line.item, Claim)
    target = Observation.objects.in_scope(scope).filter(external_id=line.supersedes).first()
    if target is None:
        raise PastRefused(f"supersedes names {line.supersedes!r}, which is neither stored nor on an earlier line")
    try:
        return store.replace(scope=scope, old_id=target.pk, claim=line.item, written_by=WrittenBy.IMPORT)
    except Observation.DoesNotExist:
        raise PastRefused(f"supersedes names {line.supersedes!r}, which is {target.status}, not active") from None
