"""`manage.py memory keys` and the task of a worker: they run when somebody asks, and say what was not done."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django_celery_beat.models import PeriodicTask

from observations import ingest, outbox, spending
from observations.llm import BudgetSpent, Denied, ModelFailed, NoModel, Request, Unreachable
from observations.models import GivenKey, Outbox, Scope
from observations.tasks import give_keys, sweep
from tests.building import observe, scope
from tests.giving import keyless, knowing, texts_of
from tests.integration.test_memory_command import process
from tests.scripted import Said, ScriptedCompleter

Door = Callable[[Said], ScriptedCompleter]


def run(*words: str) -> tuple[str, CommandError | None]:
    """Standard output of `memory keys`, and how it failed."""
    out = StringIO()
    try:
        call_command("memory", "keys", *words, stdout=out)
    except CommandError as failure:
        return out.getvalue(), failure
    return out.getvalue(), None


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
    """The tasks are called here; a real queue is tested elsewhere."""
    monkeypatch.setattr(outbox, "wake", lambda: None)


def quiet() -> None:
    """Finish what writing rows left in the outbox."""
    Outbox.objects.filter(task="embed").delete()


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_command_says_what_came_of_it_in_all_scopes(answering: Door) -> None:
    answering(knowing)
    keyless(scope("a"))
    keyless(scope("b"), "The weather was lovely.")
    told, failure = run()
    assert failure is None
    assert told.strip() == (
        "4 observations asked about: 3 keys given, 1 hold none, 0 refused, 0 answered unusably, 0 changed meanwhile"
    )
    assert run() == ("nothing to do: every observation has a key, or was asked about\n", None)


@pytest.mark.django_db
def test_the_command_names_why_keys_were_refused_and_no_text(answering: Door) -> None:
    """A skip is a result: it has a reason, it is counted, it is shown. Memory text enters no message."""
    wrong = {"subject": "Anna", "predicate": "lives in", "object": "Secretville", "quote": "Anna lives in Oslo"}
    answering(lambda request: {"keys": [{"label": n, **wrong} for n in range(len(texts_of(request)))]})
    keyless(scope(), "Anna lives in Oslo.", "Anna lives in Oslo!")
    told, failure = run()
    assert failure is None
    assert "2 refused: the object does not stand in the quoted words" in told
    assert "Secretville" not in told
    assert "Oslo" not in told


@pytest.mark.django_db
def test_one_scope_or_a_pattern_can_be_named(answering: Door) -> None:
    model = answering(knowing)
    for name in ("team/a", "team/b", "other"):
        keyless(scope(name), f"Text of {name}.")
    assert json.loads(run("--scope", "team/a", "--json")[0])["asked"] == 1
    document = json.loads(run("--scope", "team/*", "--json")[0])
    assert [row["scope"] for row in document["scopes"]] == ["team/b"]
    assert "Text of other" not in str(model.requests)
    assert run("--scope", "nobody")[1] is not None


@pytest.mark.django_db
def test_the_json_has_every_figure_of_every_scope(answering: Door) -> None:
    answering(knowing)
    keyless(scope("a"))
    document = json.loads(run("--json")[0])
    [row] = document.pop("scopes")
    assert (row.pop("scope"), row.pop("refusals"), row.pop("not_run")) == ("a", {}, None)
    assert row == document
    assert document == {
        **dict.fromkeys(("none", "refused", "unusable", "changed", "left"), 0),
        "asked": 3,
        "given": 3,
    }


@pytest.mark.django_db
@pytest.mark.parametrize("failure", [NoModel, Denied, Unreachable, BudgetSpent])
def test_where_nothing_could_be_asked_nothing_was_done_and_it_ends_with_2(
    answering: Door, failure: type[ModelFailed]
) -> None:
    answering(failure("Set the key."))
    keyless(scope("a"))
    keyless(scope("b"))
    told, refusal = run()
    assert told == ""
    assert refusal is not None
    assert (refusal.returncode, str(refusal)) == (
        2,
        "No key was given to 6 observations that lack one: Set the key.",
    )
    assert not GivenKey.objects.exists()


def failing_after(asked: int, failure: ModelFailed) -> Said:
    """A model that answers so many questions."""
    seen: list[Request] = []

    def answer(request: Request) -> Any:
        seen.append(request)
        return knowing(request) if len(seen) <= asked else failure

    return answer


@pytest.mark.django_db
@pytest.mark.parametrize(("failure", "tried"), [(Unreachable, 2), (BudgetSpent, 3)])
def test_what_is_done_in_part_is_reported_and_ends_with_1(
    answering: Door, failure: type[ModelFailed], tried: int
) -> None:
    """An outage meets every scope, a scope's budget only that one: the next is tried."""
    model = answering(failing_after(1, failure("Later.")))
    for name in "abc":
        keyless(scope(name))
    told, refusal = run()
    assert told.startswith("3 observations asked about: 3 keys given")
    assert refusal is not None
    assert (refusal.returncode, str(refusal)) == (1, "6 observations were not asked about: Later.")
    assert len(model.requests) == tried


@pytest.mark.django_db
def test_answers_that_cannot_be_used_end_with_1(answering: Door) -> None:
    answering("prose")
    keyless(scope())
    told, refusal = run()
    assert "3 answered unusably" in told
    assert refusal is not None
    assert refusal.returncode == 1


@pytest.mark.django_db(transaction=True)
def test_without_a_model_the_process_says_so_in_one_sentence_and_under_json_in_a_document() -> None:
    observe("Anna lives in Oslo.", within=scope("s"))
    plain = process("memory", "keys", ANTHROPIC_API_KEY="")
    assert (plain.returncode, plain.stdout) == (2, "")
    assert plain.stderr.startswith("No key was given to 1 observations that lack one: No language model is configured")
    assert plain.stderr.count("\n") == 1
    as_json = process("memory", "keys", "--json", ANTHROPIC_API_KEY="")
    assert (as_json.returncode, as_json.stderr) == (2, plain.stderr)
    assert json.loads(as_json.stdout) == {"error": plain.stderr.strip()}


# --- the task --------------------------------------------------------------------------------------------------------


def asked_for(within: Scope) -> None:
    ingest.keys_later(scope=within)


@pytest.mark.django_db(transaction=True)
def test_a_worker_gives_keys_when_somebody_asked_and_only_then(answering: Door) -> None:
    """Nothing runs by itself."""
    model = answering(knowing)
    here = scope()
    keyless(here)
    quiet()
    sweep()
    assert model.requests == []
    asked_for(here)
    asked_for(here)
    assert sweep() == "1 rows"
    assert GivenKey.objects.filter(state="given").count() == 3


@pytest.mark.django_db
def test_no_schedule_of_the_store_asks_for_keys() -> None:
    assert not PeriodicTask.objects.filter(task__contains="keys", enabled=True).exists()


@pytest.mark.django_db(transaction=True)
def test_a_task_delivered_again_asks_nobody(answering: Door) -> None:
    """C17, E1."""
    model = answering(knowing)
    here = scope()
    keyless(here)
    assert give_keys(here.pk) == "3 keys for 3 observations"
    assert [give_keys(here.pk) for _ in range(3)] == [outbox.ALREADY_DONE] * 3
    assert len(model.requests) == 1


@pytest.mark.django_db(transaction=True)
def test_a_long_list_is_done_in_jobs_that_ask_for_the_next(answering: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job has nine minutes; the rows that a job could not get are not asked again by the next."""
    monkeypatch.setattr(ingest, "AT_ONCE", 4)
    model = answering(lambda request: "prose" if "Text 2." in request.text else knowing(request))
    here = scope()
    keyless(here, *(f"Text {n}." for n in range(10)))
    quiet()
    asked_for(here)
    assert sweep() == "3 rows"
    assert [len(texts_of(request)) for request in model.requests] == [4, 4, 2]
    assert GivenKey.objects.filter(state="unusable").count() == 4
    assert not Outbox.objects.filter(done_at=None).exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("failure", "said", "error"),
    [
        (NoModel, outbox.REFUSED, "refused: Set the key."),
        (Denied, outbox.REFUSED, "refused: Set the key."),
        (BudgetSpent, outbox.WAITING, "waits: Set the key."),
        (Unreachable, outbox.WAITING, "waits: Set the key."),
    ],
)
def test_a_task_that_could_not_ask_says_so_and_waits_only_where_waiting_helps(
    answering: Door, failure: type[ModelFailed], said: str, error: str
) -> None:
    answering(failure("Set the key."))
    here = scope()
    keyless(here)
    assert give_keys(here.pk) == said
    row = Outbox.objects.get(task=ingest.GIVE_KEYS)
    assert (row.last_error, row.done_at is None) == (error, said == outbox.WAITING)
    assert not GivenKey.objects.exists()
