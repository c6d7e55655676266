"""A model gives keys to observations that lack them: in batches, beside the row, and only what the text says."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from observations import ingest, keying, store
from observations.ingest import KeysReport
from observations.llm import (
    BATCH_FROM,
    Answer,
    BudgetSpent,
    CutOff,
    Denied,
    ModelFailed,
    Refused,
    Request,
    Unreachable,
    Unusable,
    json_in,
)
from observations.models import GivenKey, ModelCall, Observation, Scope
from observations.records import Given, KeyState, Status
from tests.acceptance.boundaries import run_in_child
from tests.building import observe, scope
from tests.conftest import empty_the_store
from tests.giving import KEYS, given_by, key_of, keyless, knowing, texts_of
from tests.messages_stub import messages_stub, ok
from tests.scripted import ScriptedCompleter

# --- what is given ---------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_rows_without_a_key_get_the_one_that_their_text_states() -> None:
    """B: subject, predicate and object for observations that lack them, the source words quoted."""
    here = scope()
    anna, *_ = keyless(here)
    noise = observe("The weather was lovely.", within=here)
    report = given_by(knowing, here)
    assert (report.asked, report.given, report.none, report.left, report.not_run) == (4, 3, 1, 0, "")
    given = key_of(anna)
    assert given is not None
    assert (given.subject, given.predicate, given.object, given.state) == ("Anna", "lives in", "Oslo", "given")
    assert (anna.text or "")[given.quote_start : given.quote_end] == "Anna lives in Oslo"
    assert (given.model, given.prompt_version, given.attempts) == ("scripted", keying.PROMPT_VERSION, 1)
    nothing = key_of(noise)
    assert nothing is not None
    assert (nothing.state, nothing.sp_key, nothing.quote_start) == ("none", 0, None)


@pytest.mark.django_db
def test_a_given_key_has_the_hashes_that_the_row_would_have_with_it() -> None:
    here = scope()
    [bare] = keyless(here, "Anna lives in Oslo.")
    keyed = observe("Something else.", within=here, key=("anna", "Lives_in", "the Oslo"))
    assert given_by(knowing, here).given == 1
    given = key_of(bare)
    assert given is not None
    assert (given.subject_key, given.sp_key, given.spo_key) == (keyed.subject_key, keyed.sp_key, keyed.spo_key)


@pytest.mark.django_db
def test_only_the_parts_that_the_writer_left_out_are_given_and_the_row_itself_never_changes() -> None:
    """B: never overwrites a key a person or a caller gave."""
    here = scope()
    row = observe("Anna lives in Oslo.", within=here, key=("ANNA", "", ""))
    assert given_by(knowing, here).given == 1
    given = key_of(row)
    assert given is not None
    assert (given.subject, given.predicate, given.object) == ("", "lives in", "Oslo")
    assert Observation.objects.get(pk=row.pk).__dict__.keys() == row.__dict__.keys()
    after = Observation.objects.get(pk=row.pk)
    assert (after.subject, after.predicate, after.object, after.version) == ("ANNA", "", "", 1)
    record = after.record(roots=frozenset(), uses=0, given=given)
    assert (record.key, record.key_by) == (("anna", "lives in", "oslo"), "scripted")


@pytest.mark.django_db
def test_a_row_with_a_whole_key_is_not_asked_about() -> None:
    here = scope()
    observe("Anna lives in Oslo.", within=here, key=("Anna", "lives in", "Oslo"))
    model = ScriptedCompleter(knowing)
    assert ingest.give_keys(scope=here, completer=model) == KeysReport()
    assert model.requests == []


@pytest.mark.django_db
@pytest.mark.parametrize("status", [Status.ARCHIVED, Status.QUARANTINED])
def test_what_left_the_reads_is_not_asked_about(status: Status) -> None:
    here = scope()
    [row] = keyless(here, "Anna lives in Oslo.")
    store.move(scope_id=here.pk, ids=[row.pk], to=status)
    assert given_by(knowing, here).asked == 0


@pytest.mark.django_db
def test_a_text_too_long_for_a_claim_is_not_sent() -> None:
    here = scope()
    keyless(here, "x" * (keying.LONGEST_TEXT + 1), "x" * keying.LONGEST_TEXT)
    assert given_by(knowing, here).asked == 1


@pytest.mark.django_db
def test_a_question_never_holds_two_scopes() -> None:
    """C6."""
    for name in ("a", "b"):
        keyless(scope(name), f"Text of {name}.")
    model = ScriptedCompleter(knowing)
    for name in ("a", "b"):
        ingest.give_keys(scope=Scope.objects.get(name=name), completer=model)
    assert [[line["text"] for line in texts_of(request)] for request in model.requests] == [
        ["Text of a."],
        ["Text of b."],
    ]
    assert [request.scope_id for request in model.requests] == [Scope.objects.get(name=name).pk for name in "ab"]


# --- once, and oldest first ------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_what_was_answered_is_never_asked_again() -> None:
    here = scope()
    keyless(here, *KEYS, "The weather was lovely.")
    given_by(knowing, here)
    before = list(GivenKey.objects.order_by("pk").values())
    model = ScriptedCompleter(knowing)
    assert ingest.give_keys(scope=here, completer=model).asked == 0
    assert model.requests == []
    assert list(GivenKey.objects.order_by("pk").values()) == before


@pytest.mark.django_db
def test_questions_hold_twenty_texts_oldest_first() -> None:
    here = scope()
    keyless(here, *(f"Text {n}." for n in range(45)))
    model, told = ScriptedCompleter(knowing), list[int]()
    report = ingest.give_keys(scope=here, completer=model, progress=told.append)
    assert (report.asked, report.none) == (45, 45)
    assert model.batches == []  # too few for the half price
    assert [len(texts_of(request)) for request in model.requests] == told == [20, 20, 5]
    texts = [line["text"] for request in model.requests for line in texts_of(request)]
    assert texts == [f"Text {n}." for n in range(45)]


@pytest.mark.django_db
def test_what_is_enough_for_a_batch_is_asked_together() -> None:
    here = scope()
    keyless(here, *(f"Text {n}." for n in range(20 * BATCH_FROM + 1)))
    model = ScriptedCompleter(knowing)
    assert ingest.give_keys(scope=here, completer=model).none == 20 * BATCH_FROM + 1
    assert model.batches == [BATCH_FROM]
    assert len(model.requests) == BATCH_FROM + 1


@pytest.mark.django_db(transaction=True)
def test_a_run_that_is_killed_between_two_questions_keeps_what_was_answered() -> None:
    """E1: each answer is stored before the next is asked for; run again, the rest is asked about."""
    here = scope()
    keyless(here, *(f"Text {n}." for n in range(45)))
    answers = ScriptedCompleter(knowing)

    def dying(request: Request) -> object:
        if len(answers.requests) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return json_in(answers.complete(request).text)

    death = run_in_child(lambda: ingest.give_keys(scope=here, completer=ScriptedCompleter(dying)))
    assert (death.code, GivenKey.objects.count()) == (-9, 40)
    again = ScriptedCompleter(knowing)
    assert ingest.give_keys(scope=here, completer=again).asked == 5
    assert len(again.requests) == 1


@pytest.mark.django_db
def test_a_limit_leaves_the_newest_and_says_how_many() -> None:
    here = scope()
    rows = keyless(here, *(f"Text {n}." for n in range(7)))
    first = given_by(knowing, here, limit=3)
    assert (first.asked, first.left, first.not_run, first.last) == (3, 4, "", rows[2].pk)
    second = given_by(knowing, here, after=rows[4].pk)
    assert (second.asked, second.left) == (2, 0)
    assert ingest.lacking_keys(scope=here) == 2


@pytest.mark.django_db
def test_a_long_list_is_stored_group_by_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("observations.ingest.keying.AT_ONCE", 4)
    here = scope()
    keyless(here, *(f"Text {n}." for n in range(10)))
    stored: list[int] = []

    def counting(request: Request) -> object:
        stored.append(GivenKey.objects.count())
        return knowing(request)

    assert given_by(counting, here).asked == 10
    assert stored == [0, 4, 8]


@pytest.mark.django_db
def test_a_question_costs_the_same_few_queries_however_many_texts_it_holds() -> None:
    here = scope()
    counts = []
    for number in (1, 20):
        keyless(here, *(f"Text {n} of {number}." for n in range(number)))
        with CaptureQueriesContext(connection) as seen:
            assert given_by(knowing, here).asked == number
        counts.append(len(seen))
    assert counts[0] == counts[1] <= 8


# --- without a model, and with one that fails ------------------------------------------------------------------------


@pytest.mark.django_db
def test_without_a_model_nothing_is_written_and_the_report_says_so() -> None:
    """B: without a model it does nothing and says so."""
    here = scope()
    keyless(here)
    report = ingest.give_keys(scope=here)
    assert (report.asked, report.left, report.failure) == (0, 3, Answer.NO_MODEL)
    assert "No language model is configured" in report.not_run
    assert not GivenKey.objects.exists()


@pytest.mark.django_db
def test_where_no_key_is_missing_no_model_is_missed() -> None:
    assert ingest.give_keys(scope=scope()) == KeysReport()


@pytest.mark.django_db
@pytest.mark.parametrize("failure", [BudgetSpent, Unreachable, Denied])
def test_what_was_done_before_a_failure_stays_and_the_rest_is_said_as_not_done(
    failure: type[ModelFailed], monkeypatch: pytest.MonkeyPatch
) -> None:
    """F2: no row is marked for a failure that says nothing about its text."""
    monkeypatch.setattr("observations.ingest.keying.AT_ONCE", 40)
    here = scope()
    keyless(here, *(f"Text {n}." for n in range(100)))
    model = ScriptedCompleter()
    model._script = lambda request: knowing(request) if len(model.requests) < 2 else failure("No more today.")
    report = ingest.give_keys(scope=here, completer=model)
    assert (report.asked, report.none, report.left) == (20, 20, 80)
    assert (report.not_run, report.failure) == ("No more today.", failure.answer)
    assert GivenKey.objects.count() == 20
    assert len(model.requests) == 2  # the next group is not tried
    assert given_by(knowing, here).asked == 80


@pytest.mark.django_db
@pytest.mark.parametrize(
    "answer", [Refused("no"), CutOff("too long"), Unusable("what"), "plain prose", '{"keys": 1}', '{"keys": [{"la']
)
def test_an_answer_that_cannot_be_used_marks_its_rows_and_goes_on(answer: ModelFailed | str) -> None:
    """C2: a different outcome from 'no key', kept, and retried a limited number of times."""
    here = scope()
    rows = keyless(here)
    report = given_by(answer, here)
    assert (report.asked, report.unusable, report.refused, report.none, report.not_run) == (3, 3, 0, 0, "")
    for row in rows:
        said = key_of(row)
        assert said is not None
        assert (said.state, said.attempts, said.model) == ("unusable", 1, "scripted")


@pytest.mark.django_db
def test_bad_answers_are_asked_for_three_times_and_in_smaller_company() -> None:
    """One text that spoils the answer cannot keep the others of its question from their keys."""
    here = scope()
    keyless(here, *(f"Text {n}." for n in range(24)), "SPOIL", "Anna lives in Oslo.")

    def spoilt(request: Request) -> object:
        return "oh no" if "SPOIL" in request.text else knowing(request)

    sizes, reports = [], []
    for _ in range(4):
        model = ScriptedCompleter(spoilt)
        reports.append(ingest.give_keys(scope=here, completer=model))
        sizes.append([len(texts_of(request)) for request in model.requests])
    assert sizes == [[20, 6], [5, 1], [1] * 5, []]
    assert [report.unusable for report in reports] == [6, 5, 1, 0]
    assert Counter(GivenKey.objects.values_list("state", flat=True)) == {"none": 24, "unusable": 1, "given": 1}
    assert GivenKey.objects.get(state="unusable").attempts == store.MAX_ATTEMPTS


@pytest.mark.django_db
def test_an_answer_that_is_not_believed_is_refused_for_its_row_with_the_reason() -> None:
    """C2, C3: good entries beside it survive."""
    here = scope()
    keyless(here, "Anna lives in Oslo.", "Anna does not live in Rome.")
    quotes = ("Anna lives in Oslo", "Anna does not live in Rome")
    wrong = [
        {"label": n, "subject": "Anna", "predicate": "lives in", "object": quote[-4:], "quote": quote}
        for n, quote in enumerate(quotes)
    ]
    report = given_by({"keys": wrong}, here)
    assert (report.given, report.refused, report.unusable) == (1, 1, 0)
    assert report.refusals == {str(keying.Refusal.DENIED): 1}
    assert GivenKey.objects.get(state="unusable").spo_key == 0


# --- what happens meanwhile ------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_row_erased_archived_or_answered_while_the_model_thinks_is_left_alone() -> None:
    """I11, promise 7: a key is memory, and must not come back after an erase."""
    here = scope()
    gone, away, known, stays = keyless(here, *KEYS, "Cy lives in Oslo.")

    def slowly(request: Request) -> object:
        with transaction.atomic():
            store.erase(scope_id=here.pk, ids=[gone.pk], by="Ana", reason="asked", request="forget:1")
            store.move(scope_id=here.pk, ids=[away.pk], to=Status.ARCHIVED)
            store.put_keys(scope_id=here.pk, given={known.pk: Given(KeyState.NONE, model="other", prompt_version="1")})
        return knowing(request)

    report = given_by(slowly, here)
    assert (report.asked, report.changed, report.none, report.given) == (4, 3, 1, 0)
    assert [key_of(row) for row in (gone, away)] == [None, None]
    assert GivenKey.objects.get(observation=known).model == "other"
    assert GivenKey.objects.get(observation=stays).state == "none"


@pytest.mark.django_db(transaction=True)
def test_no_transaction_is_open_while_the_model_is_asked() -> None:
    here = scope()
    keyless(here)

    def watching(request: Request) -> object:
        assert not connection.in_atomic_block
        return knowing(request)

    assert given_by(watching, here).given == 3


@pytest.mark.django_db(transaction=True)
def test_two_runs_at_once_store_one_key_per_row() -> None:
    here = scope()
    keyless(here)
    gate, reports = threading.Barrier(2), list[KeysReport]()

    def together(request: Request) -> object:
        gate.wait(10)  # both have read the rows and neither has stored
        return knowing(request)

    def run() -> None:
        try:
            reports.append(given_by(together, here))
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted((report.given, report.changed) for report in reports) == [(0, 3), (3, 0)]
    assert GivenKey.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_a_run_that_dies_anywhere_is_completed_by_the_next() -> None:
    """Promise 4: what was stored stays, nothing is asked twice, and the end is the same."""
    for dies_at in range(1, 4):
        empty_the_store()
        here = scope()
        keyless(here, *(f"Text {n}." for n in range(50)), *KEYS)
        model = ScriptedCompleter()

        def dying(request: Request, at: int = dies_at, asked: ScriptedCompleter = model) -> object:
            if len(asked.requests) == at:
                raise KeyboardInterrupt
            return knowing(request)

        model._script = dying
        with pytest.raises(KeyboardInterrupt):
            ingest.give_keys(scope=here, completer=model)
        given_by(knowing, here)
        assert Counter(GivenKey.objects.values_list("state", "attempts")) == {("none", 1): 50, ("given", 1): 3}


# --- the real door ---------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_keys_come_through_the_providers_own_client(settings: pytest.FixtureRequest) -> None:
    """The question as the API gets it, the answer as it comes, the call on record."""
    here = scope()
    [row] = keyless(here, "Anna lives in Oslo.")
    entry = '{"label": 0, "subject": "Anna", "predicate": "lives in", "object": "Oslo", "quote": "Anna lives in Oslo"}'
    with messages_stub([ok(f'{{"keys": [{entry}]}}')]) as stub:
        settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL = "test", stub.url  # type: ignore[attr-defined]
        report = ingest.give_keys(scope=here)
    assert (report.given, report.not_run) == (1, "")
    said = key_of(row)
    assert said is not None
    assert (said.object, said.at - row.recorded_at < timedelta(minutes=5)) == ("Oslo", True)
    call = ModelCall.objects.get()
    assert (call.purpose, call.prompt_version, call.answer, call.scope_id) == (
        *("keys", keying.PROMPT_VERSION),
        *("ok", here.pk),
    )
    assert "Anna lives in Oslo." in stub.requests[0].text
