"""Two real backends write at once, and a writer is killed at every statement: one row, one winner, wholly or not at all
(C16, R55, R82).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from observations import calls, ingest, store
from observations.calls import Caller, CallRefused, Code, schemas
from observations.models import CoreMemory, CoreRevision, Episode, Event, Evidence, Intake, Observation, Outbox, Residue
from observations.records import Action
from tests.acceptance import world
from tests.acceptance.actors import together
from tests.acceptance.boundaries import run_in_child
from tests.building import scope
from tests.conftest import empty_the_store

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 20
CALLERS = [
    Caller(name=f"token:{number * 16}", pattern="team-a/*", may_read=True, may_write=True, may_propose=True)
    for number in "12"
]


def acts(name: str, seed: int, *given: dict[str, Any]) -> list[Any]:
    """What two callers are answered who make a call at the same moment, each with what it is given."""
    one = calls.CALLS[name]
    asked = [one.takes.model_validate({"scope": f"team-a/{seed}", **each}) for each in given]
    return together(
        seed, *(partial(one.run, caller=caller, asked=each) for caller, each in zip(CALLERS, asked, strict=True))
    )


def rows(seed: int) -> list[int]:
    return list(Observation.objects.filter(scope__name=f"team-a/{seed}").order_by("pk").values_list("pk", flat=True))


# --- the same thing at once ------------------------------------------------------------------------------------------


def remembered_at_once(seed: int) -> tuple[list[Any], list[int]]:
    """Two callers remember the same at once; in a scope that is there in every other round only."""
    if seed % 2:
        scope(f"team-a/{seed}")
    text = {"text": "The relay sits in rack 4"}
    return acts("remember", seed, text, text), rows(seed)


def test_two_who_remember_the_same_at_once_make_one_row_and_both_get_its_id() -> None:
    for seed in range(ROUNDS):
        answers, stored = remembered_at_once(seed)
        assert [answer.id for answer in answers] == stored * 2
        assert {answer.action for answer in answers} == {Action.ADDED, Action.KNOWN}
        assert Evidence.objects.filter(observation_id=stored[0]).count() == 2


def test_the_control_without_its_lock_the_same_is_stored_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def only_the_scope(*, scope_id: int, text_keys: object, cause: str) -> datetime:
        return store.lock_scope(scope_id=scope_id, cause=cause)

    monkeypatch.setattr(store, "lock_scope_and_texts", only_the_scope)
    assert any(len(remembered_at_once(seed)[1]) == 2 for seed in range(1000, 1000 + ROUNDS))


def test_two_who_send_the_same_event_at_once_make_one_turn_and_both_get_its_id() -> None:
    for seed in range(ROUNDS):
        turn = {"text": "Standup moved to 09:30", "role": "user", "source_uri": "chat://1", "external_id": "t1"}
        answers = acts("observe", seed, {"turns": [turn]}, {"turns": [turn]})
        [episode] = Episode.objects.filter(scope__name=f"team-a/{seed}")
        assert [answer.turns[0].id for answer in answers] == [episode.pk] * 2
        assert sorted(answer.turns[0].fate for answer in answers) == ["added", "already there"]


def test_one_external_id_for_two_texts_at_once_is_one_row_and_the_other_is_refused() -> None:
    for seed in range(5):
        answers = acts("remember", seed, *({"text": f"Text {number}", "external_id": "x1"} for number in "ab"))
        assert {answer.action for answer in answers} == {Action.ADDED, Action.REFUSED}
        assert len(rows(seed)) == 1


def test_lists_of_the_same_facts_in_opposite_orders_are_stored_once_and_nobody_waits_forever() -> None:
    for seed in range(5):
        facts = [{"text": f"Fact {number} holds", "author": {"name": "Ana", "role": "user"}} for number in range(12)]
        answers = acts("store_facts", seed, {"about": "Ana", "facts": facts}, {"about": "Ana", "facts": facts[::-1]})
        assert len(rows(seed)) == len(facts)
        assert [fact.id for fact in answers[0].facts] == [fact.id for fact in answers[1].facts[::-1]]
        assert sum(answer.stored for answer in answers) == len(facts)


# --- one winner ------------------------------------------------------------------------------------------------------


def test_two_edits_of_one_revision_at_once_have_one_winner_and_the_other_hears_the_current_one() -> None:
    for seed in range(ROUNDS):
        ingest.create_core(scope=scope(f"team-a/{seed}"), label="human", value="Likes tea", by="ana@command")
        edits = [{"label": "human", "old": "tea", "new": new, "revision": 1} for new in ("coffee", "cocoa")]
        answers = acts("core_replace", seed, *edits)
        [lost] = [answer for answer in answers if isinstance(answer, CallRefused)]
        [won] = [answer for answer in answers if isinstance(answer, schemas.CoreMemory)]
        assert (lost.code, lost.extra) == (Code.CONFLICT, {"refusal": "moved", "current": 2})
        core = CoreMemory.objects.get(scope__name=f"team-a/{seed}")
        assert (core.value, core.revision) == (won.value, 2)
        assert CoreRevision.objects.filter(core=core).count() == 2


def test_two_lines_appended_at_once_both_stand() -> None:
    for seed in range(5):
        ingest.create_core(scope=scope(f"team-a/{seed}"), label="human", value="", by="ana@command")
        acts("core_append", seed, *({"label": "human", "text": text} for text in ("one", "two")))
        assert set(CoreMemory.objects.get(scope__name=f"team-a/{seed}").value.split("\n")) == {"one", "two"}


def test_a_label_is_taken_by_one_of_two() -> None:
    for seed in range(5):
        answers = acts("core_create", seed, *({"label": "human", "value": value} for value in "ab"))
        [lost] = [answer for answer in answers if isinstance(answer, CallRefused)]
        assert (lost.code, CoreMemory.objects.count()) == (Code.CONFLICT, seed + 1)


def test_two_corrections_of_one_row_at_once_have_one_winner() -> None:
    for seed in range(5):
        within = scope(f"team-a/{seed}")
        old = calls.remember(
            caller=CALLERS[0], asked=schemas.Remember(scope=within.name, text="The relay sits in rack 4")
        )
        assert old.id is not None
        answers = acts(
            "correct", seed, *({"id": old.id, "text": f"The relay sits in rack {number}"} for number in "78")
        )
        [lost] = [answer for answer in answers if isinstance(answer, CallRefused)]
        [won] = [answer for answer in answers if isinstance(answer, schemas.Remembered)]
        assert lost.code is Code.CONFLICT
        assert list(Observation.objects.active().in_scope(within).values_list("pk", flat=True)) == [won.id]


def test_two_rows_corrected_to_each_others_words_at_once_end_as_one_row_or_two_and_nobody_waits_forever() -> None:
    for seed in range(ROUNDS):
        within = scope(f"team-a/{seed}")
        first, second = (
            calls.remember(caller=CALLERS[0], asked=schemas.Remember(scope=within.name, text=text)) for text in "ab"
        )
        answers = acts("correct", seed, {"id": first.id, "text": "b"}, {"id": second.id, "text": "a"})
        assert all(isinstance(answer, schemas.Remembered | CallRefused) for answer in answers), answers
        assert not any(isinstance(answer, CallRefused) and answer.code is Code.UNAVAILABLE for answer in answers)
        assert 1 <= Observation.objects.active().in_scope(within).count() <= 2


def test_residue_of_two_runs_at_once_keeps_to_its_places() -> None:
    for seed in range(5):
        Intake.objects.create(scope=scope(f"team-a/{seed}"), residue=True, updated_by="ana")
        acts(
            "residue_hold",
            seed,
            *({"items": [f"The {what} {n} is slow" for n in range(7)]} for what in ("relay", "job")),
        )
        assert Residue.objects.count() == 7 * (seed + 1)


# --- killed ----------------------------------------------------------------------------------------------------------


def the_store() -> str:
    """Everything that a write leaves, without ids, times and what is drawn."""
    rows = Observation.objects.order_by("text").values_list("text", "status", "version", "superseded_by__text")
    core = CoreMemory.objects.values_list("label", "value", "revision")
    revisions = CoreRevision.objects.order_by("number").values_list("number", "action", "value")
    evidence = Evidence.objects.order_by("observation__text").values_list("observation__text", "source_uri")
    events = Event.objects.order_by("pk").values_list("action", "actor")
    work = Outbox.objects.filter(task="embed").count()
    return repr([list(rows), list(evidence), list(core), list(revisions), list(events), work])


def to_remember() -> Callable[[], object]:
    """Facts, one of which is there already."""
    scope("team-a/1")
    facts = [schemas.Fact(text=f"Fact {n} holds", author=schemas.Author(name="Ana", role="user")) for n in range(3)]
    first = schemas.StoreFacts(scope="team-a/1", about="Ana", facts=[*facts[:1]])
    calls.store_facts(caller=CALLERS[1], asked=first)
    asked = schemas.StoreFacts(scope="team-a/1", about="Ana", facts=[*facts])
    return lambda: calls.store_facts(caller=CALLERS[0], asked=asked)


def to_correct() -> Callable[[], object]:
    """A row to be corrected."""
    old = calls.remember(caller=CALLERS[0], asked=schemas.Remember(scope="team-a/1", text="The relay sits in rack 4"))
    assert old.id is not None
    asked = schemas.Correct(scope="team-a/1", id=old.id, text="The relay sits in rack 7")
    return lambda: calls.correct(caller=CALLERS[0], asked=asked)


def to_edit() -> Callable[[], object]:
    """A core memory to be edited."""
    ingest.create_core(scope=scope("team-a/1"), label="human", value="Likes tea", by="ana@command")
    asked = schemas.CoreRethink(scope="team-a/1", label="human", value="Likes coffee")
    return lambda: calls.core_rethink(caller=CALLERS[0], asked=asked)


@pytest.mark.parametrize("build", [to_remember, to_correct, to_edit])
def test_killed_at_any_statement_a_write_is_whole_or_absent_and_doing_it_again_ends_the_same(
    build: Callable[[], Callable[[], object]],
) -> None:
    act = build()
    before = the_store()
    whole = run_in_child(act)
    after = the_store()
    assert whole.code == 0
    assert before != after
    for position, boundary in enumerate(whole.boundaries):
        if boundary[1] == "before":  # the same place as after the statement before it
            continue
        empty_the_store()
        act = build()
        assert run_in_child(act, kill_at=position).code == -9
        assert the_store() in (before, after), boundary
        act()
        assert the_store() == after, boundary
        assert not world.broken(), boundary
