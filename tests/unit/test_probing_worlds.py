"""Counting a world whose rows and answers are written down here, with every number computed by hand."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from consolidation import probing
from consolidation.models import Probe
from observations.records import Status
from observations.retrieval import Answer, Hit, Trust, Why

THEN = datetime(2020, 1, 1, tzinfo=UTC)
HUNDRED = tuple(range(1, 101))
MADE = -7  # what a plan would make has no row yet


@dataclass
class Made:
    """Answers by question; a question that is not there fails."""

    answers: Mapping[str, tuple[int, ...]]
    claims: Mapping[int, frozenset[int]] = field(default_factory=dict)
    known: Mapping[int, int | None] = field(default_factory=dict)
    rows_now: tuple[int, ...] = HUNDRED
    cosines: Mapping[str, float] = field(default_factory=dict)
    moments: list[datetime | None] = field(default_factory=list)

    def look(self, *, query: str, k: int, as_of: datetime | None) -> Answer:
        self.moments.append(as_of)
        hits = tuple(self._hit(pk, query) for pk in self.answers.get(query, ())[:k])
        return Answer(uuid.uuid4(), hits, complete=query in self.answers)

    def _hit(self, pk: int, query: str) -> Hit:
        return Hit(pk, f"r{pk}", "", Why.BOTH, Trust.MEDIUM, Status.ACTIVE, 1.0, self.cosines.get(query, 0.5))

    def rows(self, *, as_of: datetime | None = None) -> tuple[int, ...]:
        return self.rows_now

    def carried(self, *, named: Collection[int]) -> Mapping[int, frozenset[int]]:
        return {pk: frozenset({pk}) for pk in named} | dict(self.claims)

    def keys(self, *, rows: Collection[int]) -> Mapping[int, int | None]:
        return {pk: self.known.get(pk) for pk in rows if pk in self.rows_now}


def asked(number: int, *expected: int, **more: object) -> Probe:
    return Probe(number=number, query=f"q{number}", expected=list(expected), **more)


def test_each_measure_is_the_number_computed_by_hand() -> None:
    """R112, R113: recall, hit, MRR, distinct, stale, leaks, negatives."""
    world = Made(
        answers={
            "q1": (10, 11, 1, 2, 3),  # both that are expected: 1; first place; 10 and 11 are one claim: 4 different
            "q2": (1, 2, 20, 21, 3),  # one of two: 0.5; third place; 21 is outdated; 5 different
            "q3": (4, 5, 6, 7, 8),  # none: 0; 4 to 7 have one key: 2 different
            "q4": (40, 66),  # found; 66 is forbidden; 2 different
            "q5": (50, 1),  # negative, and 50 is what it may be mistaken for
            "q6": (2, 3),  # negative, and 60 did not come
        },
        known=dict.fromkeys((4, 5, 6, 7), 99),
        cosines={"q1": 0.9, "q2": 0.8, "q3": 0.3, "q4": 0.7, "q5": 0.6, "q6": 0.2},
    )
    probes = [
        asked(1, 10, 11),
        asked(2, 20, 22, outdated=[21]),
        asked(3, 30, outdated=[31]),
        asked(4, 40, forbidden=[66]),
        asked(5, 50, negative=True),
        asked(6, 60, negative=True),
    ]
    figures = probing.count(world=world, asked=probes, units={"10": 1, "11": 1})
    assert figures.why_not == ""
    assert figures.recall == pytest.approx((1 + 0.5 + 0 + 1) / 4)
    assert figures.hit == pytest.approx(3 / 4)
    assert figures.mrr == pytest.approx((1 + 1 / 3 + 0 + 1) / 4)
    assert figures.distinct == pytest.approx((4 + 5 + 2 + 2) / 4)
    assert figures.unmarked == pytest.approx((3 + 5 + 1 + 2) / 17)  # of 17 hits: neither a label nor a key
    assert (figures.stale, figures.mistaken) == (1 / 2, 1 / 2)
    # Eight pairs of a question and a negative one; 0.3 is not above 0.6, the seven others are.
    assert figures.separation == pytest.approx(7 / 8)
    assert (figures.leaked, figures.gates) == ({4: (66,)}, ("a forbidden record came back",))
    assert figures.missing == {2: (22,), 3: (30,)}
    assert 0 <= figures.p50 <= figures.p95


def test_a_row_that_a_plan_would_make_carries_what_it_was_made_of() -> None:
    """R112, R113: negative ids count as what they say; one that the projected store does not hold is a leak."""
    made = {MADE: frozenset({10, 11})}
    answers = {"q1": (MADE, 1), "q2": (MADE, -8)}
    world = Made(answers=answers, claims=made, known={MADE: 5}, rows_now=(*HUNDRED, MADE))
    figures = probing.count(world=world, asked=[asked(1, 10, 11), asked(2, 12, forbidden=[11])], units={"10": 3})
    assert (figures.recall, figures.missing) == (0.5, {2: (12,)})
    assert figures.leaked == {2: (MADE, -8)}
    assert figures.distinct == 2


def test_a_probe_is_asked_as_of_its_own_moment() -> None:
    world = Made(answers={"q1": (10,), "q2": (10,)})
    probing.count(world=world, asked=[asked(1, 10), asked(2, 10, as_of=THEN)], units={})
    assert world.moments == [None, THEN]


def test_an_answer_that_was_not_complete_is_no_miss_and_no_number_is_left() -> None:
    """R31: the embedder was away; that is not the same as finding nothing."""
    world = Made(answers={"q1": (10,)})
    figures = probing.count(world=world, asked=[asked(1, 10), asked(2, 20)], units={})
    assert (figures.cut_short, figures.incomplete) == ((2,), 1)
    assert figures.why_not == "1 of 2 answers were not complete"
    assert figures.gates == ("no number is shown: 1 of 2 answers were not complete",)
