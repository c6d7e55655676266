"""What one pair of records is to each other: the same claim, a question for a person, a contradiction, or neither."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, TypeAlias

from consolidation import guards
from consolidation.candidates import Link, Met
from consolidation.guards import Objection
from consolidation.operations import Json
from consolidation.policy import Policy
from observations.embedding import Profile
from observations.records import Record

Objector: TypeAlias = Callable[[str, str], tuple[Objection, ...]]
Pair: TypeAlias = tuple[int, int]

# In texts that are worded differently anyway, another order or tense says little, unless specifics differ too: a person
# is asked all the same, without the alarm.
_WEAK: Final = frozenset({"order", "tense"})
_SPECIFICS: Final = frozenset({"number", "date", "identifier", "name", "quantifier"})


class Verdict(StrEnum):
    """What one pair is to each other."""

    SAME = "same"  # one claim: an automatic merge, if every other pair of the cluster is too
    ASK = "ask"  # perhaps one claim: a person decides
    POSSIBLE = "possible contradiction"  # a guard sees opposite claims in similar words (C7)
    CONTRADICTION = "contradiction"  # one subject and predicate, different objects at one time (R71)
    PERIODS = "different periods"  # true at different times: two terms of an office, two values in turn
    SUBJECTS = "different subjects"  # about two subjects; only an alias could make them one claim (R46)
    FAR = "far"  # met through a key only; not similar, nothing to merge


@dataclass(frozen=True, slots=True)
class Judged:
    """One pair with its verdict; the same whichever record is named first."""

    link: Link
    verdict: Verdict
    failed: tuple[str, ...] = ()  # what stands against an automatic merge: rule and guard names, figures

    @property
    def pair(self) -> Pair:
        """The row ids, lower first."""
        return self.link.a, self.link.b

    @property
    def strength(self) -> float:
        """What the strongest pairs are taken first by: the cosine; 1 for identical texts, even without vectors."""
        return 1.0 if Met.TEXT in self.link.met else self.link.cosine

    def signals(self) -> dict[str, Json]:
        """The pair as an operation stores it."""
        known = self.link.cosine == self.link.cosine  # not nan
        return {
            "a": self.link.a,
            "b": self.link.b,
            "cosine": round(self.link.cosine, 4) if known else None,
            "met": list(self.link.met.names),
            "verdict": self.verdict.value,
            "failed": list(self.failed),
        }


def overlap(a: Record, b: Record) -> bool:
    """Whether two validity periods share a moment; None is open. Periods that only touch do not (they follow)."""
    return _before(a.valid_from, b.valid_to) and _before(b.valid_from, a.valid_to)


def _gap(a: Record, b: Record) -> bool:
    """Whether time passes between the two periods: united, they would claim that too."""
    return any(
        end is not None and start is not None and end < start
        for end, start in ((a.valid_to, b.valid_from), (b.valid_to, a.valid_from))
    )


def _before(start: datetime | None, end: datetime | None) -> bool:
    return start is None or end is None or start < end


def judge(
    a: Record, b: Record, *, link: Link, profile: Profile, policy: Policy, objections: Objector = guards.objections
) -> Judged:
    """What two records of one scope are to each other. Symmetric in a and b. Raises ValueError across scopes (C6)."""
    if a.scope_id != b.scope_id:
        raise ValueError("Records of two scopes are never compared.")
    identical = a.normalised == b.normalised and a.normalised != ""
    if not identical and not link.cosine >= profile.t_candidate:
        return Judged(link, Verdict.FAR)
    if a.key[0] and b.key[0] and a.key[0] != b.key[0]:
        return Judged(link, Verdict.SUBJECTS)
    if contradicts(a, b) and overlap(a, b):
        return Judged(link, Verdict.CONTRADICTION)
    if contradicts(a, b) or _gap(a, b):
        return Judged(link, Verdict.PERIODS)
    objected = objections(a.text, b.text)
    failed = _failed(a, b, link, identical, policy.merge_threshold(measured=profile.t_merge), policy.chain_cap)
    failed += tuple(sorted({f"guard {objection.guard}" for objection in objected}))
    if _opposed(objected):
        return Judged(link, Verdict.POSSIBLE, failed)
    return Judged(link, Verdict.ASK if failed else Verdict.SAME, failed)


def _opposed(objected: Sequence[Objection]) -> bool:
    """Whether the guards see opposite claims, not just two texts that each say something of their own."""
    named = {objection.guard for objection in objected}
    reworded = any(objection.guard == "wording" and not objection.possible_contradiction for objection in objected)
    weak = _WEAK if reworded and named.isdisjoint(_SPECIFICS) else frozenset[str]()
    return any(objection.possible_contradiction and objection.guard not in weak for objection in objected)


def contradicts(a: Record, b: Record) -> bool:
    """R71: the same non-empty subject and predicate, and different objects; periods are another question."""
    same_key = a.key[:2] == b.key[:2] and all(a.key[:2])
    return same_key and bool(a.key[2]) and bool(b.key[2]) and a.key[2] != b.key[2]


def _failed(a: Record, b: Record, link: Link, identical: bool, threshold: float, chain_cap: int) -> tuple[str, ...]:
    """The conditions of an automatic merge, guards apart, that a pair does not meet (DESIGN 4, R42, I16)."""
    failed = []
    if a.key != b.key:
        failed.append("keys differ")
    elif not identical and not a.has_key:
        failed.append("no key")
    if not identical and not link.cosine >= threshold:
        failed.append(f"similarity under {threshold:g}")
    if not overlap(a, b):
        failed.append("periods do not overlap")
    if a.stated_by is not b.stated_by:
        failed.append("different origins")  # a derived row takes the lowest: a person decides to lower a word (I12)
    if max(a.chain, b.chain) >= chain_cap:
        failed.append(f"merged {chain_cap} times already")
    return tuple(failed)
