"""What is done for each claim of a batch, and why: values that the storing decides on and then writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from observations.ingest.background.weighing import Weighed
from observations.models import IntakeItem
from observations.reconciliation import Rests
from observations.records import StatedBy, WrittenBy


class Because(StrEnum):
    """Why a claim came to what it came to, where the reconciler's own verdict does not say it."""

    KNOWN = "the same words are stored already"
    AGAIN = "said again in the same turns"
    STORED = "this claim of this turn was stored before"
    NOT_COMPARED = "added without being compared: the reconciler did not answer"
    NO_VECTOR = "added without being compared: the embedder failed, and no stored text has its words"
    OWN_WORD = "the user's own word takes the place of somebody else's in the same words"
    OWN_WORDS = "added: what says it already is not the user's own word"
    ELSEWHERE = "what it would take the place of speaks of something else"
    MOVED = "added: what it was compared with changed meanwhile"
    DOUBTED = "the same words are stored already; its turn says only a part of it and is no evidence"
    RETIRE = "whether what it denies leaves the reads is for a person to decide"


@dataclass(slots=True)
class Act:
    """What is done for one claim."""

    weighed: Weighed
    verdict: IntakeItem.Verdict
    counted: str  # the figure it counts under
    reason: str = ""
    target: int | None = None
    earlier: Act | None = None  # instead of a target: the claim of the same turns that it concerns
    settled: bool = False  # the new row was reconciled; else it is flagged for the planner
    supersedes: bool = False
    union: bool = False
    review: str = ""  # the outbox task that asks a person
    observation: int | None = None  # the row that holds the claim, once it is known
    passed: bool = False  # a later claim of the same turns takes its place
    same: Act | None = None  # of a claim that is held back: the believed one of these turns in the same words


@dataclass(frozen=True, slots=True)
class On:
    """What a decision is about: a stored row, or an earlier claim of the same turns, which is no row yet."""

    stated_by: StatedBy
    written_by: WrittenBy
    rests: Sequence[Rests] = ()
    related: bool = False  # it speaks of what the claim speaks of
    target: int | None = None
    earlier: Act | None = None


def asks(weighed: Weighed, on: On, task: str, reason: str) -> Act:
    """The claim is added beside what it concerns, and a person is asked."""
    return Act(weighed, IntakeItem.Verdict.REVIEW, "review", reason, on.target, on.earlier, review=task)
