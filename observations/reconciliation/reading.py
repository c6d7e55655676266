"""RECONCILE, the answer: one decision for each claim, each checked against what was offered (C5). Plain Python.

A decision that is not believed touches nothing stored: its claim is added, flagged for the planner, and the refusal is
kept. One bad decision does not cancel the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, Final

from observations.llm import Reply, Unusable
from observations.llm.reading import json_in
from observations.normalise import clean, key_part, tokens
from observations.reconciliation.asking import Near, Proposal, label, near_label

LONGEST_REASON: Final = 500  # characters of the model's own reason that are kept
_SHOWN: Final = 12  # characters of a wrong label that a refusal names


class Verdict(StrEnum):
    """What becomes of a claim."""

    ADD = "ADD"
    UPDATE = "UPDATE"  # the new row supersedes the target and takes over its evidence (R15)
    DELETE = "DELETE"  # the target is not so any more; with `replaces` the new row supersedes it, evidence fresh (R16)
    NOOP = "NOOP"  # the target says it already


class Refusal(StrEnum):
    """Why a decision is not believed; completes the sentence "The decision is refused: ..."."""

    UNANSWERED = "the answer leaves the claim out"
    TWICE = "the answer decides about the claim twice"
    NO_VERDICT = "it is none of ADD, UPDATE, DELETE and NOOP"
    NO_TARGET = "it names no target"
    UNKNOWN = "it names a target that was not offered"
    ELSEWHERE = "it names a target that was offered to another claim"
    NO_REPLACEMENT = "it does not say whether the claim takes the target's place"
    NOT_THE_SAME = "the target does not say what the claim says"
    ANOTHER_SUBJECT = "the target is about another subject"


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of one claim. One that is refused is an ADD, and its claim is not reconciled."""

    verdict: Verdict = Verdict.ADD
    target: int | None = None  # id of an observation that was offered to this claim
    replaces: bool = False
    said: str = ""  # the model's own reason: memory text
    refusal: Refusal | None = None
    named: str = ""  # what a refused decision named as its target, cut; only what looks like a label

    @property
    def refused(self) -> str:
        """Why it is not believed, naming what it named; "" when it is. No memory text."""
        if self.refusal is None:
            return ""
        return f"{self.refusal.value} ({self.named})" if self.named else self.refusal.value


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What an answer says of every claim, in their order, and how many entries of it belong to none."""

    decisions: tuple[Decision, ...]
    stray: int = 0


def read(*, reply: Reply, proposals: Sequence[Proposal]) -> Reconciled:
    """What the reply decides about each claim. Raises Unusable where it holds no decisions at all.

    A target is never guessed: no nearest and no first row stands in for a label that was not offered (C5).
    """
    labels = {label(position): position for position in range(len(proposals))}
    entries: dict[int, list[Mapping[str, Any]]] = {}
    stray = 0
    for entry in _entries(json_in(reply.text)):
        position = labels.get(_label(entry.get("claim"))) if isinstance(entry, Mapping) else None
        if position is None:
            stray += 1
        else:
            entries.setdefault(position, []).append(entry)
    if not entries:
        raise Unusable("The model's answer cannot be used: it decides about none of the claims; ask again later.")
    decided = (_decided(position, proposals, entries.get(position, [])) for position in range(len(proposals)))
    return Reconciled(decisions=tuple(decided), stray=stray)


def _entries(value: Any) -> list[Any]:
    """The list of entries, bare or under whatever name; a single entry counts as a list of one."""
    if isinstance(value, dict) and "claim" in value:
        return [value]
    if isinstance(value, dict):
        lists = [each for each in value.values() if isinstance(each, list)]
        value = lists[0] if len(lists) == 1 else None
    if not isinstance(value, list):
        raise Unusable("The model's answer cannot be used: it holds no list of decisions; ask again later.")
    return value


def _label(given: Any) -> str:
    """A label as it is compared; "" for what is none. A number that is a claim's label counts as it."""
    if isinstance(given, int) and not isinstance(given, bool):
        return str(given)
    return given.strip().casefold() if isinstance(given, str) else ""


def _decided(position: int, proposals: Sequence[Proposal], entries: Sequence[Mapping[str, Any]]) -> Decision:
    if len(entries) != 1:
        return Decision(refusal=Refusal.TWICE if entries else Refusal.UNANSWERED)
    [entry] = entries
    said = _said(entry.get("reason"))
    verdict = _verdict(entry.get("verdict"))
    named = _label(entry.get("target"))
    if verdict is None:
        return Decision(said=said, refusal=Refusal.NO_VERDICT)
    offered = {near_label(position, place): near for place, near in enumerate(proposals[position].near)}
    near = offered.get(named)
    if near is None:
        return _without_target(verdict, named, said, proposals)
    if verdict is Verdict.ADD:
        return Decision(said=said)
    replaces = _replaces(entry.get("replaces")) if verdict is Verdict.DELETE else False
    refusal = _doubt(proposals[position], near, verdict, replaces)
    if refusal is not None:
        return Decision(said=said, refusal=refusal, named=named)
    return Decision(verdict=verdict, target=near.id, replaces=bool(replaces), said=said)


def _without_target(verdict: Verdict, named: str, said: str, proposals: Sequence[Proposal]) -> Decision:
    """An ADD that names nothing, or a refusal that names what was named."""
    if not named:
        return Decision(said=said, refusal=None if verdict is Verdict.ADD else Refusal.NO_TARGET)
    everywhere = {near_label(at, place) for at, each in enumerate(proposals) for place in range(len(each.near))}
    refusal = Refusal.ELSEWHERE if named in everywhere else Refusal.UNKNOWN
    return Decision(said=said, refusal=refusal, named=named if _LABEL.fullmatch(named) else "")


_LABEL: Final = re.compile(rf"[0-9a-z._-]{{1,{_SHOWN}}}")


def _verdict(given: Any) -> Verdict | None:
    try:
        return Verdict(given.strip().upper()) if isinstance(given, str) else None
    except ValueError:
        return None


def _replaces(given: Any) -> bool | None:
    """Whether the claim takes the target's place; None when it cannot be said."""
    if given is None or isinstance(given, bool):
        return bool(given)
    words = {"true": True, "yes": True, "false": False, "no": False, "": False}
    return words.get(given.strip().casefold()) if isinstance(given, str) else None


def _said(given: Any) -> str:
    """The model's reason as one line."""
    return " ".join(clean(given)[0].split())[:LONGEST_REASON] if isinstance(given, str) else ""


# --- believing -------------------------------------------------------------------------------------------------------


def _doubt(proposal: Proposal, near: Near, verdict: Verdict, replaces: bool | None) -> Refusal | None:
    """Why a decision about a stored text is not believed. Each check can only refuse: the claim is then added."""
    if replaces is None:
        return Refusal.NO_REPLACEMENT
    if _differ(proposal.subject, near.subject):
        return Refusal.ANOTHER_SUBJECT
    if verdict is Verdict.NOOP and _says_more(proposal, near):
        return Refusal.NOT_THE_SAME
    return None


def _differ(one: str, other: str) -> bool:
    """Whether two parts of keys are both there and not the same."""
    return bool(key_part(one)) and bool(key_part(other)) and key_part(one) != key_part(other)


def _says_more(proposal: Proposal, near: Near) -> bool:
    """Whether a claim that is said to be known holds a number, a name or a denial that the stored text does not.

    '2.x' and '3.x' stand as near to each other as repeats do. Were the claim dropped as known, the difference would be
    lost for good, and its words would even count as evidence for what they deny.
    """
    if _differ(proposal.object, near.object) and not _differ(proposal.predicate, near.predicate):
        return True
    claim, stored = tokens(proposal.text), tokens(near.text)
    wanted = {token for token in claim if any(map(str.isdigit, token))} | set(_names(proposal.text))
    if key_part(proposal.subject) != key_part(near.subject):
        wanted |= set(tokens(proposal.subject)) - {_USER}
    return _denials(claim) != _denials(stored) or not wanted <= {*stored, *tokens(near.subject)}


def _names(text: str) -> Iterator[str]:
    """The tokens of words with a capital letter inside a sentence; where one begins, every word has it."""
    words = text.split()
    for before, word in pairwise(words):
        if word[:1].isupper() and word != "I" and before[-1] not in ".!?:;":
            yield from tokens(word)


_USER: Final = "user"  # a subject that stands in no text
_NOT: Final = frozenset(
    [
        *("not", "no", "none", "never", "nobody", "nothing", "nowhere", "neither", "nor", "without", "hardly"),
        *("rarely", "seldom", "cannot", "anymore", "nicht", "kein", "keine", "keinen", "nie", "niemals", "pas"),
        *("jamais", "sans", "nunca", "sin", "non", "mai", "não", "niet", "geen", "inte", "aldrig"),
    ]
)


def _denials(words: Sequence[str]) -> int:
    return sum(word in _NOT or word.endswith("n't") for word in words)
