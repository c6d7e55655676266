"""End to end on real dialogue: observe, extract, reconcile, store, with a worker killed in the middle and without.

The model of extraction says what the data's annotators noted of each turn; the reconciler adds. Every claim that is
believed is stored once, with its evidence and its words, in the order of the turns (R9, R58, R121-R129).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import groupby

import pytest
from django.db import connection

from consolidation import invariants
from observations import extraction, ingest
from observations.extraction import Proposed
from observations.llm import Reply
from observations.models import Episode, Evidence, IntakeItem, IntakeRun, Observation, Scope
from observations.normalise import normalised
from observations.records import EpisodeRecord, Turn
from tests.acceptance import intake_world as world
from tests.acceptance.boundaries import run_in_child
from tests.building import scope
from tests.intaking import HASHING, deciding, enabled
from tests.locomo import Conversation, conversations, script_for
from tests.scripted import ScriptedCompleter

pytestmark = pytest.mark.django_db(transaction=True)

DEATHS = 4
KILLED, CALM = 0, range(1, 5)  # of five conversations, the one that is read twice


def script(conversation: Conversation) -> ScriptedCompleter:
    return ScriptedCompleter(by_purpose={"extract": script_for(conversation), "reconcile": deciding()})


def sessions(conversation: Conversation) -> Iterator[list[Turn]]:
    for _, turns in groupby(conversation.turns, key=lambda turn: turn.session):
        yield list(turns)


def stream(conversation: Conversation, within: Scope) -> None:
    """The conversation as it comes: a session is handed in, then what waits is read."""
    for turns in sessions(conversation):
        ingest.observe(scope=within, turns=turns, by="test")
        ingest.run_intake(scope=within, by="test", completer=script(conversation), embedder=HASHING)


def believed(conversation: Conversation, within: Scope) -> Iterator[tuple[Proposed, dict[int, EpisodeRecord]]]:
    """The claims that extraction believes of it, session by session: what has to be stored, by the rules alone."""
    answer = script(conversation)
    turns = [turn.record() for turn in Episode.objects.filter(scope=within).order_by("happened_at", "seq", "pk")]
    for batch in extraction.batches(turns):
        session = [turn for turn in turns if turn.session == batch[0].session]
        before = session[: session.index(batch[0])]
        reply: Reply = answer.complete(extraction.request(turns=batch, scope_id=within.pk, before=before))
        for claim in extraction.read(reply=reply, turns=batch, before=before).claims:
            yield claim, {turn.id: turn for turn in batch}


def examine(conversation: Conversation, within: Scope) -> int:
    """Whether every believed claim is stored once, with its words, in order; returns how many rows that are."""
    wanted: dict[str, set[tuple[str, str]]] = {}
    for claim, turns in believed(conversation, within):
        quotes = wanted.setdefault(normalised(claim.text), set())
        quotes |= {
            (turns[each.episode].source_uri, turns[each.episode].text[each.start : each.end]) for each in claim.evidence
        }
    rows = list(Observation.objects.active().in_scope(within).order_by("pk"))
    assert [normalised(row.text or "") for row in rows] == list(wanted)
    assert Observation.objects.in_scope(within).count() == len(rows)
    found: dict[int, set[tuple[str, str]]] = {}
    for pk, uri, quote in Evidence.objects.filter(scope=within).values_list("observation_id", "source_uri", "quote"):
        found.setdefault(pk, set()).add((uri, quote or ""))
    for row, quotes in zip(rows, wanted.values(), strict=True):
        assert {uri for uri, _ in found[row.pk]} == {uri for uri, _ in quotes}
        assert found[row.pk] <= quotes
        assert row.reconciled_at is not None
    return len(rows)


def summary(conversation: Conversation, within: Scope, rows: int) -> str:
    refused = IntakeItem.objects.filter(scope=within, verdict="refused").count()
    assert refused < 0.1 * len(conversation.noted)
    return (
        f"{conversation.name}: {len(conversation.turns)} turns, {len(conversation.noted)} noted claims, {refused} not"
        f" believed, {rows} rows, each once"
    )


@pytest.mark.parametrize("number", CALM)
def test_every_claim_of_a_conversation_is_stored_once_with_its_evidence_in_order(
    number: int, show: Callable[[str], None]
) -> None:
    """R9, R121."""
    conversation, here = conversations()[number], enabled(scope("dialogue/calm"))
    stream(conversation, here)
    show(summary(conversation, here, examine(conversation, here)))
    assert not Episode.objects.filter(scope=here, extractions=None).exists()


def test_a_conversation_comes_to_the_same_store_with_its_worker_killed_in_the_middle_and_without(
    show: Callable[[str], None],
) -> None:
    """R55, R58: kill -9 at some statements, wherever they fall, and start again."""
    conversation = conversations()[KILLED]
    calm, stormy = enabled(scope("dialogue/calm")), enabled(scope("dialogue/stormy"))
    whole = run_in_child(lambda: stream(conversation, calm))
    assert whole.code == 0
    rows = examine(conversation, calm)
    dice = random.Random(conversation.name)
    for _ in range(DEATHS):
        death = run_in_child(lambda: stream(conversation, stormy), kill_at=dice.randrange(len(whole.boundaries) // 4))
        assert death.code == -9
        world.let_the_lease_end(stormy)
    stream(conversation, stormy)
    assert world.dump(stormy) == world.dump(calm)
    assert examine(conversation, stormy) == rows
    assert [str(found) for found in invariants.check()] == []
    interrupted = IntakeRun.objects.filter(scope=stormy, state="interrupted").count()
    show(f"{summary(conversation, calm, rows)}; the same after {DEATHS} kills ({interrupted} runs cut in two)")
    assert interrupted > 0


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
