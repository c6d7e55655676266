"""What was the agent told (DESIGN 6): each answer is kept by ids for 90 days, and shown as its rows stand now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from observations import answers, calls, failures, prompting, store, tasks
from observations.calls import CallRefused, schemas
from observations.embedding import embedder
from observations.models import GivenAnswer, Scope, Use
from observations.records import Caller, Status
from tests.building import observe, scope, tell

pytestmark = pytest.mark.django_db
HASHING = embedder("hashing")
READER = Caller(name="token:ab", pattern="team-a/*", may_read=True)


def ask(within: Scope, about: str = "relay fix", **more: object) -> prompting.Prompt:
    return prompting.prompt(scope=within, about=about, embedder=HASHING, **more)  # type: ignore[arg-type]


def test_an_answer_is_kept_by_ids_with_what_was_left_out_and_marked() -> None:
    """Shown in their order, outdated named, and what was found and not shown."""
    within, now = scope(), datetime.now(UTC)
    old = observe("Waiting on the relay fix", within=within, created_at=now - timedelta(days=120))
    new = observe("The relay fix shipped", within=within, created_at=now - timedelta(hours=3))
    other = observe("Bo lives in Turin", within=within)
    turn = tell("Is it out?", within=within, session="s1")
    got = ask(within, session="s1")
    row = GivenAnswer.objects.get(answer=got.answer)
    assert (row.shown, row.outdated) == ([new.pk, old.pk, -turn.pk], [old.pk])
    assert (row.left_out, row.failed, row.chosen_by, row.call_site) == ([other.pk], [], "", "context")
    assert set(Use.objects.filter(answer=got.answer).values_list("observation_id", flat=True)) == {new.pk, old.pk}


def test_an_empty_answer_is_kept_too() -> None:
    """That nothing was told is an answer."""
    got = ask(scope(), "anything")
    assert GivenAnswer.objects.get(answer=got.answer).shown == []


def test_the_answer_is_one_insert_and_the_last_statement() -> None:
    """After the answer: what it costs comes after everything that was read."""
    within = scope()
    observe("The relay fix shipped", within=within)
    with CaptureQueriesContext(connection) as queries:
        ask(within)
    written = [q["sql"] for q in queries if q["sql"].startswith("INSERT")]
    assert ["givenanswer" in sql for sql in written] == [False, True]
    assert [q["sql"] for q in queries if "SAVEPOINT" not in q["sql"]][-1] == written[-1]


def test_a_record_that_cannot_be_kept_fails_no_read(caplog: pytest.LogCaptureFixture) -> None:
    """R133: a warning, a count, and the prompt all the same."""
    within = scope()
    observe("The relay fix shipped", within=within)
    before = failures.counted().get("the record of answers", 0)

    def refuse(execute: object, sql: str, *rest: object) -> object:
        if "observations_givenanswer" in sql:
            raise DatabaseError("gone")
        return execute(sql, *rest)  # type: ignore[operator]

    with connection.execute_wrapper(refuse):
        got = ask(within)
    assert "shipped" in got.text
    assert got.complete
    assert failures.counted()["the record of answers"] == before + 1
    assert "an answer is not recorded" in caplog.text


def test_a_part_that_failed_is_counted_and_named_in_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Incomplete is not the same as empty, and says so."""
    from observations.prompting import sections

    def fail(**_: object) -> list[prompting.Line]:
        raise DatabaseError("gone")

    within = scope()
    before = failures.counted().get("prompt: Core memory", 0)
    monkeypatch.setattr(sections, "core_lines", fail)
    got = ask(within)
    assert (got.text, got.complete, got.failed) == ("", False, ("Core memory",))
    assert failures.counted()["prompt: Core memory"] == before + 1
    assert GivenAnswer.objects.get(answer=got.answer).failed == ["Core memory"]


def test_answers_are_kept_ninety_days() -> None:
    """Housekeeping deletes older ones, and no other."""
    within = scope()
    for days in (89, 91):
        GivenAnswer.objects.create(
            scope=within, answer=uuid4(), call_site="context", at=datetime.now(UTC) - timedelta(days=days)
        )
    assert "1 answers" in tasks.age_outbox()
    assert GivenAnswer.objects.count() == 1


def test_what_was_told_is_found_by_id_and_by_time_as_it_stands_now() -> None:
    """An erased row is shown as erased; by a moment the last answer given by then."""
    within = scope()
    gone = observe("The relay fix shipped", within=within)
    first = ask(within)
    between = GivenAnswer.objects.get(answer=first.answer).at
    ask(within, "something else")
    with transaction.atomic():
        store.lock_scope(scope_id=within.pk, cause="test")
        store.erase(scope_id=within.pk, ids=[gone.pk], by="ines", reason="a test", request="forget:test")
    for found in (answers.told(scope=within, answer=first.answer), answers.told(scope=within, at=between)):
        assert found is not None
        [entry] = found.entries
        assert (entry.id, entry.text, entry.status, entry.shown) == (gone.pk, None, Status.ERASED, True)
    assert answers.told(scope=within, at=between - timedelta(days=1)) is None
    assert answers.told(scope=scope("team-b/u2"), answer=first.answer) is None


def test_a_token_reads_answers_of_its_scopes_only() -> None:
    """One rule decides who may see what."""
    within = scope()
    held = observe("The relay fix is held back", within=within)
    got = ask(within)
    store.lock_scope(scope_id=within.pk, cause="test")
    store.move(scope_id=within.pk, ids=[held.pk], to=Status.QUARANTINED)
    told = calls.get_answer(caller=READER, asked=schemas.GetAnswer(scope=within.name, answer=str(got.answer)))
    assert [(row.id, row.text, row.status) for row in told.rows] == [(f"obs_{held.pk}", None, "quarantined")]
    for asked in (
        schemas.GetAnswer(scope=within.name),
        schemas.GetAnswer(scope=within.name, answer="x"),
        schemas.GetAnswer(scope=within.name, answer=str(uuid4())),
        schemas.GetAnswer(scope="team-b/u2", answer=str(got.answer)),
    ):
        with pytest.raises(CallRefused):
            calls.get_answer(caller=READER, asked=asked)


def test_the_command_prints_what_was_told_and_what_a_prompt_leaves_out() -> None:
    """`memory told`, `memory prompt --explain`."""
    within = scope()
    row = observe("The relay fix shipped", within=within)
    out = StringIO()
    call_command("memory", "prompt", "relay fix", "--scope", within.name, "--explain", stdout=out)
    answer = GivenAnswer.objects.get().answer
    assert f"answer: {answer}" in out.getvalue()
    assert "episodes chosen by: the rule" in out.getvalue()
    told = StringIO()
    call_command("memory", "told", str(answer), "--scope", within.name, stdout=told)
    assert f"obs_{row.pk} shown, now active: The relay fix shipped" in told.getvalue()


def test_the_past_is_told_as_such_and_counts_no_use() -> None:
    """as_of: what would have been told then, core memory by its revisions."""
    within, now = scope(), datetime.now(UTC)
    observe("The relay fix shipped", within=within, created_at=now - timedelta(days=1))
    observe("Waiting on the relay fix", within=within, created_at=now - timedelta(days=120))
    got = ask(within, as_of=now - timedelta(days=60))
    assert got.text.splitlines()[1] == f"As of {now - timedelta(days=60):%Y-%m-%d %H:%M} UTC, not now:"
    assert "Waiting" in got.text
    assert "shipped" not in got.text
    assert "outdated" not in got.text
    assert not Use.objects.exists()
