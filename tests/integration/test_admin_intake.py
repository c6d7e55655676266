"""Intake in the admin: setting it, a run by hand, and what a run brought, claim by claim (R121, R122, R132)."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from consolidation import tasks
from consolidation.models import Operation
from consolidation.operations import Kind
from observations import ingest, outbox, spending
from observations import tasks as store_tasks
from observations.ingest.background import KEY
from observations.models import Event, Extraction, Intake, IntakeItem, IntakeRun, Observation, Outbox, database_now
from observations.records import Claim, Status
from tests.building import observe, scope
from tests.desk import client_of, person
from tests.intaking import deciding, echo, enabled, items, model, read, the, told, turn
from tests.writing import where

pytestmark = pytest.mark.django_db

OSLO, LYON = "Ana lives in Oslo", "Ana lives in Lyon"


@pytest.fixture
def stella() -> Client:
    """A steward of team-a."""
    return client_of(person("stella", "Steward", "team-a/*"))


@pytest.fixture
def olga() -> Client:
    """An operator of team-a."""
    return client_of(person("olga", "Operator", "team-a/*"))


def text_of(client: Client, model: str, *args: int) -> str:
    """A page's own text."""
    return client.get(where(model, "change" if args else "changelist", *args)).content.decode()


# --- settings -------------------------------------------------------------------------------------------------------


def test_a_scope_is_off_until_a_steward_enables_it(stella: Client) -> None:
    """R121: the list says so of a scope nobody touched; enabling has its event, and turns from before stay unread."""
    here = scope()
    told(here, "said before")
    assert [(row.on, row.every, row.residue) for row in stella.get(where("intake")).context["rows"]] == [
        (False, 5, False)
    ]
    answer = stella.post(where("intake", "settings", here.pk), {"on": "1", "every": "7"}, follow=True)
    assert "are read in the background" in answer.content.decode()
    row = Intake.objects.get()
    assert (row.enabled, row.every_turns, row.residue, row.updated_by) == (True, 7, False, "stella")
    assert Event.objects.get(action="intake_on").actor == "stella"
    assert answer.context["row"].waiting == "0"
    told(here, turn("said after", number=5))
    assert stella.get(where("intake")).context["rows"][0].waiting == "1"


def test_from_its_beginning_means_every_turn_and_off_keeps_what_was_read(stella: Client) -> None:
    here = scope()
    told(here, "said before")
    address = where("intake", "settings", here.pk)
    stella.post(address, {"on": "1", "every": "5", "since": "start", "residue": "1"})
    row = stella.get(where("intake", "change", here.pk)).context["row"]
    assert (row.on, row.waiting, row.since, row.residue) == (True, "1", "its beginning", True)
    stella.post(address, {"every": "5", "residue": "1"})
    row = stella.get(where("intake", "change", here.pk)).context["row"]
    assert (row.on, row.residue) == (False, True)
    assert Event.objects.filter(action="intake_off", actor="stella").count() == 1


def test_residue_is_set_by_itself_where_no_turn_is_read(stella: Client) -> None:
    """And saving the same again is no second event."""
    here = scope()
    for _ in range(2):
        stella.post(where("intake", "settings", here.pk), {"every": "5", "residue": "1"})
    assert Intake.objects.values_list("enabled", "residue").get() == (False, True)
    assert Event.objects.values_list("action", flat=True).get() == "residue_on"
    stella.post(where("intake", "settings", here.pk), {"every": "5"})
    assert not Intake.objects.get().residue


@pytest.mark.parametrize("every", ["", "0", "1001", "-3", "five", "5.5", "٣", "9" * 40])
def test_a_number_that_cannot_be_meant_sets_nothing_and_says_so(every: str, stella: Client) -> None:
    here = scope()
    answer = stella.post(where("intake", "settings", here.pk), {"on": "1", "every": every})
    assert answer.status_code == 409
    assert "every 1 to 1,000" in answer.content.decode()
    assert not Intake.objects.exists()


# --- a run by hand --------------------------------------------------------------------------------------------------


def test_read_now_asks_a_worker_once_and_in_the_persons_name(
    olga: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C17: two clicks are one row; the run it becomes says who asked."""
    settings.ANTHROPIC_API_KEY = "a key"
    monkeypatch.setattr(spending, "door", lambda *, scope_id: model(echo))
    here = enabled(scope())
    told(here, OSLO)
    for _ in range(2):
        answer = olga.post(where("intake", "run", here.pk), follow=True)
        assert "A worker is asked" in answer.content.decode()
        assert answer.context["row"].asked
    row = Outbox.objects.get(task=ingest.EXTRACT)
    assert row.payload == {"trigger": "hand", "by": "olga"}
    assert OSLO not in str(row.payload)
    Outbox.objects.exclude(pk=row.pk).update(done_at=database_now())
    store_tasks.sweep.run()
    run = IntakeRun.objects.get()
    assert (run.trigger, run.by, run.state) == ("hand", "olga", "done")
    assert not olga.get(where("intake", "change", here.pk)).context["row"].asked


def test_read_now_says_that_there_is_no_model_or_that_it_is_off(olga: Client, settings: Any) -> None:
    """Neither asks anything, and neither says that there is nothing to do."""
    settings.ANTHROPIC_API_KEY = ""
    here = scope()
    assert "are not read: a steward" in olga.post(where("intake", "run", here.pk), follow=True).content.decode()
    enabled(here)
    page = olga.post(where("intake", "run", here.pk), follow=True).content.decode()
    assert "No model is configured" in page
    assert not Outbox.objects.filter(task=ingest.EXTRACT).exists()


def test_a_failed_run_is_shown_as_failed_wherever_it_is_shown(olga: Client) -> None:
    """A failed step is never shown as nothing to do."""
    here = enabled(scope())
    run = IntakeRun.objects.create(scope=here, trigger="turns")
    sentence = "The model cannot be reached. Try again later."
    IntakeRun.objects.filter(pk=run.pk).update(state="failed", error=sentence, finished_at=database_now())
    for page in (
        text_of(olga, "intake"),
        text_of(olga, "intake", here.pk),
        text_of(olga, "intakerun"),
        text_of(olga, "intakerun", run.pk),
    ):
        assert sentence in page
        assert "failed" in page
    assert "The run failed before any claim was stored." in text_of(olga, "intakerun", run.pk)
    assert "nothing to" not in text_of(olga, "intakerun", run.pk).lower()


def test_a_workers_failed_attempt_is_shown_before_there_is_a_run(olga: Client) -> None:
    here = enabled(scope())
    outbox.enqueue(task=ingest.EXTRACT, scope_id=here.pk, key=KEY, payload={"trigger": "turns"})
    Outbox.objects.filter(task=ingest.EXTRACT).update(attempts=2, last_error="TurnsUnread: could not be read")
    for page in (text_of(olga, "intake"), text_of(olga, "intake", here.pk)):
        assert "TurnsUnread: could not be read" in page


# --- what a run brought ---------------------------------------------------------------------------------------------


def test_a_run_shows_every_claim_with_its_words_verdict_and_rows(olga: Client) -> None:
    """R122: the quote in its turn, our reason, the model's own with its trust, the target, the result."""
    here = enabled(scope())
    told(here, OSLO)
    read(here)
    old = the(OSLO, here)
    told(here, turn(LYON, number=3), turn("We ordered nuts", number=4))
    read(here, completer=model(reconcile=deciding({LYON: ("UPDATE", OSLO, True)})))
    run = IntakeRun.objects.order_by("-pk")[0]
    page = olga.get(where("intakerun", "change", run.pk))
    first = page.context["items"][0]
    assert (first.verdict.word, first.target.pk, first.result.pk) == ("updated", old.pk, the(LYON, here).pk)
    assert first.text.plain == LYON
    assert [part.text for part in first.quote.words if part.own] == [LYON]
    assert (first.said.plain, first.target.status.word) == ("as told", "superseded")
    assert [one.pk for one in first.offered] == [old.pk]
    assert "trust low: a model wrote it" in page.content.decode()
    assert [(one.value, one.claims) for one in page.context["verdicts"]] == [("add", 1), ("update", 1)]
    narrowed = olga.get(where("intakerun", "change", run.pk), {"verdict": "add"})
    assert [item.text.plain for item in narrowed.context["items"]] == ["We ordered nuts"]
    [row] = [row for row in olga.get(where("intakerun")).context["rows"] if row.pk == run.pk]
    assert (row.turns, row.claims, row.added, row.updated, row.known) == (2, 2, 1, 1, 0)


def test_an_update_of_the_background_stands_in_the_history_with_cause_run_and_words(olga: Client) -> None:
    """R12, R15: no operation did it; the versions say when, why, which run and on which words of which turn."""
    here = enabled(scope())
    told(here, OSLO)
    read(here)
    old = the(OSLO, here)
    [later] = told(here, turn(LYON, number=3))
    read(here, completer=model(reconcile=deciding({LYON: ("UPDATE", OSLO, False)})))
    page = olga.get(where("observation", "change", old.pk))
    [older, newer] = page.context["page"].versions
    assert (newer.name, older.here, older.how) == (f"obs_{the(LYON, here).pk}", True, f"superseded by {newer.name}")
    assert older.gave_way.cause == "intake"
    assert (older.gave_way.run, older.gave_way.episode) == (IntakeRun.objects.order_by("-pk")[0].pk, later.pk)
    assert (older.gave_way.quote, older.gave_way.operation) == (LYON, "")
    assert older.gave_way.evidence == "the new row took over its evidence"
    assert older.gave_way.at
    written = olga.get(where("observation", "change", the(LYON, here).pk)).context["page"].written
    assert written.via == "read from turns in the background"
    assert [(one.verdict.word, one.episode) for one in written.claims] == [("updated", later.pk)]


def test_a_deliberate_call_and_its_correction_say_who(olga: Client) -> None:
    """The journal's cause names the caller; the page of the new row names it too."""
    here = scope()
    kept = ingest.remember(scope=here, claim=Claim(text=OSLO), by="token:abc")
    assert kept.id is not None
    new = ingest.correct(scope=here, observation_id=kept.id, claim=Claim(text=LYON), by="token:abc")
    assert new.id is not None
    [older, _] = olga.get(where("observation", "change", kept.id)).context["page"].versions
    assert (older.gave_way.cause, older.gave_way.run) == ("correct by token:abc", None)
    calls = olga.get(where("observation", "change", new.id)).context["page"].written.calls
    assert {(call.who, call.what) for call in calls} == {
        ("token:abc", "wrote it"),
        ("token:abc", "wrote it in another row’s place"),
    }


def test_what_waits_for_a_person_leads_to_its_question(olga: Client) -> None:
    """C4: a bare DELETE; from the run's page to the item in the queue."""
    here = enabled(scope())
    row = observe("The plant is watered on Mondays", within=here)
    told(here, "Nobody waters the plant now")
    read(here, completer=model(reconcile=deciding({"Nobody waters the plant now": ("DELETE", row.text or "", False)})))
    assert [verdict for verdict, _ in items(here)] == ["review"]
    Outbox.objects.exclude(task=tasks.REVIEW_RETIRE).update(done_at=database_now())
    outbox.work(seconds=5)
    asked = Operation.objects.get(kind=Kind.ARCHIVE)
    [item] = olga.get(where("intakerun", "change", IntakeRun.objects.get().pk)).context["items"]
    assert (item.verdict.word, item.operation) == ("for review", asked.pk)
    row.refresh_from_db()
    assert row.status == Status.ACTIVE


def test_a_secret_that_was_refused_is_on_no_page(olga: Client) -> None:
    """The claim is not kept; the page says that, and why."""
    here = enabled(scope())
    run = IntakeRun.objects.create(scope=here, trigger="turns")
    IntakeItem.objects.create(scope=here, run=run, verdict="refused", reason="it holds a secret")
    page = text_of(olga, "intakerun", run.pk)
    assert "it held what must not be stored" in page
    assert "it holds a secret" in page


def test_a_turn_whose_answer_is_never_usable_is_named_as_given_up(olga: Client) -> None:
    """After three answers; the answers stay readable, escaped, with why."""
    here = enabled(scope())
    [turn_] = told(here, OSLO)
    for attempts in (1, 2, 3):
        read(here, completer=model("<b>not JSON</b>"))
        assert Extraction.objects.get().attempts == attempts
        page = olga.get(where("intakerun", "change", IntakeRun.objects.order_by("-pk")[0].pk))
        [unusable] = page.context["unusable"]
        assert (unusable.pk, unusable.attempts, unusable.given_up) == (turn_.pk, attempts, attempts == 3)
    shown = page.content.decode()
    assert "answer unusable, given up" in shown
    assert "&lt;b&gt;not JSON&lt;/b&gt;" in shown
    [answer] = page.context["answers"]
    assert answer.reason
    assert answer.episodes == ((turn_.pk, f"ep_{turn_.pk}"),)
    assert olga.get(where("intake")).context["rows"][0].given_up == "1"
    assert not Observation.objects.exists()
