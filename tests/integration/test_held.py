"""Claims that are held back: stored once with their evidence, in no read, until a person decides (R9, R47, C3, C4)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from consolidation import invariants
from observations import access, ingest, retrieval, store
from observations.calls import CALLS, CallRefused
from observations.embedding import embedder
from observations.ingest import held
from observations.llm import Request
from observations.models import Event, Evidence, IntakeItem, Observation, Scope, Transition, database_now
from observations.records import Caller, Claim, EvidenceRef, Status, WrittenBy
from tests.building import observe, scope
from tests.intaking import active, deciding, enabled, items, lines_of, model, read, sources, told, turn
from tests.jsonl import exported, imported
from tests.scripted import ScriptedCompleter

pytestmark = pytest.mark.django_db

DOG = "Ana has a dog"
WISH, SURE, AGAIN = "I want a dog.", "I have a dog.", "I really want a dog."


def says() -> ScriptedCompleter:
    """A model that makes one claim of every turn about a dog, quoting all of it."""

    def answer(request: Request) -> Mapping[str, Any]:
        return {
            "claims": [
                {"text": DOG, "subject": "Ana", "predicate": "", "object": "", "kind": "fact"}
                | {"turn": line["label"], "quote": line["text"]}
                for line in lines_of(request)
                if "dog" in line["text"]
            ]
        }

    return model(answer, deciding())


def doubted(*texts: str, name: str = "held/u1") -> tuple[Scope, Observation]:
    """A scope with one claim that is held back, read from these turns."""
    here = enabled(scope(name))
    told(here, *(texts or (WISH,)))
    read(here, completer=says())
    return here, Observation.objects.get(scope=here, status=Status.QUARANTINED)


def status_of(row: Observation) -> str:
    return Observation.objects.get(pk=row.pk).status


def cause_of(row: Observation) -> str:
    return Transition.objects.filter(observation=row).order_by("-version").values_list("cause", flat=True)[0]


def _answer(caller: Caller, name: str, **asked: object) -> str:
    """The answer of a call as a program reads it."""
    call = CALLS[name]
    return json.dumps(call.run(caller=caller, asked=call.takes.model_validate(asked)).model_dump(mode="json"))


# --- as turns are read -----------------------------------------------------------------------------------------------


def test_a_doubted_claim_is_stored_quarantined_with_its_evidence_and_its_doubt() -> None:
    """And asks nobody: what nothing may read concerns no row yet."""
    here = enabled(scope())
    told(here, WISH)
    completer = says()
    report = read(here, completer=completer)
    assert (report.held, report.claims, report.added, report.refused, report.flagged) == (1, 1, 0, 0, 0)
    row = Observation.objects.get(scope=here)
    assert (row.text, row.status, row.version, row.reconciled_at) == (DOG, Status.QUARANTINED, 1, None)
    assert list(Evidence.objects.filter(observation=row).values_list("quote", "quote_start")) == [(WISH, 0)]
    item = IntakeItem.objects.get(scope=here)
    assert (item.verdict, item.observation_id, item.text) == ("held", row.pk, DOG)
    assert "wish" in item.reason
    assert [request.purpose for request in completer.requests] == ["extract"]


def test_no_read_no_prompt_and_no_call_of_a_program_shows_what_is_held_back() -> None:
    """C3, R9: a control in the reads is found by every one of them."""
    here, row = doubted()
    cat = observe("Ana has a cat", within=here)
    program = Caller(name="token:abc", pattern="held/*", may_read=True)
    past = database_now().isoformat()
    for name, asked in (
        ("search", {"query": f"{DOG} cat"}),
        ("search", {"query": f"{DOG} cat", "include_history": True}),
        ("search", {"query": f"{DOG} cat", "as_of": past}),
        ("known", {"query": f"{DOG} cat"}),
        ("list_observations", {}),
        ("prompt", {"about": f"{DOG} cat"}),
    ):
        said = _answer(program, name, scope=here.name, **asked)
        assert (DOG in said, (cat.text or "?") in said) == (False, True), (name, asked)
    for decided in (None, held.discard):
        if decided is not None:
            decided(scope=here, ids=[row.pk], by="rita")
        assert DOG not in _answer(program, "history_of_observation", scope=here.name, id=f"obs_{row.pk}")
    with pytest.raises(CallRefused):
        _answer(program, "get_observation", scope=here.name, id=f"obs_{row.pk}")
    found = retrieval.nearest(scope=here, text=DOG, vector=None, profile=embedder("hashing").profile)
    assert row.pk not in {hit.id for hit in found}
    assert not Observation.objects.active().filter(pk=row.pk).exists()
    assert not Observation.objects.with_history().filter(pk=row.pk).exists()


def test_the_same_doubted_claim_again_brings_evidence_and_no_second_row() -> None:
    """C4."""
    here, row = doubted()
    told(here, turn(AGAIN, number=4))
    assert read(here, completer=says()).held == 1
    assert [each.pk for each in Observation.objects.filter(scope=here)] == [row.pk]
    assert len(sources(row)) == 2
    assert [verdict for verdict, _ in items(here)] == ["held", "held"]


def test_a_doubtful_turn_is_no_evidence_for_what_is_in_the_reads() -> None:
    """R95: the active row keeps what it rests on, and nothing is held back beside it."""
    here = enabled(scope())
    told(here, SURE)
    read(here, completer=says())
    [row] = Observation.objects.filter(scope=here)
    told(here, turn(WISH, number=4))
    report = read(here, completer=says())
    assert (report.held, report.known) == (0, 1)
    assert (active(here), len(sources(row))) == ([DOG], 1)
    assert items(here)[-1] == (
        "noop",
        "the same words are stored already; its turn says only a part of it and is no evidence",
    )


def test_what_is_said_properly_later_is_added_and_takes_the_doubted_row_off_the_list() -> None:
    """Its evidence is that of the turn that says it; the doubted row was in no read, and stays out of the past."""
    here, row = doubted()
    told(here, turn(SURE, number=4))
    report = read(here, completer=says())
    assert (report.added, report.held, active(here)) == (1, 0, [DOG])
    now = Observation.objects.get(scope=here, status=Status.ACTIVE)
    assert len(sources(now)) == 1
    assert (status_of(row), cause_of(row)) == (Status.RETRACTED, "intake: said properly since")
    assert not Observation.objects.with_history().filter(pk=row.pk).exists()
    assert [str(found) for found in invariants.check()] == []


@pytest.mark.parametrize("texts", [(WISH, SURE), (SURE, WISH)])
def test_said_properly_in_the_same_turns_nothing_is_held_back(texts: tuple[str, str]) -> None:
    here = enabled(scope())
    told(here, *texts)
    report = read(here, completer=says())
    assert (report.added, report.held) == (1, 0)
    [row] = Observation.objects.filter(scope=here)
    assert (row.status, len(sources(row))) == (Status.ACTIVE, 1)


# --- a person decides ------------------------------------------------------------------------------------------------


def test_released_it_is_in_the_reads_unreconciled_with_cause_and_event() -> None:
    here, row = doubted()
    [one] = held.release(scope=here, ids=[row.pk], by="rita")
    assert (one.done, one.current, active(here)) == (True, row.pk, [DOG])
    row.refresh_from_db()
    assert (row.version, row.reconciled_at, cause_of(row)) == (2, None, "held: released by rita")
    event = Event.objects.get(action="held_released")
    assert (event.actor, event.subject) == ("rita", f"obs_{row.pk}")
    assert DOG not in json.dumps(event.detail)
    [again] = held.release(scope=here, ids=[row.pk], by="rita")
    assert again.done
    assert Event.objects.filter(action="held_released").count() == 1
    assert [str(found) for found in invariants.check()] == []


def test_released_where_a_current_row_says_the_same_its_evidence_goes_there() -> None:
    here, row = doubted()
    told(here, turn("By the way.", number=9))
    ref = EvidenceRef("test://elsewhere", quote="dog")
    [written] = store.add_observations(
        scope=here, claims=[Claim(text="ana has a dog.", evidence=(ref,))], written_by=WrittenBy.IMPORT
    )
    [one] = held.release(scope=here, ids=[row.pk], by="rita")
    assert (one.done, one.current) == (True, written.id)
    assert "says the same" in one.sentence
    assert active(here) == ["ana has a dog."]
    assert one.current is not None
    assert len(sources(Observation.objects.get(pk=one.current))) == 2
    assert status_of(row) == Status.RETRACTED


def test_discarded_it_is_off_the_list_out_of_every_past_and_nothing_of_it_is_lost_to_people() -> None:
    here, row = doubted()
    [one] = held.discard(scope=here, ids=[row.pk], by="rita")
    [again] = held.discard(scope=here, ids=[row.pk], by="rita")
    assert (one.done, again.done, status_of(row)) == (True, True, Status.RETRACTED)
    assert cause_of(row) == "held: discarded by rita"
    assert not held.waiting(scopes=[here]).exists()
    assert not Observation.objects.with_history().filter(pk=row.pk).exists()
    assert not Observation.objects.as_of(row.created_at).filter(pk=row.pk).exists()
    assert Observation.objects.get(pk=row.pk).text == DOG
    [late] = held.release(scope=here, ids=[row.pk], by="rita")
    assert not late.done
    assert [str(found) for found in invariants.check()] == []


def test_a_release_is_taken_back_and_only_a_release() -> None:
    here, row = doubted()
    other = observe("Ana has a cat", within=here)
    held.release(scope=here, ids=[row.pk], by="rita")
    one, refused = held.hold_again(scope=here, ids=[row.pk, other.pk], by="olga")
    assert (one.done, refused.done, active(here)) == (True, False, ["Ana has a cat"])
    assert status_of(row) == Status.QUARANTINED
    assert held.release(scope=here, ids=[row.pk], by="rita")[0].done
    assert [str(found) for found in invariants.check()] == []


def test_several_at_once_have_a_result_each_and_one_that_cannot_be_stops_no_other() -> None:
    here, row = doubted()
    cat = observe("Ana has a cat", within=here)
    there, foreign = doubted(name="held/u2")
    results = held.release(scope=here, ids=[cat.pk, foreign.pk, row.pk, 10**9], by="rita")
    assert [one.done for one in results] == [False, False, True, False]
    assert "There is no" in results[1].sentence  # of another scope: exactly as what is not there
    assert status_of(foreign) == Status.QUARANTINED
    with pytest.raises(held.TooMany):
        held.discard(scope=there, ids=range(held.MOST + 1), by="rita")


@pytest.mark.parametrize("act", [held.release, held.discard, held.hold_again])
def test_no_program_decides_what_is_held_back(act: Any) -> None:
    """R47: neither a token nor the pipeline; and no call of programs is named for it."""
    here, row = doubted()
    made = access.create_token(name="p", scope_pattern="held/*", by="stella", may_write=True, may_propose=True)
    for by in (f"token:{made.token.key_id}", "intake"):
        with pytest.raises(held.NotAPerson):
            act(scope=here, ids=[row.pk], by=by)
    assert status_of(row) == Status.QUARANTINED
    assert not [name for name in CALLS if "held" in name or "release" in name]


def test_on_hold_nothing_is_decided_and_the_hold_lifted_it_is() -> None:
    here, row = doubted()
    ingest.hold(scope=here, by="stella", reason="audit")
    for act in (held.release, held.discard, held.hold_again):
        [one] = act(scope=here, ids=[row.pk], by="rita")
        assert not one.done
        assert "hold" in one.sentence
    assert status_of(row) == Status.QUARANTINED
    ingest.release(scope=here, by="stella")
    assert held.release(scope=here, ids=[row.pk], by="rita")[0].done


# --- whatever else happens to it -------------------------------------------------------------------------------------


def test_held_back_rows_survive_an_export_and_an_import_as_held_back() -> None:
    here, _ = doubted()
    lines = exported(here.name)
    copy = imported(*[line.replace("held/u1", "held/copy") for line in lines], scope="held/copy")
    assert copy.refused == []
    twin = Observation.objects.get(scope__name="held/copy")
    assert (twin.text, twin.status) == (DOG, Status.QUARANTINED)
    assert len(sources(twin)) == 1
    [waiting] = held.waiting(scopes=[twin.scope], doubt="")
    assert waiting.pk == twin.pk
    assert held.release(scope=twin.scope, ids=[twin.pk], by="rita")[0].done


def test_erased_nothing_of_a_held_back_row_is_left_in_what_the_pipeline_kept() -> None:
    """I19."""
    here, row = doubted()
    assert DOG in set(IntakeItem.objects.filter(scope=here).values_list("text", flat=True))
    store.erase(scope_id=here.pk, ids=[row.pk], by="rita", reason="asked", request="forget:test")
    assert status_of(row) == Status.ERASED
    assert set(IntakeItem.objects.filter(scope=here).values_list("text", flat=True)) == {""}
    assert not held.waiting(scopes=[here]).exists()
    assert not held.release(scope=here, ids=[row.pk], by="rita")[0].done
