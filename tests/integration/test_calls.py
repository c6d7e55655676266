"""Calls: rights first, the scope's pattern first, one domain call, refusals in one set of words (R119, R133)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from observations import calls, ingest, store
from observations.calls import CALLS, Caller, CallRefused, Code, Right, schemas
from observations.ingest import background
from observations.models import CoreMemory, Event, Observation, Outbox, Scope, database_now
from observations.records import Action, StatedBy, Status
from tests.building import observe, scope, tell

pytestmark = pytest.mark.django_db

SCOPE = "team-a/u1"
ALL: dict[str, Any] = {"may_read": True, "may_write": True, "may_propose": True}
CALLER = Caller(name="token:0123456789abcdef", pattern="team-a/*", **ALL)
PERSON = Caller(name="ana@command", pattern="*", person=True, **ALL)

# What each call is given, beside the scope.
GIVEN: dict[str, dict[str, Any]] = {
    "observe": {"turns": [{"text": "Hello", "role": "user"}]},
    "remember": {"text": "The relay sits in rack 4"},
    "store_facts": {"about": "Ana", "facts": [{"text": "Ana likes tea", "author": {"name": "Bo", "role": "user"}}]},
    "correct": {"id": 1, "text": "The relay sits in rack 7"},
    "retire": {"id": 1},
    "restore": {"id": 1},
    "take_back": {"id": 1},
    "forget": {"everything": True},
    "propose": {"kind": "retire", "ids": [1]},
    "residue_hold": {"items": ["The relay is slow"]},
    "get_observation": {"id": 1},
    "history_of_observation": {"id": 1},
    "list_observations": {},
    "search": {"query": "relay"},
    "known": {"query": "relay"},
    "prompt": {"about": "relay"},
    "episodic_context": {"query": "relay"},
    "get_answer": {"at": "2026-01-01T00:00:00Z"},
    "intake_status": {},
    "core_list": {},
    "core_get": {"label": "human"},
    "core_create": {"label": "human"},
    "core_append": {"label": "human", "text": "x"},
    "core_replace": {"label": "human", "old": "x", "new": "y"},
    "core_rethink": {"label": "human", "value": "x"},
    "core_undo": {"label": "human"},
    "core_revisions": {"label": "human"},
}
READS = tuple(name for name, call in CALLS.items() if call.right is Right.READ)
WRITES = tuple(name for name in CALLS if name not in READS)


def call(name: str, *, caller: Caller = CALLER, scope: str = SCOPE, **given: Any) -> Any:
    """Make a call with what it is given here, or with the usual."""
    one = CALLS[name]
    return one.run(caller=caller, asked=one.takes.model_validate({"scope": scope, **GIVEN[name], **given}))


def refused(name: str, **given: Any) -> CallRefused:
    """The refusal of a call."""
    with pytest.raises(CallRefused) as error:
        call(name, **given)
    return error.value


# --- rights ----------------------------------------------------------------------------------------------------------


def test_every_call_is_tried_here() -> None:
    assert set(GIVEN) == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_without_its_right_is_refused_before_anything_is_read(name: str) -> None:
    none = Caller(name="token:1", pattern="team-a/*")
    with CaptureQueriesContext(connection) as queries:
        error = refused(name, caller=none)
    assert (error.code, len(queries)) == (Code.FORBIDDEN, 0)


@pytest.mark.parametrize("name", CALLS)
def test_a_right_of_another_kind_is_not_the_right(name: str) -> None:
    other = {"may_read": name in WRITES, "may_write": name in READS, "may_propose": name in READS}
    assert refused(name, caller=Caller(name="token:1", pattern="team-a/*", **other)).code is Code.FORBIDDEN


@pytest.mark.parametrize("name", CALLS)
def test_a_scope_beyond_the_pattern_is_refused_the_same_whether_it_exists_or_not(name: str) -> None:
    scope("team-b/there")
    answers = []
    for beyond in ("team-b/there", "team-b/not-there", "team-aX", "team-a", "team-ab/x", "*", "\0"):
        with CaptureQueriesContext(connection) as queries:
            error = refused(name, scope=beyond)
        assert len(queries) == 0
        answers.append((error.code, error.sentence, error.extra))
    assert len(set(map(str, answers))) == 1
    assert answers[0][0] is Code.FORBIDDEN


def test_who_may_only_propose_asks_to_forget_and_proposes_and_nothing_else() -> None:
    row = observe("The relay sits in rack 4", within=scope())
    proposer = Caller(name="token:1", pattern="team-a/*", may_propose=True)
    assert call("propose", caller=proposer, ids=[row.pk]).action is Action.ASKED
    assert call("forget", caller=proposer).request.startswith("forget:")
    assert {name for name in CALLS if CALLS[name].right is Right.PROPOSE} == {"propose", "forget"}


def test_no_call_decides_an_operation() -> None:
    """A program cannot approve: no call has a right above proposing."""
    assert set(Right) == {Right.READ, Right.WRITE, Right.PROPOSE}
    assert not {name for name in CALLS if any(word in name for word in ("approve", "apply", "undo_op", "erase"))}


# --- scopes ----------------------------------------------------------------------------------------------------------


ONE_ROW = ("get_observation", "history_of_observation", "get_answer", "core_get", "core_revisions")


@pytest.mark.parametrize("name", [name for name in READS if name not in ONE_ROW])
def test_reading_a_scope_that_is_not_there_is_an_empty_answer_and_makes_none(name: str) -> None:
    assert call(name).complete
    assert not Scope.objects.exists()


@pytest.mark.parametrize("name", ONE_ROW)
def test_one_row_of_a_scope_that_is_not_there_is_not_found(name: str) -> None:
    assert refused(name).code is Code.NOT_FOUND
    assert not Scope.objects.exists()


def test_writing_within_the_pattern_makes_the_scope_and_other_writes_do_not() -> None:
    for name in ("correct", "retire", "restore", "take_back", "forget", "propose", "core_append", "core_undo"):
        assert refused(name).code is Code.NOT_FOUND
    assert call("residue_hold").held == 0
    assert not Scope.objects.exists()
    assert call("remember").action is Action.ADDED
    assert list(Scope.objects.values_list("name", flat=True)) == [SCOPE]


REFUSED: dict[str, dict[str, Any]] = {
    "remember": {"text": "my key is sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCd"},
    "store_facts": {"about": "Ana", "facts": [{"text": "Ana likes tea", "author": {"name": "x", "role": "bot"}}]},
    "observe": {"turns": [{"text": " "}]},
    "core_create": {"label": "human", "value": "long", "limit": 1},
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_write_to_a_new_scope_that_is_refused_leaves_no_empty_scope(name: str) -> None:
    """C6: the scope is made in the transaction of the write. The control: one that is kept makes it."""
    run, takes = CALLS[name].run, CALLS[name].takes
    with suppress(CallRefused):
        run(caller=CALLER, asked=takes.model_validate({"scope": SCOPE, **REFUSED[name]}))
    assert not Scope.objects.exists()
    call(name)
    assert [scope.name for scope in Scope.objects.all()] == [SCOPE]


@pytest.mark.parametrize("bad", ["team-a/ ", "team-a//x", "team-a/x/", "team-a/*", "team-a/a\nb"])
def test_a_scope_name_that_is_no_path_is_invalid(bad: str) -> None:
    assert refused("remember", scope=bad).code is Code.INVALID
    assert not Scope.objects.exists()


def test_scope_names_are_injective_in_every_call() -> None:
    """`a-b.c` and `a.b-c`, and names that differ only in case or in form, are scopes of their own."""
    names = ["team-a/a-b.c", "team-a/a.b-c", "team-a/A-B.C", "team-a/caf\u00e9", "team-a/cafe\u0301", "team-a/a-b/c"]
    for name in names:
        assert call("remember", scope=name, text="The same words").action is Action.ADDED
        call("core_create", scope=name, value=name)
    assert Scope.objects.count() == len(names)
    for name in names:
        assert call("core_get", scope=name).value == name
        assert len(call("list_observations", scope=name).observations) == 1
        exact = Caller(name="token:1", pattern=name, **ALL)
        assert [other for other in names if exact.reaches(other)] == [name]


@pytest.mark.parametrize(
    "name", ["get_observation", "history_of_observation", "correct", "retire", "restore", "take_back"]
)
def test_an_id_of_another_scope_is_not_found_in_the_words_for_one_that_is_not_there(name: str) -> None:
    scope()
    foreign = observe("The relay sits in rack 4", within=scope("team-a/u2"))
    there, nowhere = refused(name, id=foreign.pk), refused(name, id=987_654_321)
    assert there.code is nowhere.code is Code.NOT_FOUND
    assert there.sentence.replace(str(foreign.pk), "N") == nowhere.sentence.replace("987654321", "N")


# --- writes ----------------------------------------------------------------------------------------------------------


def test_remember_answers_with_the_id_the_stored_text_the_action_and_the_evidence() -> None:
    """R120: what was done is legible in the answer."""
    kept = call("remember", text="  The relay\tsits in rack 4 ")
    assert kept.model_dump(mode="json") == {
        "action": "added",
        "id": f"obs_{Observation.objects.get().pk}",
        "text": "  The relay\tsits in rack 4 ",
        "evidence": 1,
        "reason": "",
        "cleaned": False,
        "replaced": None,
        "external_id": Observation.objects.get().external_id,
    }


def test_r75_what_a_person_said_is_surer_than_anything_promoted_unless_the_call_says_otherwise() -> None:
    for text, given, sure in (("a b", {}, 0.5), ("c d", {"stated_by": "user"}, 0.9), ("e f", {"confidence": 0.2}, 0.2)):
        kept = call("remember", caller=PERSON, text=text, **given)
        assert Observation.objects.get(pk=kept.id).confidence == pytest.approx(sure)


def test_facts_are_counted_and_bots_and_unknown_authors_refused() -> None:
    """R120, R134: named people say facts about a user; each fact is stored, known or refused by itself."""
    ana = {"name": "Ana", "role": "user"}
    facts = [
        {"text": "Ana likes tea", "author": ana},
        {"text": "ana likes tea.", "author": {"name": "Bo", "role": "human"}},
        {"text": "Ana likes cake", "author": {"name": "reviewer", "role": "assistant"}},
        {"text": "Ana likes rain", "author": {"name": "unknown", "role": "user"}},
        {"text": "Ana likes noise"},
        {"text": 5},
        {"text": "Log tail: ok\0done", "author": ana},
    ]
    stored = call("store_facts", facts=facts)
    assert (stored.stored, stored.duplicates, stored.refused) == (2, 1, 4)
    assert [fact.action for fact in stored.facts] == [
        *(Action.ADDED, Action.KNOWN),
        *[Action.REFUSED] * 4,
        Action.ADDED,
    ]
    assert stored.facts[0].evidence == 2
    assert stored.facts[6].cleaned
    assert all(fact.reason for fact in stored.facts[2:6])
    assert set(Observation.objects.values_list("subject", flat=True)) == {"Ana"}
    again = call("store_facts", facts=facts)
    assert (again.stored, again.duplicates, again.refused) == (0, 3, 4)


@pytest.mark.parametrize(("speaks", "stated_by"), [(True, StatedBy.USER), (False, StatedBy.AGENT)])
def test_a_fact_that_a_program_says_a_user_said_is_the_users_word_only_where_it_speaks_for_the_user(
    speaks: bool, stated_by: StatedBy
) -> None:
    caller = Caller(name="token:1", pattern="team-a/*", speaks_for_user=speaks, **ALL)
    [fact] = call("store_facts", caller=caller).facts
    row = Observation.objects.get()
    assert (row.stated_by, bool(fact.reason)) == (stated_by, not speaks)


def test_a_program_does_not_pass_facts_on_for_an_operator() -> None:
    facts = [{"text": "Deploys stop at noon", "author": {"name": "Cy", "role": "operator"}}]
    assert call("store_facts", facts=facts).refused == 1
    assert call("store_facts", facts=facts, caller=PERSON).stored == 1


def test_observe_stores_turns_word_for_word_and_says_what_becomes_of_them() -> None:
    turns = [
        {"text": "Standup moved to 09:30", "role": "user"},
        {"text": "Log tail: ok\0done"},
        {"text": ""},
        {"txt": "x"},
    ]
    turns += [{"text": "Later", "happened_at": "2999-01-01T00:00:00Z"}]
    observed = call("observe", turns=turns)
    assert (observed.added, observed.already_there, observed.refused) == (2, 0, 3)
    assert [turn.fate for turn in observed.turns] == ["added", "added", "refused", "refused", "refused"]
    assert observed.turns[1].cleaned
    assert observed.extraction == "off"
    background.enable_intake(scope=Scope.objects.get(), by="ana")
    assert call("observe", turns=[{"text": "Retro is on Thursdays"}]).extraction in ("no model", "waiting")


def test_a_conflict_a_missing_row_and_a_bad_edit_are_told_apart() -> None:
    kept = call("remember")
    call("correct", id=kept.id)
    assert refused("correct", id=kept.id, text="Yet another").code is Code.CONFLICT
    call("core_create", value="tea, tea", limit=8)
    for given, code, extra in (
        ({"old": "x"}, Code.INVALID, {"refusal": "no_match"}),
        ({"old": "tea"}, Code.INVALID, {"refusal": "many_matches", "count": 2}),
        ({"old": "tea,", "new": "coffee"}, Code.TOO_LARGE, {"refusal": "over_limit", "limit": 8, "length": 10}),
        ({"old": "tea,", "revision": 7}, Code.CONFLICT, {"refusal": "moved", "current": 1}),
        ({"label": "other"}, Code.NOT_FOUND, {}),
    ):
        error = refused("core_replace", **given)
        assert (error.code, error.extra) == (code, extra)
    assert refused("core_create").code is Code.CONFLICT


def test_read_only_core_memory_is_forbidden_to_programs() -> None:
    call("core_create", caller=PERSON, value="x", read_only=True)
    assert refused("core_append").code is Code.FORBIDDEN
    assert call("core_append", caller=PERSON).value == "x\nx"


def test_the_event_of_a_call_names_the_caller_and_no_words() -> None:
    call("remember", text="wombat")
    call("core_create", value="wombat")
    call("observe", turns=[{"text": "wombat"}])
    call("forget")
    events = list(Event.objects.values_list("actor", "subject", "detail"))
    assert {actor for actor, _, _ in events} == {CALLER.name}
    assert "wombat" not in str(events)
    assert "wombat" not in str(list(Outbox.objects.values_list("key", "payload")))


# --- reads -----------------------------------------------------------------------------------------------------------


def test_pages_stay_whole_while_rows_are_written_and_leave() -> None:
    within = scope()
    rows = [observe(f"Fact {number}", within=within) for number in range(7)]
    first = call("list_observations", limit=3)
    observe("Written meanwhile", within=within)
    ingest.retire(scope=within, observation_id=rows[3].pk, by="ana")
    second = call("list_observations", limit=3, cursor=first.next)
    third = call("list_observations", limit=3, cursor=second.next) if second.next else None
    seen = [row.id for page in (first, second, third) if page for row in page.observations]
    assert seen == [row.pk for row in reversed(rows) if row is not rows[3]]
    assert (third.next if third else second.next) == ""


@pytest.mark.parametrize("cursor", ["x", "rev_1", "obs_", "obs_1 ", "obs_99999999999999999999"])
def test_what_is_no_cursor_is_invalid(cursor: str) -> None:
    assert refused("list_observations", cursor=cursor).code is Code.INVALID


def test_r13_a_row_that_left_the_reads_is_in_no_read_but_its_history() -> None:
    """R13."""
    kept = call("remember", subject="relay")
    new = call("correct", id=kept.id)
    for name in ("list_observations", "search", "known", "prompt"):
        assert "rack 4" not in call(name).model_dump_json()
        assert "rack 7" in call(name).model_dump_json()
    assert refused("get_observation", id=kept.id).code is Code.NOT_FOUND
    assert call("get_observation", id=new.id).sources == 1


def test_r14_the_history_says_who_wrote_what_when_and_why_it_went() -> None:
    """R14, R128."""
    kept = call("remember")
    new = call("correct", id=kept.id, caller=PERSON)
    call("retire", id=new.id, caller=PERSON, why="outdated")
    for asked in (kept.id, new.id):
        first, second = call("history_of_observation", id=asked).links
        assert (first.id, first.text, first.by) == (kept.id, "The relay sits in rack 4", CALLER.name)
        assert (first.status, first.replaced_by) == (Status.SUPERSEDED, new.id)
        assert [(move.to_status, move.why) for move in first.moves] == [("superseded", "correct by ana@command")]
        assert (second.id, second.by, second.status) == (new.id, PERSON.name, Status.ARCHIVED)
        assert [move.why for move in second.moves] == ["retire: outdated, by ana@command"]


def test_what_is_held_back_is_shown_to_people_only() -> None:
    row = observe("Held back words", within=scope())
    store.move(scope_id=row.scope_id, ids=[row.pk], to=Status.QUARANTINED)
    assert call("history_of_observation", id=row.pk).links[0].text is None
    assert call("history_of_observation", id=row.pk, caller=PERSON).links[0].text == "Held back words"
    assert "Held back" not in call("list_observations").model_dump_json()


def test_one_row_is_told_with_its_evidence() -> None:
    turn = tell("Well, I prefer tea in the morning.", within=scope(), role="user")
    evidence = [{"quote": "I prefer tea", "episode": turn.external_id}]
    kept = call("remember", text="Ana prefers tea", stated_by="user", evidence=evidence)
    told = call("get_observation", id=kept.id)
    assert told.stated_by is StatedBy.USER
    assert [(ref.quote, ref.episode, ref.source_uri) for ref in told.evidence] == [
        ("I prefer tea", turn.pk, turn.source_uri)
    ]
    assert told.model_dump(mode="json")["evidence"][0]["episode"] == f"ep_{turn.pk}"


def test_r23_known_hands_out_two_rows_and_search_as_many_as_are_asked_for() -> None:
    """R23."""
    within = scope()
    for number in range(5):
        observe(f"The relay in rack {number} is new", within=within)
    assert len(call("known").hits) == 2
    assert len(call("search", k=4).hits) == 4


def test_r14_the_past_is_found_where_it_is_asked_for_by_name() -> None:
    """R13, R14: `include_history` and `as_of` in a search, and nowhere unasked; a hit says how it stands now."""
    old = observe("The relay sits in rack 4", within=scope())
    then = database_now().isoformat()
    call("correct", id=old.pk, text="The relay sits in rack 7")
    found = {hit.text: hit.status for hit in call("search", include_history=True).hits}
    assert found == {old.text: Status.SUPERSEDED, "The relay sits in rack 7": Status.ACTIVE}
    assert [hit.text for hit in call("search", as_of=then).hits] == [old.text]
    assert [hit.text for hit in call("search").hits] == ["The relay sits in rack 7"]


def test_a_search_is_narrowed_by_what_is_given_and_by_nothing_that_is_null() -> None:
    observe("The relay of Ana", within=scope(), key=("Ana", "has", "relay"), stated_by=StatedBy.USER)
    observe("The relay of Bo", within=scope(), key=("Bo", "has", "relay"))
    nulls: dict[str, Any] = dict.fromkeys(("kind", "stated_by", "said_from", "said_before", "as_of"))
    assert len(call("search", subject="", **nulls).hits) == 2
    assert [hit.text for hit in call("search", subject="ana").hits] == ["The relay of Ana"]
    assert [hit.text for hit in call("search", stated_by="agent").hits] == ["The relay of Bo"]
    assert call("search", said_from=database_now().isoformat()).hits == []


def test_core_memory_is_listed_read_and_its_revisions_paged() -> None:
    call("core_create", value="one")
    for value in ("two", "three"):
        call("core_rethink", value=value)
    assert [(core.label, core.value, core.length) for core in call("core_list").core] == [("human", "three", 5)]
    first = call("core_revisions", limit=2)
    assert [(edit.number, edit.value, edit.by) for edit in first.revisions] == [
        (3, "three", CALLER.name),
        (2, "two", CALLER.name),
    ]
    rest = call("core_revisions", limit=2, cursor=first.next)
    assert ([edit.value for edit in rest.revisions], rest.next) == (["one"], "")
    assert call("core_undo").value == "two"
    assert CoreMemory.objects.get().revision == 4


def test_the_intake_of_a_scope_is_told(settings: Settings) -> None:
    """Also whether a model is there: without one, turns wait however many there are."""
    assert call("intake_status").enabled is False
    call("observe")
    background.enable_intake(scope=Scope.objects.get(), by="ana", from_start=True)
    told = call("intake_status")
    assert (told.enabled, told.every, told.waiting, told.residue) == (True, 5, 1, False)
    assert told.model is False
    settings.ANTHROPIC_API_KEY = "k"
    assert call("intake_status").model is True


# --- a dead store ----------------------------------------------------------------------------------------------------


@contextmanager
def dead_store() -> Iterator[None]:
    """Every statement fails as it does without a server."""

    def fail(execute: Callable[..., Any], *args: Any) -> Any:
        raise OperationalError("the server closed the connection: wombat")

    with connection.execute_wrapper(fail):
        yield


EMPTY = ("list_observations", "search", "known", "prompt", "episodic_context", "intake_status", "core_list")


@pytest.mark.parametrize("name", EMPTY)
def test_r133_a_dead_store_is_an_empty_and_incomplete_answer_and_no_error(name: str) -> None:
    """R133."""
    scope()
    with dead_store():
        answer = call(name)
    assert answer.complete is False
    assert answer.model_dump_json().count("relay") == 0


@pytest.mark.parametrize("name", [name for name in CALLS if name not in EMPTY])
def test_a_dead_store_refuses_what_it_cannot_answer_as_unavailable_without_the_drivers_words(name: str) -> None:
    scope()
    with dead_store():
        error = refused(name)
    assert error.code is Code.UNAVAILABLE
    assert "wombat" not in f"{error.sentence}{error.extra}"


def test_calls_are_what_the_registry_says() -> None:
    assert all(getattr(calls, name) is one.run for name, one in CALLS.items())
    assert isinstance(call("prompt"), schemas.Prompt)
