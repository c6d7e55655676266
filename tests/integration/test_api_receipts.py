"""The same request sent twice is carried out once (INTEGRITY part 1, idempotency keys)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import close_old_connections, connection

from observations import access, tasks
from observations.calls import CALLS, Caller, CallRefused, Code, Right, receipts, schemas
from observations.models import Event, Receipt, database_now
from tests.brokers import run_python
from tests.programs import Answer, Program, in_place_of, program

CLAIM = {"scope": "team/a", "text": "Ana drinks oat milk"}
KEY = {"Idempotency_Key": "0b1f1a52-9d3e-4b8f-9a39-54ac0a1f0c3d"}
pytestmark = pytest.mark.django_db


def effect(*, caller: Caller, asked: schemas.Remember) -> schemas.Remembered:
    """Stands for a write that is not idempotent by itself: every time it is carried out it leaves a row more."""
    Event.objects.append(scope_id=None, action="effect", actor=caller.name, subject="x")
    return schemas.Remembered(action="added", text="", evidence=Event.objects.filter(action="effect").count())  # type: ignore[arg-type]


def effects() -> int:
    return Event.objects.filter(action="effect").count()


@pytest.fixture
def asking() -> Program:
    return program()


def test_a_request_sent_again_with_its_key_is_answered_again_and_not_carried_out(asking: Program) -> None:
    with in_place_of("remember", effect):
        first, second = (asking.post("/observations", CLAIM, **KEY) for _ in range(2))
    assert (first.status, first.content) == (second.status, second.content)
    assert (effects(), Receipt.objects.count()) == (1, 1)
    assert [answer.headers.get("Idempotent-Replayed") for answer in (first, second)] == [None, "true"]


def test_without_a_key_every_request_is_one_of_its_own(asking: Program) -> None:
    """The control of the test above: the effect would be there twice."""
    with in_place_of("remember", effect):
        assert {asking.post("/observations", CLAIM).status for _ in range(2)} == {200}
    assert (effects(), Receipt.objects.count()) == (2, 0)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/observations", {**CLAIM, "text": "Ana drinks soy milk"}),
        ("/observations", {**CLAIM, "scope": "team/b"}),
        ("/residue", {"scope": "team/a", "items": ["x"]}),
    ],
)
def test_a_key_that_was_used_for_another_request_is_a_conflict(
    asking: Program, path: str, body: dict[str, Any]
) -> None:
    with in_place_of("remember", effect):
        asking.post("/observations", CLAIM, **KEY)
        answer = asking.post(path, body, **KEY)
    assert (answer.status, answer.problem, effects()) == (409, "key_used", 1)


def test_keys_are_a_tokens_own(asking: Program) -> None:
    with in_place_of("remember", effect):
        assert asking.post("/observations", CLAIM, **KEY).status == 200
        assert program().post("/observations", CLAIM, **KEY).status == 200
    assert effects() == 2


@pytest.mark.parametrize("key", ["", " ", "a b", "é", "x" * 201, "a\tb"])
def test_a_key_that_is_none_is_refused_before_anything_is_done(asking: Program, key: str) -> None:
    with in_place_of("remember", effect):
        answer = asking.post("/observations", CLAIM, Idempotency_Key=key)
    assert (answer.status, answer.problem, effects()) == (422, "invalid", 0)


def test_a_refused_request_leaves_no_receipt_and_its_key_may_be_used_again(asking: Program) -> None:
    def refuse(*, caller: Caller, asked: schemas.Remember) -> schemas.Remembered:
        effect(caller=caller, asked=asked)
        raise CallRefused(Code.CONFLICT, "Read again.")

    with in_place_of("remember", refuse):
        assert asking.post("/observations", CLAIM, **KEY).problem == "conflict"
    assert (effects(), Receipt.objects.count()) == (0, 0)
    with in_place_of("remember", effect):
        assert asking.post("/observations", CLAIM, **KEY).status == 200


def test_reads_need_no_key_and_leave_no_receipt(asking: Program) -> None:
    def read(*, caller: Caller, asked: schemas.Search) -> schemas.Found:
        return schemas.Found(hits=[], complete=True)

    with in_place_of("search", read):
        assert asking.post("/search", {"scope": "team/a", "query": "x"}, **KEY).status == 200
    assert not Receipt.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_requests_at_once_one_is_carried_out_and_both_are_given_its_answer(asking: Program) -> None:
    """Two connections: the second waits for the first, however late in its work that is."""
    inside, go_on = threading.Event(), threading.Event()

    def slow(*, caller: Caller, asked: schemas.Remember) -> schemas.Remembered:
        answer = effect(caller=caller, asked=asked)
        inside.set()
        assert go_on.wait(10)
        return answer

    with in_place_of("remember", slow), ThreadPoolExecutor(2) as pool:
        first = pool.submit(in_thread, lambda: asking.post("/observations", CLAIM, **KEY))
        assert inside.wait(10)
        second = pool.submit(in_thread, lambda: asking.post("/observations", CLAIM, **KEY))
        wait_until_somebody_waits()
        go_on.set()
        answers = [first.result(10), second.result(10)]
    assert [answer.status for answer in answers] == [200, 200]
    assert answers[0].content == answers[1].content
    assert effects() == 1


@pytest.mark.django_db(transaction=True)
def test_a_request_whose_first_sending_takes_too_long_is_told_that_it_is_under_way(
    asking: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receipts, "WAIT_MS", 50)
    inside, go_on = threading.Event(), threading.Event()

    def slow(*, caller: Caller, asked: schemas.Remember) -> schemas.Remembered:
        inside.set()
        assert go_on.wait(10)
        return effect(caller=caller, asked=asked)

    with in_place_of("remember", slow), ThreadPoolExecutor(1) as pool:
        first = pool.submit(in_thread, lambda: asking.post("/observations", CLAIM, **KEY))
        assert inside.wait(10)
        second = asking.post("/observations", CLAIM, **KEY)
        go_on.set()
        assert first.result(10).status == 200
    assert (second.status, second.problem, second.headers["Retry-After"]) == (409, "in_progress", "1")
    assert effects() == 1


def in_thread(ask: Callable[[], Answer]) -> Answer:
    """A request on a connection of its own, closed behind it."""
    try:
        return ask()
    finally:
        close_old_connections()
        connection.close()


def wait_until_somebody_waits() -> None:
    """Until a backend of this database waits for another's transaction."""
    for _ in range(400):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            row = cursor.fetchone()
        if row and row[0]:
            return
        threading.Event().wait(0.01)
    raise AssertionError("nobody waits")


KILL = "os.kill(os.getpid(), signal.SIGKILL)"
SENT = """
import os, signal
from observations.calls import receipts, schemas
from observations.models import Event, Receipt

def act():
    Event.objects.append(scope_id=None, action="effect", actor="x", subject="x")
    {after_effect}
    return schemas.Requested(request="forget:1")

{patch}
sent = receipts.Request(token_id={token}, key="k", address="/api/v1/forget", body=b"x", scope="team/a")
{send}
"""
NAIVE = """
act()
Receipt.objects.create(token_id=sent.token_id, key="k", request_hash="x", status=200)
"""


def killed(*, after_effect: str = "", patch: str = "", send: str = "receipts.once(sent, act=act)") -> receipts.Request:
    """A process that is killed at one point of a write with a key; the request that it was at."""
    token = access.tokens().get().pk
    code = SENT.format(token=token, after_effect=after_effect, patch=patch, send=send)
    with pytest.raises(AssertionError):
        run_python(code, broker="redis://localhost:1/0")
    return receipts.Request(token_id=token, key="k", address="/api/v1/forget", body=b"x", scope="team/a")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "point",
    [{"after_effect": KILL}, {"patch": f"receipts._without_texts = lambda answer: {KILL}"}],
    ids=["act", "answer"],
)
@pytest.mark.usefixtures("asking")
def test_a_process_killed_between_effect_and_commit_leaves_neither(point: dict[str, str]) -> None:
    """kill -9: effect and receipt are one transaction, so a request sent again is carried out exactly once."""
    sent = killed(**point)
    assert (effects(), Receipt.objects.count()) == (0, 0)

    def act() -> schemas.Requested:
        Event.objects.append(scope_id=None, action="effect", actor="x", subject="x")
        return schemas.Requested(request="forget:1")

    answers = [receipts.once(sent, act=act) for _ in range(2)]
    assert [replayed for _, replayed in answers] == [False, True]
    assert (effects(), Receipt.objects.count()) == (1, 1)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("asking")
def test_a_receipt_written_behind_the_effect_would_have_let_it_happen_twice() -> None:
    """The naive control: effect, then receipt, each committed by itself; the effect is there and nothing says so."""
    killed(after_effect=KILL, send=NAIVE)
    assert (effects(), Receipt.objects.count()) == (1, 0)


def test_a_receipt_holds_no_words_and_its_hash_cannot_be_made_without_the_key(asking: Program, settings: Any) -> None:
    """The register: ids, figures and words of ours; texts are read from the rows again."""

    def keep(*, caller: Caller, asked: schemas.Remember) -> schemas.Remembered:
        return schemas.Remembered(action="added", id=12, text=asked.text, evidence=1)  # type: ignore[arg-type]

    with in_place_of("remember", keep):
        asking.post("/observations", CLAIM, **KEY)
    receipt = Receipt.objects.get()
    assert "oat milk" not in repr(list(Receipt.objects.values()))
    assert receipt.answer["text"] == ""
    sent = receipts.Request(receipt.token_id, KEY["Idempotency_Key"], "/api/v1/observations", b"{}", "team/a")
    before = sent.fingerprint
    settings.SECRET_KEY = "another"
    assert sent.fingerprint != before


WORDS_OF_OURS = {"reason", "external_id", "request", "extraction", "label"}


def strings(schema: dict[str, Any], whole: dict[str, Any]) -> set[str]:
    """The properties that hold strings without a shape: no id, no time, no word of a closed list."""
    found: set[str] = set()
    for name, each in schema.get("properties", {}).items():
        forms = [*each.get("anyOf", [each]), each.get("items", {})]
        for form in forms:
            referred = whole.get(form.get("$ref", "").rpartition("/")[2], form)
            found |= strings(referred, whole)
            shaped = {"pattern", "format", "enum", "const"} & referred.keys()
            found |= {name} if referred.get("type") == "string" and not shaped else set()
    return found


@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if call.right is not Right.READ])
def test_every_string_of_a_writes_answer_is_known_as_text_or_as_a_word_of_ours(name: str) -> None:
    """A new field of an answer is decided about before it stands in a receipt: receipts.TEXTS, or the list above."""
    schema = CALLS[name].gives.model_json_schema(mode="serialization")
    found = strings(schema, schema.get("$defs", {}))
    assert found or name == "take_back"  # its answer is ids alone
    assert found <= receipts.TEXTS | WORDS_OF_OURS


def test_receipts_older_than_a_day_are_taken_away_with_the_outbox(asking: Program) -> None:
    with in_place_of("remember", effect):
        for key in ("old", "new"):
            asking.post("/observations", CLAIM, Idempotency_Key=key)
    Receipt.objects.filter(key="old").update(at=database_now() - timedelta(hours=24, seconds=1))
    assert tasks.age_outbox() == "0 rows, 1 receipts, 0 answers, 0 residue"
    assert [receipt.key for receipt in Receipt.objects.all()] == ["new"]
