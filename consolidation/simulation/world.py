"""What is true in the simulation, and who says it when: drawn from a seed, without a store and without a clock."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

Meaning = tuple[str, str, str]  # person, predicate, value

PEOPLE: Final = ("Ana", "Bo", "Cyril", "Dora", "Emil", "Fay", "Gus", "Hana", "Ivo", "Jana", "Kai", "Lena")
SINGLE: Final[Mapping[str, tuple[str, ...]]] = {  # one value at a time: it changes now and then
    "lives in": ("Graz", "Linz", "Wels", "Enns", "Bregenz"),
    "works at": ("the mill", "the harbour", "the library", "the depot"),
    "rides": ("a red bicycle", "a tram", "a mountain bike", "a scooter"),
    "takes tea": ("black", "with milk", "with lemon", "with honey"),
}
MANY: Final[Mapping[str, tuple[str, ...]]] = {  # several at once
    "plays": ("chess", "the cello", "handball", "cards", "badminton"),
    "speaks": ("Czech", "Greek", "Dutch", "Welsh"),
}
QUESTIONS: Final[Mapping[str, str]] = {
    "lives in": "Where does {} live?",
    "works at": "Where does {} work?",
    "rides": "What does {} ride?",
    "takes tea": "How does {} take tea?",
    "plays": "What does {} play?",
    "speaks": "Which languages does {} speak?",
}
FACTS: Final = 6  # said in one session
CHANGES: Final = 0.04  # share of sayings in which a single value has become another
REWORDED: Final = 0.10  # in words that only a person can call the same
KEYLESS: Final = 0.15  # by a writer that gives no key
NOISE: Final = ("The coffee machine is out of order again", "It rained all day", "The meeting began late")
FADES: Final = 7  # days after which half of a remark is left
BEGAN: Final = datetime(2024, 1, 1, 9, tzinfo=UTC)  # the first session; one a day follows


@dataclass(frozen=True, slots=True)
class Saying:
    """One thing said in a session, as an agent would store it."""

    id: str
    text: str
    meaning: Meaning | None  # None: a remark that nobody will ask about
    keyed: bool
    at: datetime

    def line(self) -> dict[str, object]:
        """The saying as a line of an import."""
        line: dict[str, object] = {"kind": "observation", "id": self.id, "text": self.text}
        line["created_at"] = self.at.isoformat()
        line["source_uri"] = f"session://{self.id.partition('t')[0]}"
        if self.meaning is None:
            return line | {"memory_kind": "note", "half_life_days": FADES}
        person, predicate, value = self.meaning
        line["memory_kind"] = "preference"  # never fades: what was said long ago is still asked for
        return line | ({"subject": person, "predicate": predicate, "object": value} if self.keyed else {})


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody may ask, with what is right now and what was right before."""

    text: str
    right: frozenset[Meaning]
    outdated: frozenset[Meaning]


@dataclass(slots=True)
class World:
    """What is true now. The same seed says the same things in the same order."""

    seed: int
    said: dict[str, Meaning | None] = field(default_factory=dict)  # by the id of the saying
    _now: dict[tuple[str, str], str] = field(default_factory=dict)
    _ever: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)  # values said, in order
    _draw: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        """Draw the beginning."""
        self._draw = random.Random(self.seed)  # noqa: S311 - a simulation, repeatable on purpose
        self._now = {(one, what): self._draw.choice(values) for one in PEOPLE for what, values in SINGLE.items()}

    def session(self, number: int) -> list[Saying]:
        """What is said in one session: facts, repeats, other words for them, changed values, and noise."""
        at = BEGAN + timedelta(days=number)
        sayings = [self._fact(f"s{number}t{turn}", at + timedelta(minutes=turn)) for turn in range(FACTS)]
        sayings += [
            Saying(f"s{number}t{FACTS}", self._draw.choice(NOISE), None, False, at + timedelta(minutes=FACTS)),
            Saying(f"s{number}t{FACTS + 1}", f"Ticket {number} was closed", None, False, at + timedelta(hours=1)),
        ]
        self.said |= {saying.id: saying.meaning for saying in sayings}
        return sayings

    def questions(self) -> Iterator[Question]:
        """One for each thing that was ever said of a person."""
        for (person, predicate), values in sorted(self._ever.items()):
            every = frozenset((person, predicate, value) for value in values)
            newest = next(reversed(values)) if predicate in SINGLE else ""
            right = frozenset({(person, predicate, newest)}) if newest else every
            yield Question(QUESTIONS[predicate].format(person), right, every - right)

    def _fact(self, name: str, at: datetime) -> Saying:
        meaning = self._meaning()
        person, predicate, value = meaning
        values = self._ever.setdefault((person, predicate), {})
        values.pop(value, None)  # said last, stands last
        values[value] = None
        return Saying(name, self._words(meaning), meaning, self._draw.random() >= KEYLESS, at)

    def _meaning(self) -> Meaning:
        person, predicate = self._draw.choice(PEOPLE), self._draw.choice([*SINGLE, *MANY])
        if predicate in MANY:
            return person, predicate, self._draw.choice(MANY[predicate])
        if self._draw.random() < CHANGES:
            self._now[person, predicate] = self._draw.choice(SINGLE[predicate])
        return person, predicate, self._now[person, predicate]

    def _words(self, meaning: Meaning) -> str:
        person, predicate, value = meaning
        plain = f"{person} {predicate} {value}"
        text = self._draw.choice(_spellings(plain))
        return f"{person} said so again: {predicate} {value}" if self._draw.random() < REWORDED else text


def _spellings(plain: str) -> Sequence[str]:
    """Ways of writing the same words, which a rule may call the same."""
    return plain, f"{plain}.", plain.upper(), plain.replace(" ", "  ")
