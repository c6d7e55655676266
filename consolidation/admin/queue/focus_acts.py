"""What may be answered in the focus view, and by which key: two keys at most decide an item, its reason among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from consolidation.admin.item.values import Values
from consolidation.models import Operation
from consolidation.operations import Approval, Kind, obs
from consolidation.review import REASON_REQUIRED, TELLS_APART

DEFERRALS: Final = ((1, "a day"), (3, "three days"), (7, "a week"), (30, "30 days"))
_LETTERED: Final = 9  # sources with a digit for a key

QUESTIONS: Final[Mapping[Kind, str]] = {
    Kind.MERGE: "Do these say the same thing?",
    Kind.SUPERSEDE: "Which of these is true now?",
    Kind.PROMOTE: "Do the episodes say this?",
    Kind.COMPACT: "May this summary stand for these episodes?",
    Kind.ARCHIVE: "May this leave the reads?",
    Kind.PRUNE: "May this be erased for good?",
    Kind.ALIAS: "Are these two names for one thing?",
    Kind.FORGET: "Shall this request to forget be refused?",
}
_REJECT: Final[Mapping[Kind, tuple[str, str, str, str]]] = {
    Kind.MERGE: ("Not the same claim", "Something would be lost", "The wrong text is kept", "Not enough evidence"),
    Kind.SUPERSEDE: ("Still open which is true", "Not about the same thing", "None of them", "Not enough evidence"),
    Kind.PROMOTE: ("The episodes do not say this", "Said once is not a fact", "No longer true", "Not worth keeping"),
    Kind.COMPACT: ("Something would be lost", "Something was added", "Still needed word by word", "Told wrong"),
    Kind.ARCHIVE: ("Still needed", "Still true and in use", "Needed for audit", "Not enough evidence"),
    Kind.PRUNE: ("Still needed", "Must be kept by rule", "Needed for audit", "Not enough evidence"),
    Kind.ALIAS: ("Two different things", "Not certain", "The other way round", "Not enough evidence"),
    Kind.FORGET: ("Cannot be carried out yet", "Asked in error", "Must be kept by rule", "Done in another way"),
}
_APPROVE: Final[Mapping[Kind, tuple[str, str, str, str]]] = {
    Kind.SUPERSEDE: ("It is the newer one", "It has the better evidence", "The other is a mistake", "I know it is so"),
    Kind.PRUNE: ("No longer needed", "Only clutter", "Kept elsewhere", "Its time is over"),
    Kind.ALIAS: ("A short form or spelling", "The evidence says so", "Renamed", "I know it is so"),
}


@dataclass(frozen=True, slots=True)
class Act:
    """One button with its key. `value` is what the form sends: the verb, and what was chosen after a bar."""

    key: str
    label: str
    value: str = ""
    tone: str = "plain"
    asks: str = ""  # whose reasons are asked for first: "approve" or "reject"; or "defer": how long
    edits: bool = False  # it leads to the edit, and decides nothing
    hint: str = ""


def reasons_to_reject(operation: Operation) -> tuple[str, ...]:
    """Reasons offered for a no, a key each."""
    return _REJECT[Kind(operation.kind)]


def reasons_to_approve(operation: Operation) -> tuple[str, ...]:
    """Reasons offered for a yes that needs one, a key each; empty for other kinds."""
    return _APPROVE.get(Kind(operation.kind), ())


def reason_given(*, operation: Operation, verb: str, preset: str, text: str) -> str:
    """The reason in the reviewer's words, or the offered one of that number; empty where neither was given."""
    if text.strip():
        return text.strip()
    offered = reasons_to_approve(operation) if verb == "approve" else reasons_to_reject(operation)
    number = int(preset) if preset in ("1", "2", "3", "4") else 0
    return offered[number - 1] if 0 < number <= len(offered) else ""


def acts(
    *, operation: Operation, sources: Sequence[int], values: Values | None, approvable: bool, open: bool, edits: bool
) -> tuple[Act, ...]:
    """The answers to the item's question, in the order of their buttons. None where its policy cannot be read."""
    if not open or operation.approval == Approval.NEVER:
        return (_later(),)
    yes = _yes(operation, sources, values) if approvable and operation.kind != Kind.FORGET else []
    if yes and edits:
        yes.append(Act(key="e", label="Edit and approve", value="edit", edits=True))
    several = len(sources) > 1 and operation.kind in TELLS_APART
    return (
        *yes,
        Act(key="r", label="Reject", value="reject", tone="nope", asks="reject"),
        *([Act(key="d", label="Different claims", value="distinct", hint="remembered for good")] if several else []),
        _later(),
    )


def _later() -> Act:
    return Act(key="l", label="Later", value="defer", hint="tomorrow; with Shift: choose")


def _yes(operation: Operation, sources: Sequence[int], values: Values | None) -> list[Act]:
    if operation.kind == Kind.SUPERSEDE:
        return _settlements(operation, sources, values)
    asks = "approve" if operation.kind in REASON_REQUIRED else ""
    first = Act(key="a", label="Approve", value="approve", tone="yes", asks=asks)
    if operation.kind != Kind.MERGE or len(sources) > _LETTERED or operation.edited_from_id:
        return [first]
    kept = [
        Act(key=str(number), label=f"Keep {number}", value=f"approve|keep:{pk}", hint=f"the text of {obs(pk)}")
        for number, pk in enumerate(sources, start=1)
    ]
    return [first, *kept]


def _settlements(operation: Operation, sources: Sequence[int], values: Values | None) -> list[Act]:
    """A contradiction: which claim stays, or that all are true; the suggestion, where there is one, by `a` too."""
    every = "Both" if len(sources) == 2 else "All"
    many = values is not None and bool(values.predicate) and operation.product.get("suggested") != "periods"
    both = Act(
        key="b",
        label=f"Keep {every.lower()}",
        value="approve|many" if many else "approve|both",
        asks="approve",
        hint="it holds several values" if many else "each in its period",
    )
    kept = [
        Act(
            key=str(number),
            label=f"Keep {number}",
            value=f"approve|keep:{pk}",
            asks="approve",
            hint=f"{obs(pk)} is true",
        )
        for number, pk in enumerate(sources[:_LETTERED], start=1)
    ]
    suggested = _suggested(operation, sources, both)
    return [*suggested, *kept, both]


def _suggested(operation: Operation, sources: Sequence[int], both: Act) -> list[Act]:
    keep = operation.product.get("suggested_keep") or operation.keeper_id
    word = str(operation.product.get("suggested") or ("newest" if keep else ""))
    if word == "newest" and keep in sources:
        label = f"Approve: keep {sources.index(keep) + 1}"
        return [Act(key="a", label=label, value=f"approve|keep:{keep}", tone="yes", asks="approve", hint="suggested")]
    if word in ("periods", "many"):
        label = f"Approve: {both.label.lower()}"
        return [Act(key="a", label=label, value=both.value, tone="yes", asks="approve", hint="suggested")]
    return []
