"""Whatever the reconciler answers, batch after batch: nothing that was active is lost, and no text is there twice.

The answers are drawn: right labels, wrong ones, all verdicts, entries left out and repeated (C4, C5, R11-R16, I2, I15).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consolidation import invariants
from observations.llm import Request, Unreachable
from observations.models import Episode, Evidence, Extraction, IntakeItem, Observation, Scope
from observations.normalise import normalised
from observations.records import Status, Turn
from tests.building import scope
from tests.intaking import active, echo, enabled, lines_of, read, told, turn
from tests.scripted import ScriptedCompleter

pytestmark = pytest.mark.django_db

TEXTS = tuple(f"Claim about {word} in {place}" for word in ("tea", "rack", "row") for place in "abcdefgh")
VOICES = (*[("Ana", "user")] * 7, ("Bo", "user"), ("Helper", "assistant"))
VERDICTS = (*["UPDATE"] * 4, *["DELETE"] * 4, "NOOP", "ADD", "MERGE")
LETTERS = (*"aaaaabbc", "d", "", "other")
TIMES = (*[1] * 10, 0, 2)  # how often an answer decides about a claim


def drawn_turns(dice: random.Random, *, after: int) -> list[Turn]:
    """Some turns, a few of them the same text once it is normalised."""
    said = []
    for number in range(after, after + dice.randint(1, 5)):
        speaker, role = dice.choice(VOICES)
        text = dice.choice(TEXTS) + dice.choice(("", "", "."))
        said.append(turn(text, number=number, speaker=speaker, role=role))
    return said


def drawn_answer(dice: random.Random) -> Any:
    """Decisions for up to five claims, or now and then no answer."""
    if dice.random() < 0.1:
        return dice.choice(("prose", Unreachable("Later.")))
    return [tuple(map(dice.choice, (VERDICTS, LETTERS, (True, True, True, False), TIMES))) for _ in range(5)]


def answering(drawn: Any) -> Any:
    """A reconciler that answers as drawn, with labels of the question and others."""

    def answer(request: Request) -> Any:
        if not isinstance(drawn, list):
            return drawn
        decisions = []
        for place, line in enumerate(lines_of(request)):
            verdict, letter, replaces, times = drawn[place % len(drawn)]
            label = "9.a" if letter == "other" else f"{line['label']}.{letter}" if letter else ""
            entry = {"claim": line["label"], "reason": "drawn", "verdict": verdict, "target": label}
            decisions += [{**entry, "replaces": replaces}] * times
        return {"decisions": decisions}

    return answer


def end_of(row: Observation) -> Observation:
    """The row at the end of a chain of successors, which is finite (I6)."""
    passed = {row.pk}
    while row.superseded_by is not None:
        row = row.superseded_by
        assert row.pk not in passed
        passed.add(row.pk)
    return row


def sources_of(row: Observation) -> set[str]:
    return set(Evidence.objects.filter(observation=row).values_list("source_uri", flat=True))


def check(here: Scope, before: list[str]) -> None:
    """What holds after any batch."""
    rows = list(Observation.objects.filter(scope=here).order_by("pk"))
    texts = [normalised(row.text or "") for row in rows if row.status == Status.ACTIVE]
    assert len(texts) == len(set(texts)), "a text is in the reads twice"
    assert {row.status for row in rows} <= {Status.ACTIVE, Status.SUPERSEDED}
    for row in rows:
        assert (row.status == Status.SUPERSEDED) == (row.superseded_by_id is not None)
        assert end_of(row).status == Status.ACTIVE
        assert sources_of(row)
    kept = {row.text for row in rows}
    assert set(before) <= kept, "a text that was in the reads is gone"
    for item in IntakeItem.objects.filter(scope=here, verdict__in=["update", "delete"]):
        assert item.target is not None
        assert item.observation is not None
        assert item.target.superseded_by_id == item.observation_id
        if item.verdict == "update":
            assert sources_of(item.target) <= sources_of(item.observation)


def accounted_for(here: Scope) -> None:
    """Every turn that was read is evidence of a row, and what became of every claim names the row that holds it."""
    turns = set(Episode.objects.filter(scope=here).values_list("source_uri", flat=True))
    assert set(Evidence.objects.filter(scope=here).values_list("source_uri", flat=True)) == turns
    assert set(Extraction.objects.filter(scope=here).values_list("state", flat=True)) == {"claims"}
    for item in IntakeItem.objects.filter(scope=here).select_related("observation", "episode"):
        assert item.observation is not None
        assert item.episode is not None
        assert item.episode.source_uri in sources_of(item.observation)


_numbers = iter(range(10**9))


def test_whatever_is_decided_nothing_active_is_lost_and_no_text_is_in_the_reads_twice(
    show: Callable[[str], None],
) -> None:
    """R11, R127: all verdicts are drawn, and no answer of the reconciler deletes anything."""
    any_batches()
    seen = Counter(IntakeItem.objects.values_list("verdict", flat=True))
    show(f"claims under drawn decisions: {dict(seen)}")
    assert set(seen) == {"add", "update", "delete", "noop", "refused", "review"}
    assert [str(found) for found in invariants.check()] == []


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def any_batches(seed: int) -> None:
    """Four batches of turns, each with the answer that a reconciler gives; what holds is looked at after each."""
    here, dice, number = enabled(scope(f"drawn/{next(_numbers)}")), random.Random(seed), 0
    for _ in range(4):
        said = drawn_turns(dice, after=number)
        number += len(said)
        told(here, *said)
        before = active(here)
        completer = ScriptedCompleter(by_purpose={"extract": echo, "reconcile": answering(drawn_answer(dice))})
        report = read(here, completer=completer)
        assert (report.state, report.left, report.turns) == ("done", 0, len(said))
        assert 0 < report.claims <= len(said)
        check(here, before)
    accounted_for(here)
