"""The four questions of a scope that no policy covers: what may be merged, what never, what duty to keep, and when
(R32, R33).

Until they are answered, near-identical records merge, episodes promote, and nothing is compacted, archived or pruned.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from consolidation import policy as rules
from consolidation import revising
from consolidation.models import Policy
from consolidation.operations import Json, visible
from consolidation.policy import PolicyError, Trigger
from observations.models import Scope
from observations.records import MemoryKind

NAMED: Final = 3  # scopes that the printed plan names


@dataclass(frozen=True, slots=True)
class Choice:
    """One possible answer."""

    value: str
    words: str


@dataclass(frozen=True, slots=True)
class Question:
    """One question; `unanswered` is what holds until somebody answers."""

    name: str  # of the answer, see Answers
    option: str  # of the command
    words: str
    hint: str
    unanswered: str
    choices: tuple[Choice, ...] = ()  # none: a number is asked for
    several: bool = False  # more than one choice may be taken


_KINDS: Final = (
    Choice(MemoryKind.PREFERENCE, "Preferences: what somebody likes or wants"),
    Choice(MemoryKind.IDENTITY, "Identity: who somebody is"),
    Choice(MemoryKind.FACT, "Facts: what is so"),
    Choice(MemoryKind.STATE, "States: what is so just now"),
    Choice(MemoryKind.EPISODE, "Episodes: what happened once"),
    Choice(MemoryKind.NOTE, "Notes: remarks for the next days"),
)
QUESTIONS: Final = (
    Question(
        name="merge",
        option="--merge",
        words="What may be merged without a person?",
        hint="Near-identical records of these kinds merge by themselves; for the others a person is asked.",
        unanswered="near-identical records of every kind",
        choices=_KINDS,
        several=True,
    ),
    Question(
        name="never",
        option="--never",
        words="What must never be touched?",
        hint="Records of these kinds are part of no proposal at all.",
        unanswered="nothing is left out",
        choices=_KINDS,
        several=True,
    ),
    Question(
        name="keep_days",
        option="--keep-days",
        words="For how many days must records be kept as they are?",
        hint="A retention duty: younger records and episodes are not compacted, archived or pruned. 0 is no duty.",
        unanswered="no duty; compacting, archiving and pruning are off anyway",
    ),
    Question(
        name="trigger",
        option="--trigger",
        words="When is it planned?",
        hint="Planning proposes and changes no memory, whenever it runs.",
        unanswered="when somebody asks, and by the schedule once it is enabled",
        choices=(
            Choice(Trigger.MANUAL, "Only when somebody asks"),
            Choice(Trigger.RECORDS, "After a number of new records"),
            Choice(Trigger.SCHEDULE, "At the times of the schedule"),
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What somebody answered; None leaves a question open."""

    merge: tuple[MemoryKind, ...] | None = None  # none of them: a person is asked about every merge
    never: tuple[MemoryKind, ...] | None = None
    keep_days: int | None = None
    trigger: Trigger | None = None
    every: int | None = None  # new records, with the trigger RECORDS, which it implies

    @property
    def given(self) -> bool:
        """Whether anything was answered."""
        return self != Answers()

    def values(self) -> dict[str, Json]:
        """The fields of a policy that follow. Raises PolicyError for a number of records with another trigger."""
        if self.every is not None and self.trigger not in (None, Trigger.RECORDS):
            sentence = "every_records goes with the trigger 'records': leave one of them out."
            raise PolicyError(sentence, field="every_records")
        trigger = Trigger.RECORDS if self.every is not None else self.trigger
        found: dict[str, Json | None] = {
            "mergeable": None if self.merge is None else list(self.merge),
            "untouchable": None if self.never is None else list(self.never),
            "keep_days": self.keep_days,
            "trigger": trigger,
            "every_records": self.every,
        }
        return {name: value for name, value in found.items() if value is not None}


def unanswered(*, scopes: Iterable[Scope]) -> list[Scope]:
    """Those of the scopes that no policy covers. One query."""
    patterns = list(Policy.objects.values_list("pattern", flat=True))
    return [scope for scope in scopes if rules.most_specific(patterns=patterns, scope=scope.name) is None]


def answer(*, pattern: str, answers: Answers, by: str) -> Policy:
    """Store the answers as the policy of a pattern. What is not answered stays as it holds there now: by the policy of
    the pattern, or the one around it, or by default: that an enabled schedule plans what nobody spoke about, too.
    Raises PolicyError, and revising.Conflict.
    """
    rules.check_pattern(pattern=pattern)
    row = revising.wider(pattern=pattern)
    unspoken = {**rules.Policy().to_dict(), "trigger": Trigger.SCHEDULE}
    held: Mapping[str, Json] = rules.Policy.from_dict(row.body).to_dict() if row else unspoken
    policy = rules.Policy.from_dict({**held, **answers.values()})
    version = row.version if row is not None and row.pattern == pattern else revising.NEW
    return revising.revise(pattern=pattern, policy=policy, by=by, version=version)


def question_lines(scopes: Sequence[Scope]) -> list[str]:
    """The questions for the scopes that no policy covers, as the printed plan shows them; empty when there is none. One
    query.
    """
    asked = unanswered(scopes=scopes)
    if not asked:
        return []
    names = ", ".join(visible(scope.name) for scope in asked[:NAMED])
    more = f" and {len(asked) - NAMED} more" if len(asked) > NAMED else ""
    which = shlex.quote(visible(asked[0].name)) if len(asked) == 1 else "PATTERN"
    width = max(len(question.words) for question in QUESTIONS)
    return [
        f"ASKED     no policy covers {names}{more}. Until four questions are answered, this holds:",
        *(f"  {question.words:<{width}}  {question.unanswered}" for question in QUESTIONS),
        f"  Answer with `manage.py consolidate setup --scope {which}`, or in the admin under Policies.",
    ]
