"""Keys as a background step: `memory keys --later` and a schedule that is off queue them, and a worker gives them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from consolidation import pausing
from consolidation.tasks import keys_due
from observations import ingest, outbox, spending
from observations.llm import BudgetSpent
from observations.models import GivenKey, Outbox, Scope, database_now
from observations.tasks import sweep
from tests.building import observe, scope
from tests.giving import keyless, knowing
from tests.integration.test_keys_command import run
from tests.integration.test_memory_command import process
from tests.scripted import Said, ScriptedCompleter

pytestmark = pytest.mark.django_db(transaction=True)
Door = Callable[[Said], ScriptedCompleter]
NO_MODEL = "No language model is configured; set ANTHROPIC_API_KEY, then run this again."


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Door:
    """Puts a scripted model behind the door."""

    def put(script: Said) -> ScriptedCompleter:
        model = ScriptedCompleter(script)
        monkeypatch.setattr(spending, "door", lambda *, scope_id: model)
        return model

    return put


@pytest.fixture(autouse=True)
def _no_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep is called here; the real queue is tested elsewhere."""
    monkeypatch.setattr(outbox, "wake", lambda: None)


def team() -> tuple[Scope, Scope, Scope]:
    """Two scopes that lack keys, and one that lacks none."""
    lacking, also, whole = scope("team/a"), scope("team/b"), scope("team/c")
    keyless(lacking)
    keyless(also, "The weather was lovely.")
    observe("Cy lives in Rome.", within=whole, key=("Cy", "lives in", "Rome"))
    Outbox.objects.all().delete()  # the vectors that writing asked for
    return lacking, also, whole


def queued() -> list[tuple[str, str]]:
    """The open rows that ask for keys."""
    rows = Outbox.objects.filter(task=ingest.GIVE_KEYS, done_at=None).order_by("scope__name", "key")
    return list(rows.values_list("scope__name", "key"))


# --- the command -----------------------------------------------------------------------------------------------------


def test_later_queues_every_scope_that_lacks_keys_and_says_what_will_happen_in_each(answering: Door) -> None:
    model = answering(knowing)
    team()
    assert run("--later") == (
        "team/a: 3 observations lack a key; a worker will ask the model\n"
        "team/b: 1 observations lack a key; a worker will ask the model\n",
        None,
    )
    assert (queued(), model.requests) == ([("team/a", "after 0"), ("team/b", "after 0")], [])
    assert sweep() == "2 rows"
    assert (GivenKey.objects.filter(state="given").count(), queued()) == (3, [])
    assert run("--later") == ("nothing to do: every observation has a key, or was asked about\n", None)


def test_asked_again_before_the_worker_came_nothing_is_added_and_the_line_says_so(answering: Door) -> None:
    """C17: asked about twice at once, the same rows would be paid for twice."""
    model = answering(knowing)
    team()
    run("--later", "--scope", "team/a")
    again = run("--later")[0].splitlines()
    assert again[0] == "team/a: 3 observations lack a key; a worker was asked before and is not at its end"
    assert again[1] == "team/b: 1 observations lack a key; a worker will ask the model"
    assert sweep() == "2 rows"
    assert len(model.requests) == 2


def test_later_keeps_to_the_pattern_and_has_a_document(answering: Door) -> None:
    answering(knowing)
    team()
    keyless(scope("other"))
    document = json.loads(run("--later", "--scope", "team/*", "--json")[0])
    assert document == {
        "lacking": 4,
        "scopes": [
            {"scope": "team/a", "lacking": 3, "queued": True},
            {"scope": "team/b", "lacking": 1, "queued": True},
        ],
    }
    assert [name for name, _ in queued()] == ["team/a", "team/b"]
    assert run("--later", "--scope", "nobody")[1] is not None


def test_without_a_model_nothing_is_queued_and_the_process_says_so_and_ends_with_2() -> None:
    """The real settings, in a process of its own; where nothing lacks a key no model is needed to say so."""
    team()
    plain = process("memory", "keys", "--later", ANTHROPIC_API_KEY="")
    assert (plain.returncode, plain.stdout) == (2, "")
    assert plain.stderr == f"Nothing is queued for 4 observations that lack a key: {NO_MODEL}\n"
    as_json = process("memory", "keys", "--later", "--json", ANTHROPIC_API_KEY="")
    assert (as_json.returncode, json.loads(as_json.stdout)) == (2, {"error": plain.stderr.strip()})
    assert queued() == []
    whole = process("memory", "keys", "--later", "--scope", "team/c", ANTHROPIC_API_KEY="")
    assert (whole.returncode, whole.stdout.startswith("nothing to do")) == (0, True)


# --- the schedule ----------------------------------------------------------------------------------------------------


def test_the_scheduled_task_queues_each_scope_that_lacks_keys_once_however_often_it_is_sent(answering: Door) -> None:
    """C17, E1."""
    model = answering(knowing)
    team()
    assert [keys_due() for _ in range(3)] == ["2 scopes", "0 scopes", "0 scopes"]
    assert sweep() == "2 rows"
    assert (len(model.requests), GivenKey.objects.count()) == (2, 4)
    assert (keys_due(), queued()) == ("0 scopes", [])


def at_once(action: Callable[[], object], *, times: int) -> None:
    """So many threads, each with a connection of its own, begin together."""
    start = threading.Barrier(times)

    def act() -> None:
        try:
            start.wait(timeout=30)
            action()
        finally:
            connection.close()

    with ThreadPoolExecutor(times) as threads:
        for done in [threads.submit(act) for _ in range(times)]:
            done.result()


def test_sent_at_once_and_worked_off_at_once_each_text_is_asked_about_once(answering: Door) -> None:
    """C17: two beats, three workers."""
    model = answering(knowing)
    team()
    at_once(keys_due, times=2)
    assert queued() == [("team/a", "after 0"), ("team/b", "after 0")]
    at_once(sweep, times=3)
    assert sum(request.text.count('"label"') for request in model.requests) == 4
    assert (queued(), GivenKey.objects.count()) == ([], 4)


@override_settings(ANTHROPIC_API_KEY="")
def test_without_a_model_the_scheduled_task_queues_nothing_and_says_why() -> None:
    team()
    assert keys_due() == f"Nothing is queued: {NO_MODEL}"
    assert queued() == []


def test_prices_that_cannot_be_read_are_said_and_queue_nothing(answering: Door) -> None:
    team()
    with override_settings(ANTHROPIC_API_KEY="k", PALIMPSEST_MODEL_PRICES="free"):
        assert keys_due().startswith("Nothing is queued: PALIMPSEST_MODEL_PRICES is not two numbers")
    assert queued() == []


def test_the_scheduled_task_leaves_scopes_on_hold_or_paused_alone(answering: Door) -> None:
    """As planning does; a person who asks by the command is not stopped by a hold, which is about changes."""
    answering(knowing)
    held, paused, _ = team()
    ended = scope("team/d")
    keyless(ended, "Text.")
    ingest.hold(scope=held, by="ann", reason="an audit", until=None)
    Scope.objects.filter(pk=ended.pk).update(held_at=database_now() - timedelta(days=9), held_until=database_now())
    pausing.pause(scope=paused, by="ann")
    assert keys_due() == "1 scopes"
    assert queued() == [("team/d", "after 0")]
    pausing.pause(scope=None, by="ann")
    assert keys_due() == "paused"


def test_a_scope_that_a_worker_is_half_through_is_left_to_it(answering: Door) -> None:
    """A long list is done in jobs; the next of them stands in the outbox under another key."""
    model = answering(knowing)
    here = scope("long")
    rows = keyless(here, *(f"Text {n}." for n in range(6)))
    Outbox.objects.all().delete()
    ingest.give_keys(scope=here, completer=model, limit=2)
    ingest.keys_later(scope=here, after=rows[1].pk)
    assert keys_due() == "0 scopes"
    assert queued() == [("long", f"after {rows[1].pk}")]
    assert sweep() == "1 rows"
    assert sum(request.text.count('"label"') for request in model.requests) == 6


def test_work_that_waits_for_the_budget_is_not_asked_for_again_and_work_that_stopped_is(answering: Door) -> None:
    answering(BudgetSpent("Wait for tomorrow."))
    here = scope("poor")
    keyless(here)
    Outbox.objects.all().delete()
    assert (keys_due(), sweep(), keys_due()) == ("1 scopes", "1 rows", "0 scopes")
    [row] = Outbox.objects.filter(task=ingest.GIVE_KEYS)
    assert (row.last_error, row.attempts) == ("waits: Wait for tomorrow.", 0)
    Outbox.objects.filter(pk=row.pk).update(attempts=outbox.MAX_ATTEMPTS, due_at=database_now())
    assert keys_due() == "1 scopes"
    assert queued() == [("poor", "after 0")]
    row.refresh_from_db()
    assert row.attempts == 0


def test_asking_takes_four_queries_however_many_scopes_there_are(answering: Door) -> None:
    answering(knowing)
    team()
    with CaptureQueriesContext(connection) as captured:
        assert len(ingest.ask_for_keys(scopes=list(Scope.objects.filter(name="team/a")))) == 1
    keyless(scope("other"))
    with CaptureQueriesContext(connection) as more:
        assert len(ingest.ask_for_keys(scopes=list(Scope.objects.all()))) == 3
    assert len(captured) == len(more) == 1 + 4  # and one for the caller's scopes


def test_asking_for_the_keys_of_no_scope_writes_nothing(answering: Door) -> None:
    answering(knowing)
    team()
    assert ingest.ask_for_keys(scopes=[]) == []
    assert queued() == []
