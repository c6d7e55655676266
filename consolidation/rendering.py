"""A plan as text that an outsider can read: what would be done, to what, why, and what was skipped (R53, R65, R79)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from consolidation.operations import OF_EPISODES, Approval, Kind, Proposal, State, counted, ep, obs, plan, visible

SMALL_STORE: Final = 2_000  # R31: below this many records, measure before consolidating
_TEXT_SHOWN: Final = 100  # characters of a text in a printed plan (R65)
_SOURCES_SHOWN: Final = 5  # merge lines of one operation, unless explained (R65)
_SOURCE_WORDS: Final = {
    Kind.PROMOTE: "episode",
    Kind.COMPACT: "episode",
    Kind.PRUNE: "prune",
    Kind.ARCHIVE: "archive",
    Kind.ALIAS: "about",
}
_SHOWN_EVEN_AT_ZERO: Final = (Kind.PROMOTE, Kind.PRUNE)  # R53: a reader must see that nothing is destroyed, and why


@dataclass(frozen=True, slots=True)
class PrintedSource:
    """One source as a printed plan shows it."""

    id: int
    text: str
    external_id: str = ""
    similarity: float | None = None  # to the keeper; None: no vector, or the keeper itself
    said_at: datetime | None = None
    trust: str = ""  # whose word it is
    period: str = ""  # validity, as words; empty: open on both sides


@dataclass(frozen=True, slots=True)
class PrintedOperation:
    """One operation as a printed plan shows it."""

    id: str
    kind: Kind
    approval: Approval
    state: State
    scope: str
    reason: str
    sources: tuple[PrintedSource, ...]
    skipped_reason: str = ""
    keeper: int | None = None
    text: str = ""  # of a product that says what none of its sources says
    support: str = ""  # of a promotion: independent sources, verified successes, confidence
    names: tuple[str, str] | None = None  # of an alias: the subject, and the name it gets


@dataclass(frozen=True, slots=True)
class PrintedPlan:
    """A plan as it is printed. `notes` says, per kind, why it holds none ("retention policy: none configured")."""

    operations: tuple[PrintedOperation, ...]
    records: int  # observations read
    id: int | None = None
    notes: Mapping[Kind, str] = field(default_factory=dict, hash=False)
    left_out: tuple[str, ...] = ()  # scopes not planned, each with its reason: a hold, a pause, a failure
    figures: str = ""  # one line: rows read, pairs compared, estimate of what was missed, seconds
    held_back: int = 0  # questions for people over the day's review budget
    untouchable: int = 0  # records that a policy lets no proposal touch
    unreconciled: int = 0  # records that the background wrote without comparing them
    covered: int = 0  # of them, those that operations of this plan take up
    more_skipped: bool = False  # the plan skips operations that are not among these


def render(printed: PrintedPlan, *, explain: bool = False) -> str:
    """The plan as text that an outsider can read (R53, R65, R79). Ends without a line break."""
    proposed = [operation for operation in printed.operations if operation.state is not State.SKIPPED]
    skipped = [operation for operation in printed.operations if operation.state is State.SKIPPED]
    lines = [_headline(printed, len(proposed), len(skipped))]
    if printed.operations:
        lines += _kinds(printed, proposed, explain=explain)
        lines += ["", *_skips(skipped, explain=explain)]
    if printed.left_out:
        lines += ["", *(f"NOT PLANNED  {visible(reason)}" for reason in printed.left_out)]
    return "\n".join(lines + _closing(printed, proposed, skipped))


def _headline(printed: PrintedPlan, proposed: int, skipped: int) -> str:
    name = f"{plan(printed.id)}: " if printed.id is not None else ""
    if not proposed and not skipped:
        return name + ("nothing planned" if printed.left_out else "nothing to do")
    return f"{name}{_count(proposed, 'operation')}, {skipped} skipped. Nothing has been changed."


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _kinds(printed: PrintedPlan, proposed: Sequence[PrintedOperation], *, explain: bool) -> list[str]:
    lines: list[str] = []
    for kind in Kind:
        operations = [operation for operation in proposed if operation.kind is kind]
        if not operations and kind not in _SHOWN_EVEN_AT_ZERO and kind not in printed.notes:
            continue
        lines += ["", _kind_line(kind, operations, printed.notes.get(kind, ""))]
        for operation in operations:
            lines += _operation(operation, explain=explain)
    return lines


def _kind_line(kind: Kind, operations: Sequence[PrintedOperation], note: str) -> str:
    auto = sum(operation.approval is Approval.AUTO for operation in operations)
    split = f"({auto} automatic, {len(operations) - auto} for a person)" if operations else ""
    return "  ".join(part for part in (f"{kind.upper()} {len(operations)}", split, visible(note)) if part)


def _operation(operation: PrintedOperation, *, explain: bool) -> list[str]:
    size = f" {len(operation.sources)}→1" if operation.kind in (Kind.MERGE, Kind.COMPACT) else ""
    who = "automatic" if operation.approval is Approval.AUTO else "for a person"
    lines = [f"  {operation.kind.upper()}{size}  {operation.id}  in {visible(operation.scope)}  {who}"]
    lines += _product_lines(operation)
    lines += _source_lines(operation, explain=explain)
    return [*lines, f"    reason   {visible(operation.reason)}"]


def _product_lines(operation: PrintedOperation) -> list[str]:
    """What a promotion, a compaction or an alias would say; the others show it among their sources."""
    if operation.names is not None:
        return [f"    alias    {_quoted(operation.names[0])} is compared as {_quoted(operation.names[1])}"]
    word = "fact" if operation.kind is Kind.PROMOTE else "summary"
    lines = [f"    {word:<7}  {_quoted(operation.text)}"] if operation.text else []
    return [*lines, f"    support  {visible(operation.support)}"] if operation.support else lines


def _source_lines(operation: PrintedOperation, *, explain: bool) -> list[str]:
    merging = operation.kind is Kind.MERGE
    ordered = sorted(operation.sources, key=lambda source: (merging and source.id != operation.keeper, source.id))
    lines = [_source(source, operation) for source in ordered]
    if explain or operation.kind is Kind.SUPERSEDE or len(lines) <= _SOURCES_SHOWN + 1:
        return lines
    left = len(lines) - _SOURCES_SHOWN - 1
    return [*lines[: _SOURCES_SHOWN + 1], f"    … and {left} more (--explain lists them)"]


def _source(source: PrintedSource, operation: PrintedOperation) -> str:
    word = _SOURCE_WORDS.get(operation.kind, "value")
    if operation.kind is Kind.MERGE:
        word = "keep" if source.id == operation.keeper else "merge"
    details = [f"similarity {source.similarity:.3f}"] if source.similarity is not None else []
    if operation.kind is not Kind.MERGE:
        details += [f"{source.said_at:%Y-%m-%d}"] if source.said_at else []
        details += [f"said by: {source.trust}"] if source.trust else []
        details += [visible(source.period)] if source.period else []
        details += ["suggested"] if operation.kind is Kind.SUPERSEDE and source.id == operation.keeper else []
    tail = f"  ({', '.join(details)})" if details else ""
    return f"    {word:<7}  {_named(source, operation)}  {_quoted(source.text)}{tail}"


def _named(source: PrintedSource, operation: PrintedOperation) -> str:
    shown = ep if operation.kind in OF_EPISODES else obs
    return shown(source.id) + (f" [{visible(source.external_id)}]" if source.external_id else "")


def _quoted(text: str) -> str:
    return f'"{visible(text)}"' if len(text) <= _TEXT_SHOWN else f'"{visible(text[:_TEXT_SHOWN])}…"'


def _skips(skipped: Sequence[PrintedOperation], *, explain: bool) -> list[str]:
    waiting = sum(operation.approval is Approval.NEEDS_HUMAN for operation in skipped)
    line = f"SKIPPED {len(skipped)}" + (f", {waiting} of them in the review queue" if waiting else "")
    if not skipped:
        return [line]
    if not explain:
        return [f"{line}  (run `manage.py consolidate plan --explain` to list them)"]
    lines = [line]
    for operation in skipped:
        lines.append(f"  {operation.kind.upper()}  {operation.id}  in {visible(operation.scope)}")
        lines += [f"    {_named(source, operation)}  {_quoted(source.text)}" for source in operation.sources]
        lines.append(f"    skipped  {visible(operation.skipped_reason)}")
    return lines


def _closing(
    printed: PrintedPlan, proposed: Sequence[PrintedOperation], skipped: Sequence[PrintedOperation]
) -> list[str]:
    lines = [f"PLANNED FROM  {visible(printed.figures)}"] if printed.figures else []
    if printed.held_back:
        lines.append(
            f"HELD BACK  {printed.held_back:,} more questions for people: over the day's review budget. Those that"
            " reads feel most came first, and the rest is proposed again."
        )
    if number := printed.unreconciled:
        records = "record was" if number == 1 else "records were"
        lines.append(
            f"UNRECONCILED  {number:,} {records} stored without being compared; this plan takes up"
            f" {printed.covered:,} of them, before all others."
        )
    if number := printed.untouchable:
        words = ("record is", "it is") if number == 1 else ("records are", "they are")
        lines.append(f"UNTOUCHABLE  {number:,} {words[0]} untouchable by policy: {words[1]} part of no proposal.")
    if proposed and not (skipped or printed.untouchable or printed.more_skipped):  # R54: what is kept out is skipped
        lines.append(
            "CAUTION  Nothing was skipped. A pass that skips nothing may not apply its rules: read every item."
        )
    if 0 < printed.records < SMALL_STORE:
        lines.append(
            f"ADVICE  {counted(printed.records, 'record')}: below {SMALL_STORE:,} there is seldom enough sediment to"
            " consolidate. Measure first whether duplicates displace answers."
        )
    return ["", *lines] if lines else []


def counts(operations: Iterable[Proposal | PrintedOperation]) -> dict[str, int]:
    """How many operations of each kind are proposed, and how many of all are skipped (R79)."""
    counted: Counter[str] = Counter()
    for operation in operations:
        counted["skipped" if operation.skipped_reason else operation.kind.value] += 1
    return dict(sorted(counted.items()))
