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
_DENYING: Final = frozenset({"negation", "antonym", "number", "date", "quantifier", "direction"})
_NAMING: Final = frozenset({"name", "identifier"})
_SPECIFICS: Final = frozenset({"number", "date", "identifier", "name", "quantifier"})


class Verdict(StrEnum):
    """What one pair is to each other."""

    SAME = "same"  # one claim: an automatic merge, if every other pair of the cluster is too
    ASK = "ask"  # perhaps one claim: a person decides
    POSSIBLE = "possible contradiction"  # a guard sees opposite claims in similar words (C7)
    CONTRADICTION = "contradiction"  # one subject and predicate, different objects, at one time or in turn (R71)
    VALUES = "two values of a predicate that holds several"  # two claims, both true: two hobbies
    PERIODS = "different periods"  # one claim that is true at different times: two terms of an office
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
    """Whether two validity periods share a moment; None is open. Periods that only touch do not (they follow).

    Two that begin at one moment share it, also where one ends there: a year is read as its first moment.
    """
    begin_together = a.valid_from is not None and a.valid_from == b.valid_from
    return begin_together or (_before(a.valid_from, b.valid_to) and _before(b.valid_from, a.valid_to))


def _gap(a: Record, b: Record) -> bool:
    """Whether time passes between the two periods: united, they would claim that too."""
    return any(
        end is not None and start is not None and end < start
        for end, start in ((a.valid_to, b.valid_from), (b.valid_to, a.valid_from))
    )


def _before(start: datetime | None, end: datetime | None) -> bool:
    return start is None or end is None or start < end


def judge(
    a: Record,
    b: Record,
    *,
    link: Link,
    profile: Profile,
    policy: Policy,
    many_valued: bool = False,
    objections: Objector = guards.objections,
) -> Judged:
    """What two records of one scope are to each other. Symmetric in a and b. Raises ValueError across scopes (C6).

    `many_valued`: the predicate of their key is known to hold several values at a time.
    """
    if a.scope_id != b.scope_id:
        raise ValueError("Records of two scopes are never compared.")
    identical = a.normalised == b.normalised and a.normalised != ""
    if not identical and not link.cosine >= profile.t_candidate:
        return Judged(link, Verdict.FAR)
    apart = _two_subjects(a, b)
    guessed = apart and any(row.key_by and (identical or not row.own_key[0]) for row in (a, b))
    if apart and not guessed:
        return Judged(link, Verdict.SUBJECTS)
    if contradicts(a, b):
        return Judged(link, Verdict.VALUES if many_valued else Verdict.CONTRADICTION)
    if _gap(a, b):
        return Judged(link, Verdict.PERIODS)
    objected = objections(a.text, b.text)
    failed = _failed(a, b, link, profile, policy)
    failed += tuple(sorted({f"guard {objection.guard}" for objection in objected}))
    if guessed and not identical:
        return Judged(link, Verdict.POSSIBLE, failed) if _denied(objected) else Judged(link, Verdict.SUBJECTS)
    if _opposed(objected):
        return Judged(link, Verdict.POSSIBLE, failed)
    return Judged(link, Verdict.ASK if failed else Verdict.SAME, failed)


def _two_subjects(a: Record, b: Record) -> bool:
    """Whether the rows are about two subjects; by a model's reading it is a guess, of one text a question (R46)."""
    return bool(a.key[0]) and bool(b.key[0]) and a.key[0] != b.key[0]


def _denied(objected: Sequence[Objection]) -> bool:
    """Whether one text denies the other, of no two names: a model that reads two subjects must not hide that (C7)."""
    opposed = {objection.guard for objection in objected if objection.possible_contradiction}
    return not opposed.isdisjoint(_DENYING) and _NAMING.isdisjoint(objection.guard for objection in objected)


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


def _failed(a: Record, b: Record, link: Link, profile: Profile, policy: Policy) -> tuple[str, ...]:
    """The conditions of an automatic merge, guards apart, that a pair does not meet (DESIGN 4, R42, I16)."""
    identical = a.normalised == b.normalised and a.normalised != ""
    failed = _key_failures(a, b, identical)
    threshold = policy.merge_threshold(measured=profile.t_merge)
    if not identical and not profile.automatic:
        failed.append("embedder not calibrated")
    if not identical and not link.cosine >= threshold:
        failed.append(f"similarity under {threshold:g}")
    if not overlap(a, b):
        failed.append("periods do not overlap")
    if a.stated_by is not b.stated_by:
        failed.append("different origins")  # a derived row takes the lowest: a person decides to lower a word (I12)
    if a.kind is not b.kind:
        failed.append("kinds differ")
    if not {a.kind, b.kind} <= set(policy.mergeable):
        failed.append("kind not mergeable by policy")
    if max(a.chain, b.chain) >= policy.chain_cap and not (identical and a.written_key == b.written_key):
        failed.append(f"merged {policy.chain_cap} times already")
    return tuple(failed)


def _key_failures(a: Record, b: Record, identical: bool) -> list[str]:
    """What of the keys stands against an automatic merge: the writers' own decide, a model's can only object.

    Identical texts need keys that the writers left out on both sides or gave alike; other texts need a whole one.
    """
    if (a.renamed or b.renamed) and not all(a.key):
        return ["one subject by an alias"]  # what is one entity by a person's word needs a whole key to be one claim
    given = bool(a.key_by or b.key_by)
    if a.written_key != b.written_key:
        return ["key given by a model" if given and a.key == b.key else "keys differ"]
    if given and a.key != b.key and any(a.key) and any(b.key):
        return ["keys differ"]
    if not identical and "promote" in (a.derivation, b.derivation):
        return ["key given by a model"]  # nobody wrote a promoted row: its key came with the fact
    if identical or all(a.written_key):
        return []
    return ["key given by a model" if given and a.has_key and b.has_key else "no key"]
