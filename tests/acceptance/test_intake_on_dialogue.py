"""End to end on real dialogue: observe, extract, reconcile, store, with a worker killed in the middle and without.

The model of extraction says what the data's annotators noted of each turn; the reconciler adds. Every claim is stored
once, with its evidence and its words, in the order of the turns: in the reads, or held back where its turn says only a
part of it (R9, R58, R121-R129). All of that holds after kill -9 at some statements and restarts; the first sessions of
each conversation are read without as well, and the stores are the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import accumulate, groupby, islice

import pytest
from django.db import connection

from consolidation import invariants
from observations import extraction, ingest
from observations.extraction import Proposed
from observations.llm import Reply
from observations.models import Episode, Evidence, IntakeItem, IntakeRun, Observation, Scope
from observations.normalise import normalised
from observations.records import EpisodeRecord, Status, Turn
from tests.acceptance import intake_world as world
from tests.acceptance.boundaries import run_in_child, watched
from tests.building import scope
from tests.intaking import HASHING, deciding, enabled
from tests.locomo import Conversation, conversations, script_for
from tests.scripted import ScriptedCompleter

pytestmark = pytest.mark.django_db(transaction=True)

DEATHS = 2  # in the beginning of each conversation; one more in its middle
BEGINNING = 60  # turns, or the sessions that hold as many: what is read without deaths as well
NUMBERS = range(5)


def script(conversation: Conversation) -> ScriptedCompleter:
    return ScriptedCompleter(by_purpose={"extract": script_for(conversation), "reconcile": deciding()})


def sessions(conversation: Conversation) -> Iterator[list[Turn]]:
    for _, turns in groupby(conversation.turns, key=lambda turn: turn.session):
        yield list(turns)


def beginning(conversation: Conversation) -> int:
    """How many sessions hold the first turns."""
    ends = accumulate(len(turns) for turns in sessions(conversation))
    return next(number for number, end in enumerate(ends, 1) if end >= BEGINNING)


def stream(conversation: Conversation, within: Scope, *, first: int = 0, to: int | None = None) -> None:
    """The conversation, or some sessions of it, as it comes: a session is handed in, then what waits is read."""
    for turns in islice(sessions(conversation), first, to):
        ingest.observe(scope=within, turns=turns, by="test")
        ingest.run_intake(scope=within, by="test", completer=script(conversation), embedder=HASHING)


def die(conversation: Conversation, within: Scope, *, kill_at: int, first: int = 0, to: int | None = None) -> None:
    """A worker that streams some sessions is killed at a statement, and its lease ends."""
    death = run_in_child(lambda: stream(conversation, within, first=first, to=to), kill_at=kill_at)
    assert death.code == -9
    world.let_the_lease_end(within)


def claims(conversation: Conversation, within: Scope) -> Iterator[tuple[Proposed, dict[int, EpisodeRecord]]]:
    """What extraction makes of it, turn by turn: what has to be stored, by the rules alone."""
    answer = script(conversation)
    turns = [turn.record() for turn in Episode.objects.filter(scope=within).order_by("happened_at", "seq", "pk")]
    for batch in extraction.batches(turns):
        session = [turn for turn in turns if turn.session == batch[0].session]
        before = session[: session.index(batch[0])]
        reply: Reply = answer.complete(extraction.request(turns=batch, scope_id=within.pk, before=before))
        read = extraction.read(reply=reply, turns=batch, before=before)
        places = {turn.id: place for place, turn in enumerate(batch)}
        for claim in sorted((*read.claims, *read.held), key=lambda claim: places[claim.episode]):
            yield claim, {turn.id: turn for turn in batch}


def examine(conversation: Conversation, within: Scope) -> tuple[int, int]:
    """Whether every noted claim is stored once, with its words, in order, and whether it is where it belongs; returns
    how many rows are in the reads, and how many are held back.
    """
    wanted: dict[str, set[tuple[str, str]]] = {}
    doubted: dict[str, bool] = {}
    for claim, turns in claims(conversation, within):
        text = normalised(claim.text)
        assert doubted.setdefault(text, claim.doubt is not None) == (claim.doubt is not None)
        quotes = wanted.setdefault(text, set())
        quotes |= {
            (turns[each.episode].source_uri, turns[each.episode].text[each.start : each.end]) for each in claim.evidence
        }
    assert set(wanted) == {normalised(noted.text) for noted in conversation.noted}  # nothing of the script is lost
    rows = list(Observation.objects.in_scope(within).order_by("pk"))
    assert [normalised(row.text or "") for row in rows] == list(wanted)
    found: dict[int, set[tuple[str, str]]] = {}
    for pk, uri, quote in Evidence.objects.filter(scope=within).values_list("observation_id", "source_uri", "quote"):
        found.setdefault(pk, set()).add((uri, quote or ""))
    for row, (text, quotes) in zip(rows, wanted.items(), strict=True):
        assert {uri for uri, _ in found[row.pk]} == {uri for uri, _ in quotes}
        assert found[row.pk] <= quotes
        assert row.status == (Status.QUARANTINED if doubted[text] else Status.ACTIVE)
        assert (row.reconciled_at is None) == doubted[text]
    assert not IntakeItem.objects.filter(scope=within, verdict="refused").exists()
    held = sum(doubted.values())
    assert held < 0.1 * len(rows)
    return len(rows) - held, held


@pytest.mark.parametrize("number", NUMBERS)
def test_every_claim_is_stored_once_with_its_evidence_in_order_with_the_worker_killed_in_the_middle_and_without(
    number: int, show: Callable[[str], None]
) -> None:
    """R9, R55, R58, R121: kill -9 at some statements, wherever they fall, and start again."""
    conversation = conversations()[number]
    calm, stormy = enabled(scope("dialogue/calm")), enabled(scope("dialogue/stormy"))
    start = beginning(conversation)
    boundaries: list[str] = []
    with watched(lambda statement, _side: boundaries.append(statement)):
        stream(conversation, calm, to=start)
    dice = random.Random(conversation.name)
    for _ in range(DEATHS):
        die(conversation, stormy, kill_at=dice.randrange(len(boundaries) // 2), to=start)
    stream(conversation, stormy, to=start)
    assert world.dump(stormy) == world.dump(calm)  # rows, evidence, order, journal, vectors, turns read, verdicts
    middle = (start + len(list(sessions(conversation)))) // 2
    stream(conversation, stormy, first=start, to=middle)
    die(conversation, stormy, kill_at=dice.randrange(len(boundaries) // 2), first=middle)
    stream(conversation, stormy, first=middle)
    active, held = examine(conversation, stormy)
    assert not Episode.objects.filter(scope=stormy, extractions=None).exists()
    assert [str(found) for found in invariants.check()] == []
    interrupted = IntakeRun.objects.filter(scope=stormy, state="interrupted").count()
    show(
        f"{conversation.name}: {len(conversation.turns)} turns, {len(conversation.noted)} noted claims: {active} in"
        f" the reads and {held} held back, each once, with {DEATHS + 1} kills ({interrupted} runs cut in two)"
    )


def test_the_vectors_of_a_conversation_are_there_without_a_worker() -> None:
    """Each batch finds the rows of the one before by their meaning."""
    here = enabled(scope("dialogue/vectors"))
    conversation = conversations()[0]
    first = next(sessions(conversation))
    ingest.observe(scope=here, turns=first, by="test")
    ingest.run_intake(scope=here, by="test", completer=script(conversation), embedder=HASHING)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM observations_observation o LEFT JOIN observations_embedding e"
            " ON e.observation_id = o.id WHERE o.scope_id = %s AND e.vector IS NULL",
            [here.pk],
        )
        assert cursor.fetchone() == (0,)
    assert Observation.objects.in_scope(here).exists()
